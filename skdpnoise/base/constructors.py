"""Constructors of estimators: fields that are written once, inherited, and documented once.

A class marked with :func:`constructor_of_fields` takes the fields of its bases and its own. In its
docstring ``%(parameters)s`` stands for the entries of all that it does not describe itself, and
``%(noise)s`` for that of one, which the indented lines below it continue. They are in the section
of :mod:`skdpnoise._utils.shared_texts` that is named after the class that has the field. What
parameters may be (``_parameter_constraints``) is inherited with them.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

from skdpnoise._utils.shared_texts import TEXTS, shared_texts

__all__ = ["Constraints", "constructor_of_fields"]

Constraints = dict[str, list[Any]]
"""Allowed values of each parameter, as scikit-learn has them."""

T = TypeVar("T")

_SECTION = re.compile(r"(?<=^Parameters\n-{10}\n).*?(?=\n\n\w[\w ]*\n-{3}|\Z)", re.M | re.S)
_MARK = re.compile(r"^%\((\w+)\)s\n", re.M)
_ENTRIES = re.compile(r"^(?=\S)", re.M)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def constructor_of_fields(cls: type[T]) -> type[T]:
    """Write a constructor from fields, with constraints and texts of those that are inherited."""
    # What names in annotations mean is known here alone, not where they are inherited.
    made: Any = cls  # a class of scikit-learn, perhaps, whose attributes have no types
    made.__annotations__ = inspect.get_annotations(cls, eval_str=True)
    written = cls.__doc__
    dataclass(eq=False, repr=False)(cls)
    made.__doc__ = written  # none under python -OO, where a dataclass writes its signature
    shared_texts(cls)
    allowed: Constraints = {}
    for base in reversed(cls.__mro__):
        allowed |= vars(base).get("_parameter_constraints", {})
    taken = inspect.signature(cls).parameters
    made._parameter_constraints = {name: allowed[name] for name in taken if name in allowed}
    if isinstance(cls.__doc__, str) and "%(parameters)s" in cls.__doc__:
        text = inspect.cleandoc(cls.__doc__)
        made.__doc__ = _SECTION.sub(lambda found: _completed(cls, f"{found[0]}\n"), text)
    return cls


def _completed(cls: type, own: str) -> str:
    """Return the entries of a class and all that it inherits, in the order of its parameters."""
    names = list(inspect.signature(cls).parameters)
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        texts |= {name: f"{text}\n" for name, text in TEXTS.get(base.__name__, {}).items()}
    texts["parameters"] = ""
    entries = _ENTRIES.split(_MARK.sub(lambda mark: texts[mark[1]], own))[1:]
    described = {name for entry in entries for name in _named(entry)}
    entries += [texts[name] for name in names if name not in described]
    return "".join(sorted(entries, key=lambda entry: names.index(_named(entry)[0]))).rstrip()


def _named(entry: str) -> list[str]:
    return entry.partition(" :")[0].split(", ")
