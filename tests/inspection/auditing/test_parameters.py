"""A black box leaves out what is public, and nothing else: not what a fit does to a parameter."""

from __future__ import annotations

import array
import csv
import ctypes
import datetime
import hashlib
import operator
import queue
import random
import uuid
import warnings
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import GradientBoostingRegressor, IsolationForest
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpnoise.inspection import audit
from skdpnoise.inspection.auditing._claims import fit_quietly
from skdpnoise.inspection.auditing._views import UNREAD, Parameters, view
from tests._cases import each_value, quick

X = np.random.default_rng(0).normal(size=(40, 2))
FAR = (np.vstack([X[:-1], [[9.0, 9.0]]]), None)


class Slotted:
    """Holds a number in a slot."""

    __slots__ = ("value",)

    def __init__(self):
        self.value = 0.0


@dataclass
class Record:
    """Holds more than its fields."""

    value: float = 0.0


class Remembering:
    """Keeps what it was asked for."""

    @cached_property
    def largest(self):
        return 0.0


class Peer(TransformerMixin, BaseEstimator):
    """Publishes noise, and beside it the largest value in a way of its choice."""

    def __init__(self, way="", bounds=None, inner=None, epsilon=1.0, random_state=None):
        self.way = way
        self.bounds = bounds
        self.inner = inner
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y=None):
        self.noise_ = np.random.default_rng(self.random_state).laplace(size=2)
        if self.way:
            WAYS[self.way](self, X)
        return self

    def transform(self, X):
        return X + self.noise_


def overwritten(model, X):
    model.bounds = (X.min(axis=0), X.max(axis=0))


def overwritten_by_a_number(model, X):
    model.epsilon = float(X.max())


def changed_in_place(model, X):
    model.bounds[0] = float(X.max())


def a_dict_in_place(model, X):
    model.inner["largest"] = float(X.max())


def an_array_in_place(model, X):
    model.inner[:] = X.max(axis=0)


def deep_in_place(model, X):
    model.inner["a"][0]["b"].append(float(X.max()))


def fitted_in_place(model, X):
    model.inner.fit(X)


def parameter_of_an_inner_one(model, X):
    model.inner.set_params(copy=float(X.max()))


def a_fitted_clone(model, X):
    model.model_ = clone(model.inner).set_params(copy=float(X.max()))


def a_set(model, X):
    model.seen_ = {float(X.max())}


def some_bytes(model, X):
    model.raw_ = X.max().tobytes()


def a_complex_number(model, X):
    model.z_ = complex(X.max(), 1.0)


def a_huge_number(model, X):
    model.huge_ = 10**400 + int(X.max())


def another_type(model, X):
    model.a_ = [1] if X.max() > 5.0 else (1,)


def another_shape(model, X):
    model.a_ = np.zeros((2, 3) if X.max() > 5.0 else (3, 2))


def another_order(model, X):
    model.a_ = dict.fromkeys(("a", "b") if X.max() > 5.0 else ("b", "a"), 1)


def nothing_or_undefined(model, X):
    model.a_ = np.nan if X.max() > 5.0 else None


def a_class(model, X):
    model.a_ = int if X.max() > 5.0 else float


def labels_of_a_frame(model, X):
    model.a_ = pd.DataFrame({"a": [1]}, index=[float(X.max())])


def the_middle_of_a_long_array(model, X):
    model.a_ = np.zeros(10_000)
    model.a_[5_000] = X.max()


def the_middle_of_a_long_list(model, X):
    model.a_ = [0.0] * 10_000
    model.a_[5_000] = float(X.max())


class NumberOf(int):
    pass


class ArrayOf(np.ndarray):
    pass


def attribute_of(make):
    def way(model, X):
        model.a_ = make()
        model.a_.largest = float(X.max())

    return way


def trees(model, X):
    inner = GradientBoostingRegressor(n_estimators=2, random_state=0)
    model.a_ = inner.fit(X, X[:, 0]).estimators_


