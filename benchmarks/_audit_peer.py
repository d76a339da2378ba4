"""A peer's estimator with a known fault, audited in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import warnings
from pathlib import Path
from typing import Any

NAME = "diffprivlib LinearRegression, bounds_X=(0, 100)"
_NEEDS = ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "numba", "pandas")
_ROOT = Path(__file__).resolve().parents[1]


def row(python: Path | None, n_fits: int, false_alarm: float, commit: str) -> dict[str, Any]:
    """Return the row of the table, from a process in the peer's environment."""
    if python is not None:
        return _run(python, n_fits, false_alarm, commit)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        made = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        subprocess.run([made, "-m", "pip", "install", "--quiet", *_NEEDS], check=True)
        return _run(made, n_fits, false_alarm, commit)


def _run(python: Path, n_fits: int, false_alarm: float, commit: str) -> dict[str, Any]:
    answer = subprocess.run(
        [python, "-m", "benchmarks._audit_peer", str(n_fits), repr(false_alarm)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {**json.loads(answer.stdout), "commit": commit}


def audited(n_fits: int, false_alarm: float) -> dict[str, Any]:
    """Return the report of the peer's estimator, whose claim is epsilon=1 and pure.

    It releases noisy second moments. For the sum of the squares of a column it takes the square of
    the lower bound, twice, for the sensitivity: 0 for bounds from 0 to 100, hence no noise.
    """
    import numpy as np
    from diffprivlib.models import LinearRegression

    from skdpnoise.inspection import audit

    rng = np.random.default_rng(0)
    X = rng.uniform(20.0, 60.0, size=(60, 1))
    y = X[:, 0] + rng.normal(size=60)
    estimator = LinearRegression(
        epsilon=1.0, bounds_X=(0.0, 100.0), bounds_y=(0.0, 100.0), fit_intercept=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit(
            estimator,
            X,
            y,
            method="black_box",
            adjacency="replace_one",
            n_fits=n_fits,
            false_alarm=false_alarm,
            random_state=0,
        )
    return {**report.to_dict(), "name": NAME, "broken": True, "n_fits": n_fits}


if __name__ == "__main__":
    print(json.dumps(audited(int(sys.argv[1]), float(sys.argv[2]))))
