"""Budgets of ε and δ: what they are divided into, and a cap that holds fits within them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from skdpnoise.accounting.limits import (
    ApproximateBudget,
    ChanceBudget,
    SpendingLimit,
    UnsettledError,
    pure_part,
)
from skdpnoise.compose.shares import whole_budget
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from tests._cases import each_value

WHOLE = ApproximateBudget(1.0, 1e-6)


@each_value(1)
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.1] * 10, [1 / 3] * 3, [0.7, 0.2, 0.1], [1.0]])
@pytest.mark.parametrize("whole", [WHOLE, ApproximateBudget(7.0, 1e-9)])
def test_shares_add_up_to_the_whole_at_most(whole, weights):
    parts = [whole.share(weight) for weight in weights]
    for name in ("epsilon", "delta"):
        total = sum(Fraction(getattr(part, name)) for part in parts)
        assert total <= Fraction(getattr(whole, name))
        assert float(total) >= 0.999999 * getattr(whole, name)


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_what_is_promised_for_a_row_keeps_what_is_promised_for_a_group(rows):
    # k steps of (e, d) are (k e, d (1 + exp(e) + ... + exp((k - 1) e))), and less than this.
    row = WHOLE.per_row(rows)
    steps = math.fsum(math.exp(k * row.epsilon) for k in range(rows)) * row.delta
    assert rows * row.epsilon <= WHOLE.epsilon
    assert steps <= WHOLE.delta
    assert row.for_group(rows).delta(WHOLE.epsilon) <= WHOLE.delta


def test_whatever_is_no_fit_may_cost_epsilon_alone():
    assert pure_part(WHOLE) == PureLoss(1.0)
    for other in (PureLoss(0.5), GaussianLoss(0.5)):
        assert pure_part(other) is other


def test_only_what_samples_records_needs_such_a_budget():
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    assert isinstance(whole_budget(guarantee, pure=False, samples=True), ApproximateBudget)
    assert whole_budget(guarantee, pure=True, samples=True) == PureLoss(1.0)
    pure = PrivacyGuarantee(1.0, 0.0)
    assert whole_budget(pure, pure=False, samples=True) == PureLoss(1.0)
    assert isinstance(whole_budget(guarantee, pure=False), GaussianLoss)


def charge(cap, label, cost, stated, adjacency="add_remove"):
    cap.part(label).charge("a release", cost, adjacency=adjacency, guarantee=stated)


def normal(epsilon, delta):
    return GaussianLoss(gdp_mu(epsilon, delta))


def test_fits_are_counted_by_what_they_state():
    cap = SpendingLimit(WHOLE, "add_remove")
    charge(cap, "a", normal(0.6, 5e-7), (0.6, 5e-7))
    charge(cap, "b", PureLoss(0.4), (0.4, 0.0))
    with pytest.raises(BudgetExceededError):
        charge(cap, "c", PureLoss(1e-6), (1e-6, 0.0))
    with pytest.raises(UnsettledError, match="refused"):
        cap.settle([])


@pytest.mark.parametrize(
    ("cost", "stated"),
    [
        (PureLoss(0.5), None),  # nothing says what it belongs to
        (PureLoss(0.500001), (0.5, 1e-9)),  # more than it states
        (normal(0.5, 2e-7), (0.5, 1e-7)),
        (normal(0.5, 1.1e-6), (0.5, 1.1e-6)),  # more δ than there is
        (PureLoss(1.01), (1.01, 0.0)),
        (type("Loss", (), {"delta": lambda *_: 0.0})(), (0.1, 0.0)),
    ],
    ids=["no statement", "beyond it", "beyond its delta", "delta", "epsilon", "a foreign loss"],
)
def test_what_is_not_within_the_limit_is_refused(cost, stated):
    cap = SpendingLimit(WHOLE, "add_remove")
    with pytest.raises(BudgetExceededError):
        charge(cap, "a", cost, stated)
    assert cap.refused


@pytest.mark.parametrize("limit", [WHOLE, PureLoss(1.0), ChanceBudget(9.0, 1e-4)], ids=str)
def test_every_charge_states_the_guarantee_of_its_fit(limit):
    cap = SpendingLimit(limit, "add_remove")
    cost = GaussianLoss(0.1) if isinstance(limit, ChanceBudget) else PureLoss(0.1)
    charge(cap, "a", cost, (0.5, 1e-7))
    with pytest.raises(BudgetExceededError):
        charge(cap, "a", cost, None)


def test_a_charge_is_for_the_neighbours_of_the_limit():
    with pytest.raises(BudgetExceededError):
        charge(SpendingLimit(WHOLE, "add_remove"), "a", PureLoss(0.1), (0.1, 0.0), "replace_one")


@pytest.mark.parametrize("stated", [(math.nan, 0.0), (-1.0, 0.9), (0.5, math.nan)])
def test_a_guarantee_that_is_none_is_refused_and_remembered(stated):
    cap = SpendingLimit(WHOLE, "add_remove")
    with pytest.raises(BudgetExceededError):
        charge(cap, "a", PureLoss(0.1), stated)
    with pytest.raises(UnsettledError, match="refused"):
        cap.settle([])
