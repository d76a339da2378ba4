"""Networks as estimators: they learn, are charged for, keep scikit-learn's contract, and refuse."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from skdpnoise import (
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
    neural_network,
    total_guarantee,
)
from skdpnoise.data import RowSource, scan_batches
from skdpnoise.data.sources import Taking
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.neural_network import (
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralClassifier,
    DPNeuralRegressor,
)
from skdpnoise.neural_network import _network as network_fits
from skdpnoise.neural_network import _training as training
from skdpnoise.neural_network._gradients import rounds
from skdpnoise.privacy import PrivacyGuarantee
from tests.contracts._register import Forbidden
from tests.neural_network._words import Fixed

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

nn = torch.nn
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
LABELS = np.where(X[:, 0] * X[:, 1] > 0.0, "same", "other")
NUMBERS = 50.0 + 10.0 * np.abs(X[:, 0])
CLEAR = {"epsilon": 1000.0, "delta": 1e-3, "random_state": 0, "max_iter": 40, "batch_size": 0.2}
QUICK = {"random_state": 0, "max_iter": 2, "batch_size": 0.25}
KINDS = [
    (DPMLPClassifier, LABELS),
    (DPMLPRegressor, NUMBERS),
    (DPNeuralClassifier, LABELS),
    (DPNeuralRegressor, NUMBERS),
]
each_kind = pytest.mark.parametrize(
    ("make", "y"), KINDS, ids=lambda one: getattr(one, "__name__", "")
)


def test_every_network_is_tested():
    assert sorted(make.__name__ for make, _ in KINDS) == neural_network.__all__


def people(epsilon=1.0):
    """Return a ledger that nothing has been charged to."""
    return PrivacyLedger(
        "people", epsilon=epsilon, delta=1e-6, adjacency="add_remove", storage="memory"
    )


@each_kind
@pytest.mark.parametrize("form", ["files", "dask"])
def test_rows_in_parts_are_refused_by_name_and_never_read(make, y, form):
    def never():
        raise AssertionError

    if form == "dask":
        array = pytest.importorskip("dask.array")
        rows = array.map_blocks(lambda block: never(), array.zeros((600, 4), chunks=100), meta=X)
    else:
        rows = RowSource(
            scan_batches(lambda: [X]).reader, Taking(maps=(lambda rows: never(),)), (4,)
        )
    with pytest.raises(TypeError, match=f"{make.__name__} needs all rows of X in memory"):
        make(**QUICK).fit(rows, y)


def network(width=8, n_outputs=2, n_inputs=4):
    return nn.Sequential(nn.Linear(n_inputs, width), nn.Tanh(), nn.Linear(width, n_outputs))


@each_kind
@pytest.mark.slow
def test_scikit_learns_checks_pass(make, y):
    check_estimator(make(max_iter=2))


@each_kind
def test_clear_data_are_learnt(make, y):
    model = make(learning_rate_init=0.1, **CLEAR).fit(X, y)
    assert model.score(X, y) > 0.9


@each_kind
def test_what_is_spent_is_within_the_guarantee_and_charged_before_the_first_batch(
    make, y, monkeypatch
):
    ledger = PrivacyLedger(
        "people", epsilon=1.0, delta=1e-6, adjacency="add_remove", storage="memory"
    )

    def stop(*_):
        assert ledger.total().epsilon == pytest.approx(1.0, rel=1e-3)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "sampled", stop)
    with pytest.raises(KeyboardInterrupt) as raised:
        make(ledger=ledger, **QUICK).fit(X, y)
    assert "stays spent" in "".join(raised.value.__notes__)
    monkeypatch.undo()
    model = make(**QUICK).fit(X, y)
    assert model.privacy_.guarantee == PrivacyGuarantee(1.0, 1e-6, "add_remove")
    assert model.privacy_.total.delta(1.0) <= 1e-6
    labels = [release.label for release in model.privacy_.releases]
    assert labels[0] == "number of records"
    last = ["gradients", "labels by score"] if y is LABELS else ["gradients"]
    assert labels[-len(last) :] == last
    assert labels.count("gradients") == 1


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ({"feature_bounds": (-3, 3), "n_samples": 600}, ["gradients"]),
        ({"feature_bounds": (-3, 3)}, ["number of records", "gradients"]),
        ({"feature_bounds": (-3, 3), "batch_size": 100}, ["number of records", "gradients"]),
        ({"feature_bounds": (-3, 3), "batch_size": 100, "n_samples": 600}, ["gradients"]),
    ],
)
@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace"])
def test_what_is_public_is_not_bought(settings, labels, noise):
    ledger = PrivacyLedger(
        "people", epsilon=1.0, delta=1e-6, adjacency="add_remove", storage="memory"
    )
    model = DPMLPClassifier(**QUICK | {"noise": noise, "ledger": ledger} | settings).fit(X, LABELS)
    found = [release.label for release in model.privacy_.releases]
    assert found == [*labels, "labels by score"]
    assert model.privacy_.total.delta(1.0) <= 1e-6
    assert model.privacy_.total.epsilon(1e-6) > 0.9
    assert ledger.total().epsilon <= 1.0


def test_batches_of_a_number_hang_on_the_number_of_records():
    model = DPMLPClassifier(**QUICK | {"batch_size": 60, "n_samples": 600}).fit(X, LABELS)
    assert (model.sampling_rate_, model.n_steps_) == (0.1, 20)
    bought = DPMLPClassifier(**QUICK | {"batch_size": 60, "epsilon": 50.0}).fit(X, LABELS)
    assert bought.sampling_rate_ == pytest.approx(0.1, rel=0.02)
    assert bought.privacy_.releases[0].noise == "iid_laplace"  # pure: the steps hang on it


def test_a_person_counts_once_whatever_rows_there_are():
    people = np.repeat(np.arange(200), 3)
    model = DPMLPClassifier(rows_per_group=2, **QUICK).fit(X, LABELS, groups=people)
    report = model.privacy_
    assert report.rows_per_group == 2
    assert report.total.delta(1.0) <= 1e-6
    assert report.n_records == pytest.approx(200, abs=150)
    labels = [release.label for release in report.releases]
    assert labels[:2] == ["number of records", "number of rows"]
    one = DPMLPClassifier(feature_bounds=(-3, 3), n_samples=600, **QUICK).fit(X, LABELS)
    some = DPMLPClassifier(rows_per_group=3, feature_bounds=(-3, 3), n_samples=600, **QUICK)
    some.fit(X, LABELS, groups=people)  # no dearer than a row
    assert some.allocation_["noise"] == pytest.approx(one.allocation_["noise"])


@each_kind
def test_noise_that_is_made_for_a_row_where_a_person_is_promised_is_refused(make, y, monkeypatch):
    def of_people(self, stage):
        return self.losses[stage]

    monkeypatch.setattr(network_fits.TrainingShares, "of_rows", of_people)
    with pytest.raises(RuntimeError, match="which fits into none of the losses"):
        make(rows_per_group=3, **QUICK).fit(X, y, groups=np.arange(600) // 3)


@pytest.mark.parametrize("clip_groups", ["global", "layer", "tensor", lambda name: name[-4:]])
@pytest.mark.parametrize("noise", ["inid_gaussian", "spr_gaussian", "iid_gaussian", "inid_laplace"])
def test_groups_are_clipped_and_get_noise_by_themselves(clip_groups, noise):
    made = DPMLPClassifier(5, clip_groups=clip_groups, noise=noise, **QUICK).fit(X, LABELS)
    found = made.allocation_
    n_groups = {"global": 1, "layer": 2, "tensor": 4}.get(clip_groups, 2)
    assert len(found["group"]) == n_groups
    assert found["n_parameters"].sum() == 5 * 4 + 5 + 2 * 5 + 2
    assert (found["signal_to_noise"] > 0.0).all()
    if noise == "iid_gaussian":
        assert np.ptp(found["noise"]) == 0.0
    if noise == "inid_gaussian" and n_groups > 1:  # Theorem 4 for groups: s² as C / √d
        ratio = found["noise"] ** 2 * np.sqrt(found["n_parameters"]) / found["clip"]
        assert ratio == pytest.approx(ratio[0])


def test_steps_are_longer_where_there_is_less_noise_and_as_long_as_asked_for(monkeypatch):
    seen = []

    def note(parameters, lr, **_):
        seen.append(lr)
        return torch.optim.Adam(parameters, lr=lr)

    monkeypatch.setattr(torch.optim, "SGD", note)
    public = {"n_samples": 600, "feature_bounds": (-3, 3)}
    for epsilon in (0.03, 0.1, 1e3):
        DPMLPClassifier(100, epsilon=epsilon, **public, **QUICK).fit(X, LABELS)
    assert seen[0] < seen[1] < seen[2] <= 2.0
    DPMLPClassifier(4, learning_rate_init=0.07, **QUICK).fit(X, LABELS)
    assert seen[3:] == [0.07]


def test_a_clip_for_each_group():
    model = DPMLPClassifier(5, clip_groups="layer", clip=[0.5, 0.2], **QUICK).fit(X, LABELS)
    assert model.allocation_["clip"].tolist() == [0.5, 0.2]
    with pytest.raises(ValueError, match="clip"):
        DPMLPClassifier(5, clip_groups="layer", clip=[0.5, 0.2, 1.0], **QUICK).fit(X, LABELS)


@each_kind
def test_the_same_seed_gives_the_same_bits_and_leaves_torchs_alone(make, y):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    models = [make(**QUICK).fit(X, y) for _ in range(2)]
    assert torch.equal(torch.rand(3), expected)
    one, other = (model.module_.state_dict() for model in models)
    assert all(torch.equal(one[name], other[name]) for name in one)


@each_kind
def test_clones_and_pickles(make, y):
    model = make(**QUICK).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert not hasattr(clone(model), "module_")


def test_a_prediction_is_that_of_the_row_alone():
    model = DPMLPRegressor(**QUICK).fit(X, NUMBERS)
    assert np.array_equal(model.predict(X)[[3, 200]], model.predict(X[[3, 200]]))


def test_a_module_and_its_parameters():
    model = DPNeuralClassifier(network, module__width=6, **QUICK)
    assert model.get_params()["module__width"] == 6
    assert clone(model).set_params(module__width=5).module__width == 5
    model.fit(X, LABELS)
    assert model.module_[0].out_features == 6
    proba = model.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1.0)
    assert np.allclose(np.log(proba), model.predict_log_proba(X))


def test_layers_that_get_their_shapes_from_the_data():
    def lazy():
        return nn.Sequential(nn.LazyLinear(8), nn.Tanh(), nn.LazyLinear(2))

    model = DPNeuralClassifier(lazy, feature_bounds=(-3, 3), **QUICK).fit(X, LABELS)
    assert model.allocation_["n_parameters"].tolist() == [8 * 5 + 2 * 9]
    again = pickle.loads(pickle.dumps(model.set_params(module=None)))
    assert np.array_equal(again.predict(X), model.predict(X))


def test_images():
    images = RNG.normal(size=(60, 1, 6, 6)).astype(np.float32)

    def small():
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2))

    model = DPNeuralClassifier(small, feature_bounds=(-3, 3), **QUICK)
    model.fit(images, LABELS[:60])
    assert model.predict(images).shape == (60,)


def test_frozen_parameters_stay_and_what_is_random_of_them_is_kept():
    def frozen():
        return nn.Sequential(
            nn.Linear(4, 6).requires_grad_(False),
            nn.BatchNorm1d(6).requires_grad_(False).eval(),
            nn.ReLU(),
            nn.Linear(6, 2),
        )

    class Shared:
        module = frozen()

        def __call__(self):
            return self.module

    factory = Shared()
    before = {name: one.clone() for name, one in factory.module.state_dict().items()}
    model = DPNeuralClassifier(factory, **QUICK).fit(X, LABELS)
    after, now = model.module_.state_dict(), factory.module.state_dict()
    assert all(torch.equal(now[name], before[name]) for name in before)  # it is a user's
    assert torch.equal(after["0.weight"], before["0.weight"])
    assert not torch.equal(after["3.weight"], before["3.weight"])
    assert model.allocation_["n_parameters"].tolist() == [14]


class Counts(nn.Module):
    """Counts in a buffer what passes through it."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, rows):
        self.seen += len(rows)
        return self.inner(rows)


