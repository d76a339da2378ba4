"""Numeric privacy accounting: speed beside dp-accounting, and how tight and how safe it is.

Both sides run in one process; ours after a first call that compiles or loads what it needs.
dp-accounting discretises losses with its default interval, 1e-4, unless another is stated. Its
pessimistic estimates bound delta from above and its optimistic ones from below, whatever the
interval, so the least scales that go with them enclose the least scale that is private.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise
from skdpnoise.privacy import NumericLoss, PrivacyGuarantee
from skdpnoise.sensitivity import SensitivityProfile

EPSILON, DELTA = 1.0, 1e-6
MOST_LOOSE = 0.005  # of a scale, above the reference
SECONDS = {"delta, distinct": 1.0, "calibrate, 400 equal": 0.3, "calibrate, distinct": 3.0}
_fresh = itertools.count(1)

Vector = NDArray[np.float64]


def distinct_profile(size: int) -> Vector:
    """Return sensitivities from 1 to 10, all different."""
    return np.linspace(1.0, 10.0, size)


def ours_delta(shifts: Vector, epsilon: float) -> float:
    """Return our delta of Laplace noise on coordinates that move by `shifts` scales."""
    laplace = get_noise("laplace")
    return NumericLoss(tuple((laplace, float(shift), 1) for shift in shifts)).delta(epsilon)


def stock(shifts: Vector, counts: Vector, *, interval: float = 1e-4, below: bool = False) -> Any:
    """Return dp-accounting's privacy loss distribution, composed one by one."""
    module = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    total = None
    for shift, count in zip(shifts, counts, strict=True):
        one = module.from_laplace_mechanism(
            1.0 / float(shift),
            value_discretization_interval=interval,
            pessimistic_estimate=not below,
            use_connect_dots=not below,
        )
        one = one.self_compose(int(count)) if count > 1 else one
        total = one if total is None else total.compose(one)
    return total


def stock_calibration(size: int) -> float:
    """Return the scale that dp-accounting's own search finds for equal sensitivities 1."""
    dp = importlib.import_module("dp_accounting")
    pld = importlib.import_module("dp_accounting.pld")
    found = dp.calibrate_dp_mechanism(
        lambda: pld.PLDAccountant(),
        lambda scale: dp.SelfComposedDpEvent(dp.LaplaceDpEvent(scale), size),
        EPSILON,
        DELTA,
        dp.ExplicitBracketInterval(1.0, size / EPSILON),
        tol=1e-4,
    )
    return float(found)


