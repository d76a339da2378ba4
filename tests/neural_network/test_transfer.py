"""A frozen body that learnt public data, and a private head, as the example trains them."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from skdpnoise import DPMLPClassifier, DPNeuralClassifier, DPPipeline, DPStandardScaler

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transfer.py"
MADE = runpy.run_path(str(EXAMPLE))


def test_the_example_runs_and_says_what_is_declared_public(capsys):
    MADE["main"](["--steps", "3", "--epochs", "1"])
    said = capsys.readouterr().out
    assert "frozen body, private head" in said
    assert "declared public by the user: module" in said


def test_only_the_head_is_trained_and_batch_norm_keeps_its_statistics():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(40, 1, 8, 8)).astype(np.float32)
    labels = rng.integers(5, size=40)
    frozen = MADE["learnt_in_public"](images, labels, 3)
    model = DPNeuralClassifier(
        MADE["with_head"], module__frozen=frozen, max_iter=1, batch_size=1.0, n_samples=40
    )
    model.fit(images, labels)
    assert model.allocation_["n_parameters"].sum() == 5 * 64 + 5
    before, after = frozen.state_dict(), model.module_[0].state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert model.privacy_.declared == ("module", "labels of y")


def test_a_pipeline_states_the_module_too_and_without_one_nothing_is_declared():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 4)), rng.integers(2, size=2000)

    def network():
        return torch.nn.Linear(4, 2)

    given = {"max_iter": 1, "adjacency": "add_remove"}
    steps = [
        ("scale", DPStandardScaler(feature_bounds=(-4, 4), adjacency="add_remove")),
        ("net", DPNeuralClassifier(network, **given)),
    ]
    pipe = DPPipeline(steps, delta=0.0, adjacency="add_remove").fit(X, y)
    assert pipe.privacy_.declared == ("net__module", "labels of y")
    assert DPMLPClassifier(classes=[0, 1], **given).fit(X, y).privacy_.declared == ()
