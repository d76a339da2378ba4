"""The built site: links lead somewhere, formulas and pictures are there, no figure is by hand."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import skdpnoise

NAMED = os.environ.get("SKDPNOISE_SITE")
SITE = Path(NAMED or "build/docs").resolve()

pytestmark = pytest.mark.skipif(not NAMED, reason="no site: `make test-docs` builds one")


class _Page(HTMLParser):
    """Links, pictures and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        for name in ("href", "src"):
            if found.get(name) is not None:
                self.links.append(found[name])


def written():
    """Pages, without templates of the theme."""
    return [path for path in SITE.rglob("*.html") if "_static" not in path.parts]


@pytest.fixture(scope="module")
def pages():
    return {path: _Page(path) for path in written()}


def outside(link):
    return re.match(r"[a-z]+:|//", link) is not None


def test_links_within_the_site_lead_to_a_file_and_an_anchor(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = unquote(link).partition("#")
            if outside(link) or not link.strip("#"):
                continue
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            if target.is_dir():
                target /= "index.html"
            known = pages.get(target)
            if not target.exists() or (anchor and known and anchor not in known.anchors):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert broken == []


def test_nothing_that_a_page_needs_is_fetched_from_elsewhere():
    found = []
    for path in written():
        text = path.read_text("utf-8")
        found += re.findall(r"<(?:script|img|link)[^>]+(?:src|href)=\"(https?:[^\"]+)\"", text)
    # What a page says of its own address is not fetched.
    assert [link for link in set(found) if "skdpnoise.readthedocs.io" not in link] == []


def test_the_box_of_an_estimator_links_to_a_page_that_is_there():
    from skdpnoise._utils.documented import DocumentedMixin

    names = [name for name in skdpnoise.__all__ if name.startswith("DP")]
    links = [
        DocumentedMixin._doc_link_template.format(
            estimator_module=f"skdpnoise.{skdpnoise._HOMES[name]}", estimator_name=name
        )
        for name in names
    ]
    assert [link for link in links if not (SITE / link.partition("/en/stable/")[2]).exists()] == []


def test_programs_get_a_list_of_the_pages():
    text = (SITE / "llms.txt").read_text("utf-8")
    assert text.startswith("# skdpnoise\n")
    assert len(re.findall(r"^- \[.+\]\(https://.+\.html\)", text, flags=re.MULTILINE)) > 40


@pytest.mark.parametrize("page", ["which_estimator", "epsilon", "protected"])
def test_what_newcomers_ask_is_one_click_from_the_front(pages, page):
    assert any(link.endswith(f"/{page}.html") for link in pages[SITE / "index.html"].links)


def test_the_gallery_has_pictures():
    examples = list((SITE / "gallery").glob("plot_*.html"))
    assert len(examples) >= 20
    assert [one.name for one in examples if "sphx_glr_" not in one.read_text("utf-8")] == []
