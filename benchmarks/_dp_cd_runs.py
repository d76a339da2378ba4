"""Grids of the DP-CD benchmark, the four allocations of the noise, and the runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks._dp_cd_problems import Problem
from skdpnoise.kernels import LOSSES, coordinate_descent
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
from skdpnoise.sampling import SeededWords, permutation
from skdpnoise.sensitivity import clipped_gradient

ALLOCATIONS = {
    "spr": "scale, perturb, rescale",
    "uniform": "i.n.i.d., uniform weights",
    "curvature": "i.n.i.d., weights 1/M (the default)",
    "spread": "i.n.i.d., weights 1/M, spread over passes",
}
ORDERS = ("shuffled", "falling", "rising")


@dataclass(frozen=True, slots=True)
class Grid:
    """Hyper-parameters to choose from, the same for every number of passes.

    Parameters
    ----------
    clips : sequence of float
        C; one record's gradient along coordinate j is clipped at C times the root mean square of
        column j.
    steps : sequence of float
        γ; the step along coordinate j is γ/M_j.
    tails : sequence of float
        Fractions of the passes, counted from the end, whose iterates are averaged; 0 is the last
        iterate alone. Free of charge: every iterate has been paid for.
    growths : sequence of float
        g, for "spread" only: pass t gets a share of the budget μ² in proportion to g^t.
    orders : sequence of str
        "shuffled" is a fresh public permutation of the coordinates in each pass; "falling"
        and "rising" are the same order in every pass, by public curvature M_j, ties in the order in
        which the data set lists its columns.
    """

    clips: Sequence[float]
    steps: Sequence[float]
    tails: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.5)
    growths: Sequence[float] = (1.05, 1.1)
    orders: Sequence[str] = ORDERS


# Wide enough for uniform weights too, which need smaller steps than the others.
GRIDS = {
    "squared": Grid(clips=(3.4, 4.8, 7.0, 10.0, 15.0), steps=(0.2, 0.4, 0.7, 1.0, 1.2)),
    "logistic": Grid(clips=(1.0, 1.4, 2.0), steps=(1.0, 1.5, 2.0, 2.5)),
}
QUICK_GRIDS = {
    "squared": Grid(clips=(4.8, 10.0), steps=(0.7, 1.0), growths=(1.05,)),
    "logistic": Grid(clips=(1.4,), steps=(1.5, 2.5), growths=(1.05,)),
}


@dataclass(frozen=True, slots=True)
class Best:
    """The grid point with the smallest mean over the seeds, and that mean with its error."""

    error: float
    standard_error: float
    clip: float
    step: float
    tail: float
    growth: float
    order: str

    def describe(self) -> str:
        """Short text for a table."""
        return f"C {self.clip:g}, γ {self.step:g}, tail {self.tail:g}, {self.order}"


def mechanism_for(
    allocation: str, problem: Problem, n_passes: int, clip: float, growth: float = 1.0
) -> AdditiveMechanism:
    """Calibrate the noise of one run: n_passes releases of the sum of clipped gradients.

    The error weights are 1/M_j because an update by η_j times noise of variance σ² adds about
    η_j² M_j σ²/2 to the objective, with η_j proportional to 1/M_j. For "spread" they grow by g²
    from pass to pass: the scales are proportional to w^(-1/4), so the share of the budget, which
    is proportional to 1/scale², grows by g.
    """
    rule, weights = "inid", None
    if allocation == "spr":
        rule = "spr"
    elif allocation == "curvature":
        weights = 1.0 / problem.curvature
    elif allocation == "spread":
        weights = growth ** (2.0 * np.arange(n_passes))[:, np.newaxis] / problem.curvature
    return calibrate(
        f"{rule}_gaussian",
        clipped_gradient(clip * problem.feature_size, adjacency="replace_one"),
        problem.guarantee,
        n_releases=n_passes,
        weights=weights,
    )


def fixed_order(problem: Problem, order: str) -> NDArray[np.intp]:
    """Coordinates by "falling" or "rising" curvature, shape (n_features,)."""
    # Rounded, so that the columns of standardised data tie and keep their places.
    key = np.round(np.log(problem.curvature), 6)
    return np.argsort(key if order == "rising" else -key, kind="stable")


def private_path(
    problem: Problem,
    mechanism: AdditiveMechanism,
    *,
    clip: float,
    step: float,
    order: str,
    seed: int,
) -> NDArray[np.float64]:
    """Iterates after each pass, shape (n_passes, n_features), of one private run."""
    n_passes, n_features = mechanism.n_releases, problem.X.shape[1]
    if order == "shuffled":
        rng = SeededWords([seed, n_passes, 0])
        visits = np.array([permutation(rng, n_features) for _ in range(n_passes)])
    else:
        visits = np.tile(fixed_order(problem, order), (n_passes, 1))
    return np.array(
        list(
            coordinate_descent(
                problem.X,
                problem.y,
                loss=LOSSES[problem.loss],
                n_passes=n_passes,
                step=step / problem.curvature,
                l1=problem.l1,
                l2=problem.l2,
                clip=clip * problem.feature_size,
                grid_size=mechanism.grid_size,
                noise=mechanism.sample(SeededWords([seed, n_passes, 1]), n_passes),
                order=visits,
            )
        )
    )


def tail_errors(
    problem: Problem, path: NDArray[np.float64], tails: Sequence[float]
) -> NDArray[np.float64]:
    """Relative error of the mean of the last iterates, for each fraction of the passes."""
    counts = [max(1, int(np.ceil(tail * len(path) - 1e-9))) for tail in tails]
    errors = {
        count: problem.relative_error(path[-count:].mean(axis=0)) for count in sorted(set(counts))
    }
    values = np.array([errors[count] for count in counts])
    return np.where(np.isfinite(values), values, np.inf)


def sweep(
    problem: Problem,
    allocation: str,
    n_passes: int,
    grid: Grid,
    seeds: Sequence[int],
    pool: Executor,
) -> dict[str, Best]:
    """Best grid point of one allocation and number of passes: of each order, and of "any"."""
    growths = grid.growths if allocation == "spread" else (1.0,)
    orders = list(grid.orders)
    if np.array_equal(fixed_order(problem, "falling"), fixed_order(problem, "rising")):
        orders.remove("rising")
    points = list(itertools.product(orders, growths, grid.clips, grid.steps))

    def measure(point: tuple[str, float, float, float]) -> NDArray[np.float64]:
        order, growth, clip, step = point
        mechanism = mechanism_for(allocation, problem, n_passes, clip, growth)
        paths = (
            private_path(problem, mechanism, clip=clip, step=step, order=order, seed=seed)
            for seed in seeds
        )
        return np.array([tail_errors(problem, path, grid.tails) for path in paths])

    found: dict[str, Best] = {}
    for (order, growth, clip, step), errors in zip(points, pool.map(measure, points), strict=True):
        means = errors.mean(axis=0)
        k = int(np.argmin(means))  # the shortest tail, where several are the same
        spread = errors[:, k].std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else np.nan
        best = Best(float(means[k]), float(spread), clip, step, grid.tails[k], growth, order)
        for key in (order, "any"):
            if key not in found or best.error < found[key].error:
                found[key] = best
    return found


def same_noise(problem: Problem, first: str, second: str) -> bool:
    """Whether two allocations give the same scales, so that one run serves both."""
    scales = [mechanism_for(name, problem, 2, 1.0).scale for name in (first, second)]
    return bool(np.allclose(scales[0], scales[1], rtol=1e-9, atol=0.0))
