"""What mechanisms do alike: check values, count releases, add noise, and divide budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms.exact import are_finite, are_real, exact_numbers, exact_quanta
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss, PureLoss, check_count
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.observer import plus_noise

_LARGEST_QUANTA = 2**62
_MARGIN = 1e-12  # floating-point error of a scale, with room to spare
_UNCHARGED = (
    "The {name!r} parameter of {owner} asks for {count} releases, but the mechanism is charged for "
    "{n_releases}: make it with n_releases={count}."
)
_BEYOND = (
    "The 'first' parameter of {owner} must be at most {most}, so that {count} release{s} from "
    "there on are among the n_releases={n_releases} that are charged for. Got {first} instead."
)


class Sampler(Protocol):
    """The part of a mechanism that draws noise."""

    @property
    def quantum(self) -> NDArray[np.float64]:
        """Size of one integer step, of shape (n_entries,) or (n_releases, n_entries)."""
        ...

    def sample(
        self, words: RandomWords, n_draws: int | None = None, *, first: int | None = None
    ) -> NDArray[np.int64]:
        """Return the noise of consecutive releases, in quanta."""
        ...


def real_rows(owner: str, value: ArrayLike, n_entries: int, n_releases: int) -> NDArray[Any]:
    """Return the value of each release, one per row, or say what is wrong with them.

    Parameters
    ----------
    owner : str
        The class to name in messages.
    value : array-like of shape (n_entries,) or (m, n_entries)
        What the caller gave.
    n_entries, n_releases : int
        What it must have, and may have at most: the latter is left to :func:`checked_count`.

    Returns
    -------
    ndarray of shape (m, n_entries)
        Of the dtype of the value, or of Python numbers: see
        :func:`~skdpnoise.mechanisms.exact.exact_numbers`.

    Examples
    --------
    >>> real_rows("KNormMechanism", [1, 2], 2, 1)
    array([[1, 2]])
    """
    array = exact_numbers(value)
    if np.ma.isMaskedArray(value) or not are_real(array):
        masked = np.ma.isMaskedArray(value)
        kind = "a masked array" if masked else f"an array of dtype {array.dtype}"
        raise TypeError(
            f"The 'value' parameter of {owner}.release must be an array of real numbers, integers "
            f"or of double precision or less. Got {kind} instead."
        )
    if array.ndim not in (1, 2) or array.size == 0 or array.shape[-1] != n_entries:
        raise ValueError(
            f"The 'value' parameter of {owner}.release must be of shape ({n_entries},) or "
            f"(n, {n_entries}) with n up to n_releases={n_releases}. Got shape {array.shape} "
            "instead."
        )
    if not are_finite(array):
        raise ValueError(
            f"The 'value' parameter of {owner}.release must be finite in every entry: remove or "
            "replace NaN and infinity before the query is computed."
        )
    return array.reshape(-1, n_entries)


def checked_rows(
    owner: str, value: ArrayLike, n_entries: int, n_releases: int, first: int | None
) -> NDArray[Any]:
    """Return the value of each release, all of which are charged for.

    Parameters
    ----------
    owner, value, n_entries, n_releases
        See :func:`real_rows`.
    first : int or None
        Index of the first release, as the caller gave it; None is 0.

    Returns
    -------
    ndarray of shape (m, n_entries)
        Of the dtype of the value.

    Examples
    --------
    >>> checked_rows("KNormMechanism", [[1, 2], [3, 4]], 2, n_releases=2, first=None).shape
    (2, 2)
    """
    rows = real_rows(owner, value, n_entries, n_releases)
    count = checked_count(owner, "value", len(rows), n_releases)
    checked_first(f"{owner}.release", first, count, n_releases)
    return rows


def checked_first(owner: str, first: int | None, count: int, n_releases: int) -> int:
    """Return the index of the first release that a call makes; None is 0.

    Parameters
    ----------
    owner : str
        The method to name in messages.
    first : int or None
        What the caller gave.
    count : int
        Number of releases of the call.
    n_releases : int
        What is charged for.

    Returns
    -------
    int

    Examples
    --------
    >>> checked_first("KNormMechanism.release", 2, 1, 3)
    2
    """
    if first is None:
        return 0
    first = check_count(owner, "first", first, low=0)
    most = n_releases - count
    if first > most:
        raise ValueError(
            _BEYOND.format(
                owner=owner,
                most=most,
                count=count,
                s="" if count == 1 else "s",
                n_releases=n_releases,
                first=first,
            )
        )
    return first


def checked_span(
    owner: str, n_draws: int | None, first: int | None, n_releases: int
) -> tuple[int, int]:
    """Return the index of the first draw and the number of draws; None is all from there on.

    Parameters
    ----------
    owner : str
        The class to name in messages.
    n_draws, first : int or None
        What the caller of ``sample`` gave.
    n_releases : int
        What is charged for.

    Returns
    -------
    first, count : int

    Examples
    --------
    >>> checked_span("KNormMechanism", None, 2, 5)
    (2, 3)
    """
    start = checked_first(f"{owner}.sample", first, 1, n_releases)
    if n_draws is None:
        return start, n_releases - start
    count = checked_count(owner, "n_draws", n_draws, n_releases)
    return checked_first(f"{owner}.sample", first, count, n_releases), count


def checked_count(
    owner: str, name: str, count: int | None, n_releases: int, refusal: str = _UNCHARGED
) -> int:
    """Return the number of releases asked for; None is all that are charged for.

    Parameters
    ----------
    owner, name : str
        The class and the parameter to name in messages.
    count : int or None
        What the caller gave.
    n_releases : int
        What is charged for.
    refusal : str, optional
        Message if they are too few, a format of the other parameters.

    Returns
    -------
    int

    Examples
    --------
    >>> checked_count("KNormMechanism", "n_draws", None, 3)
    3
    """
    if count is None:
        return n_releases
    count = check_count(f"{owner}.sample", name, count)
    if count > n_releases:
        raise ValueError(refusal.format(owner=owner, name=name, count=count, n_releases=n_releases))
    return count


def add_quanta(
    value: NDArray[Any],
    draws: NDArray[np.int64],
    quantum: NDArray[np.float64],
    mechanism: Any = None,
) -> NDArray[np.float64]:
    """Return the values, rounded to quanta, plus the draws; as they are where there is no quantum.

    The sum of integers is exact, also beyond 2**53. What is returned is the double nearest to it,
    times the quantum: post-processing.

    Parameters
    ----------
    value : ndarray of shape (m, n)
        Real numbers, of a dtype of numpy or Python's.
    draws : ndarray of int64, shape (m, n)
        In quanta.
    quantum : ndarray of shape (n,) or (m, n)
        Positive, or zero.
    mechanism : object, default=None
        What drew, for an observer.

    Returns
    -------
    ndarray of shape (m, n)

    Examples
    --------
    >>> add_quanta(np.array([[0.2, 0.7]]), np.array([[1, 0]]), np.array([0.5, 0.0]))
    array([[0.5, 0.7]])
    """
    rows: NDArray[np.float64] = value.astype(np.float64)
    step = np.broadcast_to(quantum, rows.shape)
    noisy = step > 0.0
    quanta = exact_quanta(value[noisy], step[noisy])
    rows[noisy] = plus_noise(mechanism, quanta, draws[noisy]) * step[noisy]
    return rows


def noisy_release(
    mechanism: Sampler, rows: NDArray[Any], random_state: Any, first: int | None = None
) -> NDArray[np.float64]:
    """Return the value of every release, rounded to quanta, plus the noise of a mechanism.

    Parameters
    ----------
    mechanism : Sampler
        Draws the noise.
    rows : ndarray of shape (m, n_entries)
        Checked values of m releases.
    random_state : object
        Source of randomness.
    first : int or None, default=None
        Index of the first of them, checked; None is 0.

    Returns
    -------
    ndarray of shape (m, n_entries)

    Examples
    --------
    >>> from skdpnoise.mechanisms.joint.k_norm import k_norm
    >>> noisy_release(k_norm(2, 1.0, 3, PureLoss(1.0)), np.ones((1, 3)), 0).shape
    (1, 3)
    """
    draws = _draws(mechanism, random_words(random_state), len(rows), first)
    start, quantum = first or 0, mechanism.quantum
    step = quantum if quantum.ndim == 1 else quantum[start : start + len(rows)]
    return add_quanta(rows, draws, step, mechanism)


def _draws(
    mechanism: Sampler, words: RandomWords, count: int, first: int | None
) -> NDArray[np.int64]:
    """Return the noise of so many releases; an index is passed on where there is one."""
    if first is None:
        return mechanism.sample(words, count)
    return mechanism.sample(words, count, first=first)


def pure_epsilon(owner: str, guarantee: object) -> float:
    """Return the ε of a guarantee or of a pure loss; a guarantee with δ > 0 is kept with δ = 0.

    Parameters
    ----------
    owner : str
        The function to name in messages.
    guarantee : object
        What the caller gave.

    Returns
    -------
    float

    Examples
    --------
    >>> pure_epsilon("k_norm", PureLoss(0.5))
    0.5
    """
    if isinstance(guarantee, PrivacyGuarantee):
        return guarantee.epsilon
    if isinstance(guarantee, PureLoss) and guarantee.pure_epsilon > 0.0:
        return guarantee.pure_epsilon
    allowed = (
        f"The 'guarantee' parameter of {owner} must be a PrivacyGuarantee or a PureLoss with a "
        f"positive epsilon. Got {guarantee!r} instead"
    )
    if isinstance(guarantee, PrivacyLoss):
        raise ValueError(f"{allowed}: calibrate Gaussian noise to such a loss.")
    raise TypeError(f"{allowed}.")


def per_release(epsilon: float, n_releases: int) -> float:
    """Return an ε of one release of which ``n_releases`` are at most the whole.

    Parameters
    ----------
    epsilon : float
        The whole.
    n_releases : int
        Number of parts.

    Returns
    -------
    float

    Examples
    --------
    >>> per_release(1.0, 4)
    0.25
    """
    part = epsilon / n_releases
    while part * n_releases > epsilon:
        part *= 1.0 - _MARGIN
    return part


def total_weight(weights: ArrayLike | None, n_releases: int, n_coordinates: int) -> float:
    """Return the sum of the weights over releases and coordinates.

    Parameters
    ----------
    weights : array-like of shape (n_coordinates,) or (n_releases, n_coordinates), or None
        None is all ones.
    n_releases, n_coordinates : int
        What they are broadcast to.

    Returns
    -------
    float

    Examples
    --------
    >>> total_weight([1.0, 2.0], 3, 2)
    9.0
    """
    values = np.ones(1) if weights is None else np.asarray(weights, dtype=np.float64)
    return float(np.broadcast_to(values, (n_releases, n_coordinates)).sum())


def exact_release(
    mechanism: Sampler,
    rows: NDArray[Any],
    parts: Callable[[list[Fraction]], list[Fraction]],
    random_state: Any,
    first: int | None = None,
) -> NDArray[np.float64]:
    """Return what ``parts`` makes of every row by exact arithmetic, plus the noise of a mechanism.

    Parameters
    ----------
    mechanism : Sampler
        Draws the noise; its quanta are the same in all releases.
    rows : ndarray of shape (m, n)
        Checked values of m releases.
    parts : callable
        From a list of n exact values to the list of those that are released.
    random_state : object
        Source of randomness.
    first : int or None, default=None
        Index of the first release, checked; None is 0.

    Returns
    -------
    ndarray of shape (m, n_coordinates)

    Examples
    --------
    >>> from skdpnoise.mechanisms.calibrate import calibrate
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> additive = calibrate("iid_laplace", SensitivityProfile([1.0]), PureLoss(1.0))
    >>> exact_release(additive, np.ones((1, 2)), lambda row: [sum(row)], 0).shape
    (1, 1)
    """
    draws = _draws(mechanism, random_words(random_state), len(rows), first)
    exact = [parts([Fraction(entry) for entry in row]) for row in rows.tolist()]
    quanta = np.array([_exact_quanta(row, mechanism.quantum) for row in exact])
    released: NDArray[np.float64] = plus_noise(mechanism, quanta, draws) * mechanism.quantum
    return released


def _exact_quanta(values: Sequence[Fraction], quantum: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the nearest integers to value/quantum, clipped to ±2**62, by exact arithmetic."""
    rounded = [
        round(value / Fraction(step)) for value, step in zip(values, quantum.tolist(), strict=True)
    ]
    limit = _LARGEST_QUANTA
    return np.array([min(max(integer, -limit), limit) for integer in rounded], dtype=np.int64)
