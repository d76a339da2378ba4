"""Tables, JSON files and the options that all benchmarks share."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks._report import DEFAULT_OUT, add_common_arguments, print_table, save_json

HEADERS = ["rule", "error", "runs"]
ROWS = [["spr_gaussian", 0.0123456, 5], ["[iid]", None, 12]]


@pytest.mark.parametrize("rich", [True, False], ids=["with rich", "without rich"])
def test_a_table_shows_every_cell(rich, capsys, monkeypatch):
    if rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    print_table(HEADERS, ROWS, title="Errors")
    printed = capsys.readouterr().out
    for text in ["Errors", *HEADERS, "spr_gaussian", "0.01235", "[iid]", "12"]:
        assert text in printed


def test_a_plain_table_aligns_text_left_and_numbers_right(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    print_table(HEADERS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "rule            error  runs",
        "------------  -------  ----",
        "spr_gaussian  0.01235     5",
        "[iid]               -    12",
    ]


def test_a_table_refuses_a_row_of_the_wrong_length():
    with pytest.raises(ValueError, match="every row must have 3 cells"):
        print_table(HEADERS, [["spr", 0.1]])


def test_a_table_without_rows_is_a_header(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    print_table(["rule"], [])
    assert capsys.readouterr().out.splitlines() == ["rule", "----"]


def test_saved_numbers_come_back_with_the_versions_they_were_measured_with(tmp_path):
    payload = {
        "passes": np.arange(3),
        "error": np.float32(0.5),
        "missing": float("nan"),
        "infinite": np.array([1.0, np.inf]),
        "nested": {1: (np.int64(2), "text", True)},
        "file": Path("results") / "curve.png",
    }
    path = save_json(tmp_path / "new" / "folder", "dp_cd", payload)
    record = json.loads(path.read_text())
    assert path.name == "dp_cd.json"
    assert record["benchmark"] == "dp_cd"
    assert record["machine"]["numpy"] == np.__version__
    assert record["machine"]["cores"] >= 1
    assert record["commit"]
    assert record["passes"] == [0, 1, 2]
    assert record["error"] == 0.5
    assert record["missing"] is None
    assert record["infinite"] == [1.0, None]
    assert record["nested"] == {"1": [2, "text", True]}
    assert Path(record["file"]).name == "curve.png"


def test_common_options_have_their_defaults(tmp_path):
    parser = add_common_arguments(argparse.ArgumentParser())
    default = parser.parse_args([])
    assert default.data_dir is None
    assert default.out == DEFAULT_OUT
    assert not default.quick
    given = parser.parse_args(["--data-dir", str(tmp_path), "--out", "here", "--quick"])
    assert given.data_dir == tmp_path
    assert given.out == Path("here")
    assert given.quick


def test_a_data_folder_that_does_not_exist_is_refused(tmp_path, capsys):
    parser = add_common_arguments(argparse.ArgumentParser())
    with pytest.raises(SystemExit):
        parser.parse_args(["--data-dir", str(tmp_path / "nowhere")])
    assert "is not a folder" in capsys.readouterr().err
