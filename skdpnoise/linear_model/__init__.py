"""Linear models that protect every record of their training data."""

from skdpnoise.compose.surroundings import PrivacyWarning
from skdpnoise.linear_model._coordinate_descent import DPCoordinateDescentRegressor
from skdpnoise.linear_model._lasso_path import DPLassoPath
from skdpnoise.linear_model._logistic import DPLogisticCD, DPLogisticRegression
from skdpnoise.linear_model._poisson import DPPoissonRegressor

__all__ = [
    "DPCoordinateDescentRegressor",
    "DPLassoPath",
    "DPLogisticCD",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "PrivacyWarning",
]