def timed(action: Callable[[], float], repetitions: int) -> tuple[float, float]:
    """Return the median of the seconds that an action takes, and its last answer."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        answer = action()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), answer


def _nudged(values: Vector) -> Vector:
    """Return the values a hair larger, differently at each call: nothing is remembered."""
    return values * (1.0 + 1e-12 * next(_fresh))


def speed(size: int, repetitions: int, installed: bool) -> list[dict[str, Any]]:
    """Measure both sides."""
    limit = distinct_profile(size)
    scale = calibrate(
        "iid_laplace", SensitivityProfile(limit), PrivacyGuarantee(EPSILON, DELTA)
    ).scale[0]
    shifts = limit / scale
    guarantee = PrivacyGuarantee(EPSILON, DELTA)
    records = []

    def add(
        name: str, action: Callable[[], float], bar: str, other: Callable[[], float] | None
    ) -> None:
        action()
        ours, answer = timed(action, repetitions)
        theirs: tuple[float | None, float | None] = (None, None)
        if installed and other is not None:
            theirs = timed(other, 1)
        records.append(
            {
                "what": name,
                "seconds": ours,
                "answer": answer,
                "bar": SECONDS[bar],
                "met": ours <= SECONDS[bar],
                "stock_seconds": theirs[0],
                "stock_answer": theirs[1],
                "ratio": None if theirs[0] is None else theirs[0] / ours,
            }
        )

    add(
        f"delta at ε=1 of {size} distinct coordinates",
        lambda: ours_delta(_nudged(shifts), EPSILON),
        "delta, distinct",
        lambda: stock(shifts, np.ones(size)).get_delta_for_epsilon(EPSILON),
    )
    add(
        "scale of 400 equal coordinates",
        lambda: float(
            calibrate("iid_laplace", SensitivityProfile(_nudged(np.ones(400))), guarantee).scale[0]
        ),
        "calibrate, 400 equal",
        lambda: stock_calibration(400),
    )
    for rule in ("iid", "inid"):
        add(
            f"scales of {size} distinct coordinates, {rule}: least",
            lambda rule=rule: float(
                calibrate(
                    f"{rule}_laplace", SensitivityProfile(_nudged(limit)), guarantee
                ).scale.min()
            ),
            "calibrate, distinct",
            None,
        )
    return records


def reference_scale(
    limit: Vector, epsilon: float, start: float, interval: float, *, below: bool
) -> float:
    """Return the least i.i.d. scale by dp-accounting; a bound from below or from above."""
    values, counts = np.unique(limit, return_counts=True)

    def excess(log_scale: float) -> float:
        composed = stock(values / math.exp(log_scale), counts, interval=interval, below=below)
        return math.log(max(composed.get_delta_for_epsilon(epsilon), 1e-300) / DELTA)

    low, high = math.log(start) - 0.05, math.log(start) + 0.05
    return math.exp(brentq(excess, low, high, xtol=1e-7))


def tightness(quick: bool) -> list[dict[str, Any]]:
    """Our i.i.d. scales beside references on finer lattices."""
    cases: list[tuple[str, Vector, float, float, float | None]] = [
        ("20 equal, ε=0.5", np.ones(20), 0.5, 1e-5, 1e-6),
        ("100 equal, ε=0.5", np.ones(100), 0.5, 1e-5, 1e-6),
        ("400 equal, ε=1", np.ones(400), 1.0, 1e-5, 2e-6),
    ]
    if quick:
        cases = [("20 equal, ε=0.5", np.ones(20), 0.5, 1e-4, 1e-5)]
    else:
        cases.append(("50 distinct, ε=1", np.arange(1.0, 51.0), 1.0, 2e-5, 1e-5))
        # Thousands of losses that are rounded down say nothing: no bound from below.
        cases.append(("5000 distinct, ε=1", distinct_profile(5000), 1.0, 5e-5, None))
    records = []
    for name, limit, epsilon, above_interval, below_interval in cases:
        guarantee = PrivacyGuarantee(epsilon, DELTA)
        ours = float(calibrate("iid_laplace", SensitivityProfile(limit), guarantee).scale[0])
        above = reference_scale(limit, epsilon, ours, above_interval, below=False)
        below = None
        if below_interval is not None:
            below = reference_scale(limit, epsilon, ours, below_interval, below=True)
        records.append(
            {
                "case": name,
                "ours": ours,
                "above": above,
                "below": below,
                "interval_above": above_interval,
                "interval_below": below_interval,
                "over_above": ours / above - 1.0,
                "over_below": None if below is None else ours / below - 1.0,
                # At least the bound from above (to the precision of the search): never too small.
                "safe": ours >= above * (1.0 - 1e-6),
                "tight": ours <= above * (1.0 + MOST_LOOSE),
            }
        )
    return records


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if every bar is met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks accounting",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(parser)
    args = parser.parse_args(argv)
    size, repetitions = (500, 1) if args.quick else (5000, 3)
    installed = importlib.util.find_spec("dp_accounting") is not None
    if not installed:
        print("dp-accounting is not installed: no comparison, and no reference.")
    warnings.simplefilter("ignore")

    timings = speed(size, repetitions, installed)
    print_table(
        ["what", "ours, s", "bar, s", "met", "dp-accounting, s", "× ours", "answer", "theirs"],
        [
            [
                record["what"],
                record["seconds"],
                record["bar"],
                "yes" if record["met"] else "NO",
                record["stock_seconds"],
                record["ratio"],
                f"{record['answer']:.7g}",
                "-" if record["stock_answer"] is None else f"{record['stock_answer']:.7g}",
            ]
            for record in timings
        ],
        title=f"Laplace noise at ({EPSILON:g}, {DELTA:g}); sensitivities 1 to 10, or 1",
    )
    scales = tightness(args.quick) if installed else []
    if scales:
        print_table(
            [
                "case",
                "ours",
                "from above",
                "from below",
                "over it, %",
                "over it, %",
                "safe",
                "tight",
            ],
            [
                [
                    record["case"],
                    f"{record['ours']:.7g}",
                    f"{record['above']:.7g}",
                    "-" if record["below"] is None else f"{record['below']:.7g}",
                    100.0 * record["over_above"],
                    "-" if record["over_below"] is None else 100.0 * record["over_below"],
                    "yes" if record["safe"] else "NO",
                    "yes" if record["tight"] else "NO",
                ]
                for record in scales
            ],
            title="i.i.d. scales beside dp-accounting on fine lattices; tight: within "
            f"{100 * MOST_LOOSE:g} %",
        )
    met = [record["met"] for record in timings]
    met += [record["safe"] and record["tight"] for record in scales]
    print(f"{sum(met)} of {len(met)} bars met")
    save_json(
        args.out,
        "accounting",
        {
            "protocol": __doc__,
            "quick": args.quick,
            "epsilon": EPSILON,
            "delta": DELTA,
            "compared": installed,
            "timings": timings,
            "scales": scales,
        },
    )
    return 0 if all(met) else 1
