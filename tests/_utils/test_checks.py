"""Parameters that are refused, whatever is asked of scikit-learn, and by one wording."""

from __future__ import annotations

import ast
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context

import skdpnoise
from skdpnoise import DPStandardScaler
from skdpnoise._utils.checks import (
    check_array,
    check_count,
    check_option,
    check_order,
    check_real,
    check_type,
)
from skdpnoise.inspection import audit
from skdpnoise.privacy import PrivacyGuarantee

NO_NUMBERS = [
    True,
    False,
    np.True_,
    "1",
    b"1",
    None,
    1j,
    [1.0],
    np.array([1.0]),
    Decimal(1),
    object(),
]


@pytest.mark.slow
@given(value=st.floats() | st.integers(), low=st.integers(-3, 3), high=st.integers(-3, 3))
@settings(max_examples=300, deadline=None)
def test_a_number_passes_exactly_if_it_lies_in_the_interval(value, low, high):
    for ends in ((False, False), (False, True), (True, False), (True, True)):
        above = value >= low if ends[0] else value > low
        below = value <= high if ends[1] else value < high
        interval = {"low": low, "high": high, "low_closed": ends[0], "high_closed": ends[1]}
        if above and below:
            assert check_real("Owner", "name", value, **interval) == float(value)
        else:
            with pytest.raises(ValueError, match=r"'name' parameter of Owner must be a float"):
                check_real("Owner", "name", value, **interval)
    if isinstance(value, int):
        if low <= value <= high:
            assert check_count("Owner", "name", value, low=low, high=high) == value
        else:
            with pytest.raises(ValueError, match=rf"in the range \[{low}, {high}\]. Got {value} "):
                check_count("Owner", "name", value, low=low, high=high)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_of_the_wrong_type_and_truth_values_are_none(value):
    with pytest.raises(TypeError, match=r"'name' parameter of Owner must be a float.* of type"):
        check_real("Owner", "name", value, low=-9.0)
    with pytest.raises(TypeError, match=r"'name' parameter of Owner must be an int.* of type"):
        check_count("Owner", "name", value, low=-9)
    with pytest.raises(TypeError, match="must be a str among"):
        check_option("Owner", "name", value if value != "1" else 1, ["1"])
    with pytest.raises(TypeError, match="must be of type Fraction"):
        check_type("Owner", "name", value, Fraction)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_without_a_size_are_refused(value):
    for check in (
        lambda: check_real("Owner", "name", value, low=-np.inf),
        lambda: check_array("Owner", "name", [1.0, value]),
        lambda: check_array("Owner", "name", np.array(value), ()),
    ):
        with pytest.raises(ValueError, match="'name' parameter of Owner"):
            check()
    with pytest.raises(TypeError, match="'name' parameter of Owner must be an int"):
        check_count("Owner", "name", value)


@pytest.mark.parametrize(
    "value",
    [10**400, -(10**400), 10**5000, Fraction(10**400)],
    ids=["large", "below zero", "too long to print", "fraction"],
)
def test_numbers_beyond_double_precision_are_refused_and_not_shown(value):
    for check in (lambda: check_real("Owner", "scale", value), lambda: PrivacyGuarantee(value)):
        with pytest.raises(
            ValueError, match=r"must be a float in the range.*beyond double"
        ) as caught:
            check()
        assert "000" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_arrays_are_not_read_under_their_masks():
    with pytest.raises(TypeError, match="masked array"):
        check_array("Owner", "weights", np.ma.array([1.0, 2.0], mask=[0, 1]))


def test_options_and_classes_are_exact():
    class Half(Fraction):
        pass

    check_option("Owner", "name", "a", ["a", "b"])
    check_type("Owner", "name", Fraction(1, 2), Fraction)
    with pytest.raises(ValueError, match=r"must be a str among \['a', 'b'\]. Got 'A' instead"):
        check_option("Owner", "name", "A", ["a", "b"])
    with pytest.raises(TypeError, match=r"of type Fraction or int. Got an object of type Half"):
        check_type("Owner", "name", Half(1, 2), Fraction, int)


