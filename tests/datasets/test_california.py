"""California housing: scikit-learn's numbers from the original file."""

import dataclasses
import gzip
import hashlib

import joblib
import numpy as np
import pytest
from sklearn.datasets import fetch_california_housing

from skdpnoise.datasets import fetch_california, loaders
from skdpnoise.datasets._sources import DATA_VARIABLE

# Three rows of the original format, made up.
TINY = b"""-122.25,37.75,40.0,800.0,160.0,320.0,100.0,8.25,450000.0
-118.5,34.0,12.0,1500.0,300.0,900.0,250.0,3.125,150000.0
-121.0,38.5,52.0,90.0,30.0,45.0,20.0,15.0001,500001.0
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A folder with a small file that passes for the published one."""
    files = {"cal_housing.data": hashlib.sha256(TINY).hexdigest()}
    published = dataclasses.replace(loaders._CALIFORNIA, files=files)
    monkeypatch.setattr(loaders, "_CALIFORNIA", published)
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    (tmp_path / "cal_housing.data.gz").write_bytes(gzip.compress(TINY))
    return tmp_path


def _fill_scikit_learn_cache(folder, original):
    """Put the raw columns where scikit-learn keeps them, in the order it keeps them."""
    columns = [8, 7, 2, 3, 4, 5, 6, 1, 0]
    joblib.dump(original[:, columns], folder / "cal_housing_py3.pkz", compress=6)


def test_columns_are_computed_from_the_original_ones(tiny):
    bunch = fetch_california(data_home=tiny)
    expected = [8.25, 40.0, 8.0, 1.6, 320.0, 3.2, 37.75, -122.25]
    np.testing.assert_allclose(bunch.data[0], expected, rtol=1e-15)
    np.testing.assert_allclose(bunch.target, [4.5, 1.5, 5.00001], rtol=1e-15)
    assert bunch.data.dtype == bunch.target.dtype == np.float64


def test_a_small_file_gives_what_scikit_learn_makes_of_it(tiny):
    _fill_scikit_learn_cache(tiny, np.loadtxt(TINY.decode().splitlines(), delimiter=","))
    theirs = fetch_california_housing(data_home=tiny, download_if_missing=False)
    ours = fetch_california(data_home=tiny)
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.target, theirs.target)
    assert ours.feature_names == theirs.feature_names
    assert ours.target_names == theirs.target_names


def test_scikit_learns_cache_is_used_when_no_file_is_found(tiny):
    expected = fetch_california(data_home=tiny)
    (tiny / "cal_housing.data.gz").unlink()
    _fill_scikit_learn_cache(tiny, np.loadtxt(TINY.decode().splitlines(), delimiter=","))
    cached = fetch_california(data_home=tiny, download_if_missing=False)
    np.testing.assert_array_equal(cached.data, expected.data)
    np.testing.assert_array_equal(cached.target, expected.target)


def test_a_missing_file_without_a_download_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(OSError, match=r"cal_housing\.data\.gz.*fetch_california_housing\(\)"):
        fetch_california(data_home=tmp_path, download_if_missing=False)


def test_a_small_file_is_not_taken_for_the_published_one(tmp_path):
    (tmp_path / "cal_housing.data").write_bytes(TINY)
    with pytest.raises(OSError, match="not the published file"):
        fetch_california(data_home=tmp_path)


def test_the_real_file_has_the_published_means_and_top_codes(real_data):
    bunch = fetch_california(data_home=real_data)
    assert bunch.data.shape == (20_640, 8)
    means = [3.8707, 28.6395, 5.4290, 1.0967, 1425.4767, 3.0707, 35.6319, -119.5697]
    np.testing.assert_allclose(bunch.data.mean(axis=0), means, atol=5.1e-5)
    assert round(bunch.target.mean(), 4) == 2.0686
    assert round(bunch.target.std(ddof=1), 4) == 1.1540
    assert np.count_nonzero(bunch.target == 5.00001) == 965


def test_the_real_file_reads_the_same_as_a_frame(real_data):
    pytest.importorskip("pandas")
    X, y = fetch_california(data_home=real_data, as_frame=True, return_X_y=True)
    arrays = fetch_california(data_home=real_data)
    np.testing.assert_array_equal(X.to_numpy(), arrays.data)
    np.testing.assert_array_equal(y.to_numpy(), arrays.target)
    assert all(name in arrays.DESCR for name in [*X.columns, y.name])
