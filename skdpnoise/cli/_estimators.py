"""Estimators that are named on the command line."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

__all__ = ["load_estimator"]


def load_estimator(text: str) -> Any:
    """Import a class or function by its name, and call it."""
    module_name, colon, name = text.partition(":")
    if not (module_name and colon and name):
        raise ValueError(
            f"the estimator must be given as MODULE:FACTORY, such as "
            f"skdpnoise:DPStandardScaler. Got {text!r}."
        )
    # As `python -m` does: a module of one's own lies in the folder where one works.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    factory: Any = importlib.import_module(module_name)
    for part in name.split("."):
        if not hasattr(factory, part):
            raise ValueError(f"the module {module_name!r} has no {name!r}.")
        factory = getattr(factory, part)
    estimator = factory() if callable(factory) else factory
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ValueError(
            f"{text!r} made an object of type {type(estimator).__name__}, which is no estimator: "
            "it has no fit or no get_params."
        )
    return estimator
