"""What the strength of a penalty comes to for every column, beside the mean loss in standard units.

A model gives one of these functions to its settings. All are post-processing: scales and numbers of
records are public or have been released.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skdpnoise.linear_model._records import Problem, Settings

__all__ = ["elastic_net", "lasso", "of_standard_columns", "ridge"]

Penalties = tuple[np.ndarray, np.ndarray]  # l1 and l2, both of shape (n_features,)


def of_standard_columns(settings: Settings, problem: Problem, n_samples: float) -> Penalties:
    """Return penalties that are alike for all columns in units of their standard deviation."""
    l1, l2 = _mixed(settings)
    spread = problem.features.deviations()
    return l1 * spread, l2 * spread**2


@np.errstate(over="ignore")  # an infinite penalty leaves a column out
def elastic_net(settings: Settings, problem: Problem, n_samples: float) -> Penalties:
    """Return scikit-learn's penalties of coefficients in units of columns and target."""
    # A coefficient is σ v_j / s_j with v in standard units, where the loss is σ² times smaller.
    l1, l2 = _mixed(settings)
    features, unit = problem.features, problem.target.units[1]
    scale = np.where(features.used, features.scale, 1.0)
    # Of a constant target there is nothing to penalise.
    return l1 / (unit or 1.0) / scale, l2 / scale / scale


def lasso(settings: Settings, problem: Problem, n_samples: float) -> Penalties:
    """Return scikit-learn's penalties without squares."""
    return elastic_net(replace(settings, l1_ratio=1.0), problem, n_samples)


def ridge(settings: Settings, problem: Problem, n_samples: float) -> Penalties:
    """Return scikit-learn's penalties of squares, which are beside a sum over the records."""
    l1, l2 = elastic_net(replace(settings, l1_ratio=0.0), problem, n_samples)
    return l1, l2 / n_samples


def _mixed(settings: Settings) -> tuple[float, float]:
    """Return the strengths of absolute values and of squares."""
    return settings.l1_ratio * settings.strength, (1.0 - settings.l1_ratio) * settings.strength
