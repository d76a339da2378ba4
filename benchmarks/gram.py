"""Linear models from one release of second moments, beside private gradient descent.

Solvers: median test R2 of ten 80/20 splits, delta = 1e-6, with default settings. On California
housing no bounds are given, and private scaling is paid for; on diabetes the smallest and largest
values stand for public bounds. The bars are those of the default solver, which chooses between the
two by public facts and must not lose more than 0.005 to the better one.

Lasso: relative error of the objective (1/2n)|y - Xw|² + 0.01 |w|_1 at epsilon = 1, delta = 1/n², on
California housing with columns centred at their medians, divided by 1.25 times their mean absolute
deviations and clipped to ±3, and a centred target: constants that are taken as public for both. The
bar compares the solvers with their default settings. Beside them stands the best of a grid for
each, chosen on the private objective without charge: the radius of the rows for second moments, and
passes, clip, step, order, averaging and budget growth for descent.

Path: 100 penalties from one release, what it cost, and the error of the objective along it.

With --peers: AdaSSP and noisy gradient descent, written from their papers, and diffprivlib where it
is installed, with the smallest and largest values as bounds for all; noisy gradient descent gets
the best point of a grid on the test rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import train_test_split

from benchmarks._dp_cd_problems import Problem
from benchmarks._dp_cd_runs import Grid, mechanism_for, private_path, sweep
from benchmarks._gram_peers import (
    DIFFPRIVLIB,
    Mapped,
    adassp,
    gradient_grid,
    noisy_gradient_descent,
)
from benchmarks._kept import resumed
from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import DPCoordinateDescentRegressor, DPLassoPath, PrivacyWarning
from skdpnoise.datasets import fetch_california
from skdpnoise.kernels import SQUARED, second_moments
from skdpnoise.linear_model._tuned import choose_defaults, choose_row_norm
from skdpnoise.linear_model.solvers.coordinate import averaged
from skdpnoise.linear_model.solvers.moments import make_pseudo_data
from skdpnoise.mechanisms import calibrate, calibrate_second_moments
from skdpnoise.mechanisms.matrices import SymmetricMatrixMechanism
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import RowBounds, clipped_gradient

DELTA = 1e-6
SOLVERS = ("gram", "gradient", "auto")
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
BARS = {
    ("california", 0.1): 0.61,
    ("california", 0.2): 0.64,
    ("california", 1.0): 0.657,
    ("diabetes", 1.0): 0.34,
    ("diabetes", 5.0): 0.42,
}
TOLERATED = 0.005
LAMBDA = 0.01
PASSES = (2, 5, 10, 20, 50)
GRID = Grid(clips=(0.7, 1.0, 1.4, 2.0, 3.4, 4.8), steps=(0.4, 0.7, 1.0), growths=(1.0, 1.1))
QUICK_GRID = Grid(clips=(1.4, 3.4), steps=(0.7,), growths=(1.1,))

Array = NDArray[np.float64]


def bounds_of(X: Array, y: Array) -> dict[str, Any]:
    """Smallest and largest values, as public bounds."""
    return {
        "feature_bounds": (X.min(axis=0), X.max(axis=0)),
        "target_bounds": (y.min(), y.max()),
    }


def split_score(
    X: Array, y: Array, seed: int, epsilon: float, solver: str, **bounds: Any
) -> tuple[float, str]:
    """Return the R2 on the test rows of one split, and the solver that was used."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    model = DPCoordinateDescentRegressor(epsilon, DELTA, solver=solver, random_state=seed, **bounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(X_train, y_train)
    return model.score(X_test, y_test), model.solver_


