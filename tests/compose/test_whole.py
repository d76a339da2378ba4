"""The report of a pipeline or search that was changed since its fit says so first."""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skdpnoise import (
    BoundsClipper,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
    total_guarantee,
)
from skdpnoise.compose.whole import _digest
from skdpnoise.ledger import model_card, registry_record, report_from_json, report_to_json
from skdpnoise.model_selection import dp_cross_validate
from tests._cases import each_value, quick

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(120, 3))
Y = (X[:, 0] > 0.0).astype(int)
FIRST = "NOT AS IT IS NOW: since this fit, "


def scaler():
    return DPStandardScaler(feature_bounds=(-1.0, 1.0))


def model(**parameters):
    return DPLogisticCD(n_passes=1, feature_bounds=(-3.0, 3.0), classes=[0, 1], **parameters)


def in_columns():
    encoder = OneHotEncoder(categories=[[0.0, 1.0]], handle_unknown="ignore", sparse_output=False)
    steps = [("scale", scaler(), [0, 1]), ("kind", encoder, [2])]
    return ColumnTransformer(steps, sparse_threshold=0)


def pipeline():
    return DPPipeline([("clip", BoundsClipper((-1.0, 1.0))), ("scale", scaler()), ("m", model())])


def nested():
    inner = DPPipeline([("scale", scaler()), ("log", FunctionTransformer(np.abs))])
    return DPPipeline([("inner", inner), ("m", model())])


# The whole, and where its last private member is.
WHOLES = {
    "pipeline": (pipeline, lambda whole: whole["m"]),
    "columns": (
        lambda: DPPipeline([("columns", in_columns()), ("m", model())]),
        lambda whole: whole["columns"].named_transformers_["scale"],
    ),
    "nested": (nested, lambda whole: whole["inner"]["scale"]),
    "search": (
        lambda: DPGridSearchCV(model(), {"alpha": [0.0, 0.1]}),
        lambda whole: whole.best_estimator_,
    ),
    "search of steps": (
        lambda: DPGridSearchCV(make_pipeline(scaler(), model()), {"dplogisticcd__alpha": [0.1]}),
        lambda whole: whole.best_estimator_[0],
    ),
    "search of a pipeline": (
        lambda: DPGridSearchCV(nested(), {"m__alpha": [0.0, 0.1]}),
        lambda whole: whole.best_estimator_["inner"]["scale"],
    ),
}
each_whole = pytest.mark.parametrize("name", WHOLES)


def fitted(name, **parameters):
    make, member = WHOLES[name]
    whole = make().set_params(**parameters).fit(X, Y)
    return whole, member


def _refit(member):
    member.set_params(epsilon=5.0).fit(X[:, : member.n_features_in_], Y)


def _refit_alike(member):
    member.fit(X[:, : member.n_features_in_], Y)


def _set(member):
    member.set_params(feature_bounds=(-2.0, 2.0))


def _overwrite(member):
    name = "scale_" if hasattr(member, "scale_") else "coef_"
    setattr(member, name, 1.0 + getattr(member, name))


CHANGES = {"refit": _refit, "refit alike": _refit_alike, "set": _set, "overwritten": _overwrite}


def texts(whole):
    """Return all that is stated of a whole, as texts."""
    report = whole.privacy_
    told = [str(report), report.statement(), report._repr_html_(), model_card(whole), repr(report)]
    return [" ".join(text.split()) for text in told]


def _times(number):
    return lambda X: number * X


def _by_default(X, number=2.0):
    return X * number


class _Scale:
    def __init__(self, number):
        self.number = number

    def of(self, X):
        return self.number * X


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda X: X + 1.0, lambda X: X + 100.0),
        (lambda X: np.abs(X), lambda X: np.exp(X)),
        (_times(2.0), _times(3.0)),
        (lambda X, by=2.0: X * by, lambda X, by=3.0: X * by),
        (lambda X: (lambda Z: Z + 1.0)(X), lambda X: (lambda Z: Z + 2.0)(X)),
        (partial(_by_default, number=2.0), partial(_by_default, number=3.0)),
        (_Scale(2.0).of, _Scale(3.0).of),
        (np.abs, np.exp),
    ],
    ids=["constant", "name", "closure", "default", "inner", "partial", "method", "numpy"],
)
def test_another_function_is_another_step(before, after):
    assert _digest(FunctionTransformer(before)) == _digest(FunctionTransformer(before))
    assert _digest(FunctionTransformer(before)) != _digest(FunctionTransformer(after))


def test_who_looks_at_a_partial_function_does_not_change_it():
    one = partial(_by_default, number=2.0)
    before = _digest(one)
    assert vars(one) == {}  # which there was not before
    assert _digest(one) == before
    one.note = "mine"
    assert _digest(one) != before


def test_a_step_whose_function_was_exchanged_is_told():
    steps = [("f", FunctionTransformer(_times(1.0))), ("m", model())]
    whole = DPPipeline(steps, public=["f"]).fit(X, Y)
    whole["f"].func = _times(1.0)
    assert whole.privacy_.changed == ()
    whole["f"].func = _times(5.0)
    assert whole.privacy_.changed == ("f was exchanged or set otherwise",)


def test_arrays_of_another_type_or_shape_are_other_arrays():
    arrays = [np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(6), np.zeros((2, 3), dtype=np.int64)]
    assert len({_digest(one) for one in arrays}) == len(arrays)


