"""What privacy means: the guarantee asked for, the loss of a release, and conversions."""

from skdpnoise.privacy._checks import Adjacency, check_adjacency, check_count, check_real
from skdpnoise.privacy.conversions import (
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from skdpnoise.privacy.guarantee import PrivacyGuarantee
from skdpnoise.privacy.loss import GaussianLoss, PrivacyLoss, PureLoss

__all__ = [
    "Adjacency",
    "GaussianLoss",
    "PrivacyGuarantee",
    "PrivacyLoss",
    "PureLoss",
    "check_adjacency",
    "check_count",
    "check_real",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
