"""The steps that read the user's data in a composition, and refusals of types between steps.

Only the X and y that the user passes may be refused for their values, and only before a random word
is taken. Which steps read them, rather than what another step computed, is a fact of the
composition alone. What is computed is refused by its type, never for a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples

from skdpnoise._utils.silence import silence
from skdpnoise.accounting.limits import NothingDrawnError
from skdpnoise.base.compositions import INSIDE, below, inner_of
from skdpnoise.base.partitioned import OverParts
from skdpnoise.base.register import is_private, rule_of
from skdpnoise.base.steps import all_ours, private_parts
from skdpnoise.data.columns import is_numeric, is_polars
from skdpnoise.data.computed import DATA, made, reading
from skdpnoise.data.missing import check_present
from skdpnoise.data.sources import RowSource, by_storage, for_storage
from skdpnoise.data.table import scan_tables
from skdpnoise.data.targets import known_classes, labels_of_parts, read_labels, read_numbers

_NOTHING: frozenset[str] = frozenset()
# What compositions hold steps as.
_HELD = frozenset(
    {"steps", "transformer_list", "transformers", "transformers_", "remainder"}
    | {"regressor", "regressor_", "transformer", "transformer_"}
)


class StrangeStepError(ValueError):
    """Raised where a step of another author failed: nobody knows what that tells."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A step that is fitted, or a target that is transformed."""

    label: str  # the prefix of its parameters in the whole
    step: Any  # a part, or a TransformedTargetRegressor; "passthrough" is a transformer, too
    passed: frozenset[str]  # which of X and y it gets as the user passed them
    fills: bool = False  # whether a step behind it may do something about missing values
    passes_by: bool = False  # whether it is "passthrough"


def leaves(
    step: Any, passed: frozenset[str], label: str = "", *, fills: bool = False, whole: bool = False
) -> Iterator[Leaf]:
    """Yield what reads data in a composition whose X and y are as the user passed them, or not."""
    # With `whole` compositions that get no X as the user passed it are not looked into.
    inner = partial(leaves, whole=whole)
    if type(step) is TransformedTargetRegressor and not (whole and "X" not in passed):
        yield Leaf(label, step, passed)
        target = frozenset({"X"}) if "y" in passed else _NOTHING
        if step.transformer is not None:
            yield from inner(step.transformer, target, below(label, "transformer"))
        same = step.transformer is None and step.func is None
        kept = passed if same else passed - {"y"}
        yield from inner(step.regressor, kept, below(label, "regressor"), fills=fills)
    elif (look := INSIDE.get(type(step))) is None or (whole and "X" not in passed):
        yield Leaf(label, step, passed, fills)
    elif type(step) is Pipeline:
        for place, (name, child) in enumerate(step.steps):
            if child is None or (type(child) is str and child == "passthrough"):
                continue  # what comes next reads the same
            behind = fills or any(_fills(later) for _, later in step.steps[place + 1 :])
            yield from inner(child, passed, below(label, name), fills=behind)
            passed -= {"X"}
    else:
        for name, child in look(step, False).children:
            if type(child) is str and child == "passthrough":
                same = FunctionTransformer(feature_names_out="one-to-one")  # as scikit-learn has it
                same.set_output(transform=_output(step))
                yield Leaf(below(label, name), same, passed, fills, passes_by=True)
            else:
                yield from inner(child, passed, below(label, name), fills=fills)


class Reading:
    """How far data are read without a draw."""

    def __init__(self) -> None:
        self.assume_finite = bool(get_config()["assume_finite"])
        self.zeros = False  # whether what comes next is zeros in place of a result
        self.drawn = False  # whether it could only be made with a draw

    def __sklearn_clone__(self) -> Reading:
        return self


def readers(model: Any, passed: frozenset[str]) -> dict[str, Stand]:
    """Return what takes the places of steps while the data are read and checked, by label."""
    # Each step that gets what the user passed looks at its values, as in scikit-learn; a private
    # one up to its first charge.
    run, found = Reading(), dict[str, Stand]()
    for one in leaves(model, passed, whole=True):
        if "X" not in one.passed and _is_fitted(one.step):
            found[one.label] = Behind(one.step, one.label, run=run)
        elif _reads(one):
            looks = one.passes_by and not one.fills
            found[one.label] = Stand(one.step, one.label, one.passed, run, looks)
    return found


def guards(model: Any, passed: frozenset[str], label: str = "") -> dict[str, Stand]:
    """Return what stands before steps that read what others computed, by label in the model."""
    # Python objects, which scikit-learn and numpy compute with one by one, fail for a value, so
    # that their *type* is refused, wherever this is found out.
    return {
        one.label: Stand(one.step, below(label, one.label), one.passed)
        for one in leaves(model, passed)
        if _reads(one)
        and not one.passes_by
        and ("X" not in one.passed or (is_private(one.step) and not all_ours(one.step)))
    }


def _is_fitted(step: Any) -> bool:
    return not isinstance(step, str | None) and hasattr(step, "fit")