def a_silent_object_in_an_array(model, X):
    model.a_ = np.array([Slotted()], dtype=object)
    model.a_[0].value = float(X.max())


def a_long_array_in_an_array(model, X):
    model.a_ = np.empty(1, dtype=object)
    model.a_[0] = np.concatenate([np.zeros(600), [X.max()], np.zeros(600)])


def far_below(model, X):
    model.a_ = float(X.max())
    for _ in range(100):
        model.a_ = {"child": [model.a_]}


def a_mask(model, X):
    model.a_ = np.ma.masked_array([1.0, 2.0], mask=[X.max() > 5.0, False])


def name_of_a_series(model, X):
    model.a_ = pd.Series([0.0], name=float(X.max()))


def attribute_of_a_frame(model, X):
    model.a_ = pd.DataFrame({"a": [0.0]})
    model.a_.attrs["largest"] = float(X.max())


def name_of_an_index(model, X):
    model.a_ = pd.DataFrame({"a": [0.0]}, index=pd.Index([0], name=float(X.max())))


def a_long_integer(model, X):
    model.a_ = (1 << 60) + int(X.max())


def long_integers(model, X):
    model.a_ = np.array([(1 << 60) + int(X.max())])


def a_nanosecond(model, X):
    model.a_ = np.array([(1 << 60) + int(X.max())]).view("M8[ns]")


def beyond_double_precision(model, X):
    model.a_ = np.longdouble(1.0) + np.longdouble(X.max()) * np.longdouble(2.0) ** -60


def sign_of_zero(model, X):
    model.a_ = -0.0 if X.max() > 5.0 else 0.0


def sign_of_a_zero_among_noise(model, X):
    model.a_ = np.append(model.noise_, -0.0 if X.max() > 5.0 else 0.0)


def an_explicit_zero(model, X):
    model.a_ = sp.csr_array(([0.0], ([0], [int(X.max() > 5.0)])), shape=(1, 2))


def a_key_that_is_no_text(model, X):
    model.a_ = {(float(X.max()), 1): 0}


def a_field(model, X):
    model.a_ = np.array([(model.noise_[0], X.max())], dtype=[("noise", float), ("largest", float)])


def complex_numbers(model, X):
    model.a_ = np.array([complex(model.noise_[0], X.max())])


def named_like_memory(model, X):
    model.baseline_ = model.base = model.metadata_ = float(X.max())


def which_of_its_dicts(model, X):
    model.a_ = [{"alpha": 0.1}, {"alpha": 1.0}]
    model.b_ = model.a_[int(X.max() > 5.0)]


def which_of_its_arrays(model, X):
    model.a_ = [np.zeros(2), np.ones(2)]
    model.b_ = model.a_[int(X.max() > 5.0)]


def _noisy(model, most):
    """A whole number from 1 to `most` that is noise."""
    return 1 + int(abs(model.noise_[0]) * 1e6) % most


def in_a_noisy_number(model, X):
    model.a_ = np.full(_noisy(model, 30), X.max())


def a_frame_of_noisy_length(model, X):
    model.a_ = pd.DataFrame({"a": np.full(_noisy(model, 30), X.max())})


def some_rows(model, X):
    model.rows_ = X[: len(X) - _noisy(model, 5) + 1][::-1]


def under_a_noisy_key(model, X):
    model.a_ = {float(model.noise_[0]): float(X.max())}


def under_a_noisy_name(model, X):
    model.a_ = {f"a {model.noise_[0]}": float(X.max())}


def a_type_beside_a_noisy_key(model, X):
    model.a_ = {float(model.noise_[0]): 0}
    model.b_ = [1] if X.max() > 5.0 else (1,)


def a_shape_beside_a_noisy_length(model, X):
    model.a_ = list(range(_noisy(model, 30)))
    model.b_ = np.zeros((2, 3) if X.max() > 5.0 else (3, 2))


