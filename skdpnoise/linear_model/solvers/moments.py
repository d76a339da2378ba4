r"""Second moments of bounded rows: planned on public facts, released once, solved for any penalty.

.. math:: G = \frac1n \Bigl(\sum_i z_i z_i^\top + E\Bigr), \qquad z = (x, y, 1)

with x and y standardised, clipped and shrunk, the constant included, into a ball of radius R.
Shrinking a row equals giving it a smaller weight, so an exact linear relation survives.

Whether a feature is better clipped to ±3 or hardly, no public fact says. So what a column has
within ±3, and what it has beyond that up to ±60 or to its public bounds, are two entries of a row:

.. math:: z = (x', y, 1, x''), \qquad x' = \mathrm{clip}(x, \pm 3), \qquad
          x' + x'' = \mathrm{clip}(x, \pm 60)

All of z, with x'' in larger units, lies in the ball: a record moves the sums by no more than what a
row of that ball moves second moments by, whatever it holds and however many columns are in two
parts. The moments of x' + x'' are sums of those that are released. So the limit of each column is
chosen afterwards, as post-processing: the wide one where it makes the expected squared residual
smaller beyond doubt. Rows without x'' alone decide on the radius.

The noisy matrix is projected to the positive semi-definite cone. Eigenvalues ℓ of the predictors'
block are raised to ℓ + h²/ℓ with h = κ/2, half the noise level: that minimises
:math:`|G w - g|^2 + h^2 |w|^2`, as errors in the predictors ask for. The square root of the result
is data of a few rows, from which any least-squares solver gets the answer. Every model is drawn
towards the constant 0, the centre of the target, by as much as a ridge on the same moments may be
noise (:func:`~skdpnoise.linear_model._tuned.kept`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import enet_path, ridge_regression

from skdpnoise._utils.parameters import check_memory
from skdpnoise._utils.silence import silence
from skdpnoise.accounting.queries import SecondMoments
from skdpnoise.accounting.session import Session
from skdpnoise.data.table import Table
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._penalties import of_standard_columns
from skdpnoise.linear_model._records import LinearProblem, LinearSchema, Rows, Settings
from skdpnoise.linear_model._standard_units import LIMIT, Standardisation, side_by_side
from skdpnoise.linear_model.solvers.plans import Solver, SolverPlan, made_up_problem
from skdpnoise.mechanisms import SymmetricMatrixMechanism
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.sensitivity import RowBounds

_MATRICES = 8  # of p by p that are held at once
_LEAST_PENALTY = 1e-100  # of a column: the square of one over it is a number


@dataclass(frozen=True, slots=True, eq=False)
class MomentsRelease:
    """One release of second moments, fixed before the rows are used."""

    # Of features, target, with an intercept the constant, and what features have beyond their
    # limits. None where there is nothing to fit.
    query: SecondMoments | None
    mechanism: SymmetricMatrixMechanism | None
    columns: Standardisation  # of the features and, last, the target; those used make the rows
    wide: np.ndarray  # limits of the features, of which those above theirs may be chosen
    constant: int  # 1 if rows have the constant 1, else 0
    n_samples: float  # the divisor

    @property
    def noise_level(self) -> float:
        """κ, the root mean square singular value of the noise in the predictors' moments."""
        if self.mechanism is None:
            return 0.0
        n_used = int(np.count_nonzero(self.columns.used))
        near = np.s_[: n_used + self.constant]
        variance = (self.mechanism.standard_deviation[near, near] / self.n_samples) ** 2
        return _level(variance, n_used - 1)

    def released(self, table: Table[Rows], session: Session) -> tuple[PseudoData, np.ndarray]:
        """Release noisy moments; return data that have them, and the limits of the features."""
        # The sums are exact integers, and the integer noise is added to them: the order of the
        # records, memory layout and threads do not change a bit of the result.
        if self.query is None:
            none = self.columns.used[:-1] & False
            return make_pseudo_data(np.zeros((1, 1)), none, 0.0), self.columns.limit[:-1]
        query = replace(self.query, n_threads=table.n_threads)
        columns = table.map(self.tables)
        found = session.released("second moments", query, columns, self.mechanism)
        fit = self.chosen(found.values)
        return fit.data, fit.limit

    def tables(self, rows: Rows) -> list[np.ndarray]:
        """Return few tables side by side, that need no copy: the entries of the rows."""
        constant = np.broadcast_to(1.0, (len(rows.y), self.constant))
        near, beyond = (
            [rows.X[:, run[0] : run[-1] + 1] for run in _runs(places)]
            for places in (np.flatnonzero(self.columns.used[:-1]), self.two_parts)
        )
        return [*near, rows.y, constant, *beyond]

    def chosen(self, noisy: np.ndarray) -> LimitedFit:
        """Return data that have the released moments, and the limits that these tell."""
        assert self.mechanism is not None
        # In scales.
        entries = np.outer(self._units, self._units) / self.n_samples
        variance = (self.mechanism.standard_deviation * entries) ** 2
        return LimitChoice(self, noisy * entries, variance).made()

    @property
    def two_parts(self) -> np.ndarray:
        """The used features of which what is beyond their limits is released, too."""
        return np.flatnonzero(_has_two_parts(self.columns, self.wide))

    @property
    def _units(self) -> np.ndarray:
        """The units of the entries of rows, in scales."""
        ones = np.ones(int(np.count_nonzero(self.columns.used)) + self.constant)
        beyond = _units_beyond(self.columns.limit[:-1], self.wide)
        return np.append(ones, beyond[self.two_parts])


