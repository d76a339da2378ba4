"""What every estimator with a ledger must do: pay once, in advance, for all that it may spend."""

from __future__ import annotations

import pickle
import warnings
from contextlib import suppress

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline

from skdpnoise import (
    DPGridSearchCV,
    DPLassoPath,
    DPLogisticCD,
    DPMinMaxScaler,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
    PrivacyWarning,
)
from skdpnoise.ledger import Account, BudgetExceededError, LedgerWarning
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.privacy import GaussianLoss, NumericLoss, PureLoss, gdp_mu
from skdpnoise.sampling import words as word_sources
from tests._cases import each_value, quick
from tests.contracts._register import CLASSES, MODELS, PRIVATE, each, every_private_class, ways

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

ADJACENCIES = ["replace_one", "add_remove"]

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
GROUPS = np.repeat(np.arange(100), 4)
LABELS = (X[:, 0] > 0.0).astype(int)


class Notebook:
    """The least that a ledger must be; refuses from some number of charges on."""

    dataset = "patients"

    def __init__(self, most=1000):
        self.most, self.charges = most, []

    def charge(self, label, cost, **facts):
        if len(self.charges) >= self.most:
            raise BudgetExceededError("nothing is left")
        self.charges.append({"label": label, "cost": cost, **facts})


def fitted_attributes(model):
    """What clients see of a fit."""
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


# What is charged


@quick(
    "DPRidge", "DPQuantileTransformer", "DPElasticNet 0.01", "DPHuberRegressor 2", "DPOneHotEncoder"
)
@each_value(1)
@every_private_class
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_fit_is_charged_once_for_no_more_than_its_guarantee_and_no_less_than_it_spent(
    entry, adjacency, delta, grouped
):
    for bounds in (None, (-3.0, 3.0)):
        ledger = Notebook()
        public = {"feature_bounds": bounds, "adjacency": adjacency}
        model = entry.estimator(epsilon=2.0, delta=delta, ledger=ledger, **public)
        groups = {}
        if grouped:
            model.set_params(rows_per_group=2)
            groups = {"groups": GROUPS}
        report = model.fit(X, entry.y(X), **groups).privacy_
        if not report.releases:
            assert ledger.charges == []
            continue
        (charge,) = ledger.charges
        cost = charge["cost"]
        assert cost.delta(2.0) <= delta
        at = 0.0 if np.isfinite(report.total.epsilon(0.0)) else delta  # pure, or not
        assert cost.epsilon(at) >= report.total.epsilon(at) * (1.0 - 1e-9)
        # A table without categories leaves the chance to show one unused.
        close = 0.1 if entry.reads == "tables" and at else 1e-5
        assert cost.epsilon(at) == pytest.approx(2.0, rel=close)
        assert charge["guarantee"] == (2.0, delta)
        assert charge["adjacency"] == adjacency
        assert charge["unit"] == ("group" if grouped else "record")
        assert charge["estimator"] == entry.make.__name__
        assert charge["label"] == f"{entry.make.__name__}.fit"
        assert charge["parameters"]["rows_per_group"] == (2 if grouped else 1)
        assert not {"ledger", "random_state"} & set(charge["parameters"])


@each(MODELS)
def test_a_pure_fit_is_charged_by_stages_that_compose_more_tightly_than_their_sum(entry):
    shares = {}
    for adjacency in ADJACENCIES:
        ledger = Notebook()
        model = entry.estimator(epsilon=0.05, delta=0.0, adjacency=adjacency, ledger=ledger)
        model.fit(X, entry.y(X))
        cost = ledger.charges[0]["cost"]
        assert isinstance(cost, NumericLoss)
        shares[adjacency] = sorted(shift for _, shift, _ in cost.terms)
        assert sum(shares[adjacency]) == pytest.approx(0.05)
        assert cost.compose(400).epsilon(1e-6) < PureLoss(0.05).numeric().compose(400).epsilon(1e-6)
    # After a search for a target, what is left may be shared by what that released.
    assert len(shares["replace_one"]) == (3 if entry.target == "labels" else 2)
    assert shares["add_remove"] == pytest.approx([0.001, 0.049])


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        DPLogisticCD(0.05, 0.0, feature_bounds=(-3.0, 3.0)),
        DPStandardScaler(0.05, 0.0, feature_bounds=(-3.0, 3.0)),
        DPStandardScaler(0.05, 0.0),
    ],
    ids=["model", "one release", "scaler without bounds"],
)
def test_four_hundred_pure_fits_compose_tightly(model):
    ledger = PrivacyLedger("trips", 5.0, 1e-6)
    model = clone(model).set_params(ledger=ledger)
    data = X[:60, :1], (X[:60, 0] > 0.0).astype(int)
    for _ in range(400):
        model.fit(*data)
    total = ledger.total()
    assert total.n_charges == 400
    assert total.epsilon <= 4.82
    assert total.basic == pytest.approx((20.0, 0.0))


