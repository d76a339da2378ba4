"""Private principal components: captured variance, subspaces, pure noises and speed.

Captured variance is tr(V' C V) relative to the best of as many components, C the covariance of the
rows; default settings apart from epsilon and delta = 1/n^2, ten seeds. The columns are mapped to
[-1, 1] by the smallest and largest value of the file, as published comparisons do; DPPCA is told
nothing of it, or the bounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import _pca_speed, _pca_subspaces
from benchmarks._kept import resumed
from benchmarks._pca_data import captured, load
from benchmarks._pca_references import exponential_eigenvectors, peers
from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise.decomposition import DPPCA
from skdpnoise.kernels.second_moments import second_moments
from skdpnoise.mechanisms import calibrate_second_moments
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import RowBounds

SEEDS = 10
# data, components, epsilon, bar, published peer
CASES: tuple[tuple[str, int, float, float | None, float | None], ...] = (
    ("california", 2, 0.1, 0.995, 0.61),
    ("california", 2, 1.0, 0.995, 0.988),
    ("digits", 10, 1.0, 0.80, 0.39),
    ("digits", 10, 5.0, 0.98, None),
    ("breast cancer", 5, 1.0, 0.70, 0.12),
    ("breast cancer", 5, 5.0, None, None),
    ("mnist", 10, 0.5, 0.96, None),
    ("mnist", 10, 1.0, 0.985, None),
)
PURE_CASES = (("california", (1, 2)), ("breast cancer", (1, 2, 5)), ("digits", (1, 3, 10)))
PURE_NOISES = ("inid_laplace", "k_norm", "wishart")


def real(data_dir: Any, quick: bool, with_peers: bool) -> list[dict[str, Any]]:
    """Return the captured variance on real data."""
    records = []
    for name, k, epsilon, bar, published in CASES:
        X = None if quick and name == "mnist" else load(name, data_dir)
        if X is None:
            continue
        n, p = X.shape
        covariance = np.cov(X.T)
        seeds = range(3 if quick else SEEDS)
        delta = 1.0 / n**2
        for label, settings in (
            ("", {}),
            ("public bounds", {"feature_bounds": (-1.0, 1.0)}),
            ("pure", {"delta": 0.0}),
        ):
            options = {"delta": delta, **settings}
            scores = [
                captured(
                    DPPCA(k, epsilon, random_state=s, **options).fit(X).components_, covariance
                )
                for s in seeds
            ]
            records.append(
                {
                    "data": name,
                    "k": k,
                    "epsilon": epsilon,
                    "settings": label,
                    "scores": scores,
                    "bar": bar if label != "pure" else None,
                    "published_peer": published if not label else None,
                }
            )
        if with_peers:
            longest = float(np.sqrt(p))  # what the bounds imply
            for label, fit in peers(p, epsilon).items():
                scores = []
                for s in seeds:
                    rng = np.random.default_rng(s)
                    components = fit(X, k, longest, epsilon, delta, rng)
                    scores.append(captured(components, covariance))
                records.append(
                    {
                        "data": name,
                        "k": k,
                        "epsilon": epsilon,
                        "settings": label,
                        "scores": scores,
                        "bar": None,
                        "published_peer": None,
                    }
                )
        print(name, epsilon, flush=True)
    return records


def pure(data_dir: Any, quick: bool) -> list[dict[str, Any]]:
    """Return what the pure noises and the exponential mechanism capture, centre and norm known."""
    records = []
    for name, ranks in PURE_CASES:
        X = load(name, data_dir)
        assert X is not None
        covariance = np.cov(X.T)
        rows = X - X.mean(axis=0)
        p = X.shape[1]
        norm = float(np.quantile(np.linalg.norm(rows, axis=1), 0.6))
        shrunk = rows * np.minimum(1.0, norm / np.linalg.norm(rows, axis=1))[:, None]
        moments = shrunk.T @ shrunk
        for epsilon in (0.5, 2.0) if quick else (0.1, 0.5, 1.0, 2.0, 5.0, 10.0):
            vectors: dict[str, list[Any]] = {}
            for noise in PURE_NOISES:
                l1_norm = norm * np.sqrt(0.73 * p) if noise == "inid_laplace" else None
                bounds = RowBounds(p, norm, l1_norm=l1_norm)
                mechanism = calibrate_second_moments(noise, bounds, PrivacyGuarantee(epsilon))
                counts = second_moments(
                    rows, row_grid_size=mechanism.row_grid_size, norm=norm, l1_norm=l1_norm
                )
                rng = SeededWords(0)
                vectors[noise] = [
                    np.linalg.eigh(mechanism.release(counts, rng))[1].T[::-1]
                    for _ in range(3 if quick else 20)
                ]
            for k in ranks:
                scores = {
                    noise: float(np.mean([captured(V[:k], covariance) for V in found]))
                    for noise, found in vectors.items()
                }
                drawn = [
                    exponential_eigenvectors(moments, k, norm, epsilon, np.random.default_rng(s))
                    for s in range(3 if quick else 20)
                ]
                scores["exponential"] = float(np.mean([captured(V, covariance) for V in drawn]))
                records.append({"data": name, "p": p, "k": k, "epsilon": epsilon, **scores})
    return records


def speed(data_dir: Any, quick: bool) -> list[dict[str, Any]]:
    """Return times and memory beside scikit-learn's."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000 if quick else 1_000_000, 50))
    repetitions = 2 if quick else 5
    records = [
        {**_pca_speed.compare(X, 5, repetitions, n_jobs), "bar": None if n_jobs else 2.0}
        for n_jobs in (None, -1)
    ]
    images = None if quick else load("mnist", data_dir)
    if images is not None:
        records.append({**_pca_speed.compare(images, 10, 3, None), "bar": 3.0})
    return records


