"""A released number beside its standard error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.sampling.words import with_caveat

__all__ = ["PrivateEstimate"]

_SHOWN = 6  # numbers of a vector that are printed


@dataclass(frozen=True, slots=True, eq=False)
class PrivateEstimate:
    """A released number, or vector of numbers, with its standard error: all of it public.

    Parameters
    ----------
    value : float, int or ndarray of shape (n_columns,)
        The estimate.
    standard_error : float or ndarray of shape (n_columns,)
        Of the noise, from public facts and released numbers; what clipping to the bounds does to
        the data is not in it.
    mechanism : AdditiveMechanism
        What sampled the noise; its ``privacy_loss`` is what the estimate cost.
    count : float or None, default=None
        Noisy number of records, where that was released, too.
    secure : bool, default=True
        Whether the noise came from the operating system's cryptographic source. If not, the first
        line of what is printed says so.

    Examples
    --------
    >>> from skdpnoise.queries.aggregates import private_sum
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> guarantee = PrivacyGuarantee(1.0)
    >>> estimate = private_sum([0.2, 0.9], 0.0, 1.0, guarantee, noise="iid_laplace")
    >>> print("about", estimate)
    about ... ± 1.41 (1-DP)
    """

    value: Any
    standard_error: Any
    mechanism: AdditiveMechanism
    count: float | None = None
    secure: bool = True

    def __str__(self) -> str:
        values, errors = np.atleast_1d(self.value), np.atleast_1d(self.standard_error)
        pairs = zip(values[:_SHOWN], errors, strict=False)
        text = ", ".join(f"{value:.6g} ± {error:.3g}" for value, error in pairs)
        if values.size > 1:
            text = f"[{text}{', ...' if values.size > _SHOWN else ''}]"
        count = "" if self.count is None else f"; count {self.count:.6g}"
        stated = f"{text} ({self.mechanism.privacy_loss()}{count})"
        return with_caveat(stated, secure=self.secure)
