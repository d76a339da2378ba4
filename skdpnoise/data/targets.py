"""Targets and labels are converted and checked; no message shows a value of them."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import column_or_1d

from skdpnoise._utils.parameters import check_memory
from skdpnoise._utils.silence import silence
from skdpnoise.data.computed import is_computed
from skdpnoise.data.missing import has_missing, missing_labels, without_targets
from skdpnoise.data.redaction import without_values
from skdpnoise.data.tables import (
    FLOATS,
    as_survivable,
    check_container,
    check_objects,
    check_values,
)

_TEXT, _NUMBERS = "text", "numbers"
_ENCODED = (
    " A meta-estimator such as VotingClassifier fits its members to labels encoded as 0, 1, ...: "
    "give its members these numbers as 'classes'."
)


def read_numbers(estimator: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return the target of a regression as finite numbers, one for each row."""
    owner, computed = type(estimator).__name__, is_computed("y", estimator)
    plain = type(y) is np.ndarray and y.shape == (n_rows,) and y.dtype.kind in "biuf"
    vector = y if plain else _vector(owner, y, n_rows)
    if vector.dtype.kind not in "biuf":
        text = (
            f"{owner} needs numbers, and y has text or objects of another kind. For labels use a "
            "classifier; numbers that are text become numbers by pandas.to_numeric(y)."
        )
        if vector.dtype.kind not in "OUST":
            raise TypeError(text)
        source = vector
        if not computed and _has_no_numbers(source):
            raise ValueError(text)
        if not computed and has_missing(source):
            raise without_targets(owner, y)
        with silence(), without_values(text):
            vector = source.astype(np.float64)
    with silence():  # of values beyond double precision, which are refused below
        numbers: NDArray[np.float64] = vector.astype(np.float64, copy=False)
    if computed:
        return as_survivable(numbers)
    if has_missing(numbers):
        raise without_targets(owner, y)
    check_values(owner, "y", numbers)
    return numbers


