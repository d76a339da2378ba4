"""Linear models that protect every record of their training data."""

from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.linear_model._huber_quantile_svc import (
    DPHuberRegressor,
    DPLinearSVC,
    DPQuantileRegressor,
)
from skdpnoise.linear_model._lasso_path import DPLassoPath
from skdpnoise.linear_model._least_squares import (
    DPCoordinateDescentRegressor,
    DPElasticNet,
    DPLasso,
    DPRidge,
)
from skdpnoise.linear_model._logistic import DPLogisticCD, DPLogisticRegression
from skdpnoise.linear_model._poisson import DPPoissonRegressor

__all__ = [
    "DPCoordinateDescentRegressor",
    "DPElasticNet",
    "DPHuberRegressor",
    "DPLasso",
    "DPLassoPath",
    "DPLinearSVC",
    "DPLogisticCD",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPRidge",
    "PrivacyWarning",
]
