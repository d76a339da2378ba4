"""Log-odds of two classes from noisy counts of their records by score: post-processing."""

from __future__ import annotations

import numpy as np

from skdpnoise.kernels import LOGISTIC

__all__ = ["expected_losses"]


def expected_losses(
    noisy: np.ndarray,
    noise: float,
    scores: np.ndarray,
    slopes: np.ndarray,
    intercepts: np.ndarray,
    told: np.ndarray | float = 1.0,
) -> np.ndarray:
    r"""Return the mean log loss of each slope A and intercept B, shape (n_slopes, n_intercepts).

    .. math:: p_b = \frac{1}{1 + e^{-A s_b - B}}, \qquad
              n_{1b} - p_b (n_{0b} + n_{1b}) \sim
              N\bigl(0,\; \sigma^2 (p_b^2 + (1 - p_b)^2) + n_b p_b (1 - p_b)\bigr)
    """
    # `told` says of which bins the counts are believed, by default all.
    # For noisy counts n of bin b this is how likely A and B are; σ² is the variance of the noise.
    # The loss is that expected over all A and B, as likely as they are: where noise hides what
    # scores tell, the least is near a constant. No threshold decides.
    log_odds = slopes[:, np.newaxis, np.newaxis] * scores + intercepts[:, np.newaxis]
    chances = LOGISTIC.mean(log_odds)
    first, second = noisy.reshape(2, -1)
    records = np.maximum(first + second, 0.0)
    both = chances * (1.0 - chances)
    variance = noise**2 * (1.0 - 2.0 * both) + records * both
    off = second - (first + second) * chances
    likelihood = -0.5 * ((off**2 / variance + np.log(variance)) * told).sum(axis=-1)
    # Beforehand all shares of the second class are as likely.
    share = LOGISTIC.mean(intercepts)
    likelihood += np.log(share * (1.0 - share))
    weights = np.exp(likelihood - likelihood.max())
    expected = np.tensordot(weights / weights.sum(), chances)
    losses = np.logaddexp(0.0, log_odds) - expected * log_odds
    return np.asarray(losses @ (records * told) / max(float((records * told).sum()), 1.0))
