"""Displays of private curves draw what was released, and pay for it once."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdpnoise import DPLogisticCD
from skdpnoise.metrics import private_calibration_curve, private_roc_curve
from skdpnoise.plotting import PrivateCalibrationDisplay, PrivateRocCurveDisplay
from skdpnoise.privacy import PrivacyGuarantee
from tests._cases import each_value, quick
from tests._same_bits import in_parts
from tests.contracts._register import Notebook

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 2))
LABELS = np.where(X[:, 0] + RNG.normal(size=4000) > 0, "yes", "no")
MODEL = LogisticRegression().fit(X, LABELS)
CHANCES = MODEL.predict_proba(X)[:, 1]
GUARANTEE = PrivacyGuarantee(1.0)
CASES = {
    "ROC": (PrivateRocCurveDisplay, private_roc_curve, ("fpr", "tpr")),
    "calibration": (
        *(PrivateCalibrationDisplay, private_calibration_curve),
        ("prob_pred", "prob_true"),
    ),
}
both = pytest.mark.parametrize(("display", "make", "fields"), CASES.values(), ids=CASES)


@both
def test_the_line_is_at_the_points_of_the_curve(display, make, fields):
    curve = make(LABELS, CHANCES, GUARANTEE, pos_label="yes", random_state=0)
    figure, ax = plt.subplots()
    drawn = display.from_curve(curve, ax=ax, color="red", name="mine")
    points = np.column_stack([getattr(curve, field) for field in fields])
    np.testing.assert_array_equal(drawn.line_.get_xydata(), points[np.isfinite(points).all(axis=1)])
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert drawn.line_.get_color() == "red"
    assert ax.get_title() == "mine"


@quick("ROC")
@pytest.mark.usefixtures("the_same_words")
@both
def test_its_title_says_what_it_cost_and_whether_the_noise_has_a_seed(display, make, fields):
    plain = display.from_predictions(LABELS, CHANCES, GUARANTEE, pos_label="yes")
    assert plain.ax_.get_title() == "1-DP, replace_one"
    seeded = display.from_predictions(LABELS, CHANCES, GUARANTEE, pos_label="yes", random_state=0)
    assert "NOT PRIVATE" in seeded.ax_.get_title()


@both
def test_an_estimator_is_drawn_with_its_second_class_and_pays_once(display, make, fields):
    ledger = Notebook()
    known = {"random_state": 0, "ledger": ledger}
    drawn = display.from_estimator(MODEL, X, LABELS, GUARANTEE, **known)
    assert len(ledger.charges) == 1
    curve = make(LABELS, CHANCES, GUARANTEE, pos_label="yes", random_state=0)
    np.testing.assert_array_equal(getattr(drawn, fields[1]), getattr(curve, fields[1]))
    drawn = display.from_estimator(
        MODEL, X, LABELS, GUARANTEE, pos_label="no", random_state=0, curve_kwargs={"color": "red"}
    )
    curve = make(LABELS, 1.0 - CHANCES, GUARANTEE, pos_label="no", random_state=0)
    np.testing.assert_allclose(getattr(drawn, fields[1]), getattr(curve, fields[1]), atol=1e-3)
    assert drawn.line_.get_color() == "red"


@quick("False-calibration")
@each_value(1)
@both
@pytest.mark.parametrize("ours", [True, False])
def test_rows_in_parts_are_drawn_as_all_of_them(display, make, fields, ours):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": LABELS})
    rows = in_parts(frame, 7)
    model = MODEL
    if ours:
        model = DPLogisticCD(feature_bounds=(-4, 4), random_state=0).fit(frame[["a", "b"]], LABELS)
    whole = display.from_estimator(model, frame[["a", "b"]], LABELS, GUARANTEE, random_state=0)
    drawn = display.from_estimator(
        model, rows[["a", "b"]], rows["label"], GUARANTEE, random_state=0
    )
    np.testing.assert_array_equal(getattr(drawn, fields[1]), getattr(whole, fields[1]))


@both
def test_what_cannot_be_drawn_is_refused_before_the_charge(display, make, fields):
    ledger = Notebook()
    known = {"ledger": ledger}
    with pytest.raises(NotFittedError):
        display.from_estimator(LogisticRegression(), X, LABELS, GUARANTEE, **known)
    with pytest.raises(TypeError, match="'estimator'"):
        line = LinearRegression().fit(X, X[:, 0])
        display.from_estimator(line, X, LABELS, GUARANTEE, **known)
    with pytest.raises(ValueError, match="'pos_label'"):
        display.from_estimator(MODEL, X, LABELS, GUARANTEE, pos_label="maybe", **known)
    with pytest.raises(ValueError, match="X has 1 features"):
        display.from_estimator(MODEL, X[:, :1], LABELS, GUARANTEE, **known)
    with pytest.raises(TypeError, match="'ax'"):
        display.from_predictions(LABELS, CHANCES, GUARANTEE, ax="left", **known)
    with pytest.raises(TypeError, match="'curve'"):
        display.from_curve(CHANCES)
    assert ledger.charges == []


def test_the_band_holds_the_curve_and_grows_with_the_noise():
    widths = []
    for epsilon in (10.0, 1.0):
        drawn = PrivateRocCurveDisplay.from_predictions(
            LABELS, CHANCES, PrivacyGuarantee(epsilon), pos_label="yes", random_state=0
        )
        (path,) = drawn.band_.get_paths()
        assert path.contains_points(np.column_stack([drawn.fpr, drawn.tpr])[10:-10]).all()
        x, y = path.vertices.T
        widths.append(0.5 * abs(np.sum(x[1:] * y[:-1] - x[:-1] * y[1:])))
    assert 5.0 * widths[0] < widths[1] < 0.3
    assert drawn.line_.get_label().startswith("AUC = 0.")


def test_bars_have_the_length_of_their_errors_and_hidden_bins_are_left_out():
    drawn = PrivateCalibrationDisplay(
        prob_true=[0.1, np.nan, 0.6],
        prob_pred=[0.2, np.nan, 0.7],
        standard_error=[0.1, np.nan, 0.1],
    ).plot()
    ends = [segment[:, 1].tolist() for segment in drawn.bars_.get_segments()]
    np.testing.assert_allclose(ends, [[0.0, 0.296], [0.404, 0.796]])
    nothing = PrivateCalibrationDisplay(prob_true=[np.nan], prob_pred=[0.5], standard_error=[0.1])
    texts = [text.get_text() for text in nothing.plot().ax_.texts]
    assert texts == ["noise hides all bins"]
