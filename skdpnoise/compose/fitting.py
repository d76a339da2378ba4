"""Fitting the steps of a composition: a rehearsal without draws, and what may be said of either."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from copy import deepcopy
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import InvalidParameterError

from skdpnoise._utils.silence import silence
from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.accounting import PrivacyReport
from skdpnoise.base.advice import rehearsing
from skdpnoise.base.compositions import inner_of
from skdpnoise.base.parts import Part, all_ours, private_parts
from skdpnoise.base.public_output import handing_on
from skdpnoise.base.register import is_private
from skdpnoise.base.remedies import remedy_for_data
from skdpnoise.compose._over_parts import over_parts
from skdpnoise.compose._stand_ins import (
    NoFurther,
    is_stand_in,
    open_widths,
    stand_ins,
    stands_for_private,
)
from skdpnoise.data.computed import DATA, passed, reading
from skdpnoise.data.rows import is_spread
from skdpnoise.ledger import LedgerWarning
from skdpnoise.sampling.observer import unobserved

_SHOWN = (PrivacyWarning, LedgerWarning, DataConversionWarning)  # the last tells of a shape


def fit_steps(
    pipeline: Any,
    X: Any,
    y: Any,
    groups: Any,
    parts: Collection[Part],
    *,
    owner: str = "DPPipeline",
) -> Any:
    """Fit a pipeline whose parts charge a cap; no message or warning shows a value of the data."""
    # Parallel steps run one after the other, in this thread: here a cap counts what they charge,
    # and here it is quiet.
    try:
        with ExitStack() as stack:
            stack.enter_context(parallel_config(backend="sequential"))
            stack.enter_context(silence(*_SHOWN))
            if is_spread(X):
                stack.enter_context(over_parts(owner, pipeline, stands_for_private))
            if type(pipeline) is Pipeline:
                stack.enter_context(handing_on(pipeline))
            if groups is None:
                return pipeline.fit(X, y)
            stack.enter_context(config_context(enable_metadata_routing=True))
            steps = pipeline.get_params(deep=True)
            for part in parts:
                if part.kind == "private":
                    steps[part.label].set_fit_request(groups=True)
            return pipeline.fit(X, y, groups=groups)
    except NoFurther:
        raise
    except Exception as error:
        blamed = _quoting(error, parts)
        if blamed is None:
            raise
        kind, remedy = type(error).__name__, remedy_for_data(blamed)
    raise ValueError(  # outside the handler, so that the quoting error is not attached to it
        f"{blamed}, a step of {owner}, cannot take these data: {kind}. {remedy}Its message may "
        "quote values of the data and is not shown: fit the step by itself to public data of the "
        "same form to see it."
    )


@rehearsing()
def rehearse(
    pipeline: Any,
    X: Any,
    y: Any,
    groups: Any,
    parts: Collection[Part],
    *,
    owner: str = "DPPipeline",
) -> None:
    """Let every step check its parameters and the data, as far as it can without a draw."""
    # The parts of the pipeline charge a closed cap. Each checks the data up to its first charge. It
    # is then fitted to noise of the same shape, which costs nothing, so that what comes after it
    # gets a table of the right form. As after the charge, no value is refused that a step computed.
    # Whatever is done in place is done to copies, and who observes a fit does not see the draws.
    _have_copies_made(pipeline)
    in_parts = is_spread(X)
    if not in_parts and any(not _is_known(part.estimator) for part in parts):
        X = deepcopy(X)
    ours = all_ours(pipeline)
    found = open_widths(pipeline)
    # Whatever a step finds out, what comes after it must take the columns that are then there.
    models = [(clone(pipeline), True)] if found else []
    failed = False
    for model, narrow in [(pipeline, False), *models]:
        places = stand_ins(model, passed(), y, grouped=groups is not None, narrow=narrow)
        if in_parts:  # of which public steps read no values before a private one does
            places = {label: one for label, one in places.items() if stands_for_private(one)}
        model.set_params(**places)
        _check_replaced(model, places, owner)
        try:
            with ExitStack() as stack:
                stack.enter_context(silence(DataConversionWarning))
                stack.enter_context(reading(DATA))
                stack.enter_context(config_context(assume_finite=ours))
                unobserved(fit_steps, model, X, y, groups, parts, owner=owner)
        except NoFurther:
            continue
        except Exception:
            if not narrow:
                raise
            failed = True
    if failed:
        raise ValueError(  # outside the handler, so that no other error is attached to it
            f"How many columns {', '.join(map(repr, found))} returns depends on released numbers, "
            f"and a later step of {owner} fails for some of these numbers. Give n_components= as a "
            "number, or give the later steps no columns, bounds or knots by position."
        )


def settled(model: Any, report: PrivacyReport, ledger: Any) -> Any:
    """Return a fitted composition whose private parts have the report and ledger of the whole."""
    # What the fit of a part cost says too little of it: it was made from what the others released.
    # Whoever fits a part again, or a copy of it, charges the ledger.
    for part in private_parts(model, fitted=True):
        part.estimator.privacy_ = report
        part.estimator.ledger = ledger
        for _, step in inner_of(part.estimator, fitted=True)[0]:
            settled(step, report, ledger)
    _give_originals(model, ledger)
    return model


def _give_originals(model: Any, ledger: Any) -> None:
    """Give the ledger to the unfitted steps, of which clones are made."""
    for part in private_parts(model):
        part.estimator.ledger = ledger
        for _, step in inner_of(part.estimator)[0]:
            _give_originals(step, ledger)


def _check_replaced(model: Any, places: Mapping[str, Any], owner: str) -> None:
    """Make sure that nothing but what stands in a rehearsal is fitted in it."""
    found = model.get_params(deep=True)
    missed = [label for label, place in places.items() if found.get(label) is not place]
    if missed:
        raise TypeError(
            f"{owner} cannot replace its step {missed[0]!r} by set_params, and so cannot check it "
            "before the charge. Give the steps of every composition as a list of names and steps."
        )


def _have_copies_made(pipeline: Any) -> None:
    """Set `copy` in all steps: what they did in place would be done a second time in the fit."""
    given = pipeline.get_params(deep=True)
    names = [name for name in given if name.rpartition("__")[2] == "copy"]
    pipeline.set_params(
        **{name: True for name in names if isinstance(given[name], bool | np.bool_)}
    )


def _is_known(step: Any) -> bool:
    """Return whether a step alters its input only where its `copy` is False."""
    return type(step).__module__.partition(".")[0] in ("builtins", "sklearn", "skdpnoise")


def _quoting(error: Exception, parts: Collection[Part]) -> str | None:
    """Return the class of the step whose message may quote the data; None if there is none."""
    # It is the innermost of the steps that were running. Private ones never quote, nor does
    # scikit-learn where it speaks of parameters.
    if isinstance(error, InvalidParameterError):
        return None
    strange = {type(part.estimator) for part in parts if part.kind != "private"}
    strange |= {TransformedTargetRegressor}  # converts the target itself
    innermost = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        subject = trace.tb_frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if is_private(subject) or is_stand_in(subject):
            innermost = None
        elif type(subject) in strange and type(subject) not in (str, type(None)):
            innermost = type(subject).__name__
        trace = trace.tb_next
    return innermost
