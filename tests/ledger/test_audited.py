"""Within an audit a ledger writes nothing down; everywhere else, and afterwards, it does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from skdpnoise import PrivacyLedger
from skdpnoise._utils.context import within
from skdpnoise.privacy import GaussianLoss, PureLoss


@pytest.mark.parametrize("cost", [PureLoss(0.5), PureLoss(5.0), GaussianLoss(0.2)])
def test_a_charge_within_an_audit_is_written_nowhere_and_refused_by_nothing(cost):
    ledger = PrivacyLedger("wages", 1.0, 1e-6, "memory")
    with within(is_audited=True):
        charge = ledger.charge("counts", cost)
    assert charge.number == 0
    assert charge.label == "counts"
    assert charge.loss == cost
    assert ledger.charges() == ()


def test_what_is_charged_beside_an_audit_and_after_it_counts():
    ledger = PrivacyLedger("wages", 1.0, 1e-6, "memory")
    with ThreadPoolExecutor(1) as pool, within(is_audited=True):
        assert pool.submit(ledger.charge, "another thread", PureLoss(0.25)).result().number == 1

    with pytest.raises(KeyError), within(is_audited=True):
        raise KeyError
    assert ledger.charge("afterwards", PureLoss(0.25)).number == 2
