"""Dividing one budget among the private parts of a composition."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

from skdpnoise.accounting.limits import (
    ApproximateBudget,
    Budget,
    ChanceBudget,
    SearchBudget,
    SpendingLimit,
    stated_epsilon,
)
from skdpnoise.base.compositions import inner_of
from skdpnoise.base.steps import Part, all_private, private_parts
from skdpnoise.base.tags import tags_of
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.noises import noise_names
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sampling import RandomWords

_PURE_FOR_MATRICES = ("k_norm", "wishart")
_BELOW = 1e-6  # parts ask for a little less than there is: ε is rounded up
_NEEDED = ("epsilon", "delta", "adjacency", "ledger", "random_state")
_DEFAULT = "replace_one"
_NORMAL = (GaussianLoss, ChanceBudget)  # budgets that normal noise alone can share


def check_shareable(
    owner: str, parameter: str, parts: Collection[Part], adjacency: str, ledger: Any = None
) -> None:
    # All take their share by the same parameters, have no other ledger, and protect against
    # the same neighbours: a part that asks for others than the default must ask for those of all.
    private = [part for part in parts if part.kind == "private"]
    if not private:
        raise TypeError(
            f"The {parameter!r} parameter of {owner} must hold a private estimator, or a pipeline "
            "with private steps. Got none."
        )
    for part in private:
        own = part.estimator.get_params(deep=False)
        missing = [name for name in _NEEDED if name not in own]
        if "noise" not in own and not _divides(part.estimator):
            missing.append("noise")
        if missing:
            raise ValueError(
                f"The {parameter!r} parameter of {owner} must hold private steps that can take a "
                f"share of its budget. Got {part.label or 'one'} "
                f"({type(part.estimator).__name__}) without the parameters {', '.join(missing)}. "
                "A search goes around a pipeline, not into it: DPGridSearchCV(DPPipeline(...))."
            )
        if own["ledger"] is not None and own["ledger"] is not ledger:
            raise ValueError(
                f"The {parameter!r} parameter of {owner} must leave {part.prefix + 'ledger'!r} at "
                f"None: all is charged as a whole. Give the ledger to {owner}."
            )
        asked = signature(type(part.estimator)).parameters.get("adjacency")
        is_default = own["adjacency"] == _DEFAULT and (asked is None or asked.default == _DEFAULT)
        if not (is_default or own["adjacency"] in (adjacency, None)):
            raise ValueError(
                f"The 'adjacency' parameter of {owner} must be that of its steps. Got "
                f"{adjacency!r}, and {part.prefix + 'adjacency'}={own['adjacency']!r}."
            )


def pure_noise(estimator: Any) -> bool:
    """Return whether the noise of the private parts calls for a pure budget."""
    pure = noise_names(pure=True)
    for one in all_private(estimator):
        own = one.get_params(deep=False)
        noise = own.get("noise", "")
        if own.get("delta") == 0.0 or noise in _PURE_FOR_MATRICES:
            return True
        if noise.partition("_")[2] in pure:
            return True
    return False


def samples_records(estimator: Any) -> bool:
    """Return whether a private part samples records, so that its loss is no Gaussian one."""
    return any(tags_of(one).samples_records for one in all_private(estimator))


def shows_by_chance(estimator: Any) -> bool:
    """Return whether a private part may show, by chance, what only one record has."""
    return any(tags_of(one).reveals_by_chance for one in all_private(estimator))


def whole_budget(
    guarantee: PrivacyGuarantee, *, pure: bool, samples: bool = False, chances: bool = False
) -> Budget:
    """Return what the guarantee of a composition allows: in ε, in μ, or in both ε and δ."""
    if guarantee.delta == 0.0 or (pure and not chances):
        return PureLoss(guarantee.epsilon)
    if samples or pure:
        return ApproximateBudget.of(guarantee)
    if chances:
        return ChanceBudget.of(guarantee)
    return GaussianLoss(gdp_mu(guarantee.epsilon, guarantee.delta))


def search_budget(
    guarantee: PrivacyGuarantee, *, pure: bool, samples: bool, rows_per_group: int = 1
) -> SearchBudget:
    """Return what the guarantee of a search allows one row, whose fits count in no chances."""
    total = whole_budget(guarantee, pure=pure, samples=samples)
    assert not isinstance(total, ChanceBudget)  # candidates that show by chance count in ε and δ
    return total if rows_per_group == 1 else total.per_row(rows_per_group)


def with_budget(
    estimator: Any,
    budget: Budget,
    delta: float,
    *,
    ledger: SpendingLimit | None,
    rng: RandomWords,
    weights: Mapping[str, float] | None = None,
) -> Any:
    """Return an unfitted copy whose private parts share a budget."""
    copy = clone(estimator)
    parts = private_parts(copy)
    pure = not isinstance(budget, GaussianLoss | ChanceBudget)  # weights are of ε
    if weights is None:
        weights = {part.label: _weight(part.estimator, pure=pure) for part in parts}
    by_chance = {part.label for part in parts if shows_by_chance(part.estimator)}
    shares = _divided(budget, {part.label: weights[part.label] for part in parts}, by_chance)
    changes: dict[str, Any] = {}
    for part in parts:
        own = part.estimator.get_params(deep=False)
        new: dict[str, Any] = {"ledger": None if ledger is None else ledger.part(part.label)}
        new |= _terms(shares[part.label], delta)
        if own.get("noise") in CHOICES and isinstance(shares[part.label], _NORMAL):
            new["noise"] = tags_of(part.estimator).normal_noise
        if ledger is not None:
            new["adjacency"] = ledger.adjacency
        new["random_state"] = seed_from(rng)
        changes |= {part.prefix + name: value for name, value in new.items()}
    return copy.set_params(**changes)


def _divided(
    budget: Budget, weights: Mapping[str, float], by_chance: Collection[str]
) -> dict[str, Budget]:
    """Return the share of each part; chances are for those parts alone that show by chance."""
    total = sum(weights.values())
    shares = {
        label: budget.share(weight / total * (1.0 - _BELOW)) for label, weight in weights.items()
    }
    if not isinstance(budget, ChanceBudget):
        return shares
    asking = sum(weights[label] for label in by_chance)
    normal: dict[str, Budget] = {}
    for label, share in shares.items():
        mu = share.mu if isinstance(share, ChanceBudget) else 0.0
        fraction = weights[label] / asking * (1.0 - _BELOW)
        own = ChanceBudget(mu, budget.chance * fraction)
        normal[label] = own if label in by_chance else GaussianLoss(mu)
    return normal


def _terms(share: Budget, delta: float) -> dict[str, float]:
    """Return the parameters by which a part takes its share."""
    if isinstance(share, PureLoss):
        return {"epsilon": share.pure_epsilon, "delta": 0.0}
    if isinstance(share, ApproximateBudget):
        return {"epsilon": share.epsilon, "delta": share.delta}
    if isinstance(share, ChanceBudget):
        return dict(zip(("epsilon", "delta"), share.guarantee(), strict=True))
    epsilon = stated_epsilon(share.mu, delta)
    if epsilon <= 0.0:
        raise ValueError(
            f"The 'delta' parameter, {delta:g}, is so large that it covers a step, or a fit of a "
            "candidate, with an epsilon of 0, which no estimator takes. Choose a smaller delta, or "
            "a larger value of the 'epsilon' parameter."
        )
    return {"epsilon": epsilon, "delta": delta}


def _divides(estimator: Any) -> bool:
    """Return whether a private estimator divides what it gets among steps with noise."""
    return bool(inner_of(estimator)[0]) and "weights" in estimator.get_params(deep=False)


def _weight(estimator: Any, *, pure: bool) -> float:
    """Return how much of the budget a part asks for: its ε, or its μ²."""
    epsilon, delta = float(estimator.epsilon), float(estimator.delta)
    return epsilon if pure or delta == 0.0 else gdp_mu(epsilon, delta) ** 2


def seed_from(rng: RandomWords) -> int | None:
    """Return a seed that a generator gives; None from the operating system's."""
    return None if rng.secure else int(rng.take(1)[0] >> np.uint64(32))