def _reads(leaf: Leaf) -> bool:
    return _is_fitted(leaf.step) and type(leaf.step) is not TransformedTargetRegressor


def _offers(name: str) -> Callable[[Stand], bool]:
    return lambda stand: hasattr(stand.step, name)


class Stand(BaseEstimator):
    """Stands for a step in a fit, or in a reading: which values, and types, it may refuse."""

    drew_ = False  # whether what it returns needs a draw

    def __init__(
        self,
        step: Any,
        label: str,
        passed: frozenset[str] = _NOTHING,
        run: Any = None,
        looks: bool = False,
    ) -> None:
        self.step = step
        self.label = label
        self.passed = passed  # which of X and y are as the user passed them
        self.run = run  # a Reading, which ends at the first charge; None in a fit
        self.looks = looks  # at values, where the step does not

    @property
    def takes_parts(self) -> bool:
        return is_private(self.step)

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Check the data, and fit the step as far as that needs no draw."""
        self.drew_ = False
        try:
            with self._terms():
                if self._needs_numbers and not is_numeric(X):
                    raise self._not_numeric()
                self.step.fit(X, y, **({} if groups is None else {"groups": groups}))
        except NothingDrawnError:
            if self.run is None:  # which is said to what is around it
                raise
            self._draw(type(X))
        return self

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        if self.takes_parts:
            return self.fit(X, y, groups).transform(X)
        with self._terms():
            if self._needs_numbers and not is_numeric(X):
                raise self._not_numeric()
            if _output(self.step) == "polars" and hasattr(self.step, "set_output"):
                plain = clone(self.step).set_output(transform="default")
                _need_types(self.label, plain.fit_transform(X, y))
            if self.looks:
                look_at("X", X)
            return self.step.fit_transform(X, y)

    @available_if(_offers("transform"))
    def transform(self, X: Any) -> Any:
        """Return what the step makes of the data, or columns of zeros where that needs a draw."""
        if self.drew_:
            return by_storage(X, self._zeros, lambda rows: rows)
        return self.step.transform(X)

    @available_if(_offers("predict"))
    def predict(self, X: Any) -> Any:
        return self.step.predict(X)

    @available_if(_offers("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        if not self.drew_:
            return self.step.get_feature_names_out(input_features)
        known = input_features is not None and isinstance(self.step, OneToOneFeatureMixin)
        return input_features if known else np.array([self.label], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @contextmanager
    def _terms(self) -> Iterator[None]:
        """Say which values the step may refuse."""
        computed, private = "X" not in self.passed, is_private(self.step)
        with ExitStack() as stack:
            if self.run is not None:
                stack.enter_context(reading(DATA - self.passed))
                stack.enter_context(config_context(assume_finite=self.run.assume_finite))
            elif private:
                stack.enter_context(config_context(assume_finite=all_ours(self.step)))
                stack.enter_context(made() if computed else nullcontext())
            yield

    def _not_numeric(self) -> ValueError:
        return ValueError(
            f"The step {self.label!r} ({type(self.step).__name__}) needs columns of a numeric type "
            "here. Some that it gets are declared as objects, text or dates: for such columns, an "
            "error would tell of a single value. Pass columns of numbers as such, as in "
            "X.astype(float), and hand others to their own steps by a ColumnTransformer."
        )

    @property
    def _needs_numbers(self) -> bool:
        """Say whether columns of objects might be refused for what one of them is."""
        computed = "X" not in self.passed
        if is_private(self.step):
            return computed and not inner_of(self.step)[0]  # steps within look themselves
        rule = rule_of(self.step)
        reads = "objects" if rule is None else rule.reads(self.step)  # vouched for
        return reads == "types" or (reads == "values" and computed)

    def _draw(self, kind: type) -> None:
        """Go on with zeros in place of what the step would return, if its columns are known."""
        keeps = isinstance(self.step, OneToOneFeatureMixin)
        keeps &= not hasattr(type(self.step), "public_output_")
        known = for_storage(kind, keeps, False)
        self.drew_ = self.run.zeros = True
        self.run.drawn |= not known

    def _zeros(self, X: Any) -> Any:
        """Return zeros in the form that a step returns: its columns, or one if they are unknown."""
        known = isinstance(self.step, OneToOneFeatureMixin)
        zeros = np.zeros(np.shape(X) if known else (int(_num_samples(X)), 1))
        names = list(getattr(X, "columns", range(zeros.shape[1]))) if known else [self.label]
        output = _output(self.step)
        if output == "pandas":
            import pandas as pd

            return pd.DataFrame(zeros, columns=names)
        if output == "polars":
            import polars as pl

            return pl.DataFrame(zeros, schema=list(map(str, names)))
        return zeros


class Behind(Stand):
    """A step that gets no X of the user: read as far as nothing was to be drawn before it."""

    @property
    def takes_parts(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Fit the step, unless nothing is known of what it gets, or it might fail for zeros."""
        self.run.drawn |= self.run.zeros and _holds_vouched(self.step)
        self.drew_ = self.run.drawn
        if self.drew_:
            return self
        pays = groups is not None and bool(private_parts(self.step))
        step, grouped = self._guarded(type(X), asks=pays), {"groups": groups} if pays else {}
        try:
            with silence():  # what is to be heard of y is said of y as it was passed
                step.fit(X, y, **grouped)
            return self
        except NothingDrawnError:
            self._draw(type(X))
            return self
        except Exception as error:
            if all_ours(self.step):
                raise
            text = str(error)
        raise StrangeStepError(text)  # for a value that was computed, perhaps

    def _guarded(self, kind: type, *, asks: bool) -> Any:
        """Return the step with guards before what it holds, the private ones asking for groups."""
        return for_storage(kind, self._guarded_in_memory, self._whole)(asks)

    def _whole(self, asks: bool) -> Any:
        return self.step if is_private(self.step) else OverParts(self.step)

    def _guarded_in_memory(self, asks: bool) -> Any:
        places = guards(self.step, _NOTHING, self.label)
        for one in places.values() if asks else ():
            one.set_fit_request(groups=is_private(one.step))
        return places[""] if "" in places else self.step.set_params(**places)


