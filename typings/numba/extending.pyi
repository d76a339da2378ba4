from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]: ...
def register_jitable(*, nogil: bool = ...) -> Callable[[Function], Function]: ...