def verdict(bar: float | None, reached: bool) -> str | None:
    """Return a word beside a bar."""
    return None if bar is None else "reached" if reached else "MISSED"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks pca",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(parser)
    parser.add_argument("--peers", action="store_true", help="references, and installed libraries")
    args = parser.parse_args(argv)
    quick = args.quick

    times = speed(args.data_dir, quick)
    rows = [
        [
            r["n"],
            r["p"],
            r["n_jobs"],
            r["seconds"],
            r["scikit_learn_seconds"],
            r["ratio"],
            r["bar"],
            f"{100 * r['extra_memory']:.1f}",
            verdict(r["bar"], r["ratio"] <= (r["bar"] or 0.0) and r["extra_memory"] <= 0.1),
        ]
        for r in times
    ]
    headers = [
        "n",
        "p",
        "n_jobs",
        "s",
        "scikit-learn, s",
        "ratio",
        "bar",
        "extra memory, % of X",
        "",
    ]
    print_table(headers, rows, title="Time of a fit beside PCA(svd_solver='covariance_eigh')")

    scores = resumed(args.out, real)(args.data_dir, quick, args.peers)
    rows = [
        [
            r["data"],
            r["k"],
            r["epsilon"],
            r["settings"],
            float(np.mean(r["scores"])),
            min(r["scores"]),
            r["bar"],
            r["published_peer"],
            verdict(r["bar"], float(np.mean(r["scores"])) >= (r["bar"] or 0.0)),
        ]
        for r in scores
    ]
    headers = ["data", "k", "ε", "settings", "mean", "least", "bar", "published peer", ""]
    print_table(headers, rows, title="Captured variance relative to PCA, δ=1/n²")

    compare = resumed(args.out, _pca_subspaces.compare)
    shapes = _pca_subspaces.SHAPES[:1] if quick else _pca_subspaces.SHAPES
    subspaces = [record for shape in shapes for record in compare(*shape, 20 if quick else 1000)]
    keys = ("family", "n", "p", "rank", "public", "strength", "iid", "inid", "ratio", "bar")
    rows = [
        [*(r[key] for key in keys), verdict(r["bar"], r["ratio"] <= r["bar"])] for r in subspaces
    ]
    headers = [
        "family",
        "n",
        "p",
        "rank",
        "also public",
        "μ or ε",
        "iid",
        "inid",
        "ratio",
        "bar",
        "",
    ]
    print_table(headers, rows, title="Error |VV' − V*V*'| of a recovered subspace")
    for family, pairs in _pca_subspaces.PUBLISHED.items():
        ratios = ", ".join(f"{a:g}→{b:g} ({b / a:.3f})" for a, b in pairs)
        print(f"published, {family}: {ratios}")

    exact = pure(args.data_dir, quick)
    keys = ("data", "p", "k", "epsilon", *PURE_NOISES, "exponential")
    title = "Captured variance in pure privacy, centre and norm known"
    print_table(
        ["data", "p", "k", "ε", *keys[4:]], [[r[key] for key in keys] for r in exact], title=title
    )
    save_json(
        args.out,
        "pca",
        {
            "protocol": __doc__,
            "quick": quick,
            "real": scores,
            "subspaces": subspaces,
            "published_subspaces": _pca_subspaces.PUBLISHED,
            "pure": exact,
            "speed": times,
        },
    )
    return 0