def between(*layers):
    return lambda: nn.Sequential(nn.Linear(4, 4), *(layer() for layer in layers), nn.Linear(4, 2))


def kept_norm():
    return nn.InstanceNorm1d(2, track_running_stats=True)


MIXING = {
    "batch norm": (between(lambda: nn.BatchNorm1d(4)), "GroupNorm"),
    "batch norm without statistics": (
        between(lambda: nn.BatchNorm1d(4, affine=False, track_running_stats=False).eval()),
        "statistics",
    ),
    "trained batch norm": (between(lambda: nn.BatchNorm1d(4).eval()), "freeze"),
    "instance norm": (
        between(lambda: nn.Unflatten(-1, (2, 2)), kept_norm, nn.Flatten),
        "track_running_stats",
    ),
    "a buffer": (Counts, "buffers"),
    "outputs": (lambda: network(n_outputs=3), "outputs"),
    "nothing to train": (lambda: network().requires_grad_(False), "frozen"),
    "no module": (lambda: 3, "torch.nn.Module"),
}


@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_records_or_cannot_be_trained_is_refused_before_the_charge(name):
    module, text = MIXING[name]
    ledger = PrivacyLedger(
        "people", epsilon=1.0, delta=1e-6, adjacency="add_remove", storage="memory"
    )
    with pytest.raises((TypeError, ValueError), match=text):
        DPNeuralClassifier(module, ledger=ledger, **QUICK).fit(X, LABELS)
    assert ledger.total().epsilon == 0.0