@dataclass(frozen=True, slots=True, eq=False)
class LimitChoice:
    """The limits of features by released second moments: post-processing."""

    # The wide one where it makes the expected squared residual of a ridge smaller beyond doubt.
    release: MomentsRelease
    noisy: np.ndarray  # mean second moments of the entries of rows, in scales
    variance: np.ndarray  # of their noise

    def made(self) -> LimitedFit:
        # Of the features that may gain most 1, 2, 4, ... are tried, again beside those chosen.
        n_samples = self.release.n_samples
        best = self.fit(np.zeros(self.release.two_parts.size, dtype=bool))
        for _ in range(best.wide.size.bit_length()):
            order = self.in_order(best)
            rank = np.full(best.wide.size, -1)
            rank[order] = np.arange(order.size)
            sizes = (2**k for k in range((order.size - 1).bit_length() + 1))
            fits = [self.fit(rank < size) for size in sizes]
            gains = [fit.sure_gain(best, n_samples) for fit in fits]
            if max(gains) <= 0.0:
                break
            best = fits[int(np.argmax(gains))]
        return best

    def fit(self, wide: np.ndarray) -> LimitedFit:
        """Return a ridge of half the noise level and what it leaves, by limits of two parts."""
        columns, places = self.release.columns, self.release.two_parts
        joined, used, limit = self._joined(wide), columns.used[:-1], columns.limit[:-1].copy()
        limit[places[wide]] = self.release.wide[places[wide]]
        level = _level(joined.T @ self.variance @ joined, int(used.sum()))
        data = make_pseudo_data(joined.T @ self.noisy @ joined, used, level)
        *slopes, intercept = data.solve([0.5 * level], 0.0)[0]
        weights = joined @ [*np.array(slopes)[used], -1.0, *[intercept] * self.release.constant]
        noise = np.sqrt(2.0 * weights**2 @ self.variance @ weights**2)
        loss = float(weights @ self.noisy @ weights) + data.optimism
        return LimitedFit(data, limit, wide, weights, loss, float(noise))

    def in_order(self, fit: LimitedFit) -> np.ndarray:
        """Return numbers of features within narrow limits, by what a wide one may gain first."""
        # Of each alone, if the slopes of the others stay, and the residual has mean 0.
        noisy, level = self.noisy, fit.data.noise_level
        n_used, near = int(np.count_nonzero(self.release.columns.used)), self._near
        if self.release.constant:
            constant = noisy[n_used]
            noisy = noisy - np.outer(constant, constant) / max(float(constant[n_used]), level)
        gains = []
        for joined in map(self._joined, (fit.wide & False, fit.wide | True)):
            columns = joined[:, near]
            slopes = fit.weights[near]
            product = columns.T @ noisy @ fit.weights - slopes * (
                columns * (noisy @ self._joined(fit.wide)[:, near])
            ).sum(axis=0)
            energy = (columns * (noisy @ columns)).sum(axis=0)
            gains.append(product**2 / np.maximum(energy, level))
        left = np.flatnonzero(~fit.wide)
        return left[np.argsort((gains[0] - gains[1])[left], kind="stable")]

    @property
    def _near(self) -> np.ndarray:
        """Places of the features of two parts among the entries of rows."""
        return np.searchsorted(np.flatnonzero(self.release.columns.used), self.release.two_parts)

    def _joined(self, wide: np.ndarray) -> np.ndarray:
        """Return the entries of rows whose sums are features, target and constant."""
        near = np.eye(len(self.noisy) - wide.size)
        return np.concatenate([near, near[self._near] * wide[:, np.newaxis]])


