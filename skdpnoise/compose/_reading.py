"""The steps that read the user's data in a composition, and refusals of types between steps.

Only the X and y that the user passes may be refused for their values, and only before a random word
is taken. Which steps read them, rather than what another step computed, is a fact of the
composition alone. What is computed is refused by its type, never for a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from skdpnoise._utils.silence import silence
from skdpnoise.accounting.limits import NothingDrawnError
from skdpnoise.base.compositions import below, inner_of
from skdpnoise.base.public_output import route_output
from skdpnoise.base.register import is_private, rule_of
from skdpnoise.base.steps import all_ours, private_parts
from skdpnoise.compose.partitioned import OverParts, without_rows
from skdpnoise.data.columns import is_numeric, is_polars
from skdpnoise.data.computed import DATA, made, reading
from skdpnoise.data.missing import check_present
from skdpnoise.data.sources import RowSource, by_storage
from skdpnoise.data.table import scan_tables
from skdpnoise.data.targets import (
    known_classes,
    labels_of_parts,
    read_labels,
    read_numbers,
)

_NOTHING: frozenset[str] = frozenset()


class StrangeStepError(ValueError):
    """Raised where a step of another author failed: nobody knows what that tells."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A step that is fitted, or a target that is transformed."""

    label: str  # the prefix of its parameters in the whole
    step: Any  # a part, or a TransformedTargetRegressor
    passed: frozenset[str]  # which of X and y it gets as the user passed them
    fills: bool = False  # whether a step behind it may do something about missing values
    output: str = "default"  # in what form "passthrough" hands on columns


def leaves(
    step: Any, passed: frozenset[str], label: str = "", *, fills: bool = False
) -> Iterator[Leaf]:
    """Yield what reads data in a composition whose X and y are as the user passed them, or not."""
    if type(step) is Pipeline:
        for place, (name, child) in enumerate(step.steps):
            if child is None or (type(child) is str and child == "passthrough"):
                continue  # what comes next reads the same
            behind = fills or any(_fills(later) for _, later in step.steps[place + 1 :])
            yield from leaves(child, passed, below(label, name), fills=behind)
            passed -= {"X"}
    elif type(step) in (ColumnTransformer, FeatureUnion):
        for name, child in _side_by_side(step):
            if type(child) is str and child == "passthrough":
                yield Leaf(below(label, name), child, passed, fills, _output(step))
            else:
                yield from leaves(child, passed, below(label, name), fills=fills)
    elif type(step) is TransformedTargetRegressor:
        yield Leaf(label, step, passed)
        target = frozenset({"X"}) if "y" in passed else _NOTHING
        if step.transformer is not None:
            yield from leaves(step.transformer, target, below(label, "transformer"))
        same = step.transformer is None and step.func is None
        kept = passed if same else passed - {"y"}
        yield from leaves(step.regressor, kept, below(label, "regressor"), fills=fills)
    else:
        yield Leaf(label, step, passed, fills)


class Pass:
    """One reading of the data: how far it goes without a draw."""

    def __init__(self, y: Any, *, checks_y: bool) -> None:
        self.y, self.checks_y = y, checks_y  # as the user passed it
        self.assume_finite = bool(get_config()["assume_finite"])
        self.zeros = False  # whether what comes next is zeros in place of a result
        self.drawn = False  # whether it could only be made with a draw

    def after_draw(self, step: Any, X: Any) -> None:
        """Go on with zeros behind a step that returns as many columns as it gets."""
        keeps = isinstance(step, OneToOneFeatureMixin) and not hasattr(type(step), "public_output_")
        known = by_storage(X, lambda _: keeps, lambda _: False)  # what comes next is told nothing
        self.zeros, self.drawn = True, self.drawn or not known

    def __sklearn_clone__(self) -> Pass:
        return self


def readers(model: Any, passed: frozenset[str], y: Any) -> dict[str, Any]:
    """Return what takes the places of steps while the data are read and checked, by label."""
    # Each step that gets what the user passed looks at its values, as in scikit-learn; a private
    # one up to its first charge. What stands behind a draw is not fitted.
    run = Pass(y, checks_y="y" in passed)
    found: dict[str, Any] = {}
    for one in leaves(model, passed):
        if type(one.step) is TransformedTargetRegressor:
            if "y" in one.passed and y is not None:
                _look_at("y", y)
        elif "X" not in one.passed:
            continue
        elif is_private(one.step):
            found[one.label] = PrivateReader(one.step, one.label, DATA - one.passed, run)
        elif type(one.step) is str and one.step == "passthrough":
            passing = Passing(one.label, not one.fills, run.assume_finite, one.output)
            found[one.label] = passing.set_output(transform=one.output)
        elif one.step is not None and not isinstance(one.step, str):
            found[one.label] = PublicReader(one.step, one.label, run)
    return found | {label: Behind(step, label, run) for label, step in _behind(model, passed)}


