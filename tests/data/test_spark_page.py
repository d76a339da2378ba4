"""The code for Spark on its page gives the bits of a fit in memory, with a stand-in for an RDD."""

from __future__ import annotations

import pickle
import re
from itertools import pairwise
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPLogisticCD, DPRidge, DPStandardScaler
from skdpnoise.data.partitions import SpreadError
from tests._same_bits import differing
from tests.data._seen import SECRET, refused

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how_to" / "spark.md"
N, CUTS = 1500, [0, 400, 400, 1100, 1500]  # one partition is empty
FRAME = pd.DataFrame(
    np.random.default_rng(0).normal(size=(N, 3)) @ np.array([[1, 0, 1], [0, 2, 0], [0, 0, 0.5]]),
    columns=["a", "b", "y"],
)
BOUNDS = {"feature_bounds": (-8.0, 8.0), "random_state": 0}


@pytest.fixture(scope="module")
def page():
    """What the first block of code on the page defines, with small batches."""
    names = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)[1], names)
    names["BATCH_ROWS"] = 130
    return names


class StandIn:
    """Looks like a frame of Spark with an RDD, as far as the page asks."""

    def __init__(self, frame, change=lambda found: found):
        self.frame, self.columns, self.change = frame, list(frame), change
        self.rdd = self

    def getNumPartitions(self):
        return len(CUTS) - 1

    def count(self):
        return len(self.frame)

    def mapPartitionsWithIndex(self, function):
        self.function = pickle.loads(cloudpickle.dumps(function))
        return self

    def collect(self):
        found = []
        for part, (begin, end) in enumerate(pairwise(CUTS)):
            rows = self.frame[begin:end].itertuples(index=False)
            found += pickle.loads(pickle.dumps(list(self.function(part, rows))))
        return self.change(found)


MODELS = {
    "ridge": DPRidge(target_bounds=(-9.0, 9.0), **BOUNDS),
    "ridge without bounds": DPRidge(random_state=0),
    "logistic": DPLogisticCD(n_passes=3, **BOUNDS),
    "scaler": DPStandardScaler(random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_a_fit_over_partitions_has_the_bits_of_one_in_memory(page, model):
    from sklearn.base import clone

    X, y = FRAME[["a", "b"]], FRAME["y"]
    rows = page["rows_of"](StandIn(FRAME))
    assert (rows.shape, rows.columns) == ((N, 3), ("a", "b", "y"))
    target = rows["y"]
    if isinstance(model, DPLogisticCD):
        y, target = y > 0.0, target.map(lambda column: column > 0.0)
    one, other = clone(model).fit(X, y), clone(model).fit(rows.drop("y"), target)
    assert differing(one, other) == []


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda found: found[1:], lambda found: [*found, found[0]]])
def test_a_partition_that_is_lost_or_there_twice_is_refused(page, change):
    frame = StandIn(FRAME)
    rows = page["rows_of"](frame)
    labels = rows["y"].map(lambda column: column > 0.0)

    def changed(found):
        return found if not hasattr(found[0], "begin") else change(found)

    frame.change = changed
    with pytest.raises(SpreadError, match="lost"):
        DPLogisticCD(n_passes=3, **BOUNDS).fit(rows.drop("y"), labels)


def test_errors_on_executors_show_no_value(page):
    def failing(column):
        raise ValueError(SECRET)

    rows = page["rows_of"](StandIn(FRAME))
    model = DPLogisticCD(n_passes=3, **BOUNDS)
    assert "ValueError in part 0" in refused(model.fit, rows.drop("y"), rows["y"].map(failing))
