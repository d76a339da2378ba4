"""Private second moments of bounded rows: noise on symmetric matrices, and its scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, check_option, check_type, complaint
from skdpnoise._utils.sealed import sealed, stated
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms.additive import compared
from skdpnoise.mechanisms.allocation import fill, norm, shape_of
from skdpnoise.mechanisms.base import Mechanism
from skdpnoise.mechanisms.grid_sizes import check_precision
from skdpnoise.mechanisms.requests import CHOICES, budget_of, number_of
from skdpnoise.privacy import Adjacency, PrivacyGuarantee, check_adjacency, check_count, check_real
from skdpnoise.privacy.loss import GaussianLoss, LossBudget, PureLoss, checked_relation
from skdpnoise.sampling import Exponent, RandomWords, balls, piecewise, random_words
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import (
    RowBounds,
    SensitivityProfile,
    second_moment_change,
    second_moments_profile,
)
from skdpnoise.sensitivity.second_moments import ChangeNorm

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Draw = Callable[[RandomWords, int, float, int], tuple[Integers, Integers]]

_HALF = math.sqrt(0.5)
_ENTRY_BITS = 52


@dataclass(frozen=True, slots=True)
class Family:
    """Noise on the entries of a symmetric matrix, at unit scale."""

    pure: bool
    norm: ChangeNorm
    deviations: Callable[[int, float], tuple[float, float]]
    draw: Draw
    most_bits: Callable[[int], int]
    most_columns: float = math.inf

    def change(
        self, bounds: RowBounds, adjacency: Adjacency, scale: Vector, off_diagonal: float
    ) -> float:
        """Return the most that one record can do, in units of the noise: the loss."""
        worst = second_moment_change(
            bounds, adjacency, norm=self.norm, scale=scale, off_diagonal=off_diagonal
        )
        return 0.5 * worst if self.norm == "nuclear" else worst


def _independent(
    rounded: Callable[[RandomWords, int, int], Integers], exponent: Callable[[float], Exponent]
) -> Draw:
    """Return a sampler of independent entries; off the diagonal by the exponent at a scale r."""

    def draw(
        rng: RandomWords, size: int, off_diagonal: float, bits: int
    ) -> tuple[Integers, Integers]:
        diagonal, n_others = rounded(rng, size, bits), size * (size - 1) // 2
        if off_diagonal == 1.0:
            return diagonal, rounded(rng, n_others, bits)
        return diagonal, piecewise.rounded_piecewise(rng, n_others, bits, exponent(off_diagonal))

    return draw


def _exponent(linear: float, square: float) -> Exponent:
    return Exponent((0.0,), ((0.0, linear, square, 0.0),))


GAUSSIAN = Family(
    False,
    "l2",
    lambda p, r: (1.0, r),
    _independent(
        piecewise.rounded_gaussian, lambda r: _exponent(0.0, 1.0 if r == _HALF else 0.5 / r**2)
    ),
    lambda p: _ENTRY_BITS,
)
LAPLACE = Family(
    True,
    "l1",
    lambda p, r: (math.sqrt(2.0), math.sqrt(2.0) * r),
    _independent(piecewise.rounded_laplace, lambda r: _exponent(1.0 / r, 0.0)),
    lambda p: _ENTRY_BITS,
)
K_NORM = Family(
    True,
    "l2",
    lambda p, r: (math.sqrt(p * (p + 1) / 2 + 1), math.sqrt(0.5 * (p * (p + 1) / 2 + 1))),
    lambda rng, size, r, bits: balls.rounded_frobenius(rng, size, bits),
    lambda p: min(44, balls.most_places(p * (p + 1) // 2 + 1) - 1),
)
WISHART = Family(
    True,
    "nuclear",
    lambda p, r: (2.0 * math.sqrt(p + 1.0), math.sqrt(2.0 * (p + 1.0))),
    lambda rng, size, r, bits: balls.rounded_wishart(rng, size, bits),
    balls.wishart_places,
    balls.MOST_ROWS,
)

FAMILIES = {
    "iid_gaussian": GAUSSIAN,
    "inid_gaussian": GAUSSIAN,
    "iid_laplace": LAPLACE,
    "inid_laplace": LAPLACE,
    "k_norm": K_NORM,
    "wishart": WISHART,
}


SECOND_MOMENT_NOISES = (*FAMILIES, *CHOICES)

_AUTO = tuple(name for name in FAMILIES if not name.startswith("iid_"))

# Floating-point error of the worst case, and what integer rows may exceed their bounds by.
_MARGIN = 1.0 + 1e-10
_LARGEST_COUNT = 2**63 - 2**61
# Sums of so large squares of integer rows fit 63 bits for a thousand million rows, and sums over a
# million rows are exact in double precision.
_LARGEST_SQUARE = 2.0**32.5
_MOST_BITS = 26  # of a column: 52 of an entry
_SMALLEST, _LARGEST = 1e-140, 1e140  # of grid steps and scales of rows, which are multiplied
_LEAST_BOUND, _MOST_BOUND = 1e-70, 1e70  # fourth powers stay within double precision


@shared_texts
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SymmetricMatrixMechanism(Mechanism):
    r"""Release the second moments of bounded rows with noise on a symmetric matrix, exactly.

    .. math:: \hat S_{jk} = q_j q_k \Bigl(\sum_i k_{ij} k_{ik}
              + \mathrm{round}(2^{2B} N_{jk})\Bigr), \qquad q_j = 2^{-B} s_j

    with integer rows k, bounded as :math:`|q \circ k|_2 \le R` and so on: those of
    :func:`~skdpnoise.kernels.second_moments`. N is symmetric (:func:`calibrate_second_moments`):

    =================  ==========================================================================
    ``..._gaussian``   independent normal entries, of deviation 1 on the diagonal and r off it
    ``..._laplace``    independent Laplace entries, of scale 1 on the diagonal and r off it
    ``k_norm``         density :math:`\propto e^{-|N|_F}`
    ``wishart``        :math:`N = W - W'`, each of density :math:`\propto e^{-\mathrm{tr}\, W/2}` on
                       the cone of positive semi-definite matrices
    =================  ==========================================================================

    **Guarantee.** Neighbouring data sets differ in one row: it is replaced, or it is added or
    removed. That changes the sum by :math:`k k^\top`, or by :math:`k k^\top - k' k'^\top`, exactly,
    since sums of integers are. Rounded noise on an integer is the rounding of real noise on it,
    which is post-processing, and so is the multiplication by :math:`q_j q_k`. So the loss is that
    of real noise N on :math:`S_{jk} / (s_j s_k)`, whose change D is that of
    :func:`~skdpnoise.sensitivity.second_moment_change`, with a margin of 1e-10 for floating-point
    error of the bounds and of the rows:

    - Gaussian: exactly that of a Gaussian loss with :math:`\mu = |D|_2`.
    - Laplace and K-norm: :math:`\varepsilon = |D|_1` and :math:`|D|_F`, by the triangle inequality.
    - Wishart: :math:`\varepsilon = |D|_*/2`. The density of N at M is
      :math:`g(M) = c \int e^{-\mathrm{tr}(2 A - M)/2} dA` over all A with :math:`A \succeq 0` and
      :math:`A \succeq M`, A being W and A - M being W'. Let :math:`D = D_+ - D_-` with both parts
      positive semi-definite and :math:`\mathrm{tr}(D_+ + D_-) = |D|_*`. Adding :math:`D_+` to A
      maps the domain for M into that for M + D, since
      :math:`A + D_+ - M - D = A - M + D_- \succeq 0`, and lowers the integrand by the factor
      :math:`e^{-\mathrm{tr}(2 D_+ - D)/2} = e^{-|D|_*/2}`. So
      :math:`g(M + D) \ge e^{-|D|_*/2} g(M)`, and with M + D and -D in the places of M and D,
      :math:`g(M + D) \le e^{|D|_*/2} g(M)`. (Adding only W, as in the mechanism of Jiang, Xie and
      Zhang, is not ε-private: the support moves with the data.)

    Parameters
    ----------
    noise : str
        Name of the family, as of :func:`calibrate_second_moments`.
    row_bounds : RowBounds
        Bounds that every row obeys.
    row_scale : ndarray of shape (n_columns,)
        s, in the units of the rows; all equal for ``"iid_..."``.
    off_diagonal : float
        r: the noise scale of entry jk is :math:`s_j s_k r`, and that of jj is :math:`s_j^2`; √(1/2)
        for "k_norm" and "wishart".
    bits : int
        B.
    %(mechanisms: adjacency)s
    considered : tuple of (str, float or str), default=()
        Compared names with their expected errors, or with the reason of their refusal.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014 (normal noise). Hardt and Talwar,
    "On the geometry of differential privacy", STOC 2010, Section 4 (K-norm). Jiang, Xie and Zhang,
    "Wishart mechanism for differentially private principal components analysis", AAAI 2016
    (one-sided). Half variance off the diagonal, unequal columns and the two-sided Wishart noise are
    ours.

    Examples
    --------
    >>> from skdpnoise.kernels import second_moments
    >>> mechanism = calibrate_second_moments("auto", RowBounds(3, norm=1.0), PureLoss(1.0))
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(1000, 3))
    >>> counts = second_moments(X, row_grid_size=mechanism.row_grid_size, norm=1.0)
    >>> mechanism.release(counts).shape
    (3, 3)
    """

    noise: str = field()
    row_bounds: RowBounds
    row_scale: NDArray[np.float64]
    off_diagonal: float
    bits: int
    adjacency: Adjacency = "replace_one"
    considered: tuple[tuple[str, float | str], ...] = ()

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_option(owner, "noise", self.noise, FAMILIES)
        check_type(owner, "row_bounds", self.row_bounds, RowBounds)
        check_adjacency(owner, self.adjacency)
        shape = (self.row_bounds.n_columns,)
        scale = check_array(owner, "row_scale", self.row_scale, shape, sign="positive")
        most = min(_MOST_BITS, self._family.most_bits(scale.size) // 2)
        bits = check_count(owner, "bits", self.bits, low=0, high=most)
        check_precision(owner, "row_scale", scale, bits, (_SMALLEST, _LARGEST))
        off_diagonal = check_real(owner, "off_diagonal", self.off_diagonal)
        equal = self.noise.startswith("iid_")
        ratio = 1.0 if equal else math.sqrt(0.5)
        fixed = equal or self.noise in ("k_norm", "wishart")
        if (fixed and off_diagonal != ratio) or (equal and (scale != scale[0]).any()):
            must = f"be {ratio!r} for {self.noise!r} noise{', with equal row_scale' * equal}"
            raise ValueError(complaint(owner, "off_diagonal", must, repr(off_diagonal)))
        stated(self, row_scale=sealed(scale), off_diagonal=off_diagonal, bits=bits)

    @property
    def n_columns(self) -> int:
        """Number of columns of the rows."""
        return self.row_scale.size

    @property
    def diagonal(self) -> float:
        """Noise scale of entry jj in units of s_j²: one."""
        return 1.0

    @property
    def scale(self) -> NDArray[np.float64]:
        """Noise scale of every entry, shape (n_columns, n_columns)."""
        return self._entries(self.diagonal, self.off_diagonal)

    @property
    def standard_deviation(self) -> NDArray[np.float64]:
        """Standard deviation of the noise of every entry, shape (n_columns, n_columns)."""
        return self._entries(*self._family.deviations(self.n_columns, self.off_diagonal))

    @property
    def row_grid_size(self) -> NDArray[np.float64]:
        """Unit q of the integers of each column, shape (n_columns,)."""
        return np.ldexp(self.row_scale, -self.bits)

    @property
    def grid_size(self) -> NDArray[np.float64]:
        """Unit of the integers of each entry, shape (n_columns, n_columns)."""
        return np.outer(self.row_grid_size, self.row_grid_size)

    @property
    def sensitivity(self) -> SensitivityProfile:
        """How far one row can move the entries of the upper triangle, row by row."""
        return second_moments_profile(self.row_bounds, self.adjacency)

    def privacy_loss(self) -> LossBudget:
        change = self._family.change
        worst = change(self.row_bounds, self.adjacency, self.row_scale, self.off_diagonal)
        kind = PureLoss if self._family.pure else GaussianLoss
        return kind(worst * _MARGIN)

    def sample(self, rng: RandomWords) -> NDArray[np.int64]:
        """Return the noise, in grid steps: a symmetric matrix of int64."""
        size = self.n_columns
        diagonal, others = self._family.draw(rng, size, self.off_diagonal, 2 * self.bits)
        noise = np.zeros((size, size), dtype=np.int64)
        noise[np.triu_indices(size, 1)] = others
        noise += noise.T
        noise[np.diag_indices(size)] = diagonal
        return noise

    def release(self, counts: NDArray[np.int64], rng: Any = None) -> NDArray[np.float64]:
        """Return the second moments with noise added, which may be made public.

        Parameters
        ----------
        counts : ndarray of int64, shape (n_columns, n_columns)
            Sums of products of integer rows, symmetric: nothing is known of any other matrix.
        rng : None, int, numpy generator or RandomWords, default=None
            As of :func:`~skdpnoise.sampling.random_words`; only None gives privacy to everyone.

        Returns
        -------
        ndarray of shape (n_columns, n_columns)
            In the units of squared rows; symmetric, and perhaps indefinite.
        """
        owner, shape = f"{type(self).__name__}.release", (self.n_columns, self.n_columns)
        values = np.asarray(counts)
        if values.dtype.kind not in "iO":  # those of Python are sums that leave 64 bits
            given = f"an array of dtype {values.dtype}"
            raise TypeError(complaint(owner, "counts", "be an array of integers", given))
        if values.shape != shape:
            given = f"shape {values.shape}"
            raise ValueError(complaint(owner, "counts", f"be of shape {shape}", given))
        # Every sum of k k' is symmetric, so that the error discloses nothing of the data.
        if (values != values.T).any():
            must = "be symmetric, as every sum of products of rows is"
            remedy = "For products of different tables use calibrate."
            raise ValueError(complaint(owner, "counts", must, "another matrix", remedy))
        # Clipping moves no two counts further apart, and leaves room for the noise.
        kept = values
        if values.dtype.kind == "i":
            kept = np.clip(values.astype(np.int64), -_LARGEST_COUNT, _LARGEST_COUNT)
        noisy = plus_noise(self, kept, self.sample(random_words(rng)))
        return np.asarray(noisy * self.grid_size, dtype=np.float64)

    def expected_error(self, weights: ArrayLike | None = None) -> float:
        r"""Return the expected squared error of the whole symmetric matrix.

        .. math:: \sum_{j, k} w_{jk} \, \mathrm{Var}(\hat S_{jk})

        Entries off the diagonal count twice, as they stand there twice. Without weights, of shape
        (n_columns, n_columns), w is one.
        """
        variance = self.standard_deviation**2
        return float((variance if weights is None else variance * np.asarray(weights)).sum())

    def explain(self) -> str:
        """Return the choice of noise, its cost, and what else was considered; public facts only."""
        lines = [
            f"{self.noise}: {self.n_columns} columns, {self.privacy_loss()}, expected squared "
            f"error {self.expected_error():.6g}"
        ]
        numbers = [(x, name) for name, x in self.considered if not isinstance(x, str)]
        if numbers:
            ranked = ", ".join(f"{name} {x:.6g}" for x, name in sorted(numbers))
            lines.append(f"considered: {ranked}")
        refused = [name for name, x in self.considered if isinstance(x, str)]
        if refused:
            lines.append(f"refused: {', '.join(refused)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(noise={self.noise!r}, n_columns={self.n_columns}, "
            f"adjacency={self.adjacency!r}, loss={self.privacy_loss()})"
        )

    @property
    def _family(self) -> Family:
        return FAMILIES[self.noise]

    def _entries(self, diagonal: float, off_diagonal: float) -> NDArray[np.float64]:
        values: NDArray[np.float64] = np.outer(self.row_scale, self.row_scale) * off_diagonal
        np.fill_diagonal(values, self.row_scale**2 * diagonal)
        return values


@shared_texts
def calibrate_second_moments(
    noise: str,
    row_bounds: RowBounds,
    guarantee: PrivacyGuarantee | LossBudget,
    adjacency: Adjacency | None = None,
) -> SymmetricMatrixMechanism:
    r"""Return the least noise for the second moments of bounded rows.

    Scales of the columns and of the diagonal are those of least expected squared error of the whole
    matrix among a few candidates, all decided from public facts:

    - Half the variance off the diagonal (Gaussian; inherent to "k_norm" and "wishart"), and with
      bounds c on the columns :math:`s_j^2 \propto \min(c_j, \tau)`, τ such that
      :math:`\sum_j \min(c_j, \tau)^2 = R^2`. For a box rather than a ball somewhat more noise off
      the diagonal is better, up to Theorem 4's :math:`\sqrt{1/2}` times the variance.
    - Laplace: with A and B as in :func:`~skdpnoise.sensitivity.second_moment_change`, the ratio r
      that minimises the error is
      :math:`r^3 = \frac{B^2 - A}{2 A} \frac{\sum_j s_j^4}{\sum_{j \ne k} s_j^2 s_k^2}`, at least
      1/2, or where the bound by Cauchy and Schwarz is the smaller one,
      :math:`r^4 = \frac{p - 1}{4} \frac{\sum_j s_j^4}{\sum_{j \ne k} s_j^2 s_k^2}`.
    - "iid_gaussian" and "iid_laplace" are the same noise in every entry of the upper triangle.

    Parameters
    ----------
    noise : str
        One of ``SECOND_MOMENT_NOISES``. "auto" and "search" are the same here: the smallest
        expected error among those that can give the guarantee.
    row_bounds : RowBounds
        Bounds that every row obeys, and that the solver that sums them is given.
    guarantee : PrivacyGuarantee or LossBudget
        Cost of the release. δ > 0 is met by Gaussian loss, or by pure loss that leaves it unused.
    adjacency : {"replace_one", "add_remove"} or None, default=None
        Neighbouring relation; None takes that of `guarantee`, or "replace_one" for a loss.

    References
    ----------
    Those of :class:`SymmetricMatrixMechanism`. arXiv:2302.03511, Theorems 4 and 5.

    Examples
    --------
    >>> calibrate_second_moments("auto", RowBounds(50, 1.0), PrivacyGuarantee(1.0))
    SymmetricMatrixMechanism(noise='wishart', n_columns=50, adjacency='replace_one', loss=1-DP)
    """
    owner = "calibrate_second_moments"
    check_option(owner, "noise", noise, SECOND_MOMENT_NOISES)
    check_type(owner, "row_bounds", row_bounds, RowBounds)
    check_type(owner, "guarantee", guarantee, PrivacyGuarantee, PureLoss, GaussianLoss)
    if guarantee in (PureLoss(0.0), GaussianLoss(0.0)):
        remedy = "Every release costs something."
        raise ValueError(
            complaint(owner, "guarantee", "be a positive loss", repr(guarantee), remedy)
        )
    if not (row_bounds.limits.min() >= _LEAST_BOUND and row_bounds.radius <= _MOST_BOUND):
        must = f"be between {_LEAST_BOUND:g} and {_MOST_BOUND:g}"
        given, remedy = repr(row_bounds), "Choose other units."
        raise ValueError(complaint(owner, "row_bounds", must, given, remedy))
    relation = checked_relation(owner, adjacency, guarantee, "replace_one")
    if noise not in CHOICES:
        return _calibrate(noise, row_bounds, guarantee, relation)
    made, considered = compared(
        _AUTO,
        lambda name: _calibrate(name, row_bounds, guarantee, relation),
        SymmetricMatrixMechanism.expected_error,
    )
    # Among errors that are equal up to rounding, the first candidate is kept.
    least = min(one.expected_error() for one in made) * (1.0 + 1e-9)
    best = next(one for one in made if one.expected_error() <= least)
    return stated(best, considered=considered)


def _calibrate(
    noise: str, bounds: RowBounds, guarantee: PrivacyGuarantee | LossBudget, adjacency: Adjacency
) -> SymmetricMatrixMechanism:
    family, owner = FAMILIES[noise], "calibrate_second_moments"
    budget = budget_of(guarantee, pure=family.pure)
    if budget is None:
        names = [name for name, other in FAMILIES.items() if other.pure != family.pure]
        must = f"be a noise that can give {guarantee}, one of {names}"
        raise ValueError(complaint(owner, "noise", must, repr(noise)))
    if bounds.n_columns > family.most_columns:
        must = f"have an exact sampler; that of {noise!r} is up to {family.most_columns} columns"
        given, remedy = f"{bounds.n_columns} columns", "Choose another noise, or 'auto'."
        raise ValueError(complaint(owner, "noise", must, given, remedy))
    made, resource = [], number_of(budget)
    for shape, off_diagonal in proposals(noise, bounds):
        units = shape * bounds.radius
        worst = family.change(bounds, adjacency, units, off_diagonal) * _MARGIN
        scale = units * math.sqrt(worst / resource * (1.0 + 1e-13))
        square = bounds.largest_square(scale)
        # So little noise would have too few grid steps: take more.
        if square > _LARGEST_SQUARE:
            scale *= math.sqrt(square / _LARGEST_SQUARE)
        wanted = math.floor(0.5 * math.log2(max(1.0, _LARGEST_SQUARE / square)))
        bits = min(wanted, family.most_bits(bounds.n_columns) // 2)
        made.append(SymmetricMatrixMechanism(noise, bounds, scale, off_diagonal, bits, adjacency))
    best, more = min(made, key=SymmetricMatrixMechanism.expected_error), 1e-12
    while number_of(best.privacy_loss()) > resource:  # rounding of the scales
        best, more = replace(best, row_scale=best.row_scale * (1.0 + more)), 2.0 * more
    return best


def proposals(noise: str, bounds: RowBounds) -> Iterator[tuple[Vector, float]]:
    """Yield scales of the columns, up to a common factor, and the ratio off the diagonal."""
    ones = np.ones(bounds.n_columns)
    if noise.startswith("iid_"):
        yield ones, 1.0
        return
    limits = bounds.limits / bounds.limits.max()
    shapes = [ones]
    if limits.min() < 1.0:
        shapes += [np.sqrt(_capped(bounds)), np.sqrt(limits)]
        if noise == "inid_laplace":
            profile = SensitivityProfile(bounds.limits, l1=bounds.l1_norm, l2=bounds.radius)
            shapes.append(shape_of("inid", profile, order=1.0, weights=None, p=2.0))
    for shape in shapes:
        ratios = iter([_HALF])  # inherent to the other two
        if noise == "inid_laplace":
            ratios = _laplace_ratios(bounds, shape)
        elif noise == "inid_gaussian":
            ratios = _gaussian_ratios(bounds, shape)
        for ratio in ratios:
            yield shape, ratio


def _capped(bounds: RowBounds) -> Vector:
    """Return min(c, τ), of norm R if the box reaches so far, in units of R."""
    limits = bounds.limits / bounds.radius
    return limits if norm(limits, 2.0) <= 1.0 else fill(limits, np.ones(limits.size), 2.0)


def _sums(shape: Vector) -> tuple[float, float]:
    """Return the sums of s_j² s_k² on the diagonal and off it, which the variances multiply."""
    diagonal = float(np.sum(shape**4))
    return diagonal, float(np.sum(shape**2)) ** 2 - diagonal


def _gaussian_ratios(bounds: RowBounds, shape: Vector) -> Iterator[float]:
    """Yield √(1/2), and the best ratio for rows that cannot have all their weight in one column."""
    # The error is (a + b ρ) (f/(2 ρ) + g - g/(2 ρ)) with ρ = r², f = A² and g the bound on Σ u_j^2,
    # so ρ^2 = a (f - g) / (2 b g).
    yield _HALF
    diagonal, others = _sums(shape)
    if others > 0.0:
        # At r = 1 the squared change is (f + g) / 2.
        whole = second_moment_change(bounds, "add_remove", scale=shape, off_diagonal=_HALF)
        mixed = second_moment_change(bounds, "add_remove", scale=shape, off_diagonal=1.0)
        uneven = 2.0 * mixed**2 - whole**2
        rho = math.sqrt(diagonal * max(whole**2 - uneven, 0.0) / (2.0 * others * uneven))
        if rho > 0.5:
            yield math.sqrt(rho)


def _laplace_ratios(bounds: RowBounds, shape: Vector) -> Iterator[float]:
    """Yield the best ratio under either bound; see `calibrate_second_moments`."""
    yield 1.0
    diagonal, others = _sums(shape)
    if others > 0.0:
        squares = bounds.largest_square(shape)
        rest = max(0.0, 0.5 * (bounds.largest_sum(shape) ** 2 - squares))
        yield max(0.5, math.cbrt(rest / squares * diagonal / others))
        yield max(0.5, (0.25 * (bounds.n_columns - 1) * diagonal / others) ** 0.25)