def read_counts(estimator: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return the target of a regression of counts or rates, which are not negative."""
    numbers = read_numbers(estimator, y, n_rows)
    if (numbers < 0.0).any() and not is_computed("y", estimator):
        name = type(estimator).__name__
        raise ValueError(f"{name} needs counts or rates, and y has negative values.")
    return numbers


def numbers_of(y: Any) -> NDArray[np.float64]:
    """Return some of a target of numbers that was checked."""
    return np.asarray(np.asarray(y).ravel(), dtype=np.float64)  # of a table of one column


def labels_of(y: Any) -> NDArray[Any]:
    """Return some labels that were checked."""
    found = np.asarray(y).ravel()  # of a table of one column
    return found if found.dtype.kind in "iub" else read_labels("A fit", y, len(found))


def _has_no_numbers(values: NDArray[Any]) -> bool:
    """Return whether there is text, whatever it says, or a period among values."""
    types = set(map(type, values)) if values.dtype.kind == "O" else {str}
    return any(issubclass(one, str | bytes) or one.__name__ == "Period" for one in types)


def missing_target(owner: str) -> ValueError:
    return ValueError(f"This {owner} estimator requires y to be passed, but the target y is None.")


def read_labels(owner: str, y: Any, n_rows: int) -> NDArray[Any]:
    """Return labels of one kind, one for each row: text, whole numbers or booleans."""
    if type(y) is np.ndarray and y.shape == (n_rows,) and y.dtype.kind in "Ubiu":
        return y  # whose type says that each is a label
    given = y
    if hasattr(y, "iloc") and not isinstance(getattr(y, "dtype", np.dtype(float)), np.dtype):
        # scikit-learn would make doubles of pandas' own integers and booleans.
        given = np.asarray(check_container(owner, "y", y), dtype=object)
    labels = _vector(owner, given, n_rows)
    if has_missing(labels):
        label = ", or give them a label of their own"
        raise without_targets(owner, y, otherwise=label)
    return _of_one_kind(owner, "y", labels)


def public_classes(owner: str, classes: Any) -> NDArray[Any] | None:
    """Return the public labels, sorted; None if they are to be those of y."""
    if classes is None:
        return None
    expected = (
        f"The 'classes' parameter of {owner} must be None or a list of two labels or more, all of "
        "them text, whole numbers or booleans, each of them once"
    )
    given = f"an object of type {type(classes).__name__}"
    listed = isinstance(classes, list | tuple | np.ndarray) or hasattr(classes, "to_numpy")
    if not listed or isinstance(classes, np.ma.MaskedArray) or getattr(classes, "ndim", 1) != 1:
        raise ValueError(f"{expected}. Got {given} instead.")
    labels: NDArray[Any] = np.empty(len(classes), dtype=object)
    # One by one: numpy would make text of 1 and "a", and a matrix of lists.
    for place, label in enumerate(classes):
        labels[place] = label
    others = f"{expected}. Got {given} with other or missing labels."
    with without_values(others):
        labels = _of_one_kind(owner, "classes", labels)
    found = np.unique(labels)
    if len(found) < max(2, len(labels)):
        raise ValueError(
            f"{expected}. Got {len(labels)} labels, {len(found)} of them different, instead."
        )
    return np.asarray(found.tolist()) if found.dtype.kind == "O" else found


def check_two_classes(owner: str, classes: Collection[Any], where: str) -> None:
    """Refuse a single label, and say where the public labels are given."""
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs two classes or more, got 1 class. Give the public labels as {where} "
            "if the other class has no record."
        )


def known_classes(estimator: Any, y: NDArray[Any], n_rows: int = 0) -> NDArray[Any]:
    """Return the sorted labels, of which y has all that occur, for at least so many rows."""
    owner = type(estimator).__name__
    given = public_classes(owner, estimator.classes)
    present = np.unique(y)
    classes = present if given is None else given
    if given is not None:
        allowed = f"The 'classes' parameter of {owner} must contain every label that occurs in y. "
        kinds = [_TEXT if labels.dtype.kind in "OU" else _NUMBERS for labels in (given, present)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"{allowed}Got {kinds[0]}, but labels that are {kinds[1]}.{_ENCODED}")
        if not np.isin(present, classes).all():
            raise ValueError(
                f"{allowed}Got {len(classes)} classes, and labels that are not among them."
                f"{_ENCODED}"
            )
    check_two_classes(owner, classes, "'classes'")
    ones = classes[1:] if len(classes) == 2 else classes
    check_memory(
        owner,
        2.0 * len(ones) * max(len(y), n_rows),
        f"{len(classes)} classes",
        "If y has numbers and not labels, use a regressor.",
    )
    return classes


def labels_of_parts(owner: str, found: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of all parts, each once; refuse parts with labels of other kinds."""
    kinds = {{"O": "U", "u": "i", "f": "i"}.get(one.dtype.kind, one.dtype.kind) for one in found}
    if len(kinds) > 1:
        raise ValueError(
            f"Unknown label type: mixed. {owner} needs labels of one kind, and y has several of "
            "text, numbers and booleans in parts of the rows."
        )
    return np.unique(np.concatenate(found))


def _vector(owner: str, y: Any, n_rows: int) -> NDArray[Any]:
    if y is None:
        raise missing_target(owner)
    text = (
        f"{owner} needs y as a one-dimensional array of numbers or labels, shape ({n_rows},). Got "
        f"an object of type {type(y).__name__} that cannot be read as one."
    )
    listed = y if isinstance(y, list | tuple) and not _any_is(y, np.ma.MaskedArray) else None
    if listed is not None:
        types = set(map(type, listed))
        check_objects(owner, "y", types)
        # One by one, for the same reason as for classes.
        vector: NDArray[Any] = np.empty(len(listed), dtype=object)
        for place, value in enumerate(listed):
            vector[place] = value
        whole = str if types and all(issubclass(one, str) for one in types) else object
        if whole is str or _any_is(listed, list, tuple, np.ndarray):
            with without_values(text):
                vector = np.asarray(listed, dtype=whole)
        y = vector
    else:
        y = check_container(owner, "y", y)
    _check_one_target(owner, y)
    with silence(DataConversionWarning), without_values(text):  # of a column: of its shape
        column: NDArray[Any] = column_or_1d(y, warn=True)
    if len(column) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(column)}]"
        )
    return column.astype(object) if column.dtype.kind == "T" else column