@dataclass(frozen=True, slots=True, eq=False)
class LimitedFit:
    """A model by limits that may be chosen."""

    data: PseudoData
    limit: np.ndarray  # of all features, in scales
    wide: np.ndarray  # which of the features in two parts have the wide limit
    weights: np.ndarray  # of the entries of rows, of which the sum is what the model leaves
    loss: float  # mean square of that
    noise: float  # standard deviation of the loss

    def sure_gain(self, other: LimitedFit, n_samples: float) -> float:
        noise = math.hypot(self.noise, other.noise)
        return tuned.sure_gain(other.loss, self.loss, noise, n_samples)


def _level(variance: np.ndarray, target: int) -> float:
    """Return κ for the variances of moments of predictors and target."""
    variance = np.delete(np.delete(variance, target, 0), target, 1)
    return math.sqrt(variance.sum() / len(variance))


def _has_two_parts(columns: Standardisation, wide: np.ndarray) -> np.ndarray:
    return columns.used[:-1] & (wide > columns.limit[:-1])


def _runs(places: np.ndarray) -> list[np.ndarray]:
    """Return runs of places that follow each other."""
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return [run for run in runs if run.size]


@dataclass(frozen=True, slots=True, eq=False)
class OneReleasePlan(SolverPlan):
    """One model, exactly solved from one release, with limits that are chosen from it."""

    solver = "moments"
    moments: MomentsRelease
    found: PseudoData | None = None  # what was released

    @property
    def data(self) -> PseudoData:
        assert self.found is not None
        return self.found

    @property
    def automatic(self) -> float:
        """Strength of the ridge that "auto" stands for: half the noise level."""
        return 0.5 * self.data.noise_level

    def informed(self, table: Table[Rows], session: Session) -> OneReleasePlan:
        """Return the plan after its release, with the limits that this tells."""
        found, limit = self.moments.released(table, session)
        features = replace(self.problem.features, limit=limit)
        return replace(self, problem=replace(self.problem, features=features), found=found)

    def run(self, table: Table[Rows], session: Session) -> Iterator[np.ndarray]:
        problem, settings, pseudo = self.problem, self.problem.settings, self.data
        if isinstance(settings.alpha, str):
            yield pseudo.solve([self.automatic], 0.0)
        elif settings.penalty is of_standard_columns:  # one of a path
            yield pseudo.solve([settings.alpha], settings.l1_ratio)
        else:
            yield pseudo.penalised(*settings.penalty(problem, self.n_samples))

    def average(self, path: np.ndarray) -> np.ndarray:
        return np.asarray(path[-1])


