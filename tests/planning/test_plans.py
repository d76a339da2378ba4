"""What a plan says in words, numbers and HTML."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from skdpnoise.inspection import PlannedStage, PrivacyPlan, SimulatedScore
from skdpnoise.ledger import Release
from skdpnoise.privacy import PrivacyGuarantee, PureLoss

RELEASE = Release("counts", "iid_laplace", 2, 10, (2.0, 3.0), PureLoss(1.0))
PLAN = PrivacyPlan(
    "Example",
    PrivacyGuarantee(1.0),
    12_345,
    10,
    (PlannedStage(RELEASE, 1.0, 2.0),),
    "ε",
    (("a <b>", 0.5),),
    ("little is left",),
    "accuracy",
    (
        SimulatedScore(0.1, (0.5, 0.5)),
        SimulatedScore(1.0, (0.7, 0.9)),
        SimulatedScore(10.0, (0.9, 0.9)),
    ),
    best=0.95,
    signal=0.25,
    n_fits=2,
    affordable=0.125,
)


def test_all_is_said_in_words():
    assert str(PLAN).splitlines() == [
        "Plan of Example: 12,345 rows of 10 columns, (epsilon=1, delta=0)-differential privacy, "
        "replace_one",
        "  counts: 100 % of ε, 2 x 10, iid_laplace, scale 2 to 3, as large as 2 records",
        "  hidden by noise: a <b> (50 %), in that share of 2 fits",
        "  accuracy at epsilon=0.1: 0.500 (0.500 to 0.500)",
        "  accuracy at epsilon=1: 0.800 (0.700 to 0.900)",
        "  accuracy at epsilon=10: 0.900 (0.900 to 0.900)",
        "  best possible accuracy: 0.950",
        "  largest epsilon that the ledger covers: 0.125",
        "  warning: little is left",
        "  what this is: a simulation: made-up records with independent columns, of which a linear "
        "model explains the share signal=0.25. No private record was read and nothing was charged. "
        "Real scores differ.",
    ]
    assert repr(PLAN).startswith("<PrivacyPlan of Example: 12,345 rows")
    many = replace(PLAN, hidden=tuple((f"c{j}", 1.0) for j in range(20)))
    assert "c7 (100 %) and 12 more, in that share" in str(many)


def test_names_are_escaped_in_html_and_json_has_all_numbers():
    html = PLAN._repr_html_()
    assert "a &lt;b&gt;" in html
    assert "<b>" in html
    found = json.loads(json.dumps(PLAN.to_dict(), allow_nan=False))
    assert found["stages"][0]["scale"] == [2.0, 3.0]
    assert found["scores"][1] == {"epsilon": 1.0, "values": [0.7, 0.9]}
    assert found["hidden"] == {"a <b>": 0.5}
    assert found["affordable"] == 0.125


@pytest.mark.parametrize(
    ("score", "epsilon"), [(0.2, 0.1), (0.5, 0.1), (0.65, 10**-0.5), (0.8, 1.0), (0.9, 10.0)]
)
def test_epsilon_for_joins_the_medians_by_lines(score, epsilon):
    assert PLAN.epsilon_for(score) == pytest.approx(epsilon)


def test_scores_that_fall_by_chance_are_levelled_and_what_is_not_reached_is_an_error():
    scores = tuple(SimulatedScore(e, (s,)) for e, s in [(0.1, 0.4), (1.0, 0.8), (10.0, 0.6)])
    uneven = replace(PLAN, scores=scores)
    assert uneven.epsilon_for(0.55) == pytest.approx(10**-0.5)  # 0.7 at both
    with pytest.raises(ValueError, match=r"at most 0\.7, which the simulation reaches at epsilon="):
        uneven.epsilon_for(0.75)
    with pytest.raises(ValueError, match=r"the best predictions reach 0\.95\). Got 0\.97"):
        PLAN.epsilon_for(0.97)
    with pytest.raises(ValueError, match="Example predicts nothing"):
        replace(PLAN, scores=()).epsilon_for(0.5)
    with pytest.raises(ValueError, match="'score' parameter"):
        PLAN.epsilon_for(np.nan)


def test_one_fit_far_off_does_not_move_the_curve():
    far = SimulatedScore(1.0, (0.4, -1e9, 0.5))
    assert (far.median, far.lowest, far.highest) == (0.4, -1e9, 0.5)
    far = SimulatedScore(1.0, (-1e-9, -1e9))
    assert "epsilon=1: -5e+08 (-1e+09 to 0.000)" in str(replace(PLAN, scores=(far,)))
