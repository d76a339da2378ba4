"""The report reads well as text and as HTML."""

from __future__ import annotations

import re

import pytest

from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.privacy import PrivacyGuarantee, PureLoss


def _report(*, secure=True, adjacency="replace_one", label="counts"):
    release = Release(label, "iid_laplace", 2, 10, (1.0, 2.5), PureLoss(1.0))
    guarantee = PrivacyGuarantee(1.0, 0.0, adjacency)
    return PrivacyReport("Example", guarantee, (release,), PureLoss(1.0), secure)


def test_text_names_guarantee_releases_total_adjacency_and_randomness():
    lines = str(_report()).splitlines()
    assert lines[0] == "Example: (epsilon=1, delta=0)-differential privacy"
    assert lines[1] == "  counts: 2 x 10, iid_laplace, scale 1 to 2.5, 1-DP"
    assert lines[2] == "  total: 1-DP"
    assert "replaced by another record" in lines[3]
    assert lines[4] == "  unit: a record (one row)"
    assert "cryptographic" in lines[5]


def test_a_known_seed_is_said_to_void_the_guarantee():
    assert "does not hold against anyone who knows it" in str(_report(secure=False))


def test_add_remove_is_explained():
    assert "one record more" in str(_report(adjacency="add_remove"))


def test_html_escapes_what_it_shows():
    html = _report(label="<b>counts</b>")._repr_html_()
    assert "&lt;b&gt;counts" in html
    assert "<b>counts" not in html


def test_the_report_cannot_be_changed():
    with pytest.raises(AttributeError):
        _report().secure = True


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_guarantee_for_groups_says_so(adjacency):
    release = Release("counts", "iid_laplace", 1, 1, (1.0, 1.0), PureLoss(1.0))
    guarantee = PrivacyGuarantee(1.0, 0.0, adjacency)
    for rows, words in ((1, "at most 1 row kept"), (7, "at most 7 rows kept")):
        report = PrivacyReport("Example", guarantee, (release,), PureLoss(1.0), True, rows)
        assert report.unit == "group"
        assert f"unit: a group of rows ({words} of each)" in str(report)
        assert words in report._repr_html_()
        assert "one group" in str(report)
    record = PrivacyReport("Example", guarantee, (release,), PureLoss(1.0), True)
    assert record.unit == "record"
    assert "group" not in str(record)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_report_that_rests_on_a_seed_begins_by_saying_so(adjacency):
    first = "NOT PRIVATE: random_state is set"
    seeded = _report(secure=False, adjacency=adjacency)
    assert str(seeded).splitlines()[0] == first
    assert str(seeded).partition("\n")[2].startswith("Example: (epsilon=1, delta=0)")
    assert repr(seeded).startswith(f"<{first}. PrivacyReport of Example: ")
    before, found, _ = seeded._repr_html_().partition(first)
    assert found and not re.sub(r"<[^>]*>", "", before)  # nothing but tags
    plain = _report(adjacency=adjacency)
    assert first not in f"{plain}{plain!r}{plain._repr_html_()}"


def test_only_the_first_column_of_a_card_breaks_lines():
    html = _report()._repr_html_()
    cells = re.findall(r'<t[dh] style="([^"]*)"', html)
    wrapping = [index for index, style in enumerate(cells) if "nowrap" not in style]
    assert wrapping == list(range(0, len(cells), 5))
