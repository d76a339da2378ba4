"""What stands in a rehearsal where steps will be: private ones, and what reads the user's data.

Only the data that the user passes may be refused for their values. Which steps read them, rather
than what another step computed, is a fact of the composition alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if

from skdpnoise.accounting.caps import Rehearsed
from skdpnoise.base.compositions import below, inner_of
from skdpnoise.base.parts import private_parts
from skdpnoise.base.public_output import hand_on
from skdpnoise.base.register import is_private, rule_of
from skdpnoise.base.tags import tags_of
from skdpnoise.compose._over_parts import stand_in_for
from skdpnoise.data.columns import is_numeric, is_polars, made_up
from skdpnoise.data.computed import DATA, reading

_ENOUGH = 1000  # rows of a table that stands for the data
_PLENTY = 100.0  # an ε at which each of two categories of so many rows is found
_NOTHING: frozenset[str] = frozenset()


class NoFurther(Exception):
    """Raised where a rehearsal cannot go on without a draw."""


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """A step that is fitted, or a target that is transformed."""

    label: str  # the prefix of its parameters in the whole
    step: Any  # A part, or a TransformedTargetRegressor
    passed: frozenset[str]  # which of X and y it gets as the user passed them
    fills: bool = False  # whether a step behind it may do something about missing values
    output: str = "default"  # in what form "passthrough" hands on columns


def readers(
    step: Any, passed: frozenset[str], label: str = "", *, fills: bool = False
) -> Iterator[Reader]:
    """Yield what reads data in a composition whose X and y are as the user passed them, or not."""
    if type(step) is Pipeline:
        for place, (name, child) in enumerate(step.steps):
            if child is None or (type(child) is str and child == "passthrough"):
                continue  # what comes next reads the same
            behind = fills or any(_fills(later) for _, later in step.steps[place + 1 :])
            yield from readers(child, passed, below(label, name), fills=behind)
            passed -= {"X"}
    elif type(step) in (ColumnTransformer, FeatureUnion):
        for name, child in _side_by_side(step):
            if type(child) is str and child == "passthrough":
                yield Reader(below(label, name), child, passed, fills, _output(step))
            else:
                yield from readers(child, passed, below(label, name), fills=fills)
    elif type(step) is TransformedTargetRegressor:
        yield Reader(label, step, passed)
        target = frozenset({"X"}) if "y" in passed else _NOTHING
        if step.transformer is not None:
            yield from readers(step.transformer, target, below(label, "transformer"))
        same = step.transformer is None and step.func is None
        kept = passed if same else passed - {"y"}
        yield from readers(step.regressor, kept, below(label, "regressor"), fills=fills)
    else:
        yield Reader(label, step, passed, fills)


def open_widths(composition: Any) -> list[str]:
    """Return the parameters, or steps, that leave the number of columns to what is found out."""
    finds = [part.label for part in private_parts(composition) if _finds_labels(part.estimator)]
    return [*_open_numbers(composition), *finds]


def _finds_labels(step: Any) -> bool:
    """Return whether a step, or one within it, returns columns for categories that it finds."""
    return any(tags_of(one).reveals_by_chance for one in _readers_of_labels(step))


def _readers_of_labels(step: Any) -> Iterator[Any]:
    """Yield a private step, and those within it, that read columns of categories."""
    if tags_of(step).reads_labels:
        yield step
    for _, child in inner_of(step)[0]:
        for part in private_parts(child):
            yield from _readers_of_labels(part.estimator)


def _open_numbers(composition: Any) -> list[str]:
    """Return the parameters that leave the number of columns to what a step finds out."""
    return [
        name
        for name, value in composition.get_params(deep=True).items()
        if name.rpartition("__")[2] == "n_components"
        and not (value is None or isinstance(value, Integral))
    ]


def stand_ins(
    pipeline: Any, passed: frozenset[str], y: Any, *, grouped: bool, narrow: bool = False
) -> dict[str, Any]:
    """Return what takes the places of steps in a rehearsal, by label."""
    # Values of what the user passed are looked at as in scikit-learn: by the steps that read it
    # first. No other step refuses a value. That holds for numbers; Python objects, which
    # scikit-learn and numpy compute with one by one, fail for a value, so that their *type* is
    # refused. Steps that return so many columns as they find out return all that they may, or a
    # single one if `narrow`.
    checks = bool(get_config()["assume_finite"])
    found: dict[str, Any] = {}
    for one in list(readers(pipeline, passed)):
        if type(one.step) is TransformedTargetRegressor:
            if "y" in one.passed and y is not None:
                _look_at("y", y)
        elif is_private(one.step):
            settings = Settings(grouped, checks, narrow)
            found[one.label] = StandIn(one.step, one.label, DATA - one.passed, settings)
        elif one.step is None or (type(one.step) is str and one.step != "passthrough"):
            continue
        elif type(one.step) is str:
            looks = "X" in one.passed and not one.fills
            passing = Passing(one.label, looks, checks, one.output)
            found[one.label] = passing.set_output(transform=one.output)
        else:
            found[one.label] = Looking(one.step, one.label, "X" in one.passed, checks)
    return found


def is_stand_in(subject: Any) -> bool:
    """Return whether errors from within an object hold no value."""
    return type(subject) in (StandIn, Looking, Passing)


def stands_for_private(subject: Any) -> bool:
    """Return whether an object stands in a rehearsal where a private step will be."""
    return type(subject) is StandIn


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all private steps of a rehearsal."""

    grouped: bool  # whether fit gets groups
    assume_finite: bool  # whether scikit-learn is told not to look at values
    # whether a step whose number of columns is open returns one, rather than all that it may
    narrow: bool