class SecondMomentsSolver:
    """Releases second moments once, and solves the penalised problem from them."""

    name: ClassVar[str] = "moments"

    def check(self, settings: Settings, schema: LinearSchema, budget: FitBudget) -> None:
        check_size_of_moments(settings, schema.n_columns)
        if settings.noise not in tuned.MOMENT_NOISES:
            raise ValueError(
                f"The 'noise' parameter of {settings.owner} must be one of {tuned.MOMENT_NOISES} "
                f"with solver='gram'. Got {settings.noise!r} instead. solver='gradient' takes it."
            )
        self.plan(made_up_problem(settings, schema), 1.0, budget.least)

    def plan(self, problem: LinearProblem, n_samples: float, budget: FitBudget) -> OneReleasePlan:
        # Columns that share one unit of norm have as much of it as if they were alike.
        problem = replace(problem, features=problem.features.plain)
        assert problem.target.scaling is not None
        features, target, bounds = problem.features, problem.target.scaling, problem.schema.bounds
        wide = features.widened(~np.isfinite(bounds).all(axis=0)).limit
        whole = features.of_two_values(bounds) | (problem.schema.column_groups != NO_GROUP)
        narrow = np.where(whole, wide, np.minimum(features.limit, LIMIT))
        target = target.widened(target.limit <= LIMIT)
        columns = side_by_side(replace(features, limit=narrow), target)
        moments = plan_moments(problem.settings, columns, n_samples, budget, wide=wide)
        return OneReleasePlan(problem, n_samples, 1, moments)


@dataclass(frozen=True, slots=True)
class MomentsOr:
    """Second moments where their noise is small, by released numbers, else another solver."""

    other: Solver
    name: ClassVar[str] = "either"

    def check(self, settings: Settings, schema: LinearSchema, budget: FitBudget) -> None:
        check_size_of_moments(settings, schema.n_columns)
        self.other.check(settings, schema, budget)

    def plan(self, problem: LinearProblem, n_samples: float, budget: FitBudget) -> SolverPlan:
        settings, features = problem.settings, problem.features
        if not tuned.asks_for_descent(settings):
            plan = MOMENTS.plan(problem, n_samples, budget)
            reach = features.reach[features.used]
            # Whole gradients have no larger units for wide bounds. Of columns it is better to clip
            # values far from all others than to have such units, but with pure noise.
            narrows = not (settings.whole or budget.pure)
            if settings.whole or narrows:
                reach = np.ones_like(reach)
            if tuned.prefers_moments(plan.moments.noise_level, reach):
                return plan
            if narrows:
                problem = replace(problem, features=features.narrowed(problem.schema.bounds))
        return self.other.plan(problem, n_samples, budget)


MOMENTS = SecondMomentsSolver()


def plan_moments(
    settings: Settings,
    columns: Standardisation,
    n_samples: float,
    budget: FitBudget,
    part: float = 1.0,
    *,
    wide: np.ndarray | None = None,
) -> MomentsRelease:
    """Choose the ball of the rows and calibrate second moments for a part of the model's budget."""
    # With limits of the features that may be chosen instead of those of `columns`.
    constant, used, limit = int(settings.fit_intercept), columns.used, columns.limit
    wide = limit[:-1] if wide is None else wide
    if not used[-1] or not (used[:-1].any() or constant):
        return MomentsRelease(None, None, columns, wide, constant, n_samples)
    two, ones = np.flatnonzero(_has_two_parts(columns, wide)), np.ones(constant)
    center = np.concatenate([columns.center[used], 0.0 * ones, columns.center[two]])
    unit = _units_beyond(limit[:-1], wide)[two]
    scale = np.concatenate([columns.scale[used], ones, unit * columns.scale[two]])
    limits = np.concatenate([limit[used], ones, (wide - limit[:-1])[two] / unit])
    beyond = np.concatenate([np.zeros(limits.size - two.size), limit[two] / unit])
    longest = float(np.linalg.norm(limits))
    # "auto" stays within the kind of budget, pure or Gaussian, that was chosen for the whole fit.
    noise = settings.noise if settings.noise in CHOICES else budget.noise
    left = budget.model.share(part) if part < 1.0 else budget.model

    def plan(row_norm: float) -> MomentsRelease:
        bounds = RowBounds(limits.size, row_norm, columns=limits)
        query = SecondMoments(bounds, center, scale, beyond=beyond)
        mechanism = query.calibrated(noise, left, budget.adjacency)
        return MomentsRelease(query, mechanism, columns, wide, constant, n_samples)

    if not isinstance(settings.row_norm, str):
        return plan(min(float(settings.row_norm), longest))
    n_near = limits.size - two.size
    norm = tuned.choose_row_norm(n_near, longest, lambda radius: plan(radius).noise_level)
    return plan(norm)


