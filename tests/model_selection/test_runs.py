"""A run spends its share once, reports what it charged, and tells nothing if it does not win."""

from __future__ import annotations

import pickle
import threading
from contextlib import suppress

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLassoPath,
    DPLogisticCD,
    DPPipeline,
    DPRobustScaler,
    DPStandardScaler,
)
from skdpnoise.compose import register_private
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.model_selection._runs import FAILED, UNSETTLED, SearchProblem
from skdpnoise.privacy import TruncatedNegativeBinomial, gdp_mu
from tests._cases import each_value, quick
from tests.model_selection._searches import CLASSIFIER, LABELS, SCORE, TWO, Untouched, X

pytestmark = pytest.mark.usefixtures("the_same_words")


LAW = TruncatedNegativeBinomial(eta=1.0, gamma=0.1)
STRATEGIES = {
    "repeated": {"strategy": "repeated", "repetitions": LAW},
    "noisy_max": {"strategy": "noisy_max"},
    "refit": {"strategy": "noisy_max", "refit": True},
}


class Notebook:
    """A ledger that writes down what is charged; clones share it."""

    def __init__(self):
        self.charges = []

    def __sklearn_clone__(self):
        return self

    def charge(self, label, cost, **facts):
        self.charges.append((facts["estimator"], cost, facts["guarantee"]))


# Classes whose authors have promised more than they keep.


@register_private
class FittedTwice(DPLogisticCD):
    """Fits itself twice, each time with half of its ε, and reports the second."""

    def fit(self, X, y):
        whole = self.epsilon
        for _ in range(2):
            super().fit(X, y) if self.set_params(epsilon=whole / 2.0) else None
        return self.set_params(epsilon=whole)


@register_private
class Greedy(DPLogisticCD):
    """Takes more than its share, and goes on where that is refused."""

    def fit(self, X, y):
        super().fit(X, y)
        with suppress(ValueError):
            super().fit(X, y)
        return self


@register_private
class Copied(DPLogisticCD):
    """Charges for one fit, and publishes one of a copy that charges nobody."""

    def fit(self, X, y):
        super().fit(X, y)
        other = DPLogisticCD(epsilon=3.0, n_passes=2).fit(X, y)
        self.coef_, self.privacy_ = other.coef_, other.privacy_
        return self


@register_private
class Silent(DPLogisticCD):
    """Has a report of its own making."""

    def fit(self, X, y):
        super().fit(X, y)
        self.privacy_ = "private"
        return self


