"""Scores and curves of rows in parts: the same bits as of all rows, and the same refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdpnoise.data import scan_batches
from skdpnoise.data.partitions import SpreadError
from skdpnoise.metrics import (
    private_accuracy_score,
    private_balanced_accuracy_score,
    private_calibration_curve,
    private_confusion_matrix,
    private_log_loss,
    private_mean_absolute_error,
    private_r2_score,
    private_roc_auc_score,
    private_roc_curve,
    private_root_mean_squared_error,
)
from skdpnoise.privacy import PrivacyGuarantee
from tests._cases import each_value, quick
from tests._same_bits import COUNTS, by_way, in_parts, source_of

N = 700
RNG = np.random.default_rng(0)
LABELS = ["cat", "dog", "emu"]
FRAME = pd.DataFrame({"label": RNG.choice(LABELS, N), "bit": RNG.integers(2, size=N)})
FRAME["said"] = FRAME["label"].where(RNG.random(N) < 0.7, "dog")
FRAME["chance"] = np.clip(RNG.normal(0.3 + 0.4 * FRAME["bit"], 0.3), 0.0, 1.0)
FRAME["y"] = RNG.normal(2.0, 3.0, N)
FRAME["found"] = FRAME["y"] + RNG.normal(size=N)
for k, share in enumerate(RNG.dirichlet(np.ones(3), N).T):
    FRAME[f"p{k}"] = share
CHANCES = ["p0", "p1", "p2"]

BOUNDS = {"target_bounds": (-2.0, 8.0)}
CALLS = {
    private_accuracy_score: ("label", "said", {}),
    private_balanced_accuracy_score: ("label", "said", {"labels": LABELS}),
    private_confusion_matrix: ("label", "said", {"labels": LABELS}),
    private_log_loss: ("label", CHANCES, {"labels": LABELS}),
    private_mean_absolute_error: ("y", "found", BOUNDS),
    private_root_mean_squared_error: ("y", "found", BOUNDS),
    private_r2_score: ("y", "found", BOUNDS),
    private_roc_auc_score: ("bit", "chance", {}),
    private_roc_curve: ("bit", "chance", {"bins": [0.2, 0.5, 0.8]}),
    private_calibration_curve: ("bit", "chance", {"n_bins": 4}),
}
NAMES = [score.__name__ for score in CALLS]


def asked(score, table, relation="replace_one", **options):
    """Return all that a score found, as text that shows every bit."""
    truth, said, terms = CALLS[score]
    guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency=relation)
    found = score(table[truth], table[said], guarantee, random_state=0, **terms, **options)
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    fields.pop("mechanism")
    return repr({name: np.asarray(value).tolist() for name, value in fields.items()})


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("score", CALLS, ids=NAMES)
def test_parts_give_the_same_bits(score, relation, tmp_path):
    expected = asked(score, FRAME, relation)
    tables = [in_parts(FRAME, n_parts) for n_parts in COUNTS]
    tables += [by_way(way, FRAME, tmp_path) for way in ("parquet", "dask frame")]
    for table in tables:
        assert asked(score, table, relation) == expected


@quick("private_root_mean_squared_error")
@pytest.mark.parametrize("score", CALLS, ids=NAMES)
def test_parts_without_rows_change_nothing(score):
    expected = asked(score, FRAME)
    assert asked(score, source_of([FRAME[:0], FRAME[:9], FRAME[9:9], FRAME[9:]])) == expected
    nothing = FRAME[:0]
    empty = scan_batches([lambda: [nothing], lambda: [nothing]])
    assert asked(score, empty, "add_remove") == asked(score, nothing, "add_remove")


def test_dask_arrays_are_scored_as_arrays_are():
    import dask.array

    arrays = {name: FRAME[name].to_numpy() for name in ("y", "found", "bit", "chance")}
    chunked = {name: dask.array.from_array(one, chunks=97) for name, one in arrays.items()}
    for score in (private_r2_score, private_roc_curve):
        assert asked(score, chunked) == asked(score, arrays)


def test_what_is_said_can_be_made_from_the_columns():
    rows = in_parts(FRAME, 7)
    made = {"label": rows["label"], "said": rows["said"].map(_upper), "y": rows["y"]}
    plain = {"label": FRAME["label"], "said": FRAME["said"].str.upper()}
    assert asked(private_accuracy_score, made) == asked(private_accuracy_score, plain)
    made["found"], plain["found"] = rows[["found"]].map(_first), FRAME["found"]
    plain["y"] = FRAME["y"]
    assert asked(private_r2_score, made) == asked(private_r2_score, plain)


def _upper(values):
    return values.str.upper()


def _first(rows):
    return rows.to_numpy()[:, 0]


def test_columns_of_other_rows_are_refused():
    rows, guarantee = in_parts(FRAME, 3), PrivacyGuarantee(1.0)
    with pytest.raises(TypeError, match="same parts"):
        private_accuracy_score(rows["label"], FRAME["said"], guarantee)
    with pytest.raises(TypeError, match="same parts"):
        private_accuracy_score(FRAME["label"], rows["said"], guarantee)
    with pytest.raises(SpreadError, match="the same rows in each part"):
        private_accuracy_score(rows["label"], rows["said"].map(_less), guarantee)
    with pytest.raises(ValueError, match=r"'y_prob'.*shape \(n_records, 3\)"):
        private_log_loss(rows["label"], rows[["p0", "p1"]], guarantee, labels=LABELS)


def _less(values):
    return values[1:]