def put(model: Any, places: Mapping[str, Any], owner: str, kind: type) -> Any:
    """Return a composition with what stands for its steps, to be fitted to data of a type."""
    if "" in places:
        return places[""]
    found = for_storage(kind, dict, partial(_places_in_parts, model, owner))(places)
    model.set_params(**found)
    now = model.get_params(deep=True)
    missed = [label for label, place in found.items() if now.get(label) is not place]
    if missed:
        raise TypeError(
            f"{owner} cannot replace its step {missed[0]!r} by set_params, and so cannot check it. "
            "Give the steps of every composition as a list of names and steps."
        )
    return model


def _places_in_parts(model: Any, owner: str, places: Mapping[str, Any]) -> dict[str, Any]:
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


def taken_back(step: Any) -> Any:
    """Return a fitted composition with the steps themselves in place of what stood for them."""
    if isinstance(step, Stand):
        return step.step
    if isinstance(step, OverParts):
        return getattr(step, "fitted_", step.step)
    for name in _HELD & set(vars(step)) if type(step) in INSIDE else ():
        held = getattr(step, name)
        if isinstance(held, list):
            now: Any = [(entry[0], taken_back(entry[1]), *entry[2:]) for entry in held]
        else:
            now = taken_back(held)
        setattr(step, name, now)
    return step


def reading_targets(reading_it: Iterable[Leaf]) -> Iterator[Any]:
    """Yield what transforms the target that the user passed, or reads it behind other steps."""
    for one in reading_it:
        if "y" not in one.passed:
            continue
        if type(one.step) is TransformedTargetRegressor:
            yield one.step
        elif "X" not in one.passed and is_private(one.step):
            children = inner_of(one.step)[0]
            if children and hasattr(one.step, "steps"):
                yield from reading_targets(leaves(Pipeline([*children]), frozenset({"y"})))
            else:
                yield one.step


def refuse_target(step: Any, n_rows: int, y: Any) -> None:
    """Refuse a target in memory as a step that gets it would, or what transforms it."""
    if type(step) is TransformedTargetRegressor:
        if y is not None:
            look_at("y", y)
    elif is_classifier(step):
        labels = np.unique(read_labels(type(step).__name__, y, n_rows))
        known_classes(step, labels, n_rows)
    elif is_regressor(step):
        read_numbers(step, y, n_rows)


def refuse_target_in_parts(step: Any, y: RowSource) -> None:
    """Refuse a target in parts as a step that gets it would, or what transforms it."""
    if type(step) is TransformedTargetRegressor:
        return look_at("y", y)
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


def _need_types(label: str, X: Any) -> None:
    """Refuse what polars would make columns of by looking at values."""
    if not (is_numeric(X) or is_polars(X)):
        raise ValueError(
            f"The step {label!r} is to return a polars frame, and has columns of objects, of which "
            "polars would guess the types from single values. Call set_output(transform='default') "
            "or 'pandas', or pass a polars frame."
        )


def look_at(name: str, data: Any) -> None:
    """Refuse values that are missing or not finite, if scikit-learn is to look at all."""
    missing = data.isna() if hasattr(data, "isna") else False  # also where numpy cannot compare
    if np.any(missing) and not get_config()["assume_finite"]:
        raise ValueError(f"Input {name} contains NaN.")
    assert_all_finite(np.asarray(data), input_name=name)


def _output(step: Any) -> str:
    """Return what a composition has its "passthrough" return, as scikit-learn finds it out."""
    own = getattr(step, "_sklearn_output_config", {})
    return str(own.get("transform", get_config()["transform_output"]))


def _holds_vouched(step: Any) -> bool:
    reading = (one.step for one in leaves(step, _NOTHING) if _reads(one))
    return any(not is_private(one) and rule_of(one) is None for one in reading)


def _fills(step: Any) -> bool:
    """Return whether a step holds one that takes missing values."""
    return any(
        get_tags(one.step).input_tags.allow_nan
        for one in leaves(step, _NOTHING)
        if _reads(one) and not one.passes_by
    )
