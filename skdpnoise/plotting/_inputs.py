"""What displays accept, and what they read from it."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdpnoise.ledger import PrivacyReport, Release
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.noises import Noise, get_noise
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PrivacyLoss, gdp_mu
from skdpnoise.sampling.words import with_caveat

Vector = NDArray[np.float64]

_SOME_DELTA = 1e-6  # for losses of different kinds, where the guarantee names no delta


def check_additive(owner: str, mechanism: object) -> AdditiveMechanism:
    """Return the mechanism if it is additive noise."""
    if not isinstance(mechanism, AdditiveMechanism):
        raise TypeError(
            f"The 'mechanism' parameter of {owner} must be an AdditiveMechanism, which calibrate "
            f"returns. Got an object of type {type(mechanism).__name__} instead."
        )
    return mechanism


def report_of(owner: str, estimator: Any) -> PrivacyReport:
    """Return the privacy report of a fitted estimator."""
    report = getattr(estimator, "privacy_", None)
    if isinstance(report, PrivacyReport):
        return report
    if hasattr(estimator, "fit") and not isinstance(estimator, type):
        check_is_fitted(estimator)
    raise TypeError(
        f"The 'estimator' parameter of {owner} must be a fitted estimator of skdpnoise, with a "
        f"report in privacy_. Got an object of type {type(estimator).__name__} instead."
    )


def kinds_of(report: PrivacyReport) -> tuple[str, ...]:
    """Return a name for each kind of release: label, and vectors times length."""
    several = len({release.noise for release in report.releases}) > 1
    return tuple(
        f"{release.label}, {release.n_releases} × {release.n_coordinates}"
        + (f" ({release.noise})" if several else "")
        for release in report.releases
    )


def range_over_releases(sizes: Vector) -> tuple[Vector, Vector]:
    """Return the smallest and the largest size of each coordinate's noise."""
    rows = np.atleast_2d(sizes)
    return rows.min(axis=0), rows.max(axis=0)


def rows_of(report: PrivacyReport, name: str | None) -> dict[str, Any]:
    """Return what displays say of every report: ranges of scales, whose they are, and a title."""
    smallest, largest = np.array([release.scale for release in report.releases]).T
    guarantee = report.guarantee
    if name is None:
        name = f"{report.estimator}, ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}"
    return {
        "smallest": smallest,
        "largest": largest,
        "kinds": kinds_of(report),
        "name": with_caveat(name, secure=report.secure),
    }


def unit_family(release: Release) -> Noise | None:
    """Return the noise at unit scale if a report says enough to know it: it holds no shapes."""
    try:
        family = get_noise(release.noise.partition("_")[2])
    except ValueError:
        return None
    return None if fields(cast(Any, family)) else family


def coordinate_shares(mechanism: AdditiveMechanism) -> tuple[Vector, str]:
    """Return each coordinate's share of the loss of all releases, and the unit of losses."""
    assert mechanism.families is not None
    limit, scale = mechanism.sensitivity.per_coordinate, mechanism.scale
    shift = np.zeros(scale.shape)
    np.divide(limit, scale, out=shift, where=(limit > 0.0) & (scale > 0.0))
    shift = np.atleast_2d(shift)
    families = list(mechanism.families)
    if len(families) == 1:
        families *= limit.size
    groups = [
        (family, np.array([other == family for other in families]))
        for family in dict.fromkeys(families)
    ]
    cost, unit = np.zeros_like(shift), "ε"
    if mechanism.family.norm_order != 2.0:
        for family, chosen in groups:
            cost[:, chosen] = family.max_loss(shift[:, chosen])
    if mechanism.family.norm_order == 2.0 or not np.isfinite(cost).all():
        unit = "μ²"
        for family, chosen in groups:
            cost[:, chosen] = _information(family) * shift[:, chosen] ** 2
    total: Vector = cost.sum(axis=0)
    return total / total.sum(), unit


def _information(family: Noise) -> float:
    # Many small shifts lose what Gaussian noise of the same Fisher information does. Where there is
    # no such number (atoms, jumps), that of Gaussian noise of the same variance stands in.
    information = family.fisher_information
    return information if math.isfinite(information) else 1.0 / family.variance


def release_shares(report: PrivacyReport) -> tuple[Vector, str]:
    """Return each kind of release's share of the loss, and in what losses are counted."""
    losses = [release.loss for release in report.releases]
    pure = np.array([getattr(loss, "pure_epsilon", math.inf) for loss in losses])
    unit = "ε" if np.isfinite(pure).all() else "μ²"
    cost = pure
    if unit == "μ²":
        cost = np.array([_equivalent_mu(loss, report.guarantee) ** 2 for loss in losses])
    shares: Vector = cost / cost.sum()
    return shares, unit


def _equivalent_mu(loss: PrivacyLoss, guarantee: PrivacyGuarantee) -> float:
    """Return the μ of the Gaussian loss with the same ε at the guarantee's δ."""
    if isinstance(loss, GaussianLoss):
        return loss.mu
    delta = guarantee.delta or _SOME_DELTA
    epsilon = loss.epsilon(delta)
    if not math.isfinite(epsilon):  # total disclosure is likelier than δ: compare at ε instead
        epsilon = guarantee.epsilon
        delta = min(loss.delta(epsilon), 0.5)
    return gdp_mu(epsilon, delta)
