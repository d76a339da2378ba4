"""Every mechanism is charged for, and never more than the guarantee covers."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

from skdpnoise.ledger import Account, BudgetExceededError
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import SensitivityProfile

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


def test_without_a_plan_every_mechanism_is_paid_by_itself_and_the_guarantee_stated_once():
    ledger = Notebook()
    account = Account(PrivacyGuarantee(1.0), ledger=ledger)
    mechanisms = laplace(0.2), laplace(0.3)
    for name, mechanism in zip(("first", "second"), mechanisms, strict=True):
        account.charge(name, mechanism)
    assert [label for label, _, _ in ledger.charges] == ["first", "second"]
    assert [cost for _, cost, _ in ledger.charges] == [m.own_loss() for m in mechanisms]
    assert [facts["guarantee"] for _, _, facts in ledger.charges] == [(1.0, 0.0), None]


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
    account = Account(PrivacyGuarantee(1.0), ledger=Notebook(most=1))
    account.charge("first", laplace(0.2))
    with pytest.raises(BudgetExceededError, match="nothing is left"):
        account.charge("second", laplace(0.2))
    assert account.report("Test", secure=True).total.pure_epsilon == pytest.approx(0.2)


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
