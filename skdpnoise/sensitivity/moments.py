r"""How far one record can move the first two moments of columns, jointly.

.. math:: f = \Bigl(a_j \sum_i u_{ij}, \; b_j \sum_i u_{ij}^2\Bigr)_j

*Replace one.* Each pair moves by (a (u − v), b (u² − v²)), at most 2a and b. With d = |u − v| and
u² − v² = (u − v)(u + v), where |u + v| ≤ 2 − d,

.. math:: \Delta_1 = \max_{0 \le d \le 2} d \, (a + b (2 - d)), \qquad
          \Delta_2^2 = \max_{0 \le d \le 2} d^2 (a^2 + b^2 (2 - d)^2)

Values at opposite ends move the sum most and the sum of squares not at all: for b ≤ a/2,
:math:`\Delta_1 = 2a`, and for :math:`b \le \tfrac12 \varphi^{5/2} a` with the golden ratio φ (b ≤
1.665 a), :math:`\Delta_2 = 2a`: squares come for nothing. Beyond, the inner maximum is at d = (a +
2b)/(2b), respectively :math:`d = \tfrac12 (3 - \sqrt{1 - 2a^2/b^2})`. Columns move independently,
so that l1 bounds add, and squares of l2 bounds do.

*Add or remove one.* Each pair moves by (a u, b u²), whose corner (a, b) is reached: there is no
better joint bound.

Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Definition 3.1. The
joint bound is ours.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy import Adjacency, check_adjacency
from skdpnoise.privacy.checks import check_array
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.sensitivity.profile import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

__all__ = ["FREE_L1", "FREE_L2", "clipped_moments"]

FREE_L2 = 0.5 * ((1.0 + math.sqrt(5.0)) / 2.0) ** 2.5
"""Largest b/a for which sums of squares add nothing to the l2 bound of the sums beside them."""

FREE_L1 = 0.5
"""Largest b/a for which sums of squares add nothing to the l1 bound of the sums beside them."""


@shared_texts
def clipped_moments(
    first: ArrayLike, second: ArrayLike, adjacency: Adjacency = "replace_one"
) -> SensitivityProfile:
    """Bound weighted sums and sums of squares of values u in [−1, 1], one pair for each column."""
    adjacency = check_adjacency("clipped_moments", adjacency)
    a = np.atleast_1d(np.asarray(first))
    a = check_array("clipped_moments", "first", a, sign="positive")
    b = np.atleast_1d(np.asarray(second))
    b = check_array("clipped_moments", "second", b, a.shape, sign="positive")
    if adjacency == "add_remove":
        return SensitivityProfile(np.concatenate([a, b]))
    box = np.concatenate([2.0 * a, b])
    l1 = rounded_up(float(np.sum(_largest_l1(a, b))), a.size)
    l2 = rounded_up(math.sqrt(rounded_up(float(np.sum(_largest_square(a, b))), a.size)))
    return SensitivityProfile(box, l1=l1, l2=l2)


def _largest_l1(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    inner = np.minimum((a + 2.0 * b) / (2.0 * b), 2.0)
    largest: NDArray[np.float64] = np.maximum(2.0 * a, inner * (a + b * (2.0 - inner)))
    return largest


def _largest_square(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    inner = 0.5 * (3.0 - np.sqrt(np.maximum(1.0 - 2.0 * (a / b) ** 2, 0.0)))
    at_inner = inner**2 * (a**2 + b**2 * (2.0 - inner) ** 2)
    largest: NDArray[np.float64] = np.maximum(4.0 * a**2, at_inner)
    return largest
