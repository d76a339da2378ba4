"""A refusal names the largest ε that still fits: it fits, and one per cent more does not."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.base import clone

from skdpnoise import DPCoordinateDescentRegressor, DPGridSearchCV, DPLogisticCD, PrivacyLedger
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.mechanisms import calibrate
from skdpnoise.mechanisms.selection import repeated_loss
from skdpnoise.model_selection import _runs, dp_cross_validate
from skdpnoise.noises.truncated_laplace import TruncatedLaplace
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PoissonRepetitions,
    PrivacyGuarantee,
    PureLoss,
    TruncatedNegativeBinomial,
    gdp_mu,
)
from skdpnoise.queries import private_categories, private_mean
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, quick
from tests.contracts._register import PRIVATE, each, ways

pytestmark = pytest.mark.usefixtures("the_same_words")


DELTA = 1e-6
ONE, TWO = SensitivityProfile([1.0]), SensitivityProfile([1.0, 2.0])


def pure(epsilon):
    return PureLoss(epsilon), (epsilon, 0.0)


def pure_beside_a_delta(epsilon):
    return PureLoss(epsilon), (epsilon, 1e-7)


def gaussian(epsilon):
    return GaussianLoss(gdp_mu(epsilon, 1e-7)), (epsilon, 1e-7)


def gaussian_unstated(epsilon):
    return GaussianLoss(gdp_mu(epsilon, DELTA)), None


def half_of_what_is_stated(epsilon):
    return GaussianLoss(0.5 * gdp_mu(epsilon, DELTA)), (epsilon, DELTA)


def stages(epsilon):
    parts = [PureLoss(share * epsilon).numeric() for share in (0.2, 0.3, 0.5)]
    return parts[0] + parts[1] + parts[2], (epsilon, DELTA)


def pure_laplace(epsilon):
    return calibrate("iid_laplace", ONE, PureLoss(epsilon)).own_loss(), (epsilon, 0.0)


def laplace_with_delta(epsilon):
    guarantee = PrivacyGuarantee(epsilon, DELTA)
    return calibrate("iid_laplace", ONE, guarantee, n_releases=5), (epsilon, DELTA)


def laplace_of_many_releases(epsilon):
    guarantee = PrivacyGuarantee(epsilon, DELTA)
    return calibrate("iid_laplace", ONE, guarantee, n_releases=200), (epsilon, DELTA)


def huber(epsilon):
    return calibrate("iid_flipped_huber", ONE, PrivacyGuarantee(epsilon, DELTA)), (epsilon, DELTA)


def discrete_laplace(epsilon):
    return calibrate("iid_discrete_laplace", TWO, PureLoss(epsilon)), (epsilon, 0.0)


def discrete_gaussian(epsilon):
    guarantee = PrivacyGuarantee(epsilon, 1e-7)
    return calibrate("iid_discrete_gaussian", ONE, guarantee), (epsilon, 1e-7)


def staircase(epsilon):
    return calibrate("iid_staircase", ONE, PureLoss(epsilon)), (epsilon, 0.0)


KINDS = [pure, pure_beside_a_delta, gaussian, gaussian_unstated, half_of_what_is_stated]
KINDS += [stages, pure_laplace, laplace_with_delta, discrete_laplace, staircase]
# What was spent before: nothing, normal noise, pure losses, both.
BEFORE = {
    "nothing": [],
    "pure": [PureLoss(0.1)],
    "gaussian": [GaussianLoss(gdp_mu(0.6, DELTA))],
    "mixed": [PureLoss(0.03), GaussianLoss(gdp_mu(0.5, DELTA)), PureLoss(0.1).numeric()],
}


def ledger_with(before, *, adaptive=False, delta=DELTA):
    ledger = PrivacyLedger("d", 1.0, delta, storage="memory", adaptive=adaptive)
    for loss in BEFORE[before]:
        ledger.charge("before", loss)
    return ledger


def ask(ledger, kind, epsilon):
    cost, guarantee = kind(epsilon)
    return ledger.charge("fit", cost, guarantee=guarantee)


CASES = [  # every second one: each kind after some losses, and each loss before some kinds
    (kind, before)
    for (i, kind), (k, before) in itertools.product(enumerate(KINDS), enumerate(BEFORE))
    if (i + k) % 2 == 0
]
# slow to calibrate
CASES += [(laplace_of_many_releases, before) for before in ("nothing", "gaussian")]
CASES += [(huber, "gaussian"), (discrete_gaussian, "nothing"), (discrete_gaussian, "gaussian")]


@quick("fixed-pure_beside_a_delta-pure", "fixed-pure-nothing")
@each_value(1)
@pytest.mark.parametrize(("kind", "before"), CASES, ids=lambda x: getattr(x, "__name__", x))
@pytest.mark.parametrize("adaptive", [False, True], ids=["fixed", "adaptive"])
def test_what_is_named_fits_and_one_per_cent_more_does_not(kind, before, adaptive):
    ledger = ledger_with(before, adaptive=adaptive)
    with pytest.raises(BudgetExceededError) as refusal:
        ask(ledger, kind, 3.0)
    total, largest = ledger.total(), refusal.value.largest_epsilon
    spent = total.adaptive_epsilon if adaptive else total.epsilon
    said = f"spent {spent:.4g} of the budget epsilon=1, and {1.0 - spent:.4g} is left."
    assert said in str(refusal.value)
    if largest == 0.0:  # a loss for which no rule of adaptive ledgers holds
        assert adaptive
        assert kind in (huber, discrete_gaussian, laplace_with_delta, laplace_of_many_releases)
        return
    assert "The largest epsilon that still fits, with the same noise and delta=" in str(
        refusal.value
    )
    assert f"is {largest!r};" in str(refusal.value)
    with pytest.raises(BudgetExceededError):
        ask(ledger, kind, 1.01 * largest)
    ask(ledger, kind, largest)
    assert ledger.total().n_charges == len(BEFORE[before]) + 1


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("profile", [ONE, TWO, SensitivityProfile([1.0, 2.0, 0.5])])
@pytest.mark.parametrize("before", BEFORE)
def test_what_is_named_fits_of_noise_whose_delta_is_a_chance_of_disclosure(profile, before):
    def truncated(epsilon):
        guarantee = epsilon, 5e-7
        return calibrate("inid_truncated_laplace", profile, PrivacyGuarantee(*guarantee)), guarantee

    ledger = ledger_with(before)
    with pytest.raises(BudgetExceededError) as refusal:
        ask(ledger, truncated, 3.0)
    largest = refusal.value.largest_epsilon
    with pytest.raises(BudgetExceededError):
        ask(ledger, truncated, 1.01 * largest)
    ask(ledger, truncated, largest)


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("noise", ["inid_laplace", "spr_laplace", "auto"])
@pytest.mark.parametrize("profile", [[0.16, 3.66, 0.76, 0.51], np.r_[20.0, np.ones(50)]])
def test_where_scales_depend_on_epsilon_calibration_finds_what_is_named(noise, profile):
    def asked(epsilon):
        guarantee = epsilon, 1e-3
        return calibrate(
            noise, SensitivityProfile(profile), PrivacyGuarantee(*guarantee)
        ), guarantee

    ledger = PrivacyLedger("d", 1.0, 2e-3, storage="memory")
    with pytest.raises(BudgetExceededError, match="The largest epsilon that still") as refusal:
        ask(ledger, asked, 3.0)
    with pytest.raises(BudgetExceededError):
        ask(ledger, asked, 1.01 * refusal.value.largest_epsilon)
    ask(ledger, asked, refusal.value.largest_epsilon)


def test_noise_whose_making_is_not_known_is_only_said_to_fit_about():
    def widened(epsilon):
        made = calibrate("iid_flipped_huber", ONE, PrivacyGuarantee(epsilon, 1e-7))
        return replace(made, scale=2.0 * made.scale), (epsilon, 1e-7)

    def stated_otherwise(epsilon):
        return calibrate("iid_flipped_huber", ONE, PrivacyGuarantee(epsilon, 1e-7)), (9.0, 1e-7)

    for kind, epsilon in ((widened, 6.0), (stated_otherwise, 3.0)):
        ledger = PrivacyLedger("d", 1.0, DELTA, storage="memory")
        with pytest.raises(BudgetExceededError, match="calibration decides") as refusal:
            ask(ledger, kind, epsilon)
        assert 0.0 < refusal.value.largest_epsilon < 9.0


class Paid(Exception):
    """Ends a fit once it is charged."""


class Until(PrivacyLedger):
    """Ends what it was charged for, and takes the same names as the ledger that it is."""

    def charge(self, label, cost, *, loss_at=None, **facts):
        super().charge(label, cost, loss_at=loss_at, **facts)
        raise Paid


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("spent", ["nothing", "gaussian"])
@each(ways(PRIVATE))
def test_every_estimator_may_use_what_is_named_and_not_one_per_cent_more(entry, spent):
    X = np.random.default_rng(0).normal(size=(200, 2))
    rows = np.round(X) if entry.reads == "labels" else X
    (adjacency, *_) = entry.adjacencies
    for delta in (DELTA, 0.0) if entry.pure else (DELTA,):
        ledger = Until("d", 1.0, 2.0 * DELTA, storage="memory", adjacency=adjacency)
        for loss in BEFORE[spent]:
            with pytest.raises(Paid):
                ledger.charge("before", loss)

        def fit(epsilon, ledger=ledger, delta=delta):
            facts = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "ledger": ledger}
            entry.estimator(**facts, random_state=0).fit(rows, entry.y(X))

        with pytest.raises(BudgetExceededError, match="The largest epsilon that still") as refusal:
            fit(3.0)
        largest = refusal.value.largest_epsilon
        with pytest.raises(BudgetExceededError):
            fit(1.01 * largest)
        with pytest.raises(Paid):
            fit(largest)


QUERIES = {
    "categories": lambda ledger, asked: private_categories(
        ["a"] * 90 + ["b"] * 9, asked, ledger=ledger
    ),
    "mean": lambda ledger, asked: private_mean(
        np.zeros((50, 2)), -1.0, 1.0, asked, noise="inid_laplace", ledger=ledger
    ),
    "quick mean": lambda ledger, asked: private_mean(
        np.zeros((50, 2)), -1.0, 1.0, asked, ledger=ledger
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_may_use_what_is_named_and_not_one_per_cent_more(name):
    ledger = ledger_with("gaussian", delta=2.0 * DELTA)

    def ask_for(epsilon):
        QUERIES[name](ledger, PrivacyGuarantee(epsilon, DELTA))

    with pytest.raises(BudgetExceededError, match="The largest epsilon that still") as refusal:
        ask_for(3.0)
    with pytest.raises(BudgetExceededError):
        ask_for(1.01 * refusal.value.largest_epsilon)
    ask_for(refusal.value.largest_epsilon)


def test_where_a_calibration_decides_the_refusal_does_not_say_that_nothing_fits():
    def truncated(epsilon):
        guarantee = epsilon, 0.01
        return calibrate("iid_truncated_laplace", ONE, PrivacyGuarantee(*guarantee)), guarantee

    def of_no_known_making(epsilon):
        made, guarantee = truncated(epsilon)
        return made.own_loss(), guarantee

    ledger = PrivacyLedger("d", 0.5, 0.01, storage="memory")
    before = calibrate("iid_truncated_laplace", ONE, PrivacyGuarantee(0.1, 0.002))
    ledger.charge("before", before, guarantee=(0.1, 0.002))
    with pytest.raises(BudgetExceededError, match="No epsilon was found that still") as refusal:
        ask(ledger, of_no_known_making, 0.6)
    assert refusal.value.largest_epsilon == 0.0
    assert "asks for (0.6, 0.01)-DP" in str(refusal.value)
    with pytest.raises(BudgetExceededError, match="The largest epsilon that still") as refusal:
        ask(ledger, truncated, 0.6)
    assert refusal.value.largest_epsilon > 0.0041
    # Most of δ is spent, and calibrations close in slowly.
    with pytest.raises(BudgetExceededError):
        ask(ledger, truncated, 1.05 * refusal.value.largest_epsilon)
    ask(ledger, truncated, refusal.value.largest_epsilon)


@each_value(1)
@pytest.mark.parametrize("shift", [1e-12, 1.0, 1e3])
@pytest.mark.parametrize("shape", [1e-9, 10.0, 700.0])
def test_truncated_noise_of_any_size_is_refused_in_words(shift, shape):
    loss = NumericLoss(((TruncatedLaplace(shape), shift, 4),))
    ledger = PrivacyLedger("d", 1e-13, 1e-30, storage="memory")
    with pytest.raises(BudgetExceededError, match="Nothing was charged"):
        ledger.charge("fit", loss, guarantee=(2.0, 1e-6))


@pytest.mark.parametrize(("spent", "left"), [(0.75, 0.25), (0.9, 0.1), (0.3, 0.7), (0.123, 0.877)])
def test_pure_budgets_are_used_to_the_last_digit(spent, left):
    ledger = PrivacyLedger("d", 1.0, 0.0, storage="memory")
    ledger.charge("before", PureLoss(spent))
    with pytest.raises(BudgetExceededError) as refusal:
        ledger.charge("fit", PureLoss(2.0))
    assert refusal.value.largest_epsilon == left
    ledger.charge("fit", PureLoss(left))


@pytest.mark.parametrize("noise", ["iid_discrete_laplace", "iid_discrete_gaussian"])
def test_the_widest_noise_on_the_integers_is_refused_in_words(noise):
    cost = calibrate(noise, SensitivityProfile([1e6]), PrivacyGuarantee(0.1, 1e-7))
    ledger = PrivacyLedger("d", 0.01, 1e-6, storage="memory")
    with pytest.raises(BudgetExceededError, match="Nothing was charged"):
        ledger.charge("fit", cost, guarantee=(0.1, 1e-7))


def test_an_empty_budget_says_that_nothing_fits():
    ledger = PrivacyLedger("d", 1.0, 0.0, storage="memory")
    ledger.charge("all", PureLoss(1.0))
    with pytest.raises(BudgetExceededError, match="Nothing of this kind fits any more") as refusal:
        ledger.charge("fit", PureLoss(0.5))
    assert refusal.value.largest_epsilon == 0.0


def test_the_number_survives_a_pickle_and_is_none_where_nobody_asked():
    error = BudgetExceededError("no", 0.25)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.largest_epsilon) == ("no", 0.25)
    assert BudgetExceededError("no").largest_epsilon is None


def test_the_same_loss_that_is_stated_otherwise_gets_its_own_answer():
    ledger = ledger_with("pure")
    answers = []
    for stated in ((2.0, 0.0), (4.0, 0.0)):
        with pytest.raises(BudgetExceededError) as refusal:
            ledger.charge("fit", PureLoss(2.0), guarantee=stated)
        answers.append(refusal.value.largest_epsilon)
    assert answers[1] == pytest.approx(2.0 * answers[0], rel=1e-3)


@pytest.mark.slow
def test_estimators_and_functions_can_use_what_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2))
    y = X[:, 0] + rng.normal(size=2_000)
    ledger = ledger_with("mixed")
    model = DPCoordinateDescentRegressor(epsilon=2.0, ledger=ledger)
    with pytest.raises(BudgetExceededError) as refusal:
        model.fit(X, y)
    largest = refusal.value.largest_epsilon
    with pytest.raises(BudgetExceededError):
        model.set_params(epsilon=1.01 * largest).fit(X, y)
    model.set_params(epsilon=largest).fit(X, y)
    other = ledger_with("gaussian")
    with pytest.raises(BudgetExceededError) as refusal:
        private_mean(X, -3.0, 3.0, PrivacyGuarantee(2.0), noise="iid_laplace", ledger=other)
    guarantee = PrivacyGuarantee(refusal.value.largest_epsilon)
    private_mean(X, -3.0, 3.0, guarantee, noise="iid_laplace", ledger=other)


# With a δ, a curve of several coordinates would take minutes.
@quick("0.0-changes0")
@pytest.mark.parametrize(
    "delta, changes", [(0.0, [1.0, 3.0]), pytest.param(1e-6, [1.0], marks=pytest.mark.slow)]
)
def test_what_still_fits_of_the_best_of_several_runs_is_named(delta, changes):
    profile = SensitivityProfile(changes)
    law = TruncatedNegativeBinomial.with_mean(1.0, 10.0)
    once = calibrate("inid_laplace", profile, PureLoss(2.0)).own_loss()
    ledger = PrivacyLedger("rows", 1.0, delta, "memory")
    ledger.charge("before", PureLoss(0.5))
    with pytest.raises(BudgetExceededError) as refusal:
        ledger.charge("best", repeated_loss(once, law))
    largest = refusal.value.largest_epsilon
    assert 0.4 < largest < 0.6

    def best_of(epsilon):  # whose pure ε is this one
        def excess(base):
            return base + law.pure_excess(base) - epsilon

        base = brentq(excess, 0.0, epsilon) * (1.0 - 1e-9)
        return repeated_loss(calibrate("inid_laplace", profile, PureLoss(base)).own_loss(), law)

    assert not ledger.covers(best_of(1.01 * largest))
    ledger.charge("best of less", best_of(largest))


class Stopped(Exception):
    pass


LOGISTIC = DPLogisticCD(feature_bounds=(-4.0, 4.0))
GRID = {"alpha": [0.0, 0.01, 0.03, 0.1]}
SEARCHES = {
    "auto": partial(DPGridSearchCV, LOGISTIC, GRID),
    "runs of a law that is given": partial(
        DPGridSearchCV, LOGISTIC, GRID, strategy="repeated", repetitions=PoissonRepetitions(6.0)
    ),
    "runs of pure noise": partial(
        DPGridSearchCV, clone(LOGISTIC).set_params(noise="iid_laplace"), GRID, strategy="repeated"
    ),
    "all candidates": partial(DPGridSearchCV, LOGISTIC, GRID, strategy="noisy_max"),
    "runs, or all of three": partial(DPGridSearchCV, LOGISTIC, {"alpha": [0.0, 0.01, 0.1]}),
}
SPENT = {
    "nothing": [],
    "a search": [repeated_loss(GaussianLoss(0.06), TruncatedNegativeBinomial(3.0, 0.18))],
    "a search and more": [
        repeated_loss(GaussianLoss(0.05), TruncatedNegativeBinomial(3.0, 0.18)),
        PureLoss(0.1),
        GaussianLoss(0.06),
    ],
}


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("spent", SPENT)
@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize(("delta", "asked"), [(DELTA, 1.5), (1e-7, 3.0), (0.0, 1.5)])
def test_a_search_may_use_what_is_named_and_not_one_per_cent_more(
    kind, spent, delta, asked, monkeypatch
):
    if delta == 0.0 and "law" in kind and spent != "nothing":
        pytest.skip("pure searches are alike")

    def stopped(run):
        raise Stopped

    monkeypatch.setattr(_runs, "without_traces", stopped)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] > 0.0
    ledger = PrivacyLedger("d", 1.0, DELTA, storage="memory")
    for loss in SPENT[spent]:
        ledger.charge("before", loss)

    def search(epsilon):
        SEARCHES[kind](epsilon=epsilon, delta=delta, ledger=ledger, random_state=0).fit(X, y)

    with pytest.raises(BudgetExceededError, match="The largest epsilon that still fits") as refusal:
        search(asked)
    largest = refusal.value.largest_epsilon
    if spent == "nothing" and delta == DELTA:
        assert largest == 1.0
    with pytest.raises(BudgetExceededError):
        search(1.01 * largest)
    with pytest.raises(Stopped):
        search(largest)
    assert ledger.total().n_charges == len(SPENT[spent]) + 1


def test_a_cross_validation_may_use_what_is_named_to_the_last_digit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    ledger = PrivacyLedger("d", 1.0, DELTA, storage="memory")
    with pytest.raises(BudgetExceededError) as refusal:
        dp_cross_validate(LOGISTIC, X, X[:, 0] > 0.0, cv=2, epsilon=1.5, ledger=ledger)
    assert refusal.value.largest_epsilon == 1.0


@each_value(1)
@pytest.mark.parametrize("factor", [2.0, 1.05, 0.5])
@pytest.mark.parametrize("curve", [PureLoss, lambda e: PureLoss(e).numeric() + GaussianLoss(0.01)])
def test_what_is_named_is_what_calibration_finds_and_not_the_same_noise_made_wider(curve, factor):
    # Of less than 0.9 another kind is made, so that what was asked for says little of it.
    def loss_at(epsilon):
        return curve(epsilon if epsilon >= 0.9 else factor * epsilon)

    ledger = PrivacyLedger("d", 0.4, DELTA, storage="memory")
    ledger.charge("before", PureLoss(0.01))
    with pytest.raises(BudgetExceededError, match="The largest epsilon that still") as refusal:
        ledger.charge("fit", loss_at(1.0), guarantee=(1.0, DELTA), loss_at=loss_at)
    largest = refusal.value.largest_epsilon
    assert not ledger.covers(loss_at(1.01 * largest))
    ledger.charge("fit", loss_at(largest))


def test_where_no_noise_gives_a_guarantee_nothing_is_named_and_the_refusal_stands():
    def loss_at(epsilon):
        raise ValueError("no noise")

    ledger = PrivacyLedger("d", 0.5, 0.0, storage="memory")
    with pytest.raises(BudgetExceededError, match="Nothing of this kind fits") as refusal:
        ledger.charge("fit", PureLoss(1.0), loss_at=loss_at)
    assert refusal.value.largest_epsilon == 0.0
