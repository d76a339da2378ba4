r"""Made-up records of the shape of a private table, from public facts alone.

**The law.** Columns are independent. A number between public bounds is normal about their middle,
with a sixth of their distance as standard deviation, and clipped to them; without bounds it is
standard normal; above or below a single bound, and of the kind ``"log"``, it is log-normal. A date
is normal, with a standard deviation of two years. The categories of a column are equally probable.
Each column has a value :math:`u_j` of mean 0 and variance 1: the standardised number (the logarithm
of a log-normal one), or a random effect of each category. With weights w, normal and scaled to norm
1, and for each output k of a target

.. math:: t_k = \sqrt{s} \sum_j w_{jk} u_j + \sqrt{1 - s}\, e_k, \qquad e_k \sim N(0, 1).

A target of numbers is t, so that no prediction has a larger R² than the signal s. Counts are
Poisson with mean :math:`2 e^{z - s / 2}`, :math:`z = \sqrt{s} \sum_j w_j u_j`. A label is the k
with the largest :math:`t_k + b_k`, where b makes classes as frequent as is said and the weights of
the outputs are orthogonal; of two classes, :math:`t_1 = -t_0`. Of two classes of equal size the
best ranking then has the area :math:`\tfrac12 + \tfrac2\pi \arcsin\sqrt{s / 2}` under its ROC
curve (a trivariate normal orthant), and the best accuracy is :math:`\tfrac12 + \tfrac1\pi
\arcsin\sqrt{s}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import accuracy_score, d2_tweedie_score, r2_score
from sklearn.utils import get_tags

from skdpnoise._utils.checks import check_count, check_real, complaint, pandas_for
from skdpnoise._utils.parameters import as_bounds

Floats = NDArray[np.float64]
Kind = Literal["labels", "numbers", "counts"]

_WIDTH = 6.0  # standard deviations of a number between its bounds
_MEAN_COUNT = 2.0
_MOST_ENTRIES = 2**27  # of a table: a gigabyte
_ROUNDS, _ENOUGH = 30, 20_000  # for the shares of classes, and records that they are counted by
_OWNER = "plan"
_EPOCH, _DAYS = np.datetime64("2020-01-01", "s"), 730.0
_USUAL: dict[Kind, tuple[str, Callable[..., Any]]] = {
    "labels": ("accuracy", accuracy_score),
    "counts": ("D²", partial(d2_tweedie_score, power=1)),
    "numbers": ("R²", r2_score),
}
# Categories that nobody listed are five, and what is left out of a table is a number.
_KINDS: dict[str, dict[str, Any]] = {
    "number": {},
    "drop": {},
    "category": {"categories": ("A", "B", "C", "D", "E")},
    "date": {"dated": True},
    "log": {"logarithmic": True},
}


@dataclass(frozen=True, slots=True)
class MadeUpColumn:
    """Public facts of a column: two bounds, maybe infinite, or its categories."""

    name: str
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[Any, ...] = ()
    logarithmic: bool = False
    dated: bool = False

    def draw(self, rng: np.random.Generator, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return values, and the standardised numbers, or which category each value is."""
        if self.categories:
            codes = rng.integers(len(self.categories), size=n)
            values = np.empty(len(self.categories), dtype=object)
            values[:] = self.categories
            return values[codes], codes
        u = rng.standard_normal(n)
        if self.dated:
            return _EPOCH + (_DAYS * u).astype("timedelta64[D]"), u
        if self.logarithmic:
            return np.exp(u), u
        if math.isfinite(self.low) and math.isfinite(self.high):
            np.clip(u, -0.5 * _WIDTH, 0.5 * _WIDTH, out=u)
            middle, unit = 0.5 * self.low + 0.5 * self.high, (self.high - self.low) / _WIDTH
            return np.clip(middle + unit * u, self.low, self.high), u
        if math.isfinite(self.low):
            return self.low + np.exp(u), u
        return (self.high - np.exp(-u) if math.isfinite(self.high) else u), u


