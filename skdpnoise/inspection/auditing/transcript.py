"""The integers that a fit hands to its noise, release by release, frozen for another fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.inspection.auditing._fingerprint import fingerprint
from skdpnoise.sampling import RandomWords, SeededWords, integers_below, permutation
from skdpnoise.sampling.observer import Cells, observed

__all__ = ["Meeting", "Transcript", "coupled_order"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Meeting:
    """Private integers that met their noise.

    Parameters
    ----------
    kind : {"sum", "choice", "cells"}
        A vector with noise, a choice by utilities, or counts that are shown from a threshold on.
    mechanism : object
        What sampled the noise.
    integers : ndarray
        The private integers, in grid steps: **not to be published**.
    released : ndarray or int
        What the fit used.
    names : tuple, default=()
        Of cells: what each count is of.

    Examples
    --------
    >>> Meeting("choice", None, np.array([3, 5]), 1).released
    1
    """

    kind: str
    mechanism: Any
    integers: NDArray[Any]
    released: Any
    names: tuple[Any, ...] = ()


class Transcript:
    """The private integers of every release of one fit; an observer, so that fit is not private.

    With an earlier transcript, the integers of this fit are noted, but what is released is what was
    released there, as if the noise had made up for the difference. What the noise had to make up
    for is what must be charged. Randomness is a function of the seed and of how many releases
    there were, so that two fits take the same public and secret coins whatever their data make the
    samplers do; the secret order of one record less is drawn jointly (:func:`coupled_order`).

    Parameters
    ----------
    seed : int, default=0
        Seed of all random numbers of the fit.
    earlier : Transcript or None, default=None
        The fit whose releases this one repeats; None records a first fit.
    place : int, default=-1
        The row of the earlier fit's records that this one lacks, if it has one less; -1: the last.

    Attributes
    ----------
    meetings : list of Meeting
        All releases, in the order of the fit.
    charges : list of (str, object)
        Label of each charge, and the mechanism or the losses that were charged.
    diverged : str or None
        The first place where this fit did something else than the earlier one; None if nowhere.
    sizes : set of int
        Of how many records secret orders were drawn.
    counts_rows : bool
        Whether secret words went by the numbers of records.
    of_present : bool
        Whether secret orders were of those records that have a value.

    References
    ----------
    "Re:cord-play", arXiv:2602.17454 (replaying a run on a neighbour with its releases frozen).

    Examples
    --------
    >>> from skdpnoise import DPStandardScaler
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> scaler = DPStandardScaler(feature_bounds=(-3, 3))
    >>> first = Transcript()
    >>> model = first.watch(scaler.fit, X)
    >>> again = Transcript(earlier=first)
    >>> replayed = again.watch(scaler.fit, -X)  # other data, the same releases
    >>> replayed.mean_ == model.mean_
    array([ True])
    """

    secure: ClassVar[bool] = False

    def __init__(self, seed: int = 0, earlier: Transcript | None = None, place: int = -1) -> None:
        self.meetings: list[Meeting] = []
        self.charges: list[tuple[str, Any]] = []
        self.diverged: str | None = None
        self.sizes: set[int] = set()
        self.counts_rows = self.of_present = False
        self._place = place
        self._seed = seed
        self._earlier = earlier
        self._orders: list[NDArray[np.int64]] = []
        self._parts: list[NDArray[np.int64]] = []
        self._known: dict[int, tuple[Any, Any]] = {}  # mechanisms are kept, or ids would recur
        self._asked = (0, 0)  # epoch, and how often words were asked for in it

    def watch(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Call a function, such as the fit of a clone, while this looks on.

        Parameters
        ----------
        function : callable
        *args, **kwargs
            Handed to it.

        Returns
        -------
        object
            What it returns.
        """
        return observed(self, function, *args, **kwargs)

    def rng(self) -> RandomWords:
        """Return the randomness of the fit, which is not secure."""
        return self

    def sum(self, mechanism: Any, integers: ArrayLike, noise: ArrayLike) -> NDArray[Any]:
        """Return what is released of integers and their noise."""
        private = np.array(integers)
        noisy = private + np.asarray(noise)
        there = self._counterpart("sum", mechanism, private.shape)
        released: NDArray[Any] = noisy if there is None else there.released
        self.meetings.append(Meeting("sum", mechanism, private, released))
        return released

    def cells(
        self, mechanism: Any, cells: Cells, counts: ArrayLike, noise: ArrayLike
    ) -> NDArray[Any]:
        """Return the noisy counts of cells, of which a neighbour may have others."""
        # A cell with more than a few records is there in both fits, with the same noisy count. One
        # of a few records may be in one fit only, where it is shown with probability p, and never
        # in the other: of the two laws, the parts in which it is hidden are compared, and p is what
        # the rest costs (the pair of ``Promised(p)``).
        private, names = np.array(counts), tuple(cells.names())
        noisy: NDArray[Any] = private + np.asarray(noise)
        noisy = np.where(private <= cells.few, np.minimum(noisy, cells.hidden), noisy)
        there = self._counterpart("cells", mechanism, None)
        if there is not None:
            known = dict(zip(there.names, there.released.tolist(), strict=True))
            noisy = np.array([known.get(name, cells.hidden) for name in names], dtype=np.int64)
        self.meetings.append(Meeting("cells", mechanism, private, noisy, names))
        return noisy

    def choice(
        self, mechanism: Any, utilities: ArrayLike, sample: Callable[[RandomWords], int]
    ) -> int:
        """Return what is chosen by private utilities."""
        private = np.array(utilities)
        there = self._counterpart("choice", mechanism, private.shape)
        # Of a source of its own: how many words a choice takes depends on the utilities.
        index = sample(self.rng()) if there is None else int(there.released)
        self.meetings.append(Meeting("choice", mechanism, private, index))
        return index

    def order(self, n: int) -> NDArray[np.int64]:
        """Return a secret order of the records, coupled with that of the earlier fit."""
        self.sizes.add(n)
        place = len(self._orders)
        found = None
        if self._earlier is not None and place < len(self._earlier._orders):
            found = self._earlier._orders[place]
            while found.size > n:
                found = coupled_order(found, self._place)
            if found.size < n:
                self._differs("an order of more records is asked for")
        if found is None or found.size < n:
            found = permutation(SeededWords([self._seed, 1, place]), n)
        self._orders.append(found)
        return found

    def part(self, n: int, most: int) -> NDArray[np.int64]:
        """Return so many of more records, or all, coupled with those of the earlier fit."""
        self.of_present = True
        words = SeededWords([self._seed, 3, len(self._parts)])
        found = np.sort(permutation(words, n)[:most])
        if self._earlier is not None and len(self._parts) < len(self._earlier._parts):
            # In the place of the last record is another one, if there is one.
            there = self._earlier._parts[len(self._parts)]
            kept, others = there[there < n], np.setdiff1d(np.arange(n), there)
            found = np.append(kept, others[: min(n, most) - kept.size])
        self._parts.append(found)
        return found

    def part_order(self, n: int) -> NDArray[np.int64]:
        """Return a secret order of the records that have a value."""
        # A neighbour has one of them more or less: the last.
        self.of_present = True
        place, there = len(self._orders), self._earlier
        if there is not None and place < len(there._orders) and there._orders[place].size == n - 1:
            found = _with_one_more(there._orders[place], SeededWords([self._seed, 1, place]))
            self._orders.append(found)
            return found
        return self.order(n)

    def numbered(self) -> None:
        """Note that secret words go by the numbers of the records."""
        self.counts_rows = True

    def charge(self, label: str, mechanism: Any) -> None:
        """Note what is charged for, before it samples noise."""
        self.charges.append((label, mechanism))

    def facts(self, mechanism: Any) -> Any:
        """Return what two mechanisms must share to be the same."""
        if id(mechanism) not in self._known:
            self._known[id(mechanism)] = (mechanism, fingerprint(mechanism))
        return self._known[id(mechanism)][1]

    def charged(self, mechanism: Any) -> tuple[str, Any] | None:
        """Return what a mechanism was charged for as, and by what; None if it was not."""
        return next((one for one in self.charges if _is_for(one[1], mechanism)), None)

    def n_charges(self, mechanism: Any) -> int:
        """Return how often a mechanism was charged for; a search may use it in every run."""
        return sum(_is_for(one, mechanism) for _, one in self.charges) or len(self.meetings)

    def _counterpart(
        self, kind: str, mechanism: Any, shape: tuple[int, ...] | None
    ) -> Meeting | None:
        """Return the meeting of the earlier fit at this place, if there is the same one."""
        if self._earlier is None or self.diverged is not None:
            return None
        place = len(self.meetings)
        if place >= len(self._earlier.meetings):
            self._differs(f"release {place + 1} ({kind}) has no counterpart")
            return None
        there = self._earlier.meetings[place]
        met = there.integers.shape
        if there.kind != kind or shape not in (None, met):
            text = f"is a {kind} of shape {shape}, but a {there.kind} of shape {met}"
        elif self._earlier.facts(there.mechanism) != self.facts(mechanism):
            text = "has another mechanism"
        else:
            return there
        self._differs(f"release {place + 1} {text} on the neighbour")
        return None

    def _differs(self, text: str) -> None:
        self.diverged = self.diverged or text

    def take(self, n: int) -> NDArray[np.uint64]:
        """Return random words, which start again at every release, so that two fits stay in step.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray of uint64, shape (n,)
        """
        epoch = len(self.meetings) + len(self._orders)
        number = self._asked[1] + 1 if self._asked[0] == epoch else 0
        self._asked = (epoch, number)
        return SeededWords([self._seed, 2, epoch, number]).take(n)


