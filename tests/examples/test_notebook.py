"""Notebooks run in a real kernel, and the page of one can be read in light and in dark."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from conftest import NO_DATA
from tests._browser import NONE, find_browser, opened

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOK = NOTEBOOKS / "adult.ipynb"

pytestmark = pytest.mark.slow
with_data = pytest.mark.skipif("SKDPNOISE_DATA" not in os.environ, reason=NO_DATA)


@pytest.fixture(scope="module")
def run():
    """Return the notebook of Adult with its outputs."""
    return executed(NOTEBOOK)


def executed(path):
    """Return a notebook with its outputs, after a run in a kernel of its own."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONWARNINGS", raising=False)  # a kernel says what it says to anybody
        client.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return notebook


def outputs(notebook, kind):
    """Return the texts of a kind that cells gave."""
    found = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    streams = [one["text"] for one in found if one["output_type"] == "stream"]
    return (
        streams
        if kind == "stream"
        else [one["data"][kind] for one in found if kind in one.get("data", {})]
    )


# What each must show, in text or as a card.
SHOWN = {
    "first_model": ["R² with privacy", "epsilon=1", "skdpnoise.linear_model.DPRidge.html"],
    "team_budget": ["Nothing was charged", "ana", "ben", "alpha"],
    "audit_and_report": ["nothing found", "False", "Privacy statement: DPRidge"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_notebook_runs_from_the_first_cell_to_the_last(name):
    notebook = executed(NOTEBOOKS / f"{name}.ipynb")
    kinds = ("stream", "text/plain", "text/html")
    text = "\n".join(one for kind in kinds for one in outputs(notebook, kind))
    assert [one for one in SHOWN[name] if one not in text] == []
    assert "Traceback" not in text


def test_every_notebook_is_run():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {*SHOWN, NOTEBOOK.stem}


@with_data
def test_the_run_shows_a_model_and_a_guarantee(run):
    accuracy = next(text for text in outputs(run, "stream") if "accuracy" in text)
    assert float(accuracy.split()[-1]) > 0.84
    report, columns = outputs(run, "text/html")[-2:]
    assert "epsilon=1" in report
    assert "names and types of columns" in report  # of what the schema leaves out
    assert "education" in columns
    said = "".join(outputs(run, "stream"))
    assert "Warning" not in said
    assert "Traceback" not in said


@with_data
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_its_page_is_readable(run, theme, tmp_path):
    program = find_browser()
    if program is None:
        pytest.skip(NONE)
    exporter = pytest.importorskip("nbconvert").HTMLExporter(theme=theme)
    body, _ = exporter.from_notebook_node(run)
    path = tmp_path / "page.html"
    path.write_text(body, encoding="utf-8")
    with opened(program, tmp_path) as page:
        page.show(path, prefers_color_scheme=theme)
        assert "private model" in page.ask("document.body.innerText")
        assert page.ask("document.querySelectorAll('details').length") >= 1
        pixels = page.picture(tmp_path / f"{theme}.png").astype(float)
    brightness = pixels.mean(axis=2)
    middle = float(np.median(brightness))
    assert middle > 200.0 if theme == "light" else middle < 80.0
    # text stands out from the page, in the part below the first screen too, where the cards are
    lower = brightness[len(brightness) // 2 :]
    assert np.quantile(np.abs(lower - np.median(lower)), 0.995) > 100.0
