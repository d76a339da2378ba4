"""What cannot be fitted is refused: clearly, wholly, and without showing a value of the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, DPPoissonRegressor
from tests._cases import each_value

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

REGRESSORS = [DPCoordinateDescentRegressor, DPPoissonRegressor]
ALL = pytest.mark.parametrize("Estimator", [*REGRESSORS, DPLogisticCD])
SECRET = 123456.789


def _data(n=60, p=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] > 0, 1.0, 0.0)


def _refused(estimator, X, y, *words, error=ValueError):
    with pytest.raises(error) as caught:
        estimator.fit(X, y)
    message = str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or "123456" not in str(caught.value.__context__)
    for word in words:
        assert word in message
    assert "123456" not in message
    assert not hasattr(estimator, "coef_")
    assert not hasattr(estimator, "privacy_")
    return message


@each_value(1)
@ALL
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["X", "y"])
def test_values_that_are_not_finite(Estimator, value, place):
    X, y = _data()
    X[:, 1] = SECRET
    (X[:, 2] if place == "X" else y)[7] = value
    # scikit-learn's classifiers call a target with NaN or infinity an unknown kind of label
    _refused(Estimator(), X, y, "NaN" if np.isnan(value) else "infinity")


@each_value(1)
@ALL
@pytest.mark.parametrize("value", [1e308, -1e200])
def test_huge_values(Estimator, value):
    X, y = _data()
    X[3, 1] = value
    _refused(Estimator(), X, y, "Input X", "Rescale X")


@ALL
def test_subnormal_values(Estimator):
    X, y = _data()
    X[3, 1] = 5e-324
    _refused(Estimator(), X, y, "Input X", "subnormal", "set them to zero")


@each_value(1)
@pytest.mark.parametrize("Estimator", REGRESSORS)
@pytest.mark.parametrize("value, word", [(1e308, "beyond"), (1e-310, "subnormal")])
def test_targets_out_of_range(Estimator, value, word):
    X, y = _data()
    y[3] = value
    _refused(Estimator(), X, y, "Input y", word)


@each_value(1)
@ALL
@pytest.mark.parametrize(
    "X, y, words",
    [
        (np.empty((0, 3)), np.empty(0), ["0 sample"]),
        (np.empty((5, 0)), np.arange(5) % 2.0, ["0 feature"]),
        (np.ones((1, 3)), np.ones(1), ["1 sample", "minimum of 2"]),
        (np.full(5, SECRET), np.arange(5) % 2.0, ["2D array", "X.reshape(-1, 1)"]),
        (SECRET, np.arange(5) % 2.0, ["2D array"]),
        (np.ones((2, 2, 2)), np.ones(2), ["dim 3"]),
        (np.ones((5, 2)), np.arange(4) % 2.0, ["inconsistent numbers of samples"]),
        (np.ones((5, 2)), np.ones((5, 2)), ["1d array"]),
    ],
    ids=["no rows", "no columns", "one row", "1D", "scalar", "3D", "lengths", "2D target"],
)
def test_wrong_shapes(Estimator, X, y, words):
    _refused(Estimator(), X, y, *words)


@ALL
def test_text_is_not_quoted(Estimator):
    X, y = _data()
    frame = pd.DataFrame(X).astype(object)
    frame.iloc[4, 1] = "name 123456"
    _refused(Estimator(), frame, y, "needs numbers", "DPTableVectorizer()", "'1'")
    _refused(Estimator(), frame.to_numpy(), y, "needs numbers", "not shown")
    _refused(Estimator(), np.full((60, 2), "name 123456"), y, "needs numbers")


@pytest.mark.parametrize("Estimator", REGRESSORS)
def test_text_in_a_target_of_a_regression_is_not_quoted(Estimator):
    X, _ = _data()
    y = np.full(60, "name 123456", dtype=object)
    _refused(Estimator(), X, y, "needs numbers")


@ALL
def test_complex_numbers(Estimator):
    X, y = _data()
    _refused(Estimator(), X + SECRET + 1j, y, "Complex", "two columns")


@pytest.mark.parametrize("label", [1, "only 123456"])
def test_one_class(label):
    X, _ = _data()
    _refused(DPLogisticCD(), X, np.full(60, label), "1 class", "'classes'")


def test_labels_outside_the_public_classes_are_not_named():
    X, y = _data()
    labels = np.where(y > 0, "yes", "secret 123456")
    _refused(DPLogisticCD(classes=["yes", "no"]), X, labels, "'classes' parameter")


def test_continuous_labels():
    X, _ = _data()
    _refused(DPLogisticCD(), X, X[:, 0] + SECRET, "continuous")


@each_value(1)
@ALL
@pytest.mark.parametrize(
    "name, value",
    [
        ("epsilon", 0.0),
        ("epsilon", -1.0),
        ("epsilon", np.nan),
        ("epsilon", np.inf),
        ("epsilon", "1"),
        ("delta", -1e-9),
        ("delta", 1.0),
        ("delta", np.nan),
        ("noise", "gaussian"),
        ("noise", "inid_cauchy"),
        ("adjacency", "remove_one"),
        ("alpha", -0.1),
        ("l1_ratio", 1.5),
        ("fit_intercept", "yes"),
        ("n_passes", 0),
        ("n_passes", 2.5),
        ("clip", 0.0),
        ("clip", np.inf),
        ("budget_growth", 0.9),
        ("budget_growth", np.inf),
        ("feature_bounds", "wide"),
        ("feature_bounds", (1.0, 1.0)),
        ("feature_bounds", (5.0, -5.0)),
        ("feature_bounds", ([0.0, 0.0], [1.0, 1.0])),
        ("feature_bounds", (0.0, np.nan)),
        ("feature_bounds", (0.0, 1e300)),
        ("feature_bounds", (0.0, 1.0, 2.0)),
        ("error_weights", "flat"),
        ("error_weights", [1.0, 1.0]),
        ("error_weights", [1.0, 1.0, -1.0, 1.0]),
        ("random_state", -1),
        ("random_state", "seed"),
        ("n_jobs", "all"),
    ],
)
def test_parameters_out_of_range_are_named(Estimator, name, value):
    X, y = _data()
    _refused(Estimator(**{name: value}), X, y, f"'{name}'" if name != "random_state" else name)


@each_value(1)
@ALL
@pytest.mark.parametrize(
    "settings", [{"error_weights": [1.0]}, {"budget_growth": 2.0, "n_passes": 40}], ids=str
)
def test_parameters_are_refused_before_anything_is_spent(Estimator, settings, monkeypatch):
    def charge(self, label, mechanism):
        pytest.fail("charged for a fit that was then refused")

    monkeypatch.setattr("skdpnoise.ledger.Account.charge", charge)
    _refused(Estimator(**settings), *_data(), f"'{next(iter(settings))}'")


@pytest.mark.parametrize("Estimator", REGRESSORS)
def test_swapped_target_bounds(Estimator):
    X, y = _data()
    message = _refused(Estimator(target_bounds=(2.0, -2.0)), X, y, "'target_bounds'")
    assert "swapped" in message


@each_value(1)
@ALL
@pytest.mark.parametrize("rule", ["iid", "spr", "inid"])
def test_gaussian_noise_cannot_give_pure_privacy(Estimator, rule):
    X, y = _data()
    _refused(Estimator(delta=0.0, noise=f"{rule}_gaussian"), X, y, "noise", "laplace")


@ALL
def test_sample_weight_is_refused_with_the_reason(Estimator):
    X, y = _data()
    with pytest.raises(TypeError, match=r"'sample_weight'.*Fit without weights"):
        Estimator().fit(X, y, sample_weight=np.ones(60))
    with pytest.raises(TypeError, match="unexpected arguments: 'weights'"):
        Estimator().fit(X, y, weights=np.ones(60))


@each_value(1)
@ALL
@pytest.mark.parametrize("bounds", [None, (-5.0, 5.0)])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_constant_columns_are_no_error_and_give_a_finite_model(Estimator, bounds, adjacency):
    X, y = _data(500)
    X[:, 1], X[:, 2] = 0.0, 3.0
    model = Estimator(feature_bounds=bounds, adjacency=adjacency, random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.predict(X)).all()


@ALL
def test_all_columns_constant_give_a_finite_model(Estimator):
    _, y = _data(100)
    model = Estimator(random_state=0, fit_intercept=False).fit(np.ones((100, 2)), y)
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert np.isfinite(model.predict(np.ones((3, 2)))).all()


@each_value(1)
@ALL
@pytest.mark.parametrize("X", [np.full(3, SECRET), np.full((2, 3), SECRET + 1j), [["123456x"] * 3]])
def test_predict_does_not_quote_the_data_either(Estimator, X):
    model = Estimator(random_state=0).fit(*_data())
    with pytest.raises(
        (ValueError, TypeError), match=r"Expected 2D|Complex|needs numbers"
    ) as caught:
        model.predict(X)
    assert "123456" not in str(caught.value)
    assert caught.value.__context__ is None


@ALL
def test_a_failed_second_fit_leaves_the_first_model_as_it_was(Estimator):
    X, y = _data()
    model = Estimator(random_state=0).fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="Input X"):
        model.fit(np.full_like(X, 1e200), y)
    np.testing.assert_array_equal(model.coef_, before)
