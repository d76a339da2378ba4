"""scikit-learn estimators that protect every person in the training data."""

from skdpnoise.linear_model import DPCoordinateDescentRegressor, DPLogisticCD, PrivacyWarning
from skdpnoise.privacy import PrivacyGuarantee

__version__ = "0.1.0.dev0"

__all__ = [
    "DPCoordinateDescentRegressor",
    "DPLogisticCD",
    "PrivacyGuarantee",
    "PrivacyWarning",
    "__version__",
]
