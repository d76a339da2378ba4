"""Whether "auto" and "inid" ever lose: random profiles, joint bounds and guarantees."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.mechanisms import calibrate, noise_options
from skdpnoise.noises import get_noise
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sensitivity import SensitivityProfile

SAME = 1.0 + 1e-9  # errors that differ by less are equal


def random_case(seed: int, most: int = 10_000) -> tuple[SensitivityProfile, PrivacyGuarantee]:
    """Return a profile with or without joint bounds, and a guarantee, pure in one case of five."""
    rng = np.random.default_rng(seed)
    size = round(np.exp(rng.uniform(0.0, np.log(most))))
    profile = [
        np.ones(size),
        rng.lognormal(0.0, rng.uniform(0.1, 2.0), size),
        np.arange(1.0, size + 1.0) ** rng.uniform(0.2, 3.0),
        np.where(np.arange(size) < 1 + size // 50, rng.uniform(5.0, 500.0), 1.0),
        rng.uniform(0.01, 1.0, size),
    ][seed % 5]
    bounds: dict[str, float] = {}
    largest = float(profile.max())
    if rng.uniform() < 0.4:
        bounds["l2"] = float(rng.uniform(largest, max(np.linalg.norm(profile), largest)))
    if rng.uniform() < 0.3:
        bounds["l1"] = float(rng.uniform(largest, max(profile.sum(), largest)))
    delta = 0.0 if rng.uniform() < 0.2 else float(10.0 ** -rng.uniform(3.0, 9.0))
    epsilon = float(np.exp(rng.uniform(np.log(0.1), np.log(10.0))))
    return SensitivityProfile(profile, **bounds), PrivacyGuarantee(epsilon, delta)


def check(seed: int, most: int) -> dict[str, Any]:
    """Return one case, with every comparison that was lost."""
    sensitivity, guarantee = random_case(seed, most)
    box = SensitivityProfile(sensitivity.per_coordinate)
    start = time.perf_counter()
    chosen = calibrate("auto", sensitivity, guarantee)
    seconds = time.perf_counter() - start
    lost = []
    best = chosen.expected_error()
    for noise in noise_options():
        if noise == "auto" or (
            noise != "inid_mixture" and get_noise(noise.partition("_")[2]).lattice
        ):
            continue
        try:
            error = calibrate(noise, sensitivity, guarantee).expected_error()
        except ValueError:
            continue  # cannot give the guarantee
        if noise.startswith("inid") and best > error * SAME:
            lost.append(["auto", noise, best / error])
        if noise.startswith(("iid", "spr")):
            inid = calibrate("inid" + noise[3:], sensitivity, guarantee).expected_error()
            if inid > error * SAME:
                lost.append(["inid" + noise[3:], noise, inid / error])
        elif box.n_coordinates > 1 and noise != "inid_mixture":
            apart = calibrate(noise, box, guarantee).expected_error()
            if error > apart * SAME:
                lost.append([noise + ", joint", noise + ", box", error / apart])
    return {
        "seed": seed,
        "coordinates": sensitivity.n_coordinates,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "joint": [sensitivity.l1, sensitivity.l2],
        "chosen": chosen.noise,
        "seconds": seconds,
        "lost": lost,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = add_common_arguments(
        argparse.ArgumentParser("benchmarks never_lose", description=__doc__)
    )
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    args = parser.parse_args(argv)
    n_cases, most = (20, 100) if args.quick else (args.cases, 10_000)
    cases = Parallel(n_jobs=2)(delayed(check)(args.first + k, most) for k in range(n_cases))
    kinds = sorted({case["chosen"] for case in cases})
    rows = [[kind, sum(case["chosen"] == kind for case in cases)] for kind in kinds]
    print_table(["chosen by auto", "cases"], rows, title=f"{n_cases} random cases")
    lost = [[case["seed"], *loss] for case in cases for loss in case["lost"]]
    print_table(["seed", "loser", "to", "ratio"], lost, title=f"{len(lost)} comparisons lost")
    seconds = [case["seconds"] for case in cases]
    print(f"auto took {np.median(seconds):.2f} s (median), {max(seconds):.1f} s (longest)")
    save_json(args.out, "never_lose", {"cases": cases})
    return 0
