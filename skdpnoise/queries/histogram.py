"""Private histograms, and the fullest bin of one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.mechanisms.exact import are_finite, are_integers, are_real, exact_numbers
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee
from skdpnoise.privacy.loss import checked_relation
from skdpnoise.privacy.shared_texts import shared_texts
from skdpnoise.queries._ledgers import LedgerLike, check_ledger, spend
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import SensitivityProfile, histogram_counts

__all__ = ["noisy_histogram"]


@shared_texts
def noisy_histogram(
    counts: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget,
    *,
    adjacency: Adjacency | None = None,
    sensitivity: SensitivityProfile | None = None,
    noise: str = "auto",
    random_state: Any = None,
    ledger: LedgerLike | None = None,
) -> tuple[NDArray[np.float64], AdditiveMechanism]:
    r"""Release the counts of a histogram with public bins.

    .. math:: \tilde c_{ij} = c_{ij} + z_{ij}

    **Guarantee.** One record is at most one count of each column
    (:func:`~skdpnoise.sensitivity.histogram_counts`); all columns are released by one
    mechanism, calibrated to that joint bound. Whatever is computed from the result costs nothing
    more: rounding, clipping at zero, a cumulative sum, or the fullest bin,
    ``noisy.argmax(axis=-1)``, which is *report noisy max*.

    Parameters
    ----------
    counts : array-like of shape (n_bins,) or (n_columns, n_bins)
        Exact counts.
    %(queries: guarantee, adjacency)s
        A loss has none, so it must be named here.
    sensitivity : SensitivityProfile or None, default=None
        Another bound for the flattened counts, such as
        :func:`~skdpnoise.sensitivity.paired_histogram`; excludes ``adjacency``.
    %(queries: noise, random_state, ledger)s

    Returns
    -------
    noisy : ndarray of the shape of ``counts``
        Noisy counts: real numbers, possibly negative.
    mechanism : AdditiveMechanism
        What sampled the noise, with its ``privacy_loss``.

    Raises
    ------
    ValueError
        If the counts are negative, not finite or of the wrong shape, or the neighbouring relation
        is given twice or not at all.

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Example 3.2 and
    Claim 3.9.

    Examples
    --------
    >>> guarantee = PrivacyGuarantee(epsilon=1.0)
    >>> noisy, mechanism = noisy_histogram([500, 100, 200], guarantee, random_state=0)
    >>> int(noisy.argmax()), mechanism.noise
    (0, 'inid_laplace')
    """
    array = exact_numbers(counts)
    numbers = array.dtype.kind != "b" and are_real(array)
    if not numbers or array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            "The 'counts' parameter of noisy_histogram must be a non-empty array of numbers of "
            "shape (n_bins,) or (n_columns, n_bins). Got an array of shape "
            f"{array.shape} and dtype {array.dtype} instead."
        )
    if not (are_finite(array) and (array >= 0).all()):
        raise ValueError(
            "The 'counts' parameter of noisy_histogram must be finite and non-negative in every "
            "entry."
        )
    if sensitivity is None:
        if adjacency is None:
            adjacency = checked_relation("noisy_histogram", None, guarantee)
        sensitivity = histogram_counts(array.shape[-1], adjacency, array.size // array.shape[-1])
    elif adjacency is not None:
        raise ValueError(
            "The 'adjacency' parameter of noisy_histogram must be None when 'sensitivity' is "
            f"given, which has one already. Got {adjacency!r} instead."
        )
    check_ledger("noisy_histogram", ledger)
    mechanism, rng = calibrate(noise, sensitivity, guarantee), random_words(random_state)
    if array.size != sensitivity.n_coordinates or (
        mechanism.family.lattice and not are_integers(array)
    ):
        raise ValueError(
            f"The 'counts' parameter of noisy_histogram must have {sensitivity.n_coordinates} "
            "entries, those of the sensitivity, integer for noise on the integers. Got shape "
            f"{array.shape} and noise={mechanism.noise!r}."
        )
    if ledger is not None:
        cost = mechanism.own_loss()
        spend(
            ledger,
            "noisy_histogram",
            cost,
            guarantee,
            adjacency=adjacency,
            mechanism=mechanism.noise,
            secure=rng.secure,
        )
    noisy = mechanism.release(array.reshape(-1), rng)
    return noisy.reshape(array.shape), mechanism
