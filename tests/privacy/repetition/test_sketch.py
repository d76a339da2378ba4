"""Curves from few dots are as safe as those of many, and close to them."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.mechanisms import calibrate
from skdpnoise.mechanisms.selection import repeated_loss
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PoissonRepetitions,
    Promised,
    PureLoss,
    TruncatedNegativeBinomial,
)
from skdpnoise.privacy.numeric.loss import bounds_near
from skdpnoise.privacy.repetition.sketch import Sketch, sketched
from skdpnoise.sensitivity import SensitivityProfile

LAW = TruncatedNegativeBinomial(eta=3.0, gamma=0.18)
TWO = calibrate("inid_laplace", SensitivityProfile([1.0, 3.0]), PureLoss(0.3)).own_loss()
LOSSES = {
    "normal": repeated_loss(GaussianLoss(0.07), LAW),
    "normal, many runs": repeated_loss(GaussianLoss(0.3), TruncatedNegativeBinomial(0.5, 0.01)),
    "normal, Poisson": repeated_loss(GaussianLoss(0.1), PoissonRepetitions(12.0)),
    "two coordinates": repeated_loss(TWO, LAW),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOSSES)
def test_a_sketch_is_not_below_its_curve_and_composes_to_nearly_the_same(kind):
    ((curve, shift, _),) = LOSSES[kind].terms
    sketch = sketched(curve)
    assert isinstance(sketch, Sketch)
    end = min(float(curve.max_loss(shift)), 8.0 * shift)
    epsilon = np.linspace(0.0, end, 500)
    whole, few = (one.hockey_stick(epsilon, shift) for one in (curve, sketch))
    # Both are bounds; where prices are searched for, either may come out a little lower.
    assert (few >= whole * (1.0 - 2e-3) - 1e-30).all()
    assert sketch.max_loss(shift) == curve.max_loss(shift)
    loss = PureLoss(0.1) + LOSSES[kind]
    at = loss.epsilon(1e-6)
    epsilons = []
    for one in (curve, sketch):
        terms = (PureLoss(0.1) + NumericLoss(((one, shift, 1),))).terms
        groups = [(each, np.array([size]), np.array([float(n)])) for each, size, n in terms]
        epsilons.append(bounds_near(groups, 1e-6, at, coarse=True)[1])
    assert epsilons[0] * (1.0 - 1e-4) <= epsilons[1] <= 1.003 * epsilons[0]


def test_curves_that_are_quick_or_flat_in_the_end_are_taken_as_they_are():
    chance = NumericLoss(((Promised(1e-8), 0.2, 1),))
    for loss in (chance, repeated_loss(chance, LAW), repeated_loss(chance + chance + TWO, LAW)):
        for curve, _, _ in loss.terms:
            assert sketched(curve) is curve


def test_many_deltas_from_one_lattice_are_never_too_small_and_close():
    losses = [TWO, PureLoss(0.2) + GaussianLoss(0.3), PureLoss(0.1).numeric().compose(30)]
    chance = NumericLoss(((Promised(1e-9), 0.0, 1),))
    for loss in [*losses, losses[0] + chance, chance]:
        epsilon = np.linspace(0.0, 1.2, 25)
        found = loss.deltas(epsilon)
        # Not below the curve, and not above what it is a hundredth before.
        exact, before = (
            np.array([loss.delta(float(e)) for e in np.maximum(epsilon - less, 0.0)])
            for less in (0.0, 0.01)
        )
        assert (found >= exact * (1.0 - 1e-6) - 1e-18).all()
        assert (found <= before * 1.01 + 1e-15).all()
    assert (NumericLoss(()).deltas(np.array([0.0, 1.0])) == 0.0).all()
