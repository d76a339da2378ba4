"""A candidate gets its share, and a cap keeps it from taking more."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdpnoise import DPLogisticCD, DPRobustScaler, DPStandardScaler
from skdpnoise.compose._caps import Cap
from skdpnoise.compose._shares import with_budget
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.privacy import GaussianLoss, PureLoss, gdp_mu
from skdpnoise.sampling import SeededWords

CLASSIFIER = DPLogisticCD(feature_bounds=(-4.0, 4.0))


@pytest.mark.parametrize("budget", [GaussianLoss(0.1), PureLoss(0.3)])
def test_a_fit_within_its_share_passes_and_one_beyond_is_stopped(budget):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] + rng.normal(size=2000) > 0
    words = SeededWords(0)
    delta = 0.0 if isinstance(budget, PureLoss) else 1e-6
    cap = Cap(budget, "replace_one")
    model = with_budget(CLASSIFIER, budget, delta, ledger=cap, words=words)
    model.fit(X, y)
    assert cap.n_charges == 1
    with pytest.raises(BudgetExceededError):  # a second fit from the same share
        model.fit(X, y)
    greedy = with_budget(CLASSIFIER, budget, delta, ledger=Cap(budget, "replace_one"), words=words)
    with pytest.raises(BudgetExceededError):
        greedy.set_params(epsilon=1.001 * greedy.epsilon).fit(X, y)


def test_shares_do_not_exceed_the_whole():
    pipeline = make_pipeline(DPStandardScaler(0.2), DPRobustScaler(0.3), DPLogisticCD(0.5))
    for mu in (1e-3, 0.1, 2.0):
        model = with_budget(pipeline, GaussianLoss(mu), 1e-6, ledger=None, words=SeededWords(0))
        spent = sum(gdp_mu(step.epsilon, step.delta) ** 2 for _, step in model.steps)
        assert spent <= mu**2
        assert spent == pytest.approx(mu**2, rel=1e-5)
