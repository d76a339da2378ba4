"""Time of an epoch of private training, beside Opacus and ordinary training.

The same small convolutional network, images of MNIST's size, and batches of 300 on average, in
processes that take turns on the same threads; Opacus in an environment of its own, which is made if
`--peer` does not name its Python. Then the time of exact integer noise for 270,000 parameters.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._epoch_peer import BATCH, N, data, network
from benchmarks._report import ROOT, add_common_arguments, print_table, save_json
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import GroupedProfile

NEEDS = ("torch==2.13.0", "opacus==1.6.0")
MOST_ORDINARY, MOST_OPACUS, MOST_NOISE = 6.0, 1.0, 0.06
N_PARAMETERS = 270_000


def ours(clip_groups: str, n_threads: int, n_epochs: int) -> float:
    """Return seconds per epoch: of a fit less a shorter one, over the epochs between."""
    import torch

    from skdpnoise import DPNeuralClassifier

    torch.set_num_threads(n_threads)
    X, y = (one.numpy() for one in data())

    def seconds(count: int) -> float:
        model = DPNeuralClassifier(
            network, clip_groups=clip_groups, batch_size=BATCH / N, max_iter=count, n_samples=N
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            model.fit(X, y)
        return time.perf_counter() - start

    seconds(1)  # compiles
    return (seconds(1 + n_epochs) - seconds(1)) / n_epochs


def theirs(python: Path, name: str, n_threads: int, n_epochs: int) -> float:
    """Return seconds per epoch, measured in a process of another environment."""
    answer = subprocess.run(
        [python, "-m", "benchmarks._epoch_peer", name, str(n_threads), str(n_epochs)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": str(n_threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(np.median(json.loads(answer.stdout.splitlines()[-1])))


def noise_seconds() -> float:
    """Return the seconds of noise for one step of many parameters in layers."""
    sizes = np.full(20, N_PARAMETERS // 20)
    profile = GroupedProfile(np.ones(20), np.repeat(np.arange(20), sizes))
    mechanism, rng = calibrate("inid_gaussian", profile, GaussianLoss(1.0)), random_words(None)
    mechanism.sample(rng)
    found = []
    for _ in range(9):
        start = time.perf_counter()
        mechanism.sample(rng)
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def made_peer(folder: str) -> Path:
    """Return the Python of a new environment with Opacus."""
    venv.create(folder, with_pip=True)
    python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *NEEDS], check=True)
    return python


def compare(peer: Path, n_threads: int, n_epochs: int, turns: int) -> list[list[Any]]:
    """Return medians of ratios, all taking turns."""
    arms, rows = ("global", "layer"), []
    found: dict[str, list[float]] = {}
    for _ in range(turns):
        now = {
            name: theirs(python, name, n_threads, n_epochs)
            for name, python in (("ordinary", Path(sys.executable)), ("opacus", peer))
        }
        now |= {arm: ours(arm, n_threads, n_epochs) for arm in arms}
        for name, seconds in now.items():
            found.setdefault(name, []).append(seconds)
    for arm in arms:
        for other, bar in (("ordinary", MOST_ORDINARY), ("opacus", MOST_OPACUS)):
            ratios = np.array(found[arm]) / np.array(found[other])
            ratio = float(np.median(ratios))
            verdict = "held" if ratio <= bar else "MISSED"
            seconds = (float(np.median(found[one])) for one in (arm, other))
            rows.append([f"clip_groups={arm!r}", n_threads, *seconds, other, ratio, bar, verdict])
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if all bars are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks epochs", description=__doc__)
    parser.add_argument("--peer", type=Path, help="Python of an environment with Opacus")
    args = add_common_arguments(parser).parse_args(argv)
    n_epochs, turns = (1, 1) if args.quick else (3, 3)
    with tempfile.TemporaryDirectory() as folder:
        peer = args.peer or made_peer(folder)
        rows = [row for n in (1, 2) for row in compare(peer, n, n_epochs, turns)]
    headers = ["ours", "threads", "seconds", "theirs", "of", "ratio", "bar", ""]
    print_table(headers, rows, title=f"Seconds per epoch of {N:,} images")
    seconds = noise_seconds()
    verdict = "held" if seconds <= MOST_NOISE else "MISSED"
    print(f"noise for {N_PARAMETERS:,} parameters: {seconds:.3f} s, bar {MOST_NOISE:g}, {verdict}")
    save_json(args.out, "epochs", {"protocol": __doc__, "epochs": rows, "noise": seconds})
    missed = [row for row in rows if row[-1] == "MISSED"] + [seconds] * (verdict == "MISSED")
    print("bars missed:", len(missed))
    return 1 if missed else 0