@dataclass(frozen=True, slots=True)
class MadeUpRecords:
    """Made-up records, and the best that could be predicted of their targets."""

    X: Any
    y: NDArray[Any] | None
    best: NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Law:
    columns: tuple[MadeUpColumn, ...]
    framed: bool  # whether columns have names
    kind: Kind | None  # of the target; None without one
    labels: NDArray[Any]  # of the classes
    shares: Floats  # of the classes
    target_bounds: tuple[float, float]
    signal: float

    def sampler(self, seed: np.random.SeedSequence) -> Callable[[int], MadeUpRecords]:
        """Return a function that makes records, with weights of its own for each seed."""
        rng, k = np.random.default_rng(seed), len(self.labels)
        n_outputs = k if self.kind == "labels" and k > 2 else 1
        weights = rng.standard_normal((len(self.columns), n_outputs))
        if n_outputs <= len(weights):
            weights = np.linalg.qr(weights)[0]
        weights /= np.linalg.norm(weights, axis=0)
        effects = [_effects(*pair, rng) for pair in zip(self.columns, weights, strict=True)]
        shifts = np.zeros(k)
        if self.kind == "labels" and np.ptp(self.shares) > 0.0:
            shifts = _shifts(self._of_classes(self._latent(effects, rng, _ENOUGH)[1]), self.shares)
        return lambda n: self._records(effects, shifts, rng, n)

    def _of_classes(self, t: Floats) -> Floats:
        return np.hstack([-t, t]) if t.shape[1] == 1 else t

    def _latent(
        self, effects: Sequence[Floats], rng: np.random.Generator, n: int
    ) -> tuple[list[NDArray[Any]], Floats, Floats]:
        """Return the columns, what is to be predicted of each output, and the signal in it."""
        drawn, z = [], np.zeros((n, effects[0].shape[1]))
        for column, effect in zip(self.columns, effects, strict=True):
            values, u = column.draw(rng, n)
            drawn.append(values)
            z += effect[u] if column.categories else u[:, np.newaxis] * effect
        z *= math.sqrt(self.signal)
        noise = math.sqrt(1.0 - self.signal) * rng.standard_normal(z.shape)
        return drawn, z + noise, z

    def _records(
        self, effects: Sequence[Floats], shifts: Floats, rng: np.random.Generator, n: int
    ) -> MadeUpRecords:
        drawn, t, z = self._latent(effects, rng, n)
        X: Any = None
        if self.framed:
            named = {column.name: one for column, one in zip(self.columns, drawn, strict=True)}
            X = pandas_for("plan with names of columns").DataFrame(named)
        else:
            X = np.column_stack(drawn)
        if self.kind is None:
            return MadeUpRecords(X, None, None)
        if self.kind == "labels":
            found = [np.argmax(self._of_classes(one) + shifts, axis=1) for one in (t, z)]
            return MadeUpRecords(X, *(self.labels[codes] for codes in found))
        if self.kind == "counts":
            rate = _MEAN_COUNT * np.exp(z[:, 0] - 0.5 * self.signal)
            return MadeUpRecords(X, rng.poisson(rate).astype(np.float64), rate)
        low, high = self.target_bounds
        middle, unit = 0.0, 1.0
        if math.isfinite(low) and math.isfinite(high):
            middle, unit = 0.5 * low + 0.5 * high, (high - low) / _WIDTH
        return MadeUpRecords(X, *(np.clip(middle + unit * one[:, 0], low, high) for one in (t, z)))

    def best_score(self, records: MadeUpRecords) -> tuple[str, float] | None:
        """Return the usual score of such a target by name, and that of the best predictions."""
        if self.kind is None:
            return None
        name, score = _USUAL[self.kind]
        return name, float(score(records.y, records.best))


def _effects(column: MadeUpColumn, weights: Floats, rng: np.random.Generator) -> Floats:
    """Return what a standardised number is multiplied with, or the effects of categories."""
    if not column.categories:
        return weights[np.newaxis]
    effects = rng.standard_normal((len(column.categories), weights.size))
    effects -= effects.mean(axis=0)
    spread = effects.std(axis=0)
    return np.asarray(weights * effects / np.where(spread > 0.0, spread, 1.0))


def law_for(estimator: Any, n_samples: int, features: Any, classes: Any, signal: float) -> Law:
    """Return the law of made-up records for an estimator, from what is public of its parameters."""
    bounds = _public(estimator, "feature_bounds", first=True)
    schema = _public(estimator, "schema", first=True)
    columns, framed = _columns(features, schema if isinstance(schema, Mapping) else {}, bounds)
    if n_samples * len(columns) > _MOST_ENTRIES:
        most = f"be at most {_MOST_ENTRIES // len(columns):,} for {len(columns)} columns"
        remedy = "Larger tables are not made up: plan for fewer columns."
        raise ValueError(complaint(_OWNER, "n_samples", most, f"{n_samples:,}", remedy))
    kind = kind_of(estimator)
    labels, shares = _classes(classes, _public(estimator, "classes", first=False))
    target = _pair(_public(estimator, "target_bounds", first=False)) or (-math.inf, math.inf)
    signal = check_real(_OWNER, "signal", signal, high=1.0, low_closed=True, high_closed=True)
    return Law(columns, framed, kind, labels, shares, target, signal)


def kind_of(estimator: Any) -> Kind | None:
    if is_classifier(estimator):
        return "labels"
    if not is_regressor(estimator):
        return None
    return "counts" if get_tags(estimator).target_tags.positive_only else "numbers"


def part_of(estimator: Any, *, first: bool) -> Any:
    while True:
        inner = getattr(estimator, "estimator", None)
        steps = getattr(estimator, "steps", None)
        if hasattr(inner, "fit"):
            estimator = inner
        elif isinstance(steps, list) and steps and hasattr(steps[0 if first else -1][1], "fit"):
            estimator = steps[0 if first else -1][1]
        else:
            return estimator