class StandIn(BaseEstimator):
    """Stands in a rehearsal where a private step will be."""

    def __init__(
        self, step: Any, label: str, computed: Collection[str], settings: Settings
    ) -> None:
        self.step = step
        self.label = label
        self.computed = computed
        self.settings = settings

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> StandIn:
        """Have the step check the data, up to its first charge."""
        if self.settings.grouped and groups is None:
            raise ValueError(
                f"The 'groups' of DPPipeline.fit do not reach its step {self.label!r}, which would "
                "protect records only. Put it where scikit-learn's metadata routing leads."
            )
        grouped = {} if groups is None else {"groups": groups}
        if "X" in self.computed and not inner_of(self.step)[0]:
            _need_numbers(self.label, type(self.step).__name__, stand_in_for(X))
        self.fitted_: Any = None
        # A step does not raise that has nothing to release.
        with suppress(Rehearsed), _looking(self.computed, self.settings.assume_finite):
            self.fitted_ = self.step.fit(X, y, **grouped)
        return self

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Fit, and transform the same data."""
        return self.fit(X, y, groups).transform(X)

    @available_if(lambda self: hasattr(self.step, "transform"))
    def transform(self, X: Any) -> Any:
        """Transform as the step would, had it seen noise."""
        if self.fitted_ is None:
            self.fitted_ = self._fitted_to_noise(stand_in_for(X))
        output = getattr(self.fitted_, "public_output_", None)
        if output is not None:
            hand_on(self, output, lambda one: one.step if is_stand_in(one) else one)
        return self.fitted_.transform(X)

    @available_if(lambda self: hasattr(self.step, "predict"))
    def predict(self, X: Any) -> Any:
        """Offer what the place of a model asks for; nothing is predicted in a rehearsal."""
        raise NoFurther

    def _fitted_to_noise(self, X: Any) -> Any:
        """Return a copy that has seen normal values, beside text if it does not do without."""
        copy = clone(self.step).set_params(ledger=None)
        narrow = self.settings.narrow
        width = 1 if narrow else None  # None is all
        copy.set_params(**dict.fromkeys(_open_numbers(copy), width))
        if hasattr(copy, "rows_per_group"):
            copy.set_params(rows_per_group=1)  # noise has no groups
        if any(_readers_of_labels(copy)):
            # So many records that all that there is is found, or nothing but other values.
            copy.set_params(epsilon=_PLENTY)
            with suppress(Exception), _looking(self.computed, self.settings.assume_finite):
                return copy.fit(made_up(X, n_categories=0 if narrow else 2))
        for with_text in (False, True):
            with suppress(Exception), _looking(self.computed, self.settings.assume_finite):
                return copy.fit(_noise_like(X, with_text=with_text))
        raise ValueError(
            f"The step {self.label!r} ({type(self.step).__name__}) cannot be fitted to made-up "
            "values of the form that it gets here, so that what comes behind it cannot be checked "
            "before the charge. Fit it to public data of that form to see why."
        )

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of what `transform` gives."""
        return self.fitted_.get_feature_names_out(input_features)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")