@pytest.mark.parametrize(
    "settings",
    [
        {"adjacency": "replace_one"},
        {"noise": "inid_staircase"},
        {"noise": "inid_gaussian", "delta": 0.0},
        {"batch_size": 0},
        {"batch_size": 1.5},
        {"clip": -1.0},
        {"clip_groups": "none"},
        {"max_iter": 0},
        {"solver": "lbfgs"},
    ],
)
def test_settings_that_are_not_proven_or_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=next(reversed(settings))):
        DPMLPClassifier(**QUICK | settings).fit(X, LABELS)


def test_pure_privacy_by_laplace_noise():
    model = DPMLPClassifier(**QUICK | {"delta": 0.0}).fit(X, LABELS)
    assert model.privacy_.total.pure_epsilon <= 1.0
    noises = [release.noise for release in model.privacy_.releases]
    assert noises[-2:] == ["inid_laplace", "iid_laplace"]


def test_gradients_that_are_not_finite_change_nothing_but_themselves():
    wild = X.copy()
    wild[:5] = 1e90
    model = DPNeuralClassifier(network, **CLEAR).fit(wild, LABELS)  # as they are: infinite floats
    assert all(one.isfinite().all() for one in model.module_.state_dict().values())


def test_an_empty_sample_releases_noise(monkeypatch):
    monkeypatch.setattr(training, "sampled", lambda *_: np.arange(0))
    moved, still = (
        DPMLPClassifier(4, learning_rate_init=rate, **QUICK).fit(X, LABELS).module_[0].weight
        for rate in (0.1, 1e-300)
    )
    assert (moved != still).all()


