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
sum of the residuals, clipped to ±3 scales: it moves by at most 6 if a record is replaced, and by
at most 3 if it is added or removed (:func:`~skdpnoise.sensitivity.clipped_sum`). The intercept
moves by the part of its noisy mean that is expected to be no noise, that of a normal quantity.
"""

from __future__ import annotations

import numpy as np

from skdpnoise.linear_model._descent import RESIDUAL_REACH, DescentPlan
from skdpnoise.linear_model._scaling import Standardisation
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise

__all__ = ["centred", "drawn_in"]

_OFF = 0.3  # how far intercepts of clipped gradients are from means, in scales


def drawn_in(path: np.ndarray, plan: DescentPlan, constant: np.ndarray) -> np.ndarray:
    """Return the iterates, shape (n_passes, n_outputs, n_features + 1), nearer to the constant."""
    anchor = np.zeros(path.shape[1:])
    anchor[:, -1] = constant
    slopes = path[-plan.n_averaged :, :, :-1].mean(axis=0)
    energy, noise = float((slopes**2).sum()), plan.slope_noise()
    n_slopes = int(np.count_nonzero(plan.coordinates < plan.n_features)) * len(slopes)
    factor = 1.5 + 2.0 * np.sqrt(2.0 / max(n_slopes, 1))
    keep = max(0.0, 1.0 - factor * noise / energy) if energy > 0.0 else 0.0
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

    `residuals` are those of the zero model, in standard units, not clipped. Predictions are summed
    column by column, so that what a record adds depends on no other record, to the last bit.
    """
    mechanism = plan.residuals
    if mechanism is None:
        return path
    model = path[-plan.n_averaged :, 0].mean(axis=0)
    residuals = residuals - model[-1]
    for j in np.flatnonzero(features.used & (model[:-1] != 0.0)):
        standard = (X[:, j].astype(np.float64) - features.center[j]) / features.scale[j]
        residuals -= model[j] * np.clip(standard, -features.limit[j], features.limit[j])
    quantum = float(mechanism.quantum[0])
    steps = np.rint(np.clip(residuals, -RESIDUAL_REACH, RESIDUAL_REACH) / quantum).astype(np.int64)
    total = plus_noise(mechanism, np.array([steps.sum()]), mechanism.sample(words)[0])
    mean = float(total[0]) * quantum / plan.n_samples
    noise = float(mechanism.standard_deviation[0]) / plan.n_samples
    keep = _OFF**2 / (_OFF**2 + noise**2)
    shift = keep * np.clip(mean, -RESIDUAL_REACH, RESIDUAL_REACH)
    moved = path.copy()
    moved[..., -1] += shift
    return moved
