"""Where private integers meet their noise, an audit may look on.

An observed fit hands integers and noise to its observer, and uses what that returns: it is not
private, and its report says so. An observer exists only while :func:`observed` runs one function,
in a context of its own that ends with it, so that it cannot be left on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.context import change, context, within
from skdpnoise.sampling.words import RandomWords

P = ParamSpec("P")
R = TypeVar("R")


class Cells(NamedTuple):
    """Which cells counts are of, where neighbours need not have the same ones."""

    names: Callable[[], Sequence[Any]]  # one for each count; called for an observer only
    few: int  # the largest count, in grid steps, of a cell that one neighbour may lack
    hidden: int  # a noisy count that is not shown


class Observer(Protocol):
    """An audit that looks on while one fit runs."""

    # `skdpnoise.inspection.Transcript` documents each of them.

    def rng(self) -> RandomWords: ...

    def sum(self, mechanism: Any, integers: ArrayLike, noise: ArrayLike) -> NDArray[Any]: ...

    def cells(
        self, mechanism: Any, cells: Cells, counts: ArrayLike, noise: ArrayLike
    ) -> NDArray[Any]: ...

    def choice(self, mechanism: Any, utilities: ArrayLike, sample: Callable[[Any], int]) -> int: ...

    def order(self, n: int) -> NDArray[np.int64]: ...

    def part(self, n: int, most: int) -> NDArray[np.int64]: ...

    def part_order(self, n: int) -> NDArray[np.int64]: ...

    def numbered(self) -> None: ...

    def charge(self, label: str, mechanism: Any) -> None: ...


def current() -> Observer | None:
    """Return who observes the fit that runs; None for every ordinary fit."""
    observer: Observer | None = context().observer
    return observer


def words_go_by_rows() -> None:
    """Tell who observes the fit that secret words go by the numbers of the records."""
    observer = current()
    if observer is not None:
        observer.numbered()


def is_observed() -> bool:
    """Return whether a fit that runs now is observed, and therefore not private."""
    return current() is not None


def observed(
    observer: Observer, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Call a function while an observer looks on, and return what it returns."""

    def run() -> R:
        change(observer=observer)
        return function(*args, **kwargs)

    return copy_context().run(run)


def unobserved() -> AbstractContextManager[None]:
    """Have nobody look on within a block whose draws are thrown away, such as a dry run."""
    # Whatever of it were published after all would differ between the data sets of a replay.
    return within(observer=None)


def plus_noise(mechanism: Any, integers: Any, draws: Any) -> Any:
    """Return integers plus their noise, in grid steps: what is released."""
    observer = current()
    return integers + draws if observer is None else observer.sum(mechanism, integers, draws)


def noisy_cells(mechanism: Any, cells: Cells, counts: Any, draws: Any) -> Any:
    """Return counts of cells plus their noise, in grid steps."""
    observer = current()
    return counts + draws if observer is None else observer.cells(mechanism, cells, counts, draws)


def chosen(
    mechanism: Any, utilities: Any, rng: RandomWords, draw: Callable[[RandomWords], int]
) -> int:
    """Return the candidate that a mechanism draws by private utilities."""
    observer = current()
    return draw(rng) if observer is None else observer.choice(mechanism, utilities, draw)


def note_charge(label: str, mechanism: Any) -> None:
    """Tell an observer what is charged for, before it samples noise."""
    observer = current()
    if observer is not None:
        observer.charge(label, mechanism)
