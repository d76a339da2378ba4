"""Replays of networks on neighbours: the same coins and releases, the same network bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdpnoise.inspection import audit
from skdpnoise.kernels.joint.parts import ClippedParts
from skdpnoise.neural_network import (
    DPMLPClassifier,
    DPMLPRegressor,
    DPNeuralClassifier,
    _plan,
    _training,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
LABELS = (X[:, 0] > 0.0).astype(int)
QUICK = {"max_iter": 1, "batch_size": 0.4}
LABELLED = {"classes": [0, 1], **QUICK}
PUBLIC = {"feature_bounds": (-1.0, 1.0), "n_samples": 30}


def small(width):
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(2, width), nn.GroupNorm(1, width), nn.Tanh(), nn.Linear(width, 2)
    )


CASES = {
    "public": DPMLPClassifier(4, **PUBLIC, **LABELLED),
    "bought": DPMLPClassifier(4, **LABELLED),
    "numbers": DPMLPRegressor(4, **QUICK),
    "layers": DPMLPClassifier(4, clip_groups="layer", noise="spr_gaussian", **PUBLIC, **LABELLED),
    "Laplace": DPMLPClassifier(4, noise="inid_laplace", **PUBLIC, **LABELLED),
    "adaptive": DPMLPClassifier(4, clip="adaptive", clip_groups="tensor", **PUBLIC, **LABELLED),
    "a module": DPNeuralClassifier(small, module__width=3, n_samples=30, **LABELLED),
}


def replayed(model):
    y = X[:, 0] if isinstance(model, DPMLPRegressor) else LABELS
    return audit(model, X, y, method="replay", random_state=0).results[0]


@pytest.mark.parametrize("model", CASES.values(), ids=CASES)
def test_one_record_moves_every_release_by_what_is_charged_for_and_nothing_else(model):
    found = replayed(model)
    assert found.passed
    shares = dict(found.shares)
    assert max(shares.values()) <= 1.0 + 1e-9
    assert shares["gradients"] > 0.95


def test_gradients_that_are_longer_than_their_clip_are_found(monkeypatch):
    sums = ClippedParts.sums_and_excess

    def longer(self, *args):
        total, excess = sums(self, *args)
        return 2 * total, excess

    monkeypatch.setattr(ClippedParts, "sums_and_excess", longer)
    found = replayed(CASES["public"])
    assert any("moves it by 2 times what is declared" in problem for problem in found.broken)


def test_a_number_of_records_that_nobody_paid_for_is_found(monkeypatch):
    def counted(self, session, n_people):
        return replace(session, n_records=float(n_people))

    monkeypatch.setattr(_plan.TrainingShares, "counted", counted)
    assert replayed(CASES["bought"]).problems != ()


def test_batches_of_more_people_than_the_coins_say_are_found(monkeypatch):
    sampled = _training.sampled

    def again(words, n_people, rate):
        return np.concatenate([sampled(words, n_people, rate), np.arange(n_people)[-1:]])

    monkeypatch.setattr(_training, "sampled", again)
    assert replayed(CASES["public"]).problems != ()