def test_a_single_release_is_charged_by_the_loss_of_its_noise():
    ledger = Notebook()
    DPStandardScaler(1.0, 0.0, feature_bounds=(-3.0, 3.0), ledger=ledger).fit(X[:, :1])
    cost = ledger.charges[0]["cost"]
    assert isinstance(cost, NumericLoss)
    assert cost.epsilon(0.1) < PureLoss(1.0).epsilon(0.1)
    # For groups of two rows only what was promised is known to double.
    grouped = Notebook()
    scaler = DPStandardScaler(1.0, 0.0, feature_bounds=(-3.0, 3.0), ledger=grouped)
    scaler.set_params(rows_per_group=2).fit(X, groups=GROUPS)
    assert isinstance(grouped.charges[0]["cost"], PureLoss)
    assert grouped.charges[0]["cost"].pure_epsilon == pytest.approx(1.0)


def test_a_fit_that_releases_nothing_charges_nothing():
    ledger = Notebook(most=0)
    DPMinMaxScaler(feature_bounds=(-5.0, 5.0), ledger=ledger).fit(X)
    DPStandardScaler(with_mean=False, with_std=False, ledger=ledger).fit(X)
    DPRobustScaler(with_centering=False, with_scaling=False, ledger=ledger).fit(X)
    assert ledger.charges == []


def test_a_model_of_a_path_costs_nothing_more():
    ledger = Notebook()
    path = DPLassoPath(ledger=ledger).fit(X, X[:, 0])
    model = path.model(0.1)
    path.predict(X, alpha=0.2)
    assert len(ledger.charges) == 1
    assert model.ledger is ledger  # fitting the model again is a fit of its own


# When it is charged


@each_value(1)
@each(ways(CLASSES))
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_ledger_is_charged_before_a_word_is_drawn(monkeypatch, entry, adjacency):
    ledger, take = Notebook(), word_sources.SystemWords.take

    def noted(self, n):
        # Of a network one word is the seed of its first parameters, which are public.
        assert len(ledger.charges) == 1 or (entry.by_torch and n == 1)
        return take(self, n)

    monkeypatch.setattr(word_sources.SystemWords, "take", noted)
    model = entry.estimator(ledger=ledger, adjacency=adjacency, rows_per_group=2)
    model.fit(X, entry.y(X), groups=GROUPS)
    assert len(ledger.charges) == 1


@each_value(1)
@each(ways([entry for entry in CLASSES if entry.reads == "numbers"]))
@pytest.mark.parametrize(
    "wrong",
    [
        {"data": np.full((400, 3), np.nan)},
        {"data": X[:1]},
        {"groups": np.zeros(3)},
        {"groups": np.zeros(400)},
        {"parameters": {"epsilon": -1.0}},
        {"parameters": {"rows_per_group": 0}},
        {"parameters": {"rows_per_group": 2}},
        {"parameters": {"feature_bounds": (1.0, 0.0)}},
        {"parameters": {"noise": "iid_gaussian", "delta": 0.0}},
        {"fit": {"sample_weight": np.ones(400)}},
    ],
    ids=lambda wrong: next(iter(wrong)) + repr(next(iter(wrong.values())))[:20],
)
def test_what_cannot_be_fitted_spends_nothing(entry, wrong):
    ledger, data = Notebook(), wrong.get("data", X)
    model = entry.estimator(ledger=ledger).set_params(**wrong.get("parameters", {}))
    given = {name: wrong[name] for name in ("groups",) if name in wrong} | wrong.get("fit", {})
    with pytest.raises((ValueError, TypeError)) as caught:
        model.fit(data, entry.y(X[: len(data)]), **given)
    assert ledger.charges == []
    assert not hasattr(caught.value, "__notes__")
    assert fitted_attributes(model) == {}


@each(ways(CLASSES))
def test_a_refused_fit_leaves_the_estimator_as_it_was_and_spends_nothing(entry):
    ledger = Notebook(most=1)
    model = entry.estimator(ledger=ledger)
    model.fit(X, entry.y(X))
    before = fitted_attributes(model)
    with pytest.raises(BudgetExceededError) as caught:
        model.fit(X[:, :2], entry.y(X))
    assert not hasattr(caught.value, "__notes__")
    assert len(ledger.charges) == 1
    after = fitted_attributes(model)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    new = entry.estimator(ledger=ledger)
    with pytest.raises(BudgetExceededError):
        new.fit(X, entry.y(X))
    assert fitted_attributes(new) == {}


