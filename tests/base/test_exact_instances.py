"""A step is exactly of a known class, as that class defines it, with parameters of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_type_hints

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import skdpnoise
from skdpnoise import (
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
    total_guarantee,
)
from skdpnoise.base import register
from skdpnoise.compose import UnpaidStepError, register_private, taken_apart
from tests._cases import each_value
from tests.compose._pipelines import Notebook, X, Y
from tests.contracts._register import PRIVATE, each, ways

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")
MODEL = DPLogisticCD(classes=[0, 1])


def _apart(step):
    return taken_apart(step, owner="Test", parameter="steps")


class Alike(type(Normalizer)):
    """A metaclass by which a class equals a known one."""

    def __hash__(cls):
        return hash(Normalizer)

    def __eq__(cls, other):
        return other is Normalizer or cls is other


class Impostor(StandardScaler, metaclass=Alike):
    pass


@pytest.mark.usefixtures("the_same_words")
def test_no_metaclass_makes_a_class_a_known_one():
    ledger = Notebook()
    steps = [("s", Impostor()), ("m", MODEL)]
    for owner in (
        DPPipeline(steps, ledger=ledger),
        DPGridSearchCV(Pipeline(steps), {}, ledger=ledger),
    ):
        with pytest.raises(UnpaidStepError, match="Impostor"):
            owner.fit(X, Y)
    fitted = Pipeline([("s", Impostor()), ("m", DPLogisticCD(classes=[0, 1]))]).fit(X, Y)
    with pytest.raises(UnpaidStepError, match="Impostor"):
        total_guarantee(fitted)
    assert ledger.charges == []


@each(ways(PRIVATE))
def test_nothing_that_a_class_defines_is_replaced_on_an_instance(entry):
    """Methods, and also settings that are attributes of the class."""
    estimator = entry.estimator()
    kind = type(estimator)
    parameters = set(estimator.get_params(deep=False))
    names = {
        name
        for base in kind.__mro__[:-1]
        for name, value in vars(base).items()
        if not (name.startswith("__") or name in parameters or hasattr(type(value), "__set__"))
    }
    assert len(names) > 3
    for name in sorted(names - {"_sklearn_output_config", "_metadata_request", "_skl_callbacks"}):
        copy = clone(estimator)
        vars(copy)[name] = getattr(kind, name)
        with pytest.raises(UnpaidStepError, match=f"'{name}' replaced on the instance"):
            _apart(copy)


def test_a_default_that_can_be_called_is_a_parameter_like_any_other(monkeypatch):
    known = [(cls, None) for cls in register._private]
    monkeypatch.setattr(register, "_private", register.ExactClasses(known))

    @register_private
    @dataclass(eq=False, repr=False)
    class Particular(DPStandardScaler):
        dtype: Any = np.float64

    assert [part.kind for part in _apart(Particular())] == ["private"]


class Everything(float):
    """A number that equals all others."""

    __hash__ = float.__hash__

    def __eq__(self, other):
        return True


def test_parameters_of_public_steps_are_plain_data():
    """scikit-learn would read this number as "scale", which is the variance of the data."""
    ledger = Notebook()
    steps = [("r", RBFSampler(gamma=Everything(1.0))), ("m", MODEL)]
    for owner in (DPPipeline(steps, ledger=ledger), DPGridSearchCV(Pipeline(steps), {})):
        with pytest.raises((TypeError, UnpaidStepError), match="Everything"):
            owner.fit(X, Y)
    assert ledger.charges == []


def test_a_progress_bar_with_a_hook_of_its_own_sees_nothing():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn below 1.9")
    seen, bar = [], callback.ProgressBar()
    bar.on_fit_task_end = lambda *args, **facts: seen.append(facts)
    model = DPPipeline([("m", MODEL)]).set_callbacks(bar)
    with pytest.raises(ValueError, match="callbacks that see the data"):
        model.fit(X, Y)
    assert seen == []


# Compositions whose steps set_params does not find by their names


TUPLES = {
    "a pipeline": lambda step: Pipeline((("s", step), ("m", MODEL))),
    "a union": lambda step: Pipeline([("u", FeatureUnion((("s", step),))), ("m", MODEL)]),
    "columns": lambda step: Pipeline(
        [("c", ColumnTransformer((("s", step, [0, 1]),))), ("m", MODEL)]
    ),
}


@each_value(1)
@pytest.mark.parametrize("name", TUPLES)
@pytest.mark.parametrize("step", [DPStandardScaler(), Normalizer()], ids=lambda s: repr(s))
def test_steps_in_tuples_are_refused_before_the_charge(name, step):
    ledger = Notebook()
    whole = TUPLES[name](step)
    for owner in (
        DPPipeline([("inner", whole)], ledger=ledger),
        DPGridSearchCV(whole, {}, ledger=ledger),
    ):
        with pytest.raises(UnpaidStepError, match="a list of names and steps"):
            owner.fit(X, Y)
    with pytest.raises(ValueError, match="'steps' parameter of DPPipeline"):
        DPPipeline((("s", step), ("m", MODEL)), ledger=ledger).fit(X, Y)
    assert ledger.charges == []


@pytest.mark.parametrize("name", ["epsilon", "ledger", "steps", "random_state", "weights"])
def test_no_step_has_the_name_of_a_parameter(name):
    with pytest.raises(ValueError, match="name"):
        DPPipeline([(name, MODEL)]).fit(X, Y)


# Parameters that were never set


def test_a_parameter_that_init_forgets_is_not_that_of_the_class():
    """Else a ledger that was given would never be charged."""

    class Forgetful(DPLogisticCD):
        def __init__(self, epsilon=1.0, *, ledger=None):
            self.epsilon = epsilon

    with pytest.raises(AttributeError, match="no attribute 'ledger' of its own"):
        Forgetful(ledger=Notebook()).fit(X, Y)


@each(ways(PRIVATE))
def test_a_state_without_a_parameter_is_not_fitted(entry):
    estimator = entry.estimator()
    for name in estimator.get_params(deep=False):
        copy = clone(estimator)
        del vars(copy)[name]
        with pytest.raises(AttributeError, match=f"{name!r}"):
            copy.fit(X, Y)


@pytest.mark.usefixtures("the_same_words")
def test_the_originals_in_a_winner_have_its_ledger():
    ledger = PrivacyLedger("rows", epsilon=100.0, delta=1e-3, storage="memory")
    inner = DPPipeline([("scale", DPStandardScaler()), ("model", DPLogisticCD(n_passes=2))])
    search = DPGridSearchCV(inner, {}, delta=1e-6, ledger=ledger).fit(X, Y)
    winner = search.best_estimator_
    parts = [step for steps in (winner.steps, winner.steps_) for _, step in steps]
    assert [part.ledger for part in parts] == [ledger] * 4
    assert [part.ledger for part in dict(inner.steps).values()] == [None, None]
    n_charges = len(ledger.charges())
    winner.steps[1][1].fit(X, Y)
    assert len(ledger.charges()) == n_charges + 1
    winner.fit(X, Y)
    assert [charge.estimator for charge in ledger.charges()][-2:] == ["DPLogisticCD", "DPPipeline"]
    with pytest.raises(ValueError, match="'scale__ledger' at None"):
        winner.set_params(ledger=None).fit(X, Y)


def test_annotations_of_constructors_can_be_read():
    kinds = [getattr(skdpnoise, name) for name in skdpnoise.__all__ if name.startswith("DP")]
    spend = {kind for kind in kinds if hasattr(kind, "epsilon")}
    assert {kind for kind in spend if "epsilon" not in get_type_hints(kind.__init__)} == set()
