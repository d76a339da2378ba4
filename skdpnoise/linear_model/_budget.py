"""How one guarantee is shared between the stages of a fit, on public facts alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skdpnoise.accounting.budget import BESIDE, COUNT_SHARE, HALF, LEAST
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._records import LinearSchema, Settings
from skdpnoise.mechanisms import calibrate, shared_budget
from skdpnoise.noises.registry import shape_rule
from skdpnoise.privacy import Adjacency, GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss
from skdpnoise.queries.location_scale import finest_histogram
from skdpnoise.queries.ranges import searching_share
from skdpnoise.queries.searched_location import count_strength, rough_share, search_share
from skdpnoise.sensitivity import SensitivityProfile, clipped_gradient

NORMAL = "inid_gaussian"  # noise for gradients of all columns at once, where a record has a norm
PURE = "inid_laplace"  # of all else beside such gradients, which have that of their ball


@dataclass(frozen=True, slots=True)
class FitBudget:
    """The noise that is used throughout, and what each stage may cost."""

    noise: str  # "<rule>_<family>"
    total: LossBudget  # of the whole fit
    adjacency: Adjacency
    needs: tuple[float, float]  # how much scaling the features need, and the target; 0 for labels
    n_open: int  # columns without public bounds, the target included
    # What comes first: the "search" for a target without bounds, the numbers of records of each of
    # the "classes", the "scaling" of a target within bounds, or "nothing" without an intercept.
    first: str
    counting: float  # share of the total for the number of records; 0 where that is public
    scaling: float  # share of the rest for locations and scales, were the target one of the columns
    searching: float  # for the search or the classes, before features and model share what is left
    looking: float = 0.0  # of what a search of the target leaves, for a second look
    centred: int = 0  # columns within bounds whose mean is estimated as that of whole rows
    rough: bool = False  # whether the search for a target finds a median and a spread alone
    # Of what the features may cost, what the model may; below 0 where these cost more.
    spared: float = 0.0
    most_for_classes: float = 1.0  # of the share for their numbers of records

    @property
    def pure(self) -> bool:
        """True if losses are of ε alone."""
        return isinstance(self.total, PureLoss)

    @property
    def order(self) -> float:
        """1 where the costs of releases add up, as of Laplace noise, 2 where their squares do."""
        return 1.0 if self.pure else 2.0

    @property
    def target(self) -> LossBudget:
        """Cost of the scaling of a target within bounds, at most."""
        return self.total.share((1.0 - self.counting) * self._target_part)

    @property
    def search(self) -> LossBudget:
        """Cost of the search for the target, or of the numbers of records of classes, at most."""
        return self.total.share(self._left * self.searching)

    @property
    def features(self) -> LossBudget:
        """Cost of the scaling of the features, at most."""
        return self._rest(self._features_part)

    @property
    def least(self) -> FitBudget:
        """The budget that leaves least to features and model, whatever numbers are released."""
        searching = 0.0 if self.first == "nothing" else 1.0 - BESIDE
        return replace(self, searching=searching)

    @property
    def model(self) -> LossBudget:
        """Cost of the gradients or second moments, at most."""
        return self._rest(1.0 - self.scaling + self.spared * self._features_part)

    @property
    def again(self) -> float:
        """Part of what the features cost that they may cost again: all, or half of the model's."""
        return min(1.0, HALF * (1.0 - self.scaling) / self._features_part)

    @property
    def _features_part(self) -> float:
        return self.scaling * self.needs[0] / sum(self.needs)

    def stages(self, n_samples: float | None) -> list[LossBudget]:
        """Return what each stage may cost, fixed before the first one: for a ledger."""
        # Gaussian losses add in squares, so that stages would say no more than the total does.
        # Where the number of records is private, what is left is shared by that number; where a
        # target is within bounds, what is left after its scaling may be shared with a search; and
        # what is left after a search, with a second look.
        if isinstance(self.total, GaussianLoss):
            return [self.total]
        if self.counting:
            return [self.total.share(self.counting), self.total.share(1.0 - self.counting)]
        assert n_samples is not None
        known = self.for_records(n_samples)
        scales = known.scaling * known.needs[0] > 0.0
        later = [known.features, known.model] if scales else [known.model]
        if known.first == "nothing":
            return later
        if known.first == "scaling":
            return [known.target, known.total.share(known._left)]
        if known.looking:
            return [known.search, known._rest(1.0 - known._target_part)]
        return [known.search, *later]

    def for_records(self, n_samples: float) -> FitBudget:
        """Return the budget once the number of records, public or noisy, is known."""
        scaling = self.scaling
        if self.n_open:
            histograms = SensitivityProfile(np.ones(2 * self.n_open))
            mechanism = calibrate(self.noise, histograms, self.total)
            scaling = tuned.scaling_share(float(mechanism.standard_deviation.mean()) / n_samples)
        if self.centred:
            n_sums = self.centred + (1 if self.pure else self.centred)  # means, and mean squares
            strength = tuned.ball_strength(self.total, n_samples, n_sums)
            scaling = tuned.row_share(self.centred, strength, self.order)
        known = replace(self, scaling=scaling)
        n_open = self.n_open - (self.first == "search")
        if n_open and self.first != "scaling":
            part = searching_share(self.noise, known.features, n_samples, n_open)
            known = replace(known, scaling=part * scaling)
        if self.first == "search":
            return known.with_search(n_samples)
        if self.first == "classes":
            strength = count_strength(self.noise, self.total, n_samples)
            share = min(tuned.class_share(strength, self.order), self.most_for_classes)
            return replace(known, searching=share)
        return known

    def with_search(self, n_samples: float) -> FitBudget:
        """Return the budget with a search for the target, which all later stages share."""
        left = self.total.share(self._left)
        # Where there are bounds, what comes after is worth more than a better search.
        bare = self.first == "scaling"
        rough = 0.0 if bare else rough_share(self.noise, left, n_samples)
        if rough:
            return replace(self, searching=rough, rough=True)
        needed = search_share(self.noise, left, n_samples, 1.0 - BESIDE, bare=bare)
        return replace(self, searching=max(LEAST, needed))

    def with_another_look(self) -> tuple[LossBudget, FitBudget] | None:
        """Return what a second look at the target may cost, and the budget after it."""
        # None where there is none, or where the search took so much that it would find nothing.
        return None if self.searching > HALF else self.with_one_more(self.looking)

    def with_one_more(self, part: float) -> tuple[LossBudget, FitBudget]:
        """Return such a part of what is left for features and model, and the budget after it."""
        taken = (1.0 - self.searching) * part
        after = replace(self, searching=self.searching + taken)
        return self.total.share(self._left * taken), after

    @property
    def _target_part(self) -> float:
        return self.scaling * self.needs[1] / sum(self.needs)

    @property
    def _left(self) -> float:
        """Share of the total that is left after counting and, within bounds, scaling the target."""
        taken = self._target_part if self.first == "scaling" else 0.0
        return (1.0 - self.counting) * (1.0 - taken)

    def _rest(self, part: float) -> LossBudget:
        """Return what `part` of the scaling and the model comes to after all that comes first."""
        rest = self._left * (1.0 - self.searching)
        return self.total.share(rest * part / (1.0 - self._target_part))


