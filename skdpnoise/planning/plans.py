"""Plans: noise and cost of each stage, hidden columns, and scores of a simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from skdpnoise._utils.checks import check_real, complaint
from skdpnoise.accounting import Release
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.reporting.sheet import Sheet, Shown

__all__ = ["PlannedStage", "PrivacyPlan", "SimulatedScore"]

_SHOWN = 8  # names of columns
_LARGE = 1000.0
_NOTE = (
    "a simulation: made-up records with independent columns, of which a linear model explains the "
    "share signal={:g}. No private record was read and nothing was charged. Real scores differ."
)


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """One kind of release that a fit would make.

    Parameters
    ----------
    release : Release
        What would be released: its name, noise, size, scale and loss.
    share : float
        Share of the budget, in (0, 1].
    n_records : float
        Noise scale of one release, in units of the most that one record can change: that many
        records, all changed to the same end, would be as large as the noise. Where the loss is
        neither pure nor Gaussian, that of normal noise with the same ε and δ.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> loss = PureLoss(0.5)
    >>> PlannedStage(Release("counts", "iid_laplace", 1, 10, (2.0, 2.0), loss), 0.25, 2.0).share
    0.25
    """

    release: Release
    share: float
    n_records: float


@dataclass(frozen=True, slots=True)
class SimulatedScore:
    """Scores of fits at one ε, each on made-up records of its own.

    Parameters
    ----------
    epsilon : float
        ε of the fits.
    values : tuple of float
        The score of each on other made-up records.

    Examples
    --------
    >>> score = SimulatedScore(1.0, (0.75, 0.25, 0.5))
    >>> score.median, score.lowest, score.highest
    (0.5, 0.25, 0.75)
    """

    epsilon: float
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the scores: a fit that noise throws far off does not move it far."""
        return float(np.median(self.values))

    @property
    def lowest(self) -> float:
        """The lowest score of a fit."""
        return min(self.values)

    @property
    def highest(self) -> float:
        """The highest score of a fit."""
        return max(self.values)


