"""What a ledger says that it covers is what it then charges, and what it says is left is left."""

from __future__ import annotations

import math

import pytest

from skdpnoise import PrivacyLedger
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, poisson_sampled
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value

NUMERIC = calibrate("iid_flipped_huber", SensitivityProfile([1.0]), PrivacyGuarantee(0.2, 1e-7))


def ledger(**facts):
    made = PrivacyLedger("trips", 1.0, 1e-6, storage="memory", **facts)
    made.charge("before", GaussianLoss(0.05))
    made.charge("before", PureLoss(0.1))
    return made


@each_value(1)
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("pure", [0.1, 0.5, 0.9, 1.5])
def test_what_is_covered_is_what_can_be_charged(pure, adaptive):
    made = ledger(adaptive=adaptive)
    for costs in ([PureLoss(pure)], [PureLoss(0.5 * pure), GaussianLoss(0.1)]):
        before = made.charges()
        covered, left = made.covers(*costs), made.left_after(*costs)
        assert made.charges() == before
        copy = ledger(adaptive=adaptive)
        try:
            for cost in costs:
                copy.charge("after", cost)
        except BudgetExceededError:
            assert not covered
            assert left < 0.0
        else:
            assert covered
            assert left == pytest.approx(copy.total().left, abs=1e-9)


def test_a_mechanism_costs_what_its_noise_does_and_nothing_is_always_covered():
    made = ledger()
    left = made.total().left
    assert 0.0 < made.left_after(NUMERIC) < left
    assert made.covers(NUMERIC)
    assert made.covers()
    assert made.left_after() == pytest.approx(left)
    pure = PrivacyLedger("pure", 1.0, 0.0, storage="memory")
    assert pure.left_after(GaussianLoss(0.1)) == -math.inf
    assert not pure.covers(GaussianLoss(0.05))


@pytest.mark.parametrize("ask", ["covers", "left_after"])
def test_costs_for_other_neighbours_are_refused(ask):
    made = ledger()
    with pytest.raises(ValueError, match="'adjacency' parameter of PrivacyLedger"):
        getattr(made, ask)(PureLoss(0.1), adjacency="add_remove")
    with pytest.raises(ValueError, match="'unit' parameter of PrivacyLedger"):
        getattr(made, ask)(PureLoss(0.1), unit="person")
    with pytest.raises(TypeError, match="'costs' parameter of PrivacyLedger must be a PrivacyLoss"):
        getattr(made, ask)(0.1)
    with pytest.raises(ValueError, match="add"):
        getattr(made, ask)(poisson_sampled(GaussianLoss(1.0), 0.1))
