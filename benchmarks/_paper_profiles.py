"""Which allocation and which family is best on which profile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks._paper_checks import Check, Section, first_where
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import PrivacyGuarantee, gdp_mu
from skdpnoise.sensitivity import SensitivityProfile

DELTA = 1e-6
RULES = ("iid", "spr", "inid")
FAMILIES = ("gaussian", "laplace")
N_COORDINATES = 20
# Profile: reduction in per cent for Gaussian and Laplace noise, Gini coefficient.
REDUCTIONS = {
    "linear": ("23.17", "11.81", ".3167"),
    "quadratic": ("43.01", "27.38", ".4866"),
    "2^i": ("85.00", "75.34", ".8500"),
    "e^i": ("89.18", "82.66", ".8918"),
    "one-hot": ("95", "95", ".95"),
}


def profile(name: str, size: int) -> NDArray[np.float64]:
    """Return a profile by name: "uniform", "linear", "quadratic", "one-hot" or "<base>^i"."""
    i = np.arange(1.0, size + 1.0)
    if name == "one-hot":
        return np.where(i == 1.0, 1.0, 0.0)
    if name.endswith("^i"):
        base = math.e if name == "e^i" else float(name[:-2])
        return base**i
    return {"uniform": np.ones(size), "linear": i, "quadratic": i**2}[name]


def exponential(base: float) -> str:
    """Return the name of the exponential profile of a base."""
    return "e^i" if base == math.e else f"{base:g}^i"


def power_sum(values: NDArray[np.float64], p: float) -> float:
    """Return |x|_p."""
    return float((values**p).sum() ** (1.0 / p))


def closed_form(
    rule: str, family: str, limit: NDArray[np.float64], epsilon: float, delta: float
) -> float:
    """Total squared error: K Δ²/μ², K |λ|²/μ², |λ|_1²/μ², and their like for pure Laplace noise.

    SPR counts the coordinates that can move: one with λ_i = 0 gets no noise.
    """
    size, moving = limit.size, np.count_nonzero(limit)
    if family == "gaussian":
        square = {
            "iid": size * power_sum(limit, 2.0) ** 2,
            "spr": moving * power_sum(limit, 2.0) ** 2,
            "inid": power_sum(limit, 1.0) ** 2,
        }[rule]
        return float(square / gdp_mu(epsilon, delta) ** 2)
    square = {
        "iid": size * power_sum(limit, 1.0) ** 2,
        "spr": moving**2 * power_sum(limit, 2.0) ** 2,
        "inid": power_sum(limit, 2.0 / 3.0) ** 2,
    }[rule]
    return float(2.0 * square / epsilon**2)


def measured(
    rule: str, family: str, limit: NDArray[np.float64], epsilon: float, delta: float
) -> float:
    """Total squared error of the library's mechanism, Laplace noise by the pure criterion."""
    guarantee = PrivacyGuarantee(epsilon, delta if family == "gaussian" else 0.0)
    return calibrate(f"{rule}_{family}", SensitivityProfile(limit), guarantee).expected_error()


