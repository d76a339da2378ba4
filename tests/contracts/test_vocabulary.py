"""Queries and scores take a guarantee by its numbers, as estimators do, or as one object."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from skdpnoise import metrics, queries
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee
from tests.contracts._register import Forbidden, Notebook

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(500, 2))
LABELS, SCORES = (X[:, 0] > 0.0).astype(int), 0.5 + 0.4 * X[:, 0]
NUMBERS = {"target_bounds": (-1.0, 1.0)}
CALLS = {
    "noisy_histogram": ([[10, 20, 30]], {}),
    "private_accuracy_score": ([LABELS, LABELS], {}),
    "private_argmax": ([[1.0, 5.0, 9.0]], {}),
    "private_balanced_accuracy_score": ([LABELS, LABELS], {"labels": [0, 1]}),
    "private_calibration_curve": ([LABELS, SCORES], {}),
    "private_categories": ([LABELS], {}),
    "private_confusion_matrix": ([LABELS, LABELS], {"labels": [0, 1]}),
    "private_count": ([X[:, 0] > 0.0], {}),
    "private_histogram": ([X[:, 0]], {"bins": [-1.0, 0.0, 1.0]}),
    "private_location_scale": ([X], {}),
    "private_log_loss": ([LABELS, np.column_stack([1.0 - SCORES, SCORES])], {"labels": [0, 1]}),
    "private_mean": ([X], {"bounds": (-1.0, 1.0)}),
    "private_mean_absolute_error": ([X[:, 0], X[:, 0]], NUMBERS),
    "private_moments": ([X], {}),
    "private_norm_quantile": ([np.abs(X[:, 0]), 0.5], {}),
    "private_quantiles": ([X, [0.5]], {}),
    "private_r2_score": ([X[:, 0], X[:, 1]], NUMBERS),
    "private_roc_auc_score": ([LABELS, SCORES], {}),
    "private_roc_curve": ([LABELS, SCORES], {}),
    "private_root_mean_squared_error": ([X[:, 0], X[:, 0]], NUMBERS),
    "private_sum": ([X], {"bounds": ([-1.0, -2.0], [1.0, 2.0])}),
}
COUNTED = ("private_location_scale", "private_norm_quantile")  # they ask for a private number
each_call = pytest.mark.parametrize("name", CALLS)


def function(name):
    return getattr(queries if name in queries.__all__ else metrics, name)


def asked(name, **terms):
    values, facts = CALLS[name]
    return repr(function(name)(*values, **facts, **terms, random_state=0))


def test_every_query_and_score_is_here():
    public = [getattr(room, name) for room in (queries, metrics) for name in room.__all__]
    functions = [one for one in public if inspect.isfunction(one)]
    takes = {one.__name__ for one in functions if "guarantee" in inspect.signature(one).parameters}
    assert takes == CALLS.keys()


@each_call
def test_a_guarantee_by_its_numbers_is_that_of_an_object(name):
    by_numbers, by_object = Notebook(), Notebook()
    found = asked(name, epsilon=0.9, delta=1e-5, ledger=by_numbers)
    assert found == asked(name, guarantee=PrivacyGuarantee(0.9, 1e-5), ledger=by_object)
    assert by_numbers.charges == by_object.charges
    assert len(by_numbers.charges) == 1
    assert asked(name, epsilon=0.9) == asked(name, guarantee=PrivacyGuarantee(0.9, 1e-6))


@pytest.mark.parametrize("name", [*CALLS][::2])
def test_the_relation_stands_beside_the_numbers(name):
    if "adjacency" not in inspect.signature(function(name)).parameters:
        return
    terms = {"n_samples": 500} if name in COUNTED else {}
    stated, ledger = PrivacyGuarantee(0.9, 1e-6, "add_remove"), Notebook()
    found = asked(name, epsilon=0.9, adjacency="add_remove", ledger=ledger, **terms)
    assert found == asked(name, guarantee=stated, **terms)
    assert [one["adjacency"] for one in ledger.charges] == ["add_remove"]
    with pytest.raises(ValueError, match="'adjacency' parameter of"):
        asked(name, epsilon=0.9, adjacency="other", **terms)


@pytest.mark.parametrize("name", [*CALLS][1::2])
def test_no_guarantee_or_two_are_refused_before_the_charge(name):
    def refused(error, match, **terms):
        with pytest.raises(error, match=match):
            asked(name, ledger=Forbidden(), **terms)

    refused(TypeError, f"{name} needs a guarantee.*'epsilon'")
    refused(TypeError, f"{name} needs a guarantee.*'epsilon'", delta=1e-6)
    refused(TypeError, f"{name} .*both", guarantee=PrivacyGuarantee(1.0, 1e-6), epsilon=1.0)
    refused(ValueError, f"'epsilon' parameter of {name}", epsilon=-1.0)
    refused(TypeError, f"'epsilon' parameter of {name}", epsilon="1")
    refused(ValueError, f"'delta' parameter of {name}", epsilon=1.0, delta=1.0)


@pytest.mark.parametrize("name", [name for name in CALLS if name in queries.__all__])
def test_an_unknown_keyword_is_refused_by_the_name_of_the_query(name):
    unknown = ["epsilom"]
    if "charge" not in inspect.signature(function(name)).parameters:
        unknown.append("charge")  # of queries that make several releases
    for keyword in unknown:
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected .*'{keyword}'"):
            asked(name, epsilon=1.0, ledger=Forbidden(), **{keyword: None})


@pytest.mark.parametrize("name", ["private_mean", "private_sum"])
def test_bounds_are_a_pair_or_two_numbers(name):
    query, terms = function(name), {"random_state": 0}
    pair = query(X, bounds=(-1.0, 1.0), epsilon=1.0, **terms)
    for one in (
        query(X, -1.0, 1.0, PrivacyGuarantee(1.0, 1e-6), **terms),
        query(X, low=-1.0, high=1.0, epsilon=1.0, **terms),
        query(X, bounds=[-1.0, 1.0], epsilon=1.0, **terms),
    ):
        assert repr(one) == repr(pair)
    for wrong in ({}, {"low": 0.0}, {"low": 0.0, "bounds": (0.0, 1.0)}):
        with pytest.raises(TypeError, match=f"{name} needs public bounds.*'bounds'"):
            query(X, epsilon=1.0, **wrong)
    for wrong in (1.0, (1.0,), "ab", np.ones(2)):
        with pytest.raises(TypeError, match=rf"'bounds' parameter of {name} must be \(low, high\)"):
            query(X, epsilon=1.0, bounds=wrong)


def test_a_loss_is_still_a_budget():
    assert asked("private_count", guarantee=GaussianLoss(0.3), adjacency="replace_one")
