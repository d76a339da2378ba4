"""The meaning of privacy: the guarantee asked for, the loss of a release, and conversions."""

from skdpnoise._utils.checks import Adjacency, check_adjacency, check_count, check_real
from skdpnoise.privacy.conversions import (
    corollary6_epsilon,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)
from skdpnoise.privacy.curves import LossCurve, NormalShift, Promised, RandomisedResponse
from skdpnoise.privacy.guarantee import PrivacyGuarantee
from skdpnoise.privacy.loss import GaussianLoss, LossBudget, PrivacyLoss, PureLoss
from skdpnoise.privacy.numeric.loss import NumericLoss
from skdpnoise.privacy.repetition.curve import Repetition
from skdpnoise.privacy.repetition.laws import PoissonRepetitions, TruncatedNegativeBinomial
from skdpnoise.privacy.sampled import PoissonSampled, largest_sampled_shift, poisson_sampled

__all__ = [
    "Adjacency",
    "GaussianLoss",
    "LossBudget",
    "LossCurve",
    "NormalShift",
    "NumericLoss",
    "PoissonRepetitions",
    "PoissonSampled",
    "PrivacyGuarantee",
    "PrivacyLoss",
    "Promised",
    "PureLoss",
    "RandomisedResponse",
    "Repetition",
    "TruncatedNegativeBinomial",
    "check_adjacency",
    "check_count",
    "check_real",
    "corollary6_epsilon",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "largest_sampled_shift",
    "poisson_sampled",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]
