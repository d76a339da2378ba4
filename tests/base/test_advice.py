"""Seeds, a large ε and a δ above 1/n are warned of: once, before the charge, by public numbers."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPCovariance,
    DPGridSearchCV,
    DPLassoPath,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPipeline,
    DPRandomizedSearchCV,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
    PrivacyWarning,
    total_guarantee,
)
from skdpnoise._utils.warnings import Once
from skdpnoise.base import advice
from skdpnoise.plotting import AllocationDisplay, NoiseDisplay, PrivacyLossDisplay
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import (
    noisy_histogram,
    private_argmax,
    private_count,
    private_histogram,
    private_location_scale,
    private_mean,
    private_moments,
    private_norm_quantile,
    private_quantiles,
    private_sum,
)
from skdpnoise.sampling import SeededWords, SystemWords, is_seeded
from skdpnoise.sampling.words import SEEDED
from tests._cases import each_value, quick

pytestmark = pytest.mark.usefixtures("the_same_words")


N = 200
BOUNDS = {"feature_bounds": (-5.0, 5.0)}
GRID = {"alpha": [0.1, 0.2]}
FITS = [
    DPCoordinateDescentRegressor(target_bounds=(-9.0, 9.0), **BOUNDS),
    DPLogisticCD(n_passes=2, **BOUNDS),
    DPLassoPath(alphas=2, target_bounds=(-9.0, 9.0), **BOUNDS),
    DPPCA(row_norm=5.0, **BOUNDS),
    DPCovariance(row_norm=5.0, **BOUNDS),
    DPStandardScaler(**BOUNDS),
    DPRobustScaler(**BOUNDS),
    DPMinMaxScaler(feature_bounds=([-5.0, -np.inf], [5.0, np.inf])),
    DPGridSearchCV(DPLogisticCD(n_passes=2, **BOUNDS), GRID, strategy="noisy_max"),
    DPRandomizedSearchCV(
        DPCoordinateDescentRegressor(target_bounds=(-9.0, 9.0), **BOUNDS), GRID, n_iter=2
    ),
    DPPipeline([("scale", DPStandardScaler(**BOUNDS)), ("rotate", DPPCA(row_norm=5.0))]),
]
PIPELINE, SEARCH = FITS[-1], FITS[-3]
SEEDS = [
    pytest.param(lambda: 0, id="int"),
    pytest.param(lambda: np.random.RandomState(0), id="RandomState"),
    pytest.param(lambda: np.random.default_rng(0), id="Generator"),
]
each_fit = pytest.mark.parametrize("estimator", FITS, ids=lambda e: type(e).__name__)
some_fits = pytest.mark.parametrize("estimator", FITS[::2], ids=lambda e: type(e).__name__)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, X[:, 0] + 0.1 * rng.normal(size=N)


@pytest.fixture(autouse=True)
def nothing_shown(monkeypatch):
    """Begin each test as a new process begins: no line of code has been warned yet."""
    monkeypatch.setattr("skdpnoise.base.advice._shown", Once())


def configured(estimator, **parameters):
    """A copy of the estimator; what is within it has its adjacency."""
    copy = clone(estimator).set_params(**parameters)
    inner = [copy.estimator] if hasattr(copy, "estimator") else []
    if hasattr(copy, "steps"):
        inner = [step for _, step in copy.steps]
    for part in inner:
        part.set_params(adjacency=copy.adjacency)
    return copy


def fitted(estimator, data, action="always", **options):
    """The fitted estimator, and the texts of the warnings that are about the promise."""
    X, y = data
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        if action != "ignore":
            warnings.simplefilter(action, PrivacyWarning)
        estimator.fit(X, y > 0 if is_classifier(estimator) else y, **options)
    texts = [str(warning.message) for warning in caught]
    return estimator, [t for t in texts if t.startswith((SEEDED, "The '"))]


@pytest.mark.slow
@each_fit
def test_an_ordinary_fit_is_not_warned(estimator, data):
    model, texts = fitted(clone(estimator), data)
    assert texts == []
    assert model.privacy_.secure
    assert SEEDED not in f"{model.privacy_}{model.privacy_!r}{model.privacy_._repr_html_()}"


@each_value(1)
@each_fit
@pytest.mark.parametrize("seed", SEEDS)
def test_a_seeded_fit_warns_once_and_its_report_begins_by_saying_so(estimator, seed, data):
    model, texts = fitted(configured(estimator, random_state=seed()), data)
    (text,) = texts
    assert text.startswith(f"{SEEDED} in {type(estimator).__name__}. ")
    report = model.privacy_
    for statement in (report, total_guarantee(model) if hasattr(model, "predict") else report):
        assert str(statement).splitlines()[0] == SEEDED
        assert repr(statement).startswith(f"<{SEEDED}. ")
        html = statement._repr_html_()
        # Nothing but tags stands before it.
        assert html[: html.index(SEEDED)].count("<") == html[: html.index(SEEDED)].count(">")
        assert html.partition(SEEDED)[0].rstrip(">").rpartition(">")[2].startswith("<b")


def test_a_secure_source_is_no_seed():
    assert not is_seeded(None)
    assert not is_seeded(SystemWords())
    assert is_seeded(SystemWords)  # a class is refused by fit


def test_asking_whether_it_is_seeded_does_not_advance_a_generator():
    asked, other = (np.random.default_rng(0) for _ in range(2))
    assert is_seeded(asked)
    assert asked.integers(1 << 62) == other.integers(1 << 62)


def test_a_model_of_a_seeded_path_says_so_too(data):
    path, _ = fitted(configured(FITS[2], random_state=0), data)
    assert str(path.model(0.1).privacy_).startswith(SEEDED)


def test_a_total_begins_with_the_caveat_if_any_of_its_fits_is_seeded(data):
    scaler = DPStandardScaler(**BOUNDS)
    steps = make_pipeline(scaler, BoundsClipper((-3, 3)), DPLogisticCD(random_state=0, **BOUNDS))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        total = total_guarantee(steps.fit(data[0], data[1] > 0))
    assert total.steps[0][1].secure
    assert str(total).splitlines()[0] == SEEDED


def test_the_winner_of_a_seeded_search_says_so(data):
    search, _ = fitted(configured(SEARCH, random_state=0), data)
    assert str(search.best_estimator_.privacy_).startswith(SEEDED)


@each_value(1)
@pytest.mark.parametrize(
    "estimate",
    [
        lambda X, g, **seed: private_count(X[:, 0] > 0, g, **seed),
        lambda X, g, **seed: private_sum(X, -5, 5, g, **seed),
        lambda X, g, **seed: private_mean(X, -5, 5, g, **seed),
        lambda X, g, **seed: private_histogram(X[:, 0], g, bins=[-5, 0, 5], **seed),
    ],
    ids=["count", "sum", "mean", "histogram"],
)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("seed", [*SEEDS, pytest.param(lambda: SeededWords(0), id="SeededWords")])
def test_a_seeded_estimate_begins_by_saying_so(estimate, adjacency, seed, data):
    guarantee = PrivacyGuarantee(1.0, 0.0, adjacency)
    assert str(estimate(data[0], guarantee, random_state=seed())).splitlines()[0] == SEEDED
    assert SEEDED not in str(estimate(data[0], guarantee))
    assert SEEDED not in str(estimate(data[0], guarantee, random_state=SystemWords()))


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, "Figure 1"])
def test_pictures_of_a_seeded_fit_say_so_whatever_their_title(name, data):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    seeded, _ = fitted(configured(FITS[0], random_state=0), data)
    plain, _ = fitted(clone(FITS[0]), data)
    for model in (seeded, plain):
        titles = [
            AllocationDisplay.from_estimator(model, name=name).ax_[0].get_title(loc="left"),
            NoiseDisplay.from_estimator(model, name=name).ax_[0].get_title(),
            PrivacyLossDisplay.from_estimator(model, name=name).lines_[0].get_label(),
        ]
        for title in titles:
            assert title.startswith(SEEDED) == (model is seeded)
            assert name is None or title.endswith(name)
    plt.close("all")


def test_a_ledger_that_holds_a_seeded_charge_begins_by_saying_so_and_hides_the_seed(data):
    ledger = PrivacyLedger("people", 100.0, 1e-3)
    configured(FITS[3], ledger=ledger).fit(data[0])
    shown = f"{ledger}{ledger._repr_html_()}{ledger.total()}{ledger.charges()[-1]}"
    assert SEEDED not in shown + ledger.total()._repr_html_()
    for estimator in (FITS[3], SEARCH):
        fitted(configured(estimator, ledger=ledger, random_state=123456), data)
        charge = ledger.charges()[-1]
        assert not charge.secure
        cards = [re.sub(r"<[^>]*>", "", one._repr_html_()) for one in (ledger, ledger.total())]
        for text in (str(charge), str(ledger), str(ledger.total()), *cards):
            assert text.startswith(SEEDED)
            assert text.count(SEEDED) == 1
        assert "123456" not in repr(charge)


@pytest.mark.slow
def test_a_ledger_notes_that_a_release_by_hand_was_seeded(data):
    guarantee, x = PrivacyGuarantee(1.0), data[0][:, 0]
    release = {
        "count": lambda **kw: private_count(x > 0, guarantee, **kw),
        "sum": lambda **kw: private_sum(x, -5, 5, guarantee, **kw),
        "mean": lambda **kw: private_mean(x, -5, 5, guarantee, **kw),
        "histogram": lambda **kw: private_histogram(x, guarantee, bins=[-5, 0, 5], **kw),
        "bins": lambda **kw: noisy_histogram([5, 6], guarantee, **kw),
        "choice": lambda **kw: private_argmax([5, 6], guarantee, **kw),
        "quantiles": lambda **kw: private_quantiles(x, [0.5], guarantee, **kw),
        "moments": lambda **kw: private_moments(x, guarantee, **kw),
        "scale": lambda **kw: private_location_scale([x], guarantee, **kw),
        "norm": lambda **kw: private_norm_quantile(np.abs(x), 0.9, guarantee, **kw),
    }
    for name, call in release.items():
        ledger = PrivacyLedger("people", 100.0, 1e-3)
        call(ledger=ledger)
        assert ledger.total().secure, name
        call(ledger=ledger, random_state=0)
        assert not ledger.total().secure, name


# --- large ε ---


@quick("DPRobustScaler", "DPGridSearchCV", "DPCoordinateDescentRegressor")
@some_fits
def test_an_epsilon_above_ten_is_warned_of(estimator, data):
    assert fitted(configured(estimator, epsilon=10.0), data)[1] == []
    (text,) = fitted(configured(estimator, epsilon=10.5), data)[1]
    assert f"The 'epsilon' parameter of {type(estimator).__name__} is 10.5, above 10" in text


# --- δ above 1/n ---


def suggested(text):
    return float(text.rpartition("delta=")[2].split()[0])


@quick("DPLassoPath", "DPCoordinateDescentRegressor")
@some_fits
def test_a_delta_above_one_over_the_public_number_is_warned_of(estimator, data):
    assert fitted(configured(estimator, delta=1.0 / N), data)[1] == []
    (text,) = fitted(configured(estimator, delta=1.01 / N), data)[1]
    assert f"The 'delta' parameter of {type(estimator).__name__} is 0.00505, above 1/n" in text
    assert "about 200 records" in text
    assert fitted(configured(estimator, delta=suggested(text)), data)[1] == []


@pytest.mark.parametrize("n", [2, 7, 999, 1_000_000, 1_000_001, 10**9])
def test_the_default_delta_and_the_suggested_one(n):
    from skdpnoise.base.advice import advise_on_public_number

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        advise_on_public_number(DPPCA(), n)
        assert len(caught) == (n > 1_000_000)
        advise_on_public_number(DPPCA(delta=0.9), n)
        better = suggested(str(caught[-1].message))
        assert 0.01 / n < better <= 0.1000001 / n
        told = len(caught)
        advise_on_public_number(DPPCA(delta=better), n)
        assert len(caught) == told


@quick("DPLassoPath", "DPCoordinateDescentRegressor")
@some_fits
def test_where_groups_are_protected_n_is_their_number(estimator, data):
    groups = np.arange(N) // 4
    # By default one search in 200 finds no group for validation among so few.
    halves = {"validation_fraction": 0.5} if hasattr(estimator, "validation_fraction") else {}
    few, many = (configured(estimator, delta=delta / N, **halves) for delta in (4.0, 5.0))
    assert fitted(few, data, groups=groups)[1] == []
    (text,) = fitted(many, data, groups=groups)[1]
    assert "about 50 groups" in text


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("estimator", FITS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("grouped", [False, True])
def test_under_add_remove_the_advice_is_a_function_of_the_bought_number(
    estimator, grouped, data, monkeypatch
):
    """Nothing private decides: the number that was released, and it alone."""
    bought = []

    def note(estimator, n, warn, *, grouped):
        bought.append(n)
        tell(estimator, n, warn, grouped=grouped)

    from skdpnoise.base import advice

    tell = advice._advise_on_delta
    monkeypatch.setattr(advice, "_advise_on_delta", note)
    options = {"groups": np.arange(N)} if grouped else {}
    seen = set()
    for seed in range(8):
        copy = configured(estimator, adjacency="add_remove", delta=1.0 / N, random_state=seed)
        if hasattr(copy, "estimator"):  # a search tells of the winner's training part
            copy.set_params(delta=1.0 / (0.9 * N))
        model, texts = fitted(copy, data, **options)
        n = bought.pop()
        bought.clear()
        assert n != N  # it has noise
        about_delta = [text for text in texts if "'delta'" in text]
        assert len(about_delta) == (model.delta * n > 1.0)
        assert all(("group" in text) == grouped for text in about_delta)
        seen.add(bool(about_delta))
        if not hasattr(copy, "estimator"):
            assert model.privacy_.n_records == n
    assert seen == {False, True}


def test_a_fit_that_buys_no_number_does_not_look_at_the_private_one(data):
    scaler = DPMinMaxScaler(adjacency="add_remove", delta=0.5, **BOUNDS)
    model, texts = fitted(scaler, data)
    assert texts == []
    assert model.privacy_.n_records is None


# --- when, where and how often ---


@each_value(1)
@pytest.mark.parametrize(
    "parameters", [{"random_state": 0}, {"epsilon": 11.0}, {"delta": 0.5}], ids=str
)
@each_fit
def test_as_an_error_it_is_raised_before_anything_is_spent(estimator, parameters, data):
    ledger = PrivacyLedger("people", 100.0, 0.9)
    model = configured(estimator, ledger=ledger, **parameters)
    for _ in range(2):  # and each time
        with pytest.raises(PrivacyWarning):
            fitted(model, data, action="error")
    assert len(ledger.charges()) == 0
    assert not hasattr(model, "privacy_")


def test_one_line_of_code_is_warned_once_also_in_a_loop(data):
    """Also if filters change in between, as in every fit of scikit-learn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        for seed in range(3):
            DPStandardScaler(delta=0.5, random_state=seed, epsilon=11, **BOUNDS).fit(data[0])
        assert len(caught) == 3
        DPStandardScaler(random_state=0, epsilon=9, **BOUNDS).fit(data[0])  # another line
    assert len(caught) == 4
    assert {Path(warning.filename).name for warning in caught} == {"test_advice.py"}


