"""Displays draw the numbers of what they are given, where they are told to."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from skdpnoise import DPCoordinateDescentRegressor, PrivacyGuarantee
from skdpnoise.accounting.report import noise_in_records
from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.mechanisms import calibrate
from skdpnoise.plotting import AllocationDisplay, GroupsDisplay, NoiseDisplay, PrivacyLossDisplay
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile
from tests._cases import quick

DISPLAYS = (AllocationDisplay, NoiseDisplay, PrivacyLossDisplay)
PURE, APPROXIMATE = PrivacyGuarantee(1.0), PrivacyGuarantee(1.0, 1e-6)


def mechanism_of(noise="inid_laplace", limits=(1.0, 2.0, 4.0, 8.0, 16.0), target=PURE):
    return calibrate(noise, SensitivityProfile(limits), target)


@pytest.fixture(scope="module")
def estimator():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (500, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPCoordinateDescentRegressor(1.0, delta=1e-6, random_state=0).fit(X, X.sum(axis=1))


class Reported:
    """Stands for a fitted estimator with these releases."""

    def __init__(self, *releases, guarantee=APPROXIMATE):
        total = releases[0].loss
        for release in releases[1:]:
            total = total + release.loss
        self.privacy_ = PrivacyReport("Reported", guarantee, releases, total, True)


@pytest.mark.slow
@pytest.mark.parametrize("display", [AllocationDisplay, NoiseDisplay])
def test_one_axes_is_divided_among_the_panels(display):
    figure, (left, right) = plt.subplots(1, 2)
    drawn = display.from_mechanism(mechanism_of(), ax=right)
    figure.canvas.draw()
    assert drawn.figure_ is figure
    assert not right.axison
    assert all(ax.get_position().x0 > left.get_position().x1 for ax in drawn.ax_)
    with pytest.raises(ValueError, match=r"'ax' parameter of .* outside of a grid"):
        display.from_mechanism(mechanism_of(), ax=figure.add_axes((0.0, 0.0, 1.0, 1.0)))
    with pytest.raises(ValueError, match=r"'ax' parameter of .* Got 1 instead"):
        display.from_mechanism(mechanism_of(), ax=[left])


@quick("PrivacyLossDisplay")
@pytest.mark.parametrize("display", DISPLAYS)
def test_inputs_of_the_wrong_kind_are_named(display):
    with pytest.raises(TypeError, match=f"'mechanism' parameter of {display.__name__}"):
        display.from_mechanism("inid_laplace")
    with pytest.raises(TypeError, match=f"'estimator' parameter of {display.__name__}"):
        display.from_estimator(object())
    with pytest.raises(TypeError, match=r"'estimator' .* of type LinearRegression"):
        display.from_estimator(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]))
    with pytest.raises(NotFittedError):
        display.from_estimator(DPCoordinateDescentRegressor())


def test_the_drawn_densities_are_those_of_the_mechanism():
    mechanism = mechanism_of()
    drawn = NoiseDisplay.from_mechanism(mechanism)
    assert len(drawn.lines_) == 5
    for line, scale in zip(drawn.lines_, mechanism.scale, strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(y, np.exp(-np.abs(x) / scale) / (2.0 * scale), rtol=1e-12)
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=1e-2)
    np.testing.assert_array_equal(drawn.size_.get_ydata(), mechanism.standard_deviation)


@pytest.mark.parametrize("yscale", ["log", "linear"])
def test_densities_have_the_axis_that_is_asked_for(yscale):
    drawn = NoiseDisplay.from_mechanism(mechanism_of(), yscale=yscale)
    assert drawn.ax_[0].get_yscale() == yscale
    highest = max(density.max() for density in drawn.densities)
    assert highest < drawn.ax_[0].get_ylim()[1]
    with pytest.raises(ValueError, match="'yscale' parameter of NoiseDisplay"):
        drawn.plot(yscale="sideways")


@pytest.mark.slow
def test_no_density_reaches_the_legend():
    for yscale in ("log", "linear"):
        drawn = NoiseDisplay.from_mechanism(mechanism_of(), yscale=yscale)
        drawn.figure_.canvas.draw()
        below = drawn.ax_[0].get_legend().get_window_extent().y0
        for line in drawn.lines_:
            points = drawn.ax_[0].transData.transform(np.column_stack(line.get_data()))
            assert points[:, 1].max() < below


def test_equal_noise_is_drawn_once():
    drawn = NoiseDisplay.from_mechanism(mechanism_of("iid_laplace"))
    assert len(drawn.lines_) == 1
    two = NoiseDisplay.from_mechanism(mechanism_of(limits=(1.0, 1.0, 8.0)))
    assert [label.partition(" ")[2] for label in two.labels] == [
        "(2 coordinates)",
        "(coordinate 3)",
    ]


def test_of_many_densities_the_smallest_the_median_and_the_largest_are_drawn():
    limits = np.geomspace(1e-3, 1.0, 301)[::-1]
    mechanism = mechanism_of("inid_gaussian", limits, APPROXIMATE)
    drawn = NoiseDisplay.from_mechanism(mechanism)
    deviation = mechanism.standard_deviation
    peaks = [1.0 / (np.sqrt(2.0 * np.pi) * y.max()) for y in drawn.densities]
    expected = [deviation.min(), np.median(deviation), deviation.max()]
    np.testing.assert_allclose(peaks, expected, rtol=1e-2)
    ranks = ("(smallest)", "(median)", "(largest)")
    assert all(label.endswith(rank) for label, rank in zip(drawn.labels, ranks, strict=True))
    np.testing.assert_array_equal(drawn.size_.get_ydata(), np.sort(deviation)[::-1])
    assert drawn.ax_[1].get_yscale() == "log"


def test_noise_on_the_integers_is_drawn_as_steps_at_them():
    mechanism = mechanism_of("inid_discrete_laplace", (1.0, 2.0), PrivacyGuarantee(3.0))
    drawn = NoiseDisplay.from_mechanism(mechanism)
    assert mechanism.families is not None
    for line, family in zip(drawn.lines_, mechanism.families, strict=True):
        x, y = line.get_data()
        assert line.get_drawstyle() == "steps-mid"
        assert line.get_marker() == "o"
        assert (np.diff(x) == 1.0).all()
        expected = np.tanh(0.5 / family.shape) * np.exp(-np.abs(x) / family.shape)
        np.testing.assert_allclose(y, expected, rtol=1e-9)
    assert drawn.ax_[0].get_ylabel() == "probability"


def test_releases_with_their_own_scales_are_drawn_as_ranges():
    weights = np.array([[1.0, 1.0], [100.0, 1.0]])
    profile = SensitivityProfile([1.0, 4.0])
    mechanism = calibrate("inid_gaussian", profile, APPROXIMATE, n_releases=2, weights=weights)
    noise = NoiseDisplay.from_mechanism(mechanism)
    allocation = AllocationDisplay.from_mechanism(mechanism)
    np.testing.assert_array_equal(noise.smallest, mechanism.standard_deviation.min(axis=0))
    np.testing.assert_array_equal(noise.size_.get_ydata(), mechanism.standard_deviation.max(axis=0))
    cost = ((np.array([1.0, 4.0]) / mechanism.scale) ** 2).sum(axis=0)
    np.testing.assert_allclose(allocation.share, cost / cost.sum(), rtol=1e-12)


def test_coordinates_without_noise_are_said_in_words():
    mechanism = mechanism_of("inid_laplace", (1.0, 0.0, 8.0))
    noise = NoiseDisplay.from_mechanism(mechanism)
    allocation = AllocationDisplay.from_mechanism(mechanism)
    for drawn, line in ((noise, noise.size_), (allocation, allocation.scale_)):
        assert "1 without noise" in drawn.ax_[-1].get_xlabel()
        np.testing.assert_array_equal(np.isnan(line.get_ydata()), [False, True, False])
    assert allocation.share[1] == 0.0


def test_the_report_of_an_estimator_gives_scales_and_the_densities_it_tells(estimator):
    releases = estimator.privacy_.releases
    drawn = NoiseDisplay.from_estimator(estimator)
    assert 1 <= len(drawn.lines_) <= 5
    guarantee = estimator.privacy_.guarantee
    sizes = [noise_in_records(release, guarantee) for release in releases]
    np.testing.assert_array_equal(drawn.size_.get_xdata(), sizes)
    largest = max(float(values.max()) for values in drawn.values)
    assert largest > max(sizes)  # densities are in the same unit
    names = [tick.get_text() for tick in drawn.ax_[1].get_yticklabels()]
    assert all(
        name.startswith(release.label) for name, release in zip(names, releases, strict=True)
    )


def test_a_shape_that_the_report_does_not_hold_is_not_guessed():
    shaped = Release("sums", "inid_subbotin", 1, 2, (1.0, 2.0), GaussianLoss(0.1))
    drawn = NoiseDisplay.from_estimator(Reported(shaped))
    assert drawn.lines_ == []
    np.testing.assert_allclose(drawn.size_.get_xdata(), [10.0])
    unknown = Release("winner", "permute_and_flip", 1, 1, (1.0, 1.0), PureLoss(0.1))
    assert NoiseDisplay.from_estimator(Reported(unknown)).lines_ == []


def test_the_curve_is_that_of_the_loss():
    grid = np.linspace(0.0, 2.0, 9)
    mechanism = mechanism_of("inid_gaussian", target=APPROXIMATE)
    drawn = PrivacyLossDisplay.from_mechanism(mechanism, epsilon=grid)
    (line,) = drawn.lines_
    np.testing.assert_array_equal(line.get_xdata(), grid)
    expected = [mechanism.privacy_loss().delta(point) for point in grid]
    np.testing.assert_array_equal(line.get_ydata(), expected)
    assert drawn.ax_.get_yscale() == "log"
    assert line.get_label() == "inid_gaussian"


@pytest.mark.slow
def test_several_mechanisms_share_a_picture_and_the_target_is_marked():
    names = ("inid_gaussian", "inid_laplace")
    mechanisms = {name: mechanism_of(name, (1.0, 4.0), APPROXIMATE) for name in names}
    drawn = PrivacyLossDisplay.from_mechanisms(
        mechanisms | {"a loss": GaussianLoss(0.1)}, target=APPROXIMATE, name="three"
    )
    assert [line.get_label() for line in drawn.lines_] == [*names, "a loss"]
    assert len({line.get_color() for line in drawn.lines_}) == 3
    assert drawn.target_.get_xydata().tolist() == [[1.0, 1e-6]]
    assert drawn.ax_.get_title() == "three"
    # All are below the target, and are followed to where they end.
    reached = drawn.delta[:, drawn.epsilon >= 1.0]
    assert (reached <= 1e-6).all()
    assert (drawn.delta[:, -1] <= 1e-12).all()


def test_a_pure_loss_is_followed_to_its_end():
    drawn = PrivacyLossDisplay.from_mechanism(PureLoss(0.7), target=PrivacyGuarantee(0.7))
    (delta,) = drawn.delta
    assert delta[drawn.epsilon >= 0.7].max() == 0.0
    assert 0.0 < delta[drawn.epsilon < 0.7].min() < 1e-9
    assert set(drawn.target_.get_xdata()) == {0.7}
    assert drawn.names == ("0.7-DP",)


def test_a_chance_of_total_disclosure_does_not_stretch_the_axis():
    class Leaky(GaussianLoss):
        def delta(self, epsilon):
            return 1e-7 + super().delta(epsilon)

        def epsilon(self, delta):
            return super().epsilon(delta - 1e-7) if delta > 1e-7 else np.inf

    drawn = PrivacyLossDisplay.from_mechanism(Leaky(0.2))
    assert 0.5 < drawn.epsilon[-1] < 5.0
    assert drawn.delta.min() >= 1e-7


def test_the_loss_of_an_estimator_is_what_it_was_allowed_with_its_guarantee_marked(estimator):
    drawn = PrivacyLossDisplay.from_estimator(estimator, epsilon=[0.0, 0.5, 1.0])
    total = estimator.privacy_.allowed
    np.testing.assert_array_equal(drawn.delta[0], [total.delta(x) for x in (0.0, 0.5, 1.0)])
    assert drawn.target_.get_xydata().tolist() == [[1.0, 1e-6]]
    assert drawn.names == ("NOT PRIVATE: random_state is set\nDPCoordinateDescentRegressor",)


def test_wrong_losses_grids_and_targets_are_named():
    loss = GaussianLoss(0.1)
    with pytest.raises(TypeError, match=r"'mechanisms' parameter .* dict"):
        PrivacyLossDisplay.from_mechanisms([loss])
    with pytest.raises(TypeError, match=r"'mechanisms' parameter .* Got float"):
        PrivacyLossDisplay.from_mechanisms({"a": 1.0})
    with pytest.raises(ValueError, match=r"'mechanisms' parameter .* at least one"):
        PrivacyLossDisplay.from_mechanisms({})
    with pytest.raises(TypeError, match="'target' parameter"):
        PrivacyLossDisplay.from_mechanism(loss, target=1.0)
    with pytest.raises(TypeError, match="'epsilon' parameter"):
        PrivacyLossDisplay.from_mechanism(loss, epsilon=["a", "b"])
    for grid in ([-1.0, 1.0], [1.0], [0.0, np.inf]):
        with pytest.raises(ValueError, match="'epsilon' parameter"):
            PrivacyLossDisplay.from_mechanism(loss, epsilon=grid)


@pytest.mark.parametrize(
    ("noise", "target", "power", "unit"),
    [("inid_laplace", PURE, 1.0, "ε"), ("spr_gaussian", APPROXIMATE, 2.0, "μ²")],
)
def test_sensitivity_scale_and_share_are_those_of_the_mechanism(noise, target, power, unit):
    mechanism = mechanism_of(noise, target=target)
    drawn = AllocationDisplay.from_mechanism(mechanism)
    limits = mechanism.sensitivity.per_coordinate
    cost = (limits / mechanism.scale) ** power
    np.testing.assert_array_equal(drawn.sensitivity_.get_ydata(), limits)
    np.testing.assert_array_equal(drawn.scale_.get_ydata(), mechanism.scale)
    heights = [bar.get_height() for bar in drawn.share_]
    np.testing.assert_allclose(heights, 100.0 * cost / cost.sum(), rtol=1e-9)
    assert drawn.ax_[1].get_ylabel() == "noise scale s\n(units of the query)"
    assert drawn.ax_[2].get_ylabel() == f"share of {unit} (%)"


@quick("inid_discrete_laplace")
@pytest.mark.parametrize("noise", ["inid_discrete_laplace", "inid_staircase"])
def test_noise_whose_size_is_in_its_shapes_is_shown_by_its_deviation_and_shared_by_loss(noise):
    mechanism = mechanism_of(noise, (1.0, 8.0))
    drawn = AllocationDisplay.from_mechanism(mechanism)
    shifts = np.array([1.0, 8.0]) / mechanism.scale
    pairs = zip(mechanism.families, shifts, strict=True)
    loss = np.array([float(family.max_loss(shift)) for family, shift in pairs])
    np.testing.assert_allclose(drawn.share, loss / loss.sum(), rtol=1e-6)
    np.testing.assert_array_equal(drawn.scale_.get_ydata(), mechanism.standard_deviation)
    assert drawn.ax_[1].get_ylabel() == "standard deviation\n(units of the query)"


@pytest.mark.parametrize("noise", ["spr_gaussian", "spr_laplace"])
def test_groups_of_any_size_share_by_their_norms(noise):
    profile = GroupedProfile([1.0, 1.0], np.append(np.zeros(99), 1.0), order=1)
    mechanism = calibrate(noise, profile, PrivacyGuarantee(1.0, 1e-6))
    drawn = AllocationDisplay.from_mechanism(mechanism)
    np.testing.assert_allclose(drawn.share, np.append(np.full(99, 0.5 / 99), 0.5), rtol=1e-6)


def test_other_noise_is_shared_by_its_information():
    mechanism = mechanism_of("spr_discrete_gaussian", (1.0, 8.0), APPROXIMATE)
    drawn = AllocationDisplay.from_mechanism(mechanism)
    squares = (np.array([1.0, 8.0]) / mechanism.standard_deviation) ** 2
    np.testing.assert_allclose(drawn.share, squares / squares.sum(), rtol=1e-9)
    assert drawn.share_of == "μ²"


@pytest.mark.parametrize("size", [1, 60, 61, 10_000])
def test_any_number_of_coordinates_is_drawn(size):
    limits = np.random.default_rng(0).permutation(np.geomspace(1.0, 100.0, size))
    drawn = AllocationDisplay.from_mechanism(mechanism_of(limits=limits))
    shown = drawn.sensitivity_.get_ydata()
    if size <= 60:
        np.testing.assert_array_equal(shown, limits)
        assert len(drawn.share_) == size
    else:
        np.testing.assert_array_equal(shown, np.sort(limits)[::-1])
        np.testing.assert_array_equal(drawn.share_.get_ydata(), 100.0 * drawn.share[drawn.order_])
        assert "sorted by sensitivity" in drawn.ax_[-1].get_xlabel()


def test_the_shares_of_releases_are_those_of_their_losses(estimator):
    drawn = AllocationDisplay.from_estimator(estimator)
    squares = np.array([release.loss.mu**2 for release in estimator.privacy_.releases])
    widths = [bar.get_width() for bar in drawn.share_]
    np.testing.assert_allclose(widths, 100.0 * squares / squares.sum(), rtol=1e-9)
    assert squares.sum() == pytest.approx(estimator.privacy_.total.mu**2)
    assert drawn.share_of == "μ²"


def test_pure_releases_are_shared_by_epsilon_and_mixed_ones_by_equivalent_mu():
    pure = Release("counts", "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(0.25))
    numeric = Release("sums", "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(0.75).numeric())
    drawn = AllocationDisplay.from_estimator(Reported(pure, numeric, guarantee=PURE))
    np.testing.assert_allclose(drawn.share, [0.25, 0.75], rtol=1e-9)
    assert drawn.share_of == "ε"
    # Gaussian losses are their own equivalents, in whatever form they come.
    first = Release("sums", "iid_gaussian", 1, 10, (2.0, 2.0), GaussianLoss(0.1))
    second = Release("more", "iid_laplace", 1, 10, (2.0, 2.0), GaussianLoss(0.2).numeric())
    drawn = AllocationDisplay.from_estimator(Reported(first, second))
    np.testing.assert_allclose(drawn.share, [0.2, 0.8], rtol=1e-3)
    assert drawn.kinds == ("sums, 1 × 10 (iid_gaussian)", "more, 1 × 10 (iid_laplace)")


@pytest.mark.parametrize("display", [AllocationDisplay, NoiseDisplay])
def test_kinds_of_release_share_one_axis_in_records(display):
    # One record changes a count by 2 and a sum by 1000: √4 normal releases, and two pure ones.
    counts = Release("counts", "iid_gaussian", 4, 10, (20.0, 20.0), GaussianLoss(4**0.5 * 2 / 20))
    sums = Release("sums", "iid_laplace", 2, 1, (5e4, 5e4), PureLoss(2 * 1000 / 5e4))
    drawn = display.from_estimator(Reported(counts, sums))
    np.testing.assert_allclose(drawn.largest, [10.0, 50.0])
    row = drawn.ax_[0] if display is AllocationDisplay else drawn.ax_[1]
    assert row.get_xlabel().endswith("(in records: the most that one can change)")


GROUPS = {
    "group": np.array(["first", "second", "last"]),
    "n_parameters": np.array([4000, 900, 10]),
    "clip": np.array([0.5, 0.5, 0.7]),
    "noise": np.array([0.6, 1.1, 2.3]),
    "signal_to_noise": np.array([0.3, 0.2, 4.0]),
}


def test_groups_of_a_network_are_drawn_as_they_are():
    model = Reported(Release("gradients", "inid_gaussian", 9, 4910, (0.6, 2.3), GaussianLoss(0.1)))
    model.allocation_ = GROUPS
    display = GroupsDisplay.from_estimator(model)
    assert len(display.ax_) == 4
    for line, field in zip(display.lines_, list(GROUPS)[1:], strict=True):
        assert line.get_xdata().tolist() == GROUPS[field].tolist()
    names = [label.get_text() for label in display.ax_[0].get_yticklabels()]
    assert names == ["first", "second", "last"]
    assert display.ax_[0].get_title(loc="left") == "Reported, ε = 1"
    again = display.plot(ax=plt.subplots(1, 4)[1], name="mine", color="black")
    assert again.ax_[0].get_title(loc="left") == "mine"
    assert {line.get_color() for line in again.lines_} == {"black"}


def test_what_is_no_network_has_no_groups(estimator):
    with pytest.raises(TypeError, match="a fitted network"):
        GroupsDisplay.from_estimator(estimator)
    with pytest.raises(NotFittedError):
        GroupsDisplay.from_estimator(DPCoordinateDescentRegressor())
