"""Which solver a fit takes, by its parameters and by what is public of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skdpnoise.kernels import LOGISTIC, SQUARED
from skdpnoise.linear_model import _rules as rules
from skdpnoise.linear_model._budget import NORMAL
from skdpnoise.linear_model._records import LinearSchema, Settings
from skdpnoise.mechanisms.requests import CHOICES
from skdpnoise.privacy import gdp_mu

__all__ = ["check_whole_rows", "prefers_gradient", "whole_rows"]


def check_whole_rows(settings: Settings, schema: LinearSchema) -> list[str]:
    """Return what is given that only whole rows can use; refuse it to another solver."""
    facts = {
        "class_weight": settings.class_weight is not None,
        "column_groups": settings.column_groups,
        "sparse X": schema.sparse,
    }
    given = [name for name, is_given in facts.items() if is_given]
    if given and settings.solver not in ("auto", "joint"):
        raise ValueError(
            f"The 'solver' parameter of {settings.owner} must not be {settings.solver!r} with "
            f"{', '.join(given)}. Use solver='auto' or 'joint'."
        )
    return given


def prefers_gradient(settings: Settings, schema: LinearSchema) -> bool:
    """Return True if whole gradients are expected to be better than the other solvers."""
    rule, normal = rules.GRADIENT, rules.is_normal(settings.noise, settings.delta)
    if not normal or rules.asks_for_coordinate(settings):
        return False
    # How many records there are is public under replace-one alone.
    strength = gdp_mu(settings.epsilon, settings.delta) * (schema.n_rows or 0.0)
    if settings.loss is SQUARED:  # whose second moments would be noise, of so many columns
        moments = not rules.asks_for_descent(settings) and isinstance(settings.row_norm, str)
        many = schema.n_columns >= rule.many_columns
        return moments and many and strength < rule.few_records * schema.n_columns
    if settings.loss is not LOGISTIC or schema.n_rows is None or schema.n_outputs > 1:
        return True
    # Few records find no scales: then the largest class is hard to beat.
    return bool(np.isfinite(schema.bounds).all() or not strength < rule.few_records)


def whole_rows(settings: Settings, schema: LinearSchema) -> Settings:
    """Return the settings of normal noise on gradients of whole rows, or refuse what these lack."""
    if schema.sparse and not np.isfinite(schema.bounds).all():
        raise ValueError(
            f"{settings.owner} needs public scales of all columns of a sparse X, since private "
            "ones would make it dense: give 'feature_bounds', or 'column_groups' for columns "
            "that share one unit of norm in each row."
        )
    if not rules.is_normal(settings.noise, settings.delta):
        reason = "sparse X" if schema.sparse else "gradients of whole rows (solver='joint')"
        raise ValueError(
            f"The 'noise' parameter of {settings.owner} must be normal noise, and delta positive, "
            f"for {reason}. Got noise={settings.noise!r} and delta={settings.delta:g}. Use another "
            "noise and delta, or another solver."
        )
    noise = NORMAL if settings.noise in CHOICES else settings.noise
    return replace(settings, noise=noise, whole=True)
