"""Electricity: the same numbers from the ARFF file and from OpenML."""

import dataclasses
import gzip
import hashlib

import numpy as np
import pytest
from sklearn.utils import Bunch

from skdpnoise.datasets import fetch_electricity, loaders
from skdpnoise.datasets._sources import DATA_VARIABLE

HEADER = b"""@relation electricity

@attribute date numeric
@attribute day {1,2,3,4,5,6,7}
@attribute period numeric
@attribute nswprice numeric
@attribute nswdemand numeric
@attribute vicprice numeric
@attribute vicdemand numeric
@attribute transfer numeric
@attribute class {UP,DOWN}

@data
"""
TINY = (
    HEADER
    + b"""0,2,0,0.05,0.4,0.003,0.42,0.41,UP
0.25,7,0.5,0.04,0.3,0.004,0.5,0.6,DOWN
1,1,1,0.03,0.2,0.005,0.6,0.7,DOWN
"""
)
DATA = [
    [0.0, 2.0, 0.0, 0.05, 0.4, 0.003, 0.42, 0.41],
    [0.25, 7.0, 0.5, 0.04, 0.3, 0.004, 0.5, 0.6],
    [1.0, 1.0, 1.0, 0.03, 0.2, 0.005, 0.6, 0.7],
]
TARGET = ["UP", "DOWN", "DOWN"]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A folder without files, and no environment variable."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    return tmp_path


def test_nominal_days_become_the_numbers_they_stand_for(nowhere, monkeypatch):
    files = {"elecNormNew.arff": hashlib.sha256(TINY).hexdigest()}
    published = dataclasses.replace(loaders._ELECTRICITY, files=files)
    monkeypatch.setattr(loaders, "_ELECTRICITY", published)
    (nowhere / "elecNormNew.arff.gz").write_bytes(gzip.compress(TINY))
    bunch = fetch_electricity(data_home=nowhere)
    np.testing.assert_array_equal(bunch.data, DATA)
    assert bunch.target.tolist() == TARGET
    assert bunch.feature_names[1] == "day"
    assert bunch.target_names == ["class"]


def test_openml_gives_the_same_arrays_as_the_file(nowhere, monkeypatch):
    asked = {}

    def fetch_openml(**options):
        asked.update(options)
        coded = np.array(DATA)
        coded[:, 1] -= 1  # a nominal value is coded by its place in the list of categories
        return Bunch(
            data=coded,
            target=np.array(TARGET, dtype=object),
            feature_names=list(loaders._ELECTRICITY.feature_names),
            categories={"day": [str(day) for day in range(1, 8)]},
        )

    monkeypatch.setattr(loaders, "fetch_openml", fetch_openml)
    X, y = fetch_electricity(data_home=nowhere, return_X_y=True)
    np.testing.assert_array_equal(X, DATA)
    assert y.tolist() == TARGET
    assert y.dtype.kind == "U"
    assert asked["data_id"] == 151
    assert asked["data_home"] == nowhere


def test_a_missing_file_without_a_download_is_an_error(nowhere, monkeypatch):
    def fetch_openml(**options):
        raise AssertionError("no download was asked for")

    monkeypatch.setattr(loaders, "fetch_openml", fetch_openml)
    with pytest.raises(OSError, match=r"elecNormNew\.arff\.gz.*fetch_openml\(data_id=151\)"):
        fetch_electricity(data_home=nowhere, download_if_missing=False)


@pytest.mark.slow
def test_the_real_file_has_the_published_counts_and_means(real_data):
    bunch = fetch_electricity(data_home=real_data)
    assert bunch.data.shape == (45_312, 8)
    assert np.count_nonzero(bunch.target == "UP") == 19_237
    assert np.count_nonzero(bunch.target == "DOWN") == 26_075
    means = [0.499080, 0.5, 0.057868, 0.425418, 0.003467, 0.422915, 0.500526]
    scaled = np.delete(bunch.data, 1, axis=1)
    np.testing.assert_allclose(scaled.mean(axis=0), means, atol=5.1e-7)
    assert scaled.min() == 0.0
    assert scaled.max() == 1.0
    np.testing.assert_array_equal(np.unique(bunch.data[:, 1]), np.arange(1.0, 8.0))


@pytest.mark.slow
def test_the_real_file_reads_the_same_as_a_frame(real_data):
    pytest.importorskip("pandas")
    frame = fetch_electricity(data_home=real_data, as_frame=True).frame
    arrays = fetch_electricity(data_home=real_data)
    np.testing.assert_array_equal(frame[arrays.feature_names].to_numpy(), arrays.data)
    assert frame["class"].tolist() == arrays.target.tolist()
    assert all(name in arrays.DESCR for name in frame.columns)
