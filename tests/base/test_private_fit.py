"""What all private fits share: the number of records is public, or bought once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import skdpnoise
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.queries.ranges import COUNT_SHARE
from tests._session import session_of

KINDS = {"iid_laplace": PureLoss(1.0), "iid_gaussian": GaussianLoss(0.2)}


def bought(adjacency, noise, n_rows, seed=0):
    """The number that is known, and the account that it was charged to."""
    session = session_of(seed, adjacency).counted(n_rows, noise, KINDS[noise])
    return session.n_records, session.account


@pytest.mark.parametrize("noise", KINDS)
def test_under_replace_one_the_number_of_records_is_public_and_free(noise):
    found, account = bought("replace_one", noise, 123)
    assert found == 123.0 and account.n_records is None
    with pytest.raises(ValueError, match="Nothing was charged"):
        account.report("Model", secure=False)


@pytest.mark.parametrize("noise", KINDS)
def test_under_add_remove_it_is_noisy_and_costs_its_share(noise):
    found = [bought("add_remove", noise, 1000, seed) for seed in range(20)]
    assert len({number for number, _ in found}) == 20
    for number, account in found:
        (release,) = account.report("Model", secure=False).releases
        assert release.label == "number of records" and account.n_records == number
        share = KINDS[noise].share(COUNT_SHARE)
        assert release.loss.delta(1e-9) <= share.delta(1e-9) * (1.0 + 1e-9)
        assert release.loss.delta(1e-9) >= 0.99 * share.delta(1e-9)


def test_it_is_two_at_least_whatever_the_noise_is():
    assert min(bought("add_remove", "iid_laplace", 2, seed)[0] for seed in range(20)) == 2.0


def test_numbers_of_records_are_released_in_one_place():
    package = Path(skdpnoise.__file__).parent
    text = {path: path.read_text("utf-8") for path in package.rglob("*.py")}
    label = re.compile(r'[(=] ?"number of records"')  # as an argument, or as its default
    assert [path.name for path, code in text.items() if label.search(code)] == ["session.py"]
    shares = [path.name for path, code in text.items() if re.search(r"\bCOUNT\w* = 0\.", code)]
    assert shares == ["budget.py"]
