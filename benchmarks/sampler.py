"""Draws per second of the exact samplers, words of the operating system included, beside OpenDP."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.noises import Noise, get_noise, noise_names
from skdpnoise.sampling import SystemWords, permutation

STATEMENT = (
    "Per second of processor time, user and system together, so that other programs on the "
    "machine do not count; one thread. Ours: int64 draws of round(2**bits * Z), Z exactly of the "
    "family's unit scale and default shape, or integers of the scale stated for the families on "
    "the integers; the time of os.urandom included ('fetching' is its share). OpenDP: its "
    "measurement make_laplace / make_gaussian applied to a vector of zeros; on integers (scale "
    "2**20) it adds discrete noise, on floats (scale 1) noise rounded to a fine grid, also "
    "exactly. Each number is the median of interleaved repetitions after a first call that "
    "compiles."
)
BITS = (24, 40, 52)
SCALES = (1.0, 10.5, 2.0**20)  # of the families on the integers
BARS = {"laplace": 6e6, "gaussian": 6e6}
BAR = 1e6  # of the others
PEERS = {"discrete_laplace": "laplace", "discrete_gaussian": "gaussian"}


@dataclass(frozen=True)
class Case:
    """A family with the number of bits, or with the scale if it lives on the integers."""

    family: str
    bits: int = 0
    scale: float | None = None

    @property
    def noise(self) -> Noise:
        """The noise that is drawn."""
        shape = () if self.scale is None else (self.scale,)
        return get_noise(self.family, *shape)

    @property
    def bar(self) -> float:
        """Draws per second to reach."""
        return BARS.get(self.family, BAR)

    def peers(self) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
        """Return the comparable noises of OpenDP on integers and on floats."""
        if self.family in BARS:
            return (self.family, "int"), (self.family, "float")
        if self.scale == SCALES[-1]:
            return (PEERS[self.family], "int"), None
        return None, None


def cases() -> list[Case]:
    """Return all families, each with several numbers of bits or several scales."""
    found = []
    for family in noise_names():
        if get_noise(family).lattice:
            found += [Case(family, scale=scale) for scale in SCALES]
        else:
            found += [Case(family, bits) for bits in BITS]
    return found


class TimedWords(SystemWords):
    """The operating system's words, with the time and the number they took."""

    __slots__ = ("seconds", "taken")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.taken = 0

    def take(self, n: int) -> NDArray[np.uint64]:
        """Return `n` fresh words."""
        start = time.process_time()
        words = super().take(n)
        self.seconds += time.process_time() - start
        self.taken += n
        return words


def measure_ours(case: Case, n: int) -> dict[str, Any]:
    """One repetition: draws per second, share of time in os.urandom, random bits per draw."""
    words, noise = TimedWords(), case.noise
    start = time.process_time()
    noise.sample_rounded(words, n, case.bits)
    seconds = time.process_time() - start
    return {
        "draws_per_second": n / seconds,
        "fetching": words.seconds / seconds,
        "random_bits_per_draw": 64 * words.taken / n,
    }


def opendp_measurements(n: int) -> dict[tuple[str, str], Callable[[], object]]:
    """OpenDP's exact noise on a vector of n zeros, by family and type; empty if not installed."""
    try:
        dp = importlib.import_module("opendp.prelude")
    except ImportError:
        return {}
    dp.enable_features("contrib")
    runs: dict[tuple[str, str], Callable[[], object]] = {}
    for kind, scale, options in ((int, 2.0**20, {}), (float, 1.0, {"nan": False})):
        domain = dp.vector_domain(dp.atom_domain(T=kind, **options), size=n)
        zeros = [kind(0)] * n
        laplace = dp.m.make_laplace(domain, dp.l1_distance(T=kind), scale=scale)
        gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T=kind), scale=scale)
        runs["laplace", kind.__name__] = lambda run=laplace, zeros=zeros: run(zeros)
        runs["gaussian", kind.__name__] = lambda run=gaussian, zeros=zeros: run(zeros)
    return runs


def first_call_seconds() -> dict[str, float]:
    """Processor seconds of the first use of all that a fit needs: compiling or loading it."""
    seconds = {}
    for family in noise_names():
        start = time.process_time()
        noise = get_noise(family)
        noise.sample_rounded(SystemWords(), 1, 0 if noise.lattice else 24)
        seconds[family] = time.process_time() - start
    start = time.process_time()
    permutation(SystemWords(), 2)
    seconds["permutation"] = time.process_time() - start
    return seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if the bar is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sampler", description=__doc__)
    add_common_arguments(parser)
    args = parser.parse_args(argv)
    n, n_opendp, repetitions = (100_000, 2_000, 3) if args.quick else (1_000_000, 100_000, 7)

    first_call = first_call_seconds()
    samples: dict[Case, list[dict[str, Any]]] = {}
    for _ in range(repetitions):
        for case in cases():
            samples.setdefault(case, []).append(measure_ours(case, n))
    ours = {
        case: {key: float(np.median([s[key] for s in many])) for key in many[0]}
        for case, many in samples.items()
    }

    opendp: dict[tuple[str, str], list[float]] = {}
    runs = opendp_measurements(n_opendp)
    for _ in range(min(repetitions, 3)):
        for key, run in runs.items():
            start = time.process_time()
            run()
            opendp.setdefault(key, []).append(n_opendp / (time.process_time() - start))
    peers = {key: float(np.median(rates)) for key, rates in opendp.items()}

    rows = []
    for case, row in ours.items():
        rate = row["draws_per_second"]
        ratios = [rate / peers[peer] if peers and peer else None for peer in case.peers()]
        rows.append(
            [
                case.family,
                case.bits,
                case.scale,
                rate / 1e6,
                f"{row['fetching']:.0%}",
                row["random_bits_per_draw"],
                *ratios,
                f"{case.bar / 1e6:g} {'met' if rate >= case.bar else 'MISSED'}",
            ]
        )
    headers = ["family", "bits", "scale", "million draws/s", "fetching", "random bits/draw"]
    headers += ["× OpenDP int", "× OpenDP float", "bar, million/s"]
    print_table(headers, rows, title="Exact rounded noise on one core")
    for (family, kind), rate in peers.items():
        print(f"OpenDP {family:8} on a vector of {kind}: {rate / 1e6:.4f} million draws/s")
    if not peers:
        print("OpenDP is not installed: no comparison.")
    print(
        "first call in this order, s (families share kernels): "
        + ", ".join(f"{k} {v:.2f}" for k, v in first_call.items())
    )
    print(STATEMENT)
    save_json(
        args.out,
        "sampler",
        {
            "statement": STATEMENT,
            "n_draws": n,
            "n_draws_opendp": n_opendp,
            "repetitions": repetitions,
            "ours": [
                {"family": case.family, "bits": case.bits, "scale": case.scale, "bar": case.bar}
                | row
                for case, row in ours.items()
            ],
            "opendp_draws_per_second": {" ".join(key): rate for key, rate in peers.items()},
            "first_call_seconds": first_call,
        },
    )
    return 0 if all(row["draws_per_second"] >= case.bar for case, row in ours.items()) else 1