@each_value(1)
@each(ways(CLASSES))
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_fit_that_fails_after_the_charge_has_spent_it_and_says_so(monkeypatch, entry, error):
    ledger = Notebook()
    model = entry.estimator(ledger=ledger).fit(X, entry.y(X))
    before = fitted_attributes(model)

    def fail(*args, **kwargs):
        raise error

    # The report is the last thing that is made.
    monkeypatch.setattr(Account, "report", fail)
    with pytest.raises(error) as caught:
        model.fit(X[:, :2], entry.y(X))
    (note,) = caught.value.__notes__
    assert note.startswith(
        f"{entry.make.__name__} failed after the ledger of 'patients' was charged"
    )
    assert "(epsilon=1, delta=1e-06) stays spent" in note
    assert len(ledger.charges) == 2
    after = fitted_attributes(model)
    assert all(after[name] is before[name] for name in before)


class LateClock(Notebook):
    """A ledger that warns before it writes a charge down."""

    def charge(self, label, cost, **facts):
        warnings.warn("the clock is late", LedgerWarning, stacklevel=2)
        super().charge(label, cost, **facts)


@each(ways(CLASSES))
def test_what_a_ledger_warns_of_is_heard_and_as_an_error_spends_nothing(entry):
    ledger = LateClock()
    with pytest.warns(LedgerWarning, match="the clock is late"):
        entry.estimator(ledger=ledger).fit(X, entry.y(X))
    assert len(ledger.charges) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", LedgerWarning)
        with pytest.raises(LedgerWarning):
            entry.estimator(ledger=ledger).fit(X, entry.y(X))
    assert len(ledger.charges) == 1


@each(ways(CLASSES))
def test_a_fit_without_a_ledger_that_fails_has_no_note(monkeypatch, entry):
    monkeypatch.setattr(AdditiveMechanism, "sample", None)
    monkeypatch.setattr(Account, "report", None)
    with pytest.raises(TypeError) as caught:
        entry.estimator().fit(X, entry.y(X))
    assert not hasattr(caught.value, "__notes__")


@quick("DPPoissonRegressor 2", "DPOneHotEncoder")
@each(ways(CLASSES))
def test_the_budget_of_a_data_set_ends(entry):
    ledger = PrivacyLedger("patients", epsilon=2.0, delta=1e-9)
    model = entry.estimator(epsilon=1.5, delta=0.0, ledger=ledger).fit(X, entry.y(X))
    with pytest.raises(BudgetExceededError, match="Nothing was charged"):
        model.fit(X, entry.y(X))
    total = ledger.total()
    assert total.n_charges == 1
    assert 1.4 < total.epsilon <= 1.5


def test_another_adjacency_or_unit_is_refused_by_the_ledger():
    for settings in ({"adjacency": "add_remove"}, {"unit": "group"}):
        ledger = PrivacyLedger("patients", 2.0, 1e-5, **settings)
        model = DPLogisticCD(ledger=ledger)
        with pytest.raises(ValueError, match="patients"):
            model.fit(X, LABELS)
        assert ledger.total().n_charges == 0
        assert fitted_attributes(model) == {}


# Copies


@each_value(1)
@each(ways(CLASSES))
@pytest.mark.parametrize("kind", [Notebook, PrivacyLedger])
def test_a_clone_has_the_same_ledger_and_not_a_copy(entry, kind):
    of_data = {"adjacency": entry.adjacencies[0]}
    ledger = Notebook() if kind is Notebook else PrivacyLedger("patients", 9.0, 1e-3, **of_data)
    model = entry.estimator(ledger=ledger)
    assert clone(model).ledger is ledger
    assert clone(make_pipeline(model))[0].ledger is ledger
    assert clone(clone(model).fit(X, entry.y(X))).ledger is ledger


@each(ways(CLASSES))
def test_a_ledger_is_none_or_can_charge(entry):
    with pytest.raises(ValueError, match=r"'ledger' parameter of .* must be .*charge"):
        entry.estimator(ledger="budget.db").fit(X, entry.y(X))


def _fit_pickled(pickled, y):
    return type(pickle.loads(pickled).fit(X, y)).__name__


@pytest.mark.slow
@each(ways(CLASSES))
def test_a_pickle_and_worker_processes_charge_the_same_budget(tmp_path, entry):
    pytest.importorskip("sqlalchemy")
    place, adjacency = f"sqlite:///{tmp_path}/budget.db", entry.adjacencies[0]
    ledger = PrivacyLedger("patients", 50.0, 1e-3, place, adjacency=adjacency)
    pickled, y, name = (
        pickle.dumps(entry.estimator(ledger=ledger)),
        entry.y(X),
        entry.make.__name__,
    )
    assert _fit_pickled(pickled, y) == name
    names = Parallel(n_jobs=2)(delayed(_fit_pickled)(pickled, y) for _ in range(4))
    assert names == [name] * 4
    assert [charge.estimator for charge in ledger.charges()] == [name] * 5