def _check_one_target(owner: str, y: Any) -> None:
    """Refuse a target of several columns, by its shape."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) != 2 or shape[1] < 2:
        return
    column = "y.iloc[:, k]" if hasattr(y, "iloc") else "numpy.asarray(y)[:, k]"
    raise ValueError(
        f"y should be a 1d array, got an array of shape {tuple(shape)} instead: {owner} has one "
        f"target. Fit one model to each column, {column}, with a part of epsilon and delta each; "
        "labels in 0/1 columns become one column by numpy.asarray(y).argmax(axis=1)."
    )


def _any_is(values: Any, *kinds: type) -> bool:
    return any(isinstance(value, kinds) for value in values)


def _of_one_kind(owner: str, name: str, labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels that can be sorted and compared, or say why they cannot be."""
    if labels.dtype.kind == "O":
        labels = _of_one_type(owner, name, labels)
    kind = labels.dtype.kind
    if kind == "S":
        raise TypeError(
            f"Support for labels represented as bytes is not supported by {owner}. Convert the "
            "labels to text or to whole numbers."
        )
    if kind == "c":
        raise ValueError(f"Complex data not supported by {owner} as labels. Give whole numbers.")
    if kind == "f":
        if labels.dtype not in FLOATS:
            with silence():  # of values beyond double precision, which are refused below
                labels = labels.astype(np.float64)
        check_values(owner, name, labels, largest=np.inf, keeps_subnormal=True)
        if (labels != np.rint(labels)).any():
            raise ValueError(
                f"Unknown label type: continuous. {owner} needs classes as labels, not numbers "
                "that are not whole. For a target of numbers use a regressor."
            )
    elif kind not in "OUbiu":
        raise ValueError(
            f"Unknown label type: {labels.dtype}. {owner} needs labels that are text, whole "
            "numbers or booleans."
        )
    return labels


def _of_one_type(owner: str, name: str, labels: NDArray[Any]) -> NDArray[Any]:
    types = set(map(type, labels))
    check_objects(owner, name, types)
    kinds = {_kind(one) for one in types}
    if None in kinds - {_MISSING}:
        raise ValueError(
            f"Unknown label type: objects that are no labels. {owner} needs text, whole numbers or "
            "booleans."
        )
    floats = (one for one in labels if isinstance(one, float | np.floating))
    if _MISSING in kinds or (Real in kinds and any(map(math.isnan, floats))):
        raise missing_labels(name)
    if len(kinds) > 1 and kinds != {Integral, Real}:
        raise ValueError(
            f"Unknown label type: mixed. {owner} needs labels of one kind, and {name} has several "
            "of text, numbers and booleans. Convert all of them to text or all to whole numbers."
        )
    if kinds <= {str}:
        # A subclass may order, compare or hash its values in ways that fail.
        return labels if types <= {str, np.str_} else np.array([*map(str.__str__, labels)], object)
    unfit = f"Unknown label type: whole numbers in {name} that do not fit 64 bits. Use text."
    whole = (one for one in labels if isinstance(one, Integral))
    with without_values(unfit):
        beyond = len(kinds) > 1 and any(abs(int(one)) > _EXACT for one in whole)
    if beyond:
        raise ValueError(
            f"Unknown label type: whole numbers in {name} beyond 2**53 beside floats: "
            "different labels would become equal. Convert all of them to int, or to text."
        )
    wanted = np.bool_ if kinds == {bool} else np.int64 if kinds == {Integral} else np.float64
    with without_values(unfit):
        return labels.astype(wanted)


_MISSING = type(None)
_EXACT = 2**53  # up to which doubles hold every whole number


def _kind(one: type) -> Any:
    """Return what labels of a type are; None if they are none."""
    if issubclass(one, str):
        return str
    if issubclass(one, bytes):
        return None
    if issubclass(one, bool | np.bool_):
        return bool
    if issubclass(one, Integral):
        return Integral
    if issubclass(one, float | np.floating):
        return Real
    missing = one is _MISSING or one.__name__ in ("NAType", "NaTType")
    return _MISSING if missing else None
