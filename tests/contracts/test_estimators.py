"""What every private estimator must pass: scikit-learn's checks and scikit-learn's company."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tests._cases import each_value, quick
from tests.contracts._register import DESCENTS, each

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

# Products of matrices of another memory layout differ in the last digit.
SAME = {
    "numbers": partial(np.testing.assert_allclose, rtol=1e-10),
    "counts": partial(np.testing.assert_allclose, rtol=1e-10),
    "labels": np.testing.assert_array_equal,
}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal([10.0, -3.0, 0.0], [2.0, 0.5, 1.0], size=(3000, 3))
    score = (X[:, 0] - 10.0) / 2.0 - (X[:, 1] + 3.0) / 0.5
    # The best possible scores are 8/9, 1 and nearly 1.
    return X, {
        "numbers": 5.0 + 2.0 * score + rng.normal(size=3000),
        "labels": np.where(score > 0, "yes", "no"),
        "counts": rng.poisson(40.0 * np.exp(score / 2.0)),
    }


def _target(entry, problem):
    return problem[1][entry.target]


def _clear(entry):
    return entry.make(epsilon=20.0, random_state=0)


@each(DESCENTS)
class TestCompany:
    def test_learns_what_there_is_to_learn(self, entry, problem):
        y = _target(entry, problem)
        assert _clear(entry).fit(problem[0], y).score(problem[0], y) > entry.enough

    def test_works_in_a_pipeline_with_a_column_transformer(self, entry, problem):
        frame = pd.DataFrame(problem[0], columns=["a", "b", "c"])
        frame["kind"] = np.where(np.arange(len(frame)) % 3 == 0, "x", "z")
        transform = ColumnTransformer(
            [
                ("numbers", "passthrough", ["a", "b", "c"]),
                ("kind", OneHotEncoder(categories=[["x", "z"]]), ["kind"]),
            ]
        )
        y = _target(entry, problem)
        pipeline = make_pipeline(transform, _clear(entry)).fit(frame, y)
        assert pipeline.score(frame, y) > entry.enough - 0.02

    @each_value(1)
    @pytest.mark.slow
    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_works_in_a_grid_search(self, entry, problem, n_jobs):
        y = _target(entry, problem)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), _clear(entry)),
            {f"{entry.make.__name__.lower()}__alpha": [0.0, 100.0]},
            cv=2,
            n_jobs=n_jobs,
        ).fit(problem[0], y)
        assert list(search.best_params_.values()) == [0.0]
        assert search.best_estimator_[-1].privacy_.guarantee.epsilon == 20.0

    def test_works_in_cross_validate(self, entry, problem):
        result = cross_validate(
            _clear(entry), problem[0], _target(entry, problem), cv=3, error_score="raise"
        )
        assert result["test_score"].min() > entry.enough - 0.02

    def test_frames_of_pandas_and_polars_give_the_same_model_and_keep_names(self, entry, problem):
        X, y = problem[0], _target(entry, problem)
        plain = _clear(entry).fit(X, y)
        for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
            model = _clear(entry).fit(frame, y)
            np.testing.assert_array_equal(model.coef_, plain.coef_)
            assert list(model.feature_names_in_) == ["a", "b", "c"]
            SAME[entry.target](model.predict(frame), plain.predict(X))

    def test_a_clone_is_unfitted_with_equal_parameters(self, entry, problem):
        model = _clear(entry).fit(problem[0], _target(entry, problem))
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "coef_")

    def test_a_pickle_predicts_and_reports_the_same(self, entry, problem):
        model = _clear(entry).fit(problem[0], _target(entry, problem))
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(problem[0]), model.predict(problem[0]))
        assert str(copy.privacy_) == str(model.privacy_)

    @quick("C-1")
    @each_value(1)
    @pytest.mark.parametrize("n_jobs", [1, 2, -1])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_threads_and_memory_layout_do_not_change_a_bit(self, entry, order, n_jobs):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(120_000, 3))  # enough rows for two threads
        y = entry.y(X.sum(axis=1, keepdims=True))
        settings = {"n_passes": 2, "feature_bounds": (-3.0, 3.0)}
        reference = _clear(entry).set_params(**settings).fit(X, y)
        other = _clear(entry).set_params(n_jobs=n_jobs, **settings)
        np.testing.assert_array_equal(
            other.fit(np.asarray(X, order=order), y).coef_path_, reference.coef_path_
        )

    def test_single_precision_is_close_to_double(self, entry, problem):
        X, y = problem[0], _target(entry, problem)
        double = _clear(entry).fit(X, y)
        single = _clear(entry).fit(X.astype(np.float32), y)
        np.testing.assert_allclose(single.coef_, double.coef_, rtol=0.01, atol=0.005)

    def test_shows_passes_to_callbacks(self, entry, problem, capsys):
        callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 or newer")
        pytest.importorskip("rich")
        model = _clear(entry).set_params(n_passes=4)
        model.set_callbacks(callback.ProgressBar())
        y = _target(entry, problem)
        quiet = _clear(entry).set_params(n_passes=4).fit(problem[0], y)
        np.testing.assert_array_equal(model.fit(problem[0], y).coef_, quiet.coef_)
        assert entry.make.__name__ in capsys.readouterr().out

    def test_a_callback_sees_every_pass_and_cannot_stop_early(self, entry, problem):
        pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 or newer")
        seen = []

        class Watcher:
            def setup(self, estimator, context):
                pass

            def teardown(self, estimator, context):
                pass

            def on_fit_task_begin(self, estimator, context):
                pass

            def on_fit_task_end(self, estimator, context, *, fitted_estimator):
                seen.append((context.task_name, fitted_estimator.predict(problem[0][:2])))
                return True

        model = _clear(entry).set_params(n_passes=3)
        model.set_callbacks(Watcher())
        model.fit(problem[0], _target(entry, problem))
        assert [name for name, _ in seen] == ["pass 1", "pass 2", "pass 3", "fit"]
        np.testing.assert_array_equal(seen[-1][1], model.predict(problem[0][:2]))
        assert len(model.coef_path_) == 3

    def test_the_report_is_text_and_html_and_holds_the_guarantee(self, entry, problem):
        model = _clear(entry).set_params(delta=1e-7)
        report = model.fit(problem[0], _target(entry, problem)).privacy_
        assert report.total.delta(20.0) <= 1e-7
        assert "(epsilon=20, delta=1e-07)" in str(report)
        assert "known seed" in str(report)
        html = report._repr_html_()
        assert html.count("<tr") == len(report.releases) + 1
        assert report.releases[-1].label in html

    @pytest.mark.slow
    @pytest.mark.usefixtures("the_same_words")
    def test_noise_is_fresh_without_a_random_state(self, entry, problem):
        y = _target(entry, problem)
        first, second = (entry.make().fit(problem[0], y) for _ in range(2))
        assert (first.coef_ != second.coef_).any()
        assert "cryptographic" in str(first.privacy_)
