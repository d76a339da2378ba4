"""Losses: curves, exact composition, shares, and mixing of kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyLoss, PureLoss, gdp_delta


@pytest.mark.parametrize("loss", [PureLoss(0.7), GaussianLoss(0.7)])
def test_losses_follow_the_protocol_and_hash_as_values(loss):
    assert isinstance(loss, PrivacyLoss)
    assert loss == type(loss)(0.7)
    assert len({loss, type(loss)(0.7)}) == 1


def test_pure_losses_compose_by_adding_epsilon():
    assert PureLoss(0.5) + PureLoss(1.0) == PureLoss(1.5)
    assert PureLoss(0.5).compose(6) == PureLoss(3.0)


def test_gaussian_losses_compose_by_adding_squares():
    assert GaussianLoss(3.0) + GaussianLoss(4.0) == GaussianLoss(5.0)
    assert GaussianLoss(0.5).compose(16) == GaussianLoss(2.0)
    many = GaussianLoss(0.0)
    for _ in range(16):
        many = many + GaussianLoss(0.5)
    assert many.mu == pytest.approx(2.0, rel=1e-15)


def test_composition_of_gaussians_is_the_loss_of_the_joint_release():
    # Two coordinates moved by d under scales s, against one coordinate along the same direction.
    d, s = np.array([1.0, 2.0]), np.array([4.0, 5.0])
    one_by_one = GaussianLoss(d[0] / s[0]) + GaussianLoss(d[1] / s[1])
    assert one_by_one.delta(0.3) == pytest.approx(gdp_delta(np.linalg.norm(d / s), 0.3), rel=1e-12)


def test_the_curve_of_pure_privacy_is_that_of_randomised_response():
    loss = PureLoss(1.2)
    truth = np.exp(1.2) / (1 + np.exp(1.2))
    for epsilon in (0.0, 0.3, 1.0, 1.19, 1.2, 5.0):
        expected = max(0.0, truth - math.exp(epsilon) * (1 - truth))
        assert loss.delta(epsilon) == pytest.approx(expected, rel=1e-12, abs=1e-15)
        if expected > 0:
            assert loss.epsilon(expected) == pytest.approx(epsilon, abs=1e-10)
    assert loss.epsilon(0.0) == 1.2
    assert loss.epsilon(0.99) == 0.0


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
def test_epsilon_of_pure_privacy_is_rounded_to_the_safe_side(delta):
    loss = PureLoss(1.2)
    assert loss.delta(loss.epsilon(delta)) <= delta


def test_a_gaussian_loss_has_no_finite_epsilon_without_delta():
    assert GaussianLoss(1.0).epsilon(0.0) == math.inf
    assert GaussianLoss(0.0).epsilon(0.0) == 0.0
    assert GaussianLoss(1.0).epsilon(1e-6) == pytest.approx(4.87, abs=0.05)


@pytest.mark.parametrize("whole", [PureLoss(0.3), GaussianLoss(0.3)])
@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.1, 0.2, 0.7), (1 / 3, 1 / 3, 1 / 3), (1.0,)])
def test_shares_compose_to_no_more_than_the_whole_and_no_less_by_much(whole, fractions):
    parts = [whole.share(fraction) for fraction in fractions]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.delta(0.01) <= whole.delta(0.01)
    assert total.delta(0.01) == pytest.approx(whole.delta(0.01), rel=1e-9)


def test_losses_of_different_kinds_make_a_numeric_one_in_either_order():
    for mixed in (PureLoss(0.5) + GaussianLoss(0.4), GaussianLoss(0.4) + PureLoss(0.5)):
        assert isinstance(mixed, NumericLoss)
        assert mixed.delta(0.3) > max(PureLoss(0.5).delta(0.3), GaussianLoss(0.4).delta(0.3))
        assert mixed.delta(0.3) == pytest.approx((PureLoss(0.5) + GaussianLoss(0.4)).delta(0.3))


@pytest.mark.parametrize("loss", [PureLoss(0.5), GaussianLoss(0.5)])
def test_only_losses_can_be_added(loss):
    with pytest.raises(TypeError, match="unsupported operand"):
        loss + 1.0


@pytest.mark.parametrize("kind", [PureLoss, GaussianLoss])
def test_losses_refuse_what_makes_no_sense(kind):
    for value in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match=kind.__name__):
            kind(value)
    with pytest.raises(TypeError):
        kind("1")
    for fraction in (0.0, -0.5, 1.0001):
        with pytest.raises(ValueError, match="fraction"):
            kind(1.0).share(fraction)
    for count in (0, -1):
        with pytest.raises(ValueError, match="count"):
            kind(1.0).compose(count)
    for count in (1.5, True):
        with pytest.raises(TypeError, match="count"):
            kind(1.0).compose(count)
    with pytest.raises(ValueError, match="delta"):
        kind(1.0).epsilon(1.0)
    with pytest.raises(ValueError, match="epsilon"):
        kind(1.0).delta(-1.0)


def test_losses_print_as_what_they_are():
    assert (str(PureLoss(0.25)), repr(GaussianLoss(0.5))) == ("0.25-DP", "GaussianLoss(mu=0.5)")


@pytest.mark.parametrize(
    "loss", [PureLoss(1.0), PureLoss(0.3), GaussianLoss(1.0), GaussianLoss(2.7)]
)
def test_the_share_of_a_row_never_makes_more_than_the_loss_of_a_group(loss):
    for rows in range(1, 200):
        group = loss.per_row(rows).for_group(rows)
        size = "mu" if isinstance(loss, GaussianLoss) else "pure_epsilon"
        assert getattr(group, size) <= getattr(loss, size)
        assert getattr(group, size) == pytest.approx(getattr(loss, size), rel=1e-11)
        assert loss.for_group(rows) == type(loss)(getattr(loss, size) * rows)
    assert loss.per_row(1) == loss.for_group(1) == loss
    for wrong in (0, -1, 1.5, True):
        with pytest.raises((ValueError, TypeError), match="rows"):
            loss.per_row(wrong)
        with pytest.raises((ValueError, TypeError), match="rows"):
            loss.for_group(wrong)


def test_a_group_costs_what_its_rows_cost_one_after_another():
    """A pure loss of m steps is the sum; a Gaussian one more than m independent releases."""
    assert PureLoss(0.25).for_group(4) == PureLoss(0.25).compose(4)
    assert GaussianLoss(0.25).for_group(4) == GaussianLoss(0.25).compose(16)
