"""An observer sees one call and no other; a fit that is not observed knows nothing of it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from skdpnoise import DPStandardScaler
from skdpnoise.inspection import Transcript
from skdpnoise.mechanisms import (
    calibrate,
    calibrate_second_moments,
    correlated_sum,
    k_norm,
    l1_staircase,
)
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import private_argmax, private_count, private_mean
from skdpnoise.sampling import SystemWords, random_words
from skdpnoise.sampling.observer import (
    current,
    is_observed,
    observed,
    plus_noise,
    unobserved,
)
from skdpnoise.sensitivity import RowBounds, SensitivityProfile

X = np.random.default_rng(0).normal(size=(50, 1))


def test_an_observer_is_gone_when_its_call_ends_however_it_ends():
    seen = []

    def leave(error):
        seen.append(is_observed())
        if error:
            raise KeyboardInterrupt

    observed(Transcript(), leave, False)
    with pytest.raises(KeyboardInterrupt):
        observed(Transcript(), leave, True)
    assert seen == [True, True]
    assert current() is None


def test_an_observer_cannot_be_left_on_by_a_generator_or_for_another_thread():
    def endless():
        while True:
            yield is_observed()

    running = observed(Transcript(), endless)  # its body runs after the call
    assert next(running) is False
    seen = []

    def start():
        thread = threading.Thread(target=lambda: seen.append(is_observed()))
        thread.start()
        thread.join()

    observed(Transcript(), start)
    assert seen == [False]


@pytest.mark.usefixtures("the_same_words")
def test_a_fit_that_nobody_observes_draws_from_the_operating_system_and_says_so():
    report = DPStandardScaler(feature_bounds=(-3, 3)).fit(X).privacy_
    assert report.secure
    assert not report.observed
    assert "NOT PRIVATE" not in str(report)
    assert isinstance(random_words(None), SystemWords)


def test_an_observed_fit_says_that_it_is_not_private():
    scaler = DPStandardScaler(feature_bounds=(-3, 3))
    report = Transcript().watch(scaler.fit, X).privacy_
    assert report.observed
    assert not report.secure
    for text in (str(report), report._repr_html_()):
        assert "NOT PRIVATE: an audit looked on" in text


def test_without_an_observer_integers_and_draws_are_added_as_they_are():
    integers, draws = np.array([3, 2**62]), np.array([-1, 5])
    assert plus_noise(None, integers, draws).tolist() == [2, 2**62 + 5]
    assert plus_noise(None, 7, -2) == 5


def _moments(words):
    mechanism = calibrate_second_moments("wishart", RowBounds(2, 1.0), PureLoss(1.0))
    return mechanism.release(np.array([[5, 1], [1, 5]]), words)


RELEASES = {
    "additive": lambda w: calibrate(
        "iid_laplace", SensitivityProfile([1.0, 2.0]), PureLoss(1.0)
    ).release([3.0, 4.0], w),
    "k-norm": lambda w: k_norm(2, 1.0, 3, PureLoss(1.0)).release([1.0, 2.0, 3.0], w),
    "staircase": lambda w: l1_staircase(2, 1.0, PureLoss(1.0)).release([1.0, 2.0], w),
    "correlated": lambda w: correlated_sum([1.0, 2.0], GaussianLoss(0.5)).release(
        [1.0, 2.0, 3.0], w
    ),
    "second moments": _moments,
    "choice": lambda w: np.array(private_argmax([5, 3, 1], PureLoss(1.0), random_state=w)[0]),
    "count": lambda w: np.array(
        private_count(50, PrivacyGuarantee(1.0, adjacency="add_remove"), random_state=w).value
    ),
    "mean": lambda w: np.array(
        private_mean(X[:, 0], -3, 3, PrivacyGuarantee(1.0), random_state=w).value
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_every_way_to_release_meets_the_observer_and_can_be_frozen(name):
    first = Transcript(0)
    one = first.watch(RELEASES[name], None)
    assert len(first.meetings) == 1
    other = Transcript(1).watch(RELEASES[name], None)  # with other randomness
    again = Transcript(1, earlier=first)
    frozen = again.watch(RELEASES[name], None)
    assert np.array_equal(frozen, one)
    assert again.diverged is None
    assert (again.meetings[0].integers == first.meetings[0].integers).all()
    if name != "choice":
        assert not np.array_equal(other, one)


def test_replayed_randomness_is_in_step_whatever_the_data_make_the_samplers_do():
    def draw(n_first):
        words = random_words(None)
        words.take(n_first)
        plus_noise(None, np.zeros(1, dtype=int), np.zeros(1, dtype=int))
        return words.take(2).tolist()

    assert Transcript(0).watch(draw, 5) == Transcript(0).watch(draw, 6)
    assert Transcript(0).watch(draw, 5) != Transcript(1).watch(draw, 5)


def test_a_dry_run_is_not_observed_and_the_fit_after_it_is():
    def try_and_fit():
        plus_noise(None, np.zeros(1, dtype=int), np.zeros(1, dtype=int))
        with unobserved():
            within = is_observed()
        return within, is_observed()

    transcript = Transcript()
    assert transcript.watch(try_and_fit) == (False, True)
    assert len(transcript.meetings) == 1
