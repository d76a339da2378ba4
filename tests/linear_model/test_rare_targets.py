"""Targets that are mostly 0 are learned where there are enough of the others, or it is said."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from skdpnoise import DPHuberRegressor, DPLogisticCD, DPPoissonRegressor, DPRidge
from skdpnoise.inspection.auditing._costs import TOLERANCE, total_moved
from skdpnoise.linear_model import _targets
from skdpnoise.linear_model._budget import split_budget
from skdpnoise.linear_model._records import Settings
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import ranges
from skdpnoise.queries.location_scale import LocationScale
from skdpnoise.queries.searched_location import SearchedLocation
from tests._cases import each_value
from tests._replay import two_runs
from tests.linear_model._public import public_schema

quiet = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")


def claims(n=10_000, share=0.07, seed=0):
    """Rows, and amounts of which so many are not 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    score = X @ [1.0, 0.5, 0.0, 0.0, 0.0]
    above = np.quantile(score, 1.0 - share)
    amounts = 1000.0 * np.exp(0.5 * rng.normal(size=n) + 0.5 * (score - above))
    return X, np.where(score + 0.3 * rng.normal(size=n) > above, amounts, 0.0)


def counts(n, mean, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    score = np.clip(0.8 * X @ [1.0, 0.5, 0.0, 0.0, 0.0], -4.0, 4.0)
    return X, rng.poisson(np.exp(score) * mean / 1.5).astype(float)


def labels(model):
    return [one.label for one in model.privacy_.releases]


@quiet
@pytest.mark.parametrize("delta, least", [(1e-6, 0.14), (0.0, 0.1)])
def test_claims_are_learned_without_bounds(delta, least):
    X, y = claims()
    scores = [DPRidge(1.0, delta, random_state=seed).fit(X, y).score(X, y) for seed in range(5)]
    assert np.median(scores) > least + 0.02
    assert min(scores) > 0.05


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("share, n, delta", [(0.03, 10_000, 1e-6), (0.03, 30_000, 0.0)])
def test_rarer_claims_are_learned_without_bounds(share, n, delta):
    X, y = claims(n, share)
    scores = [DPRidge(1.0, delta, random_state=seed).fit(X, y).score(X, y) for seed in range(8)]
    assert np.median(scores) > 0.07
    assert min(scores) > -0.05


@quiet
@pytest.mark.parametrize("mean", [0.02, 0.1])
def test_rare_counts_are_no_worse_than_their_mean(mean):
    X, y = counts(3000, mean)
    scores = [DPPoissonRegressor(random_state=seed).fit(X, y).score(X, y) for seed in range(7)]
    assert np.median(scores) > -0.02
    assert min(scores) > -0.2


@quiet
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_counts_without_a_scale_have_a_paid_mean(delta):
    X, y = counts(2000, 0.02)
    settings = {"feature_bounds": (-5.0, 5.0), "random_state": 0}
    model = DPPoissonRegressor(1.0, delta, **settings).fit(X, y)
    assert (model.coef_ == 0.0).all()
    assert "target: mean count" in labels(model)
    assert model.predict(X).mean() == pytest.approx(y.mean(), abs=0.02)


@quiet
@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [1.0, 20.0])  # a constant, and a model
def test_one_record_moves_the_mean_count_by_what_is_charged_for(adjacency, delta, epsilon):
    X, y = counts(500, 0.05)
    settings = {"adjacency": adjacency, "feature_bounds": (-5.0, 5.0)}
    largest = 0.0
    for seed, (here, there) in enumerate([(0.0, 1e90), (0.0, 1.0), (1.0, 0.5), (0.0, 3.0)]):
        model = DPPoissonRegressor(epsilon, delta, random_state=seed, **settings)
        first, second = (X, np.append(y[:-1], there)), (X, np.append(y[:-1], here))
        if adjacency == "add_remove":
            second = X[:-1], y[:-1]
        runs = two_runs(lambda X, y, model=model: model.fit(X, y), first, second, seed)
        runs.check_same()
        assert all(one.share <= TOLERANCE for one in runs.moved)
        assert total_moved(runs.moved).delta(epsilon * TOLERANCE) <= delta * TOLERANCE
        shares = [one.share for one in runs.moved if one.label == "target: mean count"]
        largest = max([largest, *shares])
    assert largest > 0.9


