"""Residuals rounded to nearest or towards zero: bias and error of sums of clipped gradients.

Both hold the bound C on the integers: to nearest within a bound that is smaller by half a unit for
each entry, towards zero within the whole one. Rows are normal, residuals those of a multinomial
model, and a grid is said by how many of its steps C is. The bias is that of the sum along the
exact sum, for clips that hold hardly any record and nearly all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._report import add_common_arguments, print_table, save_json

N_ROWS, N_COLUMNS, N_OUTPUTS = 20_000, 20, 5
STEPS = (2.0**6, 2.0**9, 2.0**12, 2.0**16, 2.0**24)  # of the grid, that C is
CLIPS = (100.0, 1.0)  # that hold hardly any gradient, and most of them


def rounded(x: np.ndarray, q: np.ndarray, clip: float, grid: float, way: str) -> np.ndarray:
    """Return the sum of products of rows with rounded residuals, within the bound."""
    norms, sizes = np.linalg.norm(x, axis=1), np.linalg.norm(q, axis=1)
    # Rows are whole numbers of steps of 2**-8, residuals of grid * 2**8: products are exact.
    step = grid * 2.0**8
    room = 0.5 * np.sqrt(q.shape[1]) * step if way == "nearest" else 0.0
    factor = np.minimum(1.0, np.maximum(clip / norms - room, 0.0) / sizes)
    scaled = q * factor[:, np.newaxis] / step
    whole = np.rint(scaled) if way == "nearest" else np.trunc(scaled)
    return np.asarray((whole * step).T @ x)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rounding", description=__doc__)
    args = add_common_arguments(parser).parse_args(argv)
    rng = np.random.default_rng(0)
    x = np.rint(rng.normal(size=(N_ROWS, N_COLUMNS)) * 2.0**8) / 2.0**8
    scores = x[:, :N_OUTPUTS] + rng.gumbel(size=(N_ROWS, N_OUTPUTS))
    chances = np.exp(0.5 * x[:, :N_OUTPUTS])
    q = chances / chances.sum(axis=1, keepdims=True) - np.eye(N_OUTPUTS)[scores.argmax(axis=1)]
    rows: list[list[Any]] = []
    for clip in CLIPS:
        sizes = np.linalg.norm(x, axis=1) * np.linalg.norm(q, axis=1)
        exact = (q * np.minimum(1.0, clip / sizes)[:, np.newaxis]).T @ x
        for steps in STEPS:
            line: list[Any] = [clip, f"2^{np.log2(steps):.0f}"]
            for way in ("nearest", "towards zero"):
                found = rounded(x, q, clip, clip / steps, way)
                bias = float((found * exact).sum() / (exact**2).sum() - 1.0)
                error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
                line += [f"{bias:+.1e}", f"{error:.1e}"]
            rows.append(line)
    headers = ["C", "steps", "nearest: bias", "error", "towards zero: bias", "error"]
    print_table(headers, rows, title="Relative to the exact sum of clipped gradients")
    save_json(args.out, "rounding", {"protocol": __doc__, "rows": rows})
    return 0