def an_order_beside_a_noisy_length(model, X):
    model.a_ = list(range(_noisy(model, 30)))
    model.b_ = dict.fromkeys(("a", "b") if X.max() > 5.0 else ("b", "a"), 1)


def an_order_of_attributes_beside_a_noisy_key(model, X):
    model.a_ = {float(model.noise_[0]): 0}
    for name in ("b_", "c_") if X.max() > 5.0 else ("c_", "b_"):
        setattr(model, name, 1)


def which_of_its_lists_beside_a_noisy_key(model, X):
    model.a_ = {float(model.noise_[0]): 0}
    model.b_ = [[1], [2]]
    model.c_ = model.b_[int(X.max() > 5.0)]


def a_record(model, X):
    model.a_ = np.rec.array([(model.noise_[0], X.max())], dtype=[("a", float), ("b", float)])[0]


def a_row_of_an_array(model, X):
    model.a_ = np.array([(model.noise_[0], X.max())], dtype=[("a", float), ("b", float)])[0]


def an_array_of_python(model, X):
    model.a_ = array.array("d", [model.noise_[0], X.max()])


def an_array_of_c(model, X):
    model.a_ = (ctypes.c_double * 2)(model.noise_[0], X.max())


def a_text_with_noise(model, X):
    model.a_ = f"noise {model.noise_[0]}, largest {X.max()}"


def a_warning_with_noise(model, X):
    warnings.warn(f"noise {model.noise_[0]}, largest {X.max()}", stacklevel=2)


def an_error_with_noise(model, X):
    if model.noise_[0] > 1.0:  # in one of six fits
        raise ValueError(f"noise {model.noise_[0]}, largest {X.max()}")


def the_part_of_a_complex_number(model, X):
    model.a_ = complex(model.noise_[0], X.max())


def the_sign_of_a_zero_in_a_complex_number(model, X):
    model.a_ = complex(0.0, -0.0 if X.max() > 5.0 else 0.0)


def a_date_with_noise(model, X):
    model.a_ = datetime.datetime(2000 + int(X.max()), 1, 1, microsecond=_noisy(model, 10**6) - 1)


def a_time_with_noise(model, X):
    model.a_ = datetime.time(int(X.max()), _noisy(model, 60) - 1)


def bytes_with_noise(model, X):
    model.a_ = np.array([model.noise_[0], X.max()]).tobytes()


def raw_memory_with_noise(model, X):
    model.a_ = np.void(np.array([model.noise_[0], X.max()]).tobytes())


def a_long_number_with_noise(model, X):
    model.a_ = uuid.UUID(bytes=np.array([model.noise_[0], X.max()]).tobytes())


def remembered_by_a_parameter(model, X):
    model.inner.largest = float(X.max())


WAYS = {
    way.__name__: way
    for way in (
        in_a_noisy_number,
        a_frame_of_noisy_length,
        some_rows,
        under_a_noisy_key,
        under_a_noisy_name,
        a_type_beside_a_noisy_key,
        a_shape_beside_a_noisy_length,
        an_order_beside_a_noisy_length,
        an_order_of_attributes_beside_a_noisy_key,
        which_of_its_lists_beside_a_noisy_key,
        a_record,
        a_row_of_an_array,
        an_array_of_python,
        an_array_of_c,
        a_text_with_noise,
        a_warning_with_noise,
        the_part_of_a_complex_number,
        the_sign_of_a_zero_in_a_complex_number,
        a_date_with_noise,
        a_time_with_noise,
        bytes_with_noise,
        raw_memory_with_noise,
        a_long_number_with_noise,
        remembered_by_a_parameter,
        overwritten,
        overwritten_by_a_number,
        changed_in_place,
        a_dict_in_place,
        an_array_in_place,
        deep_in_place,
        fitted_in_place,
        parameter_of_an_inner_one,
        a_fitted_clone,
        a_set,
        some_bytes,
        a_complex_number,
        a_huge_number,
        another_type,
        another_shape,
        another_order,
        nothing_or_undefined,
        a_class,
        labels_of_a_frame,
        the_middle_of_a_long_array,
        the_middle_of_a_long_list,
        trees,
        a_silent_object_in_an_array,
        a_long_array_in_an_array,
        far_below,
        a_mask,
        name_of_a_series,
        attribute_of_a_frame,
        name_of_an_index,
        a_long_integer,
        long_integers,
        a_nanosecond,
        sign_of_zero,
        sign_of_a_zero_among_noise,
        an_explicit_zero,
        a_key_that_is_no_text,
        a_field,
        complex_numbers,
        named_like_memory,
        which_of_its_dicts,
        which_of_its_arrays,
    )
}
WAYS |= {
    "attribute of a number": attribute_of(NumberOf),
    "attribute of an array": attribute_of(lambda: np.zeros(2).view(ArrayOf)),
}
if np.finfo(np.longdouble).nmant > 60:
    WAYS["beyond double precision"] = beyond_double_precision
