"""Laplace noise on the coordinates that dominate and normal noise on the rest, beside one family.

Expected squared error of the best single family and of "inid_mixture" ("auto" takes the least of
them all), at delta = 1e-6, by the exact loss of the composition. A negative gain says that one
family is better there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.mechanisms import calibrate
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sensitivity import SensitivityProfile

DELTA = 1e-6
MIXTURE = "inid_mixture"
EPSILONS = (0.5, 2.0, 8.0)
# Of the single families, those whose search is long are left out of a quick run.
QUICK_FAMILIES = ("gaussian", "laplace", "osgt")


def profiles(quick: bool) -> dict[str, NDArray[np.float64]]:
    """Return the profiles by name; "n1 of R, n2 of 1" has n1 dominant coordinates of ratio R."""
    shapes = [(1, 30.0, 100), (3, 100.0, 100), (10, 100.0, 1000)]
    if not quick:
        shapes = [(1, 50.0, 20), (1, 200.0, 100), (1, 1000.0, 1000)]
        shapes += [(large, ratio, 100) for large in (1, 3, 10) for ratio in (10.0, 100.0)]
    found = {
        f"{large} of {ratio:g}, {small} of 1": np.repeat([ratio, 1.0], [large, small])
        for large, ratio, small in shapes
    }
    found["2^i, K=8"] = 2.0 ** np.arange(8)
    if not quick:
        found["1.2^i, K=30"] = 1.2 ** np.arange(30)
        found["linear, K=50"] = np.arange(1.0, 51.0)
    return found


def compare(limit: NDArray[np.float64], epsilon: float, families: Sequence[str]) -> dict[str, Any]:
    """Return the errors of the single families and of the mixture, with what it is made of."""
    guarantee = PrivacyGuarantee(epsilon, DELTA)
    sensitivity = SensitivityProfile(limit)
    errors: dict[str, float | None] = {}
    for name in families:
        try:
            errors[name] = calibrate(f"inid_{name}", sensitivity, guarantee).expected_error()
        except ValueError:
            errors[name] = None
    best = min((error, name) for name, error in errors.items() if error is not None)
    started = time.perf_counter()
    mixture = calibrate(MIXTURE, sensitivity, guarantee)
    seconds = time.perf_counter() - started
    error = mixture.expected_error()
    laplace, gaussian = errors["laplace"], errors["gaussian"]
    assert laplace is not None and gaussian is not None
    return {
        "epsilon": epsilon,
        "errors": errors,
        "best_single": best[1],
        "best_single_error": best[0],
        "mixture_error": error,
        "n_laplace": sum(family == get_noise("laplace") for family in mixture.families),
        "gain": 100.0 * (1.0 - error / best[0]),
        "gain_over_parts": 100.0 * (1.0 - error / min(laplace, gaussian)),
        "delta": mixture.own_loss().delta(epsilon),
        "seconds": seconds,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if every mixture meets its guarantee."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks mixtures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(parser)
    args = parser.parse_args(argv)
    families = QUICK_FAMILIES
    if not args.quick:
        families = tuple(name for name in noise_names() if not get_noise(name).lattice)
    rows, records = [], []
    for name, limit in profiles(args.quick).items():
        print(name, flush=True)
        for epsilon in EPSILONS:
            record = compare(limit, epsilon, families)
            records.append({"profile": name, **record})
            rows.append(
                [
                    name,
                    epsilon,
                    record["best_single"],
                    record["best_single_error"],
                    record["mixture_error"],
                    record["n_laplace"],
                    f"{record['gain']:+.2f}",
                    f"{record['gain_over_parts']:+.2f}",
                    record["seconds"],
                ]
            )
    headers = ["profile", "ε", "best single", "its error", "mixture", "Laplace on"]
    headers += ["gain, %", "over its parts, %", "s"]
    print_table(headers, rows, title=f"Total squared error, δ={DELTA:g}, i.n.i.d.")
    kept = [record["delta"] <= DELTA for record in records]
    better = sum(record["gain"] > 0.0 for record in records)
    over_parts = sum(record["gain_over_parts"] > 0.0 for record in records)
    print(
        f"{sum(kept)} of {len(kept)} meet the guarantee; the mixture is better than every single "
        f"family in {better}, than Laplace and Gaussian noise in {over_parts}"
    )
    save_json(
        args.out,
        "mixtures",
        {"protocol": __doc__, "quick": args.quick, "delta": DELTA, "cases": records},
    )
    return 0 if all(kept) else 1
