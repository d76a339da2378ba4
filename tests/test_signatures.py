"""Every public estimator takes the parameters that it took in the second edition."""

import inspect
import json
from importlib import import_module
from pathlib import Path

from sklearn.base import BaseEstimator

HERE = Path(__file__).parent
PLACES = json.loads((HERE / "public_names.json").read_text())
SIGNATURES = json.loads((HERE / "signatures.json").read_text())


def estimators():
    """Every public estimator by name."""
    found = {}
    for place, names in PLACES.items():
        objects = {name: getattr(import_module(place), name) for name in names}
        found |= {n: o for n, o in objects.items() if _is_estimator(o)}
    return found


def _is_estimator(obj):
    return inspect.isclass(obj) and issubclass(obj, BaseEstimator)


def written(kind):
    """Parameters that may be positional, in their order, and the others, as text."""
    taken = inspect.signature(kind).parameters.values()
    plain = [[one.name, _default(one)] for one in taken if one.kind is one.POSITIONAL_OR_KEYWORD]
    named = {one.name: _default(one) for one in taken if one.kind is one.KEYWORD_ONLY}
    assert len(taken) == len(plain) + len(named)
    return {"positional": plain, "keyword_only": named}


def _default(parameter):
    return None if parameter.default is parameter.empty else repr(parameter.default)


def test_no_estimator_is_missing():
    assert sorted(estimators()) == sorted(SIGNATURES)


def test_names_kinds_and_defaults_of_parameters_are_those_of_the_second_edition():
    kinds = estimators()
    assert {name: written(kinds[name]) for name in SIGNATURES} == SIGNATURES
    # What scikit-learn reads: of the constructor itself, not of a metaclass or `__signature__`.
    read = {name: inspect.signature(kind.__init__).parameters for name, kind in kinds.items()}
    shown = {name: inspect.signature(kind).parameters for name, kind in kinds.items()}
    assert {name: [*taken][1:] for name, taken in read.items()} == {
        name: [*taken] for name, taken in shown.items()
    }
