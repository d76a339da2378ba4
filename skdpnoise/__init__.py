"""scikit-learn estimators that protect every person in the training data."""

from skdpnoise.compose import DPPipeline, total_guarantee
from skdpnoise.covariance import DPCovariance
from skdpnoise.decomposition import DPPCA
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.linear_model import (
    DPCoordinateDescentRegressor,
    DPLassoPath,
    DPLogisticCD,
    PrivacyWarning,
)
from skdpnoise.model_selection import DPGridSearchCV, DPRandomizedSearchCV
from skdpnoise.preprocessing import (
    BoundsClipper,
    DPMinMaxScaler,
    DPRobustScaler,
    DPStandardScaler,
)
from skdpnoise.privacy import PrivacyGuarantee

__version__ = "0.1.0.dev0"

__all__ = [
    "DPPCA",
    "BoundsClipper",
    "DPCoordinateDescentRegressor",
    "DPCovariance",
    "DPGridSearchCV",
    "DPLassoPath",
    "DPLogisticCD",
    "DPMinMaxScaler",
    "DPPipeline",
    "DPRandomizedSearchCV",
    "DPRobustScaler",
    "DPStandardScaler",
    "PrivacyGuarantee",
    "PrivacyLedger",
    "PrivacyWarning",
    "__version__",
    "total_guarantee",
]