# scikit-learn's model selection


@pytest.fixture
def told():
    """Warnings about scores that are not private."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [w for w in caught if "scores" in str(w.message)]


@pytest.mark.slow
def test_a_grid_search_records_every_fit_of_its_workers_and_warns_once(tmp_path, told):
    pytest.importorskip("sqlalchemy")
    ledger = PrivacyLedger("patients", 50.0, 1e-3, f"sqlite:///{tmp_path}/budget.db")
    search = GridSearchCV(DPLogisticCD(ledger=ledger), {"alpha": [0.0, 0.1, 1.0]}, cv=4, n_jobs=2)
    search.fit(X, LABELS)
    charges = ledger.charges()
    assert len(charges) == 3 * 4 + 1
    assert (
        sorted(charge.parameters["alpha"] for charge in charges[:-1])
        == [0.0] * 4 + [0.1] * 4 + [1.0] * 4
    )
    (warning,) = told()
    assert issubclass(warning.category, PrivacyWarning)
    assert "not private" in str(warning.message)
    assert "DPGridSearchCV" in str(warning.message)
    assert warning.filename == __file__
    search.fit(X, LABELS)
    assert len(told()) == 1


@pytest.mark.slow
def test_a_search_that_would_overspend_is_refused_fit_by_fit(tmp_path, told):
    pytest.importorskip("sqlalchemy")
    ledger = PrivacyLedger("patients", 2.5, 1e-5, f"sqlite:///{tmp_path}/budget.db")
    search = GridSearchCV(DPLogisticCD(ledger=ledger), {"alpha": [0.0, 1.0]}, cv=4, n_jobs=2)
    with pytest.raises(BudgetExceededError):
        search.fit(X, LABELS)
    total = ledger.total()
    assert 1 <= total.n_charges < 9
    assert total.epsilon <= 2.5


@quick("DPStandardScaler-cross_validate", "DPCoordinateDescentRegressor-cross_validate")
@each_value(1)
@pytest.mark.parametrize("validate", [cross_validate, cross_val_score])
@each(ways(CLASSES))
def test_validation_warns_once_for_each_ledger_also_within_a_pipeline(told, validate, entry):
    for count in (1, 2):
        ledger = Notebook()
        others = DPStandardScaler(ledger=ledger), DPLogisticCD(ledger=ledger)
        step = entry.estimator(ledger=ledger)
        steps = (step, others[1]) if entry.transforms else (others[0], step)
        validate(make_pipeline(*steps), X, LABELS if entry.target is None else entry.y(X), cv=2)
        assert len(ledger.charges) == 2 * 2
        assert len(told()) == count
        assert told()[-1].filename == __file__


@pytest.mark.slow
def test_copies_and_private_searches_do_not_warn(told):
    ledger = PrivacyLedger("patients", 50.0, 1e-3)
    clone(GridSearchCV(DPLogisticCD(ledger=ledger), {"alpha": [0.0, 1.0]}))
    DPGridSearchCV(DPLogisticCD(), {"alpha": [0.0, 1.0]}, ledger=ledger).fit(X, LABELS)
    assert told() == []


def test_a_ledger_that_cannot_be_remembered_still_works(told):
    class Slotted:
        __slots__ = ("count",)

        def __init__(self):
            self.count = 0

        def charge(self, label, cost, **facts):
            self.count += 1

    ledger = Slotted()
    cross_val_score(DPLogisticCD(ledger=ledger), X, LABELS, cv=2)
    assert ledger.count == 2
    assert told()


def test_the_plan_of_a_gaussian_fit_is_its_whole_budget():
    ledger = Notebook()
    DPLogisticCD(1.0, 1e-6, noise="inid_gaussian", ledger=ledger).fit(X, LABELS)
    assert ledger.charges[0]["cost"] == GaussianLoss(gdp_mu(1.0, 1e-6))
    assert ledger.charges[0]["mechanism"] == "inid_gaussian"


@pytest.mark.slow
@each(ways(PRIVATE))
def test_budgets_beyond_what_a_family_can_use_are_fitted_or_refused_before_the_charge(entry):
    noise = ("inid_osgt", "inid_subbotin", "inid_flipped_huber")[PRIVATE.index(entry) % 3]
    notebook = Notebook()
    estimator = entry.estimator(epsilon=1e4, ledger=notebook)
    with suppress(ValueError):  # some have no such noise
        estimator.set_params(noise=noise).fit(X, entry.y(X))
    assert bool(notebook.charges) == hasattr(estimator, "privacy_")
