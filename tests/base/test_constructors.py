"""Fields are written once, and what a class does not describe is described for it."""

import inspect
from dataclasses import KW_ONLY
from typing import ClassVar, get_type_hints

import pytest
from sklearn.base import BaseEstimator, clone

from skdpnoise._utils import shared_texts
from skdpnoise.base import constructors
from skdpnoise.base.constructors import constructor_of_fields

TEXTS = {
    "Shared": {
        "epsilon": "epsilon : float, default=1.0\n    Smaller is more private.",
        "noise": 'noise : str, default="auto"\n    Its law.',
    },
    "Nearer": {"noise": 'noise : str, default="auto"\n    Of counts.'},
}


@pytest.fixture(autouse=True)
def texts(monkeypatch):
    monkeypatch.setattr(constructors, "TEXTS", TEXTS)


def shared():
    @constructor_of_fields
    class Shared(BaseEstimator):
        epsilon: float = 1.0
        _: KW_ONLY
        noise: str = "auto"
        kind: ClassVar[str] = "model"

    return Shared


def described(kind):
    return inspect.getdoc(kind).partition("----------\n")[2]


def test_fields_are_inherited_with_their_texts_in_the_order_of_the_signature():
    @constructor_of_fields
    class Model(shared()):
        """Fit.

        Parameters
        ----------
        n_passes : int, default=3
            Passes.

            - More cost more.
        %(parameters)s

        Attributes
        ----------
        coef_ : float
            Slope.
        """

        _: KW_ONLY
        n_passes: int = 3

    assert str(inspect.signature(Model)) == (
        "(epsilon: float = 1.0, *, noise: str = 'auto', n_passes: int = 3) -> None"
    )
    assert described(Model) == (
        "epsilon : float, default=1.0\n    Smaller is more private.\n"
        'noise : str, default="auto"\n    Its law.\n'
        "n_passes : int, default=3\n    Passes.\n\n    - More cost more.\n\n"
        "Attributes\n----------\ncoef_ : float\n    Slope."
    )
    model = clone(Model(2.0, n_passes=4))
    assert (model.get_params(), repr(model)) == (
        {"epsilon": 2.0, "n_passes": 4, "noise": "auto"},
        "Model(epsilon=2.0, n_passes=4)",
    )


def test_a_class_may_continue_an_inherited_text_and_the_nearest_one_is_taken():
    @constructor_of_fields
    class Nearer(shared()):
        pass

    @constructor_of_fields
    class Model(Nearer):
        """Fit.

        Parameters
        ----------
        %(parameters)s
        %(noise)s
            Normal noise only.
        """

    assert described(Model) == (
        "epsilon : float, default=1.0\n    Smaller is more private.\n"
        'noise : str, default="auto"\n    Of counts.\n    Normal noise only.'
    )


@pytest.mark.parametrize("mark", ["%(parameters)s", "%(parameters)s\n%(alpha)s"])
def test_a_parameter_that_nobody_describes_is_an_error(mark):
    class Model(shared()):
        alpha: float = 0.0

    Model.__doc__ = f"Fit.\n\nParameters\n----------\n{mark}"
    with pytest.raises(KeyError, match="alpha"):
        constructor_of_fields(Model)


def test_constraints_are_inherited_for_the_parameters_that_there_are():
    class Unmarked(shared()):
        _parameter_constraints: ClassVar = {"epsilon": [float], "depth": [int], "kind": [str]}

    @constructor_of_fields
    class Model(Unmarked):
        depth: int = 1
        _parameter_constraints: ClassVar = {"epsilon": [int]}

    assert Model._parameter_constraints == {"epsilon": [int], "depth": [int]}
    assert Unmarked._parameter_constraints["epsilon"] == [float]


def test_a_class_without_the_mark_describes_itself_and_annotations_are_read_where_they_stand():
    text = "Fit.\n\n    Parameters\n    ----------\n    x : int\n        X.\n    "
    names = {"__module__": shared_texts.__name__, "__doc__": text}
    local = type("Model", (), {**names, "__annotations__": {"x": "Any", "y": "ClassVar[int]"}})
    with pytest.raises(NameError, match="ClassVar"):
        constructor_of_fields(local)
    model = type("Model", (), {**names, "__annotations__": {"x": "re.Pattern"}, "x": None})
    made = constructor_of_fields(model)
    assert made.__doc__ == text
    elsewhere = constructor_of_fields(type("Heir", (made,), {"__module__": __name__}))
    assert get_type_hints(elsewhere.__init__)["x"] is shared_texts.re.Pattern
