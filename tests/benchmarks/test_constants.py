"""The register of constants: complete, up to date, and read from the source."""

import tomllib

import pytest

from benchmarks import __main__ as command
from benchmarks import constants
from benchmarks.constants import KEPT, PACKAGE, PAGE, numbers_within, page, unnamed, values

SOURCE = """
LIMIT: float = 3.0
_NEAR, _FAR = 0.5, -2.0**10
_LOW, _HIGH = read(4)
NAMES = {"a": 1}
WORD = "text"
lower = 7

class NearRules:
    near: float = 0.25  # in scales

def share(level):
    return 0.4 * max(1, level) ** 0.75
"""


@pytest.fixture
def kept():
    with KEPT.open("rb") as text:
        return tomllib.load(text)


@pytest.mark.slow
def test_every_numeric_constant_is_named_or_in_a_room_of_one_kind(kept):
    assert unnamed(PACKAGE, kept) == []


@pytest.mark.slow
def test_the_page_is_up_to_date(kept):
    assert PAGE.read_text(encoding="utf-8") == page(PACKAGE, kept)


@pytest.mark.slow
def test_the_page_states_every_tuned_constant_with_its_value(kept):
    text = PAGE.read_text(encoding="utf-8")
    for entry in kept["tuned"]:
        for name, value in values(PACKAGE, entry["file"], entry["names"]).items():
            assert f"`{name}` = `{value.replace('|', '∣')}`" in text


def test_rooms_with_tuned_models_name_every_constant_by_itself(kept):
    rooms = {room for entry in kept["rooms"] for room in entry["rooms"]}
    models = {"linear_model", "decomposition", "queries", "preprocessing"}
    assert rooms.isdisjoint(models | {"model_selection", "metrics"})


def test_commands_are_benchmarks_that_exist(kept):
    known = {f"python -m benchmarks {name}" for name in command.discover()}
    assert {entry["command"] for entry in kept["tuned"]} <= known | {"none"}


def test_values_are_read_as_written():
    found = {"LIMIT": "3.0", "_NEAR": "0.5", "_FAR": "-2.0**10", "_LOW": "read(4)"}
    found |= {"_HIGH": "read(4)", "NearRules.near": "0.25"}
    assert constants.constants(SOURCE) == found
    assert numbers_within(SOURCE, "share") == "0.4, 0.75"


def test_a_name_that_is_not_there_and_a_constant_without_a_name_are_seen(tmp_path):
    folder = tmp_path / "room"
    folder.mkdir()
    (folder / "file.py").write_text(SOURCE, encoding="utf-8")
    with pytest.raises(ValueError, match="_GONE"):
        values(tmp_path, "room/file.py", ["_GONE"])
    with pytest.raises(ValueError, match="gone"):
        values(tmp_path, "room/file.py", ["gone()"])
    entry = {"file": "room/file.py", "names": ["LIMIT", "_NEAR", "_FAR", "_LOW"]}
    kept = {"tuned": [entry], "exact": [], "rooms": []}
    assert unnamed(tmp_path, kept) == ["room/file.py: _HIGH", "room/file.py: NearRules.near"]
    entry["names"].append("NearRules")
    assert unnamed(tmp_path, kept) == ["room/file.py: _HIGH"]
    assert values(tmp_path, "room/file.py", ["NearRules"]) == {"NearRules.near": "0.25"}
    assert unnamed(tmp_path, kept | {"rooms": [{"rooms": ["room"]}]}) == []
