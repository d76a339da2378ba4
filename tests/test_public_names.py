"""Every public name stays importable from where it was in the second edition."""

import json
from importlib import import_module
from pathlib import Path

import pytest

PLACES = json.loads((Path(__file__).parent / "public_names.json").read_text())


@pytest.mark.parametrize("place", PLACES)
def test_public_names_stay_where_they_were(place):
    module = import_module(place)
    assert [name for name in PLACES[place] if not hasattr(module, name)] == []
