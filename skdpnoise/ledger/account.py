"""The account of one fit: every mechanism is charged for before it draws."""

from __future__ import annotations

from typing import Any, Protocol

from skdpnoise.ledger.report import PrivacyReport, Release
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss, PureLoss

__all__ = ["Account", "BudgetExceededError", "Chargeable"]


class Chargeable(Protocol):
    """What an account must know of a mechanism.

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> mechanism: Chargeable = calibrate(
    ...     "iid_laplace", SensitivityProfile([1.0]), PureLoss(0.5)
    ... )
    >>> mechanism.noise, mechanism.n_releases
    ('iid_laplace', 1)
    """

    @property
    def noise(self) -> str:
        """Name of the noise."""
        ...

    @property
    def n_releases(self) -> int:
        """Number of releases that are charged for."""
        ...

    @property
    def sensitivity(self) -> Any:
        """What one record can do to one release; has ``n_coordinates``."""
        ...

    @property
    def scale(self) -> Any:
        """Noise scales, an array."""
        ...

    def privacy_loss(self) -> PrivacyLoss:
        """Return what all the releases cost together."""
        ...


class BudgetExceededError(ValueError):
    """Raised when a release would cost more than what is left of the guarantee.

    Examples
    --------
    >>> issubclass(BudgetExceededError, ValueError)
    True
    """


class Account:
    """Adds up what the releases of one fit cost, and refuses what the guarantee does not cover.

    The composition is that of adaptive releases whose total is bounded in advance: a release may
    depend on earlier released numbers, and what it costs may too, as long as the sum stays within
    the guarantee whatever is released. Here the sum is checked before every release.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        The most that all releases together may cost.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016 (pure loss).
    Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy",
    arXiv:2210.17520, Theorem 1 (Gaussian loss).

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.privacy import PureLoss
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> account = Account(PrivacyGuarantee(1.0))
    >>> half = calibrate("iid_laplace", SensitivityProfile([1.0]), PureLoss(0.5))
    >>> account.charge("first", half)
    >>> account.charge("second", half)
    >>> account.charge("third", half)
    Traceback (most recent call last):
    ...
    skdpnoise.ledger.account.BudgetExceededError: 'third' would cost 0.5-DP, but 1-DP of
    (epsilon=1, delta=0) is spent already. Raise epsilon, or release less.
    """

    def __init__(self, guarantee: PrivacyGuarantee) -> None:
        self.guarantee = guarantee
        self._releases: list[Release] = []
        self._total: PrivacyLoss | None = None

    def charge(self, label: str, mechanism: Chargeable) -> None:
        """Charge for all the releases of a mechanism, before it draws.

        Parameters
        ----------
        label : str
            What is released.
        mechanism : Chargeable
            The mechanism that will release it, such as an AdditiveMechanism.

        Raises
        ------
        BudgetExceededError
            If the guarantee does not cover it; nothing is charged then.
        """
        loss = mechanism.privacy_loss()
        total = loss if self._total is None else self._total + loss
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        if total.delta(epsilon) > delta:
            raise BudgetExceededError(
                f"{label!r} would cost {loss}, but {self._total or 'nothing'} of "
                f"(epsilon={epsilon:g}, delta={delta:g}) is spent already. Raise epsilon, or "
                "release less."
            )
        self._total = total
        release = Release(
            label,
            mechanism.noise,
            mechanism.n_releases,
            mechanism.sensitivity.n_coordinates,
            (float(mechanism.scale.min()), float(mechanism.scale.max())),
            loss,
        )
        self._releases.append(release)

    def report(self, estimator: str, *, secure: bool, empty: bool = False) -> PrivacyReport:
        """Return the report of all that was charged.

        Parameters
        ----------
        estimator : str
            Name of the estimator's class.
        secure : bool
            Whether the noise came from the operating system's cryptographic source.
        empty : bool, default=False
            Whether there may be nothing to report: everything was public.

        Returns
        -------
        PrivacyReport

        Raises
        ------
        ValueError
            If nothing was charged and that is not expected.
        """
        if self._total is None and empty:
            return PrivacyReport(estimator, self.guarantee, (), PureLoss(0.0), secure)
        if self._total is None:
            raise ValueError("Nothing was charged to this account: there is nothing to report.")
        merged: list[Release] = []
        for release in self._releases:
            last = merged[-1] if merged else None
            if last and (last.label, last.noise) == (release.label, release.noise):
                merged[-1] = Release(
                    last.label,
                    last.noise,
                    last.n_releases + release.n_releases,
                    max(last.n_coordinates, release.n_coordinates),
                    (min(last.scale[0], release.scale[0]), max(last.scale[1], release.scale[1])),
                    last.loss + release.loss,
                )
            else:
                merged.append(release)
        return PrivacyReport(estimator, self.guarantee, tuple(merged), self._total, secure)