def test_pipelines_and_searches():
    pipe = make_pipeline(
        DPStandardScaler(adjacency="add_remove", random_state=0), DPMLPClassifier(**QUICK)
    )
    assert pipe.fit(X, LABELS).predict(X).shape == (600,)


GRID = {"learning_rate_init": [0.05, 0.2]}
FACTS = {"adjacency": "add_remove", "random_state": 0, "epsilon": 3.0}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("strategy", ["noisy_max", "repeated"])
@pytest.mark.parametrize(("make", "y"), [(DPMLPClassifier, LABELS), (DPMLPRegressor, NUMBERS)])
def test_searches_share_out_epsilon_and_delta(delta, strategy, make, y):
    ledger = people(epsilon=3.1)
    network = make(max_iter=2, batch_size=0.25)
    search = DPGridSearchCV(
        network, GRID, delta=delta, strategy=strategy, refit=True, ledger=ledger, **FACTS
    )
    search.fit(X, y)
    assert search.best_estimator_.predict(X).shape == (600,)
    assert search.privacy_.total.delta(3.0) <= delta
    assert ledger.total().epsilon == pytest.approx(3.0, rel=1e-4)
    spent = search.best_estimator_  # whose parameters are its share
    budget = search.fit_budget_
    if strategy == "repeated":
        pair = (budget.pure_epsilon, 0.0) if delta == 0.0 else (budget.epsilon, budget.delta)
        assert spent.epsilon <= pair[0]
        assert spent.delta <= pair[1]
    else:  # the winner was fitted again
        assert spent.epsilon <= 1.5
        assert spent.delta <= 0.5 * delta


def test_a_search_of_which_some_candidates_sample_records():
    linear = DPLogisticCD(adjacency="add_remove", n_passes=2)
    perceptron = DPMLPClassifier(max_iter=2, batch_size=0.25)
    pipe = make_pipeline(linear)
    grid = {"dplogisticcd": [linear, perceptron]}
    search = DPGridSearchCV(pipe, grid, **FACTS).fit(X, LABELS)
    assert search.privacy_.total.delta(3.0) <= 1e-6


