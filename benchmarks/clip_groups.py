"""Gradients clipped by groups of columns, beside one clip for all: Adult, the best of a grid each.

Adult's numbers are in halves of their public bounds around their middles, its kinds are groups of
columns of 0 and 1, and a row ends with a constant of 1. Each pass releases whole gradients, with
noise that is calibrated for the same guarantee: of one ball, of a product of balls, or of both.
Groups are the kinds, and the numbers with the constant, each clipped to its share of C by the
length that rows have there; two groups are the kinds and the rest. Clips and steps are looked up on
the test records, for all alike: the question is which way of clipping could be better, not what a
default reaches.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks._kept import resumed
from benchmarks._report import add_common_arguments, print_table, save_json
from benchmarks.many import ADULT_BOUNDS, adult, adult_groups
from skdpnoise.kernels import LOGISTIC
from skdpnoise.kernels.joint import Clip, GridRows, GroupedClip, joint_descent
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss, gdp_mu
from skdpnoise.sensitivity import GroupedProfile

EPSILONS = (0.5, 1.0, 5.0)  # below, rows that are not centred show little
WAYS = ("one ball", "kinds and rest", "each kind", "each kind, jointly")
CLIPS, STEPS, N_PASSES, MOMENTUM = (0.3, 1.0, 3.0), (0.1, 0.3, 1.0, 3.0), 60, 0.9
N_NUMBERS = len(ADULT_BOUNDS)
BITS = 24  # of noise scales in grid steps, so that rounding is nothing


def numbers(way: str) -> np.ndarray:
    """Return the group of each column of Adult and of the constant."""
    kinds = adult_groups()
    found = np.zeros(N_NUMBERS + sum(map(len, kinds)) + 1, dtype=int)
    for number, columns in enumerate(kinds):
        found[columns] = 1 if way == "kinds and rest" else number + 1
    return np.zeros_like(found) if way == "one ball" else found


def lengths(groups: np.ndarray) -> np.ndarray:
    """Return the norm that rows are like in each group: a third for each number, 1 for a kind."""
    sizes = np.zeros(groups.max() + 1)
    sizes[groups[-1]] += 1.0
    for j in range(N_NUMBERS):
        sizes[groups[j]] += 1.0 / 9.0
    for columns in adult_groups():
        sizes[groups[columns[0]]] += 1.0
    return np.sqrt(sizes)


@cache
def data(data_dir: Any) -> Any:
    """Read Adult once."""
    return adult(data_dir)


def fit(
    way: str, data_dir: Any, epsilon: float, point: tuple[float, float], seed: int
) -> list[float]:
    """Return test accuracy and area under the curve of one descent."""
    X, X_test, y, y_test, bounds = data(data_dir)
    low, high = np.array(bounds)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    middle[N_NUMBERS:], half[N_NUMBERS:] = 0.0, 1.0
    groups = numbers(way)
    norms = point[0] * lengths(groups) / np.linalg.norm(lengths(groups))
    joint = point[0] if way.endswith("jointly") else None
    if joint is not None:
        norms *= math.sqrt(2.0)
    wide = None if joint is None else 2.0 * joint
    profile = GroupedProfile(2.0 * norms, groups, joint=wide)
    mechanism = calibrate(
        "inid_gaussian", profile, GaussianLoss(gdp_mu(epsilon, 1e-5)), n_releases=N_PASSES
    )
    scale = np.broadcast_to(mechanism.scale, groups.size)
    grids = 2.0 ** np.floor(np.log2(scale)) * 2.0**-BITS
    clip = GroupedClip(
        groups,
        tuple(Clip(float(c), float(grids[groups == g][0])) for g, c in enumerate(norms)),
        joint,
    )
    # The same noise for all: normal numbers, whose rounding is far below one scale.
    draws = np.random.default_rng(seed).normal(size=(N_PASSES, 1, groups.size))
    noise = np.rint(draws * scale / grids).astype(np.int64)
    facts: dict[str, Any] = {"grid_size": 2.0**-16, "limit": 1.0}
    rows = GridRows(X, center=middle, scale=half, constant=1.0, **facts)
    path = [
        *joint_descent(
            rows,
            y[:, np.newaxis],
            loss=LOGISTIC,
            n_outputs=1,
            n_passes=N_PASSES,
            step=point[1] / point[0],
            clip=[clip] * N_PASSES,
            noise=noise,
            momentum=MOMENTUM,
        )
    ]
    coef = np.mean(path[-(2 * N_PASSES) // 5 :], axis=0)[0]
    scores = np.clip((X_test - middle) / half, -1.0, 1.0) @ coef[:-1] + coef[-1]
    return [float(np.mean((scores > 0) == y_test)), float(roc_auc_score(y_test, scores))]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks clip_groups", description=__doc__)
    args = add_common_arguments(parser).parse_args(argv)
    measure, rows, records = resumed(args.out, fit), [], []
    for epsilon in EPSILONS[1:2] if args.quick else EPSILONS:
        line: list[Any] = [epsilon]
        for way in WAYS:
            best: tuple[float, list[float], tuple[float, float]] = (0.0, [], (0.0, 0.0))
            for point in itertools.product(CLIPS, STEPS):
                drawn = [measure(way, args.data_dir, epsilon, point, seed) for seed in range(2)]
                mean = [float(x) for x in np.mean(drawn, axis=0)]
                best = max(best, (mean[1], mean, point))
            line.append(f"{best[1][0]:.4f} / {best[1][1]:.4f}")
            records.append({"epsilon": epsilon, "way": way, "found": best[1], "at": best[2]})
        rows.append(line)
    print_table(["ε", *WAYS], rows, title="Adult: test accuracy / area under the curve")
    save_json(args.out, "clip_groups", {"protocol": __doc__, "cases": records})
    return 0
