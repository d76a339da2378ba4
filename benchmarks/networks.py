"""Private networks: tables beside their bars, arms of clipping and noise, and the noise by formula.

Test accuracy under add/remove, the number of records bought. Digits and Adult: a perceptron with
default settings, medians of ten splits (Adult: the published division, ten seeds). MNIST with
`--mnist`: a small convolutional network (Papernot and others, arXiv:2007.14191), three seeds. For
the bars it is trained for forty epochs; the arms for ten each. That takes about two hours on two
cores; each fit is kept, so that a stopped run goes on. The noise of ResNet-20 is that of all
coordinates for equal clips, over that of one noise for all.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks._epoch_peer import network
from benchmarks._kept import resumed
from benchmarks._report import add_common_arguments, print_table, save_json
from benchmarks.many import load
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import GroupedProfile

TABLES = {("digits", 1.0): 0.86, ("digits", 3.0): 0.92, ("Adult", 3.0): 0.845}
MNIST = {1.16: 0.946, 2.91: 0.968, 6.86: 0.971}
TRAINING = {"max_iter": 40, "batch_size": 0.03}
SHORT = {"max_iter": 10, "batch_size": 0.03}  # of every arm
ARMS = {
    "global": {"clip_groups": "global"},
    "SPR per layer": {"clip_groups": "layer", "noise": "spr"},
    "i.n.i.d. per layer": {"clip_groups": "layer", "noise": "inid"},
    "i.n.i.d. per tensor": {"clip_groups": "tensor", "noise": "inid"},
}
# Numbers of the 22 tensors of weights of ResNet-20; of its 21 norms, twice each, and of one bias.
_SHAPES = [(16, 27), *[(16, 144)] * 6, (32, 144), *[(32, 288)] * 5, (64, 288), *[(64, 576)] * 5]
WEIGHTS = [*(a * b for a, b in _SHAPES), 16 * 32, 32 * 64, 640]
NORMS = [size for size, count in ((16, 7), (32, 7), (64, 7)) for _ in range(2 * count)] + [10]


def accuracy(name: str, data_dir: Any, epsilon: float, seed: int, settings: Any) -> float:
    """Return the test accuracy of one fit."""
    import torch

    from skdpnoise import DPMLPClassifier, DPNeuralClassifier

    torch.set_num_threads(1)  # fits run side by side
    X, X_test, y, y_test, bounds = load(name, data_dir, seed)
    delta = 1.0 / len(X) ** 2 if name == "digits" else 1e-5
    given = dict(settings) | {"feature_bounds": bounds, "random_state": seed}
    make: Any = DPMLPClassifier
    if name == "MNIST":
        make, given["module"] = DPNeuralClassifier, network
        X, X_test = X.reshape(-1, 1, 28, 28), X_test.reshape(-1, 1, 28, 28)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(epsilon=epsilon, delta=delta, **given).fit(X, y)
    return float(model.score(X_test, y_test))


def noise_power(sizes: Sequence[int], rule: str, *, drawn: bool) -> float:
    """Return the total noise over that of one noise for all, of tensors with equal clips."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    profile = GroupedProfile(np.ones(len(sizes)), groups)
    made, plain = (
        calibrate(f"{one}_gaussian", profile, GaussianLoss(1.0)) for one in (rule, "iid")
    )
    if not drawn:
        return made.expected_error() / plain.expected_error()
    noise = made.sample(random_words(None))[0] * made.grid_size
    return float((noise**2).sum() / plain.expected_error())


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if all bars that were measured are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks", description=__doc__)
    parser.add_argument("--mnist", action="store_true", help="train the arms on MNIST, for hours")
    args = add_common_arguments(parser).parse_args(argv)
    measure = resumed(args.out, accuracy)

    def row(name: str, epsilon: float, settings: dict[str, Any], bar: float | None) -> list[Any]:
        seeds = range(1 if args.quick else 3 if name == "MNIST" else 10)
        jobs = (
            delayed(measure)(name, args.data_dir, epsilon, seed, tuple(settings.items()))
            for seed in seeds
        )
        found = Parallel(n_jobs=2)(jobs)
        middle = float(np.median(found))
        reached = "-" if bar is None else "met" if middle >= bar else "MISSED"
        return [name, epsilon, middle, min(found), max(found), bar or "-", reached]

    headers = ["data", "ε", "median", "lowest", "highest", "bar", "reached"]
    tables = [row(*key, {}, bar) for key, bar in TABLES.items()]
    print_table(headers, tables, title="Perceptrons with default settings: test accuracy")
    powers = [
        [what, rule, noise_power(sizes, rule, drawn=False), noise_power(sizes, rule, drawn=True)]
        for what, sizes in (("22 weights", WEIGHTS), ("weights and norms", WEIGHTS + NORMS))
        for rule in ("spr", "inid")
    ]
    print_table(
        ["tensors of ResNet-20", "rule", "by formula", "one draw"],
        powers,
        title="Total noise, over that of one noise for all",
    )
    arms = []
    if args.mnist:
        for epsilon, bar in MNIST.items():
            arms.append(["global, gaussian", *row("MNIST", epsilon, TRAINING, bar)])
        for family in ("gaussian", "laplace"):
            for arm, given in ARMS.items():
                rule = f"{given.get('noise', 'inid')}_{family}"
                settings = SHORT | given | {"noise": rule}
                arms += [
                    [f"{arm}, {family}", *row("MNIST", e, settings, None)] for e in (1.16, 2.91)
                ]
        print_table(["arm", *headers], arms, title="MNIST, a small network: test accuracy")
    saved = {"protocol": __doc__, "tables": tables, "power": powers, "arms": arms}
    save_json(args.out, "networks", saved)
    missed = [line for line in [*tables, *arms] if line[-1] == "MISSED"]
    print("bars missed:", ", ".join(f"{line[-7]} at ε = {line[-6]}" for line in missed) or "none")
    return 1 if missed else 0
