"""Report of a fit: its releases, their cost, and the guarantee that they keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from skdpnoise._utils.context import context
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PrivacyGuarantee,
    PrivacyLoss,
    Promised,
    PureLoss,
    gdp_mu,
)
from skdpnoise.reporting.cards import in_plain_words
from skdpnoise.reporting.sheet import Sheet, Shown
from skdpnoise.reporting.statement import as_dict, changed, statement
from skdpnoise.sampling.observer import is_observed

__all__ = ["PrivacyReport", "Release"]

NEIGHBOURS = {
    ("replace_one", "record"): "two data sets are neighbours if one record of one is replaced by "
    "another record; the number of records is public",
    ("add_remove", "record"): "two data sets are neighbours if one has one record more; the number "
    "of records is private",
    ("replace_one", "group"): "two data sets are neighbours if the rows of one group have other "
    "values; which rows belong to which group is public",
    ("add_remove", "group"): "two data sets are neighbours if one has one group more, with all its "
    "rows; the number of rows is private",
}
DECLARED = "declared public by the user"
SOURCE = {
    True: "the operating system's cryptographic source",
    False: "a known seed (random_state): the guarantee does not hold against anyone who knows it; "
    "use random_state=None for real data",
}

_SOME_DELTA = 1e-6  # for losses of different kinds, where the guarantee names no delta

OBSERVED = "NOT PRIVATE: an audit looked on while this was fitted, and chose its randomness"


@dataclass(frozen=True, slots=True)
class Release:
    """One kind of released number, with its noise and its cost.

    Parameters
    ----------
    label : str
        What was released.
    noise : str
        ``"<rule>_<family>"``.
    n_releases, n_coordinates : int
        How many vectors were released, and how many numbers are in each.
    scale : tuple of float
        Smallest and largest noise scale, in the units of the released numbers.
    loss : PrivacyLoss
        What they cost together.
    of : {"numbers", "candidates", "columns"}, default="numbers"
        What `n_coordinates` counts: of a search the candidates, whose scores have this noise; of
        categories the columns, whose counts have it.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> Release("counts", "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(1.0)).label
    'counts'
    """

    label: str
    noise: str
    n_releases: int
    n_coordinates: int
    scale: tuple[float, float]
    loss: PrivacyLoss
    of: str = "numbers"

    def __add__(self, other: Release) -> Release:
        """Return this kind of number with more releases of it."""
        return replace(
            self,
            n_releases=self.n_releases + other.n_releases,
            n_coordinates=max(self.n_coordinates, other.n_coordinates),
            scale=(min(*self.scale, *other.scale), max(*self.scale, *other.scale)),
            loss=self.loss + other.loss,
        )


@lru_cache(maxsize=1)
def _software() -> str:
    return f"skdpnoise {version('skdpnoise')}"


def _is_watched() -> bool:
    return is_observed() or context().is_audited


@dataclass(frozen=True, slots=True, repr=False)
class PrivacyReport(Shown):
    """The guarantee of a fitted estimator and every release behind it.

    Prints as text, and as a table in notebooks. It holds public numbers only.

    Parameters
    ----------
    estimator : str
        Name of the class.
    guarantee : PrivacyGuarantee
        What was asked for, and holds.
    releases : tuple of Release
        In the order in which they were made.
    total : PrivacyLoss
        Their exact composition; never more than the guarantee.
    secure : bool
        Whether the noise came from the operating system's cryptographic source; else the guarantee
        does not hold against anyone who knows the seed, and the first line says so.
    rows_per_group : int or None, default=None
        The most rows that were kept of each group; None if the guarantee is for records.
    declared : tuple of str, default=()
        Steps for which the user vouches that they learn nothing private, and what was read of the
        data without paying, such as the labels of classes: the guarantee rests on it.
    n_records : float or None, default=None
        Noisy number of records, where it was estimated.
    observed : bool
        Whether an audit looked on (:func:`skdpnoise.inspection.audit`): such a fit is not private.
    software : str
        What fitted it, with its version.
    planned : PrivacyLoss or None, default=None
        The loss that was fixed before anything was drawn; see `allowed`.
    changed : tuple of str, default=()
        What was changed of a pipeline or search since this fit; then the report says first that it
        is not of what is there now. Reports that differ in nothing else are equal.

    Raises
    ------
    ValueError
        If the total exceeds the guarantee, or the releases the total.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> release = Release("counts", "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(1.0))
    >>> guarantee = PrivacyGuarantee(1.0)
    >>> report = PrivacyReport("Example", guarantee, (release,), PureLoss(1.0), True)
    >>> print(report)  # doctest: +ELLIPSIS
    Example: (epsilon=1, delta=0)-differential privacy
      counts: 1 x 10, iid_laplace, scale 2, 1-DP
      total: 1-DP
      adjacency: replace_one (two data sets are neighbours if ...
      unit: a record (one row)
      randomness: the operating system's cryptographic source
    """

    estimator: str
    guarantee: PrivacyGuarantee
    releases: tuple[Release, ...]
    total: PrivacyLoss
    secure: bool
    rows_per_group: int | None = None
    declared: tuple[str, ...] = ()
    n_records: float | None = None
    observed: bool = field(default_factory=_is_watched)
    software: str = field(default_factory=_software)
    planned: PrivacyLoss | None = None
    changed: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        # A numeric loss is rounded up, also one of exactly this epsilon.
        if not any(self.total.delta(epsilon * room) <= delta for room in (1.0, 1.0 + 1e-12)):
            allowed = f"contained in the guarantee (epsilon={epsilon:g}, delta={delta:g})"
        elif not _add_up(self.releases, self.total):
            allowed = "at least what the releases cost together"
        else:
            return
        must = f"The 'total' parameter of PrivacyReport must be {allowed}."
        raise ValueError(f"{must} Got {self.total} instead.")

    @property
    def unit(self) -> str:
        """The unit that is protected: "record" or "group"."""
        return "record" if self.rows_per_group is None else "group"

    @property
    def allowed(self) -> PrivacyLoss:
        """The loss that the fit was allowed in advance, of the kind in which it was charged.

        What was spent, `total`, may be less, and may depend on released numbers. The curve of a
        loss that was chosen by looking is no promise; that of the loss allowed beforehand is. Where
        losses are of several kinds and none was planned, that is the guarantee and no more.
        """
        total, epsilon, delta = self.total, self.guarantee.epsilon, self.guarantee.delta
        if not self.releases:
            return PureLoss(0.0)
        if isinstance(total, PureLoss) or (isinstance(total, NumericLoss) and delta == 0.0):
            return PureLoss(max(total.pure_epsilon, epsilon))
        if isinstance(total, GaussianLoss) and delta > 0.0:
            return GaussianLoss(max(total.mu, gdp_mu(epsilon, delta)))
        return self.planned or NumericLoss(((Promised(delta), epsilon, 1),))

    def _sheet(self) -> Sheet:
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        return Sheet(
            title=self.estimator,
            promise=f"(epsilon={epsilon:g}, delta={delta:g})-differential privacy",
            head=("released", "vectors x length", "noise", "scale", "cost"),
            rows=self._rows(),
            line="{}: {}, {}, scale {}, {}",
            facts=[("total", str(self.total)), *self._facts()],
            changed=changed(self),
            above=in_plain_words(self),
            folded="Figures for who knows differential privacy",
            secure=self.secure,
        )

    def statement(self) -> str:
        """Return a page that people can read who know no differential privacy.

        What is promised and to whom, what was measured and at which cost, what is not protected,
        and what rests on the word of whoever fitted it.

        Returns
        -------
        str

        Examples
        --------
        >>> from skdpnoise import DPStandardScaler
        >>> scaler = DPStandardScaler(feature_bounds=(0, 1)).fit([[0.2], [0.7]])
        >>> print(scaler.privacy_.statement()[:36])
        Privacy statement: DPStandardScaler
        """
        return statement(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values, such as JSON takes.

        Returns
        -------
        dict
            ``estimator``, ``software``, ``epsilon``, ``delta``, ``adjacency``, ``unit``,
            ``rows_per_group``, ``mu`` (None unless what was allowed is Gaussian), ``profile`` (δ at
            some ε), ``allowed`` beforehand and ``spent``, ``releases`` with the
            ``share`` of the budget that each had, ``n_records``, ``declared_public``,
            ``not_protected``, ``secure``, ``observed`` and ``changed_since``.

        Examples
        --------
        >>> from skdpnoise import DPStandardScaler
        >>> scaler = DPStandardScaler(feature_bounds=(0, 1)).fit([[0.2], [0.7]])
        >>> scaler.privacy_.to_dict()["unit"]
        'record'
        """
        return as_dict(self)

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                *(one.label, f"{one.n_releases} x {one.n_coordinates}", one.noise),
                *(_interval(*one.scale), str(one.loss)),
            )
            for one in self.releases
        ]

    def _facts(self) -> list[tuple[str, str]]:
        unit = "a record (one row)"
        if self.rows_per_group is not None:
            rows = _counted(self.rows_per_group, "row")
            unit = f"a group of rows (at most {rows} kept of each)"
        return [
            *([(DECLARED, ", ".join(self.declared))] if self.declared else []),
            ("adjacency", neighbours(self.guarantee.adjacency, self.unit)),
            ("unit", unit),
            ("randomness", OBSERVED if self.observed else SOURCE[self.secure]),
        ]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _add_up(releases: tuple[Release, ...], total: PrivacyLoss) -> bool:
    """Return False if losses of one kind exceed their total; others are left to who adds them."""
    losses = [release.loss for release in releases]
    room = 1.0 + 1e-9  # sums in another order are rounded differently
    if isinstance(total, PureLoss):
        spent = math.fsum(loss.epsilon(0.0) for loss in losses)
        return spent <= total.pure_epsilon * room
    if isinstance(total, GaussianLoss):
        mus = [loss.mu if isinstance(loss, GaussianLoss) else math.inf for loss in losses]
        return math.hypot(*mus) <= total.mu * room
    return True


def release_shares(report: PrivacyReport) -> tuple[list[float], str]:
    """Return each kind of release's share of the loss, and in what losses are counted."""
    losses = [release.loss for release in report.releases]
    costs, unit = [getattr(loss, "pure_epsilon", math.inf) for loss in losses], "ε"
    if not all(map(math.isfinite, costs)):
        costs, unit = [equivalent_mu(loss, report.guarantee) ** 2 for loss in losses], "μ²"
    total = math.fsum(costs) or 1.0  # of what costs nothing, each has nothing
    return [cost / total for cost in costs], unit


def noise_in_records(release: Release, guarantee: PrivacyGuarantee) -> float:
    """Return the scale of one release in units of the most that a record changes."""
    # k releases of scale b cost k Δ / b in ε, or √k Δ / σ in μ.
    loss, n = release.loss, release.n_releases
    cost = loss.pure_epsilon / n if isinstance(loss, PureLoss) else 0.0
    cost = cost or equivalent_mu(loss, guarantee) / math.sqrt(n)
    return 1.0 / cost if cost > 0.0 else math.inf


def equivalent_mu(loss: PrivacyLoss, guarantee: PrivacyGuarantee) -> float:
    """Return the μ of the Gaussian loss with the same ε at the guarantee's δ."""
    if isinstance(loss, GaussianLoss):
        return loss.mu
    delta = guarantee.delta or _SOME_DELTA
    epsilon = loss.epsilon(delta)
    if not math.isfinite(epsilon):  # total disclosure is likelier than δ: compare at ε instead
        epsilon = guarantee.epsilon
        delta = min(loss.delta(epsilon), 0.5)
    return gdp_mu(epsilon, delta)


def neighbours(adjacency: str, unit: str) -> str:
    return f"{adjacency} ({NEIGHBOURS[adjacency, unit]})"


def _interval(low: float, high: float) -> str:
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"
