"""The guarantee of several fits: of a pipeline, or of estimators fitted to the same records."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, ValuesView
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from skdpnoise._utils.checks import check_real
from skdpnoise.accounting import PrivacyReport
from skdpnoise.accounting.declared import declared_below
from skdpnoise.accounting.report import DECLARED, SOURCE, neighbours
from skdpnoise.base.compositions import below, inner_of
from skdpnoise.base.costs import cost_of
from skdpnoise.base.steps import Part, parts_of, private_parts
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.reporting.sheet import Sheet, Shown

_MUST_HOLD = "The 'estimators' parameter of total_guarantee must hold"


@dataclass(frozen=True, slots=True, repr=False)
class TotalReport(Shown):
    r"""The guarantee of several fits together, by basic and by tight composition.

    Basic composition adds: :math:`(\sum_k \varepsilon_k, \sum_k \delta_k)`. Tight composition adds
    the losses that the fits were allowed, and states the ε at the same δ. A fit is counted with its
    whole budget, known in advance, or with nothing if it released nothing. A later fit may use what
    earlier ones released.

    **Unit.** If all fits protect groups of rows, and were given the same groups, so does the total;
    else it is stated for a record. Prints as text, and as a table in notebooks.

    Parameters
    ----------
    steps : tuple of (str, PrivacyReport)
        Name and report of each fit that protects its data.
    free : tuple of str
        Names of steps that learn nothing from the data.
    delta : float
        δ of tight composition.
    declared : tuple of str, default=()
        Names of steps for which the user vouches that they learn nothing private.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 3.16
    (basic). Dong, Roth and Su, "Gaussian differential privacy", arXiv:1905.02383, Theorem 3.2;
    Zhu, Dong and Wang, AISTATS 2022, Theorem 10 (tight).

    Examples
    --------
    >>> from skdpnoise.accounting.report import Release
    >>> release = Release("counts", "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(1.0))
    >>> one = PrivacyReport("Example", PrivacyGuarantee(1.0), (release,), PureLoss(1.0), True)
    >>> print(TotalReport((("first", one), ("second", one)), (), 0.0))  # doctest: +ELLIPSIS
    2 private fits: (epsilon=2, delta=0)-differential privacy
      first: Example, (epsilon=1, delta=0), 1-DP
      second: Example, (epsilon=1, delta=0), 1-DP
      basic composition: (epsilon=2, delta=0)
      tight composition: (epsilon=2, delta=0), 2-DP
      adjacency: replace_one (two data sets are neighbours if ...
      unit: a record (one row)
      randomness: the operating system's cryptographic source
    """

    steps: tuple[tuple[str, PrivacyReport], ...]
    free: tuple[str, ...]
    delta: float
    declared: tuple[str, ...] = ()

    @property
    def basic(self) -> PrivacyGuarantee | None:
        """Sums of ε and of δ; None if nothing was released."""
        spent = [report.guarantee for _, report in self._spent]
        if not spent:
            return None
        epsilon, delta = sum(g.epsilon for g in spent), sum(g.delta for g in spent)
        return PrivacyGuarantee(epsilon, min(delta, 1.0 - 1e-9), spent[0].adjacency)

    @property
    def loss(self) -> PrivacyLoss:
        """The composition of the losses that the fits were allowed."""
        spent = [report.allowed for _, report in self._spent]
        return reduce(add, spent) if spent else PureLoss(0.0)

    @property
    def epsilon(self) -> float:
        """The ε of all fits together that goes with ``delta``; 0 if nothing was released."""
        if self.basic is None:
            return 0.0
        tight = self.loss.epsilon(self.delta)
        return min(tight, self.basic.epsilon) if self.basic.delta <= self.delta else tight

    @property
    def unit(self) -> str:
        """The unit that is protected: "group" if every fit that released anything has groups."""
        units = {report.unit for _, report in self._spent}
        return "group" if units == {"group"} else "record"

    @property
    def _spent(self) -> tuple[tuple[str, PrivacyReport], ...]:
        return tuple(step for step in self.steps if step[1].releases)

    @property
    def secure(self) -> bool:
        """True if all noise came from the operating system's cryptographic source."""
        return all(report.secure for _, report in self.steps)

    def _sheet(self) -> Sheet:
        count = len(self.steps)
        promise = "nothing was released"
        if self.basic is not None:
            promise = f"{_pair(self.epsilon, self.delta)}-differential privacy"
        return Sheet(
            title=f"{count} private fit{'' if count == 1 else 's'}",
            promise=promise,
            head=("step", "estimator", "guarantee", "cost"),
            rows=self._rows(),
            line="{}: {}, {}, {}",
            facts=self._facts(),
            secure=self.secure,
        )

    def _rows(self) -> list[tuple[str, str, str, str]]:
        rows = []
        for name, report in self.steps:
            stated = _pair(report.guarantee.epsilon, report.guarantee.delta)
            rows.append((name, report.estimator, stated, str(report.allowed)))
        return rows

    def _facts(self) -> list[tuple[str, str]]:
        facts = []
        if self.basic is not None:
            tight = _pair(self.loss.epsilon(self.delta), self.delta)
            facts.append(("basic composition", _pair(self.basic.epsilon, self.basic.delta)))
            facts.append(("tight composition", f"{tight}, {self.loss}"))
        for name, steps in (("learn nothing from the data", self.free), (DECLARED, self.declared)):
            if steps:
                facts.append((name, ", ".join(steps)))
        relation = neighbours(self.steps[0][1].guarantee.adjacency, self.unit)
        unit, source = self._unit_in_words(), SOURCE[self.secure]
        return [*facts, ("adjacency", relation), ("unit", unit), ("randomness", source)]

    def _unit_in_words(self) -> str:
        if self.unit == "group":
            return "a group of rows (if all fits were given the same groups)"
        if any(report.unit == "group" for _, report in self._spent):
            return "a record (fits whose unit is a group protect each of its records too)"
        return "a record (one row)"


def total_guarantee(
    *estimators: Any, delta: float | None = None, public: Collection[str] = ()
) -> TotalReport:
    r"""Return what fitted estimators guarantee together, by basic and by tight composition.

    All must be of the same records. Compositions are taken apart by
    :func:`~skdpnoise.compose.taken_apart`, also where their parts see different columns. A step
    that may have learnt without privacy is an error.

    Parameters
    ----------
    *estimators : fitted estimators, scores, curves, estimates, cross-validations or reports
        Whatever states what it cost, also in lists, tuples and dicts. What carries a loss, but does
        not say for which neighbours, such as a mechanism, is refused.
    delta : float or None, default=None
        δ in [0, 1) at which tight composition is stated; None is the sum of those of the steps.
    public : collection of str, default=()
        Names of steps of which you know that they learn nothing private: as in the report, or
        the last part of it. The report then says so. What carries a loss is counted all the same,
        or refused.

    Returns
    -------
    TotalReport

    Raises
    ------
    UnpaidStepError
        If a step may learn from the data without privacy, or something carries a loss that cannot
        be counted: names every such step and what to do.
    ValueError
        If there is no private step, one is not fitted, or steps have different neighbouring
        relations: different adjacencies, or under "add_remove" different units.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdpnoise import DPLogisticCD, DPRobustScaler
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> pipeline = make_pipeline(DPRobustScaler(0.3), DPLogisticCD(0.7)).fit(X, X[:, 0] > 0)
    >>> total = total_guarantee(pipeline)
    >>> print(f"{total.basic.epsilon:g} {total.basic.delta:g} {total.epsilon:.2f}")
    1 2e-06 0.74
    """
    declared: list[str] = []
    given = estimators[0] if len(estimators) == 1 else estimators
    children = tuple(_listed("", given, declared))
    parts = parts_of(children, owner="total_guarantee", parameter="estimators", public=public)
    found: list[tuple[str, PrivacyReport]] = []
    free: list[str] = []
    unfitted: list[str] = []
    for part in parts:
        label = part.label or type(part.estimator).__name__
        report = getattr(part.estimator, "privacy_", None) or cost_of(part.estimator)
        if part.kind == "declared":
            declared.append(label)
        elif part.kind == "public":
            free.append(label)
        elif isinstance(report, PrivacyReport):
            found.append((label, report))
            # The report of a pipeline within another is that of the whole.
            names = getattr(part.estimator, "_declared", report.declared)
            declared += declared_below(part.label, names)
            found += _fitted_again(part, report)
        else:
            unfitted.append(f"{label} ({type(part.estimator).__name__})")
    if unfitted:
        raise ValueError(
            f"{_MUST_HOLD} fitted estimators. Got {', '.join(unfitted)} without a privacy report: "
            "fit first."
        )
    if not found:
        raise ValueError(
            f"{_MUST_HOLD} a fitted private estimator, one with a privacy report. Got none."
        )
    relations = {report.guarantee.adjacency for _, report in found}
    if len(relations) > 1:
        listed = ", ".join(f"{name}: {report.guarantee.adjacency!r}" for name, report in found)
        raise ValueError(
            f"{_MUST_HOLD} estimators with one adjacency, since guarantees for different "
            f"neighbours do not add. Got {listed}. Set the same adjacency= everywhere and fit "
            "again."
        )
    units = {report.unit for _, report in found if report.releases}
    if len(units) > 1 and "add_remove" in relations:
        # One record more in a group may take the place of another that was kept of it, which is
        # not one step of this relation.
        listed = ", ".join(f"{name}: a {report.unit}" for name, report in found)
        raise ValueError(
            f"{_MUST_HOLD} estimators with one unit under adjacency='add_remove', since a "
            "guarantee for groups that come and go as a whole says less about one record. Got "
            f"{listed}. Pass the same groups= to every fit."
        )
    if delta is None:
        delta = min(sum(r.guarantee.delta for _, r in found if r.releases), 1.0 - 1e-9)
    delta = check_real("total_guarantee", "delta", delta, high=1.0, low_closed=True)
    return TotalReport(tuple(found), tuple(free), delta, tuple(dict.fromkeys(declared)))


def _listed(label: str, given: Any, declared: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield all that collections and totals hold, each by its number or name."""
    if isinstance(given, TotalReport):
        declared += [below(label, name) for name in given.declared]
        given = dict(given.steps)
    elif isinstance(given, list | tuple | deque | ValuesView | Iterator):
        given = {str(number): one for number, one in enumerate(given, 1)}
    if not isinstance(given, dict):
        yield label, given
        return
    for name, one in given.items():
        yield from _listed(below(label, str(name)), one, declared)


def _fitted_again(whole: Part, report: PrivacyReport) -> list[tuple[str, PrivacyReport]]:
    """Return the reports of steps, at any depth, that were fitted again since the whole was."""
    found = []
    for name, step in inner_of(whole.estimator, fitted=True)[0]:
        for part in private_parts(step, fitted=True):
            part = replace(part, label=below(below(whole.label, name), part.label))
            own = getattr(part.estimator, "privacy_", report)
            if own != report:
                found.append((part.label or type(part.estimator).__name__, own))
            found += _fitted_again(part, own)
    return found


def _pair(epsilon: float, delta: float) -> str:
    return f"(epsilon={epsilon:g}, delta={delta:g})"