def test_a_search_takes_a_module_and_states_that_it_is_declared_public():
    model = DPNeuralClassifier(network, module__width=4, max_iter=1, batch_size=0.5)
    search = DPGridSearchCV(model, {"module__width": [2, 4]}, **FACTS).fit(X, LABELS)
    assert search.privacy_.declared == ("module", "labels of y")
    assert "module" in total_guarantee(search).declared
    scaler = DPStandardScaler(adjacency="add_remove", feature_bounds=(-5, 5))
    pipe = DPPipeline([("scale", scaler), ("net", model)], **FACTS)
    search = DPGridSearchCV(pipe, {"net__module__width": [2, 4]}, **FACTS).fit(X, LABELS)
    assert search.privacy_.declared == ("net__module", "labels of y")


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_pipeline_shares_out_epsilon_and_delta(delta):
    # The pipeline takes the relation of its network, without any setting.
    scaler = DPStandardScaler(feature_bounds=(-5, 5))
    steps = [("scale", scaler), ("model", DPMLPClassifier(max_iter=2, batch_size=0.25))]
    ledger = people(epsilon=3.1)
    pipe = DPPipeline(steps, epsilon=3.0, delta=delta, ledger=ledger, random_state=0)
    pipe.fit(X, LABELS)
    assert pipe.privacy_.guarantee.adjacency == "add_remove"
    parts = [step for _, step in pipe.steps_]  # whose parameters are their shares
    assert sum(part.epsilon for part in parts) <= 3.0
    assert sum(part.delta for part in parts) <= delta
    assert pipe.privacy_.total.delta(3.0) <= delta
    assert ledger.total().epsilon == pytest.approx(3.0, rel=1e-4)
    # And a search around it, which fits it within its own part.
    around = DPGridSearchCV(pipe.set_params(ledger=None), {"model__alpha": [0.0, 0.1]}, **FACTS)
    around.set_params(delta=delta).fit(X, LABELS)
    assert around.privacy_.total.delta(3.0) <= delta


@pytest.mark.parametrize("strategy", ["noisy_max", "repeated"])
def test_a_search_for_groups_promises_it_for_groups(strategy):
    network = DPMLPClassifier(max_iter=2, batch_size=0.25)
    search = DPGridSearchCV(network, GRID, rows_per_group=2, strategy=strategy, **FACTS)
    search.fit(X, LABELS, groups=np.arange(600) // 2)
    assert search.privacy_.unit == "group"
    assert search.privacy_.total.delta(3.0) <= 1e-6
    each = search.best_estimator_
    assert 2.0 * each.epsilon <= 3.0
    assert 2.0 * np.exp(each.epsilon) * each.delta <= 1e-6


def test_callbacks_see_epochs_and_no_loss():
    callback = pytest.importorskip("sklearn.callback")
    model = DPMLPClassifier(**QUICK).set_callbacks(callback.ProgressBar())
    model.fit(X, LABELS)
    assert model.n_iter_ == 2


def test_without_torch_the_error_names_the_extra():
    code = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'torch':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from skdpnoise.neural_network import DPMLPClassifier\n"
        "DPMLPClassifier().fit([[0.0], [1.0]], [0, 1])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError" in ran.stderr
    assert "skdpnoise[torch]" in ran.stderr


@pytest.mark.parametrize("width", [8, 9])  # slots of an odd width do not round alike
@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace"])
@pytest.mark.parametrize("rows_per_group", [1, 3])
@pytest.mark.parametrize("clip", [(0.02, 0.3), "adaptive"])
def test_a_person_more_moves_the_sum_within_every_bound_and_no_other(
    monkeypatch, width, noise, rows_per_group, clip
):
    settings = {"clip_groups": "layer", "noise": noise, "clip": clip, "batch_size": 1.0}
    public = {"feature_bounds": (-3, 3), "n_samples": 200, "classes": ["other", "same"]}
    words = np.random.default_rng(0).integers(2**40, size=200)  # for slots, where they are drawn

    def first_sum(some):
        """Return the sum of the first batch of some people, and the mechanism."""
        seen = []

        def note(drawn, total):
            seen.append((total.copy(), drawn.mechanism))
            raise KeyboardInterrupt

        def coupled(rng, people, n_slots, *, agree):
            return rounds(Fixed(words[some][people]), people, n_slots, agree=agree)

        monkeypatch.setattr(training.Drawn, "add", note)
        monkeypatch.setattr(training, "rounds", coupled)
        model = DPMLPClassifier(width, rows_per_group=rows_per_group, max_iter=1, random_state=0)
        model.set_params(**settings, **public)
        rows = (some[:, np.newaxis] * rows_per_group + np.arange(rows_per_group)).ravel()
        groups = None if rows_per_group == 1 else np.repeat(some, rows_per_group)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[rows], LABELS[rows], groups=groups)
        return seen[0]

    everyone = np.arange(200)
    moved = []
    for others in (everyone[1:], everyone[[7, 50, 123]], everyone[:-60:-1]):
        with_one, mechanism = first_sum(np.append(0, others))
        moved.append(with_one - first_sum(others)[0])
    assert moved[0].any()
    assert all((one == moved[0]).all() for one in moved)  # whoever else is there
    profile = mechanism.sensitivity
    ends = np.cumsum(profile.sizes)
    assert profile.n_groups == (3 if clip == "adaptive" else 2)
    for part, grid, bound in zip(
        np.split(moved[0], ends[:-1]), mechanism.grid_size[ends - 1], profile.bounds, strict=True
    ):
        order = int(profile.order)
        size = sum(abs(int(k)) ** order for k in part)
        assert size * Fraction(float(grid)) ** order <= Fraction(float(bound)) ** order


