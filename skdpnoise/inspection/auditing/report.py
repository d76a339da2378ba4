"""Findings of an audit, beside the claim and the most that could have been found."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

from skdpnoise.accounting.report import DECLARED
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.reporting.sheet import Sheet, Shown

__all__ = ["AuditReport", "BlackBoxResult", "OneRunResult", "ReplayResult"]

_NOT_PRIVATE = "not private unless the data are public: it was computed from them without noise"
# Beyond the claim by this much is floating-point error of a bound.
_ROUNDING = 1.0 + 1e-9


class _Result(ABC):
    __slots__ = ()
    method = ""
    claim: PrivacyGuarantee
    epsilon: float | None

    @property
    def passed(self) -> bool:
        """True if the bound does not exceed the claim."""
        return (self.epsilon or 0.0) <= self.claim.epsilon * _ROUNDING

    @property
    def refuted(self) -> bool:
        """True if something was found against the claim."""
        return not self.passed

    @property
    def found(self) -> str:
        """The finding, in a few words."""
        return f"epsilon >= {self.epsilon:.3g}"

    @property
    def most(self) -> str | None:
        """The most that could have been found; None: there is no limit."""
        most = getattr(self, "most_epsilon", None)
        return None if most is None else f"epsilon = {most:.3g}"

    @property
    @abstractmethod
    def details(self) -> tuple[str, ...]:
        """The meaning of the numbers, and how far they reach."""


@dataclass(frozen=True, slots=True)
class ReplayResult(_Result):
    """Findings of fits that were replayed on neighbours, with their releases frozen.

    Parameters
    ----------
    claim : PrivacyGuarantee
        What is audited.
    epsilon : float or None
        The largest ε that a change of one record used, of those that were tried: the loss of the
        noise for the shifts that were seen, whatever was declared. None where that is not known,
        as of the best of a random number of runs.
    n_checks : int
        Pairs of fits.
    n_releases : int
        Releases that were compared.
    shares : tuple of (str, float)
        For each label of a charge the largest change in units of what was declared. 1 is sharp.
    problems : tuple of str
        What tells the data sets apart beside the releases, was not charged, or exceeds the claim.
    broken : tuple of str, default=()
        Releases that one record moves further than is declared, in one of the declared bounds: the
        noise may make up for it, but what was proved from the declaration is not proved.

    Examples
    --------
    >>> result = ReplayResult(PrivacyGuarantee(1.0), 0.9, 10, 50, (("means", 0.9),), ())
    >>> result.passed, result.refuted, result.most
    (True, False, None)
    """

    claim: PrivacyGuarantee
    epsilon: float | None
    n_checks: int
    n_releases: int
    shares: tuple[tuple[str, float], ...]
    problems: tuple[str, ...]
    broken: tuple[str, ...] = ()

    method = "replay"
    false_alarm = 0.0

    @property
    def passed(self) -> bool:
        """True if nothing was found, neither against the claim nor against a declaration."""
        return not (self.problems or self.broken)

    @property
    def refuted(self) -> bool:
        return bool(self.problems)

    @property
    def found(self) -> str:
        if self.problems:
            return f"{len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        used = "an unknown part" if self.epsilon is None else f"epsilon = {self.epsilon:.3g}"
        return f"{used} is used"

    @property
    def details(self) -> tuple[str, ...]:
        shares = ", ".join(f"{label} {share:.3g}" for label, share in self.shares)
        return (
            *(f"problem: {text}" for text in self.problems),
            *(f"declaration BROKEN: {text}" for text in self.broken),
            f"{self.n_releases} releases in {self.n_checks} pairs of fits; largest change in units "
            f"of what was declared: {shares or 'none'}",
            "exact for the neighbours that were tried, and says nothing of others or of the law of "
            "the noise itself",
        )


@dataclass(frozen=True, slots=True)
class BlackBoxResult(_Result):
    """Findings of many fits on two neighbouring data sets.

    Parameters
    ----------
    claim : PrivacyGuarantee
        What is audited.
    claimed_mu : float or None
        μ of the Gaussian loss that the estimator states; None if it states no such loss.
    epsilon, mu : float
        Lower bounds, at the δ of the claim and of Gaussian privacy.
    most_epsilon, most_mu : float
        The bounds if the attack had never erred.
    n_fits, n_measured : int
        Fits on each data set, and those of them that had no part in the choice of the attack.
    hits : tuple of int
        How often the event behind `epsilon` occurred on the data set that it points to, and on the
        other, among the measured fits.
    score : str
        What the attack looks at.
    neighbours : str
        In what the data sets differ.
    mean_shift : float
        Distance of the mean scores in standard deviations: a diagnostic, which bounds nothing.
    false_alarm : float
        Probability that a sound estimator is found to break its claim.
    unread : tuple of str, default=()
        Types of objects in the fitted model that no audit can read. With any of them the estimator
        does not pass: what they hold may be anything.

    Examples
    --------
    >>> result = BlackBoxResult(
    ...     PrivacyGuarantee(1.0), None, 0.6, 0.4, 4.7, 5.0, 1000, 750, (400, 150), "number 3",
    ...     "zeros added", 0.8, 1e-3,
    ... )
    >>> result.passed, result.most
    (True, 'epsilon = 4.7')
    """

    claim: PrivacyGuarantee
    claimed_mu: float | None
    epsilon: float
    mu: float
    most_epsilon: float
    most_mu: float
    n_fits: int
    n_measured: int
    hits: tuple[int, int]
    score: str
    neighbours: str
    mean_shift: float
    false_alarm: float
    unread: tuple[str, ...] = ()

    method = "black_box"

    @property
    def passed(self) -> bool:
        """True if the bounds do not exceed the claim, and all of the model could be read."""
        most_mu = math.inf if self.claimed_mu is None else self.claimed_mu * _ROUNDING
        # A dataclass with slots is made twice, so that super() would not find itself.
        return super(BlackBoxResult, self).passed and self.mu <= most_mu and not self.unread

    @property
    def found(self) -> str:
        return f"epsilon >= {self.epsilon:.3g}, mu >= {self.mu:.3g}"

    @property
    def details(self) -> tuple[str, ...]:
        claimed = "" if self.claimed_mu is None else f" (claimed: {self.claimed_mu:.3g})"
        return (
            *(f"problem: the model holds a {kind}, which cannot be read" for kind in self.unread),
            f"neighbours: {self.neighbours}",
            f"mu >= {self.mu:.3g}{claimed} of at most {self.most_mu:.3g}; score: {self.score}",
            f"{self.n_fits} fits on each data set, {self.n_measured} of them measured: the event "
            f"occurred {self.hits[0]} and {self.hits[1]} times",
            f"mean shift of the score, a diagnostic and no bound: {self.mean_shift:.3g}",
        )


@dataclass(frozen=True, slots=True)
class OneRunResult(_Result):
    """Findings of one fit with many canaries.

    Parameters
    ----------
    claim : PrivacyGuarantee
        What is audited.
    epsilon : float
        Lower bound at the δ of the claim.
    most_epsilon : float
        The bound if every guess had been right.
    n_canaries, n_guesses, n_right : int
        Canaries, guesses about them, and guesses that were right.
    false_alarm : float
        Probability that a sound estimator is found to break its claim.

    Examples
    --------
    >>> OneRunResult(PrivacyGuarantee(1.0), 0.174, 3.76, 1000, 300, 190, 1e-3).passed
    True
    """

    claim: PrivacyGuarantee
    epsilon: float
    most_epsilon: float
    n_canaries: int
    n_guesses: int
    n_right: int
    false_alarm: float

    method = "one_run"

    @property
    def details(self) -> tuple[str, ...]:
        return (
            f"{self.n_canaries} canaries in one fit: {self.n_right} of {self.n_guesses} guesses "
            "were right",
        )


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport(Shown):
    """Claimed beside found, for one estimator and one data set.

    Prints as text, and as a table in notebooks. **It is not private** unless the data are public.

    Parameters
    ----------
    estimator : str
        Name of the class.
    claim : PrivacyGuarantee
        What is audited.
    results : tuple of ReplayResult, BlackBoxResult and OneRunResult
        One for each method.
    n_records : int
        Rows of the data.
    false_alarm : float
        Probability that a sound estimator does not pass, all methods together.
    left_out : tuple of str, default=()
        Which neighbours were not looked at, since the estimator refuses such input.
    declared : tuple of str, default=()
        Steps that the user declared public. They are audited as all others are.

    Examples
    --------
    >>> claim = PrivacyGuarantee(1.0)
    >>> found = OneRunResult(claim, 0.174, 3.76, 1000, 300, 190, 1e-3)
    >>> report = AuditReport("Example", claim, (found,), 500, 1e-3)
    >>> report.passed
    True
    >>> print(report)
    Example claims (epsilon=1, delta=0)-differential privacy, replace_one: nothing found
      one_run: epsilon >= 0.174 of a claimed epsilon = 1; most it could show: epsilon = 3.76; ...
      one_run: 1000 canaries in one fit: 190 of 300 guesses were right
      records: 500
      false alarm: a sound estimator fails with probability at most 0.001, all methods together
      this report: not private unless the data are public: it was computed from them without noise
    """

    estimator: str
    claim: PrivacyGuarantee
    results: tuple[ReplayResult | BlackBoxResult | OneRunResult, ...]
    n_records: int
    false_alarm: float
    left_out: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if no method found anything. That is no proof that the claim holds."""
        return all(result.passed for result in self.results)

    @property
    def refuted(self) -> bool:
        """True if the claim is refuted; if not, and not :attr:`passed`, a declaration is broken."""
        return any(result.refuted for result in self.results)

    @property
    def epsilon(self) -> float:
        """The largest lower bound of ε that a method has shown."""
        return max((result.epsilon or 0.0 for result in self.results), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain values, for JSON; what is not finite is None."""
        found: dict[str, Any] = _plain(asdict(self))
        claim: dict[str, Any] = found.pop("claim")
        for result, numbers in zip(self.results, found["results"], strict=True):
            del numbers["claim"]
            numbers["method"] = result.method
            numbers |= {"passed": result.passed, "refuted": result.refuted}
        return found | claim | {"passed": self.passed, "refuted": self.refuted}

    def _sheet(self) -> Sheet:
        claimed, claim = f"epsilon = {self.claim.epsilon:g}", self.claim
        private = f"(epsilon={claim.epsilon:g}, delta={claim.delta:g})-differential privacy"
        alarm = f"a sound estimator fails with probability at most {self.false_alarm:g}"
        return Sheet(
            title=f"{self.estimator} claims {private}, {claim.adjacency}",
            promise=verdict_of(passed=self.passed, refuted=self.refuted),
            head=("method", "claimed", "found", "most it could show", "verdict"),
            rows=[
                (
                    *(one.method, claimed, one.found, one.most or "no limit"),
                    verdict_of(passed=one.passed, refuted=one.refuted),
                )
                for one in self.results
            ],
            line="{0}: {2} of a claimed {1}; most it could show: {3}; {4}",
            facts=[
                *((one.method, text) for one in self.results for text in one.details),
                ("records", str(self.n_records)),
                *(("left out", text) for text in self.left_out),
                *([(DECLARED, ", ".join(self.declared))] if self.declared else []),
                ("false alarm", f"{alarm}, all methods together"),
                ("this report", _NOT_PRIVATE),
            ],
        )


def verdict_of(*, passed: bool, refuted: bool) -> str:
    if refuted:
        return "REFUTED"
    return "nothing found" + ("" if passed else ", but a declaration is BROKEN")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
