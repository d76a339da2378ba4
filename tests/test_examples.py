"""Every example runs, without a screen, a network or data files, and draws what it promises."""

import runpy
import sys
import warnings
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("*.py"))
LONGEST_PLOT = 100


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run an example as a script, in an empty folder."""
    # No data files, neither local nor in scikit-learn's cache: the example must do without.
    monkeypatch.delenv("SKDPNOISE_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run_script(path: Path, *arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", [str(path), *arguments])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runpy.run_path(str(path), run_name="__main__")

    return run_script


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.stem.startswith("plot_")], ids=lambda path: path.stem
)
def test_a_plot_is_drawn_by_a_short_example(path, run, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    picture = tmp_path / "picture.png"
    run(path, "--quick", str(picture))
    assert picture.stat().st_size > 10_000
    assert len(path.read_text(encoding="utf-8").splitlines()) < LONGEST_PLOT


@pytest.mark.slow
def test_the_demo_shows_private_models_beside_ordinary_ones_and_a_report(run, capsys):
    run(next(path for path in EXAMPLES if path.stem == "demo"))
    text = capsys.readouterr().out
    for expected in ("breast", "diabetes", "generated", "ordinary", "ε=1", "total:", "adjacency:"):
        assert expected in text
    # The guarantee must not rest on a seed.
    assert "randomness: the operating system's cryptographic source" in text


def test_features_of_images_are_made_and_a_private_model_is_fitted_to_them(run, capsys):
    run(EXAMPLES[0].with_name("scattering.py"), "--records", "100", "--passes", "2")
    text = capsys.readouterr().out
    for expected in ("100 records x 3,969 features", "test accuracy: 0.", "adjacency: add_remove"):
        assert expected in text
    assert "randomness: the operating system's cryptographic source" in text


PICTURES = sorted((EXAMPLES[0].parents[1] / "docs" / "pictures").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_of_a_page_is_drawn_by_its_script(path, run, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    picture = tmp_path / "picture.png"
    run(path, str(picture))
    assert picture.stat().st_size > 10_000
    assert (path.parents[1] / "images" / f"{path.stem}.png").exists()
