"""What comes after the charge of a composition does not fail for a value of the data."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import get_config
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, PolynomialFeatures

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyWarning,
)
from skdpnoise.compose import register_private
from tests._cases import quick

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
# All are nearly 1, but for one record of the neighbour; the scale makes 4,000 of the difference.
X = 1.0 + 1e-3 * rng.normal(size=(400, 1))
NEIGHBOUR = np.concatenate([[[5.0]], X[1:]])
Y = (X[:, 0] > 1.0).astype(int)
EXP, LOG = FunctionTransformer(np.exp, np.log, check_inverse=False), FunctionTransformer(np.log)


class Notebook:
    def __init__(self):
        self.charges = 0

    def charge(self, label, cost, **facts):
        self.charges += 1


@quick("between7")
@pytest.mark.parametrize(
    "between",
    [
        [EXP],
        [LOG],
        [EXP, PolynomialFeatures(2)],
        [LOG, Normalizer()],
        [EXP, BoundsClipper((0.0, 1.0))],
        [EXP, DPStandardScaler(), EXP],
        [EXP, DPPCA(n_components=1, row_norm=1.0)],
        [DPPipeline([("scale", DPStandardScaler()), ("exp", EXP), ("again", DPStandardScaler())])],
        [Pipeline([("exp", EXP), ("powers", PolynomialFeatures(3))])],
    ],
)
def test_what_public_steps_make_of_released_scales_is_never_refused_after_the_charge(between):
    named = [(f"between{place}", step) for place, step in enumerate(between)]
    steps = [("scale", DPStandardScaler()), *named, ("model", DPLogisticCD(classes=[0, 1]))]
    ledger = Notebook()
    for data in (X, NEIGHBOUR):
        model = DPPipeline(steps, epsilon=5.0, ledger=ledger).fit(data, Y)
        assert np.isfinite(model.named_steps["model"].coef_).all()
    assert ledger.charges == 2


def test_a_target_that_a_public_step_made_too_large_is_not_refused_after_the_charge():
    target = Pipeline([("scale", DPStandardScaler()), ("exp", EXP)])
    model = TransformedTargetRegressor(
        DPCoordinateDescentRegressor(), transformer=target, check_inverse=False
    )
    for y in (X[:, 0], NEIGHBOUR[:, 0]):
        ledger = Notebook()
        fitted = DPPipeline([("model", model)], epsilon=5.0, ledger=ledger).fit(X, y)
        assert ledger.charges == 1
        assert np.isfinite(fitted.named_steps["model"].regressor_.coef_).all()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["noisy_max", "repeated"])
def test_a_search_ends_with_a_result_whatever_a_public_step_makes_of_a_record(strategy):
    steps = [("s", DPStandardScaler()), ("exp", EXP), ("model", DPLogisticCD(classes=[0, 1]))]
    for estimator in (DPPipeline(steps), Pipeline(steps)):
        for data in (X, NEIGHBOUR):
            search = DPGridSearchCV(
                estimator, {"model__alpha": [1e-3]}, epsilon=5.0, strategy=strategy
            )
            assert hasattr(search.fit(data, Y), "best_estimator_")


def test_values_that_are_accepted_are_not_changed_after_the_charge():
    table = rng.normal(size=(50, 2))
    before = table.copy()
    one = DPPipeline([("scale", DPStandardScaler(with_std=False))], random_state=0).fit(table)
    np.testing.assert_array_equal(table, before)
    beyond = table.copy()
    beyond[0] = 1e60  # of one record: all others are transformed alike
    two = DPPipeline([("scale", DPStandardScaler(with_std=False))], random_state=0).fit(beyond)
    for model in (one, two):
        np.testing.assert_allclose(
            model.transform(table), table - model.named_steps["scale"].mean_, rtol=1e-12
        )


@quick("given4-settings4-groups4", "given1-settings1-None")
@pytest.mark.parametrize(
    ("given", "settings", "groups"),
    [
        (X, {}, None),
        (X.tolist(), {}, None),
        (tuple(map(tuple, X)), {}, None),
        (pd.DataFrame(X, columns=["a"]), {}, None),
        (X, {"rows_per_group": 2}, np.arange(len(X)) // 2),
        (pd.DataFrame(X, columns=["a"]), {"rows_per_group": 3}, np.arange(len(X)) // 3),
    ],
)
def test_the_last_step_is_rehearsed_whatever_holds_the_data(given, settings, groups):
    ledger = Notebook()
    inner = DPPipeline([("scale", DPStandardScaler())])
    for first in (DPStandardScaler(), inner):
        steps = [("first", first), ("model", DPLogisticCD(classes=[0, 1]))]
        with pytest.raises(ValueError, match="'classes' parameter"):
            DPPipeline(steps, ledger=ledger, **settings).fit(given, Y + 1, groups)
    assert ledger.charges == 0


class ReadOnDemand:
    """An array that is another one at every second read, as a file would be that is written to."""

    def __init__(self, *arrays):
        self.arrays, self.reads = arrays, 0
        self.shape = arrays[0].shape

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        self.reads += 1
        return np.asarray(self.arrays[(self.reads - 1) % len(self.arrays)], dtype=dtype)


def test_what_is_rehearsed_is_what_is_fitted():
    ledger = Notebook()
    pipeline = DPPipeline(
        [("scale", DPStandardScaler()), ("model", DPLogisticCD(classes=[0, 1]))],
        rows_per_group=2,
        ledger=ledger,
    )
    groups = np.arange(len(X)) // 2
    data = ReadOnDemand(X, X[:, [0, 0]]), ReadOnDemand(Y, Y + 1), ReadOnDemand(groups, groups[:9])
    pipeline.fit(*data)
    assert [one.reads for one in data] == [1, 1, 1]
    assert ledger.charges == 1
    assert pipeline.n_features_in_ == 1


def test_a_table_that_cannot_be_read_is_refused_without_a_value_of_it():
    class Unreadable(ReadOnDemand):
        def __array__(self, dtype=None, copy=None):
            raise OSError("record 17 is 4.25")

    with pytest.raises(ValueError, match="cannot be read as one") as caught:
        DPPipeline([("scale", DPStandardScaler())], ledger=Notebook()).fit(Unreadable(X))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("place", ["groups", "y"])
def test_numbers_beyond_double_precision_are_not_warned_of(place):
    given = {"groups": np.arange(len(X), dtype=np.longdouble), "y": X[:, 0].astype(np.longdouble)}
    given[place][0] = np.longdouble("1e4000")
    model = DPCoordinateDescentRegressor()
    for estimator in (
        model,
        DPPipeline([("scale", DPStandardScaler()), ("model", model)], ledger=Notebook()),
        DPGridSearchCV(model, {"alpha": [0.0, 1.0]}, target_bounds=(0.0, 9.0), ledger=Notebook()),
    ):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            if place == "y":
                with pytest.raises(ValueError, match=r"infinity|inf"):
                    estimator.fit(X, **given)
                assert getattr(estimator.ledger, "charges", 0) == 0
            else:
                estimator.fit(X, **given)
        assert {one.category for one in heard} <= {PrivacyWarning}


@pytest.mark.parametrize("groups", [[[1]] * len(X), np.array([{1}] * len(X)), X, [*range(9), None]])
def test_errors_of_groups_have_nothing_attached(groups):
    steps = [("scale", DPStandardScaler()), ("model", DPLogisticCD())]
    for estimator in (DPPipeline(steps), DPGridSearchCV(DPLogisticCD(), {"alpha": [0.0, 1.0]})):
        with pytest.raises((ValueError, TypeError), match="'groups' parameter") as caught:
            estimator.fit(X, Y, groups=groups)
        assert caught.value.__context__ is None


def test_a_private_step_of_another_author_still_has_scikit_learn_look_at_its_data():
    seen = []

    @register_private
    class Foreign(DPLogisticCD):
        def fit(self, X, y, groups=None, **params):
            seen.append(get_config()["assume_finite"])
            return super().fit(X, y, groups, **params)

    for last in (Foreign(classes=[0, 1]), DPPipeline([("foreign", Foreign(classes=[0, 1]))])):
        DPPipeline([("scale", DPStandardScaler()), ("model", last)]).fit(X, Y)
    assert not any(seen)
    assert len(seen) == 4
