"""Size and shape of the package beside their bars, before and now.

Lines are counted for the features of the first measured commit: what is newer is named in
``house.toml`` and taken away. ``--before`` measures that commit anew, in a folder of its own.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _house_figures as figures
from benchmarks import constants
from benchmarks._report import ROOT, add_common_arguments, print_table, save_json
from benchmarks._source_files import PACKAGE, Size, SourceFile

BEFORE = "8dfeb1d"
KEPT = ROOT / "benchmarks" / "house_before.json"
_TEXTS = {".toml", ".json", ".txt", ".html", ".css", ".js", ".svg", ".csv", ".md", ".pyi"}
# What is counted, and the most of it; None where there is no bar.
BARS: dict[str, int | None] = {
    "lines of code, for the features of before": 29_500,
    "lines of docstrings, for these": 13_300,
    "lines of other files of the package": None,
    "logistic fit: functions that get rows": 45,
    "logistic fit: files": 10,
    "logistic fit: folders": 4,
    "logistic fit: functions that plan": 0,
    "logistic fit: returns to a folder": None,
    "logistic fit: names of rows": None,
    "pipeline fit: functions that get rows": 70,
    "pipeline fit: files": 18,
    "pipeline fit: folders": 6,
    "pipeline fit: functions that plan": 0,
    "pipeline fit: returns to a folder": None,
    "pipeline fit: names of rows": None,
    "branches on storage": 6,
    "branches on storage outside data/": 0,
    "functions where integers meet noise outside Session": 0,
    "functions that charge outside Session": 0,
    "context variables": 1,
    "other state of threads and modules": 0,
    "class names used twice": 0,
    "calls with a star and more than six arguments": 0,
    "import circles": 0,
    "parameters of constructors": None,
    "of these, repeats": None,
    "tuned entries": 150,
    "tuned numbers": 200,
    "docstrings that begin with What or Whether": 0,
    "annotations with Any": None,
    "collected cases": 12_000,
}


def newer(files: Sequence[SourceFile], kept: Mapping[str, Sequence[str]]) -> dict[str, Size]:
    """Return the size of every new feature: of its functions and classes that are in one file."""
    sizes = {}
    for feature, names in kept.items():
        inside = defaultdict(list)
        for name in names:
            if (file := _holder(files, name)) is not None:
                inside[file].append(name.rpartition(":")[2])
        sizes[feature] = sum((file.size(*inner) for file, inner in inside.items()), Size())
    return sizes


def gone(files: Sequence[SourceFile], kept: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names of new features that are in no file, or in several."""
    return [name for names in kept.values() for name in names if _holder(files, name) is None]


def _holder(files: Sequence[SourceFile], name: str) -> SourceFile | None:
    stem, _, symbol = name.rpartition(":")
    found = [one for one in files if symbol in one.definitions and stem in ("", one.path.stem)]
    return found[0] if len(found) == 1 else None


def tuned(root: Path) -> list[tuple[str, int]]:
    """Return how many numbers each tuned constant, field of rules, or function is made of."""
    with (root / "benchmarks" / "constants.toml").open("rb") as text:
        entries = tomllib.load(text)["tuned"]
    return [
        (f"{entry['file']}: {name}{field}", number)
        for entry in entries
        for name, value in constants.values(root / PACKAGE, entry["file"], entry["names"]).items()
        for field, number in _parts(value)
    ]


def _parts(value: str) -> list[tuple[str, int]]:
    """Return the numbers of each field of a record of rules, or of what is no such record."""
    node = ast.parse(f"({value},)" if value else "()", mode="eval").body
    (first, *others) = getattr(node, "elts", []) or [node]
    if others or not isinstance(first, ast.Call) or not constants.is_of_rules(first.func):
        return [("", _numbers(node))]
    fields = [("", _numbers(one)) for one in first.args]
    return fields + [(f".{one.arg}", _numbers(one.value)) for one in first.keywords]


def _numbers(node: ast.AST) -> int:
    """Return how many numbers an expression is made of, arithmetic with them being one."""
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Constant):
        parts = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
        return int(any(type(one) in (int, float) for one in parts))
    return sum(map(_numbers, ast.iter_child_nodes(node)))


def rows(root: Path) -> dict[str, Any]:
    """Return what the tracer finds in the package of a checkout."""
    return json.loads(_run(root, "-P", str(ROOT / "benchmarks" / "_rows_traced.py")))


