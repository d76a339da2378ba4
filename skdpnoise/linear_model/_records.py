"""Records that the stages of a fit share: settings and the problem, public, and rows, not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from skdpnoise.data.schema import Schema
from skdpnoise.kernels import Loss
from skdpnoise.linear_model._standard_units import Standardisation, side_by_side
from skdpnoise.privacy import Adjacency

Fitted = dict[str, Any]  # attributes of a fitted estimator, by name
# From a problem and the number of records to l1 and l2 penalties of all features, standard units.
Penalty = Callable[["LinearProblem", float], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, slots=True, eq=False)
class ClassWeights:
    r"""Weights w of the classes, in units of the largest: u, which is 1 at most.

    .. math:: \sum_i u_i \min\Bigl(1, \frac{C}{|x_i| |q_i|}\Bigr) \, x_i \otimes q_i
    """

    # A record's slopes are multiplied by u, and so is the bound C that its gradient is clipped to:
    # no record moves the sum by more than C, whatever its class. Were the bound the same for all
    # classes, weights would mean nothing wherever both classes are clipped.

    values: np.ndarray  # (n_classes,), w
    share: float  # the sum of u over all records by their number; as far as it is known

    @property
    def relative(self) -> np.ndarray:
        """The weights in units of the largest one, u."""
        return np.asarray(self.values / self.values.max())

    @property
    def penalty(self) -> float:
        """Factor of penalties, from beside the mean of w times the loss to that of u times it."""
        return 1.0 / (self.share * float(self.values.max()))


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of an estimator that its stages use, and its loss and penalty."""

    owner: str  # name of the class, for messages
    loss: Loss
    penalty: Penalty
    epsilon: float = 1.0
    delta: float = 1e-6
    adjacency: Adjacency = "replace_one"
    solver: str = "auto"
    noise: str = "auto"
    fit_intercept: bool = True
    alpha: float | str = "auto"
    l1_ratio: float = 0.5
    n_passes: int | str = "auto"
    clip: float | str = "auto"
    budget_growth: float | str = "auto"
    error_weights: str | Sequence[float] | np.ndarray = "curvature"
    row_norm: float | str = "auto"
    class_weight: Mapping[Any, float] | str | None = None
    weights: ClassWeights | None = None  # that are public
    column_groups: bool = False  # whether some are declared
    whole: bool = False  # whether gradients of all columns and outputs are clipped together

    @classmethod
    def of(cls, estimator: Any) -> Settings:
        names = {field.name for field in fields(cls)}
        given = estimator.get_params(deep=False)
        chosen = {name: value for name, value in given.items() if name in names}
        chosen["column_groups"] = chosen.get("column_groups") is not None
        facts = type(estimator).__name__, estimator._minimised(), estimator._penalty
        return cls(*facts, **chosen)

    @property
    def strength(self) -> float:
        """Strength of the penalty of a descent, whose few passes shrink as it is."""
        return 0.0 if isinstance(self.alpha, str) else self.alpha


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinearSchema(Schema):
    """Public facts of the rows of a linear model, whose columns all have bounds and a group."""

    bounds: np.ndarray
    column_groups: np.ndarray

    @classmethod
    def of(cls, schema: Schema, bounds: np.ndarray, column_groups: np.ndarray) -> LinearSchema:
        known = {one.name: getattr(schema, one.name) for one in fields(Schema)}
        return cls(**known | {"bounds": bounds, "column_groups": column_groups})


@dataclass(frozen=True, slots=True, eq=False)
class LinearTarget:
    """Released numbers of the target, before the model."""

    constant: np.ndarray  # (n_outputs,): intercepts of the model without features, standard units
    scaling: Standardisation | None = None  # None for labels
    weights: ClassWeights | None = None  # of the classes, where they have some

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

    def __call__(self, y: np.ndarray) -> Sequence[np.ndarray]:
        """Return what each linear function is for: numbers in standard units, or truth values."""
        if self.scaling is not None:
            return [self.scaling(y[:, np.newaxis])[:, 0]]
        # Of two classes the second has the only function.
        classes = [1] if self.constant.size == 1 else range(self.constant.size)
        return [y == number for number in classes]


class Rate(LinearTarget):
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

    def __call__(self, y: np.ndarray) -> Sequence[np.ndarray]:
        return [y / self.scaling.center]


@dataclass(frozen=True, slots=True, eq=False)
class LinearProblem:
    """The function that is minimised, by public facts and released numbers alone."""

    settings: Settings
    schema: LinearSchema
    features: Standardisation
    target: LinearTarget

    @property
    def columns(self) -> Standardisation:
        """The scaling of the features and, last, of a target of numbers."""
        assert self.target.scaling is not None
        return side_by_side(self.features, self.target.scaling)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that are fitted: private."""

    X: Any  # (n_rows, n_features), float32 or float64, sparse or not
    y: np.ndarray  # (n_rows,), numbers, or the number of the class

    @classmethod
    def of_numbers(cls, bounds: np.ndarray | None, tables: dict[str, Any]) -> Rows:
        """Return rows whose target is within bounds of shape (2, 1) if given."""
        y = tables["y"]
        return cls(tables["X"], y if bounds is None else np.clip(y, *bounds))

    @classmethod
    def of_labels(cls, classes: np.ndarray, tables: dict[str, Any]) -> Rows:
        numbers = np.zeros(len(tables["y"]), dtype=np.min_scalar_type(-len(classes)))
        for number, label in enumerate(classes[1:], start=1):
            numbers[tables["y"] == label] = number
        return cls(tables["X"], numbers)
