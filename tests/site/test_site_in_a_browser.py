"""The site in a headless Chromium: light, dark and narrow; it is searched and copied from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests._browser import NONE, find_browser, opened, served
from tests._cases import each_value

NAMED = os.environ.get("SKDPNOISE_SITE")
SITE = Path(NAMED or "build/docs").resolve()
SHOTS = SITE.parent / "screenshots"
PAGES = {
    "landing": "index.html",
    "guide": "guide/linear_models.html",
    "map": "start/which_estimator.html",
    "gallery": "gallery/index.html",
    "example": "gallery/plot_path.html",
    "api": "api/index.html",
    "class": "api/generated/skdpnoise.linear_model.DPRidge.html",
    "protected": "understand/protected.html",
}
WIDTHS = {"desk": 1280, "phone": 390}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not NAMED, reason="no site: `make test-docs` builds one"),
]


@pytest.fixture(scope="module")
def address():
    with served(SITE) as address:
        yield address


@pytest.fixture
def page(tmp_path):
    program = find_browser()
    if program is None:
        pytest.skip(NONE)
    with opened(program, tmp_path) as page:
        yield page


@each_value(1)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_readable_and_nothing_fails(page, address, theme, width):
    SHOTS.mkdir(exist_ok=True)
    page.resize(WIDTHS[width], 800)
    for name, path in PAGES.items():
        page.visit(f"{address}/{path}", prefers_color_scheme=theme)
        assert page.errors() == []
        # A page as wide as the screen: what is wider scrolls within itself.
        assert page.ask("document.documentElement.scrollWidth") <= WIDTHS[width] + 1, name
        broken = "[...document.images].filter(one => one.complete && !one.naturalWidth).length"
        assert page.ask(broken) == 0
        pixels = page.picture(SHOTS / f"{name}-{theme}-{width}.png").astype(float)
        middle = float(np.median(pixels.mean(axis=2)))
        assert middle > 200.0 if theme == "light" else middle < 80.0, name


def test_a_search_finds_the_models_by_the_names_that_people_know(page, address):
    for word, expected in {"ridge": "DPRidge", "lasso": "DPLasso", "logistic": "Logistic"}.items():
        page.visit(f"{address}/search.html?q={word}")
        page.wait_for("document.querySelectorAll('#search-results ul.search li').length > 3")
        assert expected in page.ask("document.querySelector('#search-results').innerText")
        assert page.errors() == []


def test_code_is_copied_without_prompts(page, address):
    page.visit(f"{address}/index.html")
    page.wait_for("document.querySelectorAll('button.copybtn').length > 0")
    # The text is selected in a field that nobody sees, and copied from there.
    page.ask(
        "document.execCommand = () => {"
        " window.copied = document.activeElement.value || getSelection().toString(); return true; }"
    )
    page.ask("document.querySelector('button.copybtn').click()")
    page.wait_for("window.copied !== undefined")
    copied = page.ask("window.copied")
    assert "from skdpnoise import" in copied
    assert ">>>" not in copied


def test_cards_of_an_example_are_painted(page, address):
    page.visit(f"{address}/gallery/plot_statement.html")
    assert page.ask("document.querySelectorAll('.output_html details').length") >= 1
