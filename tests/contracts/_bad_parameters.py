"""Values of parameters that must be refused: by the estimator's own constraints, and beyond them.

What the constraints cannot say is listed here: numbers that only look like some, and parameters
that do not fit the data or one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, make_constraint

JUNK = [
    None,
    "nonsense",
    b"auto",
    True,
    -1,
    -0.5,
    0,
    2.5,
    1e9,
    np.nan,
    np.inf,
    -np.inf,
    1j,
    Decimal("0.5"),
    [],
    {},
    {1},
    object(),
    np.array(1.0),
    np.array([1.0]),
    np.ma.masked,
    10**400,
]
LOOKS = [True, np.True_, Fraction(1, 2), Fraction(7, 1), np.longdouble(0.5), 10**400]
BOUNDS = [
    "wide",
    (1.0, 1.0),
    (5.0, -5.0),
    (0.0,),
    (0.0, 1.0, 2.0),
    (np.nan, 1.0),
    (0.0, 1e300),
    (None, 1.0),
    ("0", "1"),
    (0.0, 1j),
    (np.datetime64("2000-01-01"), np.datetime64("2001-01-01")),
    ([0.0] * 7, [1.0] * 7),
    (np.ma.masked_array([0.0] * 3), 1.0),
    (True, 2.0),
    ({0.0}, {1.0}),
    (0.0, 1e-300),
    [[0.0, 0.0], [1.0]],
    {"low": 0.0, "high": 1.0},
    0.5,
]
VECTORS = [["a", "b", "c", "d"], [1j] * 4, [None] * 4, [[1.0, 2.0]] * 2, [-1.0] * 4, [np.nan] * 4]
VECTORS += [[], {1.0, 2.0}, "text", np.ma.masked_array([1.0] * 4), [np.inf] * 4, [[1.0], 2.0]]
PAIRS = [(0.0,), (1.0, 2.0, 3.0), ("a", "b"), (np.nan, 1.0), (1j, 2.0), (None, None), (5.0, 5.0)]
PAIRS += [(90.0, 10.0), (False, True), (0.0, np.inf), (-1e300, 1e300), 3.0, "text"]
# Beyond what constraints say; of names that an estimator does not have none is used.
SPECIAL: dict[str, list[Any]] = {
    "epsilon": [1e-300, 1e-12, 1e9, 1e300],
    "rows_per_group": [2, 2**40, 10**30],
    "feature_bounds": BOUNDS,
    "target_bounds": BOUNDS,
    "row_norm": [1e-300, 1e-120, 1e120, 1e300],
    "clip": [1e-300, 1e120, 1e300],
    "alpha": [1e120, 1e300],
    "eps": [1e-300],
    "n_passes": [10**15],
    "error_weights": [*VECTORS, [1.0], [1e-200, 1.0, 1.0, 1.0], [1e200, 1.0, 1.0, 1.0]],
    "alphas": [*VECTORS, 10**15],
    "n_components": [4, 1000],
    "quantile_range": [*PAIRS, (-1.0, 50.0), (50.0, 101.0)],
    "feature_range": PAIRS,
    "random_state": [-1, 2**32, 1.5, "seed", True, [1, 2]],
    "n_jobs": [0, "all", 1.5, True, 10**9, 10**50],
    "ledger": ["budget.db", object(), 3],
    "classes": [
        [],
        [0],
        [0, 0],
        [0, 1, 1],
        [0, 1, np.nan],
        [0, 1, None],
        [0, 1, "a"],
        [0.5, 1.5],
        [[0, 1]],
        [[0], [1]],
        {0, 1},
        {0: 1, 1: 2},
        "01",
        b"01",
        5,
        np.array(5),
        np.ma.masked_array([0, 1]),
        iter([0, 1]),
        [0j, 1j],
        [2, 3],
        ["0", "1"],
    ],
}
# Several at once, and the name that the error must hold.
TOGETHER: list[tuple[str, dict[str, Any]]] = [
    ("noise", {"noise": "iid_gaussian", "delta": 0.0}),
    ("noise", {"noise": "inid_gaussian", "delta": 0.0}),
    ("budget_growth", {"budget_growth": 2.0, "n_passes": 40}),
    ("noise", {"noise": "spr_osgt", "solver": "gram"}),
    ("noise", {"noise": "inid_laplace", "solver": "joint"}),
    ("quantile_range", {"quantile_range": (0.0, 50.0), "unit_variance": True}),
]


def bad_parameters(entry: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name that an error must hold, and parameters beside the entry's own."""
    constraints = entry.make._parameter_constraints
    names = entry.estimator().get_params(deep=False)
    for name in names:
        known = [make_constraint(one) for one in constraints[name]]
        for value in JUNK:
            if not any(_accepts(one, value) for one in known):
                yield name, {name: value}
        if any(isinstance(one, Interval) for one in constraints[name]):
            yield from ((name, {name: value}) for value in LOOKS)
        for value in SPECIAL.get(name, []):
            if name not in entry.settings or name in ("feature_bounds", "alphas"):
                yield name, {name: value}
    for name, several in TOGETHER:
        known = several.keys() <= names.keys() and not several.keys() & entry.settings.keys()
        solver = several.get("solver")
        if known and (
            solver is None
            or any(_accepts(make_constraint(one), solver) for one in constraints["solver"])
        ):
            yield name, several


def _accepts(constraint: Any, value: Any) -> bool:
    try:
        return bool(constraint.is_satisfied_by(value))
    except (TypeError, ValueError):
        return False
