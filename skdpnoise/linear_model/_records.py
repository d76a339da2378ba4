"""What the stages of a fit hand to each other: parameters, data, and what was released of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from skdpnoise.data.groups import SpreadRows
from skdpnoise.data.table import Partitioned
from skdpnoise.kernels import Loss, row_products
from skdpnoise.sampling import RandomWords

Fitted = dict[str, Any]  # attributes of a fitted estimator, by name
Outputs = Callable[[np.ndarray], list[np.ndarray]]  # from a target to those of every output

LIMIT = 3.0  # standardised values are clipped to this many scales
# And to this many where public bounds are wider: a value farther off has more leverage on second
# moments than it deserves. Binary columns are never clipped.
FARTHEST = 20.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the stages know of the estimator."""

    owner: str  # name of the class, for messages
    loss: Loss
    last: Any  # what is released after a descent: Residuals, Gain or None
    # From these, the problem and the number of records: l1 and l2 penalties in standard units.
    penalties: Callable[[Settings, Problem, float], tuple[np.ndarray, np.ndarray]]
    noise: str = "auto"
    fit_intercept: bool = True
    alpha: float | str = "auto"
    l1_ratio: float = 0.5
    n_passes: int | str = "auto"
    clip: float | str = "auto"
    budget_growth: float | str = "auto"
    error_weights: Any = "curvature"
    row_norm: float | str = "auto"
    n_jobs: int | None = None
    class_weight: Any = None
    sparse: bool = False  # whether rows are sparse, and so not centred
    joint: bool = False  # whether gradients of all columns and outputs are clipped together
    spread: float = 1.0  # of typical slopes, in which clips are measured; released with the target

    @classmethod
    def of(cls, estimator: Any) -> Settings:
        """Return the settings of an estimator."""
        names = {field.name for field in fields(cls)}
        given = estimator.get_params(deep=False)
        chosen = {name: value for name, value in given.items() if name in names}
        steps = estimator._minimised(), estimator._last, estimator._penalties
        return cls(type(estimator).__name__, *steps, **chosen)

    @property
    def strength(self) -> float:
        """Strength of the penalty of a descent, whose few passes shrink as it is."""
        return 0.0 if isinstance(self.alpha, str) else self.alpha


@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """Centres, scales and which columns are used; all arrays have shape (n_columns,)."""

    center: np.ndarray  # in the units of the columns, as the scale
    scale: np.ndarray
    used: np.ndarray  # False for columns that are constant or drowned in noise
    limit: np.ndarray  # standardised values are clipped to ± this

    @property
    def reach(self) -> np.ndarray:
        """The limit in units of ±3: above 1 where bounds are wide for the spread of the column."""
        return self.limit / LIMIT

    def deviations(self) -> np.ndarray:
        """Return the standard deviations of the columns in standard units."""
        return np.ones_like(self.scale)

    def softened(self) -> Standardisation:
        """Return one with scales between those that the columns have and those of the limits."""
        # A mean square is at most the largest value times the mean of magnitudes: in these units
        # it is of the order of 1 for any column, however few values are far from all others.
        root = np.sqrt(self.reach)
        return Softened(self.center, self.scale * root, self.used, self.limit / root)

    def capped(self) -> Standardisation:
        """Return a standardisation that clips what is far from all the rest of its column."""
        return replace(self, limit=np.minimum(self.limit, FARTHEST))

    def through_origin(self) -> Standardisation:
        """Return a standardisation that leaves 0 where it is, for models without an intercept."""
        scale = np.hypot(self.center, self.scale)
        widest = np.hypot(self.center, self.scale * self.reach)
        return Standardisation(np.zeros_like(self.center), scale, self.used, LIMIT * widest / scale)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the values in standard units, clipped; columns that are not used become 0."""
        standard = np.subtract(self.held(values), self.center, dtype=np.float64)
        standard /= self.scale
        standard[:, ~self.used] = 0.0
        return np.asarray(np.clip(standard, -self.limit, self.limit, out=standard))

    def scores(self, X: Any, slopes: np.ndarray) -> np.ndarray:
        """Return the products of the rows in standard units with slopes of several outputs."""
        if isinstance(X, np.ndarray):
            # Last digits of a row must not hang on what is beside it.
            return row_products(self(X), slopes.T)
        # What is not stored is 0 in the user's units: rows are that, and what differs from it.
        rows: Any = self.held(X.astype(np.float64))
        nothing, columns = self(np.zeros((1, X.shape[1]))), rows.indices
        standard = (rows.data - self.center[columns]) / self.scale[columns]
        standard = np.clip(standard, -self.limit[columns], self.limit[columns])
        rows.data = np.where(self.used[columns], standard, 0.0) - nothing[0, columns]
        return np.asarray(rows @ slopes.T + nothing @ slopes.T)

    def held(self, X: Any) -> Any:
        """Return rows as they came, their parts held to what was declared of them."""
        return X

    def in_user_units(
        self, model: np.ndarray, units: tuple[float, float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes and intercepts from coefficients in standard units, the intercept last."""
        center, scale = units  # of the target
        # A feature that is not used has coefficient 0, whatever its scale.
        slopes = scale * model[..., :-1] / self.scale
        return slopes, center + scale * model[..., -1] - slopes @ self.center

    @property
    def range(self) -> np.ndarray:
        """The interval that is not clipped, of shape (2, n_columns)."""
        reach = np.where(self.used, self.limit * self.scale, np.inf)
        return np.stack([self.center - reach, self.center + reach])


