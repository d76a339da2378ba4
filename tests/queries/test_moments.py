"""Private means and variances: exact sums, what is charged is what is moved, never NaN."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from skdpnoise.data.table import InMemory
from skdpnoise.inspection.auditing._costs import TOLERANCE
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import private_moments
from skdpnoise.queries.moments import _exact_sums
from tests._cases import each_value, every_pair, quick
from tests._replay import two_runs

CLEAR = PrivacyGuarantee(1e4, 1e-6)


def normal(n=4000, seed=0):
    return np.random.default_rng(seed).normal([10.0, -3e-4], [2.0, 5e-5], size=(n, 2))


def column(x):
    return InMemory.of(x[:, np.newaxis]), np.zeros(1, dtype=np.intp)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 1000, 70_000])
def test_sums_are_those_of_exact_arithmetic(n):
    x = np.random.default_rng(n).normal(3.0, 2.0, n)
    ((total, squares),) = _exact_sums(*column(x), np.array([3.5]), np.array([4.25]))
    k = [round(min(max(Fraction((v - 3.5) / 4.25), -1), 1) * 2**34) for v in x.tolist()]
    assert (total, squares) == (sum(k), sum(one * one for one in k))


def test_sums_of_extreme_values_are_at_the_ends():
    x = np.array([1e300, -1e300, 1e300])
    assert _exact_sums(*column(x), np.zeros(1), np.ones(1)) == [(2**34, 3 * 2**68)]


@quick("bounded-1-DP-replace_one")
@every_pair
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("guarantee", [PureLoss(1.0), GaussianLoss(0.3)], ids=str)
@pytest.mark.parametrize("bounds", [(-5.0, 5.0), None], ids=["bounded", "open"])
def test_integers_that_meet_the_noise_move_by_what_is_charged(adjacency, guarantee, bounds):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    settings = {"adjacency": adjacency, "n_samples": 400.0, "bounds": bounds, "random_state": 0}
    rows = [np.full(3, 5.0), np.full(3, -5.0), np.array([1.18, -5.0, 5.0]), np.full(3, 1e80)]
    if bounds is None:  # magnitudes and locations stay those of the first data set
        settings["guarantee"] = CLEAR if isinstance(guarantee, GaussianLoss) else PureLoss(1e3)
    else:
        settings["guarantee"] = guarantee
    for new in rows:
        for old in rows:
            first = X if adjacency == "add_remove" else np.vstack([X, [old]])
            runs = two_runs(
                lambda table: private_moments(table, **settings),
                (np.vstack([X, [new]]),),
                (first,),
                seed=0,
            )
            for one in runs.moved:
                assert one.share <= TOLERANCE


@each_value(1)
@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(1.0, 1e-6), PrivacyGuarantee(1.0)])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_what_is_charged_is_within_the_guarantee(guarantee, adjacency):
    for bounds in (None, (0.0, 20.0), ([0.0, -np.inf], [20.0, np.inf])):
        charged = []
        private_moments(
            normal(),
            guarantee,
            adjacency=adjacency,
            bounds=bounds,
            random_state=0,
            charge=lambda label, mechanism, charged=charged: charged.append((label, mechanism)),
        )
        total = sum((m.privacy_loss() for _, m in charged[1:]), charged[0][1].privacy_loss())
        assert 0.9 * guarantee.epsilon < total.epsilon(guarantee.delta) <= guarantee.epsilon
        names = [label for label, _ in charged]
        assert names[-1] == "means and mean squares"
        assert names.count("means and mean squares") == 1
        assert ("number of records" in names) == (adjacency == "add_remove")


def test_variances_cost_the_means_nothing_under_gaussian_noise():
    """One release of sums and squares has the noise of the sums alone."""
    deviations = []
    for second in (False, True):
        private_moments(
            normal(),
            GaussianLoss(0.3),
            noise="iid_gaussian",
            bounds=(-20.0, 20.0),
            second=second,
            random_state=0,
            charge=lambda _, mechanism: deviations.append(mechanism.standard_deviation[0]),
        )
    assert deviations[1] == pytest.approx(deviations[0], rel=1e-5)


@each_value(1)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("bounds", [None, ([0.0, -1e-3], [20.0, 1e-3])], ids=["open", "bounded"])
def test_defaults_are_useful_and_more_budget_means_less_error(delta, bounds):
    X, errors = normal(8000), []
    for epsilon in (1.0, 50.0):
        settings = {"guarantee": PrivacyGuarantee(epsilon, delta), "bounds": bounds}
        runs = [private_moments(X, random_state=seed, **settings) for seed in range(8)]
        means = [(r.mean - X.mean(axis=0)) / X.std(axis=0) for r in runs]
        ratios = [np.log(r.variance / X.var(axis=0)) / 2.0 for r in runs]
        errors.append(np.sqrt([np.mean(np.square(means)), np.mean(np.square(ratios))]))
        assert all(r.clear.all() for r in runs)
    assert (errors[1] < 0.05).all()
    assert (errors[1] <= errors[0]).all()
    assert (errors[0] < 0.25).all()


@every_pair
@pytest.mark.parametrize("guarantee", [PrivacyGuarantee(1.0, 1e-6), PrivacyGuarantee(1.0)])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n", [1, 2, 30, 3000])
@pytest.mark.parametrize("bounds", [None, (-5.0, 5.0), ([0.0, -np.inf], [1.0, np.inf])])
@pytest.mark.parametrize("second", [True, False])
def test_few_constant_or_huge_values_are_no_error_and_never_nan(
    guarantee, adjacency, n, bounds, second
):
    for X in (np.ones((n, 2)), np.random.default_rng(n).normal(size=(n, 2)) * 1e100):
        found = private_moments(
            X, guarantee, adjacency=adjacency, bounds=bounds, second=second, random_state=n
        )
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.deviation).all()
        assert (found.deviation > 0.0).all()


def test_the_variance_of_a_constant_column_is_what_the_noise_can_hide():
    X = np.full((5000, 1), 3.0)
    unclear = 0
    for seed in range(50):
        found = private_moments(X, PrivacyGuarantee(1.0, 1e-6), bounds=(0, 10), random_state=seed)
        assert abs(found.mean[0] - 3.0) < 0.5
        assert 0.0 < found.variance[0] < 1.0
        unclear += not found.clear[0]
    assert unclear > 35


def test_the_noise_is_the_mechanism_that_is_charged(monkeypatch):
    seen = []
    sample = AdditiveMechanism.sample
    monkeypatch.setattr(
        AdditiveMechanism,
        "sample",
        lambda self, *args, **kw: seen.append(self) or sample(self, *args, **kw),
    )
    charged = []
    private_moments(
        normal(), CLEAR, random_state=0, charge=lambda _, mechanism: charged.append(mechanism)
    )
    assert [id(m) for m in seen] == [id(m) for m in charged]