def split_budget(
    settings: Settings, rows_per_group: int, schema: LinearSchema, guarantee: PrivacyGuarantee
) -> FitBudget:
    """Choose the noise, if that is "auto", and share the guarantee out."""
    n_outputs, n_features = schema.n_outputs, schema.n_columns
    n_coordinates, shares = n_outputs * (n_features + 1), tuned.SHARES
    gradients = clipped_gradient(np.ones(n_coordinates), guarantee.adjacency)
    passes = tuned.COORDINATE.reference_passes
    noise, total = shared_budget(settings.noise, gradients, guarantee, passes, rows_per_group)
    bounded = np.isfinite(schema.bounds).all(axis=0)
    n_open_features = n_open = n_features - int(bounded.sum())
    target_bounds, intercept = schema.target_bounds, settings.fit_intercept
    alone = settings.whole and intercept and target_bounds is None
    centred = n_features if alone and bounded.all() and not schema.sparse else 0
    # A column whose scale is public needs nothing.
    known = (schema.column_groups != NO_GROUP) | schema.sparse
    known = known if not centred else np.zeros(1, dtype=bool)
    wanted = np.where(bounded, HALF, 1.0)
    needs = float(np.where(known, 0.0, wanted).sum()), 0.0
    # Few passes, as of pure noise, begin at the intercept of the classes.
    weighed = settings.whole and isinstance(settings.class_weight, str)
    begins = intercept and (not settings.whole or isinstance(total, PureLoss))
    first = "classes" if weighed or begins else "nothing"
    if target_bounds is not None:
        needs = needs[0], float(np.sqrt(n_features))
        first = "scaling" if np.isfinite(target_bounds).all() else "search"
        n_open += first == "search"
    scaling = shares.scaling * (1.0 if n_open else HALF)
    if not any(needs):
        needs, scaling = (1.0, 0.0), 0.0
    budget = FitBudget(
        noise,
        total,
        guarantee.adjacency,
        needs,
        n_open,
        first,
        counting=COUNT_SHARE if guarantee.adjacency == "add_remove" else 0.0,
        scaling=scaling,
        searching=LEAST if first in ("search", "classes") else 0.0,
        looking=0.0 if target_bounds is None else _looking(total),
        centred=centred,
        most_for_classes=BESIDE if settings.whole else 1.0,
    )
    # A release may be too small for the noise where the scale does not decide all.
    if isinstance(total, PureLoss) or shape_rule(noise.partition("_")[2]) is not None:
        _check_smallest(budget, n_open_features, n_features, n_outputs)
    return budget


def _looking(total: LossBudget) -> float:
    """Return the share for a second look: more where costs add up than where squares do."""
    return 2.0 * BESIDE if isinstance(total, PureLoss) else BESIDE


def _check_smallest(budget: FitBudget, n_open: int, n_features: int, n_outputs: int) -> None:
    """Raise what the smallest releases before the model would raise."""
    least, classes = budget.least, replace(budget, searching=LEAST)
    releases = [(1, least.model.share(LEAST))]
    if budget.counting:
        releases.append((1, budget.total.share(budget.counting)))
    if budget.first == "classes":
        releases.append((max(2, n_outputs), classes.search))
    if n_open:
        share, n_bins = finest_histogram(n_open)
        releases.append((n_bins, least.features.share(share)))
    elif budget.scaling * budget.needs[0] > 0.0:
        releases.append((n_features, least.features.share(0.5)))
    for n_coordinates, loss in releases:
        calibrate(budget.noise, SensitivityProfile(np.ones(n_coordinates)), loss)
