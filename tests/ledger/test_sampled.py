"""Losses of Poisson samples in a ledger: written down exactly, added, refused where unproved."""

from __future__ import annotations

import pytest

from skdpnoise.accounting.account import Account
from skdpnoise.accounting.composition import Composition
from skdpnoise.accounting.encoding import decode_loss, encode_loss
from skdpnoise.ledger import BudgetExceededError, PrivacyLedger
from skdpnoise.mechanisms import Mechanism
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, PureLoss, poisson_sampled

TRAINING = poisson_sampled(GaussianLoss(0.8), 0.02).compose(300)
LAPLACE = poisson_sampled(NumericLoss(((get_noise("laplace"), 0.1, 1),)), 0.3).compose(20)
BUDGET = {"epsilon": 4.0, "delta": 1e-6, "adjacency": "add_remove"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", [TRAINING, LAPLACE, TRAINING + GaussianLoss(0.1), LAPLACE + PureLoss(0.1) + TRAINING]
)
def test_losses_come_back_as_they_were(loss):
    read = decode_loss(encode_loss(loss))
    assert read == loss
    assert read.epsilon(1e-6) == loss.epsilon(1e-6)


@pytest.mark.slow
def test_a_ledger_adds_them_to_what_was_bought_first(storage, dataset):
    ledger = PrivacyLedger(dataset, **BUDGET, storage=storage or "memory")
    losses = [GaussianLoss(0.2), TRAINING, TRAINING]
    for number, loss in enumerate(losses):
        ledger.charge(f"release {number}", loss)
    if storage is not None:  # as another process reads it
        ledger = PrivacyLedger(dataset, storage=storage)
    expected = losses[0] + TRAINING.compose(2)
    assert ledger.total().spent == pytest.approx(expected.epsilon(1e-6), rel=2e-3)
    assert [charge.loss for charge in ledger.charges()] == losses
    assert "PoissonSampled" in ledger.charges()[1].cost


@pytest.mark.slow
def test_a_ledger_refuses_more_than_its_budget_and_says_what_fits(dataset):
    ledger = PrivacyLedger(
        dataset, epsilon=1.0, delta=1e-6, adjacency="add_remove", storage="memory"
    )
    ledger.charge("count", GaussianLoss(0.1))
    with pytest.raises(BudgetExceededError) as refusal:
        ledger.charge("training", TRAINING)
    assert 0.3 < refusal.value.largest_epsilon < 1.0
    assert ledger.total().n_charges == 1


def test_ledgers_and_accounts_of_replaced_records_refuse_them(dataset):
    ledger = PrivacyLedger(dataset, epsilon=4.0, delta=1e-6, storage="memory")
    with pytest.raises(ValueError, match=r"PrivacyLedger\.charge must be 'add_remove'"):
        ledger.charge("training", TRAINING)
    with pytest.raises(ValueError, match=r"PrivacyLedger\.charge must be 'add_remove'"):
        ledger.charge("training", TRAINING + PureLoss(0.1))
    assert ledger.total().n_charges == 0

    class Trained(Mechanism):
        noise, sensitivity, scale, grid_size = "sampled", 1.0, 1.0, 1.0

        def privacy_loss(self):
            return TRAINING

    with pytest.raises(ValueError, match=r"Account\.charge must be 'add_remove'"):
        Account(PrivacyGuarantee(4.0, 1e-6)).charge("training", Trained())


def test_adaptive_totals_count_each_step_as_if_nothing_were_sampled():
    total = Composition()
    total.add(poisson_sampled(GaussianLoss(0.05), 0.5).compose(16), (4.0, 1e-6))
    assert total.adaptive_epsilon(1e-6) == pytest.approx(GaussianLoss(0.2).epsilon(1e-6), rel=1e-9)


@pytest.mark.slow
def test_adaptive_ledgers_count_each_step_as_if_nothing_were_sampled(dataset):
    ledger = PrivacyLedger(dataset, **BUDGET, adaptive=True, storage="memory")
    steps = poisson_sampled(GaussianLoss(0.05), 0.5).compose(16)
    ledger.charge("training", steps)
    spent = GaussianLoss(0.2).epsilon(1e-6)
    assert ledger.total().adaptive_epsilon == pytest.approx(spent, rel=1e-9)
    pure = Composition().with_one_more(LAPLACE, (0.0, 0.0))
    assert float(pure.pure) == pytest.approx(LAPLACE.epsilon(0.0), rel=1e-9)
