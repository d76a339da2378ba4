"""Sessions of fits, for tests of what runs within one."""

from __future__ import annotations

from dataclasses import replace

from skdpnoise.accounting.session import FitSession
from skdpnoise.ledger import Account
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sampling import SeededWords


def session_of(seed=0, adjacency="replace_one", n_records=60.0):
    """Return a session of (1, 1e-6) that knows the number of records."""
    account = Account(PrivacyGuarantee(1.0, 1e-6, adjacency))
    return replace(FitSession.charging(account, SeededWords(seed)), n_records=n_records)
