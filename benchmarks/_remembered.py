"""Pure functions of public facts, computed once: they take most of the time of a tiny fit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any
from unittest.mock import patch

from sklearn import config_context

from skdpnoise.mechanisms import (
    AdditiveMechanism,
    SymmetricMatrixMechanism,
    calibrate,
    calibrate_second_moments,
)
from skdpnoise.mechanisms.selection import base_budget, repeated_loss
from skdpnoise.privacy import gdp_epsilon, gdp_mu


@contextmanager
def remembered() -> Iterator[None]:
    """Compute calibrations, conversions and losses once each while the context lasts.

    Scikit-learn's look at parameters is left out too.
    """
    with ExitStack() as stack:
        stack.enter_context(config_context(skip_parameter_validation=True))
        for function in (gdp_mu, gdp_epsilon, base_budget, repeated_loss):
            replace_everywhere(stack, function, lru_cache(maxsize=None)(function))
        replace_everywhere(stack, calibrate, _by_key(calibrate))
        replace_everywhere(stack, calibrate_second_moments, _by_key(calibrate_second_moments))
        for mechanism in (AdditiveMechanism, SymmetricMatrixMechanism):
            loss = lru_cache(maxsize=None)(mechanism.privacy_loss)
            stack.enter_context(patch.object(mechanism, "privacy_loss", _method(loss)))
        yield


def replace_everywhere(stack: ExitStack, function: Any, other: Any) -> None:
    """Replace a function in every module of the library that has imported it."""
    for module_name, module in sorted(sys.modules.items()):
        if module_name.startswith("skdpnoise."):
            for name in [n for n, value in vars(module).items() if value is function]:
                stack.enter_context(patch.object(module, name, other))


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: function(self)


def _by_key(function: Callable[..., Any]) -> Callable[..., Any]:
    memory: dict[Any, Any] = {}

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        key = (*map(_key, args), *((name, _key(value)) for name, value in sorted(kwargs.items())))
        if key not in memory:
            memory[key] = function(*args, **kwargs)
        return memory[key]

    return wrapped


def _key(value: Any) -> Any:
    """Return the numbers of an argument, to the last bit."""
    if hasattr(value, "tobytes"):
        return value.shape, value.dtype.str, value.tobytes()
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return type(value), *(_key(getattr(value, name)) for name in fields)
    return (type(value), tuple(map(_key, value))) if isinstance(value, list | tuple) else value
