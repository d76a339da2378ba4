"""Candidates are fixed, vouched for or refused before a search is charged, and seen by nobody."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpnoise import (
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyWarning,
)
from skdpnoise.privacy import TruncatedNegativeBinomial
from tests.model_selection._searches import (
    CLASSIFIER,
    LABELS,
    TWO,
    Door,
    Reached,
    Untouched,
    X,
    both,
)

pytestmark = pytest.mark.usefixtures("the_same_words")


VOUCHED = make_pipeline(StandardScaler(), DPLogisticCD())
PENALTIES = {"dplogisticcd__alpha": [0.0, 0.1]}


class TestDeclared:
    """Steps for which a person vouches."""

    @pytest.mark.slow
    def test_they_are_listed_in_the_report_of_the_search_and_of_its_winner(self):
        for search in both(VOUCHED, PENALTIES, public=["standardscaler"], random_state=0):
            search.fit(X, LABELS)
            assert search.privacy_.declared == ("standardscaler", "labels of y")
            assert "declared public by the user: standardscaler" in str(search.privacy_)
            assert search.best_estimator_[-1].privacy_ is search.privacy_

    @pytest.mark.slow
    def test_a_name_holds_in_the_candidates_that_have_the_step(self):
        grid = {"s": [DPStandardScaler(), make_pipeline(StandardScaler())]}
        for search in both(TWO, grid, public=["standardscaler"], random_state=0):
            assert search.fit(X, LABELS).privacy_.declared == ("s__standardscaler", "labels of y")

    @pytest.mark.parametrize("name", ["nobody", "alpha", "StandardScaler", "dplogisticcd__alpha"])
    def test_a_name_of_no_step_is_refused(self, name):
        for search in both(VOUCHED, PENALTIES, public=[name], ledger=Untouched()):
            with pytest.raises(ValueError, match="public"):
                search.fit(X, LABELS)

    def test_a_private_step_stays_private(self):
        search = DPGridSearchCV(TWO, {}, public=["clf"], ledger=Door())
        with pytest.raises(Reached):
            search.fit(X, LABELS)
        search.set_params(public=["s", "clf"])
        with pytest.raises(Reached):
            search.fit(X, LABELS)

    def test_one_may_not_vouch_for_what_holds_private_steps(self):
        search = DPGridSearchCV(
            make_pipeline(OneVsRestClassifier(CLASSIFIER)), {}, public=["onevsrestclassifier"]
        )
        with pytest.raises(ValueError, match="holds private steps"):
            search.set_params(ledger=Untouched()).fit(X, LABELS)


class TestFixed:
    """What is checked is what is fitted, whatever changes meanwhile."""

    @pytest.mark.slow
    def test_a_grid_that_changes_at_the_charge_changes_nothing(self):
        values = [DPLogisticCD(alpha=0.1), DPLogisticCD(alpha=0.2)]
        bounds = np.array([-1.0, -1.0, -1.0])
        grid = {"clf": values, "s__feature_bounds": [(bounds, 1.0)]}
        search = DPGridSearchCV(clone(TWO), grid, random_state=0)

        class Meddling:
            def charge(self, label, cost, **facts):
                values[:] = [LogisticRegression()]
                grid["s"] = [StandardScaler()]
                bounds[:] = -100.0
                search.estimator.steps[:] = [("clf", LogisticRegression())]
                search.set_params(
                    epsilon=100.0, adjacency="add_remove", ledger=None, n_jobs=2, public=["s"]
                )

        search.set_params(ledger=Meddling()).fit(X, LABELS)
        assert search.privacy_.guarantee.epsilon == 1.0
        scaler, model = (step for _, step in search.best_estimator_.steps)
        assert isinstance(scaler, DPStandardScaler)
        assert isinstance(model, DPLogisticCD)
        np.testing.assert_array_equal(scaler.feature_bounds[0], [-1.0] * 3)
        assert search.best_params_["clf"].alpha in (0.1, 0.2)
        assert model.epsilon < 1.0
        assert type(scaler.ledger) is Meddling

    def test_a_value_is_that_of_its_copy(self):
        class Turning:
            def __deepcopy__(self, memo):
                return 0.25

            def __float__(self):
                return -1.0

        search = DPGridSearchCV(CLASSIFIER, {"alpha": [Turning()]}, random_state=0)
        assert search.fit(X, LABELS).best_params_ == {"alpha": 0.25}
        assert search.best_estimator_.alpha == 0.25

    def test_methods_that_an_instance_has_replaced_do_not_survive(self):
        estimator = clone(CLASSIFIER)
        estimator.fit = lambda X, y: pytest.fail("not the fit of the class")
        search = DPGridSearchCV(estimator, {"alpha": [0.1]}, random_state=0).fit(X, LABELS)
        assert "fit" not in vars(search.best_estimator_)

    def test_nothing_is_printed_of_runs(self, capfd):
        estimator = make_pipeline(DPStandardScaler(), DPLogisticCD(), verbose=True)
        law = TruncatedNegativeBinomial(eta=1.0, gamma=0.3)
        DPGridSearchCV(
            estimator, {"dplogisticcd__alpha": [0.0, 0.1]}, strategy="repeated", repetitions=law
        ).fit(X, LABELS)
        assert capfd.readouterr() == ("", "")


def test_steps_vouched_for_inside_of_a_candidate_are_listed_too():
    model = DPPipeline([("s", StandardScaler()), ("clf", DPLogisticCD())], public=["s"])
    search = DPGridSearchCV(model, {"clf__alpha": [0.0]}).fit(X, LABELS)
    assert search.privacy_.declared == ("s", "labels of y")


class TestCompany:
    """What a search stands within."""

    def test_its_clones_share_its_ledger(self):
        class Plain:
            def __init__(self):
                self.labels = []

            def charge(self, label, cost, **facts):
                self.labels.append(label)

        ledger = Plain()
        search = clone(DPGridSearchCV(CLASSIFIER, {"alpha": [0.0]}, ledger=ledger)).fit(X, LABELS)
        clone(search.best_estimator_).fit(X, LABELS)
        assert ledger.labels == ["DPGridSearchCV.fit", "DPLogisticCD.fit"]

    def test_a_step_that_does_not_pay_and_a_search_around_it_are_warned_of(self):
        search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.0]})
        with pytest.warns(PrivacyWarning, match="DPGridSearchCV is fitted within Pipeline"):
            make_pipeline(StandardScaler(), search).fit(X, LABELS)
        with pytest.warns(PrivacyWarning, match="DPGridSearchCV spends its guarantee on every fit"):
            cross_val_score(search, X, LABELS, cv=2)

    @pytest.mark.slow
    @pytest.mark.parametrize("labels", [LABELS[:40], np.arange(40), np.array(["x", "y"] * 20)])
    def test_what_it_says_does_not_depend_on_the_records(self, labels):
        search = DPGridSearchCV(
            clone(TWO).set_params(clf__n_passes=2), {"clf__alpha": [0.0, 0.1]}, epsilon=0.01
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*hides the scale", PrivacyWarning)  # as released
            search.fit(X[:40].astype(np.float32) * np.float32(1e30), labels)


class TestCallbacks:
    """Callbacks see neither records nor models."""

    @pytest.fixture(autouse=True)
    def _newer(self):
        pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 or newer")

    def monitors(self):
        from sklearn.callback import ProgressBar, ScoringMonitor

        return ScoringMonitor(scoring="accuracy"), ProgressBar()

    def test_those_of_an_estimator_a_step_or_a_candidate_are_refused(self):
        for callback in self.monitors():
            watched = clone(CLASSIFIER).set_callbacks(callback)
            within = Pipeline([("s", DPStandardScaler()), ("clf", watched)])
            cases = [
                (watched, {"alpha": [0.1]}),
                (within, {"clf__alpha": [0.1]}),
                (clone(within).set_callbacks(callback), {"clf": [CLASSIFIER]}),
                (TWO, {"clf": [CLASSIFIER, watched]}),
            ]
            for estimator, grid in cases:
                for search in both(estimator, grid, ledger=Untouched()):
                    with pytest.raises(ValueError, match="callbacks"):
                        search.fit(X, LABELS)

    def test_a_search_takes_only_callbacks_that_ask_for_neither(self):
        seen = []

        class Curious:
            def setup(self, estimator, context):
                pass

            teardown = setup

            def on_fit_task_begin(self, estimator, context, *, X=None):
                seen.append(X)

            def on_fit_task_end(self, estimator, context):
                pass

        monitor, _ = self.monitors()
        for callback in (monitor, Curious()):
            search = DPGridSearchCV(CLASSIFIER, {"alpha": [0.1]}, ledger=Untouched())
            search.set_callbacks(callback)
            with pytest.raises(ValueError, match="get neither records nor models"):
                search.fit(X, LABELS)
        assert seen == []