def errors(base: float, quick: bool) -> Section:
    """Expected error against ε at K=20 and against K at ε=1."""
    names = ("uniform", "linear", "quadratic", exponential(base), "one-hot")
    epsilons = (0.5, 1.0, 5.0) if quick else (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    sizes = (2, 20) if quick else (1, 2, 3, 5, 8, 12, 20, 30, 50)
    checks, rows = [], []
    curves: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name, rule, family in itertools.product(names, RULES, FAMILIES):
        points = [(epsilon, N_COORDINATES) for epsilon in epsilons]
        points += [(1.0, size) for size in sizes]
        found = []
        for epsilon, size in points:
            limit = profile(name, size)
            item = f"{name}, {rule} {family}, ε={epsilon:g}, K={size}"
            reference = closed_form(rule, family, limit, epsilon, DELTA)
            ours = measured(rule, family, limit, epsilon, DELTA)
            found.append(Check.formula(item, reference, ours))
        checks += found
        curves.setdefault(name, {})[f"{rule}_{family}"] = {
            "by_epsilon": [check.ours for check in found[: len(epsilons)]],
            "by_size": [check.ours for check in found[len(epsilons) :]],
        }
        here = found[epsilons.index(1.0)]
        worst = max(abs(check.difference or 0.0) / float(check.reference) for check in found)
        rows.append([name, rule, family, here.reference, here.ours, here.difference, worst])
    headers = ["profile", "rule", "noise", "formula", "ours", "difference", "worst relative, all"]
    return Section(
        "errors",
        f"(a) Total squared error, δ={DELTA:g}, Laplace noise pure; shown at ε=1, K=20",
        checks,
        [("closed forms of Theorems 4 and 5 beside calibrate", headers, rows)],
        {"epsilons": epsilons, "sizes": sizes, "errors": curves},
        shown=(),
    )


def gini(values: NDArray[np.float64]) -> float:
    """Return the Gini coefficient."""
    ranked, n = np.sort(values), values.size
    return float((2.0 * np.arange(1, n + 1) - n - 1.0) @ ranked / (n * ranked.sum()))


def reductions(base: float) -> Section:
    """Reduction of the squared error over i.i.d. noise at K=20."""
    checks, curves = [], {}
    names = ["uniform", *REDUCTIONS]
    if exponential(base) not in names:
        names.append(exponential(base))
    for name in names:
        limit = profile(name, N_COORDINATES)
        ours = []
        for family in FAMILIES:
            inid, iid = (measured(rule, family, limit, 1.0, DELTA) for rule in ("inid", "iid"))
            ours.append(100.0 * (1.0 - inid / iid))
        ours.append(gini(limit))
        curves[name] = ours
        if name in REDUCTIONS:
            parts = ("Gaussian, %", "Laplace, %", "Gini")
            checks += [
                Check.digits(f"{name}: {part}", reference, value)
                for part, reference, value in zip(parts, REDUCTIONS[name], ours, strict=True)
            ]
    return Section(
        "reductions", "(b) Squared error saved over i.i.d. noise, K=20", checks, (), curves
    )


def families(base: float, quick: bool) -> Section:
    """Laplace against Gaussian noise across K at (0.5, 1e-6), by the pure criterion and tightly."""
    epsilon = 0.5
    threshold = epsilon / (math.sqrt(2.0) * gdp_mu(epsilon, DELTA))
    checks = [Check.digits("Laplace wins while |λ|_2/3 / |λ|_1 is below", "2.849", threshold)]

    def ratio(name: str, size: int) -> float:
        limit = profile(name, size)
        laplace = measured("inid", "laplace", limit, epsilon, DELTA)
        return laplace / measured("inid", "gaussian", limit, epsilon, DELTA)

    first = first_where(lambda size: ratio("uniform", size) > 1.0, range(1, 60))
    checks.append(Check.digits("uniform: Gaussian from K", "9", first))
    for name in ("2^i", "e^i"):
        largest = max(ratio(name, size) for size in range(1, 61))
        item = f"{name}: largest ratio Laplace/Gaussian, K to 60"
        checks.append(Check.claim(item, "below 1", largest, largest < 1.0))

    names = ("uniform", "linear", "quadratic", exponential(base))
    sizes: Sequence[int] = (1, 2, 3, 5, 7, 8, 9, 10, 12, 16, 20, 30, 50)
    tight_sizes = (2, 8, 12) if quick else (1, 2, 4, 7, 8, 9, 10, 12, 16, 20, 30, 50)
    curves = {}
    guarantee = PrivacyGuarantee(epsilon, DELTA)
    for name in names:
        tight = []
        for size in tight_sizes:
            sensitivity = SensitivityProfile(profile(name, size))
            laplace = calibrate("inid_laplace", sensitivity, guarantee).expected_error()
            gaussian = calibrate("inid_gaussian", sensitivity, guarantee).expected_error()
            tight.append(laplace / gaussian)
        curves[name] = {
            "pure": [ratio(name, size) for size in sizes],
            "tight": tight,
        }
    uniform = SensitivityProfile
    first_tight = first_where(
        lambda size: (
            calibrate("iid_laplace", uniform(np.ones(size)), guarantee).expected_error()
            > calibrate("iid_gaussian", uniform(np.ones(size)), guarantee).expected_error()
        ),
        range(1, 30),
    )
    holds = all(
        tight <= curves[name]["pure"][sizes.index(size)] * (1.0 + 1e-5)
        for name in names
        for size, tight in zip(tight_sizes, curves[name]["tight"], strict=True)
        if size in sizes
    )
    checks.append(Check.claim("tight (ε, δ)-Laplace is never worse than pure", "yes", holds, holds))
    rows = [["uniform: Gaussian from K, Laplace calibrated tightly", first_tight]]
    rows += [
        [f"{name}, K={size}: tight Laplace / Gaussian", value]
        for name in names
        for size, value in zip(tight_sizes, curves[name]["tight"], strict=True)
        if size in (2, 8, 12, 20, 50)
    ]
    return Section(
        "families",
        f"(c) Laplace against Gaussian noise at ({epsilon:g}, {DELTA:g}), i.n.i.d.",
        checks,
        [("without a reference", ["item", "ours"], rows)],
        {"sizes": sizes, "tight_sizes": tight_sizes, "ratios": curves, "threshold": threshold},
    )
