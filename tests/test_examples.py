"""Every example runs, without a screen, a network or data files, and draws what it promises."""

import ast
import runpy
import sys
import warnings
from pathlib import Path

import pytest

from skdpnoise.plotting._panels import COLOURS, DASHES

pytestmark = pytest.mark.usefixtures("the_same_words")

FOLDER = Path(__file__).resolve().parents[1] / "examples"
PLOTS = sorted(FOLDER.glob("plot_*.py"))
QUICK = {"plot_histogram", "plot_inid"}  # of the pictures, what `make test` draws


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run an example as a script, in an empty folder."""
    # No data files, neither local nor in scikit-learn's cache: the example must do without.
    monkeypatch.delenv("SKDPNOISE_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(FOLDER)

    def run_script(path: Path, *arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runpy.run_path(str(path), run_name="__main__")

    return run_script


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[] if p.stem in QUICK else pytest.mark.slow, id=p.stem) for p in PLOTS],
)
def test_a_picture_is_drawn_without_a_warning(path, run, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / f"{path.stem.removeprefix('plot_')}.png"
    run(FOLDER / "_draw.py", str(tmp_path), picture.stem)
    assert picture.stat().st_size > 10_000


def is_of_the_gallery(text: str) -> bool:
    title, underline, *rest = ast.get_docstring(ast.parse(text)).splitlines()
    blocks = "\n# %%\n# " in text and "plt.show()" in text
    return underline == "=" * len(title) and any(rest) and blocks


def test_an_example_of_the_gallery_has_a_title_and_blocks_of_text():
    texts = {path.stem: path.read_text(encoding="utf-8") for path in PLOTS}
    assert [name for name, text in texts.items() if not is_of_the_gallery(text)] == []


def test_the_gallery_has_twenty_examples_at_least():
    assert len(PLOTS) >= 20
    assert {path.stem for path in PLOTS} >= QUICK


def test_methods_look_in_examples_as_displays_draw_them():
    methods = runpy.run_path(str(FOLDER / "_style.py"))["METHODS"]
    for index, name in enumerate(("inid", "iid", "spr")):
        look = {"color": methods[name]["color"], "linestyle": methods[name]["linestyle"]}
        assert look == {"color": COLOURS[index], "linestyle": DASHES[index]}


@pytest.mark.slow
def test_the_demo_shows_private_models_beside_ordinary_ones_and_a_report(run, capsys):
    run(FOLDER / "demo.py")
    text = capsys.readouterr().out
    for expected in ("breast", "diabetes", "generated", "ordinary", "ε=1", "total:", "adjacency:"):
        assert expected in text
    # The guarantee must not rest on a seed.
    assert "randomness: the operating system's cryptographic source" in text


@pytest.mark.slow
def test_features_of_images_are_made_and_a_private_model_is_fitted_to_them(run, capsys):
    run(FOLDER / "scattering.py", "--records", "100", "--passes", "2")
    text = capsys.readouterr().out
    for expected in ("100 records x 3,969 features", "test accuracy: 0.", "adjacency: add_remove"):
        assert expected in text
    assert "randomness: the operating system's cryptographic source" in text


PICTURES = sorted((FOLDER.parent / "docs" / "pictures").glob("[!_]*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_of_a_page_is_drawn_by_its_script(path, run, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.syspath_prepend(path.parent)
    picture = tmp_path / "picture.png"
    run(path, str(picture))
    assert picture.stat().st_size > 10_000
    assert (path.parents[1] / "images" / f"{path.stem}.png").exists()
