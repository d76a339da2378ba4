"""The account of one fit: every mechanism is charged for before it samples noise."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import groupby
from operator import add, attrgetter
from threading import RLock
from typing import Any, Protocol

from skdpnoise.ledger.declared import said_public
from skdpnoise.ledger.report import PrivacyReport, Release
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.privacy.sampled import check_relation
from skdpnoise.sampling.observer import note_charge
from skdpnoise.sampling.words import HIDDEN_SEED, is_seeded

__all__ = ["Account", "BudgetExceededError", "Chargeable", "Ledger", "public_parameters"]


class Chargeable(Protocol):
    """What an account must know of a mechanism."""

    @property
    def noise(self) -> str:
        """Name of the noise."""

    @property
    def n_releases(self) -> int:
        """Number of releases that are charged for."""

    @property
    def sensitivity(self) -> Any:
        """What one record can do to one release; has ``n_coordinates``."""

    @property
    def scale(self) -> Any:
        """Noise scales, an array."""

    def privacy_loss(self) -> PrivacyLoss:
        """Return what all the releases cost together."""


class Ledger(Protocol):
    """What remembers the cost of many fits: such as :class:`~skdpnoise.ledger.PrivacyLedger`.

    Examples
    --------
    >>> class Printed:
    ...     def charge(self, label, cost, **facts):
    ...         print(label, cost)
    >>> ledger: Ledger = Printed()
    >>> ledger.charge("fit", PureLoss(0.5))
    fit 0.5-DP
    """

    def charge(
        self,
        label: str,
        cost: Any,
        *,
        guarantee: tuple[float, float] | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        mechanism: str | None = None,
        estimator: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> Any:
        """Record the cost, or raise BudgetExceededError and record nothing."""


class BudgetExceededError(ValueError):
    """Raised when a release would cost more than what is left of the guarantee.

    Attributes
    ----------
    largest_epsilon : float or None
        The largest ε of a release of the same kind and δ that would still fit, rounded down; about
        that, where the shape of the noise is calibrated for ε too; 0 if none is found, None where
        only a part of a fit was refused.

    Examples
    --------
    >>> from skdpnoise import PrivacyLedger
    >>> ledger = PrivacyLedger("trips", epsilon=1.0, delta=1e-6, storage="memory")
    >>> charge = ledger.charge("first", PureLoss(0.75))
    >>> try:
    ...     ledger.charge("second", PureLoss(0.5))
    ... except BudgetExceededError as refusal:
    ...     print(refusal.largest_epsilon)
    0.25
    """

    def __init__(self, message: str = "", largest_epsilon: float | None = None) -> None:
        super().__init__(message)
        self.largest_epsilon = largest_epsilon


class Account:
    r"""Adds up what the releases of one fit cost, and refuses what the guarantee does not cover.

    A release may depend on earlier released numbers, and so may its cost: the sum is checked before
    every release, and stays within the guarantee whatever is released.

    **Groups.** With `rows_per_group` = m the guarantee is for groups of at most m rows. Mechanisms
    are calibrated with respect to one row, and cost a group m times as much in ε, or in μ.

    **A ledger** is charged for the whole fit at once, by what was fixed before anything was drawn:
    the stages of :meth:`spend`. What is left unspent after looking at released numbers is not given
    back, since it depends on the data. If stage k is :math:`\varepsilon_k`-private whatever the
    stages before it released, with :math:`\varepsilon_k` fixed beforehand, stages compose as
    randomised responses of these :math:`\varepsilon_k` do (Kairouz, Oh and Viswanath). Gaussian
    losses add in squares, whatever their order.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        The most that all releases together may cost.
    rows_per_group : int or None, default=None
        The most rows of a group, if the guarantee is for groups; None if it is for records.
    ledger : Ledger or None, default=None
        What is charged for the fit.
    estimator : object or None, default=None
        Estimator that is fitted: the ledger notes the name of its class and its parameters.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters", NeurIPS 2016 (pure loss).
    Smith and Thakurta, arXiv:2210.17520, Theorem 1 (Gaussian loss). Kairouz, Oh and Viswanath,
    arXiv:1311.0776, Theorem 3.3. Dong, Roth and Su, arXiv:1905.02383, Theorem 2.14 (groups).

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> account = Account(PrivacyGuarantee(1.0))
    >>> most = calibrate("iid_laplace", SensitivityProfile([1.0]), PureLoss(0.75))
    >>> account.charge("first", most)
    >>> account.charge("second", most)
    Traceback (most recent call last):
    ...
    skdpnoise.ledger.account.BudgetExceededError: 'second' would cost 0.75-DP, but 0.75-DP ...
    """

    def __init__(
        self,
        guarantee: PrivacyGuarantee,
        *,
        rows_per_group: int | None = None,
        ledger: Ledger | None = None,
        estimator: Any = None,
    ) -> None:
        self.guarantee = guarantee
        self.rows_per_group = rows_per_group
        self.ledger = ledger
        self.n_records: float | None = None  # as bought; whoever buys the number tells it
        self.estimator = estimator
        self._releases: list[Release] = []
        self._total: PrivacyLoss | None = None
        self._planned: PrivacyLoss | None = None
        self._paid = False
        self._lock = RLock()

    def spend(
        self,
        stages: Sequence[PrivacyLoss],
        noise: str | None = None,
        *,
        of_groups: Collection[int] = (),
    ) -> None:
        """Charge the ledger for the whole fit now, before anything private is looked at.

        Parameters
        ----------
        stages : sequence of PrivacyLoss
            What each stage may cost with respect to one row, fixed in advance.
        noise : str or None, default=None
            Name of the noise.
        of_groups : collection of int, default=()
            The stages whose cost is that of a whole group already.

        Raises
        ------
        BudgetExceededError
            If the ledger's budget does not cover it; nothing is charged then.
        """
        note_charge("fit", tuple(stages))
        with self._lock:
            losses: list[PrivacyLoss] = [
                loss if number in of_groups else self._of_unit(loss)
                for number, loss in enumerate(stages)
            ]
            if len(losses) > 1 and all(isinstance(loss, PureLoss) for loss in losses):
                losses = [loss.numeric() for loss in losses]
            whole = reduce(add, losses)
            self._charge_ledger(whole, noise, "fit")
            self._planned = whole

    def charge(self, label: str, mechanism: Chargeable, *, of_groups: bool = False) -> None:
        """Charge for all the releases of a mechanism, before it samples noise.

        Without :meth:`spend` the ledger is charged for each mechanism, by the loss of its noise.

        Parameters
        ----------
        label : str
            What is released.
        mechanism : Chargeable
            The mechanism that will release it, such as an AdditiveMechanism.
        of_groups : bool, default=False
            Whether its sensitivity is that to a whole group of rows, and not to one.

        Raises
        ------
        BudgetExceededError
            If the guarantee, or the ledger's budget, does not cover it; nothing is charged then.
        """
        note_charge(label, mechanism)
        with self._lock:
            whole = of_groups or self.rows_per_group in (None, 1)
            loss = mechanism.privacy_loss() if whole else self._of_unit(mechanism.privacy_loss())
            check_relation("Account.charge", loss, self.guarantee.adjacency)
            total = loss if self._total is None else self._total + loss
            epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
            if total.delta(epsilon) > delta:
                raise BudgetExceededError(
                    f"{label!r} would cost {loss}, but {self._total or 'nothing'} of "
                    f"(epsilon={epsilon:g}, delta={delta:g}) is spent already. Raise epsilon, or "
                    "release less."
                )
            if self._planned is None:
                own = getattr(mechanism, "own_loss", mechanism.privacy_loss)
                exact = own() if whole else loss
                self._charge_ledger(exact, mechanism.noise, label)
            self._total = total
            # What is shown of categories is no vector of numbers.
            usual = "numbers", mechanism.sensitivity.n_coordinates
            of, size = getattr(mechanism, "counted", usual)
            sizes = mechanism.n_releases, size
            scales = float(mechanism.scale.min()), float(mechanism.scale.max())
            self._releases.append(Release(label, mechanism.noise, *sizes, scales, loss, of))

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Add to whatever is raised within that the ledger was charged, if it was."""
        try:
            yield
        except BaseException as error:
            if self._paid:
                name = getattr(self.ledger, "dataset", type(self.ledger).__name__)
                epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
                error.add_note(
                    f"{self._owner or 'The fit'} failed after the ledger of {name!r} was charged "
                    f"for it: (epsilon={epsilon:g}, delta={delta:g}) stays spent, since a "
                    "noisy result may exist already."
                )
            raise

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
        total, n = self._total, self.n_records
        if total is None and not empty:
            raise ValueError("Nothing was charged to this account: there is nothing to report.")
        merged = []
        for (label, noise), group in groupby(self._releases, attrgetter("label", "noise")):
            same = list(group)
            scales = [scale for release in same for scale in release.scale]
            n_releases = sum(release.n_releases for release in same)
            n_coordinates = max(release.n_coordinates for release in same)
            loss = reduce(add, (release.loss for release in same))
            scale = min(scales), max(scales)
            made_of = same[0].of
            merged.append(Release(label, noise, n_releases, n_coordinates, scale, loss, made_of))
        if total is None:
            total, n = PureLoss(0.0), None
        made, rows, planned = tuple(merged), self.rows_per_group, self._planned
        facts: dict[str, Any] = {"rows_per_group": rows, "n_records": n, "planned": planned}
        facts["declared"] = self._declared
        return PrivacyReport(estimator, self.guarantee, made, total, secure, **facts)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Account:
        return self

    # A copy that counted for itself would overspend.
    __copy__ = __deepcopy__

    @property
    def _declared(self) -> tuple[str, ...]:
        """What the fit reads unpaid, which is known once the data are checked."""
        return tuple(self.estimator._vouched()) if hasattr(self.estimator, "_vouched") else ()

    @property
    def _owner(self) -> str | None:
        return None if self.estimator is None else type(self.estimator).__name__

    def _of_unit(self, loss: Any) -> Any:
        """Return a loss with respect to one row as one for groups, if the guarantee is for them."""
        return loss if self.rows_per_group in (None, 1) else loss.for_group(self.rows_per_group)

    def _charge_ledger(self, cost: PrivacyLoss, noise: str | None, label: str) -> None:
        if self.ledger is None:
            return
        # What is stated for the whole fit is stated once.
        stated = (self.guarantee.epsilon, self.guarantee.delta)
        given = public_parameters(self.estimator)
        self.ledger.charge(
            f"{self._owner}.fit" if self._owner else label,
            cost,
            guarantee=None if self._paid else stated,
            adjacency=self.guarantee.adjacency,
            unit="record" if self.rows_per_group is None else "group",
            mechanism=noise,
            estimator=self._owner,
            parameters=None if given is None else given | said_public(self._declared),
        )
        self._paid = True


def public_parameters(estimator: Any) -> dict[str, Any] | None:
    """Return constructor parameters as a ledger may know them: of a seed only that there is one."""
    if not hasattr(estimator, "get_params"):
        return None
    given = estimator.get_params(deep=False)
    given.pop("ledger", None)
    if is_seeded(given.pop("random_state", None)):
        given["random_state"] = HIDDEN_SEED
    return dict(given)
