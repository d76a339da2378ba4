"""A reference value beside ours, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]  # title, headers, rows


@dataclass(frozen=True)
class Check:
    """One reference value and ours.

    Parameters
    ----------
    item : str
    reference : str
        As its source prints it, or a bound.
    ours : float
    difference : float or None
        Ours less the reference, where that is a number.
    verdict : str
        "yes", "yes, cut" (ours has the printed digits, and more that were cut, not rounded), "NO".
    kind : str
        What the reference is: printed digits, a formula with its tolerance, or a claim.
    """

    item: str
    reference: str
    ours: float
    difference: float | None
    verdict: str
    kind: str

    @property
    def agrees(self) -> bool:
        """Whether ours agrees to the digits given."""
        return self.verdict != "NO"

    @classmethod
    def digits(cls, item: str, reference: str, ours: float) -> Check:
        """Compare with the digits of a printed number, which was rounded or cut."""
        printed = Decimal(reference)
        unit = 10.0 ** float(printed.as_tuple().exponent)
        difference = ours - float(printed)
        verdict = "NO"
        if abs(difference) <= 0.5 * unit * (1.0 + 1e-9):
            verdict = "yes"
        elif 0.0 < difference * (1.0 if ours >= 0.0 else -1.0) < unit:
            verdict = "yes, cut"
        return cls(item, reference, float(ours), difference, verdict, "printed digits")

    @classmethod
    def formula(cls, item: str, reference: float, ours: float, tolerance: float = 1e-5) -> Check:
        """Compare with the value of a closed form, to a relative tolerance."""
        difference = ours - reference
        verdict = "yes" if abs(difference) <= tolerance * abs(reference) else "NO"
        kind = f"formula, to {tolerance:g} relative"
        return cls(item, f"{reference:.9g}", float(ours), difference, verdict, kind)

    @classmethod
    def claim(cls, item: str, reference: str, ours: float, holds: bool) -> Check:
        """Record a claim that is not about one number's digits."""
        return cls(item, reference, float(ours), None, "yes" if holds else "NO", "claim")


@dataclass(frozen=True)
class Section:
    """A group of checks, with the curves of its figure and tables without a reference."""

    name: str
    title: str
    checks: Sequence[Check]
    tables: Sequence[Table] = ()
    curves: Mapping[str, Any] = field(default_factory=dict)
    shown: Sequence[Check] | None = None  # those that are printed, if not all

    @property
    def n_agree(self) -> int:
        """Number of checks that agree."""
        return sum(check.agrees for check in self.checks)


def first_where(holds: Callable[[int], bool], candidates: Sequence[int]) -> float:
    """Return the first candidate for which `holds`, or infinity."""
    return next((float(k) for k in candidates if holds(k)), math.inf)