def test_clips_follow_the_median_of_norms():
    settings = {"clip": "adaptive", "clip_groups": "layer", "feature_bounds": (-3, 3)}
    settings |= {"max_iter": 150, "batch_size": 0.5, "epsilon": 1e4, "learning_rate_init": 1e-9}
    model = DPMLPClassifier(8, random_state=0, n_samples=600, **settings).fit(X, LABELS)
    module = model.module_.train()  # hardly moved: the norms are those of its gradients
    norms = []
    for row, label in zip(np.clip(X / 3.0, -1, 1), LABELS, strict=True):
        module.zero_grad()
        outputs = module(torch.tensor(row[np.newaxis], dtype=torch.float32))
        target = torch.tensor([int(label == "same")])
        nn.functional.cross_entropy(outputs, target).backward()
        sizes = [float(one.grad.square().sum()) for one in module.parameters()]
        norms.append([np.sqrt(sum(sizes[:2])), np.sqrt(sum(sizes[2:]))])
    assert model.allocation_["clip"] == pytest.approx(np.median(norms, axis=0), rel=0.1)
    assert model.privacy_.total.delta(1e4) <= 1e-6


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-6, 0.5])
@pytest.mark.parametrize("batch_size", [0.25, 100, 1.0])
def test_any_guarantee_is_kept_or_refused_before_the_charge(epsilon, delta, batch_size):
    settings = {"batch_size": batch_size, "max_iter": 1, "feature_bounds": (-3, 3)}
    model = DPMLPClassifier(4, epsilon=epsilon, delta=delta, random_state=0, **settings)
    try:
        model.set_params(ledger=Forbidden()).fit(X, LABELS)
    except ValueError:
        return
    except pytest.fail.Exception:
        model.set_params(ledger=None).fit(X, LABELS)
    assert model.privacy_.total.delta(epsilon) <= delta


def test_slots_are_not_trusted_once_torch_divides_its_loops_otherwise(monkeypatch):
    seen = []

    def note(rng, people, n_slots, *, agree):
        seen.append(agree)
        if len(seen) == 2:  # as a callback may do
            torch.set_num_threads(before + 1)
        return rounds(rng, people, n_slots, agree=agree)

    before = torch.get_num_threads()
    monkeypatch.setattr(training, "rounds", note)
    try:
        DPMLPClassifier(8, **QUICK).fit(X, LABELS)
    finally:
        torch.set_num_threads(before)
    assert seen == [True] * 2 + [False] * 6


def test_a_ledger_says_what_would_fit_where_steps_hang_on_a_bought_number():
    ledger = PrivacyLedger(
        "people", epsilon=0.5, delta=1e-6, adjacency="add_remove", storage="memory"
    )
    model = DPMLPClassifier(ledger=ledger, **QUICK | {"batch_size": 100})
    with pytest.raises(BudgetExceededError, match="Nothing was charged"):
        model.fit(X, LABELS)
    assert ledger.total().epsilon == 0.0
    assert model.set_params(epsilon=0.4).fit(X, LABELS).privacy_.total.delta(0.4) <= 1e-6
    assert ledger.total().epsilon <= 0.5
