"""Text and numbers are never compared in silence, whatever holds them; no odd record decides."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdpnoise import metrics
from skdpnoise.data import scan_batches
from skdpnoise.privacy import PrivacyGuarantee
from tests._cases import each_value, quick

N = 60
RNG = np.random.default_rng(0)
BITS = RNG.integers(2, size=N)
SAID = np.where(RNG.random(N) < 0.8, BITS, 1 - BITS)
CHANCES = np.where(SAID == 1, 0.75, 0.25)
BOTH, BOUNDS = {"labels": [0, 1]}, {"target_bounds": (0.0, 1.0)}
# Every score and curve, with what is said of the records.
CALLS = {
    "private_accuracy_score": (SAID, {}),
    "private_balanced_accuracy_score": (SAID, BOTH),
    "private_confusion_matrix": (SAID, BOTH),
    "private_log_loss": (np.column_stack([1.0 - CHANCES, CHANCES]), BOTH),
    "private_mean_absolute_error": (SAID, BOUNDS),
    "private_root_mean_squared_error": (SAID, BOUNDS),
    "private_r2_score": (SAID, BOUNDS),
    "private_roc_auc_score": (CHANCES, {}),
    "private_roc_curve": (CHANCES, {"bins": [0.5]}),
    "private_calibration_curve": (CHANCES, {"n_bins": 2}),
}
# The same values in other containers, and others that cannot be compared with them.
SAME = {
    "floats": lambda one: one.astype(float),
    "objects": lambda one: one.astype(object),
    "lists": lambda one: one.tolist(),
    "nullable": lambda one: pd.Series(one).convert_dtypes() if one.ndim == 1 else pd.DataFrame(one),
    "series of objects": lambda one: pd.Series(one, dtype=object) if one.ndim == 1 else one,
    "polars": lambda one: pl.Series(one) if one.ndim == 1 else pl.DataFrame(one),
    "Arrow": lambda one: pa.array(one) if one.ndim == 1 else one,
    "Arrow in chunks": lambda one: pa.chunked_array([one]) if one.ndim == 1 else one,
}


def as_text(one):
    return one.astype(str).astype(object)


TEXT = {
    "text": lambda one: one.astype(str),
    "objects of text": as_text,
    "lists of text": lambda one: as_text(one).tolist(),
    "series of text": lambda one: pd.DataFrame(as_text(one)).squeeze(axis=1),
    "categories of text": lambda one: pd.DataFrame(as_text(one)).astype("category").squeeze(axis=1),
    "text of polars": lambda one: (
        pl.Series(as_text(one)) if one.ndim == 1 else pl.DataFrame(one.astype(str))
    ),
    "text of Arrow": lambda one: pa.array(as_text(one)) if one.ndim == 1 else one.astype(str),
    "text but for one": lambda one: np.concatenate([as_text(one[:-1]), one[-1:].astype(object)]),
}
OTHER = {
    "dates": lambda one: one.astype(int).astype("M8[D]"),
    "objects of dates": lambda one: one.astype(int).astype("M8[D]").astype(object),
    "durations": lambda one: one.astype(int).astype("m8[s]"),
}
every_score = pytest.mark.parametrize("name", CALLS)


def numbers_of(found):
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    fields.pop("mechanism")
    return repr({name: np.asarray(value).tolist() for name, value in fields.items()})


def asked(name, truth, said):
    score, terms = getattr(metrics, name), CALLS[name][1]
    return numbers_of(score(truth, said, PrivacyGuarantee(2.0), random_state=0, **terms))


def test_every_score_and_curve_is_in_the_list():
    assert set(CALLS) == {name for name in metrics.__all__ if name.startswith("private_")}


@quick("0-private_roc_curve", "0-private_accuracy_score", "0-private_mean_absolute_error")
@each_value(1)
@every_score
@pytest.mark.parametrize("place", [0, 1])
def test_another_container_gives_the_same_score_and_another_kind_is_refused(name, place):
    plain = [BITS, CALLS[name][0]]
    expected = asked(name, *plain)
    for change in SAME.values():
        given = [*plain]
        given[place] = change(plain[place])
        assert asked(name, *given) == expected
    for change in (TEXT | OTHER).values():
        given = [*plain]
        given[place] = change(plain[place])
        with pytest.raises(TypeError, match=r"'y_.*Got"):
            asked(name, *given)


@every_score
def test_both_as_objects_of_unlike_kinds_are_refused_with_a_conversion_that_works(name):
    truth, said = BITS.astype(object), CALLS[name][0].astype(object)
    expected = asked(name, truth, said)
    for place in (0, 1):
        given = [truth, said]
        given[place] = as_text(given[place])
        with pytest.raises(TypeError, match="Convert it first") as caught:
            asked(name, *given)
        error = str(caught.value)
        which = 0 if "'y_true'" in error else 1
        remedy = error.partition("as in ")[2].removesuffix(".")
        names = dict.fromkeys(("y_true", "y_pred", "y_prob", "y_score"), given[which])
        given[which] = eval(remedy, {"numpy": np, **names})
        assert asked(name, *given) == expected


@quick(
    "3.5-private_confusion_matrix",
    "odd4-private_mean_absolute_error",
    "x-private_r2_score",
    "x-private_roc_curve",
)
@each_value(1)
@every_score
@pytest.mark.parametrize("odd", ["x", None, 3.5, b"x", np.datetime64("2020-01-01")])
def test_one_odd_record_decides_no_refusal(name, odd):
    for place in (0, 1):
        given = [BITS.astype(object), CALLS[name][0].astype(object)]
        column = given[place] if given[place].ndim == 1 else given[place][:, 0]
        for share in (0.0, 0.25):  # also where others are odd already
            column[: int(share * N)] = "x"
            kept = column[-1]
            for last in (kept, odd, kept):
                column[-1] = last
                assert asked(name, *given)


@pytest.mark.usefixtures("the_same_words")
def test_labels_of_several_kinds_and_bytes_are_compared_and_dates_are_not():
    guarantee, labels = PrivacyGuarantee(1e6), [1, "1"]
    truth, said = [1] * 3 + ["1"] * 5, ["1"] * 2 + [1] * 6
    found = metrics.private_confusion_matrix(truth, said, guarantee, labels=labels)
    assert found.value.round().tolist() == [[1.0, 2.0], [5.0, 0.0]]
    days = np.arange(40).astype("M8[D]")
    for given in (days, days.astype(object)):  # of which none would be equal
        with pytest.raises(TypeError, match=r"'y_true'.*numbers.*Got objects"):
            metrics.private_accuracy_score(given, given, guarantee)
    bytes_ = np.array([b"a", b"b"] * 20)
    assert float(metrics.private_accuracy_score(bytes_, bytes_, guarantee)) > 0.99


@quick(
    "private_accuracy_score",
    "private_r2_score",
    "private_roc_curve",
    "private_calibration_curve",
    "private_balanced_accuracy_score",
)
@every_score
def test_kinds_are_those_of_all_parts_together(name):
    said = CALLS[name][0]
    columns = ["s"] if said.ndim == 1 else ["p", "s"]
    frame = pd.DataFrame(said.reshape(N, -1), columns=columns).astype(object)
    frame.insert(0, "truth", BITS.astype(object))
    which = "s" if said.ndim == 1 else columns

    def parts(table):  # of which one has a single row
        return scan_batches([lambda: [table[:1]], lambda: [table[1:40], table[40:]]])

    expected = asked(name, frame["truth"], frame[which])
    rows = parts(frame)
    assert asked(name, rows["truth"], rows[which]) == expected
    odd = frame.copy()
    odd.loc[0, "truth"] = "x"
    rows = parts(odd)
    assert asked(name, rows["truth"], rows[which]) == asked(name, odd["truth"], odd[which])
    for column in ("truth", "s"):
        rows = parts(frame.assign(**{column: frame[column].astype(str).astype(object)}))
        with pytest.raises(TypeError, match="'y_"):
            asked(name, rows["truth"], rows[which])