def test_the_same_line_of_two_files_is_warned_in_each(data):
    line = "DPStandardScaler(random_state=0, **BOUNDS).fit(X)"
    files = [compile(line, name, "exec") for name in ("first.py", "second.py")]
    names = {"DPStandardScaler": DPStandardScaler, "BOUNDS": BOUNDS, "X": data[0]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        for code in files * 2:
            exec(code, {"__name__": "made", **names})
    seeded = [warning.filename for warning in caught if "random_state" in str(warning.message)]
    assert seeded == ["first.py", "second.py"]


@pytest.mark.parametrize("action", ["once", "default", "module"])
def test_python_s_own_rules_for_once_apply(action, data):
    texts = [
        fitted(DPStandardScaler(random_state=0, **BOUNDS), data, action=action)[1] for _ in range(3)
    ]
    assert [len(found) for found in texts] == [1, 0, 0]


def test_ignoring_does_not_use_up_the_warning(data):
    def fit(action):
        return fitted(DPStandardScaler(random_state=0, **BOUNDS), data, action=action)[1]

    counts = [len(fit(action)) for action in ("ignore", "default", "always", "default", "always")]
    assert counts == [0, 1, 1, 0, 1]


def test_a_filter_may_name_the_message_the_module_or_the_line(data):
    def fit(**filters):
        with warnings.catch_warnings(record=True) as caught:
            warnings.resetwarnings()
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", **filters)
            for _ in range(2):
                DPStandardScaler(random_state=0, epsilon=11, **BOUNDS).fit(data[0])
        return len(caught)

    assert fit(message="NOT PRIVATE") == 2
    assert fit(category=PrivacyWarning) == 4
    assert fit(module=__name__.replace(".", r"\.")) == 4
    assert fit(module="elsewhere") == 0
    assert fit(category=DeprecationWarning) == 0


def test_the_line_is_that_of_the_user_also_behind_a_pipeline_and_a_search(data):
    X, y = data
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_pipeline(BoundsClipper((-5, 5)), DPStandardScaler(random_state=0)).fit(X)
        configured(SEARCH, random_state=0).fit(X, y > 0)
    found = [w for w in caught if str(w.message).startswith(SEEDED)]
    assert [Path(warning.filename).name for warning in found] == ["test_advice.py"] * 2
    assert found[1].lineno == found[0].lineno + 1


def test_the_repr_of_an_estimator_is_scikit_learn_s():
    assert repr(DPPCA(random_state=0)) == "DPPCA(random_state=0)"


def test_a_dry_run_says_nothing_of_what_it_made_up():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with advice.held_back(), advice.dry_run():
            advice.warn_last("made up")
    assert caught == []
