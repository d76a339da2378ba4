"""The register of tuned constants: docs/develop/constants.md from the source and constants.toml."""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._report import ROOT, add_common_arguments, save_json

PACKAGE = ROOT / "skdpnoise"
KEPT = ROOT / "benchmarks" / "constants.toml"
PAGE = ROOT / "docs" / "develop" / "constants.md"

_NAME = re.compile(r"_?[A-Z][A-Z0-9_]*$")
_RULES = re.compile(r"Rules?$")  # the end of the names of records of tuned settings
_PAGE_HEAD = """\
# Constants

`python -m benchmarks constants` writes this page. It reads the values from the source, and from
`benchmarks/constants.toml` what each constant was tuned on and which command shows its effect.
"Not known" means that nobody wrote it down.

## Tuned

| file | constants and values | tuned on | command |
|---|---|---|---|
"""
_EXACT_HEAD = """
## Not tuned

These follow from arithmetic, memory or a definition.

| file or folder | constants | reason |
|---|---|---|
"""


def is_numeric(value: ast.expr) -> bool:
    """Whether an assigned value is made of numbers: no table of settings, no set of names."""
    if isinstance(value, ast.Dict | ast.DictComp | ast.SetComp | ast.ListComp | ast.Lambda):
        return False
    return any(_numbers(value))


def _numbers(node: ast.AST) -> Iterator[ast.Constant]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
            yield inner


def is_of_rules(name: ast.expr) -> bool:
    """Return whether a name is that of a record of tuned settings."""
    return _RULES.search(ast.unparse(name)) is not None


def constants(source: str) -> dict[str, str]:
    """Name and value, as written, of every numeric constant, or field of rules, of a module."""
    found: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and _RULES.search(node.name):
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and part.value and is_numeric(part.value):
                    found[f"{node.name}.{ast.unparse(part.target)}"] = _written(source, part.value)
            continue
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple):
            values = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
            pairs = list(zip(target.elts, values, strict=True))
        for one, number in pairs:
            name = ast.unparse(one)
            if _NAME.match(name) and is_numeric(number):
                found[name] = _written(source, number)
    return found


def _written(source: str, node: ast.expr) -> str:
    lines = (ast.get_source_segment(source, node) or "").splitlines()
    return " ".join(" ".join(line.partition("#")[0] for line in lines).split())


def numbers_within(source: str, function: str) -> str:
    """The numbers in the code of a function, but 0 and 1, in the order in which they stand."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            places = sorted(_numbers(node), key=lambda one: (one.lineno, one.col_offset))
            return ", ".join(_written(source, one) for one in places if one.value not in (0, 1))
    raise ValueError(f"{KEPT.name} names {function}(), which is not there.")


def values(package: Path, file: str, names: Sequence[str]) -> dict[str, str]:
    """Values of the named constants of a file, or say which name is not there."""
    source = (package / file).read_text(encoding="utf-8")
    here = constants(source)
    found = {}
    for name in names:
        if name.endswith("()"):
            found[name] = numbers_within(source, name[:-2])
        elif name in here:
            found[name] = here[name]
        elif fields := {one: here[one] for one in here if one.startswith(f"{name}.")}:
            found |= fields  # of rules
        else:
            raise ValueError(f"{KEPT.name} names {name!r} of {file}, which is not there.")
    return found


def unnamed(package: Path, kept: Mapping[str, Any]) -> list[str]:
    """Constants that are neither named nor in a room whose constants are all of one kind."""
    named = defaultdict[str, set[str]](set)
    for entry in [*kept["tuned"], *kept["exact"]]:
        named[entry["file"]].update(entry["names"])
    rooms = {room for entry in kept["rooms"] for room in entry["rooms"]}
    missing = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        if file.partition("/")[0] not in rooms:
            here = constants(path.read_text(encoding="utf-8"))
            unknown = (one for one in here if not {one, one.partition(".")[0]} & named[file])
            missing += [f"{file}: {name}" for name in unknown]
    return missing


def page(package: Path, kept: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    rows = [
        [f"`{entry['file']}`", _pairs(here), entry["on"], _code(entry["command"])]
        for entry in kept["tuned"]
        if (here := values(package, entry["file"], entry["names"]))
    ]
    exact = [
        [f"`{entry['file']}`", ", ".join(f"`{name}`" for name in here), entry["reason"]]
        for entry in kept["exact"]
        if (here := values(package, entry["file"], entry["names"]))
    ]
    exact += [
        [", ".join(f"`{room}/`" for room in entry["rooms"]), "all others", entry["reason"]]
        for entry in kept["rooms"]
    ]
    return _PAGE_HEAD + _lines(rows) + _EXACT_HEAD + _lines(exact)


def _pairs(found: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` = `{value}`" for name, value in found.items())


def _code(command: str) -> str:
    return command if command == "none" else f"`{command}`"


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |\n" for row in rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or with --check say whether it is up to date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks constants", description=__doc__)
    add_common_arguments(parser)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if outdated")
    args = parser.parse_args(argv)
    with KEPT.open("rb") as text:
        kept = tomllib.load(text)
    for constant in (missing := unnamed(PACKAGE, kept)):
        print(f"{constant} is not in {KEPT.name}")
    new = page(PACKAGE, kept)
    outdated = new != (PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
    if outdated and not args.check:
        PAGE.write_text(new, encoding="utf-8")
    print(f"{PAGE.name} {'was' if outdated else 'is'} {'outdated' if outdated else 'up to date'}")
    tuned = {
        f"{entry['file']}: {name}": value
        for entry in kept["tuned"]
        for name, value in values(PACKAGE, entry["file"], entry["names"]).items()
    }
    save_json(args.out, "constants", {"tuned": tuned})
    return int(bool(missing) or (outdated and args.check))
