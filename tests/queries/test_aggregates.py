"""Private counts, sums, means and histograms: bounds by force, errors, exactness."""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from skdpnoise.accounting.terms import Terms
from skdpnoise.data.table import InMemory
from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import private_count, private_histogram, private_mean, private_sum
from skdpnoise.queries.aggregates import _check_summands, _exact_sums, _release, _rounded_deviation
from skdpnoise.queries.norm_quantile import private_norm_quantile
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value
from tests._statistics import FALSE_ALARM

pytestmark = pytest.mark.usefixtures("the_same_words")


RELATIONS = pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
# The default noise is compared over all families, which takes seconds.
LAPLACE = {"noise": "inid_laplace"}
LOW, HIGH = np.array([-1.0, 0.0, 5.0]), np.array([2.0, 0.3, 105.0])


def bounds_of(low, high, n_columns):
    return _check_summands("f", "auto", np.zeros((1, n_columns)), (low, high), None, "error")[2]


def noisy_sums(data, bounds, mechanism):
    session = Terms(owner="f", guarantee=PureLoss(1.0), adjacency=None, rng=SeededWords(0))
    sums, count = _release(session, InMemory.of(data), bounds, mechanism)
    return sums if count is None else np.append(sums, count)


def deviation_pvalue(errors, stated):
    """Two-sided p-value of normal errors having the stated standard deviation."""
    errors = np.ravel(errors / stated)
    statistic = float(errors @ errors)
    return 2 * min(chi2.sf(statistic, errors.size), chi2.cdf(statistic, errors.size))


def neighbour(table, adjacency, rng):
    """Change one record: its new values are extreme or not, within the bounds or far outside."""
    record = np.where(rng.random(3) < 0.5, LOW, HIGH)
    if rng.random() < 0.7:
        record = np.where(rng.random(3) < 0.4, record, rng.uniform(LOW - 5, HIGH + 5))
    row = rng.integers(len(table))
    if adjacency == "replace_one":
        other = table.copy()
        other[row] = record
        return other
    return np.delete(table, row, axis=0) if rng.random() < 0.3 else np.vstack([table, record])


@each_value(1)
@RELATIONS
@pytest.mark.parametrize("way", [private_sum, private_mean])
def test_no_record_moves_what_is_released_further_than_the_profile(adjacency, way):
    rng = np.random.default_rng(0)
    table = rng.uniform(LOW - 1, HIGH + 1, size=(40, 3))
    table[:8] = list(itertools.product(*zip(LOW, HIGH, strict=True)))
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    mechanism = way(table, LOW, HIGH, guarantee, **LAPLACE).mechanism
    bounds = bounds_of(LOW, HIGH, 3)
    counted = mechanism.sensitivity.n_coordinates == 4
    assert counted == (adjacency == "add_remove" and way is private_mean)
    if adjacency == "add_remove" and not counted:
        bounds = dataclasses.replace(
            bounds, centred=False
        )  # the wide column is far from zero: plain sums are better

    def released(data):
        # Same words, same noise: the difference is that of the exact integers.
        noisy = noisy_sums(data, bounds, mechanism)
        return np.rint(noisy / mechanism.grid_size)

    limit = mechanism.sensitivity.per_coordinate / mechanism.grid_size
    before = released(table)
    worst = np.zeros(limit.size)
    for _ in range(3000):
        moved = np.abs(released(neighbour(table, adjacency, rng)) - before)
        assert (moved <= limit + 1).all()
        worst = np.maximum(worst, moved)
    assert (worst >= limit - 2).all()


@pytest.mark.parametrize("share", [0.25, 0.5, 0.6, 0.75, 0.999])
def test_a_contribution_is_at_most_the_whole_steps_of_the_half_width(share):
    """The end of the interval lies between two steps, and never counts as the farther one."""
    steps = 1000.0 + share
    bounds = bounds_of(-1.0, 1.0, 1)
    unit = np.array([1.0 / steps])
    for value, sign in ((1.0, 1), (-1.0, -1), (50.0, 1), (-50.0, -1)):
        for n_records in (1, 3):
            table = InMemory.of(np.full((n_records, 1), value))
            assert _exact_sums(table, bounds, unit) == [sign * 1000 * n_records]


