"""Every mechanism is charged for, and never more than the guarantee covers."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.ledger import Account, BudgetExceededError
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import SensitivityProfile

ONE = SensitivityProfile(np.ones(1))


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
