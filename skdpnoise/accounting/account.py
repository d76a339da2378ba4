"""The account of one fit: every mechanism is charged for before it samples noise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import add, attrgetter
from threading import RLock
from typing import Any

import numpy as np

from skdpnoise.accounting.declared import said_public
from skdpnoise.accounting.report import PrivacyReport, Release
from skdpnoise.accounting.reservation import Ledger, LossFor, calibrated_loss, facts_for
from skdpnoise.mechanisms import Mechanism
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PrivacyGuarantee,
    PrivacyLoss,
    Promised,
    PureLoss,
)
from skdpnoise.privacy.sampled import check_relation
from skdpnoise.sampling.observer import note_charge
from skdpnoise.sampling.words import HIDDEN_SEED, is_seeded

__all__ = ["Account", "BudgetExceededError", "Chargeable", "Ledger", "public_parameters"]


Chargeable = Mechanism


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


@dataclass(slots=True)
class _Stage:
    """A loss that was fixed before the first release, and what has been charged to it."""

    loss: PrivacyLoss
    used: PrivacyLoss | None = None

    def take(self, loss: PrivacyLoss) -> bool:
        used = loss if self.used is None else self.used + loss
        if isinstance(used, PureLoss):
            fits = used.pure_epsilon <= _promise(self.loss)[0]
        elif isinstance(used, GaussianLoss) and isinstance(self.loss, GaussianLoss):
            fits = used.mu <= self.loss.mu
        else:
            fits = self.used is None and loss == self.loss
        if fits:
            self.used = used
        return fits

    def __str__(self) -> str:
        return f"{self.loss}" if self.used is None else f"{self.loss} less {self.used}"


class Account:
    r"""Adds up what the releases of one fit cost, and refuses what the guarantee does not cover.

    A release may depend on everything that was released before it, and so may its cost, as far as
    one of these rules allows. A charge that no rule allows is refused before anything is sampled.

    *Planned.* :meth:`spend` has fixed losses :math:`\ell_1, \ldots, \ell_K`, the stages, before the
    first charge. Each charge is made to one stage that has room for it: a pure stage takes pure
    losses while :math:`\sum \varepsilon_i \le \varepsilon_k`, a Gaussian one takes Gaussian losses
    while :math:`\sum \mu_i^2 \le \mu_k^2`, and any other stage takes one charge of its own loss.

    *Planned again.* The only stage is all that (ε, δ) promises, losses that are pure and cost
    ε' < ε in all were charged to it, and :meth:`fix` has fixed what is still to come, within
    (ε - ε', δ).

    *Not planned.* The sum of all charges is pure, or Gaussian, and within the guarantee; a single
    charge may be of any kind. With a ledger there is only one charge.

    **Theorem.** Assume that stages are fixed by public facts alone, and that every mechanism has
    the loss that it is charged for, whatever was released before. Then for all neighbours, and for
    every way to choose mechanisms and losses by looking at what was released, all that is released
    is (ε, δ)-private for the guarantee. With a plan it has at most the loss of independent releases
    of its stages, which is what a ledger is charged: randomised responses of
    :math:`\varepsilon_k`, normal shifts of :math:`\mu_k`, dominating pairs of the others. (The
    page "Losses chosen by looking" of the documentation has the proof.)

    A numeric loss that is chosen by looking is covered by no rule: after a bad answer it may be
    chosen so that its curve is the worse one, and curves no longer add.

    **Groups.** With `rows_per_group` = m the guarantee is for groups of at most m rows. Mechanisms
    are calibrated with respect to one row, and cost a group m times as much in ε, or in μ.

    **A ledger** is charged for the whole fit at once, by the stages. What is left unspent after
    looking at released numbers is not given back, since it depends on the data.

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
    arXiv:1311.0776, Theorem 3.3. Vadhan and Wang, "Concurrent composition of differential privacy",
    arXiv:2105.14427 (stages that overlap). Dong, Roth and Su, arXiv:1905.02383, Theorem 2.14.

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
    skdpnoise.accounting.account.BudgetExceededError: 'second' would cost 0.75-DP, but 0.75-DP ...
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
        self.n_records: float | None = None  # as estimated by whoever tells it
        self.estimator = estimator
        self.declared: list[str] = []  # what a fit took as public without a word of its user
        self._releases: list[Release] = []
        self._total: PrivacyLoss | None = None
        self._planned: PrivacyLoss | None = None
        self._stages: list[_Stage] = []
        self._paid = False
        self._lock = RLock()

    def spend(
        self,
        stages: Sequence[PrivacyLoss],
        noise: str | None = None,
        *,
        of_groups: Collection[int] = (),
        stages_for: Callable[[PrivacyGuarantee], Sequence[PrivacyLoss]] | None = None,
    ) -> None:
        """Fix all losses, and charge the ledger for the whole fit, before anything is released.

        Parameters
        ----------
        stages : sequence of PrivacyLoss
            What each stage may cost with respect to one row, by public facts alone.
        noise : str or None, default=None
            Name of the noise.
        of_groups : collection of int, default=()
            The stages whose cost is that of a whole group already.
        stages_for : callable or None, default=None
            Returns the stages for another guarantee, of which a ledger that refuses names the
            largest. None: they are the same noise, only wider.

        Raises
        ------
        BudgetExceededError
            If the guarantee, or the ledger's budget, does not cover it; nothing is charged then.
        RuntimeError
            If something was charged already: then losses are no longer fixed in advance.
        """
        note_charge("fit", tuple(stages))
        with self._lock:
            if self._planned is not None or self._total is not None:
                raise RuntimeError(
                    "Account.spend must be called once, and before the first charge: afterwards a "
                    "loss may depend on what was released."
                )
            losses = self._of_units(stages, of_groups)
            if not self._covers(reduce(add, losses)):
                raise BudgetExceededError(
                    f"The stages of a fit would cost more than {self._stated} together. Raise "
                    "epsilon, or plan less."
                )
            whole, loss_for = _composed(losses), None
            if stages_for is not None:

                def loss_for(other: PrivacyGuarantee) -> PrivacyLoss:
                    return _composed(self._of_units(stages_for(other), of_groups))

            self._charge_ledger(whole, noise, "fit", loss_for)
            self._planned, self._stages = whole, [_Stage(loss) for loss in losses]

    def fix(self, stages: Sequence[PrivacyLoss], *, of_groups: Collection[int] = ()) -> None:
        """Fix the losses of all that is still to come, after pure releases that they depend on.

        Parameters
        ----------
        stages : sequence of PrivacyLoss
            What each stage to come may cost with respect to one row, by public facts and what was
            released so far.
        of_groups : collection of int, default=()
            The stages whose cost is that of a whole group already.

        Raises
        ------
        BudgetExceededError
            If what is planned does not cover it.
        RuntimeError
            If the plan is not all that some (ε, δ) promises, or something else than pure losses was
            charged.
        """
        with self._lock:
            spent = self._total or PureLoss(0.0)
            epsilon, delta = _promise(self._planned)
            if epsilon < 0.0 or not isinstance(spent, PureLoss):
                raise RuntimeError(
                    "Account.fix needs a plan of one stage, all that some (epsilon, delta) "
                    "promises, and only pure losses charged to it: what comes after a release of "
                    f"another kind must be fixed before it. The plan is {self._planned!r}, and "
                    f"{self._total or 'nothing'} was charged."
                )
            losses = self._of_units(stages, of_groups)
            left, rest = epsilon - spent.pure_epsilon, reduce(add, losses)
            if left < 0.0 or rest.delta(left) > delta:
                raise BudgetExceededError(
                    f"What is to come would cost {rest}, but after {spent} only "
                    f"(epsilon={left:g}, delta={delta:g}) is left of what was planned."
                )
            self._stages = [_Stage(loss) for loss in losses]

    def charge(self, label: str, mechanism: Mechanism, *, of_groups: bool = False) -> None:
        """Charge for all the releases of a mechanism, before it samples noise.

        Without :meth:`spend` the ledger is charged for the one mechanism, by the loss of its noise.

        Parameters
        ----------
        label, mechanism : str, Mechanism
            What will be released, and by what.
        of_groups : bool, default=False
            Whether its sensitivity is that to a whole group of rows, and not to one.

        Raises
        ------
        BudgetExceededError
            If the guarantee, or the ledger's budget, does not cover it; nothing is charged then.
        RuntimeError
            If the loss may have been chosen by looking, and no rule covers that; nothing is charged
            then either.
        """
        note_charge(label, mechanism)
        with self._lock:
            whole = of_groups or self.rows_per_group in (None, 1)
            loss = mechanism.privacy_loss() if whole else self._of_unit(mechanism.privacy_loss())
            check_relation("Account.charge", loss, self.guarantee.adjacency)
            total = loss if self._total is None else self._total + loss
            if self._planned is None:
                self._check_free(label, loss, total)
                exact = mechanism.own_loss() if whole else loss
                loss_for = calibrated_loss(mechanism, self.guarantee) if whole else None
                self._charge_ledger(exact, mechanism.noise, label, loss_for)
            else:
                self._take(label, loss)
            self._total = total
            of, size = mechanism.counted
            scales = float(np.min(mechanism.scale)), float(np.max(mechanism.scale))
            self._releases.append(
                Release(label, mechanism.noise, mechanism.n_releases, size, scales, loss, of)
            )

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Add to whatever is raised within that the ledger was charged, if it was."""
        try:
            yield
        except BaseException as error:
            if self._paid:
                name = getattr(self.ledger, "dataset", type(self.ledger).__name__)
                error.add_note(
                    f"{self._owner or 'The fit'} failed after the ledger of {name!r} was charged "
                    f"for it: {self._stated} stays spent, since a noisy result may exist already."
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
        kinds = groupby(self._releases, attrgetter("label", "noise"))
        if total is None:
            total, n = PureLoss(0.0), None
        return PrivacyReport(
            estimator=estimator,
            guarantee=self.guarantee,
            releases=tuple(reduce(add, alike) for _, alike in kinds),
            total=total,
            secure=secure,
            rows_per_group=self.rows_per_group,
            declared=self._declared,
            n_records=n,
            planned=self._planned,
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Account:
        return self

    # A copy that counted for itself would overspend.
    __copy__ = __deepcopy__

    @property
    def _declared(self) -> tuple[str, ...]:
        """Names of what the fit reads unpaid, known once the data are checked."""
        vouched = self.estimator._vouched() if hasattr(self.estimator, "_vouched") else ()
        return tuple(dict.fromkeys([*vouched, *self.declared]))

    @property
    def _owner(self) -> str | None:
        return None if self.estimator is None else type(self.estimator).__name__

    def _take(self, label: str, loss: PrivacyLoss) -> None:
        """Charge a loss to the first stage that has room for it, or refuse it."""
        # Where stages are charged one after the other, none is ever refused what is its own: a loss
        # that an earlier stage has no room for is the first that a later one sees.
        if not any(stage.take(loss) for stage in self._stages):
            raise RuntimeError(
                f"{label!r} costs {loss}, which fits into none of the losses that were fixed "
                f"before the first release: {', '.join(map(str, self._stages))}. Pass to "
                "Account.spend what each stage may cost at most; a loss that is chosen by looking "
                "at released numbers must be a part of a pure or a Gaussian stage."
            )

    def _check_free(self, label: str, loss: PrivacyLoss, total: PrivacyLoss) -> None:
        """Refuse a charge without a plan where no rule covers it, or the guarantee does not."""
        if self._total is not None:
            remedy = "Pass the losses of all releases to Account.spend before the first of them."
            if self.ledger is not None:
                raise RuntimeError(
                    f"{label!r} is the second charge of a fit without a plan: a ledger takes "
                    f"losses that were fixed before the first release. {remedy}"
                )
            if isinstance(total, NumericLoss):
                raise RuntimeError(
                    f"{label!r} would cost {loss} after {self._total}: losses of several kinds add "
                    "up only if none of them was chosen by looking at released numbers, and "
                    f"nothing shows that. {remedy}"
                )
        if not self._covers(total):
            raise BudgetExceededError(
                f"{label!r} would cost {loss}, but {self._total or 'nothing'} of {self._stated} is "
                "spent already. Raise epsilon, or release less."
            )

    def _covers(self, total: PrivacyLoss) -> bool:
        return total.delta(self.guarantee.epsilon) <= self.guarantee.delta

    @property
    def _stated(self) -> str:
        return f"(epsilon={self.guarantee.epsilon:g}, delta={self.guarantee.delta:g})"

    def _of_units(
        self, losses: Sequence[PrivacyLoss], of_groups: Collection[int]
    ) -> list[PrivacyLoss]:
        return [
            loss if number in of_groups else self._of_unit(loss)
            for number, loss in enumerate(losses)
        ]

    def _of_unit(self, loss: Any) -> Any:
        return loss if self.rows_per_group in (None, 1) else loss.for_group(self.rows_per_group)

    def _charge_ledger(
        self, cost: PrivacyLoss, noise: str | None, label: str, loss_for: LossFor | None
    ) -> None:
        if self.ledger is None:
            return
        given = public_parameters(self.estimator)
        facts = facts_for(
            self.ledger,
            self.guarantee,
            loss_for,
            adjacency=self.guarantee.adjacency,
            unit="record" if self.rows_per_group is None else "group",
            mechanism=noise,
            estimator=self._owner,
            parameters=None if given is None else given | said_public(self._declared),
        )
        self.ledger.charge(f"{self._owner}.fit" if self._owner else label, cost, **facts)
        self._paid = True


def _promise(loss: PrivacyLoss | None) -> tuple[float, float]:
    """Return the ε and δ of a loss that is all that they promise; -1 as the ε of any other."""
    if isinstance(loss, PureLoss):
        return loss.pure_epsilon, 0.0
    if isinstance(loss, NumericLoss) and len(loss.terms) == 1:
        ((curve, epsilon, count),) = loss.terms
        if isinstance(curve, Promised) and count == 1:
            return epsilon, curve.delta
    return -1.0, 0.0


def _composed(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
    """Return what stages cost together: pure ones compose as randomised responses do."""
    if len(losses) > 1 and all(isinstance(loss, PureLoss) for loss in losses):
        return reduce(add, (loss.numeric() for loss in losses))
    return reduce(add, losses)


def public_parameters(estimator: Any) -> dict[str, Any] | None:
    """Return constructor parameters as a ledger may know them: of a seed only that there is one."""
    if not hasattr(estimator, "get_params"):
        return None
    given = estimator.get_params(deep=False)
    given.pop("ledger", None)
    if is_seeded(given.pop("random_state", None)):
        given["random_state"] = HIDDEN_SEED
    return dict(given)
