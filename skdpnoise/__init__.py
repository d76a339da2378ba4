"""scikit-learn estimators that protect every person in the training data."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skdpnoise.compose import DPPipeline, total_guarantee
    from skdpnoise.decomposition import DPPCA, DPCovariance
    from skdpnoise.inspection import show_versions
    from skdpnoise.ledger import PrivacyLedger
    from skdpnoise.linear_model import (
        DPCoordinateDescentRegressor,
        DPElasticNet,
        DPHuberRegressor,
        DPLasso,
        DPLassoPath,
        DPLinearSVC,
        DPLogisticCD,
        DPLogisticRegression,
        DPPoissonRegressor,
        DPQuantileRegressor,
        DPRidge,
        PrivacyWarning,
    )
    from skdpnoise.model_selection import DPGridSearchCV, DPRandomizedSearchCV
    from skdpnoise.neural_network import DPMLPClassifier as DPMLPClassifier
    from skdpnoise.neural_network import DPMLPRegressor as DPMLPRegressor
    from skdpnoise.neural_network import DPNeuralClassifier as DPNeuralClassifier
    from skdpnoise.neural_network import DPNeuralRegressor as DPNeuralRegressor
    from skdpnoise.preprocessing import (
        BoundsClipper,
        DPKBinsDiscretizer,
        DPMinMaxScaler,
        DPOneHotEncoder,
        DPOrdinalEncoder,
        DPQuantileTransformer,
        DPRobustScaler,
        DPSimpleImputer,
        DPStandardScaler,
        DPTableVectorizer,
    )
    from skdpnoise.privacy import PrivacyGuarantee

__version__ = "0.1.0"

# Without what needs an extra: nobody who asks for everything waits for it.
__all__ = [
    "DPPCA",
    "BoundsClipper",
    "DPCoordinateDescentRegressor",
    "DPCovariance",
    "DPElasticNet",
    "DPGridSearchCV",
    "DPHuberRegressor",
    "DPKBinsDiscretizer",
    "DPLasso",
    "DPLassoPath",
    "DPLinearSVC",
    "DPLogisticCD",
    "DPLogisticRegression",
    "DPMinMaxScaler",
    "DPOneHotEncoder",
    "DPOrdinalEncoder",
    "DPPipeline",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPQuantileTransformer",
    "DPRandomizedSearchCV",
    "DPRidge",
    "DPRobustScaler",
    "DPSimpleImputer",
    "DPStandardScaler",
    "DPTableVectorizer",
    "PrivacyGuarantee",
    "PrivacyLedger",
    "PrivacyWarning",
    "__version__",
    "show_versions",
    "total_guarantee",
]

# The public names of each package, which are imported when somebody asks for them (PEP 562).
_NAMES = {
    "compose": "DPPipeline total_guarantee",
    "decomposition": "DPCovariance DPPCA",
    "inspection": "show_versions",
    "ledger": "PrivacyLedger",
    "linear_model": "DPCoordinateDescentRegressor DPElasticNet DPHuberRegressor DPLasso "
    "DPLassoPath DPLinearSVC DPLogisticCD DPLogisticRegression DPPoissonRegressor "
    "DPQuantileRegressor DPRidge PrivacyWarning",
    "model_selection": "DPGridSearchCV DPRandomizedSearchCV",
    "neural_network": "DPMLPClassifier DPMLPRegressor DPNeuralClassifier DPNeuralRegressor",
    "preprocessing": "BoundsClipper DPKBinsDiscretizer DPMinMaxScaler DPOneHotEncoder "
    "DPOrdinalEncoder DPQuantileTransformer DPRobustScaler DPSimpleImputer DPStandardScaler "
    "DPTableVectorizer",
    "privacy": "PrivacyGuarantee",
}
_HOMES = {name: room for room, names in _NAMES.items() for name in names.split()}


def _rooms() -> set[str]:
    """Return the names of the packages in this one, and of their other doors."""
    from pkgutil import iter_modules

    return {module.name for module in iter_modules(__path__)}


if not TYPE_CHECKING:  # type checkers take the imports above, and see a misspelt name

    def __getattr__(name):
        if name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = value  # so that this function is asked once
            return value
        if name in _rooms():
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES, *_rooms()})
