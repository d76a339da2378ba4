"""Every display draws its numbers where it is told to, again and again, and says what is wrong."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skdpnoise import plotting
from skdpnoise.privacy import PrivacyGuarantee

LINE = [0.25, 0.5, 1.0]
ROWS = {"smallest": LINE, "largest": LINE}
NUMBERS = {
    "AllocationDisplay": {**ROWS, "share": [0.2, 0.3, 0.5], "share_of": "ε", "sensitivity": LINE},
    "AuditDisplay": {
        "names": ["a", "b"],
        "found": [0.5, 2.0],
        "claimed": [1.0, 1.0],
        "most": [np.nan, 5.0],
        "passed": [True, False],
    },
    "GroupsDisplay": {
        "group": ["a", "b", "c"],
        "n_parameters": LINE,
        "clip": LINE,
        "noise": LINE,
        "signal_to_noise": LINE,
    },
    "LedgerDisplay": {
        "time": np.array(["2026-05-01", "2026-05-02", "2026-05-03"], dtype="datetime64[us]"),
        "spent": LINE,
        "basic": LINE,
        "guarantee": PrivacyGuarantee(2.0, 1e-6),
    },
    "NoiseDisplay": {**ROWS, "values": [[-1.0, 1.0]], "densities": [LINE[:2]], "labels": ["a"]},
    "PlanDisplay": {"epsilon": LINE, "median": LINE, "lowest": LINE, "highest": LINE},
    "PrivacyLossDisplay": {"epsilon": LINE, "delta": [LINE, LINE], "names": ["a", "b"]},
    "PrivateCalibrationDisplay": {"prob_true": LINE, "prob_pred": LINE, "standard_error": LINE},
    "PrivateRocCurveDisplay": {
        "fpr": LINE,
        "tpr": LINE,
        "fpr_standard_error": LINE,
        "tpr_standard_error": LINE,
    },
}
every = pytest.mark.parametrize("name", plotting.__all__)


def display_of(display, **more):
    return getattr(plotting, display)(**NUMBERS[display], **more)


def titles_of(ax):
    return {ax.get_title(loc=loc) for loc in ("left", "center")} - {""}


@every
def test_it_makes_a_figure_of_its_own_once(name):
    display = display_of(name)
    assert display.plot() is display
    axes = np.ravel(display.ax_)
    assert all(isinstance(ax, plt.Axes) and ax.has_data() for ax in axes)
    assert {ax.figure for ax in axes} == {display.figure_}
    assert plt.get_fignums() == [display.figure_.number]
    first = [line.get_xydata() for line in axes[0].lines]
    assert display.plot().figure_.number != plt.get_fignums()[0]
    again = [line.get_xydata() for line in np.ravel(display.ax_)[0].lines]
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


@every
def test_it_draws_on_the_axes_that_are_given_under_the_name_that_is_given(name):
    display = display_of(name).plot()
    count = np.size(display.ax_)
    figure, axes = plt.subplots(count, squeeze=False)
    display.plot(axes[0, 0] if count == 1 else axes.ravel(), name="mine", alpha=0.5)
    assert display.figure_ is figure
    assert list(np.ravel(display.ax_)) == list(axes.ravel())
    assert titles_of(axes[0, 0]) == {"mine"}


@every
def test_what_it_draws_takes_its_options(name):
    ax = np.ravel(display_of(name).plot(alpha=0.5).ax_)[0]
    assert 0.5 in [one.get_alpha() for one in (*ax.lines, *ax.patches)]


@every
def test_its_own_name_is_the_title_where_none_is_given(name):
    assert titles_of(np.ravel(display_of(name, name="own").plot().ax_)[0]) == {"own"}


@every
def test_what_is_no_axes_is_named(name):
    for wrong in ("left", 3, ["left"]):
        with pytest.raises((TypeError, ValueError), match=f"'ax' parameter of {name}.plot must be"):
            display_of(name).plot(wrong)
    assert plt.get_fignums() == []


@every
def test_without_matplotlib_the_error_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "skdpnoise\[plot\]"'):
        display_of(name).plot()
