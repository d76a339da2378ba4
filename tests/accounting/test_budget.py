"""Parts of a budget cost no more than the whole, whatever the shares."""

from fractions import Fraction

import pytest

from skdpnoise.accounting.budget import split
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.queries.ranges import COUNT_SHARE, SEARCH_SHARES, stage_losses

LOSSES = [PureLoss(1.0), GaussianLoss(0.5)]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_parts_have_their_shares_and_add_up_to_no_more_than_the_whole(loss):
    parts = split(loss, count=0.02, search=0.3, nothing=0.0, rest=0.68)
    assert [*parts] == ["count", "search", "rest"]
    for share, part in zip((0.02, 0.3, 0.68), parts.values(), strict=True):
        assert part == loss.share(share)
    total = parts["count"] + parts["search"] + parts["rest"]
    assert total.delta(0.3) <= loss.delta(0.3) * (1.0 + 1e-9)


@pytest.mark.parametrize("shares", [(0.5, 0.5 + 5e-14), (1.0 - 1e-16, 1e-14), (0.1,) * 10])
def test_what_rounding_adds_to_shares_is_less_than_what_it_takes_off_the_parts(shares):
    named = {f"part{place}": share for place, share in enumerate(shares)}
    losses = split(PureLoss(1.0), **named).values()
    assert sum(Fraction(loss.pure_epsilon) for loss in losses) <= 1
    losses = split(GaussianLoss(1.0), **named).values()
    assert sum(Fraction(loss.mu) ** 2 for loss in losses) <= 1


def test_the_whole_is_one_part_as_it_is():
    loss = GaussianLoss(0.1 + 0.2)
    assert split(loss, rest=1.0)["rest"] is loss


@pytest.mark.parametrize(
    "shares",
    [
        {"a": 0.6, "b": 0.5},
        {"a": -0.1, "b": 0.5},
        {"a": float("nan")},
        {"a": 0.5, "b": 0.5 + 1e-10},
        {"a": 1.0, "b": 1e-14},
    ],
)
def test_shares_beyond_the_whole_are_refused_by_however_little(shares):
    with pytest.raises(ValueError, match="add up to 1"):
        split(PureLoss(1.0), **shares)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("searches", [False, True])
def test_pure_stages_of_a_search_are_its_shares_of_what_the_count_leaves(loss, adjacency, searches):
    if isinstance(loss, GaussianLoss):
        assert stage_losses(loss, adjacency, searches=searches) == [loss]
        return
    counts = adjacency == "add_remove"
    left = 1.0 - COUNT_SHARE if counts else 1.0
    expected = [COUNT_SHARE] if counts else []
    if searches:
        expected += [left * part for part in SEARCH_SHARES]
        left *= 1.0 - sum(SEARCH_SHARES)
    found = stage_losses(loss, adjacency, searches=searches)
    assert found == [loss if share == 1.0 else loss.share(share) for share in [*expected, left]]