@each_value(1)
@pytest.mark.parametrize("way", [private_sum, private_mean])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_mechanism_depends_on_public_facts_alone(way, delta):
    rng = np.random.default_rng(1)
    guarantee = PrivacyGuarantee(1.0, delta, adjacency="add_remove")
    tables = [np.zeros((0, 3)), np.zeros((1, 3)), 100 * rng.normal(size=(500, 3))]
    noise = "inid_gaussian" if delta else "inid_laplace"
    found = [way(table, LOW, HIGH, guarantee, noise=noise).mechanism for table in tables]
    for mechanism in found:
        assert (mechanism.scale == found[0].scale).all()
        assert mechanism.bits == found[0].bits
        loss = mechanism.privacy_loss()
        assert loss.delta(1.0) <= delta


def test_the_uncentred_sum_moves_by_at_most_the_largest_value():
    bounds = dataclasses.replace(bounds_of(0.0, 3.0, 1), centred=False)
    guarantee = PrivacyGuarantee(1.0, adjacency="add_remove")
    mechanism = private_sum([1.0], 0.0, 3.0, guarantee, noise="inid_laplace").mechanism
    assert mechanism.sensitivity.n_coordinates == 1
    limit = 3.0 / mechanism.grid_size[0]
    data = np.array([[0.5], [2.5]])
    before, *after = (
        noisy_sums(rows, bounds, mechanism)[0] / mechanism.grid_size
        for rows in (data, np.vstack([data, [[99.0]]]), np.vstack([data, [[-99.0]]]), data[:1])
    )
    moved = [abs(float(other[0] - before[0])) for other in after]
    assert limit - 2 <= moved[0] <= limit + 1
    assert moved[1] == 0
    assert moved[2] == pytest.approx(2.5 / 3 * limit, abs=2)


@pytest.mark.parametrize("n_columns", [2, 8, 40])
def test_the_count_beside_centred_sums_lowers_their_error_as_far_as_theory_says(n_columns):
    data = np.full((100, n_columns), 0.75)
    exact = private_sum(
        data, 0, 1, GaussianLoss(0.5), adjacency="add_remove", noise="inid_gaussian"
    )
    plain = calibrate("inid_gaussian", SensitivityProfile(np.ones(n_columns)), GaussianLoss(0.5))
    theory = ((n_columns + math.sqrt(n_columns)) / 2) ** 2 / 0.25
    assert (exact.standard_error**2).sum() == pytest.approx(theory, rel=1e-5)
    assert theory < plain.expected_error()
    assert exact.count is not None


@pytest.mark.parametrize(
    ("low", "high", "guarantee", "noise", "counted"),
    [
        # A tie: the count comes at no cost.
        (0.0, 1.0, GaussianLoss(0.5), "inid_gaussian", True),
        (0.0, 1.0, PureLoss(0.5), "inid_laplace", False),
        (-1.0, 1.0, GaussianLoss(0.5), "inid_gaussian", False),
        (-1.0, [1.0, 1.5, 1.0], GaussianLoss(0.5), "inid_gaussian", True),
        (0.0, [1.0, 1.5, 1.0], PureLoss(0.5), "inid_laplace", True),
    ],
)
def test_the_better_way_to_a_sum_is_chosen(low, high, guarantee, noise, counted):
    size = np.size(high)
    data = np.zeros((10, size)) if size > 1 else np.zeros(10)
    estimate = private_sum(data, low, high, guarantee, adjacency="add_remove", noise=noise)
    assert (estimate.count is not None) == counted
    reach = np.broadcast_to(np.maximum(np.abs(low), np.abs(high)), size)
    plain = calibrate(noise, SensitivityProfile(reach), guarantee)
    assert (np.square(estimate.standard_error)).sum() <= plain.expected_error() * (1 + 1e-4)


def test_the_centred_mean_is_more_exact_than_a_noisy_sum_over_a_noisy_count():
    rng = np.random.default_rng(3)
    data = rng.uniform(0.0, 100.0, 2000)
    guarantee = PrivacyGuarantee(0.5, 1e-6, adjacency="add_remove")
    (sum_scale, count_scale) = calibrate(
        "inid_gaussian", SensitivityProfile([100.0, 1.0]), guarantee, weights=[1.0, 100.0**2 / 3]
    ).standard_deviation
    plain = math.hypot(sum_scale, data.mean() * count_scale) / data.size

    def mean(seed):
        return private_mean(data, 0.0, 100.0, guarantee, noise="inid_gaussian", random_state=seed)

    assert mean(0).standard_error < 0.55 * plain
    found = [mean(seed).value for seed in range(300)]
    assert np.std(np.array(found) - data.mean()) < 0.65 * plain


