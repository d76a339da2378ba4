"""Beside a release nothing is said: neighbours are charged, warned and answered in the same way."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPLogisticCD,
    DPStandardScaler,
    PrivacyWarning,
)
from skdpnoise._utils.silence import silence
from skdpnoise.data.redaction import without_values
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import private_location_scale
from tests._cases import each_value, quick
from tests.contracts._register import PRIVATE, Entry, Notebook, each, every_private_estimator, ways

pytestmark = [
    pytest.mark.filterwarnings("default::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

SINGLE = float(np.finfo(np.float32).max)
VALUES = {
    np.float64: [-1e100, 1e-300, 2.0**53],
    np.float32: [SINGLE, -SINGLE, 1.2e-38],
}
SETTINGS = [
    {},
    {"delta": 0.0, "adjacency": "add_remove"},
    {"feature_bounds": ([-1.0, -np.inf], [1.0, 5.0])},
]
N = 24
rng = np.random.default_rng(0)


def neighbours(entry: Entry, dtype: type, adjacency: str):
    """Yield data sets that differ in one record from the first of them, and the first."""
    usual = rng.normal(size=(N, 2))
    equal = np.tile([2.0, -3.0], (N, 1))
    y = entry.y(usual)
    if entry.target == "labels":
        y[:2] = 0, 1
    for base in (usual, equal):
        yield base.astype(dtype), y
        for value in VALUES[dtype]:
            X = base.astype(dtype)
            X[-1] = value
            yield X, y
        if adjacency == "add_remove":
            yield base[:-1].astype(dtype), None if y is None else y[:-1]
        if entry.target in ("numbers", "counts"):
            yield base.astype(dtype), np.append(y[:-1], 1e100)
        if entry.target == "labels":
            yield base.astype(dtype), np.append(y[:-1], 2)  # a class of one record


def answer(entry: Entry, X, y, settings):
    """Return what is heard of a fit beside its attributes, released noise apart."""
    ledger = Notebook()
    settings = {**settings, **({"classes": [0, 1, 2]} if entry.target == "labels" else {})}
    estimator = entry.estimator(**settings, ledger=ledger, random_state=0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    others = [str(one) for one in heard if not issubclass(one.category, PrivacyWarning)]
    for charge in ledger.charges:
        charge.pop("parameters")
    return others, ledger.charges


@quick("DPPCA", "DPCoordinateDescentRegressor gram")
@each_value(1)
@every_private_estimator
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_pathological_neighbours_are_charged_alike_and_nothing_else_is_heard(
    entry, settings, capfd
):
    adjacency = settings.get("adjacency", "replace_one")
    if settings.get("delta") == 0.0 and not entry.pure:
        with pytest.raises(ValueError, match="'noise' parameter"):
            answer(entry, *next(iter(neighbours(entry, np.float64, adjacency))), settings)
        return
    for dtype in VALUES:
        answers = [answer(entry, *data, settings) for data in neighbours(entry, dtype, adjacency)]
        assert len(answers) >= 8
        assert answers[0][0] == []
        assert all(one == answers[0] for one in answers)
    assert capfd.readouterr() == ("", "")


@quick("DPStandardScaler", "DPPipeline", "DPCoordinateDescentRegressor")
@each(ways(PRIVATE))
def test_what_a_user_asks_of_warnings_and_of_floats_does_not_stop_a_fit(entry):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)
        for data in neighbours(entry, np.float32, "replace_one"):
            entry.estimator(random_state=0).fit(*data)


@each(ways(PRIVATE))
def test_rows_far_from_those_of_a_fit_are_transformed_and_predicted_in_silence(entry):
    X = rng.normal(size=(40, 2)).astype(np.float32)
    estimator = entry.estimator(feature_bounds=(-3.0, 3.0)).fit(X, entry.y(X))
    far = np.array([[SINGLE, -SINGLE], [0.0, SINGLE]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (far.astype(np.float32), far.astype(object), 1e250 * far):
            for method in ("predict", "transform"):
                if hasattr(estimator, method):
                    assert len(getattr(estimator, method)(rows)) == 2


def test_differences_beyond_single_precision_count_as_what_they_are():
    X = np.tile(np.float32([[SINGLE], [-SINGLE]]), (200, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = private_location_scale(X, PrivacyGuarantee(20.0), random_state=0)
    double = private_location_scale(X.astype(float), PrivacyGuarantee(20.0), random_state=0)
    assert found.scale[0] == double.scale[0] > 1e30


@pytest.mark.parametrize("classes", [None, list(range(40))])
def test_how_many_labels_there_are_is_not_said(classes):
    X = rng.normal(size=(60, 2))
    for y in (np.arange(60) % 2, np.arange(60) % 40, np.arange(60) % 31):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PrivacyWarning)
            DPLogisticCD(classes=classes, n_passes=1).fit(X, y)


def test_a_column_as_target_is_said_since_it_is_a_shape():
    X, y = rng.normal(size=(60, 2)), np.arange(60.0)[:, np.newaxis]
    for estimator, target in ((DPCoordinateDescentRegressor(), y), (DPLogisticCD(), y % 2)):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            estimator.fit(X, target)


def test_our_own_warnings_are_heard():
    with pytest.warns(PrivacyWarning, match="leaves as they are"):
        DPStandardScaler(random_state=0).fit(np.ones((20, 2)))


# The seal itself


def test_within_the_seal_only_what_is_excepted_is_heard():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with silence(PrivacyWarning, DeprecationWarning):
            warnings.warn("private", UserWarning, stacklevel=1)
            warnings.warn("ours", PrivacyWarning, stacklevel=1)
            warnings.warn("old", DeprecationWarning, stacklevel=1)
            with silence():
                warnings.warn("ours, but within", PrivacyWarning, stacklevel=1)
                assert np.float32(3e38) * np.float32(10) == np.inf
                assert np.isnan(np.log(np.float64(-1.0)))
        warnings.warn("after", UserWarning, stacklevel=1)
    assert [str(one.message) for one in heard] == ["ours", "old", "after"]


def test_an_error_within_the_seal_opens_it():
    with pytest.raises(KeyError), silence():
        raise KeyError
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", UserWarning, stacklevel=1)


def test_seals_of_several_threads_do_not_undo_one_another():
    entered, left = threading.Barrier(2), threading.Event()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")

        def first():
            with silence():
                entered.wait()
            left.set()

        thread = threading.Thread(target=first)
        thread.start()
        with silence():
            entered.wait()
            left.wait()  # the other one is left first
            warnings.warn("private", UserWarning, stacklevel=1)
            np.log(np.zeros(1))
        thread.join()
        warnings.warn("public", UserWarning, stacklevel=1)
    assert [str(one.message) for one in heard] == ["public"]


def test_another_thread_is_heard_while_one_is_sealed():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with silence():
            thread = threading.Thread(
                target=lambda: warnings.warn("elsewhere", UserWarning, stacklevel=1)
            )
            thread.start()
            thread.join()
    assert [str(one.message) for one in heard] == ["elsewhere"]


def test_a_fit_leaves_the_filters_as_they_were():
    before = list(warnings.filters)
    for _ in range(2):
        DPPCA().fit(rng.normal(size=(50, 2)))
    assert list(warnings.filters) == before


def test_an_unknown_error_is_replaced_and_carries_nothing():
    def fail():
        try:
            float("secret")
        except ValueError as error:
            error.add_note("secret")
            raise OverflowError("secret") from error

    said = "what can be said"
    with pytest.raises(ValueError, match=rf"^{said}$") as caught, without_values(said):
        fail()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert not hasattr(caught.value, "__notes__")
    frames = caught.traceback
    assert all(entry.name != "fail" for entry in frames)
    with without_values(""):
        pass


@pytest.mark.parametrize("text", ["Input X contains NaN.", "y should be a 1d array, got an array"])
def test_a_text_is_known_to_be_harmless_as_a_whole_or_not_at_all(text):
    def fail():
        raise ValueError(f"secret {text}")

    with pytest.raises(ValueError, match=r"^other$"), without_values("other"):
        fail()


def test_frames_are_read_as_their_numbers():
    numbers = rng.normal(size=(40, 3))
    frame = pd.DataFrame(numbers, columns=list("abc")).astype({"a": "Float64", "b": object})
    whole = DPStandardScaler(random_state=0).fit(numbers)
    read = DPStandardScaler(random_state=0).fit(frame)
    np.testing.assert_array_equal(whole.mean_, read.mean_)
    assert list(read.feature_names_in_) == ["a", "b", "c"]
