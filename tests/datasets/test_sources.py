"""Local files first, in a stated order, and only if they are the published ones."""

import gzip
import hashlib
import sys

import numpy as np
import pytest

from skdpnoise.datasets._sources import DATA_VARIABLE, DataSet

CONTENT = b"1,2\n3,4\n"
TINY = DataSet(
    name="tiny",
    files={"tiny.data": hashlib.sha256(CONTENT).hexdigest()},
    route="somewhere.fetch()",
    title="Tiny",
    columns={"a": "one", "b": "two", "c": "target"},
    notes="two rows",
)


def local_bytes(folder):
    """What is found, None if it would be downloaded."""
    return TINY.read(folder, lambda content: content, lambda data_home: None)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The two folders that are searched: data_home and that of the environment variable."""
    home, variable = tmp_path / "home", tmp_path / "variable"
    home.mkdir()
    variable.mkdir()
    monkeypatch.setenv(DATA_VARIABLE, str(variable))
    return home, variable


def test_a_file_is_found_under_both_names_in_both_folders(folders):
    home, variable = folders
    assert local_bytes(home) is None
    for folder in folders:
        for name, content in (("tiny.data", CONTENT), ("tiny.data.gz", gzip.compress(CONTENT))):
            (folder / name).write_bytes(content)
            assert local_bytes(home) == CONTENT
            (folder / name).unlink()
    (variable / "tiny.data").write_bytes(CONTENT)
    assert local_bytes(None) == CONTENT


def test_data_home_is_searched_before_the_environment_variable(folders):
    home, variable = folders
    (variable / "tiny.data").write_bytes(CONTENT)
    (home / "tiny.data").write_bytes(b"another file")
    with pytest.raises(OSError, match="home"):
        local_bytes(home)
    assert local_bytes(None) == CONTENT


def test_without_folders_nothing_is_found(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    assert local_bytes(None) is None


def test_a_folder_under_the_users_home_may_be_written_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "tiny.data").write_bytes(CONTENT)
    assert local_bytes("~") == CONTENT


@pytest.mark.parametrize("name", ["tiny.data", "tiny.data.gz"])
def test_one_changed_byte_is_refused(folders, name):
    changed = CONTENT.replace(b"4", b"5")
    (folders[0] / name).write_bytes(gzip.compress(changed) if name.endswith("gz") else changed)
    with pytest.raises(OSError, match=r"not the published file: the sha256 sum .* expected"):
        local_bytes(folders[0])


@pytest.mark.parametrize(
    "broken",
    [gzip.compress(CONTENT)[:-9], b"no gzip at all", gzip.compress(CONTENT)[:10] + b"\xff" * 20],
    ids=["cut short", "not gzip", "bad stream"],
)
def test_a_broken_gzip_file_is_refused(folders, broken):
    (folders[0] / "tiny.data.gz").write_bytes(broken)
    with pytest.raises(OSError, match=r"tiny\.data\.gz is not a readable gzip file"):
        local_bytes(folders[0])


def _no_network(data_home):
    raise OSError("the network is down")


def _refused(data_home):
    raise ValueError("the server refused")


@pytest.mark.parametrize("fetch", [_no_network, _refused, None])
def test_when_nothing_works_one_error_names_both_ways(fetch, folders):
    with pytest.raises(OSError) as caught:
        TINY.read(None, bytes, fetch)
    message = str(caught.value)
    for part in ("The tiny data set", "tiny.data.gz", "data_home=", DATA_VARIABLE):
        assert part in message
    assert "somewhere.fetch()" in message
    assert "download_if_missing=True" in message
    assert (caught.value.__cause__ is None) == (fetch is None)


def test_an_error_in_our_own_code_is_not_taken_for_a_failed_download(folders):
    with pytest.raises(KeyError):
        TINY.read(None, bytes, lambda data_home: {}["column"])


def _dressed(**options):
    X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(["UP", "DOWN"])
    return TINY.bunch(X, y, **options)


def test_arrays_come_without_a_frame():
    bunch = _dressed(as_frame=False, return_X_y=False)
    assert bunch.frame is None
    assert bunch.feature_names == ["a", "b"]
    assert bunch.target_names == ["c"]
    assert bunch.DESCR == "Tiny\n\na  one\nb  two\nc  target\n\ntwo rows"
    X, y = _dressed(as_frame=False, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)


def test_frames_hold_the_same_numbers_as_arrays():
    pytest.importorskip("pandas")
    bunch = _dressed(as_frame=True, return_X_y=False)
    arrays = _dressed(as_frame=False, return_X_y=False)
    assert list(bunch.frame.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(bunch.data.to_numpy(), arrays.data)
    assert bunch.target.tolist() == arrays.target.tolist()
    assert bunch.target.name == "c"
    X, y = _dressed(as_frame=True, return_X_y=True)
    assert X.equals(bunch.data)
    assert y.equals(bunch.target)


def test_without_pandas_arrays_work_and_frames_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert _dressed(as_frame=False, return_X_y=False).data.shape == (2, 2)
    with pytest.raises(ImportError, match=r"as_frame=True needs pandas.*skdpnoise\[pandas\]"):
        _dressed(as_frame=True, return_X_y=False)
