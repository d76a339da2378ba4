"""Gradient canaries in one training of a network: which were in, guessed from what is released.

Of m canaries each is among the records by a fair coin, and the number of right guesses bounds ε
from below (Steinke, Nasr and Jagielski, arXiv:2305.08846). A canary is a record whose gradient lies
along one parameter, its own, and is longer than any clip; the guess is by how far that parameter
moved. Every group of parameters is judged by itself, with its part of the false alarm. Then the
noise of one group is made so small, behind the account, that the true ε is 20 or more.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks._report import add_common_arguments, print_table, save_json
from benchmarks.networks import ARMS
from skdpnoise.inspection.auditing._bounds import one_run_bound
from skdpnoise.mechanisms.sampled import SampledMechanism
from skdpnoise.privacy import GaussianLoss, PureLoss, poisson_sampled

DELTA, FALSE_ALARM = 1e-5, 0.05
GUESSED = (1.0, 0.3)  # shares of the canaries of a group that are guessed about
N_FEATURES, N_ORDINARY = 8, 10
FACTOR = 35.0  # by which the noise of one group is made smaller
_LONG = 1e6  # a gradient beyond any clip
_FEWEST = 20  # parameters of a group that is judged


def canaried(width: int) -> Any:
    """Return a perceptron for rows whose last number, if positive, names a parameter.

    Of such a row the first output also moves with that parameter, by nothing but its slope.
    """
    import torch
    from torch import nn

    class Canaried(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [nn.Linear(N_FEATURES, width), nn.Tanh(), nn.Linear(width, 2)]
            self.inner = nn.Sequential(*layers)
            for one in self.parameters():
                nn.init.zeros_(one)

        def forward(self, rows: Any) -> Any:
            flat = torch.cat([one.reshape(-1) for one in self.inner.parameters()])
            named = rows[:, -1].long()
            own = flat[(named - 1).clamp(min=0)]
            slope = torch.where(named > 0, _LONG * (own - own.detach()), 0.0)
            first = torch.stack([slope, torch.zeros_like(slope)], dim=1)
            return self.inner(rows[:, :-1]) + first

    return Canaried()


@contextmanager
def quieter(group: NDArray[np.intp], factor: float) -> Iterator[None]:
    """Make the noise of some parameters smaller by a factor, behind the account."""
    sample = SampledMechanism.sample

    def faulty(self: SampledMechanism, rng: Any) -> NDArray[np.int64]:
        noise = sample(self, rng)
        noise[group] = np.rint(noise[group] / factor).astype(np.int64)
        return noise

    with mock.patch.object(SampledMechanism, "sample", faulty):
        yield


def audited(
    settings: dict[str, Any], epsilon: float, seed: int, *, width: int = 64, rate: float = 1.0
) -> dict[str, Any]:
    """Train once with canaries along all parameters, and return what the guesses show."""
    import torch

    from skdpnoise import DPNeuralClassifier

    torch.set_num_threads(1)
    first = canaried(width)
    sizes = [one.numel() for one in first.parameters()]
    m = sum(sizes)
    coins = np.random.default_rng(seed).integers(0, 2, m).astype(bool)
    X = np.zeros((N_ORDINARY + int(coins.sum()), N_FEATURES + 1))
    X[N_ORDINARY:, -1] = 1.0 + np.flatnonzero(coins)
    model = DPNeuralClassifier(
        canaried,
        module__width=width,
        epsilon=epsilon,
        delta=DELTA if settings["noise"].endswith("gaussian") else 0.0,
        classes=[0, 1],
        batch_size=rate,
        max_iter=10,
        momentum=0.0,
        n_samples=N_ORDINARY + m // 2,
        **settings,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.ones(len(X), dtype=int))
    # The slope of the first class is positive, and all parameters began at zero.
    scores = -np.concatenate([one.detach().ravel().numpy() for one in model.module_.parameters()])
    parts = np.split(np.arange(m), np.cumsum(sizes)[:-1])
    judged = [part for part in parts if len(part) >= _FEWEST]
    shown = [guessed_right(coins[one], scores[one], len(judged)) for one in judged]
    return {"shown": max(shown), "canaries": m, "model": model}


def guessed_right(coins: NDArray[np.bool_], scores: NDArray[np.float64], n_tests: int) -> float:
    """Return what ε must be at least, by the guesses about the canaries of one of many groups."""
    each, order, found = FALSE_ALARM / n_tests / len(GUESSED), np.argsort(scores), 0.0
    for share in GUESSED:
        half = max(1, round(0.5 * share * len(coins)))
        right = int(np.sum(coins[order[-half:]]) + np.sum(~coins[order[:half]]))
        found = max(found, one_run_bound(len(coins), 2 * half, right, DELTA, each))
    return found


def true_epsilon(model: Any, quiet: str, factor: float) -> float:
    """Return ε of all steps of a model, with the noise of a group smaller by a factor."""
    spread = model.allocation_["noise"].copy()
    spread[model.allocation_["group"] == quiet] /= factor
    moved = model.allocation_["clip"] / spread
    if model.delta > 0.0:
        step: Any = GaussianLoss(float(np.linalg.norm(moved)))
    else:  # √2 scales are a standard deviation
        step = PureLoss(float(np.sqrt(2.0) * moved.sum()))
    loss = poisson_sampled(step, model.sampling_rate_).compose(model.n_steps_)
    return float(loss.epsilon(model.delta))


def main(argv: Sequence[str] | None = None) -> int:
    """Audit, print and save; return 0 if no claim is contradicted but that of the fault."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks canaries", description=__doc__)
    args = add_common_arguments(parser).parse_args(argv)
    width = 32 if args.quick else 256
    honest = []
    for family in ("gaussian", "laplace"):
        for arm, given in ARMS.items():
            settings = given | {"noise": f"{given.get('noise', 'inid')}_{family}"}
            for epsilon, rate in ((1.0, 1.0), (8.0, 1.0), (8.0, 0.1)):
                found = audited(settings, epsilon, 0, width=width, rate=rate)
                holds = "holds" if found["shown"] <= epsilon else "CONTRADICTED"
                honest.append(
                    [f"{arm}, {family}", rate, found["canaries"], epsilon, found["shown"], holds]
                )
    headers = ["arm", "rate", "canaries", "claim", "at least", "claim"]
    print_table(headers, honest, title=f"Lower bounds of ε, false alarm {FALSE_ALARM:g} each")
    faults = []
    for family in ("gaussian", "laplace"):
        settings = {"clip_groups": "tensor", "noise": f"inid_{family}"}
        group = np.arange(N_FEATURES * width)
        with quieter(group, FACTOR):
            found = audited(settings, 1.0, 0, width=width)
        true = true_epsilon(found["model"], "inner.0.weight", FACTOR)
        caught = "caught" if found["shown"] > 1.0 else "MISSED"
        faults.append([f"i.n.i.d. per tensor, {family}", 1.0, true, found["shown"], caught])
    headers = ["arm", "claim", "true", "at least", "fault"]
    print_table(headers, faults, title=f"Noise of one group, {FACTOR:g} times too small")
    save_json(args.out, "canaries", {"protocol": __doc__, "honest": honest, "faults": faults})
    wrong = [row for row in [*honest, *faults] if row[-1] in ("CONTRADICTED", "MISSED")]
    print("claims contradicted, or faults missed:", len(wrong))
    return 1 if wrong else 0
