"""Fitting the steps of a composition: what is checked before, and what may be said of either."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import _num_samples

from skdpnoise._utils.silence import silence
from skdpnoise._utils.warnings import PrivacyWarning
from skdpnoise.accounting import PrivacyReport
from skdpnoise.accounting.declared import COLUMNS, declared_below
from skdpnoise.accounting.limits import NothingDrawnError
from skdpnoise.base.advice import dry_run
from skdpnoise.base.compositions import private_estimators
from skdpnoise.base.public_output import routing_output
from skdpnoise.base.register import is_private
from skdpnoise.base.remedies import remedy_for_data
from skdpnoise.base.steps import Part, all_ours, all_private, private_parts
from skdpnoise.compose._reading import (
    Stand,
    StrangeStepError,
    guards,
    leaves,
    put,
    readers,
    reading_targets,
    refuse_target,
    refuse_target_in_parts,
    taken_back,
)
from skdpnoise.compose.asked_kinds import asked_of
from skdpnoise.data.cells import kinds_of
from skdpnoise.data.columns import by_declared_type, first_read, read_once
from skdpnoise.data.computed import DATA, is_computed, passed, reading
from skdpnoise.data.fitted_kinds import AS_PARAMETERS_SAY, FittedColumns, as_fitted, differing
from skdpnoise.data.kinds import OBJECTS, Kind
from skdpnoise.data.sources import FOUND_BY_READING, RowSource, by_storage
from skdpnoise.ledger import LedgerWarning
from skdpnoise.mechanisms.calibrate import shared_budget
from skdpnoise.noises import noise_names
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.sampling.observer import unobserved
from skdpnoise.sensitivity import SensitivityProfile

_SHOWN = (PrivacyWarning, LedgerWarning, DataConversionWarning)  # the last tells of a shape


class Given(NamedTuple):
    """The data of a fit, as its steps read them."""

    X: Any
    y: Any
    groups: Any = None


def read_unpaid(composition: Any, X: Any, y: Any = None) -> list[str]:
    """Return what a fit reads of its data without paying, public by the word of the user."""
    found = []
    for label, one in private_estimators(composition):
        if hasattr(one, "_vouched"):
            found += declared_below(label, one._vouched())
    columns = getattr(X, "columns", None)
    if columns is not None and all(isinstance(name, str) for name in columns):
        found.append(COLUMNS)
    if any(getattr(table, "guessed", ()) for table in (X, y)):
        found.append(FOUND_BY_READING)
    return found


def read_to_fit(owner: Any, X: Any, compositions: Sequence[Any]) -> tuple[Any, FittedColumns]:
    """Return features as steps read them, and what their columns are from now on."""
    # Of rows in parts these are the columns of the rows that are read first.
    name, values = type(owner).__name__, not is_computed("X", owner)
    read = partial(_read, name, tuple(compositions))
    return by_storage(X, partial(read, values), partial(_read_in_parts, read))


def _read_in_parts(read: Callable[..., Any], rows: RowSource) -> tuple[Any, FittedColumns]:
    return rows, first_read(rows, partial(_columns_of, read))


def _columns_of(read: Callable[..., Any], X: Any) -> FittedColumns:
    columns: FittedColumns = read(True, X)[1]
    return columns


def _read(
    name: str, compositions: Sequence[Any], values: bool, X: Any
) -> tuple[Any, FittedColumns]:
    # Of several compositions, as a search has them, what all ask for.
    X = read_once(name, X)
    kinds = kinds_of(X)
    names = tuple(X.columns) if kinds and hasattr(X, "columns") else None
    if not kinds or len(getattr(X, "shape", ())) != 2:
        return by_declared_type(name, X), FittedColumns(names, kinds)
    asked = asked_of(compositions, list(names or range(X.shape[1])))
    if differences := differing(asked, kinds):
        X = as_fitted(name, X, differences, why=AS_PARAMETERS_SAY, values=values)
    typed = X if all(map(_reads_types, compositions)) else by_declared_type(name, X)
    return typed, FittedColumns(names, tuple(map(_kept, asked, kinds)))


def _reads_types(composition: Any) -> bool:
    """Return whether only steps of ours get the columns: they read them by declared type."""
    # As floats, truth values that may be missing would have no bounds any more.
    reading = [one.step for one in leaves(composition, DATA) if "X" in one.passed]
    return all(
        is_private(step) and all_ours(step)
        for step in reading
        if type(step) is not TransformedTargetRegressor
    )


def _kept(asked: Kind | None, kind: Kind) -> Kind:
    """Return the kind that a column must have after the fit: that of the fit, and what it holds."""
    return kind if asked is None or kind != OBJECTS else replace(OBJECTS, holds=asked.name)


def fit_steps(
    pipeline: Any,
    data: Given,
    parts: Collection[Part],
    *,
    owner: str = "DPPipeline",
    places: Mapping[str, Any] | None = None,
) -> Any:
    """Fit a pipeline whose parts charge a limit; nothing that is said shows a value of the data."""
    # Parallel steps run one after the other, in this thread: here a limit counts what they charge,
    # and here it is quiet. Other steps than the first get what others computed: guards refuse
    # types, for the time of the fit.
    X, y, groups = data
    guarded = guards(pipeline, passed()) if places is None else places
    try:
        with ExitStack() as stack:
            stack.enter_context(parallel_config(backend="sequential"))
            stack.enter_context(silence(*_SHOWN))
            if type(pipeline) is Pipeline:
                stack.enter_context(routing_output(pipeline))
            pipeline = put(pipeline, guarded, owner, type(X))
            if groups is None:
                return taken_back(pipeline.fit(X, y))
            stack.enter_context(config_context(enable_metadata_routing=True))
            _ask_for_groups(pipeline, parts, guarded)
            return taken_back(pipeline.fit(X, y, groups=groups))
    except NothingDrawnError:
        raise
    except Exception as error:
        blamed = _quoting(error, parts)
        if blamed is None:
            raise
        name, kind = blamed.__name__, type(error).__name__
        vouched = any(part.kind == "declared" for part in parts if type(part.estimator) is blamed)
        known = type(error) in (ValueError, TypeError, AttributeError) and not vouched
    raise (ValueError if known else StrangeStepError)(
        # outside the handler, so that the quoting error is not attached to it
        f"{name}, a step of {owner}, cannot take these data: {kind}. {remedy_for_data(name)}Its "
        "message may "
        "quote values of the data and is not shown: fit the step by itself to public data of the "
        "same form to see it."
    )


def _ask_for_groups(pipeline: Any, parts: Collection[Part], places: Mapping[str, Any]) -> None:
    """Have private steps, and what stands for compositions that hold some, ask for groups."""
    steps = pipeline.get_params(deep=True)
    for part in parts:
        if part.kind == "private" and part.label in steps:
            steps[part.label].set_fit_request(groups=True)
    for one in places.values():
        one.set_fit_request(groups=bool(private_parts(one.step)))


def fit_guarded(owner: str, model: Any, X: Any, y: Any) -> Any:
    """Return a composition fitted by scikit-learn's own code, which refuses types and no values."""
    if not is_private(model):
        model = put(model, guards(model, passed()), owner, type(X))
    return taken_back(model.fit(X, y))


