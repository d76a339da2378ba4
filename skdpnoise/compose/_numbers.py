"""Numbers among the parameters of an estimator are what they seem once they are doubles."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

__all__ = ["NUMBERS", "check_numbers"]

# Doubles, and what becomes one without a change worth a word; no fractions, no longer floats.
NUMBERS = (int, float, np.integer, np.float16, np.float32)


def check_numbers(estimator: Any) -> None:
    """Refuse numbers of other kinds, and truth values where a number is meant."""
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Real | np.bool_):
            _check_number(estimator, name, value)


def _check_number(estimator: Any, name: str, value: Any) -> None:
    owner = type(estimator).__name__
    if isinstance(value, bool | np.bool_):
        if "boolean" not in estimator._parameter_constraints.get(name, ["boolean"]):
            raise TypeError(
                f"The {name!r} parameter of {owner} must be a number, not a truth value. Got "
                f"{value!r} instead."
            )
        return
    if not isinstance(value, NUMBERS):
        raise TypeError(
            f"The {name!r} parameter of {owner} must be an int or a float. Got {value!r} of type "
            f"{type(value).__name__} instead: pass float(...) of it."
        )
    if not -1e300 <= value <= 1e300:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number that fits double precision. Got a "
            "larger one instead."
        )