def compare_solvers(
    name: str, X: Array, y: Array, epsilon: float, seeds: Sequence[int], bounds: dict[str, Any]
) -> dict[str, Any]:
    """Return the medians of the solvers, with the verdict on the default one."""
    runs = Parallel(n_jobs=2)(
        delayed(split_score)(X, y, seed, epsilon, solver, **bounds)
        for solver in SOLVERS
        for seed in seeds
    )
    results = [runs[k : k + len(seeds)] for k in range(0, len(runs), len(seeds))]
    medians = {
        solver: float(np.median([score for score, _ in scores]))
        for solver, scores in zip(SOLVERS, results, strict=True)
    }
    gap = max(medians.values()) - medians["auto"]
    bar = BARS.get((name, epsilon))
    reached = medians["auto"] >= (bar or -np.inf) and (name != "california" or gap <= TOLERATED)
    return {
        "data": name,
        "epsilon": epsilon,
        **medians,
        "chosen": sorted({used for _, used in results[-1]}),
        "gap": gap,
        "bar": bar,
        "reached": bool(reached),
    }


def lasso_problem(X: Array, y: Array) -> Problem:
    """Return the standardised, clipped problem and its minimum."""
    center = np.median(X, axis=0)
    Z = np.clip((X - center) / (1.25 * np.abs(X - center).mean(axis=0)), -3.0, 3.0)
    target = y - y.mean()
    start = Problem("lasso", np.asfortranarray(Z), target, "squared", LAMBDA, 0.0)
    best = Lasso(alpha=LAMBDA, fit_intercept=False, tol=1e-12, max_iter=1_000_000).fit(Z, target)
    return Problem("lasso", start.X, target, "squared", LAMBDA, 0.0, start.objective(best.coef_))


def lasso_release(
    problem: Problem, row_norm: float | None = None
) -> tuple[SymmetricMatrixMechanism, NDArray[np.int64]]:
    """Return the noise of the second moments of (X, y), and the integers it is added to."""
    p = problem.X.shape[1]
    limits = np.full(p + 1, 3.0)

    def mechanism(radius: float) -> SymmetricMatrixMechanism:
        bounds = RowBounds(p + 1, radius, columns=limits)
        return calibrate_second_moments("auto", bounds, problem.guarantee)

    if row_norm is None:
        longest = float(np.linalg.norm(limits))
        row_norm = choose_row_norm(
            p + 1, longest, lambda radius: noise_level(mechanism(radius), problem)
        )
    chosen = mechanism(row_norm)
    counts = second_moments(
        [problem.X, problem.y],
        row_grid_size=chosen.row_grid_size,
        norm=chosen.row_bounds.norm,
        columns=limits,
    )
    return chosen, counts


def noise_level(mechanism: SymmetricMatrixMechanism, problem: Problem) -> float:
    """Root mean square singular value of the noise of the features' second moments."""
    n_samples, p = problem.X.shape
    return float(np.linalg.norm(mechanism.standard_deviation[:p, :p])) / np.sqrt(p) / n_samples


def gram_errors(
    problem: Problem, seeds: Sequence[int], row_norm: float | None = None
) -> tuple[Array, float]:
    """Return the relative errors from noisy second moments, and the radius of the rows."""
    mechanism, counts = lasso_release(problem, row_norm)
    n_samples, p = problem.X.shape
    level, all_features = noise_level(mechanism, problem), np.ones(p, dtype=bool)
    errors = []
    for seed in seeds:
        noisy = mechanism.release(counts, random_words(seed)) / n_samples
        pseudo = make_pseudo_data(noisy, all_features, level)
        errors.append(problem.relative_error(pseudo.solve([LAMBDA], 1.0)[0, :p]))
    return np.array(errors), mechanism.row_bounds.norm


def descent_errors(problem: Problem, seeds: Sequence[int]) -> Array:
    """Return the relative errors of private descent with its default settings."""
    n_samples, p = problem.X.shape
    one_pass = calibrate("inid_gaussian", clipped_gradient(np.ones(p)), problem.guarantee)
    level = float(one_pass.standard_deviation.mean()) / n_samples
    auto = choose_defaults(level, SQUARED)
    mechanism = mechanism_for("spread", problem, auto.n_passes, auto.clip, auto.budget_growth)
    settings: dict[str, Any] = {"clip": auto.clip, "step": auto.relaxation, "order": "shuffled"}
    paths = (private_path(problem, mechanism, seed=seed, **settings) for seed in seeds)
    return np.array([problem.relative_error(averaged(path)) for path in paths])