def _units_beyond(narrow: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """Return the units, in scales, of what columns have beyond narrow limits."""
    # In small units values far beyond shrink their rows to next to nothing, in large ones noise
    # hides those that are not so far: the root of the root of how much wider limits are is between.
    return np.asarray(np.sqrt(np.sqrt(wide / narrow)))


def check_size_of_moments(settings: Settings, n_features: int) -> None:
    """Refuse more columns than there is memory for."""
    n_bytes, reason = 8.0 * (2 * n_features + 2) ** 2, f"second moments of {n_features} columns"
    remedy = "Choose fewer columns, or another solver of DPCoordinateDescentRegressor."
    check_memory(settings.owner, _MATRICES * n_bytes, reason, remedy)


@dataclass(frozen=True, slots=True, eq=False)
class PseudoData:
    """Few rows with the second moments of many: centred, so that solvers need no intercept."""

    X: np.ndarray  # (n_rows, n_features), in standard units, as y
    y: np.ndarray
    feature_mean: np.ndarray  # what the intercept makes up for; zeros without one
    target_mean: float  # the same for the target
    used: np.ndarray  # which of all features these are; the others have coefficient 0
    noise_level: float = 0.0  # κ: that of one moment times the root of the number of predictors

    @property
    def alpha_max(self) -> float:
        """The least l1 penalty for which all coefficients are 0."""
        return float(np.abs(self.X.T @ self.y).max(initial=0.0)) / len(self.y)

    def solve(self, alphas: ArrayLike, l1_ratio: float) -> np.ndarray:
        """Return the elastic nets of all penalties, shape (n_alphas, n_all_features + 1)."""
        # The last column is the intercept. Each minimises `|y - X w|² / (2 n_rows) + alpha
        # (l1_ratio |w|_1 + (1 - l1_ratio) |w|² / 2)`.
        alphas = np.asarray(alphas, dtype=np.float64)
        return self._models(self._coefs(alphas, l1_ratio))

    def penalised(self, l1: np.ndarray, l2: np.ndarray) -> np.ndarray:
        """Return the model of a penalty for every column, shape (1, n_all_features + 1)."""
        # It minimises `|y - X w|² / (2 n_rows) + sum(l1 |w| + l2 w² / 2)`. Squares are of rows
        # beneath the data, with columns in such units that neither is far from one.
        l1, l2, n_rows = l1[self.used], l2[self.used], len(self.y)
        if self.alpha_max == 0.0:
            return self._models(np.zeros((1, len(l1))))
        scale = 1.0 / np.sqrt(1.0 + l2)
        beneath = np.diag(np.sqrt(n_rows - n_rows * scale**2))[l2 > 0.0]
        X = np.concatenate([self.X * scale, beneath])
        y = np.append(self.y, np.zeros(len(beneath)))
        if not l1.any():
            coefs = scale * ridge_regression(X, y, 0.0, solver="svd")
        else:
            unit = np.clip(l1 * scale, _LEAST_PENALTY, 1.0 / _LEAST_PENALTY)
            coefs = scale / unit * _lasso(X / unit, y, [n_rows / len(y)])[0]
        return self._models(coefs[np.newaxis])

    def _models(self, coefs: np.ndarray) -> np.ndarray:
        """Return coefficients of all features and intercepts, less what may be noise."""
        models, part = np.zeros((len(coefs), self.used.size + 1)), self._kept()
        models[:, np.flatnonzero(self.used)] = part * coefs
        models[:, -1] = self.target_mean - part * coefs @ self.feature_mean
        return models

    def _kept(self) -> float:
        """Return the part of every model that is kept: how much of a ridge is no noise."""
        n_features = self.X.shape[1]
        if not self.noise_level or not n_features:
            return 1.0
        ridge = 0.5 * self.noise_level
        coefs, variance, values = self._ridge()
        explained = ((self.X @ coefs) ** 2).mean()
        # Half of it: where eigenvalues were raised, coefficients are nearer to 0 already.
        noise = 0.5 * variance * (values / (values + ridge) ** 2).sum()
        return float(tuned.kept(explained, noise, n_features))

    @property
    def optimism(self) -> float:
        """By how much a ridge of half the noise level leaves more than it seems, on average."""
        # The slopes follow the noise e of moments with the target: the residual has 2 e w less.
        _, variance, values = self._ridge()
        return float(2.0 * variance * (1.0 / (values + 0.5 * self.noise_level)).sum())

    def _ridge(self) -> tuple[np.ndarray, float, np.ndarray]:
        """Return a ridge of half the noise level, the variance of moments, and eigenvalues."""
        coefs = self._coefs(np.array([0.5 * self.noise_level]), 0.0)[0]
        values = np.linalg.svd(self.X, compute_uv=False) ** 2 / len(self.X)
        # Moments with the target are noisy, and so are those that coefficients are multiplied by.
        variance = self.noise_level**2 / (len(coefs) + 1.0) * (1.0 + coefs @ coefs)
        return coefs, float(variance), values

    def _coefs(self, alphas: np.ndarray, l1_ratio: float) -> np.ndarray:
        coefs = np.zeros((len(alphas), self.X.shape[1]))
        if self.alpha_max == 0.0:
            return coefs
        lasso = alphas * l1_ratio > 0.0
        for k in np.flatnonzero(~lasso):
            coefs[k] = ridge_regression(self.X, self.y, len(self.y) * alphas[k], solver="svd")
        if lasso.any():
            order = np.flatnonzero(lasso)[np.argsort(-alphas[lasso], kind="stable")]
            coefs[order] = _lasso(self.X, self.y, alphas[order], l1_ratio)
        return coefs


def _lasso(X: np.ndarray, y: np.ndarray, alphas: ArrayLike, l1_ratio: float = 1.0) -> np.ndarray:
    """Return the elastic nets of penalties in descending order, shape (n_alphas, n_features)."""
    with silence():  # what is left after so many iterations is far below the noise
        facts = {"l1_ratio": l1_ratio, "tol": 1e-12, "max_iter": 10_000}
        # It draws a seed that it does not use: not from the state that everybody shares.
        _, path, _ = enet_path(np.asfortranarray(X), y, alphas=alphas, random_state=0, **facts)
    return np.asarray(path.T)


def make_pseudo_data(moments: np.ndarray, used: np.ndarray, noise_level: float) -> PseudoData:
    """Return data whose second moments are those released, repaired and centred."""
    n_features = int(np.count_nonzero(used))
    matrix = _projected(moments)
    predictors = np.delete(np.arange(len(matrix)), n_features)
    block = np.ix_(predictors, predictors)
    matrix[block] += _raised(matrix[block], 0.5 * noise_level)
    mean = np.zeros(n_features + 1)
    centred = matrix[: n_features + 1, : n_features + 1]
    if len(matrix) == n_features + 2 and matrix[-1, -1] > 0.0:
        # Least squares with a free intercept: what the constant does not explain.
        mean = matrix[-1, :-1] / matrix[-1, -1]
        centred = centred - np.outer(mean, matrix[-1, :-1])
    values, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    root = np.sqrt(np.maximum(values, 0.0) * len(values))[:, np.newaxis] * vectors.T
    return PseudoData(root[:, :-1], root[:, -1], mean[:-1], float(mean[-1]), used, noise_level)


def _projected(matrix: np.ndarray) -> np.ndarray:
    """Return the nearest positive semi-definite matrix, in Frobenius norm."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _raised(matrix: np.ndarray, level: float) -> np.ndarray:
    """Return what raises every eigenvalue ℓ by level²/ℓ, or by 1 if that is less."""
    if level == 0.0 or matrix.size == 0:
        return np.zeros_like(matrix)
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * (level**2 / np.maximum(values, level**2))) @ vectors.T)
