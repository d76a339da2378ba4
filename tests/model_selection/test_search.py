"""Searches: scikit-learn's interface, one guarantee for all of it, and nothing that is not paid."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpnoise import (
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPRandomizedSearchCV,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyLedger,
    PrivacyWarning,
    total_guarantee,
)
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.model_selection._runs import SearchProblem
from skdpnoise.model_selection._search import PrivateSearchCV
from skdpnoise.privacy import GaussianLoss, PoissonRepetitions, TruncatedNegativeBinomial, gdp_mu
from tests._cases import each_value, quick
from tests.model_selection._searches import rows_at

pytestmark = pytest.mark.usefixtures("the_same_words")


CLASSIFIER = DPLogisticCD(feature_bounds=(-4.0, 4.0))
REGRESSOR = DPCoordinateDescentRegressor(feature_bounds=(-4.0, 4.0), target_bounds=(-8.0, 8.0))
LAW = TruncatedNegativeBinomial(eta=1.0, gamma=0.3)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    score = 2.0 * X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=8000)
    return X, score, np.where(score > 0, "yes", "no")


LONG = TruncatedNegativeBinomial(eta=2.0, gamma=0.05)
STRATEGIES = {
    "repeated": {"strategy": "repeated", "repetitions": LONG},
    "noisy_max": {"strategy": "noisy_max", "refit": False},
    "refit": {"strategy": "noisy_max", "refit": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_clearly_better_candidate_is_chosen(name, data):
    search = DPGridSearchCV(
        CLASSIFIER, {"alpha": [0.0, 5.0]}, epsilon=5.0, random_state=1, **STRATEGIES[name]
    ).fit(data[0], data[2])
    assert search.best_params_ == {"alpha": 0.0}
    assert search.score(data[0], data[2]) > 0.9
    assert search.best_score_ == pytest.approx(0.93, abs=0.07)
    assert list(search.classes_) == ["no", "yes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "release"},
        {"strategy": "noisy_max", "target_bounds": (-8.0, 8.0)},
        {"strategy": "repeated", "repetitions": LONG},
    ],
)
def test_regressions_report_about_their_r2(options, data):
    search = DPGridSearchCV(
        DPCoordinateDescentRegressor(), {"alpha": [1e-3, 3.0]}, epsilon=10.0, random_state=0
    )
    search.set_params(**options).fit(data[0], data[1])
    assert search.best_params_ == {"alpha": 1e-3}
    assert search.score(data[0], data[1]) > 0.85
    assert search.best_score_ == pytest.approx(search.score(data[0], data[1]), abs=0.08)


@pytest.mark.slow
def test_only_what_was_paid_for_is_kept(data):
    search = DPGridSearchCV(
        CLASSIFIER, {"alpha": [0.0, 0.1, 0.2]}, repetitions=LAW, random_state=0
    ).fit(data[0], data[2])
    results = pd.DataFrame(search.cv_results_)
    assert len(results) == 1
    assert results.loc[search.best_index_, "params"] == search.best_params_
    assert results.loc[0, "mean_test_score"] == search.best_score_
    # the number of runs, other models and other scores are nowhere
    kept = set(vars(search)) - set(search.get_params(deep=False))
    assert kept - {"_skl_callbacks"} <= {
        *("best_params_", "best_index_", "best_score_", "best_estimator_", "cv_results_"),
        "_columns",  # their names and declared types
        *("n_candidates_", "strategy_", "scorer_", "fit_budget_", "_report", "multimetric_"),
        *("feature_names_in_", "_callback_fit_ctx", "_parent_callback_ctx", "_digests"),
    }


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        (CLASSIFIER, "feature_bounds", (-4.0, 4.0)),
        (CLASSIFIER, "feature_bounds", (-np.ones(3), np.ones(3))),
        (CLASSIFIER, "feature_bounds", [[-1.0] * 3, [1.0] * 3]),
        (Pipeline([("m", CLASSIFIER)]), "m", make_pipeline(DPStandardScaler(), DPLogisticCD())),
        (CLASSIFIER, "alpha", 0.1),
    ],
    ids=["pair", "arrays", "lists", "pipeline", "number"],
)
def test_results_have_one_row_whatever_the_value_of_a_parameter_is(estimator, name, value, data):
    grid = {name: [value]}
    search = DPGridSearchCV(estimator, grid, random_state=0).fit(data[0][:200], data[2][:200])
    results = pd.DataFrame(search.cv_results_)
    assert len(results) == 1
    column = search.cv_results_[f"param_{name}"]
    assert column.shape == (1,) and not column.mask.any()
    assert column[0] is search.best_params_[name]


@pytest.mark.slow
def test_the_report_is_that_of_the_whole_search_and_of_its_winner(data):
    search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1, 0.2]}, random_state=0)
    search.fit(data[0], data[2])
    assert search.privacy_.total.delta(1.0) <= 1e-6
    assert search.privacy_.total.epsilon(1e-6) == pytest.approx(1.0, rel=2e-3)
    assert search.best_estimator_.privacy_ is search.privacy_
    assert search.best_estimator_.ledger is None
    assert search.fit_budget_.mu < gdp_mu(1.0, 1e-6)
    assert total_guarantee(search).basic.epsilon == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_candidates", "strategy", "refits"),
    [
        (1, "noisy_max", False),
        (2, "noisy_max", False),
        (3, "noisy_max", True),
        (4, "repeated", False),
        (20, "repeated", False),
    ],
)
def test_auto_leaves_half_of_the_budget_at_least_to_the_winner(
    n_candidates, strategy, refits, data
):
    X, y = data[0][:2000], data[2][:2000]
    grid = {"alpha": list(np.linspace(0.0, 0.1, n_candidates)), "clip": [0.5]}
    search = DPGridSearchCV(CLASSIFIER, grid, random_state=0).fit(X, y)
    assert search.strategy_ == strategy
    total = gdp_mu(1.0, 1e-6)
    if refits:
        assert search.fit_budget_.mu == pytest.approx(total * (0.5 / n_candidates) ** 0.5)
    else:  # what was spent on the winner is what is published
        assert search.fit_budget_.mu > 0.5 * total


@pytest.mark.slow
def test_noisy_max_fits_the_winner_again_where_that_leaves_more_to_it(data):
    X, y = data[0][:2000], data[2][:2000]
    total = gdp_mu(1.0, 1e-6)
    cases = (("auto", 1, 1.0), ("auto", 2, 1.0), ("auto", 3, 0.5), ("auto", 4, 0.5))
    for refit, count, share in (*cases, (True, 2, 0.5), (np.True_, 1, 0.5), (False, 4, 1.0)):
        options = {"strategy": "noisy_max", "refit": refit, "random_state": 0}
        search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.01, 0.1, 1.0][:count]}, **options)
        assert search.fit(X, y).fit_budget_.mu == pytest.approx(total * (share / count) ** 0.5)
    assert DPGridSearchCV(CLASSIFIER, {"alpha": [0.0]}).refit == "auto"
    # Who asks for it gets it for any number of candidates.
    asked = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.01, 0.1, 1.0]}, refit=True, random_state=0)
    assert asked.fit(X, y).strategy_ == "noisy_max"


@pytest.mark.slow
def test_auto_makes_all_penalties_from_one_release(data):
    grid = {"alpha": ["auto", 1e-3, 0.1], "l1_ratio": [0.0, 1.0]}
    search = DPGridSearchCV(REGRESSOR, grid, random_state=0).fit(data[0], data[1])
    assert search.strategy_ == "release"
    whole = GaussianLoss(gdp_mu(1.0, 1e-6))
    assert search.privacy_.total == whole
    assert search.fit_budget_.mu == pytest.approx(0.95**0.5 * whole.mu)
    apart = clone(search).set_params(validation_fraction=0.2).fit(data[0], data[1])
    assert apart.fit_budget_ == apart.privacy_.total == whole
    other = DPGridSearchCV(REGRESSOR, {"alpha": [0.1], "n_passes": [2, 3]}, random_state=0)
    assert other.fit(data[0], data[1]).strategy_ != "release"


@pytest.mark.slow
def test_in_a_pipeline_steps_share_what_one_fit_gets_and_frames_keep_their_names(data):
    frame = pd.DataFrame(data[0], columns=list("abc"))
    pipeline = make_pipeline(DPRobustScaler(0.5), BoundsClipper((-3, 3)), DPLogisticCD(0.9))
    grid = {"dplogisticcd__alpha": [0.0, 0.1, 1.0]}
    search = DPGridSearchCV(pipeline, grid, epsilon=8.0, refit=False, random_state=1)
    search.fit(frame, data[2])
    scaler, _, model = (step for _, step in search.best_estimator_.steps)
    spent = gdp_mu(scaler.epsilon, 1e-6) ** 2 + gdp_mu(model.epsilon, 1e-6) ** 2
    assert spent <= search.fit_budget_.mu**2
    assert spent == pytest.approx(search.fit_budget_.mu**2, rel=1e-4)
    assert model.epsilon > 1.5 * scaler.epsilon
    assert list(search.feature_names_in_) == ["a", "b", "c"]
    assert search.score(frame, data[2]) > 0.8


def test_a_second_fit_leaves_nothing_of_the_first(data):
    frame = pd.DataFrame(data[0][:200], columns=list("abc"))
    search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1]}, random_state=0)
    first = search.fit(frame, data[2][:200]).privacy_
    assert list(search.feature_names_in_) == ["a", "b", "c"]
    search.fit(data[0][:200], data[2][:200])
    assert not hasattr(search, "feature_names_in_")
    assert search.best_estimator_.privacy_ is search.privacy_ is not first
    alone = clone(search).fit(data[0][:200], data[2][:200])
    assert vars(search).keys() == vars(alone).keys()


@pytest.mark.slow
def test_the_winner_can_be_cloned_and_fitted_again(data):
    columns = ColumnTransformer([("scaled", DPStandardScaler(0.5), [0, 1])], remainder="drop")
    pipeline = make_pipeline(columns, DPLogisticCD(0.5))
    grid = {"dplogisticcd__alpha": [0.0, 0.1]}
    search = DPGridSearchCV(pipeline, grid, epsilon=8.0, random_state=0).fit(data[0], data[2])
    again = clone(search.best_estimator_)
    assert {value for name, value in again.get_params().items() if "ledger" in name} == {None}
    assert again.fit(data[0], data[2]).score(data[0], data[2]) > 0.8


def test_the_penalties_of_a_regression_at_the_end_of_a_pipeline_are_one_release(data):
    pipeline = make_pipeline(DPStandardScaler(0.5), DPCoordinateDescentRegressor(0.5))
    grid = {"dpcoordinatedescentregressor__alpha": [1e-3, 5.0]}
    search = DPGridSearchCV(pipeline, grid, epsilon=8.0, random_state=0).fit(data[0], data[1])
    assert search.strategy_ == "release"
    assert search.best_params_ == {"dpcoordinatedescentregressor__alpha": 1e-3}
    assert search.score(data[0], data[1]) > 0.85


@pytest.mark.slow
def test_a_seed_repeats_a_search_and_no_seed_does_not(data):
    X, y = data[0][:2000], data[1][:2000]
    search = DPGridSearchCV(REGRESSOR, {"alpha": [0.01, 0.1]}, random_state=5)
    first, second = (clone(search).fit(X, y) for _ in range(2))
    assert first.best_score_ == second.best_score_
    np.testing.assert_array_equal(first.best_estimator_.coef_, second.best_estimator_.coef_)
    assert "known seed" in str(first.privacy_)
    search.set_params(random_state=None, estimator__random_state=0)
    third, fourth = (clone(search).fit(X, y) for _ in range(2))
    assert (third.best_estimator_.coef_ != fourth.best_estimator_.coef_).any()
    assert third.best_estimator_.random_state is None
    assert "cryptographic" in str(third.privacy_)


@pytest.mark.slow
def test_processes_do_not_change_a_search(data):
    X, y = data[0][:3000], data[2][:3000]
    search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1, 1.0]}, repetitions=LAW, random_state=3)
    one = clone(search).fit(X, y)
    two = clone(search).set_params(n_jobs=2).fit(X, y)
    assert one.best_params_ == two.best_params_
    np.testing.assert_array_equal(one.best_estimator_.coef_, two.best_estimator_.coef_)


def test_a_fitted_search_survives_a_pickle(data):
    search = DPGridSearchCV(REGRESSOR, {"alpha": [0.01, 0.1]}, random_state=0)
    search.fit(data[0], data[1])
    copy = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(copy.predict(data[0]), search.predict(data[0]))
    assert str(copy.privacy_) == str(search.privacy_)


def test_candidates_may_come_from_distributions(data):
    distributions = {"alpha": loguniform(1e-4, 1e-2)}
    search = DPRandomizedSearchCV(REGRESSOR, distributions, n_iter=7, random_state=0)
    search.fit(data[0], data[1])
    assert search.n_candidates_ == 7
    assert 1e-4 < search.best_params_["alpha"] < 1e-2
    other = clone(search).set_params(random_state=1).fit(data[0], data[1])
    assert other.best_params_ != search.best_params_


class TestLedger:
    @pytest.mark.slow
    def test_a_search_is_charged_once_for_all_of_it(self, data):
        ledger = PrivacyLedger("people", 3.0, 1e-5)
        search = DPGridSearchCV(
            CLASSIFIER, {"alpha": [0.0, 0.1, 0.2]}, repetitions=LAW, ledger=ledger, random_state=0
        ).fit(data[0], data[2])
        (charge,) = ledger.charges()
        assert charge.estimator == "DPGridSearchCV"
        assert charge.loss.epsilon(1e-6) == pytest.approx(search.privacy_.total.epsilon(1e-6))
        assert ledger.total().epsilon <= 1.0

    def test_a_search_that_is_refused_spends_nothing_and_leaves_no_model(self, data):
        ledger = PrivacyLedger("people", 0.5, 1e-6)
        search = DPGridSearchCV(REGRESSOR, {"alpha": [0.01, 0.1]}, ledger=ledger)
        with pytest.raises(BudgetExceededError):
            search.fit(data[0], data[1])
        assert ledger.charges() == ()
        assert not hasattr(search, "best_estimator_")

    def test_bad_data_are_refused_before_anything_is_spent(self, data):
        ledger = PrivacyLedger("people", 5.0, 1e-5)
        X = data[0].copy()
        X[7, 1] = np.nan
        search = DPGridSearchCV(REGRESSOR, {"alpha": [0.01, 0.1]}, ledger=ledger)
        with pytest.raises(ValueError, match="NaN"):
            search.fit(X, data[1])
        total = ledger.total()
        assert (total.n_charges, total.n_returned, total.epsilon) == (0, 1, 0.0)

    def test_a_search_that_fails_later_says_that_it_has_spent(self, data, monkeypatch):
        ledger = PrivacyLedger("people", 5.0, 1e-5)
        search = DPGridSearchCV(REGRESSOR, {"alpha": [0.01, 0.1]}, ledger=ledger)

        def fails(*args):
            raise MemoryError

        monkeypatch.setattr(SearchProblem, "losses", fails)
        with pytest.raises(MemoryError) as caught:
            search.fit(data[0], data[1])
        assert "stays spent" in caught.value.__notes__[0]
        assert len(ledger.charges()) == 1

    def test_an_estimator_with_a_ledger_of_its_own_is_refused(self, data):
        ledger = PrivacyLedger("people", 5.0, 1e-5)
        search = DPGridSearchCV(clone(REGRESSOR).set_params(ledger=ledger), {"alpha": [0.1]})
        with pytest.raises(ValueError, match="Give the ledger to DPGridSearchCV"):
            search.fit(data[0], data[1])


class TestGroups:
    @quick("repeated")
    @pytest.mark.parametrize("name", STRATEGIES)
    def test_the_guarantee_is_for_groups(self, name, data):
        ledger = PrivacyLedger("people", 1.0, 1e-6, unit="group")
        search = DPGridSearchCV(
            clone(CLASSIFIER).set_params(n_passes=2),  # of more than fifty fits
            {"alpha": [0.0, 0.1, 0.2]},
            rows_per_group=4,
            ledger=ledger,
            random_state=0,
            **STRATEGIES[name],
        ).fit(data[0], data[2], groups=np.arange(8000) // 5)
        assert search.privacy_.unit == "group"
        assert ledger.total().epsilon <= 1.0
        plain = clone(search).set_params(ledger=None, rows_per_group=1).fit(data[0], data[2])
        assert search.fit_budget_.mu == pytest.approx(plain.fit_budget_.mu / 4.0, rel=1e-6)


REFUSED = {
    "no private estimator": (LogisticRegression(), {}, ValueError, "use DPLogisticCD"),
    "nothing that spends": (BoundsClipper((0, 1)), {}, TypeError, "private estimator"),
    "an unpaid step": (
        make_pipeline(StandardScaler(), DPLogisticCD()),
        {},
        ValueError,
        "'standardscaler' \\(StandardScaler\\): learns from the data without privacy",
    ),
    "another adjacency": (CLASSIFIER, {"adjacency": "add_remove"}, ValueError, "adjacency"),
    "a score of another kind": (CLASSIFIER, {"scoring": "r2"}, ValueError, "scoring"),
    "an unknown score": (CLASSIFIER, {"scoring": "average_precision"}, ValueError, "scoring"),
    "no shared release": (CLASSIFIER, {"strategy": "release"}, ValueError, "post-processing"),
    "more than half of a private number of rows": (
        DPLogisticCD(adjacency="add_remove", classes=["no", "yes"]),
        {"validation_fraction": 0.51, "adjacency": "add_remove"},
        ValueError,
        "half of them where their number is private",
    ),
    "no validation part": (CLASSIFIER, {"validation_fraction": 0.0}, ValueError, "validation"),
    "groups that were lost": (CLASSIFIER, {"rows_per_group": 3}, ValueError, "Pass groups="),
    "no budget": (CLASSIFIER, {"epsilon": 0.0}, ValueError, "epsilon"),
}


# What the searches have of scikit-learn's base besides parameters: how they look in notebooks, and
# methods that no winner has, since candidates are those that predict.
FROM_THE_BASE = {"n_features_in_"}
NO_WINNER_HAS = {"transform", "inverse_transform", "score_samples"}


@each_value(1)
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("estimator", [CLASSIFIER, REGRESSOR], ids=lambda e: type(e).__name__)
def test_a_search_is_one_of_scikit_learns_with_nothing_of_it_that_is_not_paid_for(
    estimator, refit, data
):
    search = DPGridSearchCV(estimator, {"alpha": [0.0, 0.1]}, refit=refit, random_state=0)
    assert isinstance(search, BaseSearchCV)
    public = {name for name in dir(BaseSearchCV) if not name.startswith("_")}
    made_here = set(vars(PrivateSearchCV))
    estimators = {name for name in dir(BaseEstimator()) if not name.startswith("_")}
    callbacks = {"set_callbacks"}
    inherited = public - made_here - estimators - callbacks
    assert inherited == FROM_THE_BASE | NO_WINNER_HAS
    y = data[2] if estimator is CLASSIFIER else data[1]
    assert not hasattr(search, "n_features_in_")
    assert type(estimator).__name__ in search._repr_html_()
    search.fit(data[0], y)
    assert search.n_features_in_ == data[0].shape[1]
    assert not any(hasattr(search, name) for name in NO_WINNER_HAS)
    assert type(estimator).__name__ in search._repr_html_()
    # The search of scikit-learn itself has nothing to read data with.
    with pytest.raises(AttributeError, match="cv"):
        BaseSearchCV.fit(search, data[0], y)
    assert sorted(search.cv_results_) == [
        "mean_test_score",
        "param_alpha",
        "params",
        "rank_test_score",
    ]
    assert {len(column) for column in search.cv_results_.values()} == {1}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name, data):
    estimator, options, error, text = REFUSED[name]
    grid = {"alpha": [0.0, 0.1]} if "alpha" in estimator.get_params() else {}
    with pytest.raises(error, match=text):
        DPGridSearchCV(estimator, grid, **options).fit(data[0], data[2])


def test_candidates_may_not_set_what_the_search_sets(data):
    for name, value in (("epsilon", 5.0), ("delta", 0.1), ("random_state", 0), ("ledger", None)):
        with pytest.raises(ValueError, match="param_grid"):
            DPGridSearchCV(CLASSIFIER, {name: [value]}).fit(data[0], data[2])


def test_an_invalid_candidate_is_refused_even_if_no_run_would_take_it(data):
    with pytest.raises(ValueError, match="alpha"):
        DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1, -1.0]}).fit(data[0], data[2])


@pytest.mark.slow
def test_no_run_at_all_is_an_error_that_says_so(data):
    search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0, 0.1]}, strategy="repeated", random_state=0)
    search.set_params(repetitions=PoissonRepetitions(1e-6))
    with pytest.raises(RuntimeError, match="number of runs is 0"):
        search.fit(data[0], data[2])


@pytest.mark.slow
def test_nothing_is_said_of_runs_that_do_not_win(data, monkeypatch):
    def talkative(method):
        def warns(*args, **kwargs):
            warnings.warn("what a run has seen", stacklevel=2)
            return method(*args, **kwargs)

        return warns

    for name in ("fit", "predict"):
        monkeypatch.setattr(DPLogisticCD, name, talkative(getattr(DPLogisticCD, name)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*hides the scale", PrivacyWarning)  # of the winner
        DPGridSearchCV(
            DPLogisticCD(), {"alpha": [0.0, 0.1, 1.0]}, epsilon=0.05, repetitions=LAW
        ).fit(data[0][:500], data[2][:500])


@pytest.mark.slow
def test_callbacks_see_candidates_only_where_their_number_is_public(data):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 or newer")
    seen = []

    class Watcher:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            seen.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            pass

    for name, expected in (("noisy_max", 3), ("repeated", 0)):
        seen.clear()
        search = DPGridSearchCV(
            CLASSIFIER, {"alpha": [0.0, 0.1, 1.0]}, random_state=0, **STRATEGIES[name]
        )
        search.set_callbacks(Watcher())
        search.fit(data[0], data[2])
        assert sum(task.startswith("candidate") for task in seen) == expected


class TestParts:
    """Each record is used by one part only, and nothing of a group beyond its bound."""

    @pytest.mark.slow
    @pytest.mark.parametrize("name", STRATEGIES)
    def test_fits_and_scores_see_the_rows_that_their_budget_is_for(self, name, data, monkeypatch):
        fitted, scored = [], []
        original, losses = SearchProblem.fitted, SearchProblem.losses

        def note_fit(problem, model, places=None):
            used = problem.parts.train if places is None else places
            fitted.append(rows_at(problem, used, data[0]))
            return original(problem, model, places)

        def note_score(problem, *args):
            scored.append(rows_at(problem, problem.parts.validation, data[0]))
            return losses(problem, *args)

        monkeypatch.setattr(SearchProblem, "fitted", note_fit)
        monkeypatch.setattr(SearchProblem, "losses", note_score)
        groups = np.arange(8000) // 4
        search = DPGridSearchCV(
            REGRESSOR, {"alpha": [0.0, 0.1, 0.2]}, epsilon=9.0, rows_per_group=2, random_state=0
        )
        search.set_params(**STRATEGIES[name]).fit(data[0], data[1], groups=groups)
        for rows in (*fitted, *scored):
            assert np.bincount(groups[rows]).max() <= 2
        for rows in fitted if name != "refit" else fitted[:-1]:
            assert not set(groups[rows]) & set(groups[scored[0]])
        # the reference part bought the units of the target: no fit may see it again
        assert len(np.union1d(fitted[-1], scored[0])) < 3800
        if name == "refit":
            assert len(fitted) == 4
            np.testing.assert_array_equal(fitted[-1], np.sort(np.r_[fitted[0], scored[0]]))
