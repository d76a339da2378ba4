"""Kinds of single values, of categories, and of columns of objects."""

import datetime

import numpy as np
import pandas as pd
import pytest

from skdpnoise.data.cells import kinds_of
from skdpnoise.data.fitted_kinds import (
    FittedColumns,
    as_fitted,
    differing,
    kind_of_labels,
)
from skdpnoise.data.kinds import Kind

UTC = datetime.UTC


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ([1, 2.5], "number"),
        ([True, 2], "number"),
        ([True, False], "boolean"),
        ([np.nan], None),
        (["a", 1], None),
    ],
)
def test_categories_of_one_kind_say_what_a_column_must_be(labels, name):
    assert kind_of_labels(labels) == (None if name is None else Kind(name))


STRANGERS = {
    "number": ["1", np.timedelta64(1, "s"), datetime.timedelta(1), datetime.date(2024, 1, 1), 1j],
    "text": [1, True, b"a", datetime.date(2024, 1, 1)],
    "date": [1, "2024-01-01", datetime.datetime(2024, 1, 1, tzinfo=UTC), np.timedelta64(1, "s")],
}
KNOWN = {
    "number": [1, 2.5, True, np.float32(1.0), None, np.nan],
    "text": ["a", np.str_("b"), None, np.nan, pd.NA],
    "date": [datetime.date(2024, 1, 1), pd.Timestamp(0), pd.Period("2024"), np.datetime64("NaT")],
}


def _column(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return pd.DataFrame({"a": pd.Series(column, dtype=object)})


@pytest.mark.parametrize("name", KNOWN)
def test_one_stranger_among_objects_is_refused_and_named_by_its_column_alone(name):
    frame = _column(KNOWN[name])
    expected = [Kind(name)]
    assert as_fitted("Test", frame, differing(expected, kinds_of(frame))) is frame
    for stranger in STRANGERS[name]:
        with pytest.raises(TypeError, match=r"in column 'a' of X, as in fit") as caught:
            strange = _column([*KNOWN[name], stranger])
            as_fitted("Test", strange, differing(expected, kinds_of(strange)))
        assert "2024" not in str(caught.value)


def test_names_of_a_frame_say_which_column_is_which():
    frame = pd.DataFrame({"a": [1.0], "b": ["x"]})
    columns = FittedColumns(tuple(frame), kinds_of(frame))
    assert columns.read("Test", frame[["b", "a"]]).columns.tolist() == ["b", "a"]
    columns.check("Test", frame.to_numpy(dtype=object))
    for other in (frame.rename(columns={"a": "b", "b": "a"}), np.array([["1", "x"]])):
        with pytest.raises(TypeError, match="Test needs"):
            columns.check("Test", other)


@pytest.mark.parametrize("names", [[0, 1], [("a", 1), ("b", 2)], ["a", 1]], ids=str)
def test_another_order_of_columns_whose_names_are_no_text_is_refused(names):
    frame = pd.DataFrame([[1.0, 2.0]], columns=pd.Index(names))
    columns = FittedColumns(tuple(frame), kinds_of(frame))
    assert columns.read("Test", frame) is frame
    assert columns.read("Test", frame.set_axis(["c", "d"], axis=1)).shape == (1, 2)
    with pytest.raises(ValueError, match=r"in the order of the fit.*X_of_the_fit\.columns"):
        columns.read("Test", frame.iloc[:, ::-1])
