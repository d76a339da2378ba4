r"""What becomes of the iterates of a descent: drawn in by as much as they are noise, then centred.

*Drawn in.* The noise of every coefficient is known. Of the sum E of squared slopes, N is expected
from noise alone, and the model becomes

.. math:: k w + (1 - k) w_0, \qquad k = \max\Bigl(0, 1 - \frac{c N}{E}\Bigr), \qquad
              c = 1.5 + 2 \sqrt{2/d}

with w_0 the constant model and d the number of slopes: the positive-part estimator of James and
Stein, with a larger factor. E varies by :math:`\sqrt{2/d}` of N around N if there is nothing but
noise, and noise in directions that the features hardly have adds up over passes. This is
post-processing.

*Centred.* Gradients are clipped, so that an intercept tends to a median. One more release is the
sum of the residuals, clipped to ±r scales (r = 3; from 2.5 to 5 where there is no other model): it
moves by at most 2 r if a record is replaced, and by at most r if it is added or removed
(:func:`~skdpnoise.sensitivity.clipped_sum`). The intercept moves by the part of its noisy mean that
is expected to be no noise, that of a normal quantity.

*Doubted.* Noise in the slopes may make a classifier worse than the largest class. How many records
more than that the model predicts rightly is released: a record adds −1, 0 or 1. If it is not more
than three quarters of the standard deviation of its noise, the slopes are drawn in until the labels
of few records can differ from the largest class: where that leads by a wide margin, not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skdpnoise.linear_model._defaults import kept
from skdpnoise.linear_model._descent import DescentPlan
from skdpnoise.linear_model._scaling import Standardisation
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise

__all__ = ["centred", "doubted", "drawn_in"]

_CONFIDENT = 0.75  # standard deviations of its noise that a gain must exceed
_FEW = 8.0  # standard deviations of a score by which the largest class leads in doubt
_LEAST = 0.02  # part of the slopes that is kept in doubt, so that scores still put records in order
# How far from means, in scales, intercepts of clipped gradients are, and centres of the target.
_OFF, _OFF_CENTER = 0.2, 0.15


def drawn_in(path: np.ndarray, plan: DescentPlan, constant: np.ndarray) -> np.ndarray:
    """Return the iterates, shape (n_passes, n_outputs, n_features + 1), nearer to the constant."""
    anchor = np.zeros(path.shape[1:])
    anchor[:, -1] = constant
    slopes = path[-plan.n_averaged :, :, :-1].mean(axis=0)
    energy, noise = float((slopes**2).sum()), plan.slope_noise()
    n_slopes = int(np.count_nonzero(plan.coordinates < plan.n_features)) * len(slopes)
    keep = kept(energy, noise, 1.5 + 2.0 * float(np.sqrt(2.0 / max(n_slopes, 1))))
    drawn: np.ndarray = anchor + keep * (path - anchor)
    return drawn


def centred(
    path: np.ndarray,
    X: np.ndarray,
    residuals: np.ndarray,
    features: Standardisation,
    plan: DescentPlan,
    words: RandomWords,
) -> np.ndarray:
    """Return the iterates with the mean residual added to the intercept; one output.

    `residuals` are those of the zero model, in standard units, not clipped.
    """
    if plan.last is None:
        return path
    model = path[-plan.n_averaged :].mean(axis=0)
    residuals = residuals - _scores(model, X, features)[0]
    mean, noise = _noisy_mean(np.clip(residuals, -plan.reach, plan.reach), plan, words)
    off = _OFF_CENTER if plan.mechanism is None else _OFF
    keep = off**2 / (off**2 + noise**2)
    shift = keep * np.clip(mean, -plan.reach, plan.reach)
    moved = path.copy()
    moved[..., -1] += shift
    return moved


def doubted(
    path: np.ndarray,
    X: np.ndarray,
    outputs: Sequence[np.ndarray],
    features: Standardisation,
    plan: DescentPlan,
    constant: np.ndarray,
    words: RandomWords,
) -> np.ndarray:
    """Return the iterates, drawn in if the model is not better than the largest class, with noise.

    `outputs` are -1 and +1: one array for two classes, else one for each class against the rest.
    """
    if plan.last is None:
        return path
    model = path[-plan.n_averaged :].mean(axis=0)
    found, right = _labels(_scores(model, X, features)), _labels(outputs)
    gains = (found == right).astype(np.float64) - (_labels(constant[:, np.newaxis]) == right)
    mean, noise = _noisy_mean(gains, plan, words)
    if mean > _CONFIDENT * noise:
        return path
    anchor = np.zeros(path.shape[1:])
    anchor[:, -1] = constant
    # Scores of standardised features vary by about the norm of the slopes; two of them, by more.
    lead = abs(constant[0]) if len(constant) == 1 else np.diff(np.sort(constant)[-2:])[0]
    spread = np.linalg.norm(model[:, :-1], axis=1).max() * np.sqrt(min(len(constant), 2))
    keep = np.clip(lead / max(_FEW * spread, 1e-300), _LEAST, 1.0)
    drawn: np.ndarray = anchor + keep * (path - anchor)
    return drawn


def _labels(scores: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Return the number of the class with the largest score; of two classes, the second if > 0."""
    found: np.ndarray = (
        np.greater(scores[0], 0.0) if len(scores) == 1 else np.argmax(scores, axis=0)
    )
    return found


def _scores(model: np.ndarray, X: np.ndarray, features: Standardisation) -> np.ndarray:
    """Return the linear functions, shape (n_outputs, n_samples).

    They are summed column by column, so that what a record adds depends on no other record, to the
    last bit.
    """
    scores = np.repeat(model[:, -1:], len(X), axis=1)
    for j in np.flatnonzero(features.used & (model[:, :-1] != 0.0).any(axis=0)):
        standard = (X[:, j].astype(np.float64) - features.center[j]) / features.scale[j]
        scores += model[:, j, np.newaxis] * np.clip(standard, -features.limit[j], features.limit[j])
    return scores


def _noisy_mean(values: np.ndarray, plan: DescentPlan, words: RandomWords) -> tuple[float, float]:
    """Release the mean of values within the reach of the mechanism; return it and its noise."""
    mechanism = plan.last
    assert mechanism is not None
    quantum = float(mechanism.quantum[0])
    steps = np.rint(values / quantum).astype(np.int64)
    total = plus_noise(mechanism, np.array([steps.sum()]), mechanism.sample(words)[0])
    noise = float(mechanism.standard_deviation[0]) / plan.n_samples
    return float(total[0]) * quantum / plan.n_samples, noise