@register_private
class Threaded(DPLogisticCD):
    """Fits clones in threads, each with the whole budget once more."""

    def fit(self, X, y):
        super().fit(X, y)
        models = [clone(self) for _ in range(4)]
        threads = [threading.Thread(target=_quietly, args=(model, X, y)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self


def _quietly(model, X, y):
    with suppress(ValueError):
        DPLogisticCD.fit(model, X, y)


@register_private
class Unpaid(DPLogisticCD):
    """Never charges."""

    def fit(self, X, y):
        ledger, self.ledger = self.ledger, None
        super().fit(X, y)
        self.ledger = ledger
        return self


def nothing_attached(error):
    return error.__cause__ is None and error.__context__ is None


@quick("FittedTwice-repeated", "Silent-repeated")
@each_value(1)
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("kind", [FittedTwice, Greedy, Copied, Silent, Threaded, Unpaid])
def test_a_run_that_does_not_report_what_it_charged_ends_the_search(kind, name, n_jobs=None):
    estimator = make_pipeline(DPStandardScaler(), kind(n_passes=2))
    ledger = Notebook()
    search = DPGridSearchCV(estimator, {}, ledger=ledger, n_jobs=n_jobs, **STRATEGIES[name])
    with pytest.raises(RuntimeError) as caught:
        search.fit(X, LABELS)
    assert str(caught.value) == UNSETTLED
    assert nothing_attached(caught.value)
    assert "stays spent" in caught.value.__notes__[0]
    assert not hasattr(search, "best_estimator_")
    assert [name for name, *_ in ledger.charges] == ["DPGridSearchCV"]


@pytest.mark.slow
def test_so_does_one_in_another_process():
    test_a_run_that_does_not_report_what_it_charged_ends_the_search(Greedy, "noisy_max", n_jobs=2)


@pytest.mark.usefixtures("the_same_words")
def test_an_estimator_that_never_charges_is_refused_and_what_it_drew_is_paid():
    ledger = PrivacyLedger("people", 5.0, 1e-5, "memory")
    with pytest.raises(ValueError, match="must charge for what it releases"):
        DPGridSearchCV(Unpaid(), {}, ledger=ledger).fit(X, LABELS)
    assert (ledger.total().n_charges, ledger.total().n_returned) == (1, 0)


@pytest.mark.slow
def test_a_class_that_is_private_here_must_be_so_in_the_process_that_fits():
    @register_private
    class Local(DPLogisticCD):
        """Defined where no other process finds it."""

    search = DPGridSearchCV(Local(), {"alpha": [0.0, 0.1]}, n_jobs=2, ledger=Untouched())
    with pytest.raises(ValueError, match="Register its class in a module"):
        search.fit(X, LABELS)


@register_private
class Failing(DPLogisticCD):
    """Fails after its charge, with a message that quotes the data, if alpha is large."""

    def fit(self, X, y):
        super().fit(X, y)
        if self.alpha >= 0.5:
            raise self.error(f"the first record is {X[0]}")
        return self

    error = ValueError


@quick("noisy_max")
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_that_fails_is_the_worst_and_nothing_else_is_told(name):
    search = DPGridSearchCV(Failing(n_passes=2), {"alpha": [0.0, 0.7]}, random_state=0)
    search.set_params(epsilon=50.0, **STRATEGIES[name]).fit(X, LABELS)
    assert search.best_params_ == {"alpha": 0.0}


@pytest.mark.parametrize("name", STRATEGIES)
def test_if_all_fail_the_error_is_the_same_whatever_failed(name, monkeypatch):
    said = set()
    for error in (ValueError, KeyError, FloatingPointError):
        monkeypatch.setattr(Failing, "error", error)
        search = DPGridSearchCV(Failing(n_passes=2), {"alpha": [0.6, 0.7]}, **STRATEGIES[name])
        with pytest.raises(RuntimeError) as caught:
            search.fit(X, LABELS)
        assert nothing_attached(caught.value)
        said.add((type(caught.value), str(caught.value)))
    (only,) = said
    assert only[1] == FAILED


def test_if_all_fail_none_is_fitted_again(monkeypatch):
    fits, fitted = [], SearchProblem.fitted

    def noted(problem, priced, rows=None):
        fits.append(rows)
        return fitted(problem, priced, rows)

    monkeypatch.setattr(SearchProblem, "fitted", noted)
    search = DPGridSearchCV(Failing(n_passes=2), {"alpha": [0.6, 0.7]}, **STRATEGIES["refit"])
    with pytest.raises(RuntimeError, match="no result"):
        search.fit(X, LABELS)
    assert fits == [None, None]


def test_a_failure_of_anything_else_is_told_as_the_same_error(monkeypatch):
    def fails(*args):
        raise KeyError(f"the first record is {X[0]}")

    for grid in ({"alpha": [0.01, 0.1]}, {"alpha": [0.01], "n_passes": [2]}):
        search = DPGridSearchCV(DPCoordinateDescentRegressor(), grid, ledger=Notebook())
        with monkeypatch.context() as patch:
            patch.setattr(SearchProblem, "score", fails)
            with pytest.raises(RuntimeError) as caught:
                search.fit(X, SCORE)
        assert str(caught.value) == FAILED
        assert nothing_attached(caught.value)


class TestProcesses:
    """Fits in processes and threads spend one cap each."""

    @pytest.mark.slow
    @pytest.mark.parametrize("backend", ["loky", "threading"])
    def test_parallel_steps_are_fitted_in_the_process_of_their_run(self, backend):
        scalers = [("a", DPStandardScaler(), [0]), ("b", DPRobustScaler(), [1, 2])]
        estimator = make_pipeline(ColumnTransformer(scalers, n_jobs=2), DPLogisticCD())
        search = DPGridSearchCV(estimator, {"dplogisticcd__alpha": [0.0, 0.1]}, random_state=0)
        alone = clone(search).fit(X, LABELS)
        with parallel_config(backend, n_jobs=2):
            found = clone(search).fit(X, LABELS)
            assert found.best_score_ == alone.best_score_
        models = [search.best_estimator_[-1].coef_ for search in (found, alone)]
        np.testing.assert_array_equal(*models)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", STRATEGIES)
    def test_threads_do_not_change_a_search(self, name):
        search = DPGridSearchCV(
            TWO, {"clf__alpha": [0.0, 0.1, 0.5]}, random_state=0, **STRATEGIES[name]
        )
        alone = clone(search).fit(X, LABELS)
        with parallel_config("threading"):
            found = clone(search).set_params(n_jobs=3).fit(X, LABELS)
        assert (found.best_params_, found.best_score_) == (alone.best_params_, alone.best_score_)


class TestRefits:
    """Fitting a winner again costs what its own ε says, and somebody pays."""

    @pytest.mark.slow
    def test_the_winner_and_its_clones_charge_the_ledger_of_the_search(self):
        ledger = Notebook()
        for estimator, prefix in ((CLASSIFIER, ""), (TWO, "clf__")):
            grid = {f"{prefix}alpha": [0.0, 0.1]}
            search = DPGridSearchCV(estimator, grid, ledger=ledger).fit(X, LABELS)
            winner = search.best_estimator_
            last = winner[-1] if prefix else winner
            assert last.privacy_ is search.privacy_
            n_parts = 2 if prefix else 1
            for model in (clone(winner), winner):
                del ledger.charges[:]
                model.fit(X, LABELS)
                assert len(ledger.charges) == n_parts
                spent = sum(gdp_mu(*stated) ** 2 for _, _, stated in ledger.charges)
                assert spent <= search.fit_budget_.mu**2
                assert spent == pytest.approx(search.fit_budget_.mu**2, rel=1e-4)
            assert last.privacy_ is not search.privacy_
            assert last.privacy_.guarantee.epsilon == last.epsilon < 1.0

    @quick("True")
    @pytest.mark.parametrize("within", [False, True])
    def test_the_winner_of_one_release_does_so_too(self, within):
        ledger = Notebook()
        model, prefix = DPCoordinateDescentRegressor(), ""
        if within:
            model, prefix = Pipeline([("s", DPStandardScaler()), ("m", model)]), "m__"
        search = DPGridSearchCV(model, {f"{prefix}alpha": [0.01, 0.1]}, ledger=ledger)
        search.fit(X, SCORE)
        assert search.strategy_ == "release"
        search.best_estimator_.fit(X, SCORE)
        names = [name for name, *_ in ledger.charges]
        expected = ["DPStandardScaler"] if within else []
        assert names == ["DPGridSearchCV", *expected, "DPCoordinateDescentRegressor"]

    def test_a_model_of_a_path_charges_the_ledger_of_the_path(self):
        ledger = Notebook()
        path = DPLassoPath(epsilon=0.7, ledger=ledger).fit(X, SCORE)
        model = path.model(0.1)
        assert len(ledger.charges) == 1
        assert model.privacy_ is path.privacy_
        for again in (model, clone(model)):
            again.fit(X, SCORE)
        assert [stated[0] for *_, stated in ledger.charges] == [0.7] * 3

    @pytest.mark.slow
    def test_the_winner_among_pipelines_with_one_guarantee_holds_no_cap(self):
        ledger = Notebook()
        model = DPPipeline([("s", DPStandardScaler()), ("clf", DPLogisticCD())])
        search = DPGridSearchCV(model, {"clf__alpha": [0.0, 0.1]}, ledger=ledger)
        search.fit(X, LABELS)
        assert search.best_estimator_.privacy_ is search.privacy_
        search.best_estimator_.fit(X, LABELS)
        assert [name for name, *_ in ledger.charges] == ["DPGridSearchCV", "DPPipeline"]
        search = clone(search).set_params(ledger=None, n_jobs=2).fit(X, LABELS)
        copy = pickle.loads(pickle.dumps(search))
        np.testing.assert_array_equal(copy.predict(X), search.predict(X))


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize("settings", [{}, {"refit": True}, {"strategy": "repeated"}], ids=str)
def test_a_search_runs_on_every_backend_of_joblib(backend, settings):
    """What is charged does not fail for what a backend cannot do."""
    ledger = Notebook()
    search = DPGridSearchCV(
        CLASSIFIER, {"alpha": [0.0, 0.1]}, n_jobs=2, ledger=ledger, random_state=0, **settings
    )
    with parallel_config(backend=backend):
        search.fit(X, LABELS)
    alone = clone(search).set_params(n_jobs=None, ledger=None).fit(X, LABELS)
    assert len(ledger.charges) == 1
    assert search.best_params_ == alone.best_params_
    assert np.array_equal(search.best_estimator_.coef_, alone.best_estimator_.coef_)
