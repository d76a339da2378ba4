"""The picture of a ledger shows the numbers of its history, and its budget."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skdpnoise import PrivacyGuarantee, PrivacyLedger
from skdpnoise.plotting import LedgerDisplay
from skdpnoise.privacy import GaussianLoss, PureLoss
from tests._cases import each_value, quick

BUDGET = PrivacyGuarantee(2.0, 1e-6)


@pytest.fixture(scope="module")
def ledger():
    made = PrivacyLedger("trips", epsilon=2.0, delta=1e-6)
    for mu in (0.1, 0.05, 0.2):
        made.charge("means", GaussianLoss(mu))
    made.charge("counts", PureLoss(0.25))
    return made


def month(count=40):
    """Return a display of given numbers: charges over a month."""
    start = np.datetime64("2026-05-01T09:00", "us")
    return LedgerDisplay(
        time=start + np.arange(count) * np.timedelta64(17, "h"),
        spent=0.1 * np.sqrt(np.arange(1, count + 1)),
        basic=0.1 * np.arange(1, count + 1),
        guarantee=BUDGET,
        name="a month",
    )


@pytest.mark.parametrize("by", ["time", "charge"])
def test_the_steps_are_what_the_history_says(ledger, by):
    frame = ledger.history()
    drawn = LedgerDisplay.from_ledger(ledger, by=by)
    np.testing.assert_array_equal(drawn.spent, frame["spent"])
    np.testing.assert_allclose(drawn.basic, frame["epsilon"].cumsum(), rtol=1e-12)
    # Steps begin at nothing and end at the last value, which holds after the last charge.
    for line, values in ((drawn.spent_, drawn.spent), (drawn.basic_, drawn.basic)):
        assert line.get_drawstyle() == "steps-post"
        np.testing.assert_array_equal(line.get_ydata(), [0.0, *values, values[-1]])
    assert drawn.spent[-1] == pytest.approx(ledger.total().epsilon)
    assert drawn.basic[-1] == pytest.approx(ledger.total().basic[0])
    x = drawn.spent_.get_xdata()[1:-1]
    expected = frame["time"].dt.tz_localize(None).to_numpy() if by == "time" else [1, 2, 3, 4]
    np.testing.assert_array_equal(x, expected)


def test_what_was_returned_is_in_no_sum():
    ledger = PrivacyLedger("trips", epsilon=2.0, delta=1e-6, storage="memory")
    ledger.charge("counts", PureLoss(0.25))
    assert ledger.reserve("a fit", PureLoss(1.5)).give_back("X contains NaN")
    ledger.charge("counts", PureLoss(0.5))
    drawn = LedgerDisplay.from_ledger(ledger, by="charge")
    np.testing.assert_allclose(drawn.basic, [0.25, 0.25, 0.25, 0.75])
    assert drawn.basic[-1] == pytest.approx(ledger.total().basic[0])


def test_the_budget_is_a_line_and_named_with_its_delta(ledger):
    drawn = LedgerDisplay.from_ledger(ledger)
    assert set(drawn.budget_.get_ydata()) == {2.0}
    texts = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    total = ledger.total()
    assert texts == [
        f"tight composition: ε = {total.epsilon:.3g}",
        f"basic sum: ε = {total.basic[0]:.3g}",
        "budget: ε = 2, δ = 1e-06",
    ]
    assert drawn.ax_.get_title() == "trips"
    assert drawn.ax_.get_ylim()[0] == 0.0 < 2.0 < drawn.ax_.get_ylim()[1]


def test_numbers_that_are_given_are_drawn_at_their_times():
    drawn = month().plot()
    assert isinstance(drawn, LedgerDisplay)
    left, right = drawn.ax_.get_xlim()
    first, last = plt.matplotlib.dates.date2num(drawn.time[[0, -1]])
    assert left < first < last < right
    assert drawn.ax_.get_title() == "a month"
    drawn.figure_.canvas.draw()
    assert "May" in " ".join(tick.get_text() for tick in drawn.ax_.get_xticklabels())


@quick("0-time")
@each_value(1)
@pytest.mark.parametrize("by", ["time", "charge"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_charges_are_drawn_without_a_warning(by, count, recwarn):
    ledger = PrivacyLedger("new", epsilon=1.0, delta=0.0)
    for _ in range(count):
        ledger.charge("counts", PureLoss(0.25))
    drawn = LedgerDisplay.from_ledger(ledger, by=by)
    drawn.figure_.canvas.draw()
    assert list(recwarn) == []
    assert ("no charges yet" in [text.get_text() for text in drawn.ax_.texts]) == (count == 0)
    assert drawn.spent_.get_ydata()[-1] == 0.25 * count
    left, right = drawn.ax_.get_xlim()
    assert left < right


def test_charges_of_one_moment_are_steps_at_one_place():
    at = np.datetime64("2026-05-01T09:00", "us")
    drawn = LedgerDisplay(
        time=[at, at], spent=[0.1, 0.2], basic=[0.1, 0.2], guarantee=BUDGET
    ).plot()
    left, right = drawn.ax_.get_xlim()
    middle = plt.matplotlib.dates.date2num(at)
    assert middle - left == pytest.approx(right - middle)
    assert right > left


def test_a_basic_sum_of_many_budgets_leaves_the_picture():
    drawn = month(400)
    drawn.spent = np.minimum(drawn.spent, 2.0)
    assert drawn.basic[-1] == pytest.approx(40.0)
    assert drawn.plot().ax_.get_ylim()[1] < 6.0


def test_inputs_of_the_wrong_kind_are_named(ledger):
    with pytest.raises(TypeError, match=r"'ledger' parameter of LedgerDisplay.* of type str"):
        LedgerDisplay.from_ledger("trips")
    with pytest.raises(ValueError, match=r"'by' parameter of LedgerDisplay.* Got 'day'"):
        LedgerDisplay.from_ledger(ledger, by="day")
