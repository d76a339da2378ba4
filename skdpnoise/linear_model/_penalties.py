"""Penalties in standard units, of every column, beside the mean loss: post-processing."""

from __future__ import annotations

import numpy as np

from skdpnoise.linear_model._records import LinearProblem

Strengths = tuple[np.ndarray, np.ndarray]  # l1 and l2, both of shape (n_features,)


def of_standard_columns(problem: LinearProblem, n_samples: float) -> Strengths:
    """Return penalties that are alike for all columns in units of their standard deviation."""
    alpha, ratio = problem.settings.strength, problem.settings.l1_ratio
    spread = problem.features.spread * np.ones_like(problem.features.scale)
    return ratio * alpha * spread, (1.0 - ratio) * alpha * spread**2


def elastic_net(problem: LinearProblem, n_samples: float) -> Strengths:
    """Return scikit-learn's penalties of coefficients in units of columns and target."""
    return _in_user_units(problem, problem.settings.l1_ratio)


def lasso(problem: LinearProblem, n_samples: float) -> Strengths:
    """Return scikit-learn's penalties without squares."""
    return _in_user_units(problem, 1.0)


def ridge(problem: LinearProblem, n_samples: float) -> Strengths:
    """Return scikit-learn's penalties of squares, which are beside a sum over the records."""
    l1, l2 = _in_user_units(problem, 0.0)
    return l1, l2 / n_samples


@np.errstate(over="ignore")  # an infinite penalty leaves a column out
def _in_user_units(problem: LinearProblem, ratio: float) -> Strengths:
    # A coefficient is σ v_j / s_j with v in standard units, where the loss is σ² times smaller.
    alpha, features, unit = problem.settings.strength, problem.features, problem.target.units[1]
    scale = np.where(features.used, features.scale, 1.0)
    # Of a constant target there is nothing to penalise.
    return ratio * alpha / (unit or 1.0) / scale, (1.0 - ratio) * alpha / scale / scale
