"""Every public private_* function charges a ledger: after all checks, before anything is drawn."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

import skdpnoise.queries
from skdpnoise import PrivacyLedger
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.queries import (
    noisy_histogram,
    private_argmax,
    private_categories,
    private_count,
    private_histogram,
    private_location_scale,
    private_mean,
    private_moments,
    private_norm_quantile,
    private_quantiles,
    private_sum,
)
from skdpnoise.sampling import SeededWords
from tests._cases import each_value, quick

X = np.random.default_rng(0).uniform(0.0, 1.0, size=(400, 2))
COLUMN = X[:, 0].copy()
NAMES = ["a", "b"]

LAPLACE = {"noise": "iid_laplace"}  # "auto" compares all families, which takes a while

CALLS = {
    "private_count": lambda g, **k: private_count(COLUMN > 0.5, g, **LAPLACE, **k),
    "private_sum": lambda g, **k: private_sum(X, 0.0, 1.0, g, **LAPLACE, **k),
    "private_mean": lambda g, **k: private_mean(X, 0.0, 1.0, g, **LAPLACE, **k),
    "private_histogram": lambda g, **k: private_histogram(
        ["a", "b"] * 9, g, categories=NAMES, **LAPLACE, **k
    ),
    "noisy_histogram": lambda g, **k: noisy_histogram([5, 9], g, **LAPLACE, **k),
    "private_moments": lambda g, **k: private_moments(X, g, **k),
    "private_quantiles": lambda g, **k: private_quantiles(X, [0.5], g, **k),
    "private_location_scale": lambda g, **k: private_location_scale(X, g, **k),
    "private_norm_quantile": lambda g, **k: private_norm_quantile(COLUMN, 0.9, g, **k),
    "private_argmax": lambda g, **k: private_argmax([9.0, 4.0], g, **k),
    "private_categories": lambda g, **k: private_categories(
        NAMES * 90, replace(g, delta=g.delta or 1e-6), **k
    ),
}
NEEDS_DELTA = ["private_categories"]
# What each of them refuses: the call, and nothing is to be charged.
REFUSED = {
    "private_count": [
        lambda **k: private_count(-1, PureLoss(0.5), adjacency="replace_one", **k),
        lambda **k: private_count(3, PrivacyGuarantee(0.5), noise="no_such", **k),
    ],
    "private_sum": [
        lambda **k: private_sum([np.nan], 0.0, 1.0, PrivacyGuarantee(0.5), **k),
        lambda **k: private_sum(X, 1.0, 0.0, PrivacyGuarantee(0.5), **k),
        lambda **k: private_sum(
            X, 0.0, [1.0, 1e50], PrivacyGuarantee(0.5), noise="iid_laplace", weights=[1, 1], **k
        ),
        lambda **k: private_sum(
            X, 0.0, [1e-40, 1e50], PrivacyGuarantee(0.5), weights=[1e90, 1e-90], **k
        ),
    ],
    "private_mean": [
        lambda **k: private_mean(["a"], 0.0, 1.0, PrivacyGuarantee(0.5), **k),
        lambda **k: private_mean(np.empty((0, 2)), 0.0, 1.0, PrivacyGuarantee(0.5), **k),
        lambda **k: private_mean(X, 0.0, 1.0, PrivacyGuarantee(0.5), weights=[0, 1], **k),
    ],
    "private_histogram": [
        lambda **k: private_histogram(["a"], PrivacyGuarantee(0.5), **k),
        lambda **k: private_histogram([np.inf], PrivacyGuarantee(0.5), bins=[0, 1], **k),
        lambda **k: private_histogram([["a"]], PrivacyGuarantee(0.5), categories=NAMES, **k),
    ],
    "noisy_histogram": [
        lambda **k: noisy_histogram([-1], PrivacyGuarantee(0.5), **k),
        lambda **k: noisy_histogram(
            [0.5], PrivacyGuarantee(0.5), noise="iid_discrete_laplace", **k
        ),
        lambda **k: noisy_histogram([1], PureLoss(0.5), **k),
    ],
    "private_moments": [
        lambda **k: private_moments([[np.nan]], PrivacyGuarantee(0.5), **k),
        lambda **k: private_moments(X, PrivacyGuarantee(0.5), bounds=(1.0, 0.0), **k),
        lambda **k: private_moments(X, PrivacyGuarantee(0.5), n_samples=-3.0, **k),
        lambda **k: private_moments(X, PrivacyGuarantee(0.5), noise="iid_discrete_laplace", **k),
    ],
    "private_quantiles": [
        lambda **k: private_quantiles(X, 2.0, PrivacyGuarantee(0.5), **k),
        lambda **k: private_quantiles(X, 0.5, PrivacyGuarantee(0.5), n_samples=0.0, **k),
        lambda **k: private_quantiles(X, 0.5, PrivacyGuarantee(0.5), noise="inid_mixture", **k),
    ],
    "private_location_scale": [
        lambda **k: private_location_scale(["a"], PrivacyGuarantee(0.5), **k),
        lambda **k: private_location_scale(X, PrivacyGuarantee(0.5), n_samples=0.0, **k),
        lambda **k: private_location_scale(
            X, PrivacyGuarantee(0.5), noise="iid_discrete_laplace", **k
        ),
        lambda **k: private_location_scale(X, PrivacyGuarantee(0.5, adjacency="add_remove"), **k),
    ],
    "private_norm_quantile": [
        lambda **k: private_norm_quantile(-COLUMN, 0.9, PrivacyGuarantee(0.5), **k),
        lambda **k: private_norm_quantile(COLUMN, 1.5, PrivacyGuarantee(0.5), **k),
        lambda **k: private_norm_quantile(COLUMN, 0.9, PrivacyGuarantee(0.5), limits=(2, 1), **k),
        lambda **k: private_norm_quantile(
            COLUMN, 0.9, PrivacyGuarantee(0.5), n_samples=np.inf, **k
        ),
    ],
    "private_argmax": [
        lambda **k: private_argmax([np.nan], PrivacyGuarantee(0.5), **k),
        lambda **k: private_argmax([1.0], PrivacyGuarantee(0.5), method="no_such", **k),
        lambda **k: private_argmax([1.0], PrivacyGuarantee(0.5), sensitivity=-1.0, **k),
    ],
    "private_categories": [
        lambda **k: private_categories(NAMES, PrivacyGuarantee(0.5), **k),
        lambda **k: private_categories(3, PrivacyGuarantee(0.5, 1e-6), **k),
        lambda **k: private_categories(NAMES, PrivacyGuarantee(0.5, 1e-6), noise="no_such", **k),
    ],
}


class Book:
    """Writes charges down, or refuses them."""

    def __init__(self, *, full=False):
        self.full, self.lines = full, []

    def charge(self, label, cost, **facts):
        if self.full:
            raise BudgetExceededError("nothing is left")
        self.lines.append((label, cost, facts))


class WatchedWords(SeededWords):
    """Seeded words that note when they are read."""

    def __init__(self, book):
        super().__init__(0)
        self._book = book

    def take(self, count):
        assert self._book.lines, "something was drawn before it was paid for"
        return super().take(count)


def test_every_public_private_function_is_here():
    public = {
        name
        for name in skdpnoise.queries.__all__
        if name.startswith(("private_", "noisy_")) and callable(getattr(skdpnoise.queries, name))
    }
    assert set(CALLS) == public == set(REFUSED)
    for name in public:
        parameters = inspect.signature(getattr(skdpnoise.queries, name)).parameters
        assert parameters["ledger"].default is None
        assert parameters["ledger"].kind is inspect.Parameter.KEYWORD_ONLY


@quick("06", "private_moments", "private_categories", "private_location_scale", "private_argmax")
@each_value(1)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_one_charge_covers_the_release_and_stands_before_it(name, delta):
    if name in NEEDS_DELTA and delta == 0.0:
        pytest.skip("it is refused without delta")
    guarantee, book = PrivacyGuarantee(0.5, delta), Book()
    CALLS[name](guarantee, ledger=book, random_state=WatchedWords(book))
    ((label, cost, facts),) = book.lines
    assert label == name
    assert cost.delta(0.5) <= delta
    assert cost.epsilon(delta) >= 0.45
    assert facts["guarantee"] == (0.5, delta)
    assert (facts["adjacency"], facts["unit"]) == ("replace_one", "record")
    assert isinstance(facts["mechanism"], str)


@quick("private_mean")
@pytest.mark.parametrize("name", ["private_sum", "private_mean", "private_quantiles"])
def test_the_neighbouring_relation_is_passed_on(name):
    book = Book()
    guarantee = PrivacyGuarantee(0.5, 1e-6, adjacency="add_remove")
    CALLS[name](guarantee, ledger=book, random_state=0)
    assert [facts["adjacency"] for _, _, facts in book.lines] == ["add_remove"]


@quick("private_argmax", "private_sum", "private_moments")
@pytest.mark.parametrize("name", CALLS)
def test_what_the_budget_does_not_cover_draws_nothing(name):
    with pytest.raises(BudgetExceededError):
        CALLS[name](
            PrivacyGuarantee(0.5, 1e-6), ledger=Book(full=True), random_state=WatchedWords(Book())
        )


@pytest.mark.parametrize(
    "call",
    [call for calls in REFUSED.values() for call in calls],
    ids=[f"{name}-{i}" for name, calls in REFUSED.items() for i in range(len(calls))],
)
def test_what_is_refused_is_not_charged(call):
    book = Book()
    with pytest.raises((TypeError, ValueError)):
        call(ledger=book)
    assert book.lines == []


@each_value(1)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrong", ["ledger", 3, object()])
def test_what_cannot_be_charged_is_refused(name, wrong):
    with pytest.raises(TypeError, match=f"'ledger' parameter of {name}.*'charge'"):
        CALLS[name](PrivacyGuarantee(0.5), ledger=wrong)


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_source_of_randomness_is_refused_before_the_charge(name):
    book = Book()
    with pytest.raises((TypeError, ValueError)):
        CALLS[name](PrivacyGuarantee(0.5), ledger=book, random_state="abc")
    assert book.lines == []


@pytest.mark.usefixtures("the_same_words")
def test_a_real_ledger_adds_them_up():
    ledger = PrivacyLedger("trips", epsilon=3.0, delta=1e-6, storage="memory")
    pure = [name for name in CALLS if name not in NEEDS_DELTA]
    for name in pure:
        CALLS[name](PrivacyGuarantee(0.25), ledger=ledger)
    assert [charge.label for charge in ledger.charges()] == pure
    assert ledger.total().basic == (2.5, 0.0)
    # A choice under a Gaussian budget is charged by its range: half of what epsilon implies.
    other = PrivacyLedger("flights", epsilon=3.0, delta=1e-6, storage="memory")
    private_argmax([9.0, 4.0], GaussianLoss(0.5), ledger=other)
    (charge,) = other.charges()
    assert charge.loss.mu == pytest.approx(0.5, rel=1e-6)
    assert charge.mechanism == "exponential"


def test_a_ledger_for_other_neighbours_refuses():
    ledger = PrivacyLedger(
        "trips", epsilon=3.0, delta=1e-6, storage="memory", adjacency="add_remove"
    )
    for name in ("private_sum", "private_argmax", "private_quantiles"):
        with pytest.raises(ValueError, match="'adjacency'"):
            CALLS[name](PrivacyGuarantee(0.25), ledger=ledger)
    riders = PrivacyLedger("riders", epsilon=3.0, delta=1e-6, storage="memory", unit="group")
    with pytest.raises(ValueError, match="'unit'"):
        CALLS["private_mean"](PrivacyGuarantee(0.25), ledger=riders)
    assert ledger.total().n_charges == riders.total().n_charges == 0
