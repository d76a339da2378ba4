"""Every public name stays importable from where it was in the second edition."""

import json
from importlib import import_module
from pathlib import Path

PLACES = json.loads((Path(__file__).parent / "public_names.json").read_text())


def test_public_names_stay_where_they_were():
    modules = {place: import_module(place) for place in PLACES}
    named = [(place, name) for place, names in PLACES.items() for name in names]
    gone = [(place, name) for place, name in named if not hasattr(modules[place], name)]
    assert gone == []
