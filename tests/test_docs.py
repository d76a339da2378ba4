"""The pages name every public name, and point at files that are there."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import skdpnoise

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ROOMS = sorted(room.name for room in pkgutil.iter_modules(skdpnoise.__path__) if room.ispkg)


def section(page: str, title: str) -> str:
    """Text under a heading of the second level, up to the next."""
    after = page.partition(f"\n## {title}\n")[2]
    return after.partition("\n## ")[0]


def missing(names, text: str) -> list[str]:
    """Names that the text does not show as code."""
    return [name for name in names if f"`{name}`" not in text]


def broken_links(page: Path) -> list[str]:
    """Relative links of a page that lead nowhere."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    return [link for link in local if not (page.parent / link).exists()]


@pytest.mark.parametrize("name", ["skdpnoise", *(f"skdpnoise.{room}" for room in ROOMS)])
def test_the_api_page_lists_every_public_name(name):
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert missing(importlib.import_module(name).__all__, section(page, name)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def test_the_index_lists_every_page_and_every_example():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert [page for page in sorted(pages) if f"({page})" not in index] == []
    assert missing((path.name for path in (ROOT / "examples").glob("*.py")), index) == []


def test_the_checks_see_what_is_missing(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n## one\n`a` [x](no.md)\n\n## two\n`b` [y](page.md#two)\n")
    assert missing(["a", "b"], section(page.read_text(), "one")) == ["b"]
    assert broken_links(page) == ["no.md"]
