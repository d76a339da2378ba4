"""Where warnings are errors, what a fit was charged for is there all the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPipeline,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyWarning,
)
from skdpnoise.linear_model import DPLassoPath
from skdpnoise.model_selection import dp_cross_validate
from tests._cases import each_value, quick
from tests.compose._pipelines import Notebook
from tests.contracts._register import PRIVATE, each

pytestmark = pytest.mark.usefixtures("the_same_words")


rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = X[:, 0] + 1e3
LABELS = (X[:, 0] > 0.0).astype(int)
SCALE = ("scale", DPStandardScaler())
NESTED = DPPipeline([SCALE, ("robust", DPRobustScaler())])

# Whatever warns of what it released: with so few records each scale is hidden
FITS = {
    "standard": (DPStandardScaler(), None),
    "robust": (DPRobustScaler(), None),
    "range": (DPMinMaxScaler(), None),
    "regression": (DPCoordinateDescentRegressor(), Y),
    "path": (DPLassoPath(), Y),
    "classification": (DPLogisticCD(), LABELS),
    "pipeline": (DPPipeline([SCALE, ("model", DPCoordinateDescentRegressor())]), Y),
    "nested": (DPPipeline([("nested", NESTED), ("model", DPLogisticCD())]), LABELS),
    "search": (DPGridSearchCV(DPCoordinateDescentRegressor(), {"alpha": [0.0, 0.1]}), Y),
}


def fitted_attributes(estimator):
    return {name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")}


@quick(
    "robust-0.02-add_remove",
    "regression-0.02-replace_one",
    "search-1e-06-replace_one",
    "range-1e-06-add_remove",
)
@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [1e-6, 0.02])
@pytest.mark.parametrize("case", FITS.values(), ids=FITS)
def test_a_warning_after_the_charge_leaves_the_fit_that_was_paid_for(
    case, delta, adjacency, the_same_words
):
    model, y = case
    settings = {"epsilon": 0.5, "delta": delta, "adjacency": adjacency}
    if hasattr(model, "estimator"):
        settings["estimator__adjacency"] = adjacency
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        the_same_words()
        quiet = clone(model).set_params(**settings).fit(X, y)
    ledger = Notebook()
    the_same_words()  # noise decides which solver is used
    loud = clone(model).set_params(**settings, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            loud.fit(X, y)
        except PrivacyWarning as warning:
            notes = getattr(warning, "__notes__", [])
            assert bool(ledger.charges) == any("stays spent" in note for note in notes)
    assert len(ledger.charges) == (1 if fitted_attributes(loud) else 0)
    if ledger.charges:
        assert fitted_attributes(loud) == fitted_attributes(quiet)
        assert loud.privacy_.guarantee.epsilon == 0.5


def test_a_warning_that_is_known_before_the_charge_prevents_it():
    for estimator in (
        DPLogisticCD(delta=0.02),
        DPPipeline([SCALE], delta=0.02),
        DPStandardScaler(20.0),
    ):
        estimator.set_params(ledger=(ledger := Notebook()))
        with warnings.catch_warnings(), pytest.raises(PrivacyWarning):
            warnings.simplefilter("error")
            estimator.fit(X, LABELS)
        assert ledger.charges == []
        assert fitted_attributes(estimator) == set()


def test_all_warnings_of_a_pipeline_are_given_at_the_line_that_fits_it():
    model = DPPipeline([SCALE, ("model", DPCoordinateDescentRegressor())], epsilon=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}
    texts = " ".join(str(warning.message) for warning in caught)
    assert "DPStandardScaler leaves as they are" in texts
    assert "DPCoordinateDescentRegressor predicts one constant" in texts


MANY = rng.normal(size=(200, 2))
# Whatever fits several models, by how the one that leaves it was chosen
SEARCHES = {
    "noisy max": {"strategy": "noisy_max", "refit": False},
    "refit": {"strategy": "noisy_max", "refit": True},
    "repeated": {"strategy": "repeated"},
    "one release": {"strategy": "auto"},
}
HIDDEN = "hides where the target is"


def said_by(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


def hidden(texts):
    return [text for text in texts if HIDDEN in text]


@quick("refit-DPCoordinateDescentRegressor gram")
@each_value(1)
@each([entry for entry in PRIVATE if entry.target in ("numbers", "counts")])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_says_once_that_the_target_of_its_winner_is_hidden(entry, search):
    y = entry.y(MANY)
    model = entry.estimator(feature_bounds=(-4.0, 4.0))
    grid = {"alpha": [0.0, 0.1]} if "alpha" in model.get_params() else {"noise": ["auto"]}
    alone = hidden(said_by(lambda: clone(model).set_params(epsilon=0.01).fit(MANY, y)))
    assert len(alone) < 2
    if not alone or "noise" not in model.get_params():
        pytest.skip("it needs no scale of the target, or is a search itself")
    adjacency = {"adjacency": entry.adjacencies[0]}
    piped = DPPipeline([("model", model)], **adjacency)
    for one, names in ((model, grid), (piped, {f"model__{k}": v for k, v in grid.items()})):
        whole = DPGridSearchCV(one, names, epsilon=0.01, **adjacency, **SEARCHES[search])
        assert len(hidden(said_by(lambda whole=whole: whole.fit(MANY, y)))) == 1
        inside = vars(whole.best_estimator_)
        assert [name for name in inside if "said" in name] == []
    terms = {"epsilon": 0.01, "cv": 3, **adjacency}
    texts = said_by(lambda: dp_cross_validate(model, MANY, y, **terms))
    assert len(hidden(texts)) == 1


def test_a_fit_that_fails_after_the_charge_warns_of_nothing():
    class Failing(DPCoordinateDescentRegressor):
        def _solve(self, *args, **kwargs):
            raise ValueError("cannot be stored")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="cannot be stored"):
            Failing(epsilon=0.5).fit(X, Y)
    assert [warning for warning in caught if "hide" in str(warning.message)] == []
