"""How long warm calibrations and small questions take, beside what they may take.

Warm is what was asked before in the same process: a search, a pipeline or a notebook asks for noise
with the same public facts again and again. New facts are timed too; where noise needs the curve of
a composition that nobody asked for before, they have no bar.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._report import print_table
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import private_count, private_mean
from skdpnoise.sensitivity import SensitivityProfile

_GUARANTEES = {"delta=1e-6": PrivacyGuarantee(1.0, 1e-6), "pure": PrivacyGuarantee(1.0)}
_COLUMNS = 20

Work = Callable[[int], object]  # of a seed, so that no call repeats an earlier one


def works() -> dict[str, tuple[Work, float | None]]:
    """Return what is timed, and the most milliseconds it may take."""
    found: dict[str, tuple[Work, float | None]] = {}
    for size, bar in ((1, 5.0), (_COLUMNS, 5.0), (5_000, 100.0)):
        for name, guarantee in _GUARANTEES.items():

            def calibrated(seed: int, size: int = size, given: PrivacyGuarantee = guarantee) -> Any:
                profile = np.random.default_rng(seed).lognormal(0.0, 1.0, size)
                return calibrate("auto", SensitivityProfile(profile), given)

            def again(seed: int, calibrated: Work = calibrated) -> object:
                return calibrated(0)

            label = f"calibrate auto, {size:,} numbers, {name}"
            composed = size == _COLUMNS and guarantee.delta > 0.0
            found[f"{label}, again"] = again, bar
            found[f"{label}, new"] = calibrated, None if composed else bar
    table = np.random.default_rng(0).uniform(size=(1_000, _COLUMNS))
    top = np.arange(1.0, _COLUMNS + 1.0)

    def count(seed: int) -> object:
        return private_count(len(table), PrivacyGuarantee(1.0 + 1e-6 * seed))

    def mean(seed: int) -> object:
        high = top * (1.0 + 1e-6 * seed)
        return private_mean(table, np.zeros(_COLUMNS), high, _GUARANTEES["delta=1e-6"])

    return found | {
        "private_count": (count, 5.0),
        f"private_mean of {_COLUMNS} columns": (mean, 20.0),
    }


def report(*, quick: bool) -> list[dict[str, Any]]:
    """Measure and print all of it; every repetition asks for something new."""
    repetitions = 3 if quick else 25
    results = []
    for name, (work, bar) in works().items():
        work(0)  # what is loaded and compiled once
        seconds = []
        for seed in range(1, repetitions + 1):
            start = time.perf_counter()
            work(seed)
            seconds.append(time.perf_counter() - start)
        milliseconds = 1e3 * float(np.median(seconds))
        results.append(
            {
                "what": name,
                "milliseconds": milliseconds,
                "slowest": 1e3 * max(seconds),
                "bar": bar,
                "time / bar": None if bar is None else milliseconds / bar,
                "held": "-" if bar is None else "held" if milliseconds <= bar else "MISSED",
            }
        )
    print_table(
        list(results[0]),
        [list(result.values()) for result in results],
        title=f"Warm calibrations and questions: median of {repetitions}",
    )
    return results