class Looking(BaseEstimator):
    """Has a step that learns nothing look at what the user passed, as it does in scikit-learn."""

    def __init__(self, step: Any, label: str, passed: bool, assume_finite: bool) -> None:
        self.step = step
        self.label = label
        self.passed = passed
        self.assume_finite = assume_finite

    def fit(self, X: Any, y: Any = None) -> Looking:
        """Fit the step."""
        self._check_types(X)
        with self._looking():
            self.step.fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and transform the same data."""
        self._check_types(X)
        with self._looking():
            if _output(self.step) == "polars" and hasattr(self.step, "set_output"):
                plain = clone(self.step).set_output(transform="default")
                _need_types(self.label, plain.fit_transform(X, y))
            return self.step.fit_transform(X, y)

    def transform(self, X: Any) -> Any:
        """Transform what may be other data."""
        return self.step.transform(X)

    @available_if(lambda self: hasattr(self.step, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names that the step gives."""
        return self.step.get_feature_names_out(input_features)

    def _check_types(self, X: Any) -> None:
        """Refuse columns of objects where one of them might be refused for what it is."""
        rule = rule_of(self.step)
        reads = "objects" if rule is None else rule.reads(self.step)  # vouched for
        if reads == "types" or (reads == "values" and not self.passed):
            _need_numbers(self.label, type(self.step).__name__, X)

    def _looking(self) -> AbstractContextManager[None]:
        return _looking(_NOTHING, self.assume_finite) if self.passed else nullcontext()

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Passing(TransformerMixin, BaseEstimator):
    """Looks at columns that pass by other steps, at values where none may refuse them."""

    def __init__(self, label: str, looks: bool, assume_finite: bool, output: str) -> None:
        self.label = label
        self.looks = looks
        self.assume_finite = assume_finite
        self.output = output

    def fit(self, X: Any, y: Any = None) -> Passing:
        """Refuse values that are missing or not finite, and types that would be guessed."""
        if self.output == "polars":
            _need_types(self.label, X)
        if self.looks:
            with _looking(_NOTHING, self.assume_finite):
                _look_at("X", X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the same."""
        return X

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the same names."""
        return input_features

    def __sklearn_is_fitted__(self) -> bool:
        return True


@contextmanager
def _looking(computed: Collection[str], assume_finite: bool) -> Iterator[None]:
    with reading(computed), config_context(assume_finite=assume_finite):
        yield


def _need_numbers(label: str, name: str, X: Any) -> None:
    """Refuse columns whose type is not one of numbers, whatever they hold."""
    if not is_numeric(X):
        raise ValueError(
            f"The step {label!r} ({name}) needs columns of a numeric type here. Some that it gets "
            "are declared as objects, text or dates: for such columns, an error would tell of a "
            "single value. Pass columns of numbers as such, as in X.astype(float), and hand others "
            "to their own steps by a ColumnTransformer."
        )


def _need_types(label: str, X: Any) -> None:
    """Refuse what polars would make columns of by looking at values."""
    if not (is_numeric(X) or is_polars(X)):
        raise ValueError(
            f"The step {label!r} is to return a polars frame, and has columns of objects, of which "
            "polars would guess the types from single values. Call set_output(transform='default') "
            "or 'pandas', or pass a polars frame."
        )


def _look_at(name: str, data: Any) -> None:
    """Refuse values that are missing or not finite, if scikit-learn is to look at all."""
    missing = data.isna() if hasattr(data, "isna") else False  # also where numpy cannot compare
    if np.any(missing) and not get_config()["assume_finite"]:
        raise ValueError(f"Input {name} contains NaN.")
    assert_all_finite(np.asarray(data), input_name=name)


def _side_by_side(step: Any) -> list[tuple[str, Any]]:
    if type(step) is FeatureUnion:
        return list(step.transformer_list)
    return [(name, child) for name, child, _ in step.transformers] + [("remainder", step.remainder)]


def _output(step: Any) -> str:
    """Return what a composition has its "passthrough" return, as scikit-learn finds it out."""
    own = getattr(step, "_sklearn_output_config", {})
    return str(own.get("transform", get_config()["transform_output"]))


def _fills(step: Any) -> bool:
    """Return whether a step holds one that takes missing values."""
    steps = [one.step for one in readers(step, _NOTHING) if hasattr(one.step, "fit")]
    takers = [one for one in steps if type(one) is not TransformedTargetRegressor]
    return any(get_tags(one).input_tags.allow_nan for one in takers)


def _noise_like(X: Any, *, with_text: bool = False) -> Any:
    """Return normal values in the shape of a table, with its columns; of many rows a thousand."""
    # Columns that are not of numbers stay `with_text`: nothing is drawn from them, or shown.
    n_rows, n_columns = np.shape(X)
    size = min(n_rows, max(_ENOUGH, 2 * n_columns))
    noise = np.random.default_rng().normal(size=(size, n_columns))
    if with_text and not hasattr(X, "columns") and not is_numeric(X):
        return X[:size]
    with suppress(Exception):  # a table that is made in another way stays without names
        columns = {name: noise[:, column] for column, name in enumerate(X.columns)}
        if with_text:
            kept = {name: X[name] for name in X.columns if not is_numeric(X[name])}
            columns |= {name: np.asarray(column)[:size] for name, column in kept.items()}
        named = type(X)(columns)
        return named if np.shape(named) == noise.shape else noise
    return noise
