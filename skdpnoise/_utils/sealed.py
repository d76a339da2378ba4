"""Records whose arrays nobody can write to by ordinary means, copies and pickles included."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Made = TypeVar("Made")


class Sealed:
    """A frozen dataclass whose arrays stay sealed in its copies."""

    # What was checked when a record was made must stay true. But numpy makes copies and unpickled
    # arrays writeable, whatever the original was.

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        record: Any = self
        return _remade, (type(self), {f.name: getattr(self, f.name) for f in fields(record)})


def stated(made: Made, **facts: object) -> Made:
    """Set fields that the maker of a new record has checked or proved, and return it."""
    for name, fact in facts.items():
        object.__setattr__(made, name, fact)
    return made


def sealed(values: ArrayLike) -> NDArray[np.float64]:
    """Return a copy of numbers that cannot be made writeable: its memory is that of bytes."""
    array = np.asarray(values, dtype=np.float64)
    return np.ndarray(array.shape, dtype=np.float64, buffer=array.tobytes())


def _remade(kind: type[Any], values: dict[str, Any]) -> Any:
    record = object.__new__(kind)
    arrays = {name: sealed(one) for name, one in values.items() if isinstance(one, np.ndarray)}
    return stated(record, **values | arrays)