def coupled_order(order: Sequence[int] | NDArray[np.int64], place: int = -1) -> NDArray[np.int64]:
    """Return the order of all records but one that goes with an order of all of them.

    Records are matched as the first half of an order with the second half. This is the joint draw
    in the proof of :func:`~skdpnoise.sensitivity.paired_histogram`: the matchings differ in at most
    one pair each way, and each by itself is uniform.

    Parameters
    ----------
    order : array-like of int
        A permutation of 0, ..., n - 1.
    place : int, default=-1
        The record that is left out, those behind it moving up; -1 is the last.

    Returns
    -------
    ndarray of int64, shape (n - 1,)

    Examples
    --------
    >>> coupled_order([3, 0, 1, 2])  # pairs (3, 1) and (0, 2): record 1 takes the place of 3
    array([0, 2, 1])
    >>> coupled_order([3, 0, 1, 2], 0)  # record 2 takes the place of 0, and all move up
    array([2, 0, 1])
    """
    left = [int(record) for record in order]
    gone, half = place % len(left), len(left) // 2
    if len(left) % 2:
        *left, left_out = left
        kept = [left_out if record == gone else record for record in left]
    else:
        at = left.index(gone)
        partner = at + half if at < half else at - half
        paired = [record for i, record in enumerate(left) if i not in (at, partner)]
        kept = [*paired, left[partner]]
    found = np.array(kept, dtype=np.int64)
    return found - (found > gone)


def _with_one_more(order: NDArray[np.int64], words: RandomWords) -> NDArray[np.int64]:
    """Return an order of one record more, of which :func:`coupled_order` makes this one."""
    n = order.size
    if n % 2:  # it is paired with the one that was in no pair, the last
        return np.insert(order, n // 2, n)
    longer = np.append(order, n)  # it is in no pair, or takes the place of one that is in none
    place = int(integers_below(words, n + 1, 1)[0])
    longer[[place, n]] = longer[[n, place]]
    return longer


def _is_for(charged: Any, mechanism: Any) -> bool:
    """Return whether a charge is for a mechanism, or for one that it is a part of."""
    names = getattr(type(charged), "__dataclass_fields__", ())
    return any(one is mechanism for one in (charged, *(getattr(charged, name) for name in names)))
