"""Steps of a training: what is in a batch, and by what the sums are divided."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.mechanisms.sampled import SampledMechanism
from skdpnoise.neural_network import DPMLPClassifier
from skdpnoise.neural_network import _training as training
from skdpnoise.neural_network._plan import Sampling, share_out
from skdpnoise.neural_network._training import People, Training, n_slots_for
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sensitivity import GroupedProfile

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

ROWS = np.tile([[0.5, -0.25, 1.0]], (100, 1))
PUBLIC = {"feature_bounds": (-1, 1), "classes": [0, 1], "n_samples": 100, "random_state": 0}


@pytest.fixture
def noiseless(monkeypatch):
    """Take the noise away."""
    monkeypatch.setattr(
        SampledMechanism, "sample", lambda self, _: np.zeros(self.scale.size, dtype=np.int64)
    )


def moves(monkeypatch, n_in_sample, **settings):
    """Return the gradients that parameters follow, in units of the clip."""
    found = []
    monkeypatch.setattr(training, "sampled", lambda *_: np.arange(n_in_sample))
    monkeypatch.setattr(Training, "_move", lambda self, *args: found.append(args[-1]))
    DPMLPClassifier(8, batch_size=1.0, **PUBLIC, **settings).fit(ROWS, np.ones(100, dtype=int))
    return found


@pytest.mark.usefixtures("noiseless")
def test_sums_are_divided_by_a_public_number_and_not_by_the_size_of_a_batch(monkeypatch):
    (few,), (many,) = (moves(monkeypatch, n, max_iter=1, clip=1e-3) for n in (30, 90))
    assert np.linalg.norm(few) == pytest.approx(0.3, rel=1e-3)  # each is clipped to one clip
    np.testing.assert_allclose(many, 3.0 * few, rtol=1e-6)


@pytest.mark.usefixtures("noiseless")
@pytest.mark.parametrize("noise", ["inid_gaussian", "inid_laplace"])
def test_clips_that_follow_keep_the_sensitivity_and_the_mean(monkeypatch, noise):
    made, units = [], []
    parts = training.ClippedParts

    def noted(starts, bounds, grid_size, order):
        made.append(bounds / grid_size)
        units.append(bounds.copy())
        return parts(starts, bounds, grid_size, order)

    monkeypatch.setattr(training, "ClippedParts", noted)
    found = moves(monkeypatch, 50, max_iter=8, clip="adaptive", noise=noise, epsilon=50.0)
    assert not np.allclose(units[0], units[-1], rtol=0.03)  # they did follow
    for one in made[1:]:  # in grid steps a person moves a sum by as much as ever
        np.testing.assert_allclose(one, made[0], rtol=1e-12)
    order = 2 if noise.endswith("gaussian") else 1
    beyond = [np.linalg.norm(one, order) for one in found[:4]]
    if order == 2:  # all are clipped, so that the sum is as many clips as there are people
        np.testing.assert_allclose(beyond, 0.5, rtol=1e-2)


def test_places_where_nobody_is_hold_zeros():
    rows = torch.arange(12.0).reshape(6, 2) + 1.0
    people = People(torch, rows, torch.ones(6), np.array([[0, 1], [2, -1], [5, -1]]))
    found, targets, weights = people.of(np.array([0, 1, 2, 0]), np.array([True, True, True, False]))
    assert found[0].tolist() == rows[[0, 1]].tolist()
    assert found[1].tolist() == [rows[2].tolist(), [0.0, 0.0]]
    assert found[2].tolist() == [rows[5].tolist(), [0.0, 0.0]]
    assert not found[3].any()
    assert targets.tolist() == [[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    assert weights.tolist() == [[0.5, 0.5], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


def test_steps_that_hang_on_a_bought_number_leave_what_that_number_cost():
    estimator = DPMLPClassifier(batch_size=100, epsilon=1.0, delta=1e-5)
    guarantee = PrivacyGuarantee(1.0, 1e-5, "add_remove")
    shares = share_out(estimator, guarantee, features=True, target=False)
    mechanism = shares.mechanism(Sampling(0.05, 400), GroupedProfile([1.0], [0, 0, 0]))
    rest = mechanism.privacy_loss() + shares.losses["features"]
    assert rest.epsilon(guarantee.delta) + shares.losses["count"].pure_epsilon <= guarantee.epsilon


@pytest.mark.parametrize(
    ("n_parameters", "sample_size", "n_slots"),
    [(26_010, 300, 168), (26_010, 1800, 240), (10**9, 50, 1), (100, 0.01, 8), (4_000_000, 50, 4)],
)
def test_rounds_are_nearly_full(n_parameters, sample_size, n_slots):
    assert n_slots_for(n_parameters, sample_size) == n_slots
