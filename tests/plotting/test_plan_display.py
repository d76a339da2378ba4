"""The display of a plan draws what the plan says, where it is told to."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skdpnoise import DPLogisticCD, DPStandardScaler
from skdpnoise.inspection import PrivacyPlan, SimulatedScore
from skdpnoise.plotting import PlanDisplay
from skdpnoise.privacy import PrivacyGuarantee

SCORES = (
    SimulatedScore(0.1, (-1e6, 0.2, 0.3)),
    SimulatedScore(1.0, (0.5, 0.6, 0.7)),
    SimulatedScore(10.0, (0.7, 0.75, 0.8)),
)
FACTS = {"best": 0.9, "signal": 0.5, "n_fits": 3, "affordable": 0.25}
PLAN = PrivacyPlan(
    "Example", PrivacyGuarantee(1.0), 2_000, 3, (), "ε", (), (), "R²", SCORES, **FACTS
)


def test_lines_are_at_the_numbers_of_the_plan():
    display = PlanDisplay.from_plan(PLAN)
    assert display.median_.get_xdata().tolist() == [0.1, 1.0, 10.0]
    assert display.median_.get_ydata().tolist() == [0.2, 0.6, 0.75]
    (path,) = display.range_.get_paths()
    assert {0.3, 0.5, 0.7, 0.8, -1e6} <= set(path.vertices[:, 1].tolist())
    assert display.best_.get_ydata() == [0.9, 0.9]
    assert display.asked_.get_xdata() == [1.0, 1.0]
    assert display.affordable_.get_xdata() == [0.25, 0.25]
    ax = display.ax_
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylabel()) == ("log", "ε", "R², simulated")
    assert ax.get_title() == "Example, 2,000 rows of 3 columns"
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [
        "median of the simulated fits",
        "all of them",
        "best possible: 0.9",
        "asked for: ε = 1",
        "the ledger covers ε = 0.25",
    ]


def test_a_fit_far_off_does_not_hide_the_others():
    low, high = PlanDisplay.from_plan(PLAN).ax_.get_ylim()
    assert -1.0 < low < 0.2
    assert 0.9 < high < 1.1


def test_it_draws_where_it_is_told_to_and_marks_what_there_is():
    _, ax = plt.subplots()
    display = PlanDisplay(
        epsilon=[1.0, 2.0], median=[0.5, 0.5], lowest=[0.5, 0.5], highest=[0.5, 1]
    )
    display.plot(ax, name="mine", color="red")
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert (display.best_, display.asked_, display.affordable_) == (None, None, None)
    assert (ax.get_title(), ax.get_ylabel()) == ("mine", "score, simulated")
    assert display.median_.get_color() == "red"
    assert np.allclose(display.range_.get_facecolor()[0, :3], [1.0, 0.0, 0.0])


def test_an_estimator_is_planned_and_drawn():
    options = {"epsilons": [0.5], "n_fits": 2, "line_kwargs": {"marker": "x"}}
    display = PlanDisplay.from_estimator(DPLogisticCD(), 500, ["a", "b"], **options)
    assert display.median_.get_xdata().tolist() == [0.5, 1.0]
    assert display.median_.get_marker() == "x"
    assert display.ax_.get_ylabel() == "accuracy, simulated"


def test_what_has_no_scores_is_refused():
    with pytest.raises(ValueError, match="DPStandardScaler predicts nothing"):
        PlanDisplay.from_estimator(DPStandardScaler(), 500, 2)
    with pytest.raises(TypeError, match=r"'plan' parameter of PlanDisplay\.from_plan"):
        PlanDisplay.from_plan(0.5)