@each_value(1)
@RELATIONS
@pytest.mark.parametrize("way", [private_sum, private_mean])
def test_errors_are_those_that_are_stated(adjacency, way):
    rng = np.random.default_rng(4)
    n_columns = 400
    data = rng.uniform(-1.0, 3.0, size=(300, n_columns))
    clipped = np.clip(data, 0.0, 2.0)
    truth = clipped.sum(axis=0) if way is private_sum else clipped.mean(axis=0)
    own, total, loss = [], [], GaussianLoss(8.0)
    for seed in range(60):
        estimate = way(
            data, 0.0, 2.0, loss, adjacency=adjacency, noise="inid_gaussian", random_state=seed
        )
        total.append((estimate.value - truth) / estimate.standard_error)
        sums, scale = estimate.value - truth, estimate.standard_error
        if estimate.count is not None:
            # The noise of the sums alone: that of the count is shared by all columns.
            scale = estimate.mechanism.standard_deviation[:-1]
            centred = clipped.sum(axis=0) - len(data)
            sums = (
                estimate.value - estimate.count - centred
                if way is private_sum
                else (estimate.value - 1.0) * estimate.count - centred
            )
        own.append(sums / scale)
    own = np.array(own)
    assert deviation_pvalue(own, 1.0) > FALSE_ALARM
    assert deviation_pvalue(own, 1.05) < FALSE_ALARM
    assert deviation_pvalue(own, 0.95) < FALSE_ALARM
    assert np.square(total).mean() == pytest.approx(1.0, abs=0.1)
    assert abs(np.mean(own)) < 6.2 / math.sqrt(own.size)


@pytest.mark.slow
def test_a_noisy_count_is_a_whole_number_with_the_stated_error():
    mask = np.arange(100) % 3 == 0
    for loss, noise in ((PureLoss(1.0), "iid_laplace"), (GaussianLoss(1.5), "iid_gaussian")):

        def count(records, seed, loss=loss, noise=noise):
            return private_count(
                records, loss, adjacency="add_remove", noise=noise, random_state=seed
            )

        estimate = count(mask, 1)
        assert type(estimate.value) is int
        assert estimate.value == count(34, 1).value
        (scale,), family = estimate.mechanism.scale, estimate.mechanism.family
        k = np.arange(-400, 401)
        law = family.sf((k - 0.5) / scale) - family.sf((k + 0.5) / scale)
        assert estimate.standard_error == pytest.approx(math.sqrt(law @ k**2), rel=1e-9)
        found = [count(34, seed).value - 34 for seed in range(1000)]
        assert np.std(found) == pytest.approx(estimate.standard_error, rel=0.15)
        assert abs(np.mean(found)) < 6.2 * estimate.standard_error / math.sqrt(1000)


