"""A candidate gets its share, and a cap keeps it from taking more."""

from __future__ import annotations

import copy
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdpnoise import DPLogisticCD, DPRobustScaler, DPStandardScaler
from skdpnoise.accounting.limits import NothingDrawnError, SpendingLimit, UnsettledError
from skdpnoise.accounting.report import PrivacyReport, Release
from skdpnoise.compose.shares import with_budget
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sampling import SeededWords

CLASSIFIER = DPLogisticCD(feature_bounds=(-4.0, 4.0))


@pytest.mark.parametrize("budget", [GaussianLoss(0.1), PureLoss(0.3)])
def test_a_fit_within_its_share_passes_and_one_beyond_is_stopped(budget):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] + rng.normal(size=2000) > 0
    words = SeededWords(0)
    delta = 0.0 if isinstance(budget, PureLoss) else 1e-6
    cap = SpendingLimit(budget, "replace_one")
    model = with_budget(CLASSIFIER, budget, delta, ledger=cap, rng=words)
    model.fit(X, y)
    assert n_charges(cap) == 1
    with pytest.raises(BudgetExceededError):  # a second fit from the same share
        model.fit(X, y)
    greedy = with_budget(
        CLASSIFIER, budget, delta, ledger=SpendingLimit(budget, "replace_one"), rng=words
    )
    with pytest.raises(BudgetExceededError):
        greedy.set_params(epsilon=1.001 * greedy.epsilon).fit(X, y)


def test_shares_do_not_exceed_the_whole():
    pipeline = make_pipeline(DPStandardScaler(0.2), DPRobustScaler(0.3), DPLogisticCD(0.5))
    for mu in (1e-3, 0.1, 2.0):
        model = with_budget(pipeline, GaussianLoss(mu), 1e-6, ledger=None, rng=SeededWords(0))
        spent = sum(gdp_mu(step.epsilon, step.delta) ** 2 for _, step in model.steps)
        assert spent <= mu**2
        assert spent == pytest.approx(mu**2, rel=1e-5)


def n_charges(cap):
    return sum(map(len, cap._fits.values()))


HALF = PureLoss(0.5)
FACTS = {"adjacency": "replace_one", "guarantee": (0.5, 0.0)}


def test_a_cap_has_no_copies_and_clones_of_estimators_share_it():
    cap = SpendingLimit(HALF, "replace_one")
    holder = DPLogisticCD(ledger=cap.part("a"))
    for make in (copy.deepcopy, pickle.dumps):
        for one in (cap.part("a"), holder, [holder], make_pipeline(holder)):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                make(one)
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        copy.copy(cap.part("a"))
    assert clone(clone(make_pipeline(holder)))[-1].ledger is holder.ledger


@pytest.mark.parametrize(
    ("cost", "facts"),
    [
        (HALF, {"guarantee": (0.5, 0.0)}),
        (HALF, {**FACTS, "adjacency": "add_remove"}),
        (PureLoss(0.500001), FACTS),
        (GaussianLoss(0.001), FACTS),
        (type("Pure", (), {"pure_epsilon": 0.1, "mu": 0.1})(), FACTS),
        (float("nan"), FACTS),
    ],
    ids=["no relation", "another relation", "too much", "another loss", "a foreign loss", "none"],
)
def test_what_a_cap_does_not_know_is_refused_and_remembered(cost, facts):
    cap = SpendingLimit(HALF, "replace_one")
    with pytest.raises(BudgetExceededError):
        cap.part("a").charge("fit", cost, **facts)
    assert n_charges(cap) == 0
    with pytest.raises(UnsettledError, match="refused"):
        cap.settle([])


def test_a_closed_cap_notes_that_it_was_asked():
    cap = SpendingLimit(None, "replace_one")
    assert not cap.asked
    with pytest.raises(NothingDrawnError):
        cap.part("a").charge("fit", HALF, **FACTS)
    assert cap.asked


def test_threads_cannot_spend_a_cap_together():
    cap = SpendingLimit(PureLoss(1.0), "replace_one")
    refused = []

    def spend():
        try:
            for _ in range(10):
                cap.part("a").charge("fit", PureLoss(0.0625), **FACTS)
        except BudgetExceededError:
            refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert n_charges(cap) == 16
    assert len(refused) >= 5


def report(epsilon, released=None):
    loss = PureLoss(epsilon if released is None else released)
    line = Release("counts", "iid_laplace", 1, 1, (1.0, 1.0), loss)
    stated = max(epsilon, loss.pure_epsilon)
    found = PrivacyReport("A", PrivacyGuarantee(stated), (line,), loss, True)
    # A report that says less than it released is refused: one that lies is made by force.
    object.__setattr__(found, "guarantee", PrivacyGuarantee(epsilon))
    return found


@pytest.mark.parametrize(
    ("reports", "settles"),
    [
        ([("a", report(0.5))], True),
        ([("a", report(0.5, released=0.2))], True),  # it stopped early
        ([("a", report(0.5, released=0.6))], False),
        ([("a", report(0.4, released=0.5))], False),
        ([("a", report(0.5)), ("a", report(0.5))], False),
        ([("a", report(0.5)), ("b", report(0.5))], False),
        ([("b", report(0.5))], False),
        ([], False),
        ([("a", None)], False),
        ([("a", report(0.5)), ("b", replace(report(0.5), releases=()))], True),  # all was public
    ],
)
def test_a_run_settles_if_its_parts_report_what_they_charged(reports, settles):
    cap = SpendingLimit(PureLoss(1.0), "replace_one")
    cap.part("a").charge("fit", HALF, **FACTS)
    if settles:
        cap.settle(reports)
        return
    with pytest.raises(UnsettledError, match="No guarantee holds"):
        cap.settle(reports)
