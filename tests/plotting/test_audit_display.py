"""The display of an audit draws claimed beside found, where it is told to."""

import numpy as np
import pytest

from skdpnoise import DPStandardScaler
from skdpnoise.inspection import AuditReport, OneRunResult, ReplayResult
from skdpnoise.plotting import AuditDisplay
from skdpnoise.privacy import PrivacyGuarantee

CLAIM = PrivacyGuarantee(1.0)
REPORT = AuditReport(
    "Example",
    CLAIM,
    (
        ReplayResult(CLAIM, None, 1, 1, (), ("something",), ("more than declared",)),
        OneRunResult(CLAIM, 0.2, 5.1, 1000, 300, 190, 1e-3),
    ),
    500,
    1e-3,
)


def test_bars_and_marks_are_at_the_numbers_of_the_report():
    display = AuditDisplay.from_report(REPORT)
    assert [bar.get_width() for bar in display.found_] == [0.0, 0.2]
    assert display.claimed_.get_xdata().tolist() == [1.0, 1.0]
    assert np.isnan(display.most_.get_xdata()[0])
    assert display.most_.get_xdata()[1] == 5.1
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["replay", "one_run"]
    refuted, sound = display.found_
    assert refuted.get_facecolor() != sound.get_facecolor()
    assert (refuted.get_hatch(), sound.get_hatch()) == ("//", "")
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["claimed", "most it could show", "found", "found, against the claim"]
    assert display.ax_.get_title() == "Example, δ=0, replace_one"
    assert display.ax_.get_legend() is not None


def test_an_estimator_is_audited_and_drawn():
    X = np.random.default_rng(0).normal(size=(40, 1))
    scaler = DPStandardScaler(feature_bounds=(-3, 3))
    display = AuditDisplay.from_estimator(
        scaler, X, method="replay", random_state=0, bar_kwargs={"height": 0.3}
    )
    assert display.names == ("replay",)
    assert 0.8 < display.found[0] <= 1.0
    assert not hasattr(scaler, "mean_")


def test_a_broken_declaration_is_named_and_is_not_drawn_as_against_the_claim():
    result = ReplayResult(CLAIM, 0.9, 1, 1, (("sums", 2.0),), (), ("more than declared",))
    display = AuditDisplay.from_report(AuditReport("Example", CLAIM, (result,), 500, 0.0))
    assert display.names == ("replay (declaration broken)",)
    assert display.passed.tolist() == [True]
    assert display.found_[0].get_width() == 0.9


def test_what_is_no_report_is_refused():
    with pytest.raises(TypeError, match="'report' parameter of AuditDisplay"):
        AuditDisplay.from_report("no")
