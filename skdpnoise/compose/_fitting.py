"""Fitting the steps of a composition: a rehearsal without draws, and what may be said of either."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.metaestimators import available_if

from skdpnoise.compose._caps import Rehearsed
from skdpnoise.compose._parts import Part, private_parts
from skdpnoise.compose._register import is_private
from skdpnoise.compose._silence import silence
from skdpnoise.compose._surroundings import PrivacyWarning
from skdpnoise.ledger import LedgerWarning, PrivacyReport
from skdpnoise.sampling.observer import unobserved

__all__ = ["fit_steps", "rehearse", "settled"]

_SHOWN = (PrivacyWarning, LedgerWarning, DataConversionWarning)  # the last tells of a shape
_ENOUGH = 1000  # rows of a table that stands for the data


def fit_steps(
    pipeline: Any,
    X: Any,
    y: Any,
    groups: Any,
    parts: Collection[Part],
    *,
    owner: str = "DPPipeline",
) -> Any:
    """Fit a pipeline whose parts charge a cap; no message or warning shows a value of the data.

    Parallel steps run one after the other, in this thread: here a cap counts what they charge, and
    here it is quiet.
    """
    try:
        with ExitStack() as stack:
            stack.enter_context(parallel_config(backend="sequential"))
            stack.enter_context(silence(*_SHOWN))
            if groups is None:
                return pipeline.fit(X, y)
            stack.enter_context(config_context(enable_metadata_routing=True))
            steps = pipeline.get_params(deep=True)
            for part in parts:
                if part.kind == "private":
                    steps[part.label].set_fit_request(groups=True)
            return pipeline.fit(X, y, groups=groups)
    except _NoFurther:
        raise
    except Exception as error:
        blamed = _quoting(error, parts)
        if blamed is None:
            raise
        kind = type(error).__name__
    raise ValueError(  # outside the handler, so that the quoting error is not attached to it
        f"{blamed}, a step of {owner}, cannot take these data: {kind}. Its message may quote "
        "values of the data and is not shown: fit the step by itself to public data of the same "
        "form to see it."
    )


def rehearse(
    pipeline: Any,
    X: Any,
    y: Any,
    groups: Any,
    parts: Collection[Part],
    *,
    owner: str = "DPPipeline",
) -> None:
    """Let every step check its parameters and the data, as far as it can without a draw.

    The parts of the pipeline charge a closed cap. Each checks the data up to its first charge. It
    is then fitted to noise of the same shape, which costs nothing, so that what comes after it gets
    a table of the right form.
    """
    steps = {part.label: part.estimator for part in private_parts(pipeline)}
    pipeline.set_params(
        **{label: _StandIn(step, label, groups is not None) for label, step in steps.items()}
    )
    with silence():
        try:
            unobserved(fit_steps, pipeline, X, y, groups, parts, owner=owner)
        except _NoFurther:
            return


def settled(model: Any, report: PrivacyReport, ledger: Any) -> Any:
    """Return a fitted composition whose private parts have the report of the whole, and its ledger.

    What the fit of a part cost says too little of it: it was made from what the others released.
    Whoever fits a part again, or a copy of it, charges the ledger.
    """
    for part in private_parts(model, fitted=True):
        part.estimator.privacy_ = report
        part.estimator.ledger = ledger
        for _, step in getattr(part.estimator, "steps_", ()):  # a DPPipeline's own
            settled(step, report, ledger)
    # Compositions keep unfitted originals as well, of which a clone is made.
    for part in private_parts(model):
        part.estimator.ledger = ledger
    return model


class _NoFurther(Exception):
    """Raised where a rehearsal cannot go on without a draw."""


class _StandIn(BaseEstimator):
    """Stands in a rehearsal where a private step will be."""

    def __init__(self, step: Any, label: str, grouped: bool) -> None:
        self.step = step
        self.label = label
        self.grouped = grouped

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> _StandIn:
        """Have the step check the data, up to its first charge."""
        if self.grouped and groups is None:
            raise ValueError(
                f"The 'groups' of DPPipeline.fit do not reach its step {self.label!r}, which would "
                "protect records only. Put it where scikit-learn's metadata routing leads."
            )
        grouped = {} if groups is None else {"groups": groups}
        self.fitted_: Any = None
        with suppress(Rehearsed):  # which a step does not raise that has nothing to release
            self.fitted_ = self.step.fit(X, y, **grouped)
        return self

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        """Fit, and transform the same data."""
        return self.fit(X, y, groups).transform(X)

    @available_if(lambda self: hasattr(self.step, "transform"))
    def transform(self, X: Any) -> Any:
        """Transform as the step would, had it seen noise."""
        if self.fitted_ is None:
            try:
                copy = clone(self.step).set_params(ledger=None)
                if hasattr(copy, "rows_per_group"):
                    copy.set_params(rows_per_group=1)  # noise has no groups
                self.fitted_ = copy.fit(_noise_like(X))
            except Exception:
                raise _NoFurther from None
        return self.fitted_.transform(X)

    @available_if(lambda self: hasattr(self.step, "predict"))
    def predict(self, X: Any) -> Any:
        """Offer what the place of a model asks for; nothing is predicted in a rehearsal."""
        raise _NoFurther

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of what `transform` gives."""
        return self.fitted_.get_feature_names_out(input_features)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")


def _noise_like(X: Any) -> Any:
    """Return normal values in the shape of a table, with its columns; of many rows a thousand."""
    n_rows, n_columns = np.shape(X)
    size = min(n_rows, max(_ENOUGH, 2 * n_columns))
    noise = np.random.default_rng().normal(size=(size, n_columns))
    with suppress(Exception):  # a table that is made in another way stays without names
        named = type(X)({name: noise[:, column] for column, name in enumerate(X.columns)})
        return named if np.shape(named) == noise.shape else noise
    return noise


def _quoting(error: Exception, parts: Collection[Part]) -> str | None:
    """Return the class of the step whose message may quote the data; None if there is none.

    It is the innermost of the steps that were running. Private ones never quote, nor does
    scikit-learn where it speaks of parameters.
    """
    if isinstance(error, InvalidParameterError):
        return None
    strange = {type(part.estimator) for part in parts if part.kind != "private"}
    strange |= {TransformedTargetRegressor}  # converts the target itself
    innermost = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        subject = trace.tb_frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if is_private(subject) or type(subject) is _StandIn:
            innermost = None
        elif type(subject) in strange and type(subject) not in (str, type(None)):
            innermost = type(subject).__name__
        trace = trace.tb_next
    return innermost