@pytest.mark.parametrize("loss", [PureLoss(1.0), GaussianLoss(1.0)])
def test_the_error_of_a_rounded_count_has_no_seam(loss):
    noise = "iid_laplace" if isinstance(loss, PureLoss) else "iid_gaussian"
    errors = [
        _rounded_deviation(calibrate(noise, SensitivityProfile([scale]), loss)) / scale
        for scale in (63.9, 64.1)
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


@RELATIONS
def test_releases_are_multiples_of_the_quantum_and_do_not_depend_on_the_order(adjacency):
    rng = np.random.default_rng(5)
    data = rng.normal(size=70_000)  # more than one block
    guarantee = PrivacyGuarantee(1.0, adjacency=adjacency)
    for way in (private_sum, private_mean):
        one, other = (
            way(rows, -1.0, 1.5, guarantee, random_state=3, **LAPLACE)
            for rows in (data, rng.permutation(data))
        )
        assert one.value == other.value
    plain = private_sum(data, -1.0, 1.0, PureLoss(1.0), adjacency="add_remove", **LAPLACE)
    quanta = plain.value / plain.mechanism.grid_size[0]
    assert quanta == np.rint(quanta)
    columns = private_sum(np.stack([data, data], axis=1), -1.0, 1.5, guarantee, **LAPLACE)
    assert columns.value.shape == (2,)


def test_rounding_of_contributions_does_not_add_up():
    # Every value sits half a coarse grid step beside a whole number of them.
    guarantee = PrivacyGuarantee(1.0, adjacency="add_remove")
    mechanism = private_sum([0.0], -1.0, 1.0, guarantee, noise="inid_laplace").mechanism
    value = (1000 + 0.5) * mechanism.grid_size[0]
    bounds = bounds_of(-1.0, 1.0, 1)
    data = np.full((1 << 17, 1), value)
    noise = mechanism.sample(SeededWords(0))[0, 0] * mechanism.grid_size[0]
    total = noisy_sums(data, bounds, mechanism)[0] - noise
    assert abs(total - data.sum()) <= 2 * mechanism.grid_size[0]


def test_a_mean_stays_within_its_bounds_and_weights_change_the_shares():
    guarantee = PrivacyGuarantee(0.01, adjacency="add_remove")
    for seed in range(50):
        estimate = private_mean([0.9, 0.8], 0.0, 1.0, guarantee, random_state=seed, **LAPLACE)
        assert 0.0 <= estimate.value <= 1.0
        assert estimate.standard_error <= 1.0
    empty = private_mean(np.zeros((0, 2)), 0.0, 1.0, guarantee, **LAPLACE)
    assert empty.value.shape == (2,)
    columns = np.zeros((1000, 2))
    even, uneven = (
        private_mean(
            columns, 0, 1, PrivacyGuarantee(1.0), weights=weights, **LAPLACE
        ).standard_error
        for weights in (None, [100.0, 1.0])
    )
    assert even[0] == pytest.approx(even[1])
    assert uneven[0] < 0.8 * even[0]
    assert uneven[1] > even[1]


def test_values_of_every_real_type_are_taken():
    guarantee = PrivacyGuarantee(1.0)
    expected = private_sum([0.0, 1.0, 1.0], 0, 1, guarantee, random_state=0, **LAPLACE).value
    for dtype in (bool, np.int8, np.uint64, np.float32):
        data = np.array([0, 1, 1], dtype=dtype)
        found = private_sum(data, 0, 1, guarantee, random_state=0, **LAPLACE)
        assert found.value == expected


def test_noise_on_the_integers_is_for_counts_only():
    guarantee = PrivacyGuarantee(1.0)
    for family in noise_names():
        if get_noise(family).lattice and get_noise(family).supports_pure:
            noise = f"iid_{family}"
            for way in (private_sum, private_mean):
                with pytest.raises(ValueError, match=f"'noise' parameter of {way.__name__}.*real"):
                    way([1.0], 0, 1, guarantee, noise=noise)
            estimate = private_count(34, guarantee, noise=noise, random_state=0)
            (deviation,) = estimate.mechanism.standard_deviation
            assert estimate.standard_error == pytest.approx(deviation)
            assert abs(estimate.value - 34) < 20 * deviation


def test_estimates_print_what_they_found():
    data = np.full((50, 9), 0.5)
    guarantee = GaussianLoss(0.5)
    text = str(private_mean(data, 0, 1, guarantee, adjacency="add_remove", noise="inid_gaussian"))
    assert text.startswith("[")
    assert ", ...] (0.5-GDP; count " in text
    assert text.count("±") == 6
    assert str(private_count(5, PrivacyGuarantee(1.0), **LAPLACE)).endswith("(1-DP)")


@each_value(1)
@pytest.mark.parametrize("way", [private_sum, private_mean])
@pytest.mark.parametrize(
    ("values", "low", "high", "error", "message"),
    [
        ([123.25, np.nan], 0, 1, ValueError, "'values'.*remove or replace NaN"),
        ([123.25, np.inf], 0, 1, ValueError, "'values'.*remove or replace NaN"),
        (["123.25"], 0, 1, TypeError, "'values'.*dtype <U6"),
        ([123.25 + 1j], 0, 1, TypeError, "'values'.*dtype complex128"),
        (123.25, 0, 1, ValueError, r"'values'.*shape \(\)"),
        ([[[123.25]]], 0, 1, ValueError, r"'values'.*shape \(1, 1, 1\)"),
        (np.zeros((3, 0)), 0, 1, ValueError, r"'values'.*shape \(3, 0\)"),
        ([123.25], 1, 1, ValueError, "'low'.*swapped"),
        ([123.25], 2, 1, ValueError, "'low'.*swapped"),
        ([123.25], -np.inf, 1, ValueError, "'low'.*without bounds"),
        ([123.25], 0, np.nan, ValueError, "'high'.*without bounds"),
        ([123.25], [0, 0], 1, ValueError, r"'low'.*shape \(2,\)"),
        ([123.25], "0", 1, TypeError, "'low'.*dtype <U1"),
        ([123.25], 0, 1e61, ValueError, "nearer to one"),
        ([123.25], 0, 1e-61, ValueError, "nearer to one"),
    ],
)
def test_what_cannot_be_summed_is_refused_without_a_value(way, values, low, high, error, message):
    with pytest.raises(error, match=message) as caught:
        way(values, low, high, PrivacyGuarantee(1.0))
    assert "123.25" not in str(caught.value)
    assert way.__name__ in str(caught.value)


def test_the_neighbouring_relation_must_be_given():
    for call in (
        lambda *args, **kwargs: private_sum([1.0], 0, 1, *args, **kwargs, **LAPLACE),
        lambda *args, **kwargs: private_mean([1.0], 0, 1, *args, **kwargs, **LAPLACE),
        lambda *args, **kwargs: private_count(3, *args, **kwargs, **LAPLACE),
        lambda *args, **kwargs: private_histogram(
            [1.0], *args, bins=[0, 1, 2], **kwargs, **LAPLACE
        ),
    ):
        with pytest.raises(ValueError, match=r"'adjacency'.*must be given"):
            call(PureLoss(1.0))
        with pytest.raises(ValueError, match=r"'adjacency'.*that of the guarantee, 'replace_one'"):
            call(PrivacyGuarantee(1.0), adjacency="add_remove")
        with pytest.raises(ValueError, match=r"'adjacency'.*among"):
            call(PureLoss(1.0), adjacency="swap")
        call(PrivacyGuarantee(1.0), adjacency="replace_one")


def test_other_bad_input_is_refused():
    guarantee = PrivacyGuarantee(1.0)
    with pytest.raises(ValueError, match="'values' parameter of private_mean must not be empty"):
        private_mean([], 0, 1, guarantee)
    for weights in ([1.0, 1.0], [-1.0], [np.nan]):
        with pytest.raises(ValueError, match="'weights' parameter of private_sum"):
            private_sum([1.0], 0, 1, guarantee, weights=weights)
    with pytest.raises(TypeError, match="'weights' parameter of private_sum"):
        private_sum([1.0], 0, 1, guarantee, weights=["1"])
    with pytest.raises(ValueError, match="too wide in some columns"):
        private_sum(np.zeros((1, 2)), 0, [1e40, 1e-40], guarantee, **LAPLACE)


def test_arrays_of_pyarrow_are_read_as_numpy_reads_them():
    import pyarrow as pa

    guarantee = PrivacyGuarantee(1.0, 1e-6)
    for values in ([0.0, 1.0, 0.5] * 20, [True, False] * 30):
        sums = [
            private_sum(given, 0.0, 1.0, guarantee, random_state=0).value
            for given in (np.array(values), pa.array(values), pd.Series(values))
        ]
        assert sums[0] == sums[1] == sums[2]


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp <= 1024, reason="long doubles are doubles here")
@pytest.mark.parametrize(
    "query",
    [
        lambda values, guarantee: private_sum(values, -3.0, 3.0, guarantee),
        lambda values, guarantee: private_histogram(values, guarantee, bins=[-1.0, 0.0, 1.0]),
        lambda values, guarantee: private_norm_quantile(np.abs(values), 0.5, guarantee),
    ],
    ids=["sum", "histogram", "norm quantile"],
)
def test_a_long_double_beyond_doubles_warns_no_more_than_another(query):
    values = np.linspace(-1.0, 1.0, 1000, dtype=np.longdouble)
    values[0] = np.ldexp(values[0], 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        query(values, PrivacyGuarantee(1.0, 1e-6))
