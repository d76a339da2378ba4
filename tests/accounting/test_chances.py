"""Budgets of normal noise and of chances: what parts share, charge and report."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPKBinsDiscretizer,
    DPLogisticCD,
    DPOneHotEncoder,
    DPPipeline,
    DPQuantileTransformer,
    DPStandardScaler,
    DPTableVectorizer,
    total_guarantee,
)
from skdpnoise.accounting.limits import (
    ApproximateBudget,
    ChanceBudget,
    SpendingLimit,
    UnsettledError,
)
from skdpnoise.compose.shares import whole_budget, with_budget
from skdpnoise.ledger import BudgetExceededError, PrivacyReport, Release
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, Promised, PureLoss
from skdpnoise.privacy.curves import NormalShift
from skdpnoise.sampling import random_words
from tests._cases import each_value, quick
from tests.contracts._register import Notebook

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"kind": rng.choice(["a", "b", "c"], 3000), "number": rng.normal(5.0, 2.0, 3000)}
)
Y = (FRAME["kind"] == "a").to_numpy().astype(int)


@each_value(1)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.1])
def test_a_guarantee_is_no_less_than_its_budget_and_little_more(epsilon, delta):
    guarantee = PrivacyGuarantee(epsilon, delta)
    loss = ChanceBudget.of(guarantee).numeric()
    assert loss.delta(epsilon) <= delta
    assert loss.delta(epsilon * 0.99) > 0.9 * delta or delta == 0.1
    # the division that a step makes of its own (ε, δ), there and back
    stated = PrivacyGuarantee(*ChanceBudget.of(guarantee).guarantee())
    again = ChanceBudget.of(stated)
    assert again.mu == pytest.approx(ChanceBudget.of(guarantee).mu, rel=1e-6)
    assert again.mu <= ChanceBudget.of(guarantee).mu
    assert again.chance <= ChanceBudget.of(guarantee).chance


@pytest.mark.parametrize("parts", [(0.1, 0.9), (0.5, 0.25, 0.25)])
def test_parts_compose_to_no_more_than_the_whole(parts):
    whole = ChanceBudget.of(PrivacyGuarantee(1.0, 1e-6))
    losses = [whole.share(part).numeric() for part in parts]
    total = losses[0]
    for loss in losses[1:]:
        total = total + loss
    for epsilon in (0.2, 1.0, 1.5):
        assert total.delta(epsilon) <= whole.numeric().delta(epsilon) * (1.0 + 1e-9)


def test_losses_of_other_kinds_are_none():
    assert ChanceBudget.spent(PureLoss(0.1)) is None
    assert ChanceBudget.spent(PureLoss(0.1) + GaussianLoss(1.0)) is None
    assert ChanceBudget.spent(NumericLoss(((Promised(0.1), 0.5, 1),))) is None
    spent = ChanceBudget.spent(GaussianLoss(0.3) + NumericLoss(((Promised(0.01), 0.0, 3),)))
    assert spent.mu == pytest.approx(0.3)
    assert spent.chance == pytest.approx(0.03)


def test_chances_are_for_the_steps_alone_that_show_by_chance():
    copy = DPPipeline(
        [("scale", DPStandardScaler()), ("kinds", DPOneHotEncoder()), ("model", DPLogisticCD())]
    )
    budget = whole_budget(PrivacyGuarantee(1.0, 1e-6), pure=False, chances=True)
    made = with_budget(
        Pipeline(copy.steps), budget, 1e-6, ledger=None, rng=random_words(0)
    ).named_steps
    assert made["scale"].noise == made["model"].noise == "inid_gaussian"
    assert made["kinds"].noise == "iid_gaussian"
    own = ChanceBudget.of(PrivacyGuarantee(made["kinds"].epsilon, made["kinds"].delta))
    assert own.chance == pytest.approx(budget.chance, rel=1e-5)
    assert own.mu**2 == pytest.approx(budget.mu**2 / 3.0, rel=1e-5)
    assert made["model"].delta == 1e-6


@pytest.mark.parametrize(
    ("pure", "samples", "chances", "kind"),
    [
        (False, False, True, ChanceBudget),
        (True, False, True, ApproximateBudget),
        (False, True, True, ApproximateBudget),
        (True, False, False, PureLoss),
        (False, False, False, GaussianLoss),
    ],
)
def test_the_kind_of_budget_is_that_of_all_parts(pure, samples, chances, kind):
    kinds = {"pure": pure, "samples": samples, "chances": chances}
    assert type(whole_budget(PrivacyGuarantee(1.0, 1e-6), **kinds)) is kind
    assert type(whole_budget(PrivacyGuarantee(1.0, 0.0), **kinds)) is PureLoss


def test_a_cap_counts_both_and_refuses_either():
    budget = ChanceBudget(0.5, 1e-6)
    half = budget.share(0.49).numeric()
    for more in (GaussianLoss(0.4), NumericLoss(((Promised(0.6e-6), 0.0, 1),)), PureLoss(0.01)):
        cap = SpendingLimit(budget, "replace_one")
        cap.part("a").charge("first", half, adjacency="replace_one", guarantee=(1.0, 1e-6))
        with pytest.raises(BudgetExceededError):
            cap.part("a").charge("second", more, adjacency="replace_one", guarantee=(1.0, 1e-6))
    plain = SpendingLimit(GaussianLoss(0.5), "replace_one")
    with pytest.raises(BudgetExceededError):
        plain.part("a").charge("first", half, adjacency="replace_one", guarantee=(1.0, 1e-6))


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("noise", ["auto", "iid_laplace"])
@pytest.mark.parametrize("groups", [None, np.arange(3000) // 2])
@pytest.mark.parametrize("nested", [False, True])
def test_a_pipeline_with_an_encoder_is_charged_once_and_keeps_its_guarantee(noise, groups, nested):
    ledger = Notebook()
    steps = [("kinds", DPOneHotEncoder(noise=noise)), ("model", DPLogisticCD())]
    inner = DPPipeline(steps, ledger=None if nested else ledger, epsilon=3.0)
    model = DPPipeline([("inner", inner)], ledger=ledger, epsilon=3.0) if nested else inner
    model.fit(FRAME[["kind"]], Y, groups=groups)
    (charge,) = ledger.charges
    assert charge["guarantee"] == (3.0, 1e-6)
    report = model.privacy_
    assert report.total.delta(3.0) <= 1e-6
    assert model.score(FRAME[["kind"]], Y) > 0.95
    assert total_guarantee(model).epsilon <= 3.0 * (1.0 + 1e-9)


def test_a_width_that_is_found_out_beside_a_fixed_one_costs_what_was_reserved():
    bounds = ([0.0] * 4, [1.0] * 4)  # just what would be found
    steps = [("kinds", DPOneHotEncoder()), ("model", DPLogisticCD(feature_bounds=bounds))]
    ledger = Notebook()
    with suppress(ValueError):  # how many columns there are is released
        DPPipeline(steps, ledger=ledger).fit(FRAME[["kind"]], Y)
    assert len(ledger.charges) == 1


@pytest.mark.slow
def test_a_search_takes_encoders_and_tables():
    steps = [("table", DPTableVectorizer({"kind": "category"})), ("model", DPLogisticCD())]
    search = DPGridSearchCV(
        DPPipeline(steps), {"model__alpha": [0.0, 0.1]}, epsilon=4.0, random_state=0
    ).fit(FRAME, Y)
    assert search.privacy_.total.delta(4.0) <= 1e-6
    assert search.score(FRAME, Y) > 0.95


def test_several_normal_shifts_are_counted_each():
    spent = ChanceBudget.spent(NumericLoss(((NormalShift(), 0.3, 4), (Promised(0.01), 0.0, 2))))
    assert spent.mu == pytest.approx(0.6)
    assert spent.chance == pytest.approx(0.02)


@pytest.mark.parametrize("more", ["mu", "chance"])
def test_a_report_of_more_than_was_charged_settles_nothing(more):
    charged = ChanceBudget(0.3, 1e-7)
    told = ChanceBudget(0.6, 1e-7) if more == "mu" else ChanceBudget(0.3, 4e-7)
    cap = SpendingLimit(ChanceBudget(1.0, 1e-6), "replace_one")
    guarantee = (5.0, 1e-5)
    cap.part("a").charge("a", charged.numeric(), adjacency="replace_one", guarantee=guarantee)
    loss = told.numeric()
    release = Release("categories", "iid_gaussian", 1, 1, (1.0, 1.0), loss)
    report = PrivacyReport("A", PrivacyGuarantee(*guarantee), (release,), loss, True, planned=loss)
    with pytest.raises(UnsettledError, match="does not cover"):
        cap.settle([("a", report)])


@pytest.mark.parametrize(
    ("factor", "settles"), [((1, 1), True), ((1.1, 1), False), ((1, 1.1), False)]
)
def test_a_part_may_charge_what_it_planned_or_its_guarantee_and_not_both(factor, settles):
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    own = ChanceBudget.of(guarantee)
    stated = (guarantee.epsilon, guarantee.delta)
    cap = SpendingLimit(ChanceBudget(9.0, 1e-4), "replace_one")
    charged = ChanceBudget(factor[0] * own.mu, factor[1] * own.chance).numeric()
    cap.part("a").charge("a", charged, adjacency="replace_one", guarantee=stated)
    loss = own.share(0.5).numeric()
    release = Release("categories", "iid_gaussian", 1, 1, (1.0, 1.0), loss)
    report = PrivacyReport("A", guarantee, (release,), loss, True, planned=own.numeric())
    with nullcontext() if settles else pytest.raises(UnsettledError, match="exceeds what"):
        cap.settle([("a", report)])


@quick("auto")
@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_what_is_handed_on_reaches_the_model_after_one_charge(solver):
    number = FRAME["number"].to_numpy()
    last = DPCoordinateDescentRegressor(solver=solver, target_bounds=(-4.0, 4.0))
    ledger = Notebook()
    steps = [("table", DPTableVectorizer()), ("model", last)]
    model = DPPipeline(steps, epsilon=3.0, ledger=ledger).fit(FRAME, number)
    assert len(ledger.charges) == 1
    assert model.named_steps["model"].feature_bounds is not None


def test_bounds_that_are_handed_on_count_where_nothing_was_drawn():
    steps = [
        ("fill", DPQuantileTransformer()),
        ("cut", DPKBinsDiscretizer(strategy="uniform")),
        ("model", DPLogisticCD()),
    ]
    model = DPPipeline(steps, epsilon=5.0).fit(FRAME[["number"]], Y)
    assert model.named_steps["cut"].bin_edges_[0][-1] == 1.0
