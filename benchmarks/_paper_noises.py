"""Noises beyond Gaussian and Laplace: staircase, flipped Huber, and the tight Laplace guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from benchmarks._paper_checks import Check, Section
from skdpnoise.mechanisms import calibrate
from skdpnoise.mechanisms.balls import l1_staircase
from skdpnoise.noises import get_noise
from skdpnoise.privacy import PrivacyGuarantee, zcdp_delta
from skdpnoise.sensitivity import SensitivityProfile

DELTA = 1e-6
PLANE = {
    "staircase": ("3.9962", "1.9862", "1.3050", ".9546", ".7366", ".5856"),
    "γ*": (".73012", ".66708", ".60195", ".53705", ".47435", ".41535"),
    "i.i.d. Laplace": ("4", "2", "1.3333", "1", ".8", ".6667"),
    "i.n.i.d. Laplace": ("3.4283", "1.7141", "1.1428", ".8571", ".6857", ".5714"),
}
PLANE_EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
# ε: α, γ and variance of the best flipped Huber noise, variance of Gaussian noise.
ONE_DIMENSION = {
    0.5: ("20.285", "6.3695", "7.99799", "64.93"),
    1.0: ("11.047", "3.3237", "1.99978", "17.85"),
    2.0: ("6.1363", "1.7516", ".49998", "4.975"),
    5.0: ("3.0456", ".7805", ".08000", ".9605"),
}
TWENTY = {5.0: "0.07", 10.0: ".8", 20.0: "6.6"}
TIGHT = {5: ("10.0", "10"), 20: ("33.4", "40"), 100: ("79.4", "200"), 400: ("160.5", "800")}
OTHERS = ("gaussian", "laplace", "staircase", "truncated_laplace", "osgt", "subbotin")


def plane() -> Section:
    """Mean absolute error in two dimensions, one record moving the vector by 1 in the l1 norm."""
    checks = []
    curves: dict[str, list[float]] = {name: [] for name in PLANE}
    for column, epsilon in enumerate(PLANE_EPSILONS):
        guarantee = PrivacyGuarantee(epsilon)
        staircase = l1_staircase(2, 1.0, guarantee)
        ball = SensitivityProfile([1.0, 1.0], l1=1.0)
        box = SensitivityProfile([0.15, 0.85])
        ours = {
            "staircase": staircase.expected_error(p=1.0),
            "γ*": staircase.gamma,
            "i.i.d. Laplace": calibrate("iid_laplace", ball, guarantee).expected_error(p=1.0),
            "i.n.i.d. Laplace": calibrate("inid_laplace", box, guarantee, p=1.0).expected_error(
                p=1.0
            ),
        }
        for name, value in ours.items():
            curves[name].append(value)
            checks.append(Check.digits(f"ε={epsilon:g}: {name}", PLANE[name][column], value))
    title = "(d) Mean absolute error in two dimensions, Δ_1=1, λ=[0.15, 0.85]"
    return Section("plane", title, checks, (), {"epsilons": PLANE_EPSILONS, **curves})


def best_flipped_huber(epsilon: float, delta: float = DELTA) -> tuple[float, float, float]:
    """Return α, γ and the variance of the flipped Huber noise of least variance, for Δ=1."""

    def scale(shape: float) -> float:
        noise = get_noise("flipped_huber", shape)

        def excess(log_scale: float) -> float:
            value = float(noise.hockey_stick(epsilon, math.exp(-log_scale)))
            return math.log(max(value, 1e-300) / delta)

        return math.exp(brentq(excess, math.log(1e-3), math.log(1e6), xtol=1e-14))

    def variance(log_shape: float) -> float:
        shape = math.exp(log_shape)
        return float(scale(shape) ** 2 * get_noise("flipped_huber", shape).variance)

    # The minimum is flat and not the only one: a grid first.
    grid = np.log(np.geomspace(0.05, 39.0, 60))
    k = int(np.argmin([variance(x) for x in grid]))
    bounds = (grid[max(k - 1, 0)], grid[min(k + 1, grid.size - 1)])
    found = minimize_scalar(variance, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    shape = math.exp(float(found.x))
    gamma = scale(shape)
    return shape * gamma, gamma, float(found.fun)


def zcdp_variance(epsilon: float, size: int, delta: float = DELTA) -> float:
    """Return the least variance of flipped Huber noise by its closed zCDP condition, for λ=1."""

    def gamma_for(alpha: float) -> float:
        moved = alpha**2 - max(alpha - 1.0, 0.0) ** 2  # R at Δ_∞ = 1

        def excess(log_gamma: float) -> float:
            twice = 2.0 * math.exp(2.0 * log_gamma)
            left = epsilon - size * moved / twice
            if left <= 0.0:
                return 1.0
            return math.log(max(zcdp_delta(size / twice, left), 1e-300) / delta)

        return math.exp(brentq(excess, math.log(1e-2), math.log(1e5), xtol=1e-10))

    best = math.inf
    for alpha in (1e-6, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0):
        gamma = gamma_for(alpha)
        shape = min(max(alpha / gamma, 1e-6), 39.0)
        best = min(best, gamma**2 * get_noise("flipped_huber", shape).variance)
    return best


def flipped_huber(quick: bool) -> Section:
    """Flipped Huber noise beside the others, in one dimension and in twenty."""
    checks, rows, curves = [], [], {}
    one = SensitivityProfile([1.0])
    for epsilon, printed in ONE_DIMENSION.items():
        guarantee = PrivacyGuarantee(epsilon, DELTA)
        alpha, gamma, variance = best_flipped_huber(epsilon)
        found = calibrate("iid_flipped_huber", one, guarantee).expected_error()
        others = {
            name: calibrate(f"iid_{name}", one, guarantee).expected_error() for name in OTHERS
        }
        for item, reference, value in zip(
            ("α", "γ", "variance", "variance, Gaussian"),
            printed,
            (alpha, gamma, variance, others["gaussian"]),
            strict=True,
        ):
            checks.append(Check.digits(f"ε={epsilon:g}: {item}", reference, value))
        item = f"ε={epsilon:g}: calibrate above the best variance, %"
        excess = 100.0 * (found / variance - 1.0)
        checks.append(Check.claim(item, "0 to .1", excess, -1e-4 <= excess <= 0.1))
        rows.append([epsilon, variance, found, *others.values()])
        curves[epsilon] = {"flipped_huber": found, **others}
    epsilons: Sequence[float] = (5.0, 20.0) if quick else (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
    twenty = SensitivityProfile(np.ones(20))
    gains: dict[str, list[float]] = {name: [] for name in ("flipped_huber", *OTHERS[1:])}
    closed = []
    for epsilon in epsilons:
        guarantee = PrivacyGuarantee(epsilon, DELTA)
        gaussian = calibrate("iid_gaussian", twenty, guarantee).expected_error()
        for name, values in gains.items():
            error = calibrate(f"iid_{name}", twenty, guarantee).expected_error()
            values.append(100.0 * (1.0 - error / gaussian))
        closed.append(100.0 * (1.0 - 20.0 * zcdp_variance(epsilon, 20) / gaussian))
        if epsilon in TWENTY:
            gain = gains["flipped_huber"][-1]
            item = f"K=20, ε={epsilon:g}: saved over Gaussian, exact loss, %"
            checks.append(Check.digits(item, TWENTY[epsilon], gain))
        if epsilon <= 10.0:
            item = f"K=20, ε={epsilon:g}: saved over Gaussian, closed condition, %"
            checks.append(Check.claim(item, "at most 0", closed[-1], closed[-1] <= 0.0))
    many = [
        [epsilon, *(values[i] for values in gains.values()), closed[i]]
        for i, epsilon in enumerate(epsilons)
    ]
    return Section(
        "flipped_huber",
        f"(e) Flipped Huber noise beside the others, δ={DELTA:g}",
        checks,
        [
            (
                "variance in one dimension",
                ["ε", "flipped Huber, best", "flipped Huber, calibrate", *OTHERS],
                rows,
            ),
            (
                "saved over Gaussian noise at K=20, λ=1, per cent",
                ["ε", *gains, "flipped Huber, closed zCDP condition"],
                many,
            ),
        ],
        {"one": curves, "epsilons": epsilons, "gains": gains, "closed": closed},
    )


def corollary_epsilon(epsilon: float, delta: float) -> float:
    """Return the ε of pure privacy to which Corollary 6 of the i.n.i.d. paper calibrates."""
    try:
        from skdpnoise.privacy import corollary6_epsilon
    except ImportError:
        return epsilon - math.log1p(-delta)
    return float(corollary6_epsilon(epsilon, delta))


def tight_laplace(quick: bool) -> Section:
    """Laplace noise by the exact loss beside Corollary 6, equal sensitivities."""
    epsilon = 0.5
    sizes = sorted({1, 2, 10, 50, 200, *TIGHT}) if not quick else sorted(TIGHT)
    checks, rows = [], []
    curves: dict[str, list[float]] = {"tight": [], "corollary": []}
    for size in sizes:
        sensitivity = SensitivityProfile(np.ones(size))
        tight = calibrate("iid_laplace", sensitivity, PrivacyGuarantee(epsilon, DELTA)).scale[0]
        weaker = PrivacyGuarantee(corollary_epsilon(epsilon, DELTA))
        corollary = calibrate("iid_laplace", sensitivity, weaker).scale[0]
        curves["tight"].append(float(tight))
        curves["corollary"].append(float(corollary))
        rows.append([size, tight, corollary, (corollary / tight) ** 2])
        if size in TIGHT:
            checks.append(Check.digits(f"K={size}: b, tight", TIGHT[size][0], float(tight)))
            item = f"K={size}: b, Corollary 6"
            checks.append(Check.digits(item, TIGHT[size][1], float(corollary)))
    ratio = (curves["corollary"][-1] / curves["tight"][-1]) ** 2
    checks.append(Check.digits("K=400: noise power of Corollary 6 over tight", "25", ratio))
    return Section(
        "tight_laplace",
        f"(f) Laplace noise at ({epsilon:g}, {DELTA:g}): exact loss beside Corollary 6",
        checks,
        [("scales", ["K", "b, tight", "b, Corollary 6", "ratio of noise power"], rows)],
        {"sizes": sizes, **curves},
    )
