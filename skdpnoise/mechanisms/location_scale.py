"""Private locations and scales of columns, without any bounds on the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import Adjacency, PrivacyGuarantee, PrivacyLoss, check_adjacency
from skdpnoise.sampling import RandomWords, permutation, random_words
from skdpnoise.sensitivity import clipped_sum, histogram_counts, paired_histogram

__all__ = ["LocationScale", "private_location_scale"]

Charge = Callable[[str, AdditiveMechanism], None]

# Shares of the budget: magnitude, location (coarse, then fine), refinement (mean, then deviation).
_MAGNITUDE, _COARSE, _FINE, _MEAN, _DEVIATION = 0.4, 0.12, 0.18, 0.15, 0.15
_EXPONENTS = np.arange(-100, 101)  # magnitudes looked for: 2**-100 to 2**100
_REACH = 8.0  # refinement looks this many magnitudes to either side of the location
_LONGEST = 62  # bits of the largest bin index that is told apart
_DIGIT = 2**11  # bins of one digit of the location
_MISS = 0.02  # chance that a column of pure noise is taken for one with a scale
_TO_SIGMA = 1.25  # standard deviation over mean absolute deviation of a normal law


@dataclass(frozen=True, slots=True, eq=False)
class LocationScale:
    """Private locations and scales of columns.

    Parameters
    ----------
    location : ndarray of shape (n_columns,)
        Centre of each column, in the units of the column.
    scale : ndarray of shape (n_columns,)
        About one standard deviation of the bulk of each column, in its units; positive.
    found : ndarray of bool of shape (n_columns,)
        False where the noise drowned the column, or the column is constant: its location and scale
        then mean nothing, and it is best left out.

    Examples
    --------
    >>> import numpy as np
    >>> LocationScale(np.zeros(1), np.ones(1), np.array([True])).found.all()
    np.True_
    """

    location: NDArray[np.float64]
    scale: NDArray[np.float64]
    found: NDArray[np.bool_]


def private_location_scale(
    columns: ArrayLike | Sequence[NDArray[np.floating]],
    guarantee: PrivacyGuarantee | PrivacyLoss,
    *,
    noise: str = "auto",
    adjacency: Adjacency | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    n_samples: float | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | RandomWords | None = None,
    charge: Charge | None = None,
) -> LocationScale:
    r"""Find the location and scale of every column under one guarantee, with or without bounds.

    1. *Magnitude.* Records are paired by a secret uniform permutation. A histogram of
       :math:`\lfloor\log_2|x_i - x_j|\rfloor` over the pairs that differ is released per column;
       its fullest bin k gives the magnitude :math:`s = 2^k`.
    2. *Location.* The bin index :math:`\lfloor x/(2s) \rfloor` is found digit by digit: first its
       sign and number of bits, then digits of 11 bits, each from the fullest bin of a histogram.
    3. *Refinement.* Values are clipped to 8 s around the location, or to the public bounds where
       there are some; a noisy mean moves the location, then a noisy mean absolute deviation times
       1.25 is the scale.

    Means and deviations of four columns or more are drawn towards their common value by the
    James-Stein estimator with the known noise variance: post-processing, which costs nothing, and
    which matters when the noise is as large as the differences between columns.

    **Privacy.** Each column's paired histogram moves by at most one count down and one up, under
    either adjacency (see :func:`~skdpnoise.sensitivity.paired_histogram`); each histogram of single
    records as :func:`~skdpnoise.sensitivity.histogram_counts` says; sums of clipped values as
    :func:`~skdpnoise.sensitivity.clipped_sum` says. Contributions are rounded to integer quanta
    before they are summed, so that the sums are exact. The scales of later releases depend on
    earlier ones only through released numbers, and the shares of the budget that they use add up to
    the same constant whatever was released: the composition is that of the whole budget, for pure
    and for Gaussian loss. How many digits a location needs is read from the released bit length.

    Parameters
    ----------
    columns : array-like of shape (n_samples, n_columns) or sequence of arrays (n_samples,)
        The private values; finite.
    guarantee : PrivacyGuarantee or PrivacyLoss
        What all releases together may cost.
    noise : str, default="auto"
        A noise of :func:`~skdpnoise.mechanisms.calibrate`; "auto" chooses one for all releases.
    adjacency : {"replace_one", "add_remove"} or None, default=None
        Neighbouring relation; None takes that of `guarantee`, or "replace_one" for a loss.
    bounds : tuple (low, high) or None, default=None
        Public bounds, each broadcast to (n_columns,), in the units of the columns. Columns with
        infinite bounds are treated as having none.
    n_samples : float or None, default=None
        Divisor of the means. None takes the number of rows, which is public under "replace_one";
        under "add_remove" a private count must be given.
    random_state : None, int, RandomState, Generator or RandomWords, default=None
        Source of randomness; None is the operating system's cryptographic one.
    charge : callable or None, default=None
        Called as ``charge(label, mechanism)`` before each release.

    Returns
    -------
    LocationScale

    Raises
    ------
    ValueError
        If `n_samples` is missing under "add_remove", bounds are not ordered, or the noise cannot
        give the guarantee.

    References
    ----------
    Karwa and Vadhan, "Finite sample differentially private confidence intervals", ITCS 2018,
    Algorithm 1 (a histogram finds an unbounded location). Efron and Morris, "Stein's estimation
    rule and its competitors", JASA 1973, equation 1.7. Smith and Thakurta, "Fully adaptive
    composition for Gaussian differential privacy", arXiv:2210.17520, Theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([1000.0, -3e-5], [5.0, 2e-6], size=(20_000, 2))
    >>> found = private_location_scale(X, PrivacyGuarantee(1.0, 1e-6), random_state=0)
    >>> bool(np.all(np.abs(found.location - [1000.0, -3e-5]) < [0.5, 2e-7])), found.found.all()
    (True, np.True_)
    """
    table = _as_columns(columns)
    stated = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else "replace_one"
    relation: Adjacency = (
        stated if adjacency is None else check_adjacency("private_location_scale", adjacency)
    )
    if n_samples is None:
        if relation == "add_remove":
            raise ValueError(
                "The 'n_samples' parameter of private_location_scale must be given when "
                "adjacency='add_remove': the number of records is then private. Release a noisy "
                "count and pass it."
            )
        n_samples = len(table[0])
    low, high = _check_bounds(bounds, len(table))
    open_columns = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
    # One family for all steps, so that their losses add up exactly.
    whole = calibrate(noise, clipped_sum(-np.ones(len(table)), 1.0, relation), guarantee)
    total = whole.privacy_loss()
    steps = _Steps(whole.noise, relation, random_words(random_state), charge or _uncharged)

    location, unit = np.zeros(len(table)), np.ones(len(table))
    bounded = np.setdiff1d(np.arange(len(table)), open_columns)
    # Halves are taken before the sum, so that the widest bounds do not overflow.
    location[bounded] = 0.5 * low[bounded] + 0.5 * high[bounded]
    unit[bounded] = 0.5 * high[bounded] - 0.5 * low[bounded]
    reach = np.ones(len(table))
    found = np.ones(len(table), dtype=bool)
    refinement = _MEAN + _DEVIATION
    if open_columns.size:
        unbounded = [table[j] for j in open_columns]
        unit[open_columns], has_scale = _magnitudes(unbounded, total.share(_MAGNITUDE), steps)
        location[open_columns], has_place = _locations(unbounded, unit[open_columns], total, steps)
        reach[open_columns] = _REACH
        found[open_columns] = has_scale & has_place
    else:  # the whole budget is there for the refinement
        refinement = 1.0
    scale = np.empty(len(table))
    groups = [
        g for g in (open_columns, np.setdiff1d(np.arange(len(table)), open_columns)) if g.size
    ]
    for group in groups:
        share = total.share(refinement * group.size / len(table))
        location[group], scale[group] = _refine(
            [table[j] for j in group],
            location[group],
            unit[group],
            reach[group[0]],
            share,
            n_samples,
            steps,
        )
    return LocationScale(location, scale, found)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What every release of the three steps needs."""

    noise: str
    adjacency: Adjacency
    words: RandomWords
    charge: Charge

    def fullest_bins(
        self, counts: NDArray[np.int64], loss: PrivacyLoss, label: str, *, paired: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Release histograms, one per row; return their fullest bins and whether they stand out."""
        n_columns, n_bins = counts.shape
        sensitivity = (
            paired_histogram(n_bins, n_columns)
            if paired
            else histogram_counts(n_bins, self.adjacency, n_columns)
        )
        mechanism = calibrate(self.noise, sensitivity, loss)
        self.charge(label, mechanism)
        noisy = mechanism.release(counts.ravel(), self.words).reshape(counts.shape)
        scale = mechanism.scale.reshape(counts.shape)[:, 0]
        threshold = scale * mechanism.family.isf(_MISS / n_bins)
        return np.argmax(noisy, axis=1), noisy.max(axis=1) > threshold

    def sums(
        self,
        contributions: Sequence[Callable[[], NDArray[np.float64]]],
        low: float,
        high: float,
        loss: PrivacyLoss,
        label: str,
    ) -> tuple[NDArray[np.float64], float]:
        """Release one exact sum per column; return the sums and the standard deviation of noise.

        Contributions lie in [low, high] and come one column at a time, to save memory.
        """
        ones = np.ones(len(contributions))
        mechanism = calibrate(
            self.noise, clipped_sum(low * ones, high * ones, self.adjacency), loss
        )
        self.charge(label, mechanism)
        quantum = mechanism.quantum
        totals = np.array(
            [
                np.rint(values() / q).astype(np.int64).sum()
                for values, q in zip(contributions, quantum, strict=True)
            ]
        )
        noisy = (totals + mechanism.sample(self.words)[0]) * quantum
        return noisy, float(mechanism.scale[0] * np.sqrt(mechanism.family.variance))


def _magnitudes(
    columns: Sequence[NDArray[np.floating]], loss: PrivacyLoss, steps: _Steps
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    order = permutation(steps.words, len(columns[0]))
    half = order.size // 2
    counts = np.empty((len(columns), _EXPONENTS.size), dtype=np.int64)
    for j, column in enumerate(columns):
        gaps = np.abs(column[order[:half]].astype(float) - column[order[half : 2 * half]])
        exponents = np.frexp(gaps[gaps > 0.0])[1] - 1  # floor(log2), exact
        clipped = np.clip(exponents, _EXPONENTS[0], _EXPONENTS[-1]) - _EXPONENTS[0]
        counts[j] = np.bincount(clipped, minlength=_EXPONENTS.size)
    fullest, stands_out = steps.fullest_bins(counts, loss, "magnitudes", paired=True)
    return np.ldexp(1.0, _EXPONENTS[fullest]), stands_out


def _locations(
    columns: Sequence[NDArray[np.floating]],
    magnitude: NDArray[np.float64],
    total: PrivacyLoss,
    steps: _Steps,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    # A bin index b >= 0 and its mirror image -1 - b share the same digits and differ in the sign.
    n_bins = 2 * (_LONGEST + 1)
    counts = np.empty((len(columns), n_bins), dtype=np.int64)
    for j, column in enumerate(columns):
        negative, digits = _bin_index(column, magnitude[j])
        counts[j] = np.bincount(2 * _bit_length(digits) + negative, minlength=n_bins)
    fullest, stands_out = steps.fullest_bins(counts, total.share(_COARSE), "locations, coarse")
    location = np.empty(len(columns))
    for j, column in enumerate(columns):
        n_bits, negative_side = divmod(int(fullest[j]), 2)
        start = 1 << (n_bits - 1) if n_bits else 0
        free_bits = max(n_bits - 1, 0)  # the leading bit is known
        n_digits = max(1, -(-free_bits // (_DIGIT.bit_length() - 1)))
        share = total.share(_FINE / (len(columns) * n_digits))
        negative, digits = _bin_index(column, magnitude[j])
        while free_bits:
            width = min(free_bits, _DIGIT.bit_length() - 1)
            free_bits -= width
            offset = (digits[negative == negative_side] - start) >> free_bits
            inside = offset[(offset >= 0) & (offset < 1 << width)]
            histogram = np.bincount(inside, minlength=1 << width)[np.newaxis]
            digit, _ = steps.fullest_bins(histogram, share, "locations, digits")
            start += int(digit[0]) << free_bits
        centre = (start + 0.5) * 2.0 * magnitude[j]
        location[j] = -centre if negative_side else centre
    return location, stands_out


def _bin_index(
    column: NDArray[np.floating], magnitude: float
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    index = np.floor(column / (2.0 * magnitude))
    negative = index < 0
    longest = float(2**_LONGEST - 1024)  # the largest float below 2**62 and its neighbours
    return negative, np.minimum(np.where(negative, -1.0 - index, index), longest).astype(np.int64)


def _bit_length(digits: NDArray[np.int64]) -> NDArray[np.int64]:
    # Exact below 2**53; above, rounding may carry into the next power of two, which is as good.
    lengths: NDArray[np.int64] = np.minimum(np.frexp(digits.astype(float))[1], _LONGEST)
    return lengths.astype(np.int64)


def _refine(
    columns: Sequence[NDArray[np.floating]],
    location: NDArray[np.float64],
    unit: NDArray[np.float64],
    reach: float,
    loss: PrivacyLoss,
    n_samples: float,
    steps: _Steps,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return locations and scales from the values clipped to `reach` units of the location."""

    def clipped(j: int) -> NDArray[np.float64]:
        units: NDArray[np.float64] = (columns[j].astype(float) - location[j]) / unit[j]
        return np.clip(units, -reach, reach)

    def deviation(j: int) -> NDArray[np.float64]:
        distance: NDArray[np.float64] = np.abs(clipped(j) - mean[j])
        return np.minimum(distance, reach)

    each = range(len(columns))
    half = loss.share(0.5)
    sums, noise = steps.sums([partial(clipped, j) for j in each], -reach, reach, half, "means")
    mean = np.clip(_james_stein(sums / n_samples, noise / n_samples), -reach, reach)
    sums, noise = steps.sums(
        [partial(deviation, j) for j in each], 0.0, reach, half, "mean absolute deviations"
    )
    spread = _james_stein(sums / n_samples, noise / n_samples)
    # The floor keeps a spread that the noise made tiny, or negative, from blowing values up.
    floor = 0.25 if reach > 1.0 else min(max(0.02, noise / n_samples), 1.0)
    return location + mean * unit, np.maximum(_TO_SIGMA * spread, floor) * unit


def _james_stein(estimates: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Draw noisy estimates towards their mean (Efron and Morris 1973, positive part)."""
    n_estimates = estimates.size
    if n_estimates < 4:
        return estimates
    centred = estimates - estimates.mean()
    spread = float(centred @ centred)
    keep = max(0.0, 1.0 - (n_estimates - 3) * noise**2 / spread) if spread > 0.0 else 0.0
    drawn_in: NDArray[np.float64] = estimates.mean() + keep * centred
    return drawn_in


def _uncharged(label: str, mechanism: AdditiveMechanism) -> None:
    """Charge nothing: the caller of the public function keeps the account."""


def _as_columns(
    columns: ArrayLike | Sequence[NDArray[np.floating]],
) -> list[NDArray[np.floating]]:
    if isinstance(columns, (list, tuple)) and all(
        isinstance(c, np.ndarray) and c.ndim == 1 for c in columns
    ):
        return list(columns)
    table = np.asarray(columns, dtype=float)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            "The 'columns' parameter of private_location_scale must be a non-empty array of shape "
            f"(n_samples, n_columns), got shape {table.shape}."
        )
    return [table[:, j] for j in range(table.shape[1])]


def _check_bounds(
    bounds: tuple[ArrayLike, ArrayLike] | None, n_columns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    low = np.broadcast_to(np.asarray(low, dtype=float), n_columns)
    high = np.broadcast_to(np.asarray(high, dtype=float), n_columns)
    if not (low < high).all():
        raise ValueError(
            "The 'bounds' parameter of private_location_scale must have low < high in every "
            "column: check whether the two are swapped."
        )
    return low, high
