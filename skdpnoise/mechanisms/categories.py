"""Noisy counts of categories that are shown where they reach a public threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.checks import check_adjacency, check_count, check_real, check_type, complaint
from skdpnoise._utils.sealed import stated
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.base import Mechanism, Recipe
from skdpnoise.privacy import Adjacency, GaussianLoss, NumericLoss, PrivacyLoss, Promised, PureLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import Cells, noisy_cells
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["CategoryMechanism"]

_UP = 1.0 + 1e-12  # relative error of a tail
_MOST_STEPS = 2.0**61  # of a count


@dataclass(frozen=True, slots=True)
class CategoryMechanism(Mechanism):
    r"""Noisy counts of categories, shown where they reach a threshold.

    **Guarantee.** Between neighbours, one record less is one less in one cell of each column, and a
    record that is replaced is also one more in another. Take such a cell. If somebody else has its
    category, the cell is released as a number with noise that moves by one, and hidden below the
    threshold, which is post-processing. If nobody else has it, the neighbour never shows it, and
    the other data set shows it with probability p₁: the pair of ``Promised(p1)`` with ε = 0
    dominates both orders. Cells have noise of their own, so that the losses compose:

    .. math:: L = L_{\text{noise on all moved cells}} + \sum_{\text{moved cells}} L_{p_1}

    **Groups** of m rows move counts as m rows do one after the other: by a vector whose l1 and l2
    norms are at most m times as large, which costs normal noise m μ, and other noise m ε. In each
    column, and in each direction, at most m cells belong to this group alone, each with at most m
    records: they are shown with probability :math:`p_m` at most.

    Parameters
    ----------
    additive : AdditiveMechanism
        The noise of the cells that one record moves: one coordinate for each column, two under
        replace-one, each moving by 1, with one scale for all.
    threshold : float
        τ > 1, in records.
    adjacency : {"replace_one", "add_remove"}, default="replace_one"
        Neighbouring relation.
    rows_per_group : int, default=1
        m, the most rows of what is protected.

    Raises
    ------
    TypeError, ValueError
        If a field is of the wrong kind, the noise differs between cells or is charged for moves of
        less than one, or fields contradict one another.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, WWW 2009. Balcer and Vadhan, arXiv:1709.05396, Theorem
    4.5 (stability-based histograms). Zhu, Dong and Wang, AISTATS 2022, Theorem 10 (composition).

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.privacy import PureLoss
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> cells = SensitivityProfile([1.0, 1.0], l1=2.0)
    >>> made = CategoryMechanism(calibrate("iid_laplace", cells, PureLoss(1.0)), 30.0)
    >>> round(made.chance(1) * 1e7, 2), round(made.chance(40), 3)
    (2.52, 0.997)
    >>> round(made.privacy_loss().epsilon(1e-6), 3)
    1.0
    """

    additive: AdditiveMechanism
    threshold: float
    adjacency: Adjacency = "replace_one"
    rows_per_group: int = 1
    recipe: Recipe | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_type(owner, "additive", self.additive, AdditiveMechanism)
        check_adjacency(owner, self.adjacency)
        threshold = check_real(owner, "threshold", self.threshold, low=1.0)
        rows = check_count(owner, "rows_per_group", self.rows_per_group)
        stated(self, threshold=threshold, rows_per_group=rows)
        made = self.additive
        profile, scale = made.sensitivity, made.scale
        joint = scale.size if profile.l1 is None else profile.l1
        joint_l2 = math.sqrt(scale.size) if profile.l2 is None else profile.l2
        if not threshold * 2.0**made.bits <= _MOST_STEPS / 2.0 * float(scale.min()):
            must = "be at most 2**60 steps of the noise"
            raise ValueError(complaint(owner, "threshold", must, f"{threshold:g}"))
        alike = made.n_releases == 1 and scale.ndim == 1 and np.ptp(scale) == 0.0
        one_law = not made.family.lattice and len(set(made.families or ())) <= 1
        moves = bool((profile.per_coordinate >= 1.0).all()) and joint >= scale.size
        moves = moves and joint_l2 >= math.sqrt(scale.size)
        moves = moves and type(profile) is SensitivityProfile  # and not one of groups
        if not (one_law and alike and moves):
            must = "be real noise of one law for one release, in which all coordinates move by 1"
            raise ValueError(complaint(owner, "additive", must, str(made)))
        loss = made.privacy_loss()
        if rows > 1 and not (isinstance(loss, GaussianLoss) or math.isfinite(loss.epsilon(0.0))):
            must = "be normal noise, or noise that gives pure privacy, for groups of rows"
            raise ValueError(complaint(owner, "additive", must, repr(made.noise)))
        if scale.size % self._per_column:
            must = "have two coordinates for each column under 'replace_one'"
            raise ValueError(complaint(owner, "additive", must, str(scale.size)))

    @property
    def _per_column(self) -> int:
        return 2 if self.adjacency == "replace_one" else 1

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.additive.scale.size // self._per_column

    @property
    def counted(self) -> tuple[str, int]:
        return "columns", self.n_columns

    @property
    def noise(self) -> str:
        return self.additive.noise

    @property
    def sensitivity(self) -> SensitivityProfile:
        return self.additive.sensitivity

    @property
    def scale(self) -> NDArray[np.float64]:
        return self.additive.scale

    @property
    def grid_size(self) -> float:
        return float(self.additive.grid_size[0])

    def chance(self, n_records: int) -> float:
        """Return the probability that a category of so many records is shown, rounded up.

        Parameters
        ----------
        n_records : int
            At least 1.
        """
        n_records = check_count(type(self).__name__, "n_records", n_records)
        # A rounded draw is at least k where the real one is at least k - 1/2.
        steps = self._limit - int(self._in_steps([n_records])[0]) - 0.5
        tail = self.additive.family.sf(steps * 2.0**-self.additive.bits)
        return min(1.0, math.nextafter(float(tail) * _UP, 1.0))

    def privacy_loss(self) -> PrivacyLoss:
        rows, cells = self.rows_per_group, self.additive.scale.size
        noise = _of_rows(self.additive, rows).numeric()
        return NumericLoss(((Promised(self.chance(rows)), 0.0, rows * cells),)) + noise

    def shown(
        self,
        counts: Sequence[int],
        rng: RandomWords,
        names: Callable[[], Sequence[Any]] | None = None,
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which of the counts of one column are shown, and these with noise.

        Parameters
        ----------
        counts : sequence of int
            How many records have each category that occurs.
        rng : RandomWords
            Where noise comes from.
        names : callable or None, default=None
            Returns the category of each count. Called only where an audit looks on, which must
            know which counts of two neighbours belong together; None: they are the same ones.

        Returns
        -------
        shown : ndarray of bool
        noisy : ndarray of shape (n_shown,)
            Noisy counts, at least the threshold.
        """
        made = self.additive
        steps = self._in_steps(counts)
        draws = made.family.sample_rounded(rng, steps.shape, made.bits)
        few = int(self._in_steps([self.rows_per_group])[0])
        cells = Cells(names or (lambda: range(len(counts))), few, self._limit - 1)
        noisy = noisy_cells(self, cells, steps, draws)
        shown = noisy >= self._limit
        return shown, np.asarray(noisy[shown] * self.grid_size, dtype=np.float64)

    @property
    def _limit(self) -> int:
        """The threshold in grid steps, rounded up."""
        return math.ceil(self.threshold / self.grid_size)

    def _in_steps(self, counts: Any) -> NDArray[np.int64]:
        """Return counts in grid steps, clipped so that no sum with noise leaves 64 bits."""
        steps = np.rint(np.asarray(counts, dtype=np.float64) / self.grid_size)
        return np.minimum(steps, _MOST_STEPS).astype(np.int64)


def _of_rows(made: AdditiveMechanism, rows: int) -> PrivacyLoss:
    loss = made.privacy_loss()
    if rows == 1:
        return loss
    if isinstance(loss, GaussianLoss):
        return loss.for_group(rows)
    return PureLoss(loss.epsilon(0.0)).for_group(rows)
