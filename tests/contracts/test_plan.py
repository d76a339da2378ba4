"""Every private estimator plans: nothing is charged, nothing of it changes, and ledgers agree."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from skdpnoise import PrivacyLedger
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PureLoss
from tests._cases import each_value
from tests.contracts._register import PRIVATE, Forbidden, each, state, ways

N, P = 300, 3
QUICK = {"epsilons": (), "n_fits": 1}


def of_everybody():
    """Return the state of the random generator that everybody shares."""
    return np.append(*np.random.get_state()[1:3])  # noqa: NPY002


@each(ways(PRIVATE))
def test_a_plan_charges_nothing_and_leaves_the_estimator_and_all_randomness_alone(entry):
    source = np.random.RandomState(3)
    model = entry.estimator(ledger=Forbidden(), random_state=source)
    before, words, shared = state(model), source.get_state()[1].copy(), of_everybody()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = model.plan(N, P, **QUICK)
    assert state(model) == before
    np.testing.assert_array_equal(source.get_state()[1], words)
    np.testing.assert_array_equal(of_everybody(), shared)
    assert plan.guarantee.epsilon == model.epsilon
    assert (plan.n_samples, plan.n_columns, plan.affordable) == (N, P, None)
    assert sum(stage.share for stage in plan.stages) == pytest.approx(1.0)
    assert all(0.0 < stage.n_records < np.inf for stage in plan.stages)
    assert (plan.score is None) == (entry.target is None)
    assert len(plan.scores) == (entry.target is not None)
    assert not any("NOT PRIVATE" in text for text in plan.warnings)
    json.dumps(plan.to_dict(), allow_nan=False)


@pytest.mark.slow
@each(ways(PRIVATE))
def test_the_same_seed_gives_the_same_plan_and_another_one_another(entry):
    model = entry.estimator()
    first, again = (model.plan(N, P, **QUICK) for _ in range(2))
    assert first == again
    if entry.target is not None:
        other = model.plan(N, P, random_state=1, **QUICK)
        assert other.score.values != first.score.values


@pytest.mark.usefixtures("the_same_words")
@each_value(1)
@pytest.mark.slow
@each(ways(PRIVATE))
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_largest_epsilon_of_a_ledger_is_charged_and_one_per_cent_more_is_refused(entry, delta):
    model = entry.estimator(delta=delta)

    def ledger():
        relation = model.adjacency
        ledger = PrivacyLedger("trips", 1.0, 1e-5, storage="memory", adjacency=relation)
        ledger.charge("before", GaussianLoss(0.05))
        ledger.charge("before", PureLoss(0.2))
        return ledger

    found = model.plan(N, P, ledger=ledger(), **QUICK).affordable
    assert 0.1 < found < 1.0
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    y = entry.y(X)
    for factor in (1.0, 1.01):
        model.set_params(epsilon=factor * found, ledger=ledger())
        if factor > 1.0:
            with pytest.raises(BudgetExceededError):
                model.fit(X, y)
        else:
            model.fit(X, y)
        assert len(model.ledger.charges()) == (3 if factor == 1.0 else 2)
