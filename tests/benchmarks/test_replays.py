"""The benchmark of odd cells: a sample of its neighbours passes, and it notices what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from benchmarks import replays as benchmark
from benchmarks._odd_records import (
    CONTAINERS,
    PLACES,
    USUAL,
    beside,
    odd_values,
    place_of,
    tables,
    values_of,
)
from benchmarks._remembered import remembered
from skdpnoise import DPOneHotEncoder
from skdpnoise.inspection.auditing._neighbours import Neighbours
from tests._cases import each_value


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
    fronts = benchmark.FRONTS[3::2]
    tally = benchmark.measured(container(name), kind, [adjacency], fronts=fronts)
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
        total += 2 * fronts * sum(held)  # every front has its turn in one of the places
    assert total >= benchmark.FEWEST


@each_value(1)
@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_neighbours_are_alike_but_for_one_record(tmp_path, adjacency, where):
    for kind in USUAL:
        found = tables(container("pandas, objects"), kind, adjacency, tmp_path / kind, where)
        for odd, (usual, fewer), (other, others) in found:
            place = place_of(where, len(other))
            assert place == {"first": 0, "middle": 120, "last": len(other) - 1}[where]
            rest = usual.drop(index=place) if adjacency == "replace_one" else usual
            assert rest.equals(other.drop(index=place).set_index(rest.index))
            assert (fewer, others) == (usual["beside"].tolist(), other["beside"].tolist())
            changed = other["cell"].iloc[place]
            assert changed is odd or changed == odd


class FirstTwice(DPOneHotEncoder):
    """Counts the first record twice."""

    def fit(self, X, y=None):
        return super().fit(pd.concat([X.iloc[:1], X], ignore_index=True))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_record_that_counts_twice_is_found_in_its_place_and_not_at_the_end(adjacency):
    planted = benchmark.Front("twice", lambda values, name: FirstTwice(), alone=True)
    settings = container("pandas, numpy types"), "text", [adjacency]
    found = benchmark.measured(*settings, places=["first"], fronts=[planted])
    assert found.failed > 0
    assert found.share > 1.9
    assert "in the first row" in found.examples[0]
    assert benchmark.measured(*settings, places=["last"], fronts=[planted]).failed == 0
    assert benchmark.measured(*settings, fronts=[planted]).failed > 0


def test_what_moves_by_more_than_one_record_is_noticed():
    others = beside(240)
    pair = [
        benchmark.data_of(
            benchmark.FRONTS[4],
            container("pandas, nullable").table(values, others, "text", None),
            others,
        )
        for values in (values_of("text"), ["red"] * 240)
    ]
    estimator = benchmark.pipeline(benchmark.FRONTS[4], "text", "cell", "replace_one")
    tally = benchmark.Tally("pandas, nullable", "text")
    benchmark.look(tally, estimator, Neighbours("all records", *pair), "cell")
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
    benchmark.look(tally, estimator, Neighbours("both refused", data, data), "x0")
    assert (tally.refused, tally.replayed) == (2, 0)
