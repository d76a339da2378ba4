"""What is measured of rows past one machine, on few of them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import scale, soak
from skdpnoise.data import scan_parquet


def test_the_exponent_is_the_power_of_the_rows():
    rows = np.array([1e5, 1e6, 1e7])
    assert scale.exponent(rows, 3e-7 * rows) == pytest.approx(1.0)
    assert scale.exponent(rows, 1e-9 * rows**1.2) == pytest.approx(1.2)


def measured(n, seconds, ratio, memory):
    return {
        "model": "ridge",
        "n": n,
        "seconds": seconds,
        "out of core": ratio,
        "memory above imports": memory,
    }


def test_time_is_judged_at_the_most_rows_and_memory_anywhere():
    found = scale.judged([measured(1000, 1.0, 9.0, 70.0), measured(2000, 2.0, 1.2, 60.0)])
    assert [(what, round(figure, 9)) for _, what, figure, _ in found] == [
        ("exponent", 1.0),
        ("out of core", 1.2),
        ("memory above imports, MB", 70.0),
    ]


def test_a_file_has_so_many_rows_and_passes_are_counted_by_what_they_read(tmp_path):
    files = scale.write(tmp_path / "rows.parquet", 3000)
    rows = scan_parquet(files)
    assert rows.shape == (3000, scale.N_FEATURES + 1)
    assert scale.plain(files, ["y"]) > 0.0
    with scale.counted_passes() as passes:
        scale.models()["scaler"](rows.drop("y"), rows["y"])
    assert passes.keys() == {frozenset({"X"})}
    assert passes[frozenset({"X"})] > 2
    with scale.counted_passes() as more:
        pass
    assert not more


def test_all_models_that_are_named_are_there():
    assert tuple(scale.models()) == scale.MODELS


def test_a_plan_is_bound_by_workers_or_by_what_starts_their_tasks():
    few = scale.planned(3, 1e-6, 0.0, 10**9)
    assert few["parts"] == 1000
    # One part of a million rows for each worker, and four levels of sums.
    assert few["seconds"] == pytest.approx(3 * (1.0 + 4 * scale.HOP))
    slow = scale.planned(3, 1e-6, 0.01, 10**9)
    assert slow["seconds"] == pytest.approx(3 * (10.0 + 4 * scale.HOP))
    assert slow["of workers"] == pytest.approx(3.0)


def test_numbers_of_a_fit_are_compared_by_name():
    model = soak.estimators(None)[0].set_params(random_state=0)
    table = soak.chunk(0)
    model.fit(table[:, :-1], (table[:, -1] > 0.0).astype(int))
    assert {"coef_", "intercept_"} <= soak.fitted(model).keys()
