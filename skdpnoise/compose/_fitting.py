"""Fitting the steps of a composition: a rehearsal without draws, and what may be said of either."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils._param_validation import InvalidParameterError

from skdpnoise.compose._caps import Cap, Rehearsed
from skdpnoise.compose._parts import Part, held_by, private_parts
from skdpnoise.compose._register import is_private, rule_of
from skdpnoise.compose._surroundings import PrivacyWarning
from skdpnoise.ledger import LedgerWarning, PrivacyReport

__all__ = ["fit_steps", "rehearse", "settled"]

_OURS = (PrivacyWarning, LedgerWarning)
_ENOUGH = 1000  # rows of a table that stands for the data


def fit_steps(pipeline: Any, X: Any, y: Any, groups: Any, parts: Collection[Part]) -> Any:
    """Fit a pipeline whose parts charge a cap; no message or warning shows a value of the data.

    Parallel steps run in threads of this process, where the cap counts what they charge.
    """
    routing = nullcontext() if groups is None else config_context(enable_metadata_routing=True)
    problem: Exception
    try:
        with _only_our_warnings(), routing, parallel_config(backend="threading"):
            if groups is None:
                return pipeline.fit(X, y)
            for part in private_parts(pipeline):
                part.estimator.set_fit_request(groups=True)
            return pipeline.fit(X, y, groups=groups)
    except Exception as error:
        blamed = _quoting(error, parts)
        if blamed is None:
            raise
        problem = ValueError(
            f"A step of DPPipeline, {blamed}, cannot take these data: {type(error).__name__}. Its "
            "message may quote values of the data, and is not shown: fit the step by itself to "
            "public data of the same form to see it."
        )
    raise problem  # outside the handler, so that the quoting error is not attached to it


def rehearse(pipeline: Any, X: Any, y: Any, groups: Any, parts: Collection[Part]) -> None:
    """Let every step check its parameters and the data as far as it can without a draw.

    `pipeline` has a closed cap. Each private step checks the data up to its first charge. Then it
    is fitted to noise of the same shape, which costs nothing, so that the step after it gets a
    table of the right form.
    """
    stand_ins = {
        part.label: _Rehearsal(part.estimator, part.label, groups is not None)
        for part in private_parts(pipeline)
    }
    pipeline.set_params(**stand_ins)
    ...