def compare_lasso(X: Array, y: Array, seeds: Sequence[int], quick: bool) -> list[dict[str, Any]]:
    """Return the errors of both solvers, with default settings and with the best of a grid."""
    problem = lasso_problem(X, y)
    errors, row_norm = gram_errors(problem, seeds)
    lines = [
        _line("gram", "default", errors, f"row norm {row_norm:.3g}"),
        _line("gradient", "default", descent_errors(problem, seeds), ""),
    ]
    radii = {radius: gram_errors(problem, seeds, radius)[0] for radius in (3.0, 3.5, 4.0, 4.5, 5.0)}
    best = min(radii, key=lambda radius: radii[radius].mean())
    lines.append(_line("gram", "best of a grid", radii[best], f"row norm {best:.3g}"))
    with ThreadPoolExecutor(2) as pool:
        found = {
            n_passes: sweep(
                problem, "spread", n_passes, QUICK_GRID if quick else GRID, seeds, pool
            )["any"]
            for n_passes in ((5, 20) if quick else PASSES)
        }
    n_passes, point = min(found.items(), key=lambda item: item[1].error)
    text = f"{n_passes} passes, {point.describe()}, growth {point.growth:g}"
    lines.append(
        {"solver": "gradient", "settings": "best of a grid", "mean": point.error, "text": text}
    )
    lines[0]["reached"] = bool(lines[0]["mean"] <= 0.5 * lines[1]["mean"])
    return lines


def _line(solver: str, settings: str, errors: Array, text: str) -> dict[str, Any]:
    return {
        "solver": solver,
        "settings": settings,
        "mean": float(errors.mean()),
        "median": float(np.median(errors)),
        "text": text,
    }


def whole_path(X: Array, y: Array, seed: int) -> dict[str, Any]:
    """Return what 100 penalties cost, and how far each is from the lasso on the same columns."""
    path = DPLassoPath(1.0, DELTA, random_state=seed).fit(X, y)
    one = DPCoordinateDescentRegressor(1.0, DELTA, solver="gram", random_state=seed).fit(X, y)
    Z = path._standardised[0](X)
    center, scale = path._standardised[2:]
    target = np.clip((y - center) / scale, -3.0, 3.0)
    errors = []
    for alpha in path.alphas_[::10]:
        best = Lasso(alpha=alpha, tol=1e-10, max_iter=100_000).fit(Z, target)
        mine = path._pseudo_data.solve([alpha], 1.0)[0]
        risks = [
            0.5 * np.mean((Z @ w + b - target) ** 2) + alpha * np.abs(w).sum()
            for w, b in ((mine[:-1], mine[-1]), (best.coef_, best.intercept_))
        ]
        errors.append((float(alpha), float(risks[0] / risks[1] - 1.0)))
    return {
        "penalties": path.alphas_.size,
        "releases": [(r.label, r.n_releases) for r in path.privacy_.releases],
        "path_cost": str(path.privacy_.total),
        "one_model_cost": str(one.privacy_.total),
        "errors": errors,
        "reached": str(path.privacy_.total) == str(one.privacy_.total),
    }


