"""Curves of repeated runs from few dots, for searches that try many of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy import half_lines
from skdpnoise.privacy.curves import LossCurve, NormalShift
from skdpnoise.privacy.numeric.loss import NumericLoss
from skdpnoise.privacy.repetition.curve import (
    Composed,
    Detail,
    Dots,
    Repetition,
    chords,
    table,
    table_of,
)

__all__ = ["Sketch", "sketched"]

_FEW = Detail(step=0.25, composed_step=0.5, priced=3, ended=1e-25)


@dataclass(frozen=True, slots=True)
class Sketch:
    """The curve of repeated runs, or of a composition, from chords between few dots."""

    # Chords lie above the curve, so that what is composed of them bounds δ too, a little less
    # tightly than with many dots.

    whole: Repetition | Composed

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> NDArray[np.float64]:
        epsilon, shift = half_lines.pairs(epsilon, shift)
        values = np.zeros(epsilon.shape)
        for one in np.unique(shift[shift > 0.0]):
            here = shift == one
            values[here] = chords(*_dots(self.whole, float(one)), epsilon[here])
        return values

    def max_loss(self, shift: ArrayLike) -> NDArray[np.float64]:
        return self.whole.max_loss(shift)


def sketched(curve: LossCurve) -> LossCurve:
    """Return a bound of a curve, from few dots where many take a while."""
    # A chance of disclosure makes a curve flat from some ε on, which few dots would miss.
    if isinstance(curve, Composed) and math.isfinite(float(curve.max_loss(1.0))):
        return Sketch(curve)
    if isinstance(curve, Repetition):
        base = sketched(curve.base)
        if base is not curve.base or isinstance(base, NormalShift):
            return Sketch(Repetition(curve.law, base))
    return curve


@lru_cache(maxsize=64)
def _dots(whole: Repetition | Composed, shift: float) -> Dots:
    if isinstance(whole, Repetition):
        return table(whole, shift, _FEW)
    loss = NumericLoss(tuple((sketched(curve), at, n) for curve, at, n in whole.terms))
    return table_of(loss.deltas, loss.pure_epsilon, _FEW)
