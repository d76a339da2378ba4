"""What a search of repeated runs costs: our curve beside Rényi accounting and a simple bound.

For a total of (1, 1e-6) the largest μ of one Gaussian run, by Papernot and Steinke's Theorem 2 (or
6), by E[K] δ(ε - B), by our curve, and by an order of scores made to hurt, which no accounting can
exceed. Then the laws of K that try one of the two best of 20 candidates with probability 0.9, and
what ten searches cost together.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.mechanisms import base_budget, repeated_loss
from skdpnoise.privacy import (
    GaussianLoss,
    PoissonRepetitions,
    PrivacyGuarantee,
    TruncatedNegativeBinomial,
)
from skdpnoise.privacy.conversions import gdp_delta, gdp_mu
from skdpnoise.privacy.curves import NormalShift
from skdpnoise.privacy.repetition.curve import RepetitionBound

TOTAL = PrivacyGuarantee(1.0, 1e-6)
SEARCHES = 10
Law = TruncatedNegativeBinomial | PoissonRepetitions


def renyi_epsilon(law: Law, mu: float, delta: float, searches: int = 1) -> float:
    """Return ε by the Rényi theorems, with the best orders of a fine grid."""
    rho = 0.5 * mu**2
    order = np.geomspace(1.001, 5000.0, 4000)
    if isinstance(law, PoissonRepetitions):
        # Theorem 6: the extra is E[K] times the δ of one run at log(1 + 1/(order - 1)).
        one = np.array([gdp_delta(mu, math.log1p(1.0 / (a - 1.0))) for a in order])
        extra = law.mean * one
    else:
        other = np.geomspace(1.001, 5000.0, 4000)
        costs = (other - 1.0) * rho + math.log(1.0 / law.gamma) / other
        extra = np.full_like(order, (1.0 + law.eta) * costs.min())
    renyi = searches * (order * rho + extra + math.log(law.mean) / (order - 1.0))
    to_delta = np.log1p(-1.0 / order) + (math.log(1.0 / delta) - np.log(order)) / (order - 1.0)
    return float((renyi + to_delta).min())


def simple_delta(law: Law, mu: float, epsilon: float) -> float:
    """Return E[K] δ(ε - B) with B the largest log g(u)/g(U(u))."""
    u = np.geomspace(1e-9, 1.0 - 1e-9, 4000)
    excess = float((law.log_derivative(u) - law.log_derivative(ndtr(ndtri(u) + mu))).max())
    return law.mean * gdp_delta(mu, epsilon - excess) if epsilon > excess else 1.0


def order_delta(law: Law, mu: float, epsilon: float) -> float:
    """Return δ of an order that puts the neighbour's likely outputs first, then its unlikely ones.

    The second part is small, so that g is constant on it.
    """
    first = np.geomspace(1e-9, 0.9, 400)
    a, b = (np.exp(law.log_derivative(v)) for v in (first, ndtr(ndtri(first) + mu)))
    ratio = epsilon + np.log(b / a)
    best = 0.0
    for share in np.geomspace(1e-12, 0.1, 300):
        a_end, b_end = (
            np.exp(law.log_derivative(np.minimum(v, 1.0)))
            for v in (first + share, ndtr(ndtri(first) + mu))
        )
        gain = a_end * share - math.exp(epsilon) * b_end * ndtr(ndtri(share) - mu)
        best = max(best, float(gain[ratio > 0.0].max(initial=0.0)))
    return best


def largest_mu(delta_of: Callable[[float], float]) -> float:
    """Return the μ at which an increasing δ meets the guarantee."""

    def excess(mu: float) -> float:
        return math.log(max(delta_of(mu), 1e-300) / TOTAL.delta)

    return float(brentq(excess, 1e-4, 1.2 * gdp_mu(TOTAL.epsilon, TOTAL.delta), xtol=1e-6))


def unpriced(law: Law, mu: float) -> float:
    """Return our bound without prices of positions."""
    bound = RepetitionBound(lambda losses: NormalShift().hockey_stick(losses, mu), law)
    return float(bound.without_prices(np.array([TOTAL.epsilon]))[0])


def budgets(law: Law) -> dict[str, float]:
    """Return the μ of one run by each accounting, and the seconds that ours took."""
    started = time.perf_counter()
    ours = base_budget(TOTAL, law)
    seconds = time.perf_counter() - started
    assert isinstance(ours, GaussianLoss)
    mu = ours.mu
    renyi = brentq(
        lambda m: renyi_epsilon(law, m, TOTAL.delta) - TOTAL.epsilon, 1e-4, 0.24, xtol=1e-6
    )
    return {
        "renyi": float(renyi),
        "simple": largest_mu(lambda m: simple_delta(law, m, TOTAL.epsilon)),
        "unpriced": largest_mu(lambda m: unpriced(law, m)),
        "ours": mu,
        "at most": largest_mu(lambda m: order_delta(law, m, TOTAL.epsilon)),
        "seconds": seconds,
        "searches": repeated_loss(ours, law).compose(SEARCHES).epsilon(TOTAL.delta),
        "searches by renyi": renyi_epsilon(law, mu, TOTAL.delta, SEARCHES),
    }


def laws(quick: bool) -> list[tuple[str, Law]]:
    """Return the laws compared, by the rule that chose their parameter."""
    found: list[tuple[str, Law]] = []
    for mean in (20.0,) if quick else (10.0, 30.0, 60.0):
        rule = f"mean {mean:g}"
        found += [
            (rule, TruncatedNegativeBinomial.with_mean(eta, mean)) for eta in (-0.5, 0.0, 1.0)
        ]
        found.append((rule, PoissonRepetitions(mean)))
    etas = (1.0, 2.0) if quick else (0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
    found += [("coverage", TruncatedNegativeBinomial.with_coverage(eta, 0.1, 0.9)) for eta in etas]
    return [*found, ("coverage", PoissonRepetitions.with_coverage(0.1, 0.9))]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if ours is never worse than the others nor impossible."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks repetition",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(parser)
    args = parser.parse_args(argv)
    total = gdp_mu(TOTAL.epsilon, TOTAL.delta)
    rows: list[list[object]] = []
    records: list[dict[str, Any]] = []
    for rule, law in laws(args.quick):
        eta = getattr(law, "eta", None)
        found = budgets(law)
        records.append({"rule": rule, "law": repr(law), "coverage": law.coverage(0.1), **found})
        rows.append(
            [
                rule,
                "Poisson" if eta is None else f"{eta:g}",
                law.mean,
                law.coverage(0.1),
                found["renyi"],
                found["simple"],
                found["ours"],
                found["at most"],
                found["ours"] / total,
                found["searches by renyi"],
                found["searches"],
                found["seconds"],
            ]
        )
    headers = ["rule", "η", "E[K]", "P(top 10%)", "μ Rényi", "μ simple", "μ ours", "μ at most"]
    headers += ["ours/total", f"ε of {SEARCHES}, Rényi", f"ε of {SEARCHES}, ours", "s"]
    print_table(headers, rows, title=f"μ of one run for a search of {TOTAL}; total μ={total:.4f}")
    sound = all(
        max(r["renyi"], r["simple"]) <= r["ours"] * (1.0 + 1e-3)
        and r["ours"] <= r["at most"] * (1.0 + 1e-3)
        for r in records
    )
    save_json(args.out, "repetition", {"protocol": __doc__, "total_mu": total, "laws": records})
    return 0 if sound else 1