GIVEN = {
    "changed_in_place": {"bounds": [0.0]},
    "a_dict_in_place": {"inner": {}},
    "an_array_in_place": {"inner": np.zeros(2)},
    "deep_in_place": {"inner": {"a": [{"b": []}]}},
    "remembered_by_a_parameter": {"inner": Remembering()},
}


@dataclass(eq=False, repr=False)
class Written(TransformerMixin, BaseEstimator):
    """Its constructor is written by dataclass; what it learns is no field."""

    epsilon: float = 1.0
    random_state: Any = None

    def fit(self, X, y=None):
        self.noise_ = np.random.default_rng(self.random_state).laplace(size=2)
        self.largest_ = X.max()
        return self

    def transform(self, X):
        return X + self.noise_


def _found(estimator):
    settings = {"neighbours": FAR, "n_fits": 60, "method": "black_box", "random_state": 0}
    return audit(estimator, X, adjacency="replace_one", **settings).results[0]


def _passes(estimator):
    found = _found(estimator)
    assert found.unread == ()
    return found.passed


def test_a_black_box_sees_what_an_estimator_learns_whose_constructor_is_a_list_of_fields():
    assert not _passes(Written())


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_black_box_sees_what_a_fit_does_to_parameters_and_wherever_it_hides_a_number(way):
    given = {"inner": StandardScaler(), **GIVEN.get(way, {})}
    assert not _passes(Peer(way, **given))


@pytest.mark.slow
def test_a_black_box_sees_a_number_beside_noise_in_errors_of_some_fits(monkeypatch):
    monkeypatch.setitem(WAYS, "error", an_error_with_noise)
    settings = {"neighbours": FAR, "method": "black_box", "n_fits": 600, "random_state": 0}
    assert not audit(Peer("error"), X, adjacency="replace_one", **settings).passed


@pytest.mark.slow
def test_a_black_box_finds_nothing_where_a_fit_leaves_parameters_alone():
    given = {"bounds": [0.0], "inner": StandardScaler()}
    settings = {"neighbours": FAR, "method": "black_box", "n_fits": 60, "random_state": 0}
    assert audit(Peer(**given), X, adjacency="replace_one", **settings).passed


def below(levels):
    """A list in a list, and so on."""
    found: list = []
    for _ in range(levels):
        found = [found]
    return found


class Opaque(Peer):
    """Publishes what nobody can read: nothing of the data, but who knows."""

    def fit(self, X, y=None):
        self.queue_ = queue.SimpleQueue()
        return super().fit(X)


class Worker:
    """Holds a number, and what nobody can read."""

    def __init__(self, value=0.0):
        self.value, self.queue = value, queue.SimpleQueue()


def a_class_with(worker):
    class Settings:
        held = worker

    return Settings()


@dataclass(eq=False, repr=False)
class Hidden(Written):
    """Holds something where a black box sees a digest only, or a mere name."""

    put: Any = None

    def fit(self, X, y=None):
        self.noise_ = np.random.default_rng(self.random_state).laplace(size=2)
        self.a_ = UNREADABLE[self.put](float(X.max()))
        return self


