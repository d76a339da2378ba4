"""Adult: both parts of the published files, and the categories that describe them."""

import dataclasses
import gzip
import hashlib

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from skdpnoise.datasets import ADULT_CATEGORIES, fetch_adult, loaders
from skdpnoise.datasets._sources import DATA_VARIABLE

# Rows of the original format, made up.
TRAIN = b"""40, Private, 100000, Bachelors, 13, Divorced, Sales, Unmarried, White, Male, 0, 0, 45, \
Peru, >50K
20, ?, 50000, 11th, 7, Never-married, ?, Own-child, Black, Female, 10, 0, 20, Hong, <=50K

"""
TEST = b"""|1x3 Cross validator
65, State-gov, 1000, Doctorate, 16, Widowed, Tech-support, Other-relative, Other, Male, 0, 5, 9, \
?, <=50K.

"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder with small files that pass for the published ones."""
    files = {}
    for name, content in (("adult.data", TRAIN), ("adult.test", TEST)):
        files[name] = hashlib.sha256(content).hexdigest()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    monkeypatch.setattr(loaders, "_ADULT", dataclasses.replace(loaders._ADULT, files=files))
    monkeypatch.setattr(loaders, "_N_TRAIN", 2)
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    return tmp_path


def test_both_parts_are_read_the_training_part_first(tiny):
    bunch = fetch_adult(data_home=tiny)
    assert bunch.data.shape == (3, 14)
    assert bunch.target.tolist() == [">50K", "<=50K", "<=50K"]
    assert bunch.data[0, :3].tolist() == [40.0, "Private", 100000.0]
    assert bunch.data[1, 1] == "?"
    assert fetch_adult(data_home=tiny, subset="train").data.shape == (2, 14)
    X, y = fetch_adult(data_home=tiny, subset="test", return_X_y=True)
    assert (X[0, 0], y.tolist()) == (65.0, ["<=50K"])


def test_a_frame_has_numbers_and_text(tiny):
    frame = fetch_adult(data_home=tiny, as_frame=True).frame
    numbers = frame.select_dtypes("number")
    assert list(numbers) == [name for name in frame.columns[:-1] if name not in ADULT_CATEGORIES]
    assert (numbers.dtypes == np.float64).all()
    assert frame["class"].tolist() == [">50K", "<=50K", "<=50K"]


def test_rows_from_openml_are_put_in_the_same_order(tiny, monkeypatch):
    expected = fetch_adult(data_home=tiny)
    names = [*expected.feature_names, "class"]
    rows = np.column_stack([expected.data, expected.target])
    frame = pd.DataFrame(np.vstack([rows[2:], rows[:2]]), columns=names).replace("?", None)
    monkeypatch.setattr(loaders, "fetch_openml", lambda **options: Bunch(frame=frame))
    monkeypatch.setattr(loaders, "_N_TEST", 1)
    monkeypatch.setattr(loaders, "_N_RICH", 1)
    (tiny / "adult.test.gz").unlink()
    downloaded = fetch_adult(data_home=tiny)
    np.testing.assert_array_equal(downloaded.data, expected.data)
    np.testing.assert_array_equal(downloaded.target, expected.target)
    monkeypatch.setattr(loaders, "_N_RICH", 2)
    with pytest.raises(OSError, match="not those of the published parts"):
        fetch_adult(data_home=tiny)


def test_a_missing_file_without_a_download_and_an_unknown_part_are_errors(tiny):
    with pytest.raises(ValueError, match="'subset' parameter of fetch_adult"):
        fetch_adult(subset="some", data_home=tiny)
    (tiny / "adult.test.gz").unlink()
    with pytest.raises(OSError, match=r"adult\.test\.gz.*fetch_openml\(data_id=1590\)"):
        fetch_adult(data_home=tiny, download_if_missing=False)


@pytest.mark.slow
def test_the_real_files_have_the_published_counts_and_categories(real_data):
    train = fetch_adult(subset="train", data_home=real_data, as_frame=True)
    test = fetch_adult(subset="test", data_home=real_data, as_frame=True)
    assert (len(train.data), len(test.data)) == (32_561, 16_281)
    assert [(part.target == ">50K").sum() for part in (train, test)] == [7_841, 3_846]
    assert (train.data == "?").any(axis=1).sum() == 2_399
    assert round(train.data["age"].mean(), 4) == 38.5816
    for name, known in ADULT_CATEGORIES.items():
        assert (set(train.data[name]) | set(test.data[name])) - {"?"} == set(known)
        assert len(known) == len(set(known))
        assert name in train.DESCR
