"""Coordinate descent whose every update is an exact sum of clipped, rounded gradients."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.kernels.columns import Columns, columnwise, per_column
from skdpnoise.kernels.losses import Loss
from skdpnoise.kernels.sizes import MOST_ROWS
from skdpnoise.kernels.threads import enough_threads, threads

__all__ = [
    "Sweep",
    "Sweeps",
    "Updates",
    "coordinate_descent",
    "grids_of_passes",
    "scalings_of",
    "visit",
]

Sweep = tuple[int, float, int, tuple[float, float] | None]
"""Which coordinate has changed, by how much, which one comes next; and its grid step and bound."""

Scores = tuple[NDArray[np.float64], NDArray[Any]]
"""The score of each row, and the targets unless it contains them: as ``Loss.start`` gives them."""


def coordinate_descent(
    X: NDArray[Any],
    y: ArrayLike,
    *,
    loss: Loss,
    n_passes: int,
    step: ArrayLike,
    l1: ArrayLike = 0.0,
    l2: ArrayLike = 0.0,
    clip: ArrayLike | None = None,
    grid_size: ArrayLike | None = None,
    noise: NDArray[np.int64] | None = None,
    add: Callable[[int, int], int] = operator.add,
    order: NDArray[np.integer] | None = None,
    n_samples: float | None = None,
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    limit: ArrayLike | None = None,
    fit_intercept: bool = False,
    coef_init: ArrayLike | None = None,
    n_threads: int = 1,
    block_rows: int | None = None,
) -> Iterator[NDArray[np.float64]]:
    r"""Minimise a penalised loss one coordinate at a time, yielding the iterate after every pass.

    The objective is

    .. math:: \frac1n \sum_i \ell(x_i^\top \theta, y_i)
              + \sum_j \Bigl(a_j |\theta_j| + \tfrac{b_j}{2} \theta_j^2\Bigr),

    with the loss ℓ of one record (:class:`~skdpnoise.kernels.Loss`). In pass t, coordinate j is
    replaced by

    .. math:: \theta_j \leftarrow \frac{\operatorname{soft}(\theta_j - \eta_j g,\; \eta_j a_j)}
                                       {1 + \eta_j b_j},
              \qquad g = \frac{q_{tj}}{n} \Bigl(z_{tj} + \sum_i k_i\Bigr),
              \qquad k_i = \operatorname{round}\bigl(\operatorname{clip}(
                    \ell'(x_i^\top\theta, y_i)\, x_{ij} / q_{tj}, \; -c, \; c)\bigr),

    where :math:`c = \operatorname{round}(C_j / q_{tj})` and z is the integer noise. Each integer
    :math:`k_i` depends on record i and on earlier iterates only, and the sum is exact. So replacing
    one record moves a sum by at most 2c, and the result is the same bit for bit for any threads,
    order of the rows and blocks. A gradient that is not a number counts as -c.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features, float32 or float64, finite. They are read as `columnwise` returns them; of a
        large file in row order, two columns are held at a time.
    y : array-like of shape (n_samples,)
        Targets, or labels -1 and +1 for the logistic loss.
    loss : Loss
        The loss of one record, such as ``LOSSES["squared"]``.
    n_passes : int
        Number of passes T; each updates every coordinate once.
    step : array-like of shape (K,)
        Step sizes η; K is n_features, plus one (the last) with an intercept.
    l1, l2 : float or array-like of shape (K,), default=0.0
        Penalties a and b.
    clip : float or array-like of shape (K,), default=None
        Bounds C on one record's gradient. Without it and grid_size nothing is clipped or rounded.
    grid_size : float or array-like of shape (K,) or (T, K), default=None
        Units q of the sums of gradients; where it and clip are 0 the gradient counts as 0.
    noise : ndarray of int64 of shape (T, K), default=None
        Noise z, in grid steps; None for none.
    add : callable, default=operator.add
        How the integer sum of a coordinate meets its noise: for those who want to look on.
    order : ndarray of int of shape (T, K), default=None
        The order of the coordinates in each pass; None for 0, ..., K - 1.
    n_samples : float, default=None
        The divisor n, the number of rows by default; a noisy count is welcome.
    center, scale : float or array-like of shape (n_features,), default=None
        Each feature is read as (x - center) / scale; 0 and 1 by default.
    limit : float or array-like of shape (n_features,), default=None
        Bound on the magnitude of a standardised feature; None for no bound.
    fit_intercept : bool, default=False
        Whether a column of ones, which takes no memory and is not standardised, comes last.
    coef_init : array-like of shape (K,), default=None
        First iterate; zeros by default.
    n_threads : int, default=1
        Threads to use when there are enough rows.
    block_rows : int, default=None
        Rows taken at a time: changes the speed only, or without clip also the last digits.

    Yields
    ------
    ndarray of shape (K,)
        A copy of θ after each pass.

    Raises
    ------
    ValueError
        If only one of clip and grid_size is given, or a grid step is so small that a record or a
        sum would leave the range of exact integers.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi, "Differentially private coordinate descent for composite
    empirical risk minimization", arXiv:2110.11688, Algorithm 1 (here with a permutation per pass).

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.kernels import SQUARED
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])
    >>> y = np.array([1.0, 4.0, 5.0])
    >>> step = 1 / np.mean(X**2, axis=0)
    >>> *_, theta = coordinate_descent(X, y, loss=SQUARED, n_passes=50, step=step)
    >>> theta.round(6)
    array([1., 2.])

    Clipped, in units of a hundredth, with noise of five units on the second coordinate:

    >>> noise = np.array([[0, 5]])
    >>> next(coordinate_descent(X, y, loss=SQUARED, n_passes=1, step=step, clip=2.5,
    ...                         grid_size=0.01, noise=noise))
    array([1.75   , 0.61875])
    """
    if (clip is None) != (grid_size is None):
        raise ValueError(
            "clip and grid_size must be given together (or both left as None for a plain pass), "
            f"got clip={clip!r} and grid_size={grid_size!r}."
        )
    X = columnwise(X, n_threads)
    n, n_coordinates = len(X), X.shape[1] + bool(fit_intercept)
    block = min(block_rows or MOST_ROWS, max(n, 1))
    scalings = scalings_of(center, scale, limit, X.shape[1], n_coordinates)
    grids = None
    if clip is not None and grid_size is not None:
        grids = grids_of_passes(clip, grid_size, (n_passes, n_coordinates), n)
    scores = loss.start(y)
    del y  # of many rows

    with threads(n, enough_threads(n, n_threads), block) as run:
        sweeps = Sweeps(X, loss.code, scalings, block, run)

        def gradient(t: int, previous: int, change: float, k: int) -> float:
            if grids is None:
                return sweeps(scores, (previous, change, k, None))
            q, most = float(grids[0][t, k]), float(grids[1][t, k])
            found = int(sweeps(scores, (previous, change, k, (q, most))))
            return q * (found if noise is None or t < 0 else add(found, int(noise[t, k])))

        divisor = float(n if n_samples is None else n_samples)
        updates = Updates(n_passes, divisor, step, l1, l2, order)
        yield from visit(gradient, n_coordinates, updates, coef_init)


class Sweeps:
    """Sweeps over some rows, which move their scores and sum the next gradient."""

    def __init__(
        self,
        X: NDArray[Any],
        code: int,
        scalings: list[tuple[float, float, float]] | None,
        block: int = MOST_ROWS,
        run: Callable[..., list[Any]] | None = None,
    ) -> None:
        def run_at_once(kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
            return [kernel((0, len(X)), *arguments)]

        self._run = run_at_once if run is None else run
        self._columns = Columns(X, np.ones(min(block, len(X)), dtype=X.dtype), self._run)
        self._code, self._scalings, self._block = code, scalings, block
        self._X = X

    def at_hand(self, n_threads: int, stack: ExitStack) -> Sweeps:
        """Return sweeps over rows with contiguous columns, by threads that end with a stack."""
        X = columnwise(self._X, n_threads)
        run = threads(len(X), enough_threads(len(X), n_threads), self._block)
        return Sweeps(X, self._code, self._scalings, self._block, stack.enter_context(run))

    def __call__(self, scores: Scores, sweep: Sweep) -> float | int:
        """Move the scores by a change of one coordinate; return the next sum of gradients."""
        # One sweep does both, so the scores lag one update behind the coefficients between sweeps.
        from skdpnoise.kernels._kernels import plain_sweep, private_sweep

        previous, change, following, ends = sweep
        scaling = None
        if self._scalings is not None:
            scaling = self._scalings[previous] + self._scalings[following]
        one, other = self._columns.take(previous, following)
        (score, target), block, code = scores, self._block, self._code

        if ends is None:
            sums = np.empty(-(-score.size // block))
            self._run(
                lambda rows: plain_sweep(
                    rows, block, code, one, other, score, target, change, scaling, sums
                )
            )
            return float(sums.sum())
        q, most = ends[0], ends[0] * ends[1]
        inverse = min(1.0 / q, sys.float_info.max) if q > 0.0 else 0.0
        parts = self._run(
            lambda rows: private_sweep(
                rows, block, code, one, other, score, target, change, scaling, inverse, most
            )
        )
        return int(sum(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Updates:
    """Parameters of a descent along sums of gradients, as of :func:`coordinate_descent`."""

    n_passes: int
    n_samples: float
    step: ArrayLike
    l1: ArrayLike = 0.0
    l2: ArrayLike = 0.0
    order: NDArray[np.integer[Any]] | None = None


def visit(
    gradient: Callable[[int, int, float, int], float],
    n_coordinates: int,
    updates: Updates,
    coef_init: ArrayLike | None = None,
) -> Iterator[NDArray[np.float64]]:
    """Yield θ after each pass, from sums of gradients that a function gives."""
    # From a pass, or -1 before the first; a coordinate that has changed, and by how much; and the
    # next one. The sums of before the first pass are of no use.
    given = updates.step, updates.l1, updates.l2
    steps, l1s, l2s = (per_column(value, 0.0, n_coordinates).tolist() for value in given)
    theta = [0.0] * n_coordinates
    previous, change = 0, 0.0
    if coef_init is not None:
        for k, value in enumerate(per_column(coef_init, 0.0, n_coordinates).tolist()):
            gradient(-1, previous, change, k)
            previous, change, theta[k] = k, value, value
    order = updates.order
    for t in range(updates.n_passes):
        for k in range(n_coordinates) if order is None else order[t].tolist():
            v = theta[k] - steps[k] * (gradient(t, previous, change, k) / updates.n_samples)
            threshold = steps[k] * l1s[k]
            soft = max(v - threshold, 0.0) + min(v + threshold, 0.0)
            updated = soft / (1.0 + steps[k] * l2s[k])
            previous, change, theta[k] = k, updated - theta[k], updated
        yield np.array(theta)


def scalings_of(
    center: ArrayLike | None,
    scale: ArrayLike | None,
    limit: ArrayLike | None,
    n_features: int,
    n_coordinates: int,
) -> list[tuple[float, float, float]] | None:
    """Centre, inverse scale and limit of every coordinate; None when X is read as it is."""
    if center is None and scale is None and limit is None:
        return None
    given = (center, 0.0), (scale, 1.0), (limit, math.inf)
    centers, scales, limits = (per_column(*one, n_features).tolist() for one in given)
    # A finite inverse: an infinite one would turn a value at the centre into 0 * inf = NaN.
    features = [
        (middle, min(1.0 / width, sys.float_info.max), bound)
        for middle, width, bound in zip(centers, scales, limits, strict=True)
    ]
    return features + [(0.0, 1.0, math.inf)] * (n_coordinates - n_features)


def grids_of_passes(
    clip: ArrayLike, grid_size: ArrayLike, shape: tuple[int, int], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Grid steps, and the most of them one record adds; refused when a sum could overflow."""
    from skdpnoise.kernels._kernels import MOST_STEPS

    given = (np.asarray(one, dtype=np.float64) for one in (clip, grid_size))
    clips, grid_sizes = np.broadcast_arrays(*given)  # one number for 10**9 passes stays one number
    with np.errstate(divide="ignore"):
        bounds = np.rint(
            np.divide(clips, grid_sizes, out=np.zeros(grid_sizes.shape), where=clips > 0.0)
        )
    largest = min(MOST_STEPS, (2**63 - 1) // max(n, 1))
    if bounds.size and bounds.max() > largest:
        worst = np.unravel_index(np.argmax(bounds), bounds.shape)
        raise ValueError(
            f"grid_size={grid_sizes[worst]:g} is too small for clip={clips[worst]:g} and {n} rows: "
            f"clip / grid_size must not exceed {largest:.4g}, for the integer sums to be exact. "
            "Use a larger grid_size or a smaller clip."
        )
    return np.broadcast_to(grid_sizes, shape), np.broadcast_to(bounds, shape)
