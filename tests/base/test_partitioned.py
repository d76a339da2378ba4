"""Methods of single rows take rows in parts, and return rows in parts."""

from __future__ import annotations

from threading import Thread

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from skdpnoise import (
    DPPCA,
    BoundsClipper,
    DPCovariance,
    DPKBinsDiscretizer,
    DPLassoPath,
    DPMinMaxScaler,
    DPQuantileTransformer,
    DPSimpleImputer,
    DPStandardScaler,
)
from skdpnoise.base.partitioned import _METHODS, OverPartsMixin
from skdpnoise.data import RowSource, scan_batches
from skdpnoise.data.computed import reading
from tests._cases import quick
from tests._same_bits import COUNTS, in_parts
from tests.contracts._register import CLASSES, ENTRIES, Notebook, each, ways

pytestmark = pytest.mark.usefixtures("the_same_words")


TRANSFORMERS = [
    DPPCA(2, 20.0, whiten=True),
    DPStandardScaler(20.0),
    DPMinMaxScaler(epsilon=20.0, clip=True, copy=False),
    DPQuantileTransformer(9, 20.0, output_distribution="normal", copy=False),
    DPKBinsDiscretizer(3, 20.0),
    DPSimpleImputer(20.0, add_indicator=True),
    BoundsClipper((-1.0, 1.0), copy=False),
]
by_name = pytest.mark.parametrize("model", TRANSFORMERS, ids=lambda one: type(one).__name__)
ALL = [*CLASSES, *(entry for entry in ENTRIES if not entry.spends)]


def numbers(n=400):
    return np.random.default_rng(0).integers(0, 3, size=(n, 2)).astype(float)


def fitted(entry, X):
    """Return an estimator that knows every column, with a ledger and a seed."""
    parameters = {}
    if entry.spends:
        parameters = {"epsilon": 20.0, "ledger": Notebook(), "random_state": 0}
    if entry.reads == "gaps":
        parameters["add_indicator"] = True
    if entry.reads == "tables":
        parameters["schema"] = {f"x{k}": "number" for k in range(X.shape[1])}
    return entry.estimator(**parameters).fit(X, entry.y(X))


def together(rows):
    return np.concatenate([*rows.batches()])


@each(ways(ALL))
def test_every_method_of_single_rows_takes_rows_in_parts(entry):
    X = numbers()
    model = fitted(entry, X)
    found = [name for name in _METHODS if hasattr(model, name)]
    assert found
    for name in found:
        given = X
        if name == "inverse_transform":
            given = np.asarray(model.transform(X), dtype=float)
        rows = scan_batches(lambda table=given: [table[:150].copy(), table[150:].copy()])
        answered = getattr(model, name)(rows)
        assert isinstance(answered, RowSource)
        for _ in range(2):  # each pass gives the same
            parts = [*answered.batches()]
            for part, batch in zip(parts, (given[:150], given[150:]), strict=True):
                expected = getattr(model, name)(batch.copy())
                assert np.array_equal(part, expected)
                assert part.dtype == np.asarray(expected).dtype
        assert answered.shape == (len(X), *np.shape(expected)[1:])


@quick(
    "DPCoordinateDescentRegressor", "DPPoissonRegressor 2", "DPStandardScaler", "DPOneHotEncoder"
)
@each(ways(ALL))
def test_what_travels_is_the_fitted_model_without_its_ledger_and_report(entry):
    X = numbers()
    model = fitted(entry, X)
    before = dict(vars(model))
    name = next(name for name in _METHODS if hasattr(model, name))
    answered = getattr(model, name)(in_parts(X, 2))
    (answer,) = answered.taking.maps
    text = cloudpickle.dumps(answer)
    for word in (b"Notebook", b"PrivacyReport", b"callback", b"Account"):
        assert word not in text
    assert getattr(answer.step, "random_state", None) is None
    assert not hasattr(answer.step, "privacy_")
    copied = cloudpickle.loads(text)
    assert np.array_equal(copied(X), getattr(model, name)(X))
    assert vars(model) == before  # the model itself has kept everything


@quick("DPMinMaxScaler")
@by_name
def test_transformed_rows_are_the_same_bits_in_parts(model):
    X = numbers() + np.random.default_rng(1).normal(size=(400, 2))
    expected = model.fit(X.copy()).transform(X.copy())
    for n_parts in COUNTS:
        rows = in_parts(X.copy(), n_parts)
        for _ in range(2):  # nothing is done in place, whatever `copy` says
            assert np.array_equal(together(model.transform(rows)), expected)
        assert np.array_equal(together(rows), X)


