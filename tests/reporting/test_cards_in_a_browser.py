"""Cards as a browser paints them: what it computed, and the pixels that came out.

Without a Chromium here these are skipped; `make browser` installs one.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.privacy import PrivacyGuarantee, PureLoss
from tests._browser import NONE, find_browser, opened
from tests._cases import quick

pytestmark = pytest.mark.browser
SHARES = (0.5, 0.2, 0.05)
LABELS = ("scale: means", "model: gradients", "level")

# What pages do to the tables within them, made harsher: light text and rows, in every theme.
NOTEBOOK = """
.page table { color: #eee; } .page tbody tr:nth-child(odd) { background: #ddd; }
"""
# The preference of the system, what the page around says of itself, and how the card must look.
THEMES = {
    "system light": ({"prefers_color_scheme": "light"}, "", False),
    "system dark": ({"prefers_color_scheme": "dark"}, "", True),
    "jupyter light": ({"prefers_color_scheme": "dark"}, 'data-jp-theme-light="true"', False),
    "jupyter dark": ({"prefers_color_scheme": "light"}, 'data-jp-theme-light="false"', True),
    "code light": (
        {"prefers_color_scheme": "dark"},
        'data-vscode-theme-kind="vscode-light"',
        False,
    ),
    "code dark": ({"prefers_color_scheme": "light"}, 'data-vscode-theme-kind="vscode-dark"', True),
    "code high contrast": (
        {"prefers_color_scheme": "light"},
        'data-vscode-theme-kind="vscode-high-contrast"',
        True,
    ),
    "more contrast light": (
        {"prefers_color_scheme": "light", "prefers_contrast": "more"},
        "",
        False,
    ),
    "more contrast in jupyter dark": (
        {"prefers_color_scheme": "light", "prefers_contrast": "more"},
        'data-jp-theme-light="false"',
        True,
    ),
    "forced colours": ({"prefers_color_scheme": "dark", "forced_colors": "active"}, "", True),
}
each_theme = pytest.mark.parametrize("theme", THEMES)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    program = find_browser()
    if program is None:
        pytest.skip(NONE)
    pytest.importorskip("PIL")
    with opened(program, tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture
def shown(page, tmp_path):
    """Show the card of a report in a theme."""

    def show(theme, *, secure=True):
        releases = tuple(
            Release(label, "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(share))
            for label, share in zip(LABELS, SHARES, strict=True)
        )
        total = PureLoss(math.fsum(SHARES))
        report = PrivacyReport("Example", PrivacyGuarantee(1.0), releases, total, secure)
        media, attribute, _ = THEMES[theme]
        html = (
            f'<!doctype html><meta charset="utf-8"><style>{NOTEBOOK}</style>'
            f'<body {attribute}><div class="page">{report._repr_html_()}</div>'
        )
        path = tmp_path / "card.html"
        path.write_text(html, encoding="utf-8")
        everything = {"prefers_contrast": "no-preference", "forced_colors": "none", **media}
        page.show(path, **everything)
        return page

    return show


def luminance(pixels):
    """Relative luminance of colours of 0 to 255 (WCAG 2.2)."""
    parts = np.asarray(pixels, dtype=float) / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    low, high = sorted([float(luminance(one)), float(luminance(other))])
    return (high + 0.05) / (low + 0.05)


def box(page, selector):
    """Where an element is, in whole pixels within it: top, bottom, left, right."""
    script = f"(() => {{ const r = document.querySelector('{selector}').getBoundingClientRect();"
    sides = page.ask(script + " return [r.top, r.bottom, r.left, r.right]; })()")
    top, bottom, left, right = sides
    return math.ceil(top), math.floor(bottom), math.ceil(left), math.floor(right)


def commonest(pixels):
    colours, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
    return colours[counts.argmax()]


def colour(page, selector, name):
    text = page.ask(f"getComputedStyle(document.querySelector('{selector}')).{name}")
    return [int(float(part)) for part in re.findall(r"[\d.]+", text)[:3]]


@pytest.mark.slow
@each_theme
def test_text_is_seen_on_the_ground_of_its_theme(shown, theme, tmp_path):
    dark = THEMES[theme][2]
    page = shown(theme)
    pixels = page.picture(tmp_path / f"{theme}.png")  # to be looked at when this fails
    top, bottom, left, right = box(page, ".skdpnoise-card > p")
    part = pixels[top:bottom, left:right]
    ground = commonest(part)
    assert (luminance(ground) < 0.1) == dark
    seen = max(contrast(ground, one) for one in np.unique(part.reshape(-1, 3), axis=0))
    assert seen >= 4.5  # the middle of a stroke has the colour of the text
    assert seen == pytest.approx(
        contrast(ground, colour(page, ".skdpnoise-card", "color")), rel=0.2
    )
    inked = (np.abs(part.astype(int) - ground).sum(axis=2) > 60).mean()
    assert 0.02 < inked < 0.5


@quick("code dark")
@each_theme
def test_the_figures_are_folded_and_can_be_read_when_asked_for(shown, theme):
    page = shown(theme)
    assert page.ask("document.querySelector('details').open") is False
    visible = "document.querySelector('table').checkVisibility({contentVisibilityAuto: true})"
    assert page.ask(visible) is False
    closed = box(page, ".skdpnoise-card")[1]
    page.ask("document.querySelector('summary').click()")
    assert page.ask("document.querySelector('details').open") is True
    assert box(page, ".skdpnoise-card")[1] > closed + 100  # three rows, a head and a total
    pixels = page.picture()
    top, bottom, left, right = box(page, "td")
    part = pixels[top:bottom, left:right]
    ground = commonest(part)
    assert (luminance(ground) < 0.1) == THEMES[theme][2]  # not the page's rows
    assert max(contrast(ground, one) for one in np.unique(part.reshape(-1, 3), axis=0)) >= 4.5


@quick("jupyter light", "more contrast light")
@each_theme
def test_the_pieces_of_the_bar_are_as_wide_as_their_shares(shown, theme):
    page = shown(theme)
    pixels = page.picture()
    top, bottom, left, right = box(page, ".dp-bar")
    row = pixels[(top + bottom) // 2, left + 1 : right - 1].astype(int)
    ground = colour(page, ".skdpnoise-card", "backgroundColor")
    filled = np.array([contrast(ground, one) >= 3.0 for one in row])
    # One pixel of each piece is the gap before the next.
    assert filled.mean() == pytest.approx(sum(SHARES), abs=6.0 / len(row))
    ends = np.flatnonzero(np.diff(filled.astype(int)) == -1) / len(row)
    expected = np.cumsum(SHARES)
    assert ends[: len(SHARES)] == pytest.approx(expected, abs=3.0 / len(row))


@quick("more contrast in jupyter dark")
@each_theme
def test_a_warning_of_a_seed_is_read_in_every_theme(shown, theme):
    page = shown(theme, secure=False)
    top, bottom, left, right = box(page, ".dp-warning")
    part = page.picture()[top + 2 : bottom - 2, left + 2 : right - 2]
    ground = commonest(part)
    assert max(contrast(ground, one) for one in np.unique(part.reshape(-1, 3), axis=0)) >= 4.5
    plain = contrast(ground, colour(page, ".skdpnoise-card", "backgroundColor"))
    forced = theme == "forced colours"  # there a line is around it
    assert forced or plain > 1.5


def test_the_bar_has_a_name_for_who_cannot_see_it(shown):
    page = shown("system light")
    assert page.ask("document.querySelector('.dp-bar').getAttribute('role')") == "img"
    label = page.ask("document.querySelector('.dp-bar').ariaLabel")
    assert label == ("Shares of the budget: scale 50%, model 20%, level 5%, not spent 25%")
