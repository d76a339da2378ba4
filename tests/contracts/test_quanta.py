"""The floating-point attack (Mironov, CCS 2012): low bits of what is released tell nothing.

Noise added in floating point leaves a trace: near zero, floats lie closer together than near one,
so `value + noise` can take some results only for some values. Here every released number is an
integer number of grid steps, whatever the data, and everything in a fitted model follows from these
integers. The same tests must find the ordinary mechanism, `value + scale * normal`, wanting.
"""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.accounting.session import Drawn
from skdpnoise.inspection import Transcript
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value
from tests._statistics import FALSE_ALARM, uniform_pvalue
from tests.contracts._register import DESCENTS, each

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.linear_model.PrivacyWarning")

FITS = [
    {},
    {"delta": 0.0},
    {"adjacency": "add_remove", "noise": "inid_laplace"},
    {"feature_bounds": (-3.0, 3.0), "noise": "spr_gaussian"},
]


def all_on_lattice(released, grid_size):
    """Whether numbers are exactly what integers times the grid step give."""
    return bool(np.all(np.rint(released / grid_size) * grid_size == released))


def low_bits_pvalue(released, grid_size):
    """Return the p-value of the last six bits, in units of the grid step, being equally likely."""
    return uniform_pvalue(np.rint(released / grid_size).astype(np.int64) & 63, 64)


def test_low_bits_betray_the_value_under_the_ordinary_mechanism():
    rng, fine = np.random.default_rng(0), 2.0**-60
    noise = rng.standard_normal(200_000)
    near_zero = [r[np.abs(r) < 1 / 8] for r in (0.0 + noise, 1.0 + noise)]
    # Results near zero have no bits below those of the noise that took them there from one.
    share_fine = [np.mean(np.rint(r / 2.0**-53) * 2.0**-53 != r) for r in near_zero]
    assert share_fine[0] > 0.9
    assert share_fine[1] == 0.0
    assert low_bits_pvalue(near_zero[1], fine) < FALSE_ALARM
    assert not all_on_lattice(near_zero[0], 2.0**-40)


@each_value(1)
@pytest.mark.parametrize("noise", ["iid_gaussian", "iid_laplace"])
@pytest.mark.parametrize("sensitivity", [1.0, 0.3])
def test_the_same_numbers_are_released_for_all_values_and_low_bits_tell_nothing(noise, sensitivity):
    guarantee = PrivacyGuarantee(1.0, 0.0 if "laplace" in noise else 1e-3)
    mechanism = calibrate(noise, SensitivityProfile([sensitivity]), guarantee, n_releases=20_000)
    grid_size = mechanism.grid_size[0]
    for number, value in enumerate((0.0, sensitivity, -sensitivity / 3, 1e6 * sensitivity, 1e-300)):
        released = mechanism.release(np.full((20_000, 1), value), number)[:, 0]
        assert all_on_lattice(released, grid_size)
        assert low_bits_pvalue(released, grid_size) > FALSE_ALARM
    # The same noise on two neighbours: the results differ by a whole number of grid steps.
    here, there = (mechanism.release([value], 5) for value in (0.0, sensitivity))
    steps = np.rint(there / grid_size) - np.rint(here / grid_size)
    assert abs(steps[0] - sensitivity / grid_size) <= 0.5


def data(n=400):
    rng = np.random.default_rng(1)
    X = rng.normal([3.0, -1e3], [1.0, 20.0], size=(n, 2))
    return X, (X[:, 0] > 3.0).astype(int)


@each_value(1)
@pytest.mark.parametrize("settings", FITS)
@each(DESCENTS)
def test_every_number_that_a_fit_releases_is_an_integer_number_of_quanta(
    monkeypatch, entry, settings
):
    on, sample, results = Drawn.on, AdditiveMechanism.sample, []

    def noted_on(self, values):
        released = on(self, values)
        results.append((self.mechanism, released))
        return released

    def noted_sample(self, *args, **kwargs):
        draws = sample(self, *args, **kwargs)
        assert draws.dtype == np.int64
        return draws

    monkeypatch.setattr(Drawn, "on", noted_on)
    monkeypatch.setattr(AdditiveMechanism, "sample", noted_sample)
    transcript = Transcript()
    model = transcript.watch(entry.estimator(epsilon=8.0, **settings, n_passes=2).fit, *data())
    bounded = "feature_bounds" in settings
    assert results or bounded  # magnitudes and digits of open columns, for example
    for mechanism, released in results:
        assert all_on_lattice(released, mechanism.grid_size)
    # No integer is near the ends of its type, and one record spans many grid steps.
    sums = [meeting for meeting in transcript.meetings if meeting.kind == "sum"]
    for meeting in sums:  # choices among public cells are the other kind
        assert np.abs(meeting.integers).max(initial=0) < 2**61
        steps = meeting.mechanism.sensitivity.per_coordinate / meeting.mechanism.grid_size
        assert steps.min() >= 2**20
    # All that was released is in the report; one line stands for digits of different lengths.
    n_numbers = sum(meeting.integers.size for meeting in sums)
    n_numbers += len(transcript.meetings) - len(sums)
    sizes = {r.label: r.n_releases * r.n_coordinates for r in model.privacy_.releases}
    digits = sum(size for label, size in sizes.items() if "digits" in label)
    assert sum(sizes.values()) - digits <= n_numbers <= sum(sizes.values())
    assert n_numbers > sum(sizes.values()) - digits or not digits


@each_value(1)
@pytest.mark.parametrize("settings", FITS)
@each(DESCENTS)
def test_a_model_is_a_function_of_the_released_integers_alone(entry, settings):
    X, y = data()
    model = entry.estimator(epsilon=8.0, **settings, random_state=3, n_passes=2)
    transcript = Transcript()
    expected = transcript.watch(model.fit, X, y)
    expected = [expected.coef_path_, expected.intercept_path_, expected.clip_range_]
    # Other data of that shape, none of whose values occur in these, and the same integers.
    rng = np.random.default_rng(7)
    other, labels = 1e3 * rng.standard_cauchy(X.shape), 1 - y
    again = Transcript(earlier=transcript).watch(model.fit, other, labels)
    for value, attribute in zip(
        expected, (again.coef_path_, again.intercept_path_, again.clip_range_), strict=True
    ):
        assert value.tobytes() == attribute.tobytes()
    different = model.fit(other, labels)  # and its own integers give another model
    assert expected[0].tobytes() != different.coef_path_.tobytes()
