"""What plans a fit gets public facts and released numbers: rows are beyond its reach, by type."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from skdpnoise.data.groups import Groups
from skdpnoise.data.schema import Schema
from skdpnoise.data.sources import RowSource
from skdpnoise.data.table import Fold, InMemory, ScannedRows, Table
from skdpnoise.linear_model._records import LinearProblem, Rows

ROOT = Path(__file__).resolve().parents[2]
# The names of planners in each room, and how many there are at least; rooms that come next are
# added here.
ROOMS = {
    "linear_model": (
        r"_*(plan|check|split|settle|stages|choose|prefers|share|whole|made_up|asks)",
        26,
    ),
    "decomposition": (r"_*(plan|choose|share|rows_needed|noise_level|mean_level|row_level)", 7),
    "preprocessing": (r"_*(plan$|asked$|probabilities$|rest$|part$)", 12),
    "neural_network": (r"_*(plan|share|stages$|profile|chosen_noise|mechanism$)", 6),
}
CARRIERS = (Table, Fold, Rows, Groups, RowSource, ScannedRows)
# Types of these rooms are walked; those of others, such as noises, know no rows.
WALKED = (*(f"skdpnoise.{room}" for room in ROOMS), "skdpnoise.data", "skdpnoise.accounting")


def modules(room: str) -> Iterator[types.ModuleType]:
    package = importlib.import_module(f"skdpnoise.{room}")
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def planners(room: str) -> Iterator[Callable[..., Any]]:
    """Yield functions and methods of a room that plan, by their names."""
    for module in modules(room):
        for value in vars(module).values():
            if inspect.getmodule(value) is not module:
                continue
            members = vars(value).values() if inspect.isclass(value) else [value]
            for member in members:
                plain = getattr(member, "fget", None) or getattr(member, "__wrapped__", member)
                if inspect.isfunction(plain) and re.match(ROOMS[room][0], plain.__name__):
                    yield plain


def inner(kind: Any) -> Iterator[Any]:
    """Yield the types that a type is made of: its arguments, fields and subclasses."""
    origin = typing.get_origin(kind)
    if origin is np.ndarray:  # its arguments are the type of the numbers
        return
    for part in typing.get_args(kind):
        yield from (one for one in (part if isinstance(part, list) else [part]) if one is not Any)
    cls = origin if inspect.isclass(origin) else kind
    if inspect.isclass(cls) and cls.__module__.startswith((*WALKED, __name__)):
        if dataclasses.is_dataclass(cls):
            hints = typing.get_type_hints(cls)
            yield from (hints[field.name] for field in dataclasses.fields(cls))
        yield from cls.__subclasses__()


def carriers(kind: Any, seen: list[Any] | None = None) -> Iterator[str]:
    """Yield what may hold rows within a type."""
    seen = [] if seen is None else seen
    if kind in seen:
        return
    seen.append(kind)
    cls = typing.get_origin(kind) or kind
    if kind is Any or kind is object:
        yield "anything"
    elif inspect.isclass(cls) and issubclass(cls, CARRIERS):
        yield cls.__name__
    else:
        for one in inner(kind):
            yield from carriers(one, seen)


def reached(planner: Callable[..., Any]) -> list[str]:
    """Return what a planner gets that may hold rows."""
    hints = typing.get_type_hints(planner)
    names = [name for name in inspect.signature(planner).parameters if name != "self"]
    return [f"{name}: {one}" for name in names for one in carriers(hints.get(name, Any))]


@pytest.mark.parametrize("room", ROOMS)
def test_no_planner_can_reach_a_row(room):
    found = list(planners(room))
    assert len({planner.__qualname__ for planner in found}) >= ROOMS[room][1]
    reaching = {planner.__qualname__: one for planner in found if (one := reached(planner))}
    assert reaching == {}


def test_the_planners_of_linear_models_are_among_those_that_are_walked():
    names = {planner.__qualname__ for planner in planners("linear_model")}
    for name in ("split_budget", "prefers_gradient", "GradientDescent.plan"):
        assert name in names
    assert {"CoordinateDescent.check", "PrivateLinearModel._settled", "FitBudget.stages"} <= names


@dataclasses.dataclass
class Hidden:
    """Facts that hold rows after all."""

    schema: Schema
    within: list[InMemory[Any]] | None


class Innocent:
    """A class of which another one holds rows."""


@dataclasses.dataclass
class Guilty(Innocent):
    """It does."""

    rows: Rows


def plan_by_table(table: Table[Any]) -> None: ...
def plan_by_nested(facts: Hidden | None) -> None: ...
def plan_by_subclass(facts: Innocent) -> None: ...
def plan_by_anything(facts: Any) -> None: ...
def plan_by_unknown(facts) -> None: ...
def plan_by_closure(facts: Callable[[Rows], float]) -> None: ...
def plan_by_public(facts: LinearProblem, bounds: NDArray[np.float64], n: float | None) -> None: ...


@pytest.mark.parametrize(
    ("planner", "found"),
    [
        (plan_by_table, ["table: Table"]),
        (plan_by_nested, ["facts: InMemory"]),
        (plan_by_subclass, ["facts: Rows"]),
        (plan_by_anything, ["facts: anything"]),
        (plan_by_unknown, ["facts: anything"]),
        (plan_by_closure, ["facts: Rows"]),
        (plan_by_public, []),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_walk_sees_rows_wherever_they_hide(planner, found):
    assert reached(planner) == found


# A planner that looks at rows does not type-check: what each of these asks for is not there.
MUTANTS = {
    "a mean of the features": "return float(problem.schema.X.mean())",
    "a mean of the target": "return float(problem.target.y.mean())",
    "the rows of a plan": "return float(GRADIENT.plan(problem, n, budget).table.leaf.X.mean())",
    "a count": "return len(problem)",
    "nothing private": "return GRADIENT.plan(problem, n, budget).n_samples",
}
SNIPPET = """
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._records import LinearProblem
from skdpnoise.linear_model.solvers.gradient import GRADIENT


def plan_steps(problem: LinearProblem, n: float, budget: FitBudget) -> float:
    {body}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_planner_that_looks_at_rows_does_not_type_check(name, tmp_path):
    file = tmp_path / "planner.py"
    file.write_text(SNIPPET.format(body=MUTANTS[name]), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (name == "nothing private"), done.stdout
    errors = re.findall(r"\[(attr-defined|arg-type)\]", done.stdout)
    assert bool(errors) == (name != "nothing private")
