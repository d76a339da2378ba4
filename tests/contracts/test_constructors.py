"""What public records state of privacy is checked when they are made, by hand or by `replace`."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pytest

import skdpnoise.ledger
import skdpnoise.mechanisms
import skdpnoise.privacy
from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.mechanisms import (
    AdditiveMechanism,
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    SampledMechanism,
    bounded_counts,
    calibrate,
    calibrate_second_moments,
    correlated_sum,
    k_norm,
    l1_staircase,
    noise_options,
    repeated_loss,
)
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PoissonRepetitions,
    PoissonSampled,
    PrivacyGuarantee,
    Promised,
    PureLoss,
    RandomisedResponse,
    Repetition,
    TruncatedNegativeBinomial,
)
from skdpnoise.queries import CategoryMechanism, NormQuantileMechanism
from skdpnoise.sensitivity import GroupedProfile, RowBounds, SensitivityProfile
from tests._cases import each_value

PROFILE = SensitivityProfile([1.0, 2.0], l1=2.5)
ONE = SensitivityProfile([1.0])
PURE = calibrate("inid_laplace", PROFILE, PureLoss(0.5))
NORMAL = dataclasses.replace(
    calibrate("inid_gaussian", PROFILE, GaussianLoss(0.5)), promise=GaussianLoss(0.5)
)
PROMISED = calibrate("iid_laplace", ONE, GaussianLoss(0.5))
INTEGER = calibrate("iid_discrete_laplace", ONE, PureLoss(0.5))
BALL = k_norm(2, 1.0, 3, PureLoss(1.0))
CUBE = k_norm(math.inf, 1.0, 3, PureLoss(1.0))
SHELLS = l1_staircase(2, 1.0, PureLoss(1.0))
SUMS = correlated_sum([1.0, 4.0], GaussianLoss(0.5))
COUNTS = bounded_counts(4, 2, GaussianLoss(0.5))
MATRIX = {
    name: calibrate_second_moments(
        name, RowBounds(3, 1.0), GaussianLoss(0.5) if "gaussian" in name else PureLoss(0.5)
    )
    for name in ("iid_gaussian", "inid_gaussian", "inid_laplace", "k_norm", "wishart")
}
TWO, HALF = (SensitivityProfile([size, size]) for size in (1.0, 0.5))
GROUPED, GROUPED_L1 = (GroupedProfile([1.0], [0, 0], order) for order in (2, 1))
SHARED = SensitivityProfile([1.0, 1.0], l1=1.5)
NAMES = CategoryMechanism(calibrate("iid_laplace", TWO, PureLoss(0.5)), 30.0)
CHOICE = NormQuantileMechanism.within(GaussianLoss(0.5))
FLIP = NormQuantileMechanism.within(PureLoss(0.5))
SAMPLED = PoissonSampled(0.1)
STEPS = SampledMechanism(NORMAL, 0.1, 10)
LAW = TruncatedNegativeBinomial(1.0, 0.1)
RELEASE = Release("counts", "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(1.0))
REPORT = PrivacyReport("Example", PrivacyGuarantee(1.0), (RELEASE,), PureLoss(1.0), True)


class Cheaper(PureLoss):
    """A loss that says that it is none."""

    def delta(self, epsilon):
        return 0.0


class FreeLaw(PoissonRepetitions):
    """A law that says that repetitions cost nothing."""

    def pure_excess(self, epsilon):
        return -epsilon


class LooseProfile(SensitivityProfile):
    """A profile that may say one thing and mean another."""


# A record, what is changed in it, and what the refusal names.
LIES = [
    (PURE, {"scale": 1e-9 * PURE.scale}, "promise"),
    (PURE, {"scale": 0.999 * PURE.scale}, "promise"),
    (PURE, {"n_releases": 2}, "promise"),
    (PURE, {"n_releases": 1000}, "promise"),
    (PURE, {"promise": PureLoss(0.4999)}, "promise"),
    (PURE, {"promise": GaussianLoss(0.01)}, "promise"),
    (PURE, {"promise": Cheaper(0.5)}, "promise"),
    (PURE, {"promise": PureLoss(0.5).numeric()}, "promise"),
    (PURE, {"sensitivity": SensitivityProfile([1.0, 2.0])}, "promise"),
    (PURE, {"sensitivity": SensitivityProfile([5.0, 2.0], l1=5.0)}, "promise"),
    (PURE, {"sensitivity": SensitivityProfile([1.0])}, "scale"),
    (PURE, {"sensitivity": LooseProfile([1.0, 2.0])}, "sensitivity"),
    (PURE, {"noise": "inid_gaussian"}, "noise"),
    (PURE, {"noise": "laplace"}, "noise"),
    (PURE, {"noise": "inid_no_such_noise"}, "noise"),
    (PURE, {"noise": 3}, "noise"),
    (PURE, {"families": (get_noise("gaussian"),)}, "noise"),
    (PURE, {"families": ()}, "families"),
    (PURE, {"families": (object(),)}, "families"),
    (PURE, {"families": [get_noise("laplace")]}, "families"),
    (PURE, {"bits": 1}, "promise"),
    (PURE, {"bits": 53}, "bits"),
    (PURE, {"bits": -1}, "bits"),
    (PURE, {"bits": 2.5}, "bits"),
    (PURE, {"n_releases": 0}, "n_releases"),
    (PURE, {"n_releases": 1.0}, "n_releases"),
    (PURE, {"scale": -PURE.scale}, "scale"),
    (PURE, {"scale": np.array([np.nan, 1.0])}, "scale"),
    (PURE, {"scale": np.array([0.0, 1.0])}, "scale"),
    (PURE, {"scale": 1e-300 * PURE.scale}, "scale"),
    (PURE, {"scale": np.array([np.inf, 9.0])}, "scale"),
    (PURE, {"scale": np.ones((2, 2))}, "scale"),
    (NORMAL, {"scale": 0.999 * NORMAL.scale}, "promise"),
    (NORMAL, {"promise": GaussianLoss(0.4999)}, "promise"),
    (NORMAL, {"promise": PureLoss(50.0)}, "promise"),
    (NORMAL, {"n_releases": 2}, "promise"),
    (PROMISED, {"scale": 0.99 * PROMISED.scale}, "promise"),
    (PROMISED, {"n_releases": 2}, "promise"),
    (INTEGER, {"scale": np.array([0.5])}, "scale"),
    (INTEGER, {"scale": np.array([1e-9])}, "scale"),
    (INTEGER, {"bits": 3}, "bits"),
    (INTEGER, {"sensitivity": SensitivityProfile([2.0])}, "promise"),
    (INTEGER, {"sensitivity": SensitivityProfile([1.4])}, "sensitivity"),
    (INTEGER, {"families": (get_noise("discrete_laplace", 1.0),)}, "promise"),
    (BALL, {"norm": 1.0}, "norm"),
    (BALL, {"norm": 3.0}, "norm"),
    (BALL, {"norm": math.nan}, "norm"),
    (BALL, {"radius": 0.0}, "radius"),
    (BALL, {"radius": -1.0}, "radius"),
    (BALL, {"scale": math.inf}, "scale"),
    (BALL, {"scale": -1.0}, "scale"),
    (BALL, {"scale": 1e-300}, "scale"),
    (BALL, {"bits": 60}, "bits"),
    (BALL, {"bits": -5}, "bits"),
    (BALL, {"n_releases": 0}, "n_releases"),
    (BALL, {"n_coordinates": 0}, "n_coordinates"),
    (CUBE, {"norm": "inf"}, "norm"),
    (SHELLS, {"gamma": 1.5}, "gamma"),
    (SHELLS, {"gamma": 0.0}, "gamma"),
    (SHELLS, {"gamma": 1.0 / 3.0}, "gamma"),
    (SHELLS, {"step": 0.0}, "step"),
    (SHELLS, {"step": -1.0}, "step"),
    (SHELLS, {"step": 1e-9}, "n_coordinates"),
    (SHELLS, {"radius": -1.0}, "radius"),
    (SHELLS, {"width": 0.0}, "width"),
    (SHELLS, {"width": math.nan}, "width"),
    (SHELLS, {"bits": 60}, "bits"),
    (SHELLS, {"n_coordinates": 10_000}, "n_coordinates"),
    (SHELLS, {"n_releases": 0}, "n_releases"),
    (SUMS, {"high": np.array([1.0, 8.0])}, "additive"),
    (SUMS, {"low": np.array([-1.0, 0.0])}, "additive"),
    (SUMS, {"shift": np.array([0.0, 0.0])}, "additive"),
    (SUMS, {"shift": np.array([0.5])}, "shape|additive"),
    (SUMS, {"additive": PURE}, "additive"),
    (SUMS, {"additive": COUNTS}, "additive"),
    (
        SUMS,
        {
            "additive": calibrate(
                "inid_gaussian",
                SensitivityProfile([0.5, 2.0, 1.0]),
                GaussianLoss(0.5),
                n_releases=2,
                weights=[[1.0, 1.0, 1.0], [9.0, 9.0, 9.0]],
            )
        },
        "additive",
    ),
    (
        SUMS,
        {
            "additive": calibrate(
                "inid_gaussian", SensitivityProfile([0.5, 2.0, 1.0], l1=2.0), GaussianLoss(0.5)
            )
        },
        "additive",
    ),
    (
        SUMS,
        {
            "additive": calibrate(
                "iid_discrete_laplace", SensitivityProfile([2.0, 2.0, 2.0]), PureLoss(0.5)
            )
        },
        "noise",
    ),
    (COUNTS, {"max_ones": 4}, "additive"),
    (COUNTS, {"max_ones": 5}, "max_ones"),
    (COUNTS, {"adjacency": "replace_one"}, "additive"),
    (COUNTS, {"adjacency": "none"}, "adjacency"),
    (COUNTS, {"mixing": -1.0}, "additive"),
    (COUNTS, {"mixing": 0.25}, "mixing"),
    (COUNTS, {"mixing": math.nan}, "mixing"),
    (COUNTS, {"additive": PURE}, "additive"),
    (MATRIX["k_norm"], {"off_diagonal": 100.0}, "off_diagonal"),
    (MATRIX["wishart"], {"off_diagonal": 1e-3}, "off_diagonal"),
    (MATRIX["iid_gaussian"], {"off_diagonal": 0.5}, "off_diagonal"),
    (MATRIX["iid_gaussian"], {"row_scale": np.array([1.0, 2.0, 3.0])}, "off_diagonal"),
    (MATRIX["inid_gaussian"], {"off_diagonal": -1.0}, "off_diagonal"),
    (MATRIX["inid_gaussian"], {"off_diagonal": math.nan}, "off_diagonal"),
    (MATRIX["inid_gaussian"], {"row_scale": np.array([1.0, -2.0, 3.0])}, "row_scale"),
    (MATRIX["inid_gaussian"], {"row_scale": np.array([1.0, np.nan, 3.0])}, "row_scale"),
    (MATRIX["inid_gaussian"], {"row_scale": np.ones(2)}, "row_scale"),
    (MATRIX["inid_gaussian"], {"row_scale": np.full(3, 1e-200)}, "row_scale"),
    (MATRIX["inid_gaussian"], {"bits": 40}, "bits"),
    (MATRIX["wishart"], {"bits": 25}, "bits"),
    (MATRIX["inid_laplace"], {"bits": -1}, "bits"),
    (MATRIX["inid_laplace"], {"noise": "no_such_noise"}, "noise"),
    (MATRIX["inid_laplace"], {"adjacency": "none"}, "adjacency"),
    (MATRIX["inid_laplace"], {"row_bounds": RowBounds(2, 1.0)}, "row_scale"),
    (MATRIX["inid_laplace"], {"row_bounds": PROFILE}, "row_bounds"),
    (FLIP, {"bounded_range": True}, "bounded_range"),
    (NAMES, {"threshold": 0.9}, "threshold"),
    (NAMES, {"threshold": math.nan}, "threshold"),
    (NAMES, {"adjacency": "none"}, "adjacency"),
    (NAMES, {"additive": PURE}, "additive"),
    (NAMES, {"additive": INTEGER}, "additive"),
    (NAMES, {"additive": calibrate("iid_laplace", ONE, PureLoss(0.5))}, "additive"),
    (NAMES, {"additive": calibrate("iid_laplace", HALF, PureLoss(0.5))}, "additive"),
    (NAMES, {"additive": calibrate("iid_laplace", SHARED, PureLoss(0.5))}, "additive"),
    (NAMES, {"additive": SHELLS}, "additive"),
    (NAMES, {"additive": calibrate("iid_gaussian", GROUPED, GaussianLoss(0.5))}, "additive"),
    (NAMES, {"additive": calibrate("iid_laplace", GROUPED_L1, PureLoss(0.5))}, "additive"),
    (NAMES, {"threshold": 1e300}, "threshold"),
    (CHOICE, {"bounded_range": False}, "bounded_range"),
    (CHOICE, {"selection": ReportNoisyMax(1.0, 1.0)}, "selection"),
    (FLIP.selection, {"sensitivity": 0.0}, "sensitivity"),
    (FLIP.selection, {"epsilon": -1.0}, "epsilon"),
    (CHOICE.selection, {"monotonic": 1}, "monotonic"),
    (ReportNoisyMax(1.0, 1.0), {"noise": "normal"}, "noise"),
    (LAW, {"gamma": 0.0}, "gamma"),
    (LAW, {"eta": -1.0}, "eta"),
    (PoissonRepetitions(3.0), {"mean": 0.0}, "mean"),
    (Repetition(LAW), {"law": FreeLaw(3.0)}, "law"),
    (Repetition(LAW), {"law": "poisson"}, "law"),
    (SAMPLED, {"rate": 0.0}, "rate"),
    (SAMPLED, {"rate": 1.0}, "rate"),
    (SAMPLED, {"rate": math.nan}, "rate"),
    (SAMPLED, {"base": "normal"}, "base"),
    (SAMPLED, {"base": PoissonSampled(0.5)}, "base"),  # not symmetric
    (Promised(0.1), {"delta": -0.1}, "delta"),
    (Promised(0.1), {"delta": 1.0}, "delta"),
    (STEPS, {"rate": 0.0}, "rate"),
    (STEPS, {"rate": 1.5}, "rate"),
    (STEPS, {"n_releases": 0}, "n_releases"),
    (STEPS, {"step": dataclasses.replace(NORMAL, n_releases=2, promise=None)}, "step"),
    (STEPS, {"step": INTEGER}, "noise"),
    (STEPS, {"step": None}, "step"),
    (PureLoss(1.0), {"pure_epsilon": -1.0}, "pure_epsilon"),
    (PureLoss(1.0), {"pure_epsilon": math.nan}, "pure_epsilon"),
    (GaussianLoss(1.0), {"mu": -1.0}, "mu"),
    (PureLoss(1.0).numeric(), {"terms": ((RandomisedResponse(), -1.0, 1),)}, "shift"),
    (PureLoss(1.0).numeric(), {"terms": ((RandomisedResponse(), 1.0, -1),)}, "count"),
    (PureLoss(1.0).numeric(), {"terms": ((RandomisedResponse(), math.nan, 1),)}, "shift"),
    (PrivacyGuarantee(1.0), {"epsilon": 0.0}, "epsilon"),
    (PrivacyGuarantee(1.0), {"delta": 1.0}, "delta"),
    (PrivacyGuarantee(1.0), {"adjacency": "none"}, "adjacency"),
    (REPORT, {"total": PureLoss(1.0000001)}, "total"),
    (REPORT, {"total": GaussianLoss(0.1)}, "total"),
    (REPORT, {"guarantee": PrivacyGuarantee(0.5)}, "total"),
    (REPORT, {"total": PureLoss(0.5)}, "total"),
    (REPORT, {"releases": (RELEASE, RELEASE)}, "total"),
    (REPORT, {"total": PureLoss(1.1).numeric()}, "total"),
    (PROFILE, {"l1": 1.0}, "l1"),
    (PROFILE, {"per_coordinate": [-1.0, 1.0]}, "per_coordinate"),
    (RowBounds(3, 1.0), {"norm": -1.0}, "norm"),
]


@pytest.mark.parametrize(
    ("record", "change", "named"),
    LIES,
    ids=[f"{type(r).__name__}-{next(iter(c))}-{i}" for i, (r, c, _) in enumerate(LIES)],
)
def test_what_is_not_true_cannot_be_stated(record, change, named):
    with pytest.raises((TypeError, ValueError), match=named):
        dataclasses.replace(record, **change)
    values = {f.name: getattr(record, f.name) for f in dataclasses.fields(record) if f.init}
    with pytest.raises((TypeError, ValueError), match=named):
        type(record)(**{**values, **change})


TRUE = {repr(record): record for record, _, _ in LIES}.values()


@pytest.mark.parametrize("record", TRUE, ids=lambda record: type(record).__name__)
def test_what_is_true_can_be_stated_again(record):
    again = dataclasses.replace(record)
    for method in ("privacy_loss", "own_loss"):
        if hasattr(record, method):
            assert getattr(again, method)() == getattr(record, method)()


def test_every_public_record_that_states_a_loss_is_in_the_table():
    tested = {type(record) for record in TRUE}
    # What a ledger reads back from its storage, and results that only carry a tested mechanism.
    read = {"Account", "Charge", "Chargeable", "Ledger", "LedgerTotal", "Mechanism", "TotalReport"}
    read |= {
        "PrivacyLedger",
        "PrivateEstimate",
        "Release",
        "LossCurve",
        "PrivacyLoss",
        "Reservation",
    }
    read |= {"NormalShift", "RandomisedResponse", "LocationScale", "Moments", "Quantiles"}
    for module in (skdpnoise.mechanisms, skdpnoise.privacy, skdpnoise.ledger):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) and not issubclass(thing, Exception) and name not in read:
                assert thing in tested, name


@pytest.mark.slow
def test_a_promise_is_kept_by_what_calibrate_makes_of_every_noise():
    profile = SensitivityProfile([1.0, 2.0, 3.0])
    kept = 0
    for noise in (name for name in noise_options() if name.startswith("inid_")):
        for loss in (PureLoss(0.7), GaussianLoss(0.3)):
            try:
                made = calibrate(noise, profile, loss, n_releases=2)
            except ValueError:
                continue
            again = dataclasses.replace(made)  # checks the proof that calibrate passed over
            assert again.promise == made.promise
            kept += made.promise is not None
    assert kept >= 7


def test_a_hand_made_mechanism_may_promise_what_is_true():
    scale = np.array([2.0, 4.0])
    sensitivity = SensitivityProfile([1.0, 1.0])
    made = AdditiveMechanism("inid_laplace", scale, 30, sensitivity, promise=PureLoss(0.76))
    assert made.privacy_loss() == PureLoss(0.76)
    with pytest.raises(ValueError, match=r"'promise'.*0\.75.*-DP does\. Got 0\.74-DP"):
        dataclasses.replace(made, promise=PureLoss(0.74))
    joint = SensitivityProfile([1.0, 1.0], l1=1.0)
    tight = AdditiveMechanism("inid_laplace", scale, 30, joint, promise=PureLoss(0.51))
    assert tight.privacy_loss() == PureLoss(0.51)


def test_a_range_is_claimed_by_the_mechanism_that_has_one():
    assert NormQuantileMechanism(ExponentialMechanism(1.0, 1.0), True).noise.startswith("exp")
    assert NormQuantileMechanism(PermuteAndFlip(1.0, 1.0), False).privacy_loss() == PureLoss(1.0)


def test_a_law_of_ones_own_does_not_choose_its_price():
    with pytest.raises(TypeError, match="'law'"):
        repeated_loss(PureLoss(1.0), FreeLaw(3.0))
    assert isinstance(repeated_loss(GaussianLoss(0.1), LAW), NumericLoss)


@pytest.mark.parametrize("name", MATRIX)
def test_a_matrix_that_is_not_symmetric_is_refused_without_showing_it(name):
    counts = np.array([[1, 2, 3], [2, 1, 4], [3, 4, 777]])
    MATRIX[name].release(counts, 0)
    for j, k in ((0, 1), (2, 0), (1, 2)):
        wrong = counts.copy()
        wrong[j, k] += 1
        with pytest.raises(ValueError, match=r"'counts'.*symmetric") as refusal:
            MATRIX[name].release(wrong, 0)
        assert "777" not in str(refusal.value)


def _outcome(call):
    """What a call returns, or how it refuses."""
    try:
        return repr(call())
    except (TypeError, ValueError) as error:
        return repr(error)


def _facts_of(record, name, number):
    """Whatever a record with another number claims, as text."""
    try:
        made = dataclasses.replace(record, **{name: number})
    except (TypeError, ValueError) as error:
        return type(error)
    assert type(getattr(made, name)) in (int, float)
    claims = [_outcome(lambda: made)]
    if hasattr(made, "privacy_loss"):
        claims += [_outcome(made.privacy_loss), _outcome(lambda: made.grid_size.tolist())]
    if hasattr(made, "hockey_stick"):
        claims.append(_outcome(lambda: made.hockey_stick([0.1, 0.5], 1.0).tolist()))
    return claims


@each_value(1)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.uint8, np.int16], ids=str)
@pytest.mark.parametrize(
    "record",
    [*map(get_noise, noise_names()), PURE, INTEGER, BALL, SHELLS, COUNTS, *MATRIX.values()],
    ids=lambda record: getattr(record, "noise", type(record).__name__),
)
def test_numbers_of_short_types_are_kept_as_those_of_python(record, kind):
    """Arithmetic of half precision would make of a claim, or of a sampler, another one."""
    largest = np.iinfo(kind).max if kind(0).dtype.kind in "iu" else np.finfo(kind).max
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        numeric = field.type in ("int", "float", "float | None") and value is not None
        if not numeric or not value < 0.5 * float(largest):
            continue
        for near in (value, 1.3 * value):
            with np.errstate(over="ignore"):
                short = kind(near)
            if not np.isfinite(short):
                continue
            assert _facts_of(record, field.name, short) == _facts_of(
                record, field.name, short.item()
            )
