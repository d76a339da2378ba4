"""Every mechanism is charged for, and never more than the guarantee covers."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

from skdpnoise.ledger import Account, BudgetExceededError
from skdpnoise.mechanisms import Mechanism, calibrate
from skdpnoise.noises import get_noise
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PrivacyGuarantee,
    Promised,
    PureLoss,
    gdp_mu,
)
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import quick

ONE = SensitivityProfile(np.ones(1))


class Notebook:
    """A ledger that writes down what it is asked for, up to a number of charges."""

    def __init__(self, most=10):
        self.most, self.charges = most, []

    def charge(self, label, cost, **facts):
        if len(self.charges) >= self.most:
            raise BudgetExceededError("nothing is left")
        self.charges.append((label, cost, facts))


def laplace(epsilon):
    return calibrate("iid_laplace", ONE, PureLoss(epsilon))


def test_shares_of_the_budget_fit_and_one_more_release_does_not():
    whole = GaussianLoss(gdp_mu(1.0, 1e-6))
    account = Account(PrivacyGuarantee(1.0, 1e-6))
    for fraction in (0.5, 0.3, 0.2):
        account.charge("part", calibrate("iid_gaussian", ONE, whole.share(fraction)))
    before = str(account.report("Test", secure=True))
    with pytest.raises(BudgetExceededError, match=r"'more' would cost .* Raise epsilon"):
        account.charge("more", calibrate("iid_gaussian", ONE, whole.share(1e-4)))
    assert str(account.report("Test", secure=True)) == before


def test_the_total_is_the_exact_composition():
    account = Account(PrivacyGuarantee(10.0, 1e-3))
    for _ in range(4):
        account.charge("part", calibrate("iid_gaussian", ONE, GaussianLoss(0.5)))
    assert account.report("Test", secure=True).total.mu == pytest.approx(1.0, rel=1e-6)


def test_gaussian_noise_is_refused_where_only_pure_privacy_will_do():
    account = Account(PrivacyGuarantee(5.0))
    with pytest.raises(BudgetExceededError, match="delta=0"):
        account.charge("part", calibrate("iid_gaussian", ONE, GaussianLoss(0.01)))


def test_releases_in_a_row_of_one_kind_are_reported_together():
    account = Account(PrivacyGuarantee(1.0))
    for scale in (0.1, 0.2):
        account.charge("digits", calibrate("iid_laplace", ONE, PureLoss(scale)))
    account.charge("sums", calibrate("iid_laplace", ONE, PureLoss(0.3)))
    digits, sums = account.report("Test", secure=True).releases
    assert (digits.label, digits.n_releases, sums.label) == ("digits", 2, "sums")
    assert digits.scale == pytest.approx((5.0, 10.0), rel=1e-6)
    assert digits.loss.pure_epsilon == pytest.approx(0.3)


def test_an_empty_account_has_nothing_to_report():
    with pytest.raises(ValueError, match="Nothing was charged"):
        Account(PrivacyGuarantee(1.0)).report("Test", secure=True)


def test_an_empty_account_may_be_expected_to_be_empty():
    report = Account(PrivacyGuarantee(1.0)).report("Test", secure=True, empty=True)
    assert report.releases == ()
    assert report.total == PureLoss(0.0)
    assert "total: 0-DP" in str(report)


def test_for_groups_what_a_mechanism_costs_is_stated_for_groups():
    for whole, noise in ((PureLoss(1.0), "iid_laplace"), (GaussianLoss(0.5), "iid_gaussian")):
        account = Account(PrivacyGuarantee(5.0, 1e-3), rows_per_group=4)
        account.charge("half", calibrate(noise, ONE, whole.per_row(4).share(0.5)))
        account.charge("half", calibrate(noise, ONE, whole.per_row(4).share(0.5)))
        report = account.report("Test", secure=True)
        assert report.total.epsilon(1e-3) == pytest.approx(whole.epsilon(1e-3), rel=1e-6)
        assert report.rows_per_group == 4


def test_for_groups_a_budget_for_rows_does_not_fit():
    account = Account(PrivacyGuarantee(1.0), rows_per_group=2)
    with pytest.raises(BudgetExceededError):
        account.charge("one", laplace(0.51))
    account.charge("one", laplace(0.5))


def test_a_plan_is_paid_at_once_and_only_once():
    ledger = Notebook()
    account = Account(PrivacyGuarantee(1.0), ledger=ledger)
    account.spend([PureLoss(0.9)], "iid_laplace")
    assert len(ledger.charges) == 1
    account.charge("first", laplace(0.2))
    account.charge("second", laplace(0.3))
    ((label, cost, facts),) = ledger.charges
    assert (label, cost) == ("fit", PureLoss(0.9))
    assert facts == {
        "guarantee": (1.0, 0.0),
        "adjacency": "replace_one",
        "unit": "record",
        "mechanism": "iid_laplace",
        "estimator": None,
        "parameters": None,
    }


def test_without_a_plan_the_one_mechanism_is_paid_by_its_own_loss():
    ledger, mechanism = Notebook(), laplace(0.2)
    account = Account(PrivacyGuarantee(1.0), ledger=ledger)
    account.charge("first", mechanism)
    ((label, cost, facts),) = ledger.charges
    assert (label, cost, facts["guarantee"]) == ("first", mechanism.own_loss(), (1.0, 0.0))
    with pytest.raises(
        RuntimeError, match=r"second charge of a fit without a plan.*Account\.spend"
    ):
        account.charge("second", mechanism)
    assert len(ledger.charges) == 1


def test_stages_are_paid_at_once_and_compose_tightly():
    ledger = Notebook()
    account = Account(PrivacyGuarantee(1.0), ledger=ledger, rows_per_group=2)
    account.spend([PureLoss(0.2), PureLoss(0.3)], "iid_laplace")
    account.charge("first", laplace(0.2))
    ((_, cost, facts),) = ledger.charges
    assert cost == PureLoss(0.4).numeric() + PureLoss(0.6).numeric()
    assert cost.epsilon(0.01) < PureLoss(1.0).epsilon(0.01)
    assert facts["unit"] == "group"
    single = Notebook()
    Account(PrivacyGuarantee(1.0, 1e-6), ledger=single).spend([GaussianLoss(0.1)])
    assert single.charges[0][1] == GaussianLoss(0.1)


def test_what_the_ledger_refuses_is_not_charged_to_the_account():
    account = Account(PrivacyGuarantee(1.0), ledger=Notebook(most=0))
    with pytest.raises(BudgetExceededError, match="nothing is left"):
        account.charge("first", laplace(0.2))
    with pytest.raises(BudgetExceededError, match="nothing is left"):
        account.spend([PureLoss(0.2), PureLoss(0.3)])
    with pytest.raises(ValueError, match="nothing to report"):
        account.report("Test", secure=True)


def test_what_the_guarantee_does_not_cover_is_not_charged_to_the_ledger():
    ledger = Notebook()
    account = Account(PrivacyGuarantee(1.0), ledger=ledger)
    with pytest.raises(BudgetExceededError, match="'large' would cost"):
        account.charge("large", laplace(1.1))
    assert ledger.charges == []


def test_an_error_is_noted_if_and_only_if_something_was_paid():
    account = Account(PrivacyGuarantee(1.0), ledger=Notebook())
    for paid in (False, True):
        if paid:
            account.charge("first", laplace(0.5))
        with pytest.raises(KeyboardInterrupt) as caught, account.noted():
            raise KeyboardInterrupt
        notes = getattr(caught.value, "__notes__", [])
        assert len(notes) == paid
    assert "the ledger of 'Notebook'" in notes[0]
    assert "(epsilon=1, delta=0) stays spent" in notes[0]


def test_threads_and_copies_spend_a_guarantee_once():
    mechanism = calibrate("iid_laplace", SensitivityProfile([1.0]), PureLoss(0.75))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            account, accepted, barrier = Account(PrivacyGuarantee(1.0)), [], threading.Barrier(4)
            copies = [account, copy.copy(account), copy.deepcopy(account), account]

            def charge(one, accepted=accepted, barrier=barrier):
                barrier.wait()
                with suppress(BudgetExceededError):
                    one.charge("release", mechanism)
                    accepted.append(one)

            threads = [threading.Thread(target=charge, args=(one,)) for one in copies]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(accepted) == 1
            assert len(account.report("Test", secure=True).releases) == 1
    finally:
        sys.setswitchinterval(interval)


def test_an_account_is_not_pickled():
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(Account(PrivacyGuarantee(1.0)))


def numeric(epsilon, count=1):
    """A mechanism with the loss of several releases of Laplace noise."""
    return Costing(NumericLoss(((get_noise("laplace"), epsilon, count),)))


class Costing(Mechanism):
    """A mechanism of any loss."""

    noise, sensitivity, scale, grid_size = "iid_laplace", ONE, np.ones(1), np.ones(1)

    def __init__(self, loss):
        self.loss = loss

    def privacy_loss(self):
        return self.loss


def spent(account):
    return [release.label for release in account.report("Test", secure=True, empty=True).releases]


def test_losses_are_fixed_once_and_before_the_first_charge():
    planned = Account(PrivacyGuarantee(1.0))
    planned.spend([PureLoss(0.5)])
    with pytest.raises(RuntimeError, match="must be called once, and before the first charge"):
        planned.spend([PureLoss(0.5)])
    late = Account(PrivacyGuarantee(1.0))
    late.charge("first", laplace(0.2))
    with pytest.raises(RuntimeError, match="must be called once, and before the first charge"):
        late.spend([PureLoss(0.5)])


def test_a_plan_beyond_the_guarantee_is_refused_before_the_ledger_is_charged():
    ledger = Notebook()
    account = Account(PrivacyGuarantee(1.0), ledger=ledger)
    with pytest.raises(BudgetExceededError, match="The stages of a fit would cost more than"):
        account.spend([PureLoss(0.5), PureLoss(0.6)])
    assert ledger.charges == []


def test_a_stage_takes_what_adds_up_to_its_loss_and_no_more():
    for kind, noise in ((PureLoss, "iid_laplace"), (GaussianLoss, "iid_gaussian")):
        account = Account(PrivacyGuarantee(3.0, 0.01))
        account.spend([kind(0.4), kind(0.6)])
        for share in (0.5, 0.5 - 1e-9):
            account.charge("first", calibrate(noise, ONE, kind(0.4).share(share)))
        account.charge("second", calibrate(noise, ONE, kind(0.6)))
        with pytest.raises(RuntimeError, match=r"'more' costs .* fits into none of the losses"):
            account.charge("more", calibrate(noise, ONE, kind(0.4).share(1e-3)))
        assert spent(account) == ["first", "second"]


def test_two_stages_never_pay_for_one_charge_together():
    # Both have 0.5 in all, and a ledger was charged for two small losses, not for a large one.
    account = Account(PrivacyGuarantee(1.0, 1e-6))
    account.spend([PureLoss(0.25), PureLoss(0.25)])
    with pytest.raises(RuntimeError, match="fits into none"):
        account.charge("large", laplace(0.3))
    account.charge("small", laplace(0.2))
    account.charge("small", laplace(0.2))
    with pytest.raises(RuntimeError, match=r"0\.25-DP less 0\.2-DP, 0\.25-DP less 0\.2-DP"):
        account.charge("the rests of both", laplace(0.1))


def test_a_numeric_stage_takes_its_own_loss_once_and_nothing_else():
    loss = numeric(0.3, 2)
    others = [numeric(0.2, 2), numeric(0.3, 1), numeric(0.6), laplace(0.1)]
    account = Account(PrivacyGuarantee(2.0, 1e-3))
    account.spend([loss.privacy_loss()])
    for other in others:
        with pytest.raises(RuntimeError, match="fits into none"):
            account.charge("other", other)
    account.charge("planned", loss)
    for again in [loss, *others]:
        with pytest.raises(RuntimeError, match="fits into none"):
            account.charge("again", again)
    assert spent(account) == ["planned"]


@pytest.mark.parametrize("first", [laplace(0.2), numeric(0.2)])
def test_without_a_plan_losses_of_several_kinds_are_refused_whatever_is_left(first):
    account = Account(PrivacyGuarantee(9.0, 0.1))
    account.charge("first", first)
    for later in (numeric(0.01), calibrate("iid_gaussian", ONE, GaussianLoss(0.01))):
        with pytest.raises(RuntimeError, match="only if none of them was chosen by looking"):
            account.charge("later", later)
    assert spent(account) == ["first"]


@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_charges_within_its_stages_is_refused_while_stages_come_in_turn(seed):
    # What an honest fit does: in every stage pieces of its loss, some of it or all, or nothing.
    rng = np.random.default_rng(seed)
    for _ in range(50):
        kind = (PureLoss, GaussianLoss)[rng.integers(2)]
        stages = [kind(float(one)) for one in rng.uniform(0.01, 0.2, rng.integers(1, 6))]
        account = Account(PrivacyGuarantee(2.0, 0.1))
        account.spend(stages)
        for number, stage in enumerate(stages):
            parts = rng.dirichlet(np.ones(rng.integers(1, 5))) * rng.choice([0.3, 1.0])
            for part in parts[: rng.integers(len(parts) + 1)]:
                account.charge(f"stage {number}", Costing(stage.share(max(float(part), 1e-9))))


@quick("0")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_asked_for_each_stage_covers_what_was_charged_to_it(seed):
    # An analyst asks for anything at all; what is accepted is packed into stages by brute force.
    rng = np.random.default_rng(seed)
    losses = [PureLoss(one) for one in (0.1, 0.2, 0.35)]
    losses += [GaussianLoss(one) for one in (0.1, 0.3)] + [numeric(0.2).loss, numeric(0.1, 3).loss]
    for _ in range(60):
        stages = [losses[k] for k in rng.integers(len(losses), size=3)]
        account, accepted = Account(PrivacyGuarantee(5.0, 0.1)), []
        account.spend(stages)
        for _ in range(12):
            asked = losses[rng.integers(len(losses))]
            with suppress(RuntimeError):
                account.charge("any", Costing(asked))
                accepted.append(asked)
        assert any(
            all(
                covers(stage, [a for a, where in zip(accepted, places, strict=True) if where == k])
                for k, stage in enumerate(stages)
            )
            for places in itertools.product(range(3), repeat=len(accepted))
        )


def covers(stage, losses):
    """Return whether a stage is at least these losses together, however they were chosen."""
    if isinstance(stage, PureLoss) and all(isinstance(loss, PureLoss) for loss in losses):
        return math.fsum(loss.pure_epsilon for loss in losses) <= stage.pure_epsilon * (1 + 1e-12)
    if isinstance(stage, GaussianLoss) and all(isinstance(loss, GaussianLoss) for loss in losses):
        return math.fsum(loss.mu**2 for loss in losses) <= stage.mu**2 * (1 + 1e-12)
    return losses in ([], [stage])


def promised(epsilon):
    return NumericLoss(((Promised(9e-4), epsilon, 1),))


def test_what_hangs_on_a_pure_release_is_fixed_after_it_within_what_that_leaves():
    account = Account(PrivacyGuarantee(1.0, 1e-3))
    account.spend([promised(0.9)])
    account.charge("count", laplace(0.2))
    steps = numeric(0.05, 20)
    assert steps.loss.delta(0.7) < 9e-4 < steps.loss.delta(0.2)
    with pytest.raises(
        BudgetExceededError, match=r"after 0\.2-DP only \(epsilon=0\.7, delta=0\.0009"
    ):
        account.fix([numeric(0.05, 60).loss])
    account.fix([steps.loss, GaussianLoss(0.05)])
    with pytest.raises(RuntimeError, match="fits into none"):
        account.charge("other steps", numeric(0.05, 19))
    account.charge("scales", calibrate("iid_gaussian", ONE, GaussianLoss(0.05)))
    account.charge("steps", steps)
    assert spent(account) == ["count", "scales", "steps"]
    assert account.report("Test", secure=True).planned == promised(0.9)


def test_a_promise_takes_pure_losses_up_to_its_epsilon():
    account = Account(PrivacyGuarantee(1.0, 1e-3))
    account.spend([promised(0.5)])
    account.charge("first", laplace(0.3))
    with pytest.raises(RuntimeError, match="fits into none"):
        account.charge("second", laplace(0.3))
    account.charge("second", laplace(0.1))
    with pytest.raises(BudgetExceededError, match=r"epsilon=0\.1, delta=0\.0009"):
        account.fix([PureLoss(0.2)])


def test_nothing_is_fixed_anew_where_no_promise_was_planned_or_another_loss_was_charged():
    plans = [None, [GaussianLoss(0.1)], [promised(0.4), PureLoss(0.2)]]
    for stages in plans:
        account = Account(PrivacyGuarantee(1.0, 1e-3))
        if stages:
            account.spend(stages)
        with pytest.raises(RuntimeError, match=r"Account\.fix needs a plan of one stage"):
            account.fix([PureLoss(0.1)])
    account = Account(PrivacyGuarantee(1.0, 1e-3))
    account.spend([promised(0.9)])
    account.charge("count", laplace(0.2))
    account.fix([numeric(0.1).loss])
    account.charge("steps", numeric(0.1))
    with pytest.raises(RuntimeError, match="only pure losses charged"):
        account.fix([numeric(0.1).loss])
