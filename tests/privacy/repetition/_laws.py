"""Laws of the number of runs, for the tests of what the best run costs."""

import numpy as np
import pytest

from skdpnoise.privacy import PoissonRepetitions, TruncatedNegativeBinomial

LAWS = {
    "eta -0.7": TruncatedNegativeBinomial.with_mean(-0.7, 3.0),
    "eta -0.5": TruncatedNegativeBinomial.with_mean(-0.5, 8.0),
    "eta 0": TruncatedNegativeBinomial.with_mean(0.0, 20.0),
    "eta 1": TruncatedNegativeBinomial.with_mean(1.0, 20.0),
    "eta 2.5": TruncatedNegativeBinomial.with_mean(2.5, 40.0),
    "hardly more than one": TruncatedNegativeBinomial(0.5, 0.9),
    "Poisson": PoissonRepetitions(12.0),
    "often none": PoissonRepetitions(0.7),
}
EVERY = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)


def probabilities(law):
    """Return k = 0, 1, ... and their probabilities, all but 1e-13 of them."""
    k = np.arange(20_000)
    pmf = law.pmf(k)
    n = int(np.searchsorted(np.cumsum(pmf), 1.0 - 1e-13)) + 1
    return k[:n], pmf[:n]