@pytest.mark.parametrize(
    "values", [["1.0"], [True], [1j], [None], np.array(["2020"], "M8[D]"), [object()]]
)
def test_arrays_of_anything_but_real_numbers_are_of_the_wrong_type(values):
    with pytest.raises(TypeError, match=r"'name' parameter of Owner must be an array.* of dtype"):
        check_array("Owner", "name", values)


@pytest.mark.parametrize(
    ("shape", "shapes", "fits"),
    [
        ((), (), False),
        ((0,), (), False),
        ((3,), (), True),
        ((3, 1), (), False),
        ((), ((), (3,)), True),
        ((3,), ((), (3,)), True),
        ((2,), ((), (3,)), False),
        ((1, 3), ((), (3,)), False),
        ((0,), ((0,),), True),
    ],
)
def test_an_array_has_one_of_the_shapes(shape, shapes, fits):
    given = np.ones(shape, dtype=np.float32)
    if fits:
        found = check_array("Owner", "name", given, *shapes)
        assert (found.dtype, found.shape) == (np.float64, shape)
        assert not np.shares_memory(found, given)
        return
    shown = re.escape(" or ".join(map(str, shapes)) or "(n,) with n > 0")
    with pytest.raises(ValueError, match=rf"of shape {shown}. Got shape {re.escape(str(shape))}"):
        check_array("Owner", "name", given, *shapes)


@pytest.mark.parametrize(
    ("sign", "wrong"), [("positive", [0.0, -0.0, -5e-324]), ("non-negative", [-5e-324]), ("", [])]
)
def test_entries_have_the_sign_that_is_asked_for(sign, wrong):
    for value in [5e-324, 0.0, -0.0, -5e-324]:
        if value in wrong:
            with pytest.raises(ValueError, match=rf"{sign} finite numbers .* Leave it out."):
                check_array("Owner", "name", [1.0, value], sign=sign, remedy="Leave it out.")
        else:
            assert check_array("Owner", "name", [1.0, value], sign=sign)[1] == value
    given = np.array([1.0])
    assert not np.shares_memory(check_array("Owner", "name", given), given)


@pytest.mark.parametrize("high", [1.0, 0.5, np.nan, [2.0, 1.0], [2.0, np.nan]])
def test_empty_intervals_are_refused(high):
    with pytest.raises(ValueError, match=r"'low' parameter of Owner.* low < high .* swapped"):
        check_order("Owner", "low", 1.0, high)


def test_no_setting_of_scikit_learn_switches_a_check_off():
    with config_context(skip_parameter_validation=True, assume_finite=True):
        with pytest.raises(ValueError, match="'epsilon'"):
            PrivacyGuarantee(-1.0)
        with pytest.raises(ValueError, match="'epsilon'"):
            DPStandardScaler(epsilon=-1.0).fit(np.ones((9, 1)))
        with pytest.raises(ValueError, match="'n_fits'"):
            audit(DPStandardScaler(), np.ones((9, 1)), n_fits=0)


# What the checks, or the constraints of an estimator, say as well.
SAID = re.compile(
    r"must be (?:a str among|an int in|an? (?:int|bool|float|number)\.|of type)"
    r"|below 'high'|low < high in"
)


def said_by_hand(source: str) -> list[str]:
    """Return the texts of a file in which it says by hand what a check says."""
    texts = [
        "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        if isinstance(node, ast.JoinedStr)
        else node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]
    return [text for text in texts if SAID.search(text)]


@pytest.mark.slow
def test_what_a_check_says_no_other_file_says_by_hand():
    package = Path(skdpnoise.__file__).parent
    found = {
        path.relative_to(package).as_posix(): texts
        for path in package.rglob("*.py")
        if (texts := said_by_hand(path.read_text("utf-8"))) and path.name != "checks.py"
    }
    assert found == {}
    assert said_by_hand('raise ValueError(f"The {name!r} parameter must be an int. Got {x!r}.")')
    assert said_by_hand("'The unit parameter must be a str among a, b'")