UNREADABLE = {
    "a set": lambda value: {Worker(value)},
    "a frozenset": lambda value: frozenset([Worker(value)]),
    "a key": lambda value: {Worker(value): 1},
    "a class": lambda value: a_class_with(Worker(value)),
    "a long list": lambda value: [*[0.0] * 2000, Worker(value), *[0.0] * 2000],
    "a cache": lambda value: lru_cache(lambda: value),
    "a generator": lambda value: (one for one in [value]),
    "a reader of csv": lambda value: csv.reader([repr(value)]),
    "a hash": lambda value: hashlib.sha256(repr(value).encode()),
    "a ufunc": lambda value: np.frompyfunc(partial(operator.add, value), 1, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("put", UNREADABLE)
def test_a_black_box_names_what_it_cannot_read_wherever_it_is(put):
    found = _found(Hidden(put=put))
    assert found.unread
    assert not found.passed


class Unhelpful:
    """Knows no names but its own, and says so in its own way."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise KeyError(name)


T = TypeVar("T", bound=int)


def _annotated(one: Literal["a"], other: T) -> tuple[str, T]:
    return one, other


PUBLIC = {
    "mapped": lambda folder: np.load(folder / "grid.npy", mmap_mode="r"),
    "secure": lambda folder: random.SystemRandom(),
    "unhelpful": lambda folder: Unhelpful(),
    "keys": lambda folder: OrderedDict(a=1).keys(),
    "ufunc": lambda folder: np.add,
    "memory of a compiled library": lambda folder: linalg.sqrtm(np.eye(2)),
    "intervals": lambda folder: pd.cut([1.0, 2.0], 2),
    "annotated": lambda folder: _annotated,
    "sparse and huge": lambda folder: sp.coo_array(([1.0], ([0], [5])), shape=(2**33, 2**33)),
}


@pytest.mark.slow
@pytest.mark.parametrize("held", PUBLIC)
def test_a_black_box_passes_what_is_public_and_known_to_be_read(held, tmp_path, monkeypatch):
    np.save(tmp_path / "grid.npy", np.ones(3))
    monkeypatch.setitem(UNREADABLE, held, lambda value: PUBLIC[held](tmp_path))
    assert _passes(Hidden(put=held))


class Refuses(Peer):
    """Answers nothing but an error."""

    def fit(self, X, y=None):
        self.largest_of_ = super().fit(X).bounds and float(X.max())
        return self

    def transform(self, X):
        raise KeyError(self.largest_of_)

    def __getattribute__(self, name):
        if name == "__dict__":  # holds it, and does not show it
            return {"noise_": np.zeros(2)}
        return super().__getattribute__(name)


@pytest.mark.slow
def test_a_refusal_of_a_method_is_no_refusal_of_the_audit_and_its_words_are_seen():
    assert not _passes(Refuses(bounds=[0.0]))
    assert _passes(Refuses())


@pytest.mark.parametrize("name", ["predict", "score_samples"])
def test_all_answers_are_looked_at(name, monkeypatch):
    answer = {"predict": np.zeros(1), "score_samples": np.zeros(1)}
    model = type("Answers", (), {one: lambda self, X, one=one: answer[one] for one in answer})()
    before = view(model, X, [], None, Parameters())
    answer[name] = np.ones(1)
    after = view(model, X, [], None, Parameters())
    assert any(not np.array_equal(before[one], after[one]) for one in before)


class CannotSay(Exception):
    """An error whose own text cannot be read."""

    def __str__(self):
        raise RuntimeError


def test_errors_that_cannot_say_what_they_are_stop_no_audit():
    def refuse(*_):
        raise CannotSay

    model = type("Refuses", (), {"predict": refuse, "fit": refuse})()
    found = view(model, X, [], None, Parameters())
    assert "predict() raised" in found
    assert fit_quietly(model, X, None)[2] == "CannotSay"


@quick("two levels-index")
@each_value(1)
@pytest.mark.parametrize("place", ["index", "columns"])
@pytest.mark.parametrize("kind", ["pandas", "long pandas", "two levels", "polars"])
def test_labels_of_frames_are_looked_at(kind, place):
    frames = pytest.importorskip("polars") if kind == "polars" else pd

    def labelled(last):
        labels = [*(str(k) for k in range(5_000 if "long" in kind else 2)), last]
        if kind == "polars":  # which has no labels of rows
            return frames.DataFrame({label: [0.0] for label in labels})
        if kind == "two levels":
            labels = pd.MultiIndex.from_tuples([("a", label) for label in labels])
        values = np.zeros((len(labels), 1) if place == "index" else (1, len(labels)))
        return pd.DataFrame(values, **{place: labels})

    one, other = (view(labelled(last), X, [], None, Parameters()) for last in ("x", "y"))
    assert any(not np.array_equal(one[name], other.get(name)) for name in one)


class Broken(dict):
    """A mapping that is none, whatever it is asked."""

    def __reduce_ex__(self, protocol):
        raise RuntimeError

    @property
    def __dict__(self):
        raise RuntimeError


def test_objects_that_fail_when_they_are_asked_are_named_as_unread():
    gone = weakref.proxy(StandardScaler())
    for odd in (gone, Broken()):
        found = view([odd, 1.0], X, [], None, Parameters())
        assert found["[1]"] == [1.0]
        assert any(name.startswith(UNREAD) for name in found)


@pytest.mark.slow
def test_a_black_box_does_not_pass_what_it_cannot_read():
    found = _found(Opaque())
    assert found.unread == ("_queue.SimpleQueue",)
    assert not found.passed
    assert "problem: the model holds a _queue.SimpleQueue, which cannot be read" in found.details
    with pytest.raises(RecursionError, match="nested in more than 1000 levels"):
        view(below(2000), X, [], None, Parameters())


def held():
    """Frames and arrays as libraries hold them, after somebody asked for this and that."""
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    assert frame.loc[0]["a"] == frame["a"][0] == 1.0
    forest = IsolationForest(n_estimators=1, random_state=0).fit(X)
    neighbours = KNeighborsRegressor(algorithm="kd_tree").fit(X, X[:, 0])
    polars = pytest.importorskip("polars").DataFrame({"a": [1.0], "b": ["x"]})
    texts = pd.Series(["a", "b"], dtype="category")
    return [frame, frame["b"], forest, neighbours, polars, polars["a"], texts]


@pytest.mark.slow
def test_frames_and_models_of_libraries_are_read_and_equal_ones_look_equal():
    # Some classes of libraries are complete only after they were used once.
    _, first, second = (view(held(), X, [], None, Parameters()) for _ in range(3))
    assert first.keys() == second.keys()
    assert not any(name.startswith(UNREAD) for name in first)
    assert all(np.array_equal(first[name], second[name], equal_nan=True) for name in first)


def seen(model, given):
    """Names of all that is seen of a model beside what it answers."""
    found = view(model, X, [], None, given)
    return {name for name in found if name.startswith(".") and " " not in name}


def test_parameters_are_left_out_as_long_as_they_are_what_was_given_at_any_depth():
    model = make_pipeline(Peer(bounds=[1.0, 2.0]), StandardScaler())
    given = Parameters(model)
    assert seen(model, given) == set()
    model.fit(X)
    names = seen(model, given)
    assert ".steps[0][1].noise_" in names
    assert not any("bounds" in name or "random_state" in name for name in names)
    model.steps[0][1].bounds = [1.0, 3.0]
    names = seen(model, given)
    assert {".steps[0][1].bounds[0]", ".steps[0][1].bounds[1]"} <= names
    # What estimators of one class were given differently tells which of them it is.
    both = make_pipeline(Peer(epsilon=1.0), Peer(epsilon=2.0))
    given = Parameters(both)
    assert ".steps[0][1].epsilon" in seen(both.fit(X), given)
