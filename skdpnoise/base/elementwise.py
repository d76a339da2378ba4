"""Functions that act on single values, and can learn nothing from the data."""

from __future__ import annotations

from typing import Any

import numpy as np

# numpy's own functions of one array, by identity: ``np.frompyfunc`` makes a ufunc of anything.
_ELEMENTWISE = frozenset(
    function
    for function in vars(np).values()
    if type(function) is np.ufunc and function.nin == function.nout == 1
)


def function_remedy(name: str, function: Any) -> str | None:
    """Return None for None and numpy's functions of single values, else what to do."""
    if function is None or (type(function) is np.ufunc and function in _ELEMENTWISE):
        return None
    return (
        f"{name} may be None or one of numpy's functions of single values, such as np.log1p; "
        "any other function may learn from the data, or hold them"
    )
