"""Curves of the losses with a closed form, for composition with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_real
from skdpnoise.privacy import half_lines


class LossCurve(Protocol):
    """A symmetric pair of distributions for each size of a change: what a noise family is.

    Equal objects, which must be hashable, stand for the same curves. Values may err by 1e-12 of
    themselves, and epsilon by a few units in the last place: a claim must use :func:`raised`.
    """

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
        """Return the smallest δ at each ε ≥ 0 for a change of at most `shift`; broadcasts."""

    def max_loss(self, shift: ArrayLike) -> NDArray[np.float64]:
        """Return the largest loss for a change of at most `shift`; infinity if there is none."""


@runtime_checkable
class Amplified(LossCurve, Protocol):
    """A curve that follows from another one, whose losses become smaller."""

    @property
    def base(self) -> LossCurve:
        """The other curve."""

    def amplified(self, loss: ArrayLike) -> NDArray[np.float64]:
        """Return the loss of this curve that follows from one of the other."""


def ways_of(curve: LossCurve) -> tuple[LossCurve, LossCurve]:
    """Return the curves of both orders of the neighbours; one, twice, of a symmetric pair."""
    ways: tuple[LossCurve, LossCurve] = getattr(curve, "ways", (curve, curve))
    return ways


def raised(curve: LossCurve, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
    """Return the smallest δ at each ε for a change of at most `shift`, rounded up; broadcasts."""
    lower = np.asarray(epsilon, dtype=np.float64) * (1.0 - 2.0**-50)
    return np.minimum(curve.hockey_stick(lower, shift) * (1.0 + 1e-11), 1.0)


@dataclass(frozen=True, slots=True)
class RandomisedResponse:
    """All that ε-privacy alone promises: :class:`Promised` with δ = 0; the shift is ε.

    Examples
    --------
    >>> RandomisedResponse().hockey_stick([0.0, 1.0], 1.0).round(4)
    array([0.4621, 0.    ])
    """

    @np.errstate(under="ignore")
    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
        """Return the smallest δ at each ε."""
        shift = np.asarray(shift, dtype=np.float64)
        gap = np.minimum(np.asarray(epsilon, dtype=np.float64) - shift, 0.0)
        return np.asarray(np.abs(np.expm1(gap)) / (1.0 + np.exp(-shift)))

    def max_loss(self, shift: ArrayLike) -> NDArray[np.float64]:
        """Return the shift: it is the largest loss."""
        return np.asarray(shift, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Promised:
    r"""All that (ε, δ)-privacy alone promises; the shift is ε.

    .. math:: H(e) = \delta + (1 - \delta)
              \max\left(0, \frac{e^{\varepsilon} - e^{e}}{1 + e^{\varepsilon}}\right)

    Releases whose losses depend on released values are charged by it.

    Parameters
    ----------
    delta : float
        δ, in [0, 1).

    References
    ----------
    Kairouz, Oh and Viswanath, arXiv:1311.0776, Theorem 3.3.

    Examples
    --------
    >>> Promised(0.1).hockey_stick([0.0, 1.0], 1.0).round(4)
    array([0.5159, 0.1   ])
    """

    delta: float

    def __post_init__(self) -> None:
        delta = check_real("Promised", "delta", self.delta, high=1.0, low_closed=True)
        object.__setattr__(self, "delta", delta)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
        """Return the smallest δ at each ε."""
        pure = RandomisedResponse().hockey_stick(epsilon, shift)
        return np.asarray(self.delta + (1.0 - self.delta) * pure)

    def max_loss(self, shift: ArrayLike) -> NDArray[np.float64]:
        """Return infinity, or the shift where δ is 0."""
        largest = np.asarray(shift, dtype=np.float64)
        return np.full_like(largest, np.inf) if self.delta else largest


@dataclass(frozen=True, slots=True)
class NormalShift:
    """Normal distributions a shift μ apart: the curve of :func:`~skdpnoise.privacy.gdp_delta`.

    Examples
    --------
    >>> NormalShift().hockey_stick([0.0, 1.0], 1.0).round(4)
    array([0.3829, 0.1269])
    """

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
        """Return the smallest δ at each ε."""
        epsilon, shift = half_lines.pairs(epsilon, shift)
        point = half_lines.ratio(epsilon, shift) + 0.5 * shift
        return half_lines.threshold_delta(
            point, shift, lambda x: 0.5 * x * x, half_lines.mills_fall, half_lines.SQRT_2PI
        )

    def max_loss(self, shift: ArrayLike) -> NDArray[np.float64]:
        """Return infinity, but for no shift."""
        return half_lines.unbounded_loss(shift)