def check_steps(owner: str, model: Any, parts: Collection[Part], *, grouped: bool) -> None:
    """Refuse what is wrong with the parameters of a composition, whatever its data are."""
    steps = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    for part in parts:
        if grouped and part.kind == "private":
            _check_reached(part.label, steps)
    for _, one in private_estimators(model):
        if hasattr(one, "_parameter_constraints"):
            one._validate_params()
        _check_noise(one)
    for part in parts:
        if part.kind == "public" and hasattr(part.estimator, "_parameter_constraints"):
            part.estimator._validate_params()


def _check_noise(step: Any) -> None:
    """Refuse a noise that cannot give the guarantee that a step has a share of."""
    noise = str(getattr(step, "noise", ""))
    if noise.partition("_")[2] in noise_names():
        guarantee = PrivacyGuarantee(step.epsilon, step.delta, step.adjacency)
        shared_budget(noise, SensitivityProfile([1.0]), guarantee, 1)


def _check_reached(label: str, steps: Mapping[str, Any]) -> None:
    """Refuse a private step that gets no groups from the fit of a composition."""
    names = label.split("__")
    for place, name in enumerate(names):
        around = steps.get("__".join(names[:place]))
        if name == "transformer" and type(around) is TransformedTargetRegressor:
            raise ValueError(
                f"The 'groups' of DPPipeline.fit do not reach its step {label!r}, which would "
                "protect records only. Put it where scikit-learn's metadata routing leads."
            )


@dry_run()
def read_steps(
    model: Any, data: Given, parts: Collection[Part], *, owner: str = "DPPipeline"
) -> None:
    """Let each step check the data that it gets as they were passed, as far as it needs no draw."""
    # The parts of the model charge a closed limit. Whatever is done in place is done to copies, and
    # who observes a fit does not see this.
    given = passed()
    _have_copies_made(model)
    if any(not _is_known(part.estimator) for part in parts):
        data = data._replace(X=by_storage(data.X, deepcopy, lambda rows: rows))
    for part in private_parts(model):
        part.estimator.set_params(random_state=None)  # no word is taken for a seed
    places, reading_y = readers(model, given), [*leaves(model, given)]
    strange = None
    with silence(DataConversionWarning):
        try:
            with (
                reading(DATA),
                config_context(assume_finite=not is_private(model) or all_ours(model)),
                unobserved(),
            ):
                fit_steps(model, data, parts, owner=owner, places=places)
        except NothingDrawnError:
            pass
        except StrangeStepError as error:  # perhaps for a target that is refused anyway
            strange = error
        n_rows = int(_num_samples(data.X))
        with reading({"X"}):
            for step in reading_targets(reading_y):
                whole = partial(refuse_target, step, n_rows)
                by_storage(data.y, whole, partial(refuse_target_in_parts, step))
    if strange is not None:
        raise strange


def settled(model: Any, report: PrivacyReport, ledger: Any) -> Any:
    """Return a fitted composition whose private parts have the report and ledger of the whole."""
    # What the fit of a part cost says too little of it: it was made from what the others released.
    # Whoever fits a part again, or a copy of it, charges the ledger.
    for step in all_private(model, fitted=True):
        step.privacy_ = report
    give_ledger(model, ledger)
    return model


def give_ledger(model: Any, ledger: Any) -> None:
    """Give a ledger to all private steps at any depth, and to what they were made from."""
    for step in all_private(model, fitted=None):
        step.ledger = ledger


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


def _quoting(error: Exception, parts: Collection[Part]) -> type | None:
    """Return the class of the step whose message may quote the data; None if there is none."""
    # It is the innermost of the steps that were running. Private ones never quote, nor does
    # scikit-learn where it speaks of parameters.
    if isinstance(error, InvalidParameterError):
        return None
    strange = {type(part.estimator) for part in parts if part.kind != "private"}
    strange |= {TransformedTargetRegressor}  # converts the target itself
    innermost: type | None = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        subject = trace.tb_frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if is_private(subject) or isinstance(subject, Stand):
            innermost = None
        elif type(subject) in strange and type(subject) not in (str, type(None)):
            innermost = type(subject)
        trace = trace.tb_next
    return innermost