def _public(estimator: Any, name: str, *, first: bool) -> Any:
    return getattr(part_of(estimator, first=first), name, None)


def _columns(
    features: Any, schema: Mapping[str, Any], bounds: Any
) -> tuple[tuple[MadeUpColumn, ...], bool]:
    # `schema` is that of the estimator's own table, and says what `features` leaves open.
    if features is None:
        if not schema:
            must = "be given where no step has a 'schema' of the columns: their number, or names"
            raise TypeError(complaint(_OWNER, "features", must, "None"))
        features = schema
    if isinstance(features, Mapping):
        specs = [(name, schema.get(name) if one is None else one) for name, one in features.items()]
    elif isinstance(features, Sequence) and not isinstance(features, str | bytes):
        specs = [(name, schema.get(name)) for name in features]
    else:
        n = check_count(_OWNER, "features", features)
        return _within(tuple(MadeUpColumn(f"column {j}") for j in range(n)), bounds), False
    columns = tuple(_of_schema(name, spec) for name, spec in specs)
    if not columns or len({column.name for column in columns}) < len(columns):
        raise ValueError(
            "The 'features' parameter of plan must name at least one column, and none twice."
        )
    # What a schema says of a column is said; bounds of the estimator stand for what it leaves open.
    pairs = zip(specs, columns, _within(columns, bounds), strict=True)
    return tuple(bounded if spec is None else column for (_, spec), column, bounded in pairs), True


def _of_schema(name: Any, spec: Any) -> MadeUpColumn:
    if not isinstance(name, str):
        kind = type(name).__name__
        raise TypeError(f"The 'features' parameter of plan must name columns by str. Got a {kind}.")
    if spec is None:
        return MadeUpColumn(name)
    pair = _pair(spec) if isinstance(spec, tuple) else None
    if pair is not None:
        return MadeUpColumn(name, *pair)
    if isinstance(spec, Mapping):  # as a DPTableVectorizer takes it
        known = [spec[key] for key in ("categories", "bounds") if spec.get(key) is not None]
        usual = "category" if "buckets" in spec else "log" if spec.get("log") else "number"
        return _of_schema(name, known[0] if known else spec.get("kind", usual))
    if isinstance(spec, list) and spec:
        return MadeUpColumn(name, categories=tuple(spec))
    if isinstance(spec, str) and spec in _KINDS:
        return MadeUpColumn(name, **_KINDS[spec])
    raise ValueError(
        "The 'features' parameter of plan must describe a column by None, a tuple "
        f"(low, high) with low < high, a list of categories, or one of {[*_KINDS]}. Got "
        f"{type(spec).__name__} for {name!r} instead."
    )


def _pair(bounds: Any) -> tuple[float, float] | None:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        return None
    if not all(isinstance(end, Real) and not isinstance(end, bool) for end in (low, high)):
        return None
    return (float(low), float(high)) if low < high else None


def _within(columns: tuple[MadeUpColumn, ...], bounds: Any) -> tuple[MadeUpColumn, ...]:
    """Return columns with the bounds of an estimator's parameter, whose own fit checks it."""
    table = SimpleNamespace(feature_names_in_=[column.name for column in columns])
    try:
        ends = as_bounds(bounds, len(columns), "feature_bounds", table)
    except (TypeError, ValueError):
        return columns
    pairs = zip(columns, ends.T.tolist(), strict=True)
    return tuple(MadeUpColumn(column.name, *pair) for column, pair in pairs)


def _classes(classes: Any, given: Any) -> tuple[NDArray[Any], Floats]:
    if isinstance(classes, Mapping):
        labels = list(classes)
        shares = np.array([check_real(_OWNER, "classes", one) for one in classes.values()])
    else:
        labels = list(range(2)) if given is None else list(given)
        if classes is not None:
            n = check_count(_OWNER, "classes", classes, low=2)
            if given is not None and n != len(labels):
                raise ValueError(
                    f"The 'classes' parameter of plan must be {len(labels)}, as many as the "
                    f"estimator names. Got {n} instead."
                )
            labels = labels if given is not None else list(range(n))
        shares = np.ones(len(labels))
    if len(labels) < 2:
        raise ValueError("The 'classes' parameter of plan must be two classes at least.")
    return np.array(labels), shares / shares.sum()


def _shifts(t: Floats, shares: Floats) -> Floats:
    """Return b for which the classes have their shares, about, among records with these t."""
    shifts = np.log(shares)
    for _ in range(_ROUNDS):
        found = np.bincount(np.argmax(t + shifts, axis=1), minlength=shares.size) / len(t)
        shifts = shifts + 0.5 * np.log(shares / np.maximum(found, 0.5 / len(t)))
    return np.asarray(shifts - shifts.mean())