@quick("DPSimpleImputer")
@by_name
def test_names_of_columns_reach_the_next_step(model):
    frame = pd.DataFrame(numbers(), columns=["age", "income"])
    model.fit(frame)
    rows = in_parts(frame, 3)
    assert isinstance(next(model.transform(rows).batches()), np.ndarray)
    for output in ("pandas", "polars"):  # frames in parts are those of pandas
        asked = sklearn.base.clone(model).set_output(transform=output).fit(frame)
        parts = [*asked.transform(rows).batches()]
        assert all(isinstance(part, pd.DataFrame) for part in parts)
        assert parts[0].columns.tolist() == asked.get_feature_names_out().tolist()
    with sklearn.config_context(transform_output="pandas"):
        later = model.transform(rows)
    found = []  # threads have the configuration of nobody
    thread = Thread(target=lambda: found.extend(later.batches()))
    thread.start()
    thread.join()
    assert pd.concat(found).columns.tolist() == model.get_feature_names_out().tolist()


def test_fit_transform_fits_to_the_parts():
    X = numbers()
    whole = DPStandardScaler(20.0, random_state=0)
    expected = whole.fit_transform(X)
    model = DPStandardScaler(20.0, random_state=0)
    assert np.array_equal(together(model.fit_transform(in_parts(X, 7))), expected)
    assert model.set_output(transform="pandas").fit_transform(in_parts(X, 7)).shape == X.shape


def test_what_is_refused_is_said_at_once():
    X = numbers()
    rows = in_parts(X, 3)
    with pytest.raises(NotFittedError):
        DPPCA().transform(rows)
    pca = DPPCA(1, 20.0).fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but DPPCA is expecting 2 features"):
        pca.transform(in_parts(np.ones((9, 3)), 2))
    with pytest.raises(ValueError, match="X has 2 features, but DPPCA is expecting 1 features"):
        pca.inverse_transform(rows)
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = DPPCA(1, 20.0).fit(frame)
    with pytest.raises(ValueError, match="The feature names should match"):
        named.transform(in_parts(frame[["b", "a"]], 2))
    with pytest.raises(ValueError, match="got one column of rows in parts"):
        named.transform(in_parts(frame, 2)["a"])
    with pytest.raises(ValueError, match="add_indicator"):
        DPSimpleImputer(20.0).fit(X).inverse_transform(rows)
    with pytest.raises(TypeError, match="needs all rows of X in memory"):
        DPCovariance(20.0).fit(X).score(rows)


def test_what_a_step_computed_is_not_refused_later_in_another_thread():
    X = numbers()
    scaler = DPStandardScaler(20.0).fit(X)
    X[3, 1] = np.nan
    rows = in_parts(X, 2)
    with reading({"X"}):
        later, expected = scaler.transform(rows), scaler.transform(X)
    assert np.array_equal(together(later), expected)
    with pytest.raises(ValueError, match="contains NaN"):
        together(scaler.transform(rows))


def test_arguments_of_a_method_are_kept():
    X = numbers()
    path = DPLassoPath(epsilon=20.0, alphas=3).fit(X, X[:, 0])
    alpha = path.alphas_[-1]
    rows = in_parts(X, 1)
    for answered in (path.predict(rows, alpha), path.predict(X=rows, alpha=alpha)):
        batches = zip(answered.batches(), rows.batches(), strict=True)
        assert all(np.array_equal(one, path.predict(two, alpha=alpha)) for one, two in batches)


def test_methods_of_subclasses_take_parts_once():
    class Doubled(OverPartsMixin, TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.n_features_in_ = X.shape[1]
            return self

        def transform(self, X):
            assert isinstance(X, np.ndarray)
            return 2.0 * X

        def get_feature_names_out(self, input_features=None):
            return [f"x{k}" for k in range(self.n_features_in_)]

    class Fourfold(Doubled):
        def transform(self, X):
            return 2.0 * super().transform(X)

    class Same(Doubled):
        pass

    X = numbers()
    rows = in_parts(X, 2)
    for kind, factor in ((Doubled, 2.0), (Fourfold, 4.0), (Same, 2.0)):
        answered = kind().fit_transform(rows)
        assert len(answered.taking.maps) == 1
        assert np.array_equal(together(answered), factor * X)
    assert Same.transform is Doubled.transform
    assert Same.fit_transform is Doubled.fit_transform
