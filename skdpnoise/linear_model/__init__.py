"""Linear models that protect every record of their training data."""

from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.linear_model._coordinate_descent import DPCoordinateDescentRegressor
from skdpnoise.linear_model._huber import DPHuberRegressor
from skdpnoise.linear_model._lasso_path import DPLassoPath
from skdpnoise.linear_model._linear_svc import DPLinearSVC
from skdpnoise.linear_model._logistic import DPLogisticCD, DPLogisticRegression
from skdpnoise.linear_model._penalised import DPElasticNet, DPLasso, DPRidge
from skdpnoise.linear_model._poisson import DPPoissonRegressor
from skdpnoise.linear_model._quantile import DPQuantileRegressor

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
