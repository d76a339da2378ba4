"""The network of the paper, as an example: its sizes, and one private step of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from benchmarks.networks import NORMS, WEIGHTS, noise_power
from skdpnoise import DPNeuralClassifier

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "resnet20.py"
MADE = runpy.run_path(str(EXAMPLE))
ResNet20 = MADE["ResNet20"]


def test_it_has_the_tensors_that_the_formula_is_for():
    sizes = [one.numel() for one in ResNet20().parameters()]
    assert sorted(sizes) == sorted(WEIGHTS + NORMS)
    assert len(WEIGHTS) == 22
    assert sum(WEIGHTS) == 270_896


@pytest.mark.parametrize(
    ("sizes", "rule", "power"),
    [
        (WEIGHTS, "inid", 0.702),
        (WEIGHTS + NORMS, "inid", 0.298),
        (WEIGHTS, "spr", 1.0),
        (WEIGHTS + NORMS, "spr", 1.0),
    ],
)
def test_total_noise_of_the_rules_by_formula_and_by_draws(sizes, rule, power):
    assert noise_power(sizes, rule, drawn=False) == pytest.approx(power, abs=5e-4)
    assert noise_power(sizes, rule, drawn=True) == pytest.approx(power, rel=0.05)


def test_one_private_step():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(8, 3, 32, 32)).astype(np.float32)
    public = {"classes": list(range(10)), "n_samples": 8}
    settings = {"clip_groups": "tensor", "max_iter": 1, "batch_size": 1.0, "random_state": 0}
    model = DPNeuralClassifier(ResNet20, **settings, **public)
    model.fit(images, rng.integers(10, size=8))
    assert model.n_steps_ == 1
    assert len(model.allocation_["group"]) == 65
    assert np.isfinite(model.predict_proba(images)).all()


def test_the_command_for_images_reads_their_files_and_trains_every_arm(tmp_path, capsys):
    rng = np.random.default_rng(0)
    pixels = rng.integers(256, size=(24, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(10, size=24).astype(np.uint8)
    records = np.column_stack([labels, pixels.reshape(24, -1)])
    names = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    for name, part in zip(names, np.split(records, 6), strict=True):
        part.tofile(tmp_path / name)
    images, read = MADE["images_of"](tmp_path, names)
    assert (read == labels).all()
    assert (np.rint((images + 1.0) * 127.5) == pixels).all()
    options = ["--device", "cpu", "--epochs", "1", "--rate", "1.0"]
    MADE["main"](["--cifar", str(tmp_path), *options])
    assert capsys.readouterr().out.count("accuracy") == 4