def compare_peers(
    name: str, X: Array, y: Array, epsilon: float, seeds: Sequence[int], quick: bool
) -> dict[str, Any]:
    """Return the medians of ours and of the peers, all with the same public bounds."""
    mapped, bounds = Mapped(X, y), bounds_of(X, y)
    scores: dict[Any, list[float]] = {}
    for seed in seeds:
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
        Z, t = mapped.features(X_train), mapped.target(y_train)
        models = {"AdaSSP": adassp(Z, t, epsilon, DELTA, np.random.default_rng(seed))}
        for point in gradient_grid(quick):
            rng = np.random.default_rng(seed)
            models[point] = noisy_gradient_descent(Z, t, epsilon, DELTA, rng, *point)
        for key, w in models.items():
            scores.setdefault(key, []).append(mapped.score(w, X_test, y_test))
        ours = [split_score(X, y, seed, epsilon, solver, **bounds)[0] for solver in SOLVERS]
        for solver, score in zip(SOLVERS, ours, strict=True):
            scores.setdefault(solver, []).append(score)
        if DIFFPRIVLIB is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                peer = DIFFPRIVLIB(
                    epsilon=epsilon,
                    bounds_X=bounds["feature_bounds"],
                    bounds_y=bounds["target_bounds"],
                    random_state=seed,
                ).fit(X_train, y_train)
            scores.setdefault("diffprivlib", []).append(peer.score(X_test, y_test))
        plain = LinearRegression().fit(X_train, y_train).score(X_test, y_test)
        scores.setdefault("non-private", []).append(plain)
    medians = {key: float(np.median(values)) for key, values in scores.items()}
    descent = max(value for key, value in medians.items() if isinstance(key, tuple))
    named = {key: value for key, value in medians.items() if isinstance(key, str)}
    return {"data": name, "epsilon": epsilon, **named, "noisy gradient descent": descent}


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save; return 0 if every bar is reached."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks gram",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(parser)
    parser.add_argument("--peers", action="store_true", help="also run references and diffprivlib")
    args = parser.parse_args(argv)
    seeds = range(3 if args.quick else 10)
    X, y = fetch_california(data_home=args.data_dir, return_X_y=True)
    diabetes = load_diabetes(return_X_y=True)
    cases: list[tuple[str, Array, Array, float, dict[str, Any]]] = [
        ("california", X, y, epsilon, {}) for epsilon in ((0.1, 1.0) if args.quick else EPSILONS)
    ]
    cases += [("diabetes", *diabetes, epsilon, bounds_of(*diabetes)) for epsilon in (1.0, 5.0)]
    solve = resumed(args.out, compare_solvers)
    solvers = [solve(*case[:4], seeds, case[4]) for case in cases]
    headers = ["data", "epsilon", *SOLVERS, "chosen", "gap", "bar", ""]
    rows = [
        [
            r["data"],
            r["epsilon"],
            *(r[s] for s in SOLVERS),
            "/".join(r["chosen"]),
            r["gap"],
            r["bar"],
            _verdict(r["reached"]),
        ]
        for r in solvers
    ]
    print_table(headers, rows, title=f"Test R2, median of {len(seeds)} splits")

    lasso = resumed(args.out, compare_lasso)(X, y, range(5 if args.quick else 20), args.quick)
    keys = ("solver", "settings", "mean", "median", "text")
    print_table(
        [*keys[:-1], "", ""],
        [
            [
                *(line.get(key) for key in keys),
                _verdict(line["reached"]) if "reached" in line else "",
            ]
            for line in lasso
        ],
        title=f"Relative error of the lasso's objective, λ={LAMBDA:g}, ε=1, δ=1/n²",
    )

    path = whole_path(X, y, 0)
    print_table(
        ["alpha", "error of the objective, relative"],
        path["errors"],
        title=f"{path['penalties']} penalties for {path['path_cost']}; one model alone costs "
        f"{path['one_model_cost']}",
    )

    peers = []
    if args.peers:
        peers = [
            resumed(args.out, compare_peers)(name, *data, epsilon, seeds, args.quick)
            for name, data in (("california", (X, y)), ("diabetes", diabetes))
            for epsilon in (1.0, 5.0)
        ]
        headers = list(dict.fromkeys(key for record in peers for key in record))
        print_table(
            headers,
            [[record.get(key) for key in headers] for record in peers],
            title="Test R2 with the smallest and largest values as public bounds",
        )
    save_json(
        args.out,
        "gram",
        {
            "protocol": __doc__,
            "quick": args.quick,
            "delta": DELTA,
            "solvers": solvers,
            "lasso": lasso,
            "path": path,
            "peers": peers,
        },
    )
    reached = [record["reached"] for record in (*solvers, lasso[0], path)]
    print(f"{sum(reached)} of {len(reached)} bars reached")
    return 0 if all(reached) or args.quick else 1