@dataclass(frozen=True, slots=True, repr=False)
class PrivacyPlan(Shown):
    """Releases, hidden columns and scores of a fit, before anything is spent.

    Prints as text, and as a table in notebooks. It is made of public facts alone.

    Parameters
    ----------
    estimator : str
        Name of the class.
    guarantee : PrivacyGuarantee
        What the estimator asks for.
    n_samples, n_columns : int
        Size of the table.
    stages : tuple of PlannedStage
        In the order in which they would be released.
    share_of : str
        In what shares are counted: "ε" or "μ²".
    hidden : tuple of (str, float)
        Columns that noise would hide, with the share of the fits in which it did.
    warnings : tuple of str
        What the first fit warned of.
    score_name : str or None
        What the scores are; None where nothing is predicted.
    scores : tuple of SimulatedScore
        By increasing ε; empty where nothing is predicted.
    best : float or None
        What the best predictions of the made-up targets score; None if that is not known.
    signal : float
        The share of the target that the made-up columns explain.
    n_fits : int
        Fits at each ε.
    affordable : float or None, default=None
        The largest ε of such a fit that the ledger covers, rounded down to four digits; 0 if there
        is none, None without a ledger, or where nothing is charged.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> release = Release("counts", "iid_laplace", 1, 10, (2.0, 2.0), PureLoss(1.0))
    >>> stages = (PlannedStage(release, 1.0, 2.0),)
    >>> scores = (SimulatedScore(0.5, (0.5,)), SimulatedScore(2.0, (0.75,)))
    >>> plan = PrivacyPlan(
    ...     "Example", PrivacyGuarantee(1.0), 500, 10, stages, "ε", (), (), "accuracy", scores,
    ...     best=0.9, signal=0.5, n_fits=1,
    ... )
    >>> round(plan.epsilon_for(score=0.625), 3)
    1.0
    """

    estimator: str
    guarantee: PrivacyGuarantee
    n_samples: int
    n_columns: int
    stages: tuple[PlannedStage, ...]
    share_of: str
    hidden: tuple[tuple[str, float], ...]
    warnings: tuple[str, ...]
    score_name: str | None
    scores: tuple[SimulatedScore, ...]
    best: float | None
    signal: float
    n_fits: int
    affordable: float | None = None

    @property
    def score(self) -> SimulatedScore | None:
        """The scores at the ε of the estimator; None where nothing is predicted."""
        return next((one for one in self.scores if one.epsilon == self.guarantee.epsilon), None)

    def epsilon_for(self, score: float) -> float:
        """Return the ε at which the simulation reaches a score.

        Straight lines over log ε join the median scores, made to rise by isotonic regression.

        Parameters
        ----------
        score : float
            What is to be reached, in the units of the plan's scores.

        Returns
        -------
        float
            The smallest simulated ε where that reaches the score already.

        Raises
        ------
        ValueError
            If no simulated ε reaches it, or nothing was simulated.
        """
        if not self.scores:
            raise ValueError(
                f"{self.estimator} predicts nothing, so that no score was simulated: plan for the "
                "pipeline or model that uses it."
            )
        wanted = check_real("PrivacyPlan.epsilon_for", "score", score, low=-math.inf)
        medians = isotonic_regression([one.median for one in self.scores])
        logs = [math.log(one.epsilon) for one in self.scores]
        if wanted > medians[-1]:
            best = "" if self.best is None else f" (the best predictions reach {self.best:.4g})"
            must = (
                f"be at most {medians[-1]:.4g}, which the simulation reaches at "
                f"epsilon={self.scores[-1].epsilon:g}{best}"
            )
            remedy = "Plan with larger epsilons=, more rows, or another model."
            owner = "PrivacyPlan.epsilon_for"
            raise ValueError(complaint(owner, "score", must, f"{wanted:g}", remedy))
        place = int(np.searchsorted(medians, wanted))
        if place == 0:
            return self.scores[0].epsilon
        ends = slice(place - 1, place + 1)
        return math.exp(float(np.interp(wanted, medians[ends], logs[ends])))

    def to_dict(self) -> dict[str, Any]:
        """Return all facts as plain values, such as JSON takes."""
        names = "label", "noise", "n_releases", "n_coordinates"
        stages = [
            {name: getattr(made, name) for name in names}
            | {"scale": list(made.scale), "loss": str(made.loss), "share": stage.share}
            | {"n_records": stage.n_records if math.isfinite(stage.n_records) else None}
            for stage, made in ((one, one.release) for one in self.stages)
        ]
        scores = [{"epsilon": one.epsilon, "values": list(one.values)} for one in self.scores]
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        del found["guarantee"]
        plain = {"stages": stages, "hidden": dict(self.hidden), "warnings": list(self.warnings)}
        return found | asdict(self.guarantee) | plain | {"scores": scores}

    def _sheet(self) -> Sheet:
        g = self.guarantee
        head = ("to be released", f"share of {self.share_of}", "vectors x length", "noise", "scale")
        return Sheet(
            kind="Plan",
            title=self.estimator,
            promise=f"{self.n_samples:,} rows of {self.n_columns:,} columns, (epsilon="
            f"{g.epsilon:g}, delta={g.delta:g})-differential privacy, {g.adjacency}",
            head=(*head, "as large as"),
            rows=[*self.rows()],
            line="{}: {}, {}, {}, scale {}, as large as {}",
            facts=[*self._facts()],
        )

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield what is said of each stage: name, share, size, noise, scale and its size."""
        for stage in self.stages:
            release = stage.release
            low, high = (f"{end:.3g}" for end in release.scale)
            yield (
                release.label,
                f"{100.0 * stage.share:.3g} % of {self.share_of}",
                f"{release.n_releases} x {release.n_coordinates}",
                release.noise,
                low if low == high else f"{low} to {high}",
                f"{stage.n_records:.3g} records",
            )

    def _facts(self) -> Iterator[tuple[str, str]]:
        if self.hidden:
            names = [f"{name} ({100.0 * share:.0f} %)" for name, share in self.hidden[:_SHOWN]]
            more = len(self.hidden) - len(names)
            others = f" and {more} more" if more else ""
            text = f"{', '.join(names)}{others}, in that share of {self.n_fits} fits"
            yield "hidden by noise", text
        # A median of several fits, and how far they reach.
        for one in self.scores:
            low, high = _rounded(one.lowest), _rounded(one.highest)
            text = f"{_rounded(one.median)} ({low} to {high})"
            yield f"{self.score_name} at epsilon={one.epsilon:.4g}", text
        if self.best is not None:
            yield f"best possible {self.score_name}", _rounded(self.best)
        if self.affordable is not None:
            yield "largest epsilon that the ledger covers", f"{self.affordable:g}"
        for text in self.warnings:
            yield "warning", text
        yield "what this is", _NOTE.format(self.signal)


def _rounded(score: float) -> str:
    """Return a score with three digits behind the point, and large ones in short."""
    return f"{score:.3g}" if abs(score) >= _LARGE else f"{round(score, 3) + 0.0:.3f}"