def collected(root: Path) -> int:
    """Return how many cases pytest collects in a checkout."""
    answer = _run(root, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    return int(re.findall(r"(\d+) tests collected", answer)[-1])


def _run(root: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed in {root}:\n{done.stdout}{done.stderr}")
    return done.stdout


def measured(root: Path, *, collect: bool = False) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return all figures of a checkout, and the places of those that have some."""
    files = figures.files_of(root)
    whole = sum((file.size() for file in files), Size())
    old = whole - sum(newer(files, figures.KEPT["new"]).values(), Size())
    places: dict[str, list[Any]] = {
        "branches on storage": figures.storage_branches(root),
        "functions where integers meet noise outside Session": figures.noise_sites(root),
        "functions that charge outside Session": figures.charge_sites(root),
        "context variables": figures.context_variables(root),
        "other state of threads and modules": figures.other_state(root),
        "class names used twice": figures.class_names_used_twice(root),
        "calls with a star and more than six arguments": figures.starred_calls(root),
        "import circles": figures.import_circles(root),
        "parameters of constructors": figures.constructor_fields(root),
        "of these, repeats": figures.repeated_fields(root),
        "docstrings that begin with What or Whether": figures.questions(root),
        "annotations with Any": figures.untyped(root),
    }
    folders = tuple(f"{folder}/" for folder in figures.KEPT["storage"]["folders"])
    branches = places["branches on storage"]
    outside = [place for place in branches if not place.file.startswith(folders)]
    found = {name: len(some) for name, some in places.items()}
    for name in places:
        if name.startswith("functions"):
            found[name] = len({(place.file, place.symbol) for place in places[name]})
    found["class names used twice"] = len({p.what for p in places["class names used twice"]})
    numbers = tuned(root)
    found |= {
        "lines of code, for the features of before": old.code,
        "lines of docstrings, for these": old.docstring,
        "lines of other files of the package": _other_lines(root / PACKAGE),
        "branches on storage outside data/": len(outside),
        "tuned entries": len(numbers),
        "tuned numbers": sum(number for _, number in numbers),
    }
    for fit, one in rows(root).items():
        found |= {f"{fit} fit: {name}": number for name, number in one["figures"].items()}
        places |= {f"{fit} fit: {name}": some for name, some in one["places"].items()}
    if collect:
        found["collected cases"] = collected(root)
    return found, {name: list(map(str, some)) for name, some in places.items()}


def _other_lines(package: Path) -> int:
    paths = (path for path in package.rglob("*.*") if path.suffix in _TEXTS)
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def of_commit(commit: str, *, collect: bool = False) -> dict[str, int]:
    """Return all figures of a commit, which is unpacked into a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "files.tar"
        subprocess.run(["git", "archive", "-o", str(archive), commit], cwd=ROOT, check=True)
        root = Path(folder) / "checkout"
        with tarfile.open(archive) as packed:
            packed.extractall(root, filter="data")
        return measured(root, collect=collect)[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Print every bar with what was found before and now; the status is 1 where one is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks house", description=__doc__)
    add_common_arguments(parser)
    parser.add_argument("--verbose", action="store_true", help="print each place")
    parser.add_argument("--collect", action="store_true", help="count the cases of tests, too")
    parser.add_argument("--before", action="store_true", help=f"measure {BEFORE} anew, with cases")
    args = parser.parse_args(argv)
    if args.before:
        text = json.dumps(of_commit(BEFORE, collect=True), indent=2, sort_keys=True)
        KEPT.write_text(text + "\n", encoding="utf-8")
    before = json.loads(KEPT.read_text(encoding="utf-8"))
    found, places = measured(ROOT, collect=args.collect)
    if args.verbose:
        for name, some in places.items():
            _print_places(name, some)
    files = figures.files_of(ROOT)
    sizes = newer(files, figures.KEPT["new"])
    table = [[name, size.code, size.docstring] for name, size in sizes.items()]
    print_table(["new since then", "code", "docstrings"], table)
    _print_places("new, and in no file or in several", gone(files, figures.KEPT["new"]))
    table = [
        [name, before[name], found[name], "" if most is None else most, _verdict(found[name], most)]
        for name, most in BARS.items()
        if name in found
    ]
    print_table(["", BEFORE, "now", "bar", "reached"], table)
    save_json(args.out, "house", {"before": before, "now": found})
    return int(any(row[-1] == "NO" for row in table))


def _verdict(found: int, most: int | None) -> str:
    return "" if most is None else "yes" if found <= most else "NO"


def _print_places(title: str, places: Iterable[str]) -> None:
    print(f"{title}:", *(f"  {place}" for place in places), "", sep="\n")
