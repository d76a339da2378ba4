"""With warnings as errors, what is public fails before the charge, and what was paid for is kept.

A warning is public if it follows from parameters, names, types or a public number of records. What
only released numbers tell is said last, when the result is stored.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer

from skdpnoise import (
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyWarning,
)
from skdpnoise.base.advice import warn_last
from skdpnoise.base.register import register_private
from skdpnoise.base.tags import PrivateTags
from skdpnoise.model_selection import dp_cross_validate
from tests._cases import each_value
from tests.contracts._register import PRIVATE, Notebook, each, ways

pytestmark = pytest.mark.usefixtures("the_same_words")


X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(240, 2))
BOUNDS = {"feature_bounds": (-1.0, 1.0)}
# Each is warned of: a seed, a weak guarantee, a δ above one over the number of records.
PUBLIC = {
    "seed": {"random_state": 0},
    "large epsilon": {"epsilon": 11.0},
    "large delta": {"delta": 0.2},
}


def fit(model, y, table=X):
    """Fit, with every warning an error; return what was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model.fit(table, y)
        except PrivacyWarning as warning:
            return warning
    return None


@each_value(1)
@pytest.mark.slow
@each(ways(PRIVATE))
@pytest.mark.parametrize("fact", PUBLIC)
def test_what_is_public_is_raised_before_anything_is_charged(entry, fact):
    ledger, terms = Notebook(), dict(PUBLIC[fact])
    if entry.by_torch and fact == "large delta":
        pytest.skip("how many records there are is private")
    model = entry.estimator(ledger=ledger, **terms)
    assert fit(model, entry.y(X)) is not None
    assert ledger.charges == []
    assert not hasattr(model, "privacy_")


@each_value(1)
@pytest.mark.slow
@each(ways(PRIVATE))
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_fit_that_is_charged_leaves_its_result_whatever_it_warns_of(entry, adjacency):
    ledger = Notebook()
    delta = 0.02 if adjacency == "add_remove" else 1e-6  # above 1/n, which is then found out
    model = entry.estimator(ledger=ledger, adjacency=adjacency, delta=delta)
    raised = fit(model, entry.y(X))
    stored = hasattr(model, "privacy_")
    assert stored or not ledger.charges
    if stored and raised is not None:
        assert any("stays spent" in note for note in raised.__notes__)


class Told(TransformerMixin, BaseEstimator):
    """A step that warns of what it released."""

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-6,
        adjacency="replace_one",
        noise="auto",
        ledger=None,
        random_state=None,
    ):
        self.epsilon, self.delta, self.adjacency = epsilon, delta, adjacency
        self.noise, self.ledger, self.random_state = noise, ledger, random_state

    def __private_tags__(self):
        return PrivateTags(normal_noise="iid_gaussian")

    def fit(self, X, y=None, groups=None):
        given = {name: getattr(self, name) for name in ("epsilon", "delta", "adjacency", "ledger")}
        self.scaler_ = DPStandardScaler(**BOUNDS, noise=self.noise, **given).fit(X)
        self.privacy_ = self.scaler_.privacy_
        warn_last("noise hides a column", first=True)
        return self

    def transform(self, X):
        return self.scaler_.transform(X)


register_private(Told)


def model():
    return DPLogisticCD(n_passes=1, classes=[0, 1])


COMPOSITIONS = {
    "pipeline": lambda told, ledger: DPPipeline([("t", told), ("m", model())], ledger=ledger),
    "columns": lambda told, ledger: DPPipeline(
        [("c", ColumnTransformer([("t", told, [0, 1])], sparse_threshold=0)), ("m", model())],
        ledger=ledger,
    ),
    "nested": lambda told, ledger: DPPipeline(
        [("i", DPPipeline([("s", DPStandardScaler(**BOUNDS)), ("t", told)])), ("m", model())],
        ledger=ledger,
    ),
    "search": lambda told, ledger: DPGridSearchCV(
        DPPipeline([("t", told), ("m", model())]), {"m__alpha": [0.0, 0.1]}, ledger=ledger
    ),
}
Y = (X[:, 0] > 0.0).astype(int)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_what_a_step_released_is_told_when_the_paid_result_is_stored(name):
    ledger = Notebook()
    whole = COMPOSITIONS[name](Told(), ledger)
    raised = fit(whole, Y)
    assert "noise hides" in str(raised)
    assert any("stays spent" in note for note in raised.__notes__)
    assert len(ledger.charges) == 1
    assert whole.predict(X).shape == Y.shape


def test_a_cross_validation_is_not_charged_where_what_is_public_is_an_error():
    ledger = Notebook()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivacyWarning, match="above 10"):
            dp_cross_validate(model(), X, Y, epsilon=20.0, ledger=ledger)
    assert ledger.charges == []


def test_a_pipeline_with_a_table_is_charged_only_if_it_has_a_result():
    table = pd.DataFrame({"a": X[:, 0], "t": np.where(X[:, 1] > 0.0, "x", "y")})
    ledger = Notebook()
    steps = [("table", DPTableVectorizer()), ("m", model())]
    whole = DPPipeline(steps, ledger=ledger)
    fit(whole, Y, table)
    assert hasattr(whole, "privacy_") == bool(ledger.charges)
