"""The benchmark of odd cells: a sample of its neighbours passes, and it notices what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benchmarks import replays as benchmark
from benchmarks._odd_records import CONTAINERS, USUAL, odd_values, tables, values_of
from benchmarks._remembered import remembered


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), remembered():
        warnings.simplefilter("ignore")
        yield


def container(name):
    (found,) = (one for one in CONTAINERS if one.name == name)
    return found


SAMPLE = [
    ("pandas, nullable", "int", "replace_one"),
    ("pandas, pyarrow", "bool", "add_remove"),
    ("polars", "text", "add_remove"),
    ("batches of frames", "int", "replace_one"),
    ("pandas, numpy types", "category", "replace_one"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "adjacency"), SAMPLE)
def test_one_odd_cell_moves_nothing_beyond_what_is_charged(name, kind, adjacency):
    tally = benchmark.measured(container(name), kind, [adjacency], every=4)
    assert tally.replayed >= 3
    assert (tally.failed, tally.unnamed) == (0, 0), tally.examples
    assert 0.0 < tally.epsilon <= benchmark.EPSILON * (1.0 + 1e-9)
    assert 0.99 < tally.share <= 1.0 + 1e-9


def test_every_kind_of_column_is_tried_in_every_container_that_can_hold_it(tmp_path):
    planned = list(benchmark.plan(quick=False))
    assert {one.name for one, _ in planned} == {one.name for one in CONTAINERS}
    total = 0
    for one, kind in planned:
        assert None in odd_values(one, kind)
        fronts = sum(not one.alone or front.alone for front in benchmark.FRONTS)
        folder = tmp_path / one.name / kind
        held = [other is not None for _, _, other in tables(one, kind, "replace_one", folder)]
        assert any(held)
        total += 2 * fronts * sum(held)
    assert total >= benchmark.FEWEST


def test_neighbours_are_alike_but_for_one_record(tmp_path):
    for adjacency, change in (("replace_one", 0), ("add_remove", 1)):
        for kind in USUAL:
            folder = tmp_path / adjacency / kind
            for odd, usual, other in tables(container("pandas, objects"), kind, adjacency, folder):
                assert len(other) == len(usual) + change
                same = len(usual) - 1 + change
                assert usual.iloc[:same].equals(other.iloc[:same])
                last = other["cell"].iloc[-1]
                assert last is odd or last == odd


def test_what_moves_by_more_than_one_record_is_noticed():
    tables_of = container("pandas, nullable").table
    values = values_of("text")
    pair = [
        benchmark.data_of(container("pandas, nullable"), benchmark.FRONTS[4], table)
        for table in (tables_of(values, "text", None), tables_of(["red"] * 240, "text", None))
    ]
    estimator = benchmark.pipeline(benchmark.FRONTS[4], "text", "cell", "replace_one")
    tally = benchmark.Tally("pandas, nullable", "text")
    benchmark.look(tally, "all records", estimator, tuple(pair), "cell")
    assert (tally.replayed, tally.failed) == (1, 1)
    assert tally.share > 2.0
    assert tally.epsilon > 2.0
    assert "more than is claimed" in tally.examples[0]


def test_a_refusal_must_name_the_column():
    tally = benchmark.Tally("pandas, nullable", "text")
    tally.refuse("one", ["Column 'cell' holds text."], "cell")
    assert (tally.refused, tally.unnamed, tally.examples) == (1, 0, [])
    tally.refuse("one", ["The input holds text."], "cell")
    assert (tally.refused, tally.unnamed) == (2, 1)
    # What takes neither of two tables says nothing of neighbours.
    estimator = benchmark.pipeline(benchmark.FRONTS[4], "text", "x0", "replace_one")
    estimator.set_params(front__categories=[["text"], ["one column more"]])
    data = (np.array([["text"]] * 240, dtype=object), np.zeros(240))
    benchmark.look(tally, "both refused", estimator, (data, data), "x0")
    assert (tally.refused, tally.replayed) == (2, 0)
