"""What is registered as public learns nothing and says nothing, whatever the data are."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import all_estimators

from skdpnoise import BoundsClipper
from skdpnoise.base.register import _of_sklearn, _public, _rule, rule_of
from skdpnoise.compose import UnpaidStepError, register_private, register_public, taken_apart
from skdpnoise.data.computed import DATA, reading
from tests._cases import each_value, quick

N = 40
rng = np.random.default_rng(0)


def _numbers(*values):
    """Tables of one shape whose columns are unlike: ordinary, constant, extreme, in both signs."""
    return [
        rng.normal(size=(N, 2)),
        np.zeros((N, 2)),
        np.full((N, 2), 1e100),
        np.where(rng.random((N, 2)) < 0.5, -1e100, 1e-100),
        *(np.full((N, 2), value) for value in values),
    ]


def _with_one(table, value):
    changed = table.copy()
    changed[7, 0] = value
    return changed


FINITE = _numbers()
MISSING = [*FINITE, np.full((N, 2), np.nan), *(_with_one(table, np.nan) for table in FINITE)]
POSITIVE = [np.abs(table) + 1.0 for table in FINITE]
TEXT = [
    np.array([["a", "x"], ["b", "y"]] * (N // 2), dtype=object),
    np.array([["z", "secret"], ["b", "y"]] * (N // 2), dtype=object),
    np.array([[np.nan, None], ["b", "y"]] * (N // 2), dtype=object),
    np.full((N, 2), np.nan, dtype=object),
]
DOCUMENTS = [
    ["the first text", "another one"] * (N // 2),
    ["", ""] * (N // 2),
    [b"\xff\xfe secret", "plain"] * (N // 2),
]
RECORDS = [
    [{"a": 1.0}, {"b": "text"}] * (N // 2),
    [{}, {"never seen": -1e300}] * (N // 2),
]
SIGNED = [sparse.csr_matrix(table) for table in FINITE[:3]]
COUNTS = [abs(table) for table in SIGNED]
KNOTS = np.linspace([-1.0, -2.0], [1.0, 2.0], 5)
CATEGORIES = [["a", "b"], ["x", "y"]]
AGES = [[0.0, 1.0, np.nan], [1.0, 2.0]]

# Every registered class, under parameters that meet its condition, with data that it may get.
CASES = [
    (BoundsClipper((-1.0, 1.0)), FINITE),
    (Normalizer(), FINITE),
    (Normalizer(norm="max"), FINITE),
    (Binarizer(threshold=0.5), FINITE),
    (PolynomialFeatures(2), FINITE),
    (PolynomialFeatures((1, 3), interaction_only=True, include_bias=False), FINITE),
    (GaussianRandomProjection(3, random_state=0), FINITE),
    (SparseRandomProjection(3, random_state=0), FINITE),
    (OneHotEncoder(categories=CATEGORIES, handle_unknown="ignore", sparse_output=False), TEXT),
    (OneHotEncoder(categories=CATEGORIES, handle_unknown="infrequent_if_exist"), TEXT),
    (OneHotEncoder(categories=AGES, handle_unknown="ignore"), MISSING),
    (
        OrdinalEncoder(categories=CATEGORIES, handle_unknown="use_encoded_value", unknown_value=-1),
        TEXT,
    ),
    (
        OrdinalEncoder(categories=AGES, handle_unknown="use_encoded_value", unknown_value=np.nan),
        MISSING,
    ),
    (SimpleImputer(strategy="constant", keep_empty_features=True), MISSING),
    (SimpleImputer(strategy="constant", fill_value=-5.0, keep_empty_features=True), MISSING),
    (
        SimpleImputer(
            strategy="constant", fill_value="none", missing_values=None, keep_empty_features=True
        ),
        [*TEXT[:2], np.full((N, 2), None)],
    ),
    (MissingIndicator(features="all"), MISSING),
    (MissingIndicator(features="all", sparse=True), MISSING),
    (SplineTransformer(knots=KNOTS), FINITE),
    (SplineTransformer(knots=KNOTS, extrapolation="continue"), FINITE),
    (SplineTransformer(knots=KNOTS, extrapolation="periodic"), FINITE),
    (SplineTransformer(knots=KNOTS, extrapolation="linear", sparse_output=True), FINITE),
    (FunctionTransformer(), MISSING),
    (FunctionTransformer(np.log1p, np.expm1, check_inverse=False, validate=True), POSITIVE),
    (HashingVectorizer(n_features=16, decode_error="replace"), DOCUMENTS),
    (HashingVectorizer(n_features=16, decode_error="ignore", analyzer="char"), DOCUMENTS),
    (FeatureHasher(n_features=16), RECORDS),
    (TfidfTransformer(use_idf=False), SIGNED),
    (TfidfTransformer(use_idf=False, sublinear_tf=True, norm=None), COUNTS),
    (RBFSampler(gamma=0.5, n_components=7, random_state=0), FINITE),
    (PolynomialCountSketch(n_components=7, random_state=0), FINITE),
]


def _name(value):
    return type(value).__name__ if hasattr(value, "fit") else ""


def _apart(step):
    return taken_apart(step, owner="Test", parameter="steps")


def _dense(output):
    return output.toarray() if sparse.issparse(output) else np.asarray(output)


def _with_row(data, source, index):
    """The data with one record of others."""
    if isinstance(data, list):
        return [*data[:index], source[index], *data[index + 1 :]]
    if sparse.issparse(data):
        return sparse.vstack([data[:index], source[index], data[index + 1 :]], format="csr")
    changed = data.copy()
    changed[index] = source[index]
    return changed


def _run(step, data):
    """What a fit leaves behind: state, everything that was said, and the form of the output."""
    step = clone(step)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        output = step.fit(data).transform(data)
    said = sorted((w.category.__name__, str(w.message)) for w in told)
    return pickle.dumps(vars(step)), said, (type(output), output.dtype, output.shape), output


def test_every_registered_class_has_a_case():
    known = {*_public, *_of_sklearn()}
    assert known >= {type(step) for step, _ in CASES}
    ours = {cls for cls in known if cls.__module__.startswith(("sklearn.", "skdpnoise."))}
    assert ours == {type(step) for step, _ in CASES}


@quick("SplineTransformer", "SimpleImputer", "OneHotEncoder")
@pytest.mark.parametrize(("step", "tables"), CASES, ids=_name)
def test_unlike_data_leave_the_same_state_messages_and_type_of_output(step, tables):
    assert [part.kind for part in _apart(step)] == ["public"]
    assert len(tables) >= 2
    runs = [_run(step, table)[:3] for table in tables]
    assert all(run == runs[0] for run in runs)


@quick("SplineTransformer", "tables19")
@pytest.mark.parametrize(("step", "tables"), CASES, ids=_name)
def test_a_row_of_the_output_depends_on_its_own_row_only(step, tables):
    """So that neighbours stay neighbours: only then may a private step come after it."""
    for table, others in zip(tables, tables[1:] + tables[:1], strict=True):
        here, there = _run(step, table)[3], _run(step, _with_row(others, table, 7))[3]
        assert [str(value) for value in _dense(here)[7]] == [str(v) for v in _dense(there)[7]]


@pytest.mark.parametrize(("step", "tables"), CASES[::2], ids=_name)
def test_whether_the_output_can_be_sparse_is_known_beforehand(step, tables):
    if sparse.issparse(tables[0]):
        return  # sparse in, sparse out
    assert rule_of(step).sparse(step) == sparse.issparse(_run(step, tables[0])[3])


@each_value(1)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("step", [step for step, tables in CASES if tables is FINITE], ids=_name)
def test_what_is_refused_for_a_value_that_is_not_finite_quotes_nothing(step, bad):
    """That a value is missing may be told: our own estimators tell it too."""
    told = set()
    for table in FINITE:
        with pytest.raises(ValueError, match=r"NaN|infinity") as caught:
            clone(step).fit(_with_one(table, bad)).transform(_with_one(table, bad))
        told.add(str(caught.value))
    assert len(told) == 1


NUMBERS = [
    (step, tables)
    for step, tables in CASES
    if any(tables is one for one in (FINITE, MISSING, POSITIVE))
]


@quick("SplineTransformer", "PolynomialFeatures", "tables9")
@pytest.mark.parametrize(("step", "tables"), NUMBERS, ids=_name)
def test_behind_another_step_no_value_is_refused_or_changes_the_form_of_the_output(step, tables):
    usual = _run(step, tables[0])[2]
    for value in (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 2.0**63):
        for table in (_with_one(tables[0], value), np.full((N, 2), value)):
            with reading(DATA), config_context(assume_finite=True), np.errstate(all="ignore"):
                assert _run(step, table)[2] == usual


REFUSED = [
    (OneHotEncoder(handle_unknown="ignore"), "categories="),
    (OneHotEncoder(categories=[["a"]]), "handle_unknown='ignore'"),
    (OneHotEncoder(categories=[["a"]], handle_unknown="warn"), "handle_unknown='ignore'"),
    (OneHotEncoder(categories=[["a"]], handle_unknown="ignore", drop="first"), "drop=None"),
    (OneHotEncoder(categories=[["a"]], handle_unknown="ignore", min_frequency=2), "min_frequency"),
    (OneHotEncoder(categories=[["a"]], handle_unknown="ignore", max_categories=2), "counted"),
    (OneHotEncoder(categories=["auto"], handle_unknown="ignore"), "categories="),
    (OrdinalEncoder(categories=[["a"]]), "use_encoded_value"),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "categories="),
    (SimpleImputer(), "strategy='constant'"),
    (SimpleImputer(strategy="most_frequent", keep_empty_features=True), "strategy='constant'"),
    (SimpleImputer(strategy=np.mean, keep_empty_features=True), "strategy='constant'"),
    (SimpleImputer(strategy="constant"), "keep_empty_features=True"),
    (
        SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
        "add_indicator=False",
    ),
    (MissingIndicator(), "features='all'"),
    (SplineTransformer(), "knots="),
    (SplineTransformer(knots="quantile"), "knots="),
    (SplineTransformer(knots=KNOTS, extrapolation="error"), "extrapolation"),
    (SplineTransformer(knots=KNOTS, extrapolation="continue", sparse_output=True), "sparse_output"),
    (SplineTransformer(knots=KNOTS, extrapolation="periodic", sparse_output=True), "sparse_output"),
    (
        OrdinalEncoder(
            categories=AGES,
            handle_unknown="use_encoded_value",
            unknown_value=np.nan,
            dtype=object,
        ),
        "dtype",
    ),
    (
        SimpleImputer(strategy="constant", keep_empty_features=True, missing_values="London"),
        "missing_values",
    ),
    (
        SimpleImputer(strategy="constant", keep_empty_features=True, missing_values=-999),
        "fill_value",
    ),
    (FunctionTransformer(lambda X: X - X.mean()), "func may be"),
    (FunctionTransformer(np.frompyfunc(lambda x: x, 1, 1)), "func may be"),
    (FunctionTransformer(np.cumsum), "func may be"),
    (FunctionTransformer(np.log1p, np.expm1), "check_inverse=False"),
    (FunctionTransformer(np.log1p, lambda X: X), "inverse_func may be"),
    (FunctionTransformer(np.log1p, kw_args={"out": np.empty(3)}), "kw_args"),
    (FunctionTransformer(feature_names_out=lambda self, names: names), "feature_names_out"),
    (HashingVectorizer(), "decode_error='replace'"),
    (HashingVectorizer(decode_error="ignore", tokenizer=str.split), "functions of your own"),
    (HashingVectorizer(decode_error="ignore", input="filename"), "input='content'"),
    (TfidfTransformer(), "use_idf=False"),
    (TfidfTransformer(use_idf=False, sublinear_tf=True), "norm=None"),
    (GaussianRandomProjection(), "n_components="),
    (SparseRandomProjection(2, random_state=np.random.RandomState(0)), "random_state"),
    (RBFSampler(gamma="scale"), "gamma="),
]


@pytest.mark.parametrize(("step", "remedy"), REFUSED, ids=_name)
def test_whatever_falls_short_of_the_condition_is_refused_with_the_remedy(step, remedy):
    with pytest.raises(UnpaidStepError, match=f"Refused: {type(step).__name__}: ") as caught:
        _apart(step)
    assert remedy in str(caught.value)


def test_every_other_estimator_of_scikit_learn_is_refused():
    """Whatever is not on the list is refused: a new version's transformers too."""
    refused = 0
    for name, cls in all_estimators():
        if _rule(cls) is not None:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # deprecated classes
                step = cls()
        except TypeError:  # what needs another estimator: those have tests of their own
            continue
        with pytest.raises(UnpaidStepError, match=name):
            _apart(step)
        refused += 1
    assert refused > 150


def test_the_register_knows_exact_classes_and_nothing_that_looks_like_them():
    class Derived(Normalizer):
        def fit(self, X, y=None):
            self.rows_ = X
            return self

    Derived.__name__ = Derived.__qualname__ = "Normalizer"

    class Liar(Derived):
        __class__ = Normalizer

    patched = Normalizer()
    patched.transform = lambda X: X - X.mean()
    for step, reason in (
        (Derived(), "subclass of Normalizer"),
        (Liar(), "subclass of Normalizer"),
        (patched, "'transform' replaced on the instance"),
        (Normalizer, "is a class: give an instance"),
    ):
        with pytest.raises(UnpaidStepError, match=reason):
            _apart(step)


def test_a_class_cannot_be_registered_twice_over_or_be_no_estimator():
    with pytest.raises(TypeError, match="registered as public"):
        register_private(Normalizer)
    with pytest.raises(TypeError, match="must be a class with fit"):
        register_public(Normalizer(), lambda step: None)

    @register_private
    class Paying(Normalizer):
        pass

    with pytest.raises(TypeError, match="registered as private"):
        register_public(Paying, lambda step: None)
