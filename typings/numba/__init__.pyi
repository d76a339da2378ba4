# What we use of numba: its decorators keep the signature of a function, which its own types do not.
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

config: Any
types: Any

def njit(
    *,
    cache: bool = ...,
    nogil: bool = ...,
    error_model: str = ...,
    fastmath: set[str] = ...,
) -> Callable[[Function], Function]: ...