class Softened(Standardisation):
    """A standardisation between bounds, in which columns are the smaller the wider these are."""

    def deviations(self) -> np.ndarray:
        """Return the standard deviations of the columns in these units."""
        return np.asarray(1.0 / self.reach)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """What was released of the target before the model."""

    constant: np.ndarray  # (n_outputs,): intercepts of the model without features, standard units
    scaling: Standardisation | None = None  # None for labels
    weights: Any = None  # of the classes, where they have some

    @property
    def units(self) -> tuple[float, float]:
        """Centre and scale of the predictions; a target of unknown scale is a constant."""
        if self.scaling is None:
            return 0.0, 1.0
        scaling = self.scaling
        return float(scaling.center[0]), float(scaling.used[0] * scaling.scale[0])

    @property
    def spread(self) -> float:
        """The size of a typical slope."""
        return 1.0

    def __call__(self, outputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return numbers in standard units, clipped, and labels as they are."""
        if self.scaling is None:
            return outputs
        return [self.scaling(values[:, np.newaxis])[:, 0] for values in outputs]


class Rate(Target):
    """Counts in units of their centre, a mean rate; linear functions are of logarithms."""

    __slots__ = ()
    scaling: Standardisation

    @property
    def units(self) -> tuple[float, float]:
        """Logarithm of the centre, and 1; 0 where the target is a constant."""
        return float(np.log(self.scaling.center[0])), float(self.scaling.used[0])

    @property
    def spread(self) -> float:
        """The size of a typical slope: the scale of the counts, in these units."""
        return float(self.scaling.scale[0] / self.scaling.center[0])

    def __call__(self, outputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the counts in these units."""
        return [values / self.scaling.center for values in outputs]


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Checked training data, and what is public of them."""

    X: Any  # (n_rows, n_features), float32 or float64, sparse or not
    y: Any  # (n_rows,), as it came
    rows: Any  # GroupedRows, of parts SpreadRows
    bounds: np.ndarray  # (2, n_features), public, infinite where there are none
    outputs: list[Any]  # targets of the linear functions: numbers, or labels -1 and +1
    target_bounds: np.ndarray | None  # (2, 1), public; None for labels
    attributes: dict[str, Any]  # fitted ones that are public beforehand
    groups: np.ndarray  # (n_features,): of columns whose parts of rows have norm 1; -1 is none

    @property
    def public(self) -> Data:
        """The data as they are; of parts, all but the rows."""
        return self

    @property
    def parts(self) -> Partitioned[Data] | None:
        """The data as parts of the rows; None where all are in memory."""
        return None

    def kept(self, rng: RandomWords) -> Data:
        """Return the data without the rows of groups that have too many."""
        X, y, *outputs = self.rows.keep(rng, self.X, self.y, *self.outputs)
        return replace(self, X=X, y=y, outputs=outputs)


@dataclass(frozen=True, slots=True, eq=False)
class SpreadData(Data):
    """Data that lie in parts: arrays, where they are held at all, of some rows at a time."""

    # X, y and the outputs are each a Partitioned.
    load: Loads  # what makes data of tables by name

    @classmethod
    def of(cls, rows: SpreadRows, load: Loads, public: Data) -> SpreadData:
        """Return data in parts, with what is public of them."""
        facts = {each.name: getattr(public, each.name) for each in fields(Data)}
        return cls(**facts | {"rows": rows}, load=load)._over(rows.rows)

    @property
    def public(self) -> Data:
        """All but the rows."""
        return self.load.public

    @property
    def parts(self) -> Partitioned[Data]:
        """The data as parts of the rows."""
        parts: Partitioned[Data] = self.rows.rows.map(self.load)
        return parts

    def kept(self, rng: RandomWords) -> SpreadData:
        """Return the data without the rows of groups that have too many."""
        return self._over(self.rows.keep(rng))

    def _over(self, rows: Partitioned[Any]) -> SpreadData:
        """Return the same of other rows."""
        known, load = replace(self.rows, rows=rows), self.load
        y = rows.only("y").map(load.target_of)
        outputs = [y.map(partial(load.output_of, k)) for k in range(len(self.outputs))]
        X = rows.only("X").map(load.table, self.bounds.shape[1])
        return replace(self, rows=known, X=X, y=y, outputs=outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """What makes data of some rows of tables by name."""

    table: Callable[[Any], np.ndarray]
    target: Callable[[Any], np.ndarray]
    make: Outputs
    public: Data  # all but the rows

    def __call__(self, tables: dict[str, Any]) -> Data:
        """Return the data."""
        X, y = self.table(tables), self.target_of(tables)
        return replace(self.public, X=X, y=y, outputs=self.make(y))

    def target_of(self, tables: dict[str, Any]) -> np.ndarray:
        """Return the target."""
        return self.target(tables["y"])

    def output_of(self, number: int, y: np.ndarray) -> np.ndarray:
        """Return the target of one output."""
        return self.make(y)[number]


def one_output(y: np.ndarray) -> list[np.ndarray]:
    """Return a target of numbers as the only output."""
    return [y]


def output_within(bounds: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return a target of numbers, within bounds of shape (2, 1), as the only output."""
    return [np.clip(y, *bounds)]


def _of_some(
    problem: Problem, step: Callable[[Problem], np.ndarray], n_rows: int | None, data: Data
) -> np.ndarray:
    """Return what a step makes of a problem with some of the rows."""
    here = replace(problem, data=data)
    if n_rows is None:
        return step(here)
    return np.asarray(sum(step(some) for some in here.blocks(n_rows)))


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is minimised: the rows that are kept, and what was released of their columns."""

    data: Data
    features: Standardisation
    target: Target

    def total(
        self, step: Callable[[Problem], np.ndarray], label: str, *, n_rows: int | None = None
    ) -> np.ndarray:
        """Return the sum of the integers that a step makes of parts of the rows, or of all."""
        # Of so many rows at a time, where a step holds what is as large as they are.
        parts = self.data.parts
        if parts is None:
            return _of_some(self, step, n_rows, self.data)
        bare = replace(self, data=self.data.public)  # rows do not travel
        return parts.total(partial(_of_some, bare, step, n_rows), label)

    def blocks(self, n_rows: int) -> Iterator[Problem]:
        """Yield the problem with some of the rows at a time."""
        for begin in range(0, len(self.data.y), n_rows):
            X, y, *outputs = (
                table[begin : begin + n_rows]
                for table in (self.data.X, self.data.y, *self.data.outputs)
            )
            yield replace(self, data=replace(self.data, X=X, y=y, outputs=outputs))

    @property
    def columns(self) -> Standardisation:
        """The scaling of the features and, last, of a target of numbers."""
        both = self.features, self.target.scaling
        arrays = ([getattr(one, field.name) for one in both] for field in fields(Standardisation))
        return Standardisation(*map(np.concatenate, arrays))