def _behind(step: Any, passed: frozenset[str], label: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the outermost steps that get no X as the user passed it."""
    if type(step) is Pipeline:
        for name, child in step.steps:
            if child is None or isinstance(child, str):
                continue
            if "X" not in passed:
                yield below(label, name), child
            else:
                yield from _behind(child, passed, below(label, name))
            passed -= {"X"}
    elif type(step) in (ColumnTransformer, FeatureUnion):
        for name, child in _side_by_side(step):
            yield from _behind(child, passed, below(label, name))
    elif type(step) is TransformedTargetRegressor:
        yield from _behind(step.regressor, passed, below(label, "regressor"))


def guards(model: Any, passed: frozenset[str]) -> dict[str, Any]:
    """Return what stands before steps that read what others computed, by label."""
    # Python objects, which scikit-learn and numpy compute with one by one, fail for a value, so
    # that their *type* is refused, wherever this is found out.
    found: dict[str, Any] = {}
    for one in leaves(model, passed):
        fits = not isinstance(one.step, str | None) and hasattr(one.step, "fit")
        if not fits or type(one.step) is TransformedTargetRegressor:
            continue
        computed = "X" not in one.passed
        if is_private(one.step):
            if computed or not all_ours(one.step):
                found[one.label] = PrivateGuard(one.step, one.label, computed)
        elif computed:
            found[one.label] = Guard(one.step, one.label)
    return found


def is_ours(subject: Any) -> bool:
    """Return whether errors from within an object hold no value."""
    return isinstance(subject, _Stand | Passing)


class _Stand(BaseEstimator):
    """Stands for a step while a composition is fitted."""

    takes_parts: ClassVar[bool] = False  # whether rows may lie in parts

    def __init__(self, step: Any, label: str) -> None:
        self.step = step
        self.label = label

    @available_if(lambda self: hasattr(self.step, "transform"))
    def transform(self, X: Any) -> Any:
        return self.step.transform(X)

    @available_if(lambda self: hasattr(self.step, "predict"))
    def predict(self, X: Any) -> Any:
        return self.step.predict(X)

    @available_if(lambda self: hasattr(self.step, "get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        return self.step.get_feature_names_out(input_features)

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Guard(_Stand):
    """Refuses types, and no values, before a public step that reads what others computed."""

    def fit(self, X: Any, y: Any = None) -> Guard:
        with self._checked(X):
            self.step.fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        with self._checked(X):
            _check_output(self.label, self.step, X, y)
            return self.step.fit_transform(X, y)

    def _checked(self, X: Any) -> AbstractContextManager[None]:
        _check_types(self.label, self.step, X, passed=False)
        return nullcontext()


class PublicReader(Guard):
    """Has a step that learns nothing look at what the user passed, as it does in scikit-learn."""

    def __init__(self, step: Any, label: str, run: Pass) -> None:
        super().__init__(step, label)
        self.run = run

    def _checked(self, X: Any) -> AbstractContextManager[None]:
        _check_types(self.label, self.step, X, passed=True)
        return _looking(_NOTHING, self.run.assume_finite)


class _PrivateStand(_Stand):
    """Stands for a private step."""

    takes_parts = True

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        self.step.fit(X, y, **({} if groups is None else {"groups": groups}))
        return self

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        return self.fit(X, y, groups).transform(X)


class PrivateGuard(_PrivateStand):
    """Refuses types before a private step; one of another author looks at values itself."""

    def __init__(self, step: Any, label: str, computed: bool) -> None:
        super().__init__(step, label)
        self.computed = computed

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        if self.computed:
            _need_numbers_of(self.label, self.step, X)
        with (
            made() if self.computed else nullcontext(),
            config_context(assume_finite=all_ours(self.step)),
        ):
            return super().fit(X, y, groups)


class PrivateReader(_PrivateStand):
    """Has a private step check what the user passed, up to its first charge."""

    def __init__(self, step: Any, label: str, computed: frozenset[str], run: Pass) -> None:
        super().__init__(step, label)
        self.computed = computed
        self.run = run

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> PrivateReader:
        self.draws_ = True
        try:
            with _looking(self.computed, self.run.assume_finite):
                super().fit(X, y, groups)
            self.draws_ = False  # it has nothing to release
        except NothingDrawnError:
            self.run.after_draw(self.step, X)
        return self

    @available_if(lambda self: hasattr(self.step, "transform"))
    def transform(self, X: Any) -> Any:
        """Return what the step makes of the data, or columns of zeros where that needs a draw."""
        if self.draws_:
            return by_storage(X, lambda X: _zeros(X, self.step, self.label), lambda _: X)
        output = getattr(self.step, "public_output_", None)
        if output is not None:
            route_output(self, output, _stood_for)
        return self.step.transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of what `transform` gives."""
        if self.draws_:
            known = input_features is not None and isinstance(self.step, OneToOneFeatureMixin)
            return input_features if known else np.array([self.label], dtype=object)
        return self.step.get_feature_names_out(input_features)


class Behind(_Stand):
    """A step that gets no X of the user: read as far as nothing was to be drawn before it."""

    takes_parts = True

    def __init__(self, step: Any, label: str, run: Pass) -> None:
        super().__init__(step, label)
        self.run = run

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Behind:
        """Check what the user passed of it."""
        self._read(X, y, groups, transforms=False)
        return self

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Check, and transform as far as that needs no draw."""
        return self._read(X, y, groups, transforms=True)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        if self.run.drawn:
            return input_features
        return super().get_feature_names_out(input_features)

    def _read(self, X: Any, y: Any, groups: Any, *, transforms: bool) -> Any:
        if self.run.checks_y and y is self.run.y:
            with _looking(frozenset({"X"}), self.run.assume_finite):
                _refuse_targets(self.step, y, int(_num_samples(X)))
        if self.run.drawn:
            return X
        if self.run.zeros and _holds_vouched(self.step):
            self.run.drawn = True  # which might fail for zeros
            return X
        pays = groups is not None and bool(private_parts(self.step))
        step, grouped = self._guarded(X, asks=pays), {"groups": groups} if pays else {}
        try:
            with silence():  # what is to be heard of y was said above
                step.fit(X, y, **grouped)
            output = getattr(self.step, "public_output_", None)
            if output is not None:
                route_output(self, output, _stood_for)
            return step.transform(X) if transforms else X
        except NothingDrawnError:
            self.run.after_draw(self.step, X)
            return X if self.run.drawn else _zeros(X, self.step, self.label)
        except Exception as error:
            if all_ours(self.step):
                raise
            text = str(error)
        raise StrangeStepError(text)  # for a value that was computed, perhaps

    def _guarded(self, X: Any, *, asks: bool) -> Any:
        """Return the step with guards before what it holds, the private ones asking for groups."""
        in_memory = partial(self._guarded_in_memory, asks)
        return by_storage(X, lambda _: in_memory(), lambda _: _over_parts(self.step))

    def _guarded_in_memory(self, asks: bool) -> Any:
        places = guards(self.step, _NOTHING)
        for one in places.values() if asks else ():
            if isinstance(one, PrivateGuard):
                one.set_fit_request(groups=True)
        return places[""] if "" in places else self.step.set_params(**places)


class Passing(TransformerMixin, BaseEstimator):
    """Looks at columns that pass by other steps, at values where none may refuse them."""

    takes_parts: ClassVar[bool] = False

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
        return X

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        return input_features

    def __sklearn_is_fitted__(self) -> bool:
        return True


def put(model: Any, places: Mapping[str, Any], owner: str, X: Any) -> Any:
    """Return a composition with what stands for its steps in their places, to be fitted to X."""
    if "" in places:
        return places[""]
    return by_storage(
        X,
        lambda _: _put(model, places, owner),
        lambda _: _put(model, _places_in_parts(model, places, owner), owner),
    )


def _put(model: Any, places: Mapping[str, Any], owner: str) -> Any:
    """Put stands in their places, and make sure that nothing else is fitted."""
    model.set_params(**places)
    found = model.get_params(deep=True)
    missed = [label for label, place in places.items() if found.get(label) is not place]
    if missed:
        raise TypeError(
            f"{owner} cannot replace its step {missed[0]!r} by set_params, and so cannot check it. "
            "Give the steps of every composition as a list of names and steps."
        )
    return model


def _places_in_parts(model: Any, places: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return what stands for steps over rows in parts, which public steps take as a whole."""
    taking = {name: one for name, one in places.items() if one.takes_parts and "__" not in name}
    for name, step in getattr(model, "steps", ()):
        if name in taking or step is None or isinstance(step, str) or is_private(step):
            continue
        if private_parts(step):
            raise TypeError(
                f"The step {name!r} of {owner} holds private steps beside others, which read whole "
                "tables. For rows in parts give private steps as steps of the pipeline, such as a "
                "DPTableVectorizer for columns of several kinds."
            )
        taking[name] = OverParts(step)
    return taking


def _over_parts(step: Any) -> Any:
    return step if is_private(step) else OverParts(step)


def taken_back(step: Any) -> Any:
    """Return a fitted composition with the steps themselves in place of what stood for them."""
    if isinstance(step, _Stand):
        return step.step
    if isinstance(step, OverParts):
        return getattr(step, "fitted_", step.step)
    if type(step) is Pipeline:
        step.steps = [(name, taken_back(child)) for name, child in step.steps]
    elif type(step) is FeatureUnion:
        step.transformer_list = [(name, taken_back(child)) for name, child in step.transformer_list]
    elif type(step) is ColumnTransformer:
        for name in {"transformers", "transformers_"} & set(vars(step)):
            listed = [(n, taken_back(child), where) for n, child, where in getattr(step, name)]
            setattr(step, name, listed)
        step.remainder = taken_back(step.remainder)
    elif type(step) is TransformedTargetRegressor:
        held = {"regressor", "regressor_", "transformer", "transformer_"} & set(vars(step))
        for name in held:
            setattr(step, name, taken_back(getattr(step, name)))
    return step


def _stood_for(step: Any) -> Any:
    return step.step if isinstance(step, _Stand) else step


@contextmanager
def _looking(computed: frozenset[str], assume_finite: bool) -> Iterator[None]:
    with reading(computed), config_context(assume_finite=assume_finite):
        yield


def _refuse_targets(step: Any, y: Any, n_rows: int) -> None:
    """Refuse a target, as the user passed it, that a private step behind others does not take."""
    for one in leaves(step, frozenset({"y"})):
        if "y" in one.passed and is_private(one.step):
            children = inner_of(one.step)[0]
            if children and hasattr(one.step, "steps"):
                _refuse_targets(Pipeline(list(children)), y, n_rows)
            else:
                _refuse_target(one.step, y, n_rows)


def _refuse_target(step: Any, y: Any, n_rows: int) -> None:
    """Refuse a target that a private step does not take."""
    by_storage(y, partial(_read_whole_target, step, n_rows), partial(_read_target_in_parts, step))


def _read_whole_target(step: Any, n_rows: int, y: Any) -> None:
    if is_classifier(step):
        known_classes(step, read_labels(type(step).__name__, y, n_rows))
    elif is_regressor(step):
        read_numbers(step, y, n_rows)


def _read_target_in_parts(step: Any, y: RowSource) -> None:
    found = scan_tables(partial(_told_of, step), y=y)
    if is_classifier(step):
        labels = [one for facts in found.rows.facts for one in facts.found]
        known_classes(step, labels_of_parts(type(step).__name__, labels))


def _told_of(step: Any, tables: dict[str, Any]) -> Any:
    """Return the labels of some records; refuse a target as it would be in memory."""
    y = tables["y"]
    if is_classifier(step) or is_regressor(step):
        check_present(type(step).__name__, y)
    if is_classifier(step):
        return np.unique(read_labels(type(step).__name__, y, len(y)))
    return read_numbers(step, y, len(y))[:0] if is_regressor(step) else None


def _check_types(label: str, step: Any, X: Any, *, passed: bool) -> None:
    """Refuse columns of objects where one of them might be refused for what it is."""
    rule = rule_of(step)
    reads = "objects" if rule is None else rule.reads(step)  # vouched for
    if reads == "types" or (reads == "values" and not passed):
        _need_numbers(label, type(step).__name__, X)


def _check_output(label: str, step: Any, X: Any, y: Any) -> None:
    """Refuse what polars would make columns of by looking at values."""
    if _output(step) == "polars" and hasattr(step, "set_output"):
        plain = clone(step).set_output(transform="default")
        _need_types(label, plain.fit_transform(X, y))


def _need_numbers_of(label: str, step: Any, X: Any) -> None:
    """Refuse columns of objects before a private step that computes with them."""
    if not inner_of(step)[0]:
        _need_numbers(label, type(step).__name__, without_rows(X))


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


def _holds_vouched(step: Any) -> bool:
    """Return whether a person vouches for a step, or one within it."""
    found = (one.step for one in leaves(step, _NOTHING))
    return any(
        hasattr(one, "fit")
        and not is_private(one)
        and type(one) is not TransformedTargetRegressor
        and rule_of(one) is None
        for one in found
    )


def _zeros(X: Any, step: Any, label: str) -> Any:
    """Return zeros in the form that a step returns: its columns, or one if they are not known."""
    known = isinstance(step, OneToOneFeatureMixin)
    zeros = np.zeros(np.shape(X) if known else (int(_num_samples(X)), 1))
    names = list(getattr(X, "columns", range(zeros.shape[1]))) if known else [label]
    output = _output(step)
    if output == "pandas":
        import pandas as pd

        return pd.DataFrame(zeros, columns=names)
    if output == "polars":
        import polars as pl

        return pl.DataFrame(zeros, schema=list(map(str, names)))
    return zeros


def _fills(step: Any) -> bool:
    """Return whether a step holds one that takes missing values."""
    steps = [one.step for one in leaves(step, _NOTHING) if hasattr(one.step, "fit")]
    takers = [one for one in steps if type(one) is not TransformedTargetRegressor]
    return any(get_tags(one).input_tags.allow_nan for one in takers)
