"""Changes of a fitted composition since the fit that its report tells of.

A report is of one fit. Of a pipeline or search, steps can be fitted again, exchanged or set
otherwise afterwards; its report is then of something that no longer exists, and says so first.
What is compared is a digest of each step: its class, its parameters, and all that it has learnt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import KW_ONLY, replace
from functools import partial
from hashlib import blake2b
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline

from skdpnoise._utils.numbers import BUDGET
from skdpnoise.accounting import Ledger, PrivacyReport
from skdpnoise.base.compositions import inner_of
from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.base.contents import of_library
from skdpnoise.base.steps import all_private
from skdpnoise.privacy import Adjacency

__all__ = ["ReportOfModels", "WholeMixin", "digests_of"]

# What says nothing of what a step does to data, or is compared otherwise.
_NOT_COMPARED = frozenset({"ledger", "n_jobs", "privacy_", "random_state", "verbose"})


@constructor_of_fields
class WholeMixin:
    """Parameters of a composition of steps under one guarantee, and its report."""

    _parameter_constraints: ClassVar[Constraints] = {
        **BUDGET,
        "public": [tuple, list, set, frozenset],
    }

    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    adjacency: Adjacency = "replace_one"
    public: Collection[str] = ()
    rows_per_group: int = 1
    ledger: Ledger | None = None
    random_state: Any = None

    @property
    def privacy_(self) -> PrivacyReport:
        """The report of the fit, which says so if a step was changed since."""
        if "_report" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'privacy_'")
        return _as_it_is(self)

    @privacy_.setter
    def privacy_(self, report: PrivacyReport) -> None:
        self._report = report
        self._digests = digests_of(self)


class ReportOfModels:
    """The report of a record of fitted models, of which the record keeps digests."""

    # A field of a dataclass, whose `__post_init__` sets `_digests` when the models are there.

    def __get__(self, record: Any, owner: Any = None) -> PrivacyReport:
        if record is None:
            raise AttributeError("of a record, not of its class")  # so that it has no default
        return _as_it_is(record)

    def __set__(self, record: Any, report: PrivacyReport) -> None:
        vars(record)["_report"] = report


def digests_of(whole: Any) -> dict[str, str]:
    return {name: _digest(step) for name, step in _steps_of(whole)}


def _as_it_is(whole: Any) -> PrivacyReport:
    """Return the report of the fit, with what was changed since."""
    report: PrivacyReport = whole._report
    changes = tuple(_changes(whole, report, whole._digests))
    return replace(report, changed=(*report.changed, *changes)) if changes else report


def _steps_of(whole: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fitted steps of a composition; of one that is a pipeline, those of it."""
    for name, step in inner_of(whole, fitted=True)[0]:
        if name or type(step) is not Pipeline:
            yield name or type(step).__name__, step
        else:
            yield from step.steps


def _changes(whole: Any, report: PrivacyReport, before: Mapping[str, str]) -> Iterator[str]:
    now = dict(_steps_of(whole))
    for name in dict.fromkeys([*before, *now]):
        if name not in now:
            yield f"{name} was taken out"
        elif name not in before:
            yield f"{name} was put in"
        elif _was_fitted_again(now[name], report):
            yield f"{name} was fitted again or exchanged"
        elif _digest(now[name]) != before[name]:
            yield f"{name} was exchanged or set otherwise"
    if [name for name in before if name in now] != [name for name in now if name in before]:
        yield "its steps have another order"


def _was_fitted_again(step: Any, report: PrivacyReport) -> bool:
    steps = all_private(step, fitted=True)
    return any(getattr(one, "privacy_", None) != report for one in steps)


def _digest(value: Any) -> str:
    """Return a digest of a step, equal for equal ones in any process."""
    found = blake2b(digest_size=16)
    for piece in _pieces(value, ()):
        found.update(len(piece).to_bytes(8, "little") + piece)
    return found.hexdigest()


def _pieces(value: Any, around: tuple[int, ...]) -> Iterator[bytes]:
    """Yield what a value consists of, as bytes; `around` are the objects that it is in."""
    yield type(value).__qualname__.encode()
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, bool | int | float | complex | str | bytes | None | np.generic):
        yield repr(value).encode()
    elif hasattr(value, "__name__"):  # of classes and functions
        yield f"{getattr(value, '__module__', '')}.{value.__name__}".encode()
        for one in _written(value) if id(value) not in around else ():
            yield from _pieces(one, (*around, id(value)))
    elif isinstance(value, CodeType):
        yield value.co_code
        yield from _pieces([*value.co_consts, *value.co_names], around)
    elif id(value) not in around:
        for one in _contents(value):
            yield from _pieces(one, (*around, id(value)))


def _written(function: Any) -> list[Any]:
    """Return what a function of a user consists of; nothing of a class, or of compiled code."""
    if not isinstance(function, FunctionType | MethodType) or of_library(function):
        return []
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    others = ("__kwdefaults__", "__self__")
    facts = [function.__code__, function.__defaults__, *cells]
    return [*facts, *(getattr(function, name, None) for name in others)]


def _contents(value: Any) -> Any:
    """Return what an object holds, in an order that does not hang on the process."""
    if isinstance(value, dict):
        return [one for item in value.items() for one in item]
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, set | frozenset):
        return sorted(map(_digest, value))
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "state_dict"):  # a network of torch
        return _contents({name: _as_array(one) for name, one in value.state_dict().items()})
    if hasattr(value, "get_params"):
        return _contents(_public_state(value))
    if isinstance(value, partial):  # whose attributes are none until somebody looks at them
        return value.func, value.args, value.keywords, vars(value)
    try:
        _, *state = value.__reduce_ex__(2)
    except Exception:  # of what cannot be pickled only the class is compared
        return ()
    return state


def _as_array(value: Any) -> Any:
    """Return a tensor as an array of numbers, and anything else as it is."""
    return value.detach().cpu().double().numpy() if hasattr(value, "detach") else value


def _public_state(estimator: Any) -> dict[str, Any]:
    """Return the parameters and the public fitted attributes of an estimator, by name."""
    state = estimator.get_params(deep=False)
    learnt = (name for name in vars(estimator) if name.endswith("_") and not name.startswith("_"))
    state |= {name: vars(estimator)[name] for name in learnt}
    return {name: state[name] for name in sorted(state) if name not in _NOT_COMPARED}