@quiet
@pytest.mark.parametrize("n, bisected", [(900, True), (2000, False)])
def test_a_second_look_gives_back_what_it_did_not_use_of_histograms(n, bisected, monkeypatch):
    # Of few counts magnitudes are bisected: what that costs is not there for the model.
    seen, looked, bisect = [], _targets._looked_again, ranges.bisect_columns

    def note(run, low, differ):
        look, after = yield from looked(run, low, differ)
        seen.append((run.budget, after.budget))
        return look, after

    def note_bisections(*args, **kwargs):
        seen.append("bisected")
        return bisect(*args, **kwargs)

    monkeypatch.setattr(_targets, "_looked_again", note)
    monkeypatch.setattr(ranges, "bisect_columns", note_bisections)
    X = np.random.default_rng(0).normal(size=(n, 2))
    model = DPPoissonRegressor(feature_bounds=(-3.0, 3.0), random_state=0).fit(X, np.zeros(n))
    assert "target: magnitudes" in labels(model)
    *steps, (before, after) = seen
    assert steps == ["bisected"] * bisected
    part = (after.searching - before.searching) / (1.0 - before.searching)
    assert part == pytest.approx(before.looking * (1.0 if bisected else ranges.SEARCH_SHARES[0]))


@each_value(1)
@pytest.mark.parametrize("n_samples", [400.0, 3000.0, 1e6])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_comes_after_a_search_is_a_part_of_what_is_left(n_samples, delta):
    schema = public_schema(np.array([[-1.0], [1.0]]), np.array([[-np.inf], [np.inf]]))
    settings = Settings.of(DPRidge())
    budget = split_budget(settings, 1, schema, PrivacyGuarantee(1.0, delta)).for_records(n_samples)
    parts, left = [budget.search], budget
    if (another := left.with_another_look()) is not None:
        loss, left = another
        parts.append(loss)
    loss, left = left.with_one_more(0.5)
    parts += [loss, left.features, left.model]
    whole = sum(parts[1:], parts[0])
    assert whole.delta(1.0) <= delta
    assert whole.epsilon(delta) > 0.999


def test_labels_are_not_looked_at_again():
    bounds = np.array([[-1.0], [1.0]])
    schema = public_schema(bounds, None)
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    assert split_budget(Settings.of(DPLogisticCD()), 1, schema, guarantee).looking == 0.0


def looked(scale, unit, found=True):
    facts = np.zeros(1), np.array([scale]), np.array([found])
    return LocationScale(*facts), np.array([unit])


@pytest.mark.parametrize(
    "scale, unit, taken",
    [
        (1e-300, 1.0, True),  # within the spike of zeros
        (0.2, 1.0, True),
        (0.3, 1.0, False),  # a rare value's magnitude is a few deviations
        (1.0, 1.0, False),
        (10.0, 1.0, False),  # a long tail's, a part of one
        (270.0, 1.0, True),  # beside all values
    ],
)
def test_a_look_is_taken_where_the_search_is_far_from_it(scale, unit, taken):
    search = SearchedLocation(0.0, 0.1, scale, True)
    assert _targets._compared(search, looked(0.25, unit))[1] == taken
    assert not _targets._compared(search, looked(0.25, unit, found=False))[1]
    assert not _targets._compared(search, None)[1]


@pytest.mark.parametrize("Model", [DPRidge, DPHuberRegressor, DPPoissonRegressor])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_constant_is_never_silent(Model, delta):
    if Model is DPHuberRegressor and not delta:
        pytest.skip("whole gradients need delta > 0")
    X, y = claims(3000, 0.01)
    for seed in range(4):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = Model(1.0, delta, random_state=seed).fit(X, y)
        heard = " ".join(str(one.message) for one in caught)
        nearly_constant = np.ptp(model.predict(X)) < 1e-3 * y.std()
        assert not nearly_constant or ("constant" in heard and "epsilon=1" in heard)


@pytest.mark.parametrize(
    "found, believed, said", [(False, True, 1), (True, True, 0), (False, False, 0)]
)
def test_a_scale_of_which_a_look_shows_nothing_is_said_to_be_doubtful(found, believed, said):
    run = SimpleNamespace(settings=SimpleNamespace(owner="DPRidge"), asked_epsilon=0.7)
    look = looked(0.25, 1.0, found=found)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _targets._warn_of_no_scale(run, look, believed=believed)
    assert len(caught) == said
    assert all("constant" in str(w.message) and "epsilon=0.7" in str(w.message) for w in caught)