@quick("search of a pipeline", "nested")
@each_whole
def test_what_is_as_it_was_fitted_says_nothing_however_it_was_used_or_copied(name):
    whole, _ = fitted(name)
    report = whole.privacy_
    assert report.changed == ()
    assert whole.privacy_ is report
    whole.predict(X)
    whole.score(X, Y)
    total_guarantee(whole)
    clone(whole)
    for one in (whole, pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
        assert one.privacy_.changed == ()
        assert not any("NOT AS IT IS NOW" in text for text in texts(one))


@each_value(1)
@pytest.mark.slow
@each_whole
@pytest.mark.parametrize("change", CHANGES)
def test_every_statement_of_a_changed_whole_says_so_in_its_first_lines(name, change):
    whole, member = fitted(name)
    before = whole.privacy_
    CHANGES[change](member(whole))
    after = whole.privacy_
    assert len(after.changed) == 1
    assert after == before  # what was fitted is the same
    for text in texts(whole):
        assert FIRST + after.changed[0] in text
    assert str(after).startswith(FIRST)
    assert FIRST in after.statement().split("\n")[1]
    assert report_from_json(report_to_json(after)).changed == after.changed
    assert json.loads(report_to_json(after))["changed_since"] == list(after.changed)
    with pytest.raises(ValueError, match="not changed since"):
        registry_record(after, {}, authors=["A. Person"])
    again = pickle.loads(pickle.dumps(whole)).privacy_
    assert again.changed == after.changed


@quick("pipeline-overwritten")
@each_value(1)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [name for name in WHOLES if "search" not in name])
def test_a_cross_validation_says_which_of_its_models_were_changed(name, change):
    make, member = WHOLES[name]
    found = dp_cross_validate(make(), X, Y, cv=2, return_estimator=True)
    report = found.privacy
    assert report.changed == ()
    assert report is vars(found)["_report"]
    CHANGES[change](member(found.estimator[1]))
    for one in (found, pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        (said,) = one.privacy.changed
        assert said.startswith("2 was ")
        assert FIRST + said in " ".join(one.privacy.statement().split())
    assert found.privacy == report
    total = total_guarantee(found)
    assert len(total.steps) == (2 if "refit" in change else 1)


@quick("search", "pipeline")
@each_whole
def test_a_total_counts_what_the_statement_warns_of(name):
    whole, member = fitted(name)
    assert len(total_guarantee(whole).steps) == 1
    _refit(member(whole))
    total = total_guarantee(whole)
    assert [report.guarantee.epsilon for _, report in total.steps] == [1.0, 5.0]
    assert "fitted again" in whole.privacy_.changed[0]


def test_an_exchanged_a_removed_and_an_added_step_are_named():
    other = scaler().fit(X)
    whole = pipeline().fit(X, Y)
    whole.steps_[1] = ("scale", other)
    assert whole.privacy_.changed == ("scale was fitted again or exchanged",)
    whole.steps_[0] = ("clip", BoundsClipper((-0.5, 0.5)).fit(X))
    assert whole.privacy_.changed[0] == "clip was exchanged or set otherwise"
    whole.steps_[:2] = [("new", other)]
    found = set(whole.privacy_.changed)
    assert found == {"clip was taken out", "scale was taken out", "new was put in"}


def as_they_are(rows, kept):
    return rows


@pytest.mark.parametrize("kind", [set, frozenset])
def test_equal_sets_are_no_change_whatever_their_order_in_memory(kind):
    one, other = kind([0, 8, 16]), kind([16, 8, 0])
    assert one == other
    assert [*one] != [*other]
    step = FunctionTransformer(as_they_are, kw_args={"kept": one})
    whole = DPPipeline([("step", step), ("m", model())], public=["step"]).fit(X, Y)
    whole["step"].kw_args = {"kept": other}
    assert whole.privacy_.changed == ()
    whole["step"].kw_args = {"kept": kind([0, 8])}
    assert whole.privacy_.changed == ("step was exchanged or set otherwise",)


def test_another_order_of_the_steps_is_noticed():
    whole = pipeline().fit(X, Y)
    whole.steps_[:2] = whole.steps_[1::-1]
    assert whole.privacy_.changed == ("its steps have another order",)
    whole.steps_[:2] = whole.steps_[1::-1]
    assert whole.privacy_.changed == ()


def test_a_function_of_a_public_step_that_is_exchanged_is_noticed():
    whole = nested().fit(X, Y)
    whole["inner"]["log"].set_params(func=np.square)
    assert whole.privacy_.changed == ("inner was exchanged or set otherwise",)
    assert whole["inner"].privacy_.changed == ("log was exchanged or set otherwise",)


def test_a_fit_of_the_whole_begins_anew_and_parameters_of_the_whole_wait_for_it():
    whole = pipeline().fit(X, Y).set_params(epsilon=2.0, m__alpha=0.1)
    assert whole.privacy_.changed == ()
    _refit(whole["m"])
    assert whole.privacy_.changed
    assert whole.fit(X, Y).privacy_.changed == ()
    assert not hasattr(pipeline(), "privacy_")


def test_a_slice_of_a_changed_whole_says_so_too():
    whole = pipeline().fit(X, Y)
    assert whole[1:].privacy_.changed == ()
    _refit(whole["m"])
    assert "m was fitted again or exchanged" in whole[1:].privacy_.changed


def test_a_refit_that_a_ledger_was_charged_for_is_noticed_as_well():
    ledger = PrivacyLedger("rows", 20.0, 1e-3, storage="memory")
    whole, member = fitted("search of a pipeline", ledger=ledger)
    member(whole).fit(X, Y)
    assert len(ledger.charges()) == 2
    assert whole.privacy_.changed
