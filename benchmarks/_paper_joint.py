"""Joint bounds, correlated noise, and closed forms of resources and families."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm

from benchmarks._paper_checks import Check, Section
from benchmarks._paper_profiles import power_sum
from skdpnoise.mechanisms import calibrate
from skdpnoise.mechanisms.mixed import bounded_counts, correlated_sum
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.sensitivity import SensitivityProfile

DELTA = 1e-6
MU = {
    (0.5, 1e-6): "0.124106149",
    (1.0, 1e-6): "0.236704381",
    (1.0, 1e-5): "0.268051123",
    (2.0, 1e-6): "0.448334740",
    (5.0, 1e-6): "1.020357145",
    (0.1, 1e-6): "0.0275446502",
}
COUNTS = {1: "1", 5: "4.5687", 10: "7.1794"}


def minmax(limit: NDArray[np.float64], power: float, order: float, radius: float) -> float:
    """Return the largest Σ d_i^power over the box and the ball |d|_order <= radius, by search.

    In u = d^order the constraints are linear and the sum is concave.
    """
    top = limit**order
    start = top * min(1.0, 0.9 * radius**order / top.sum())
    exponent = power / order
    found = minimize(
        lambda u: -float((np.maximum(u, 0.0) ** exponent).sum()),
        start,
        jac=lambda u: -exponent * np.maximum(u, 1e-12) ** (exponent - 1.0),
        bounds=[(0.0, t) for t in top],
        constraints={"type": "ineq", "fun": lambda u: radius**order - u.sum()},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return -float(found.fun)


def capping() -> Section:
    """The capped profile beside the box and i.i.d. noise, and beside a general optimiser."""
    guarantee = PrivacyGuarantee(1.0, DELTA)
    mu = gdp_mu(1.0, DELTA)
    checks, rows = [], []
    curves = {}

    def three(
        name: str, family: str, limit: NDArray[np.float64], l1: float | None, l2: float | None
    ) -> dict[str, float]:
        asked = guarantee if family == "gaussian" else PrivacyGuarantee(1.0)
        joint, box = SensitivityProfile(limit, l1=l1, l2=l2), SensitivityProfile(limit)
        found = {
            "i.i.d., ball": calibrate(f"iid_{family}", joint, asked).expected_error(),
            "i.n.i.d., box": calibrate(f"inid_{family}", box, asked).expected_error(),
            "i.n.i.d., capped": calibrate(f"inid_{family}", joint, asked).expected_error(),
        }
        curves[name] = found
        rows.append([name, *found.values()])
        return found

    ones = np.ones(10)
    histogram = three("histogram, Gaussian", "gaussian", ones, 2.0, math.sqrt(2.0))
    for (item, value), printed in zip(histogram.items(), ("357", "1785", "357"), strict=True):
        checks.append(Check.digits(f"histogram, one changed count, K=10: {item}", printed, value))
    falling = np.linspace(1.0, 0.1, 10)
    cases = (
        ("falling λ, Gaussian, l2", "gaussian", None, 1.2, 1.0),
        ("falling λ, Laplace, l1", "laplace", 2.0, None, 2.0 / 3.0),
        ("falling λ, Laplace, l2", "laplace", None, 1.2, 2.0 / 3.0),
    )
    for name, family, l1, l2, power in cases:
        found = three(name, family, falling, l1, l2)
        order, radius = (2.0, l2) if l2 is not None else (1.0, l1)
        assert radius is not None
        largest = minmax(falling, power, order, radius)
        reference = largest**2 / mu**2 if family == "gaussian" else 2.0 * largest**3
        capped = found["i.n.i.d., capped"]
        checks.append(Check.formula(f"{name}: capped beside an optimiser", reference, capped))
        others = min(found["i.i.d., ball"], found["i.n.i.d., box"])
        item = f"{name}: capped over the better of the two"
        checks.append(Check.claim(item, "below 1", capped / others, capped < 0.999 * others))
    headers = ["profile", "i.i.d., ball", "i.n.i.d., box", "i.n.i.d., capped"]
    title = f"(g) Joint bounds: total squared error at ε=1, δ={DELTA:g} (Laplace pure)"
    return Section("capping", title, checks, [("errors", headers, rows)], curves)


def correlated(quick: bool) -> Section:
    """Sums of one-sided contributions, and counts with at most k ones, in units of 1/μ²."""
    checks, rows = [], []
    sizes: Sequence[int] = (1, 2, 20) if quick else (1, 2, 3, 5, 10, 20, 50, 100, 1000)
    curves: dict[str, list[float]] = {"gaussian": [], "laplace": []}
    for size in sizes:
        profiles = {"1": np.ones(size)}
        if 1 < size <= 20:
            profiles["2^i"] = 2.0 ** np.arange(size)
        for name, high in profiles.items():
            gaussian = correlated_sum(high, GaussianLoss(1.0)).expected_error()
            reference = (0.5 * (power_sum(high, 1.0) + power_sum(high, 2.0))) ** 2
            item = f"λ={name}, d={size}: Gaussian MSE"
            checks.append(Check.formula(item, reference, gaussian))
            cubes = float((high ** (2.0 / 3.0)).sum())
            shifted = 0.5 * (cubes + power_sum(high, 2.0) ** (2.0 / 3.0)) ** 3
            plain = 2.0 * cubes**3
            laplace = correlated_sum(high, PureLoss(1.0), "inid_laplace").expected_error()
            item = f"λ={name}, d={size}: Laplace MSE, or Theorem 5's if that is less"
            if name == "1":
                checks.append(Check.formula(item, min(shifted, plain), laplace))
                curves["gaussian"].append(gaussian / power_sum(high, 1.0) ** 2)
                curves["laplace"].append(laplace / plain)
            ratio = gaussian / power_sum(high, 1.0) ** 2
            rows.append([name, size, gaussian, ratio, laplace, laplace / plain, shifted < plain])
    lebeda = correlated_sum(np.ones(20), GaussianLoss(1.0)).covariance
    shared = (math.sqrt(20.0) + 1.0) / 4.0
    own = (20.0 + math.sqrt(20.0)) / 4.0
    checks.append(
        Check.formula("λ=1, d=20: shared variance, (√d+1)/4", shared, float(lebeda[0, 1]))
    )
    checks.append(
        Check.formula("λ=1, d=20: own variance, (d+√d)/4", own, float(lebeda[0, 0] - lebeda[0, 1]))
    )
    for ones, printed in COUNTS.items():
        variance = bounded_counts(20, ones, GaussianLoss(1.0)).expected_error() / 20.0
        checks.append(Check.digits(f"d=20, at most k={ones} ones: variance", printed, variance))
        s = math.sqrt((20.0 - ones) / (ones * 19.0))
        c = (1.0 - s) / 20.0
        reference = ones * (1.0 - c * ones) * (1.0 + c / s)
        checks.append(Check.formula(f"d=20, at most k={ones} ones: a + b", reference, variance))
    kept = range(1, 20)
    variances = [bounded_counts(20, k, GaussianLoss(1.0)).expected_error() / 20.0 for k in kept]
    curves["counts"] = variances
    checks.append(_subspace(30 if quick else 200))
    headers = ["λ", "d", "Gaussian MSE", "over independent", "Laplace MSE", "over independent"]
    table = ("correlated sums, μ=1 and ε=1", [*headers, "shifting pays for Laplace"], rows)
    title = "(h) Correlated noise, in units of 1/μ² or 1/ε²"
    return Section("correlated", title, checks, [table], {"sizes": sizes, "ones": kept, **curves})


def _subspace(repetitions: int) -> Check:
    """Error of a recovered subspace: halved off-diagonal variance over the same everywhere."""
    rng = np.random.default_rng(0)
    size, rank, noise = 100, 5, 0.001
    basis, _ = np.linalg.qr(rng.normal(size=(size, size)))
    values = np.where(np.arange(size) < rank, 1.0, 0.0)
    matrix = (basis * values) @ basis.T
    truth = basis[:, :rank] @ basis[:, :rank].T
    sums = np.zeros(2)
    for _ in range(repetitions):
        upper = np.triu(rng.normal(size=(size, size)), 1)
        diagonal = np.diag(rng.normal(size=size))
        for case, factor in enumerate((math.sqrt(0.5), 1.0)):
            noisy = matrix + noise * (factor * (upper + upper.T) + diagonal)
            vectors = np.linalg.eigh(noisy)[1][:, -rank:]
            sums[case] += np.linalg.norm(vectors @ vectors.T - truth)
    ratio = float(sums[0] / sums[1])
    item = "symmetric matrices: subspace error at d=100, split noise over equal noise"
    return Check.claim(item, ".700 to .714", ratio, 0.700 <= ratio <= 0.714)


def closed_forms() -> Section:
    """Resources and moments of the families beside their formulas."""
    checks = []
    for (epsilon, delta), printed in MU.items():
        checks.append(Check.digits(f"μ*({epsilon:g}, {delta:g})", printed, gdp_mu(epsilon, delta)))
    tolerance = 1e-9
    for theta in (0.5, 1.0, 2.0, 5.0):
        noise = get_noise("osgt", theta)
        variance = 1.0 + theta**2 - theta * norm.pdf(theta) / norm.sf(theta)
        item = f"OSGT θ={theta:g}: variance"
        checks.append(Check.formula(item, float(variance), noise.variance, tolerance))
        for t, change, reference in (
            (0.3, 0.4, (0.4**2 + 0.8 * (0.3 + theta)) / 2.0),
            (-0.1, 0.4, (-0.2 + 0.4) * (0.4 + 2.0 * theta) / 2.0),
        ):
            loss = float(noise.logpdf(t) - noise.logpdf(t + change))
            item = f"OSGT θ={theta:g}: loss at t={t:g}, Δ={change:g}"
            checks.append(Check.formula(item, reference, loss, tolerance))
    for epsilon in (0.5, 1.0, 2.0):
        c = math.expm1(epsilon) / (2.0 * DELTA)
        log = math.log1p(c)
        noise = get_noise("truncated_laplace", log)
        for p, reference in (
            (1.0, (1.0 - log / c) / epsilon),
            (2.0, 2.0 / epsilon**2 * (1.0 - (0.5 * log**2 + log) / c)),
        ):
            item = f"truncated Laplace ε={epsilon:g}: E|X|^{p:g}"
            ours = noise.absolute_moment(p) / epsilon**p
            checks.append(Check.formula(item, reference, ours, tolerance))
        delta = float(noise.hockey_stick(epsilon, epsilon))
        item = f"truncated Laplace ε={epsilon:g}: δ at that support"
        checks.append(Check.formula(item, DELTA, delta, tolerance))
        staircase = get_noise("staircase", epsilon)
        reference = math.exp(0.5 * epsilon) / math.expm1(epsilon)
        item = f"staircase ε={epsilon:g}: E|X|"
        checks.append(Check.formula(item, reference, staircase.absolute_moment(1.0), tolerance))
        checks.append(_flipped_huber_moments(epsilon, tolerance))
    return Section("closed_forms", "(h) Resources and closed forms of the families", checks)


def _flipped_huber_moments(alpha: float, tolerance: float) -> Check:
    x = 0.5 * alpha**2
    omega = 2.0 * (math.sqrt(2.0 * math.pi) * norm.sf(alpha) + 2.0 / alpha * math.sinh(x))
    variance = 1.0 - (2.0 / alpha) ** 3 * (x * math.cosh(x) - math.sinh(x)) / omega
    ours = get_noise("flipped_huber", alpha).variance
    item = f"flipped Huber α={alpha:g}, γ=1: variance"
    return Check.formula(item, float(variance), ours, tolerance)
