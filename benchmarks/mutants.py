"""Break the code in kept ways, one at a time, and print the faults that no test notices.

Each mutant in ``mutants.toml`` replaces one piece of the source by another that weakens a
guarantee. It is applied to a copy, and the tests that ought to notice run there: first the quick
cases, then, if none of them noticed, the slow ones. A test notices by failing. Where tests ran too
long, could not be collected, or failed since the mutant cannot run at all, none noticed. Mutants
are kept by hand, since what matters here is the direction of an error: tools that make all mutants
make thousands that change no guarantee.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from typing import Any
from xml.etree import ElementTree

from benchmarks._compiled import compiled_sources
from benchmarks._report import ROOT, add_common_arguments, print_table, save_json

KEPT = Path(__file__).with_name("mutants.toml")
_COPIED = ("skdpnoise", "tests", "benchmarks", "docs", "conftest.py", "README.md", "pyproject.toml")
_LONGEST = 600.0  # seconds
_PARTS = ("not slow", "slow")
_PASSED = (0, 5)  # exit status of pytest; 5: no test of this part
_UNRUN = re.compile(  # messages of tests that fail since a mutant cannot run, or runs too long
    r"""(failed on \w+ with ")?(\w+\.)*"""
    r"(ImportError|ModuleNotFoundError|NameError|UnboundLocalError|TimeoutExpired)\b"
)
_CLOCK = count(1_000_000_000)  # no two versions of a file may look alike to a cache


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, and where it must be noticed."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    lines: tuple[int, int] = (1, sys.maxsize)  # first and last of the symbol

    def mutated(self, source: str) -> str:
        """Return the source with the fault, or say that the list is out of date."""
        lines = source.splitlines(keepends=True)
        first, last = self.lines
        parts = ["".join(lines[: first - 1]), "".join(lines[first - 1 : last])]
        found = parts[1].count(self.before)
        if found != 1:
            raise ValueError(
                f"mutant {self.name!r}: its piece of {self.file} occurs {found} times, not once. "
                "Bring mutants.toml up to date."
            )
        text = parts[0] + parts[1].replace(self.before, self.after) + "".join(lines[last:])
        ast.parse(text)
        return text


Places = Mapping[str, list[tuple[str, tuple[int, int]]]]
"""Files, and lines in them, by the names of what is defined there, with and without the file's."""


def places(root: Path = ROOT) -> Places:
    """Return where the functions, classes and constants of the package are."""
    found = defaultdict(list)
    for path, text in _sources(root):
        file = path.relative_to(root).as_posix()
        for name, lines in _defined(ast.parse(text), ""):
            found[name].append((file, lines))
            found[f"{path.stem}:{name}"].append((file, lines))
    return found


def _defined(node: ast.AST, prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield what a module defines, as deep as it goes, with its first and its last line."""
    for part in ast.iter_child_nodes(node):
        last = getattr(part, "end_lineno", None) or 0
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            first = min([part.lineno, *(one.lineno for one in part.decorator_list)])
            yield f"{prefix}{part.name}", (first, last)
            yield from _defined(part, f"{prefix}{part.name}.")
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            for one in (name for target in targets for name in ast.walk(target)):
                if isinstance(one, ast.Name):
                    yield f"{prefix}{one.id}", (part.lineno, last)
        elif isinstance(part, ast.stmt):
            yield from _defined(part, prefix)


def kept_mutants(path: Path = KEPT, root: Path = ROOT) -> list[Mutant]:
    """Return the kept list: each mutant changes a symbol of the package, and names its tests."""
    with path.open("rb") as file:
        groups = tomllib.load(file)["group"]
    known = places(root)
    return [
        _found(known, root, tests=tuple(one.pop("tests")), **one)
        for group in groups
        for one in ({"tests": group.get("tests", []), **mutant} for mutant in group["mutant"])
    ]


def _found(
    known: Places, root: Path, *, name: str, symbol: str, tests: tuple[str, ...], **texts: str
) -> Mutant:
    """Return a mutant in the only definition of its symbol that holds its piece."""
    holding = [
        (file, lines)
        for file, lines in known.get(symbol, [])
        if texts["before"] in _lines(root / file, lines)
    ]
    if len(holding) != 1:
        raise ValueError(
            f"mutant {name!r}: {len(holding)} definitions of {symbol!r} hold its piece, not one. "
            "Bring mutants.toml up to date; where several have the name, write 'file:name'."
        )
    return Mutant(name, holding[0][0], texts["before"], texts["after"], tests, holding[0][1])


@cache
def _text(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def _lines(path: Path, lines: tuple[int, int]) -> str:
    return "".join(_text(path)[lines[0] - 1 : lines[1]])


def touched(mutants: list[Mutant], files: Sequence[str]) -> list[Mutant]:
    """Return the mutants of these files or folders, then those that their tests are to notice."""

    def lies_in(name: str) -> bool:
        path = PurePosixPath(name.partition("::")[0])
        given = [PurePosixPath(file) for file in files]
        return any(path.is_relative_to(one) or one.is_relative_to(path) for one in given)

    own = [mutant for mutant in mutants if lies_in(mutant.file)]
    return own + [m for m in mutants if m not in own and any(map(lies_in, m.tests))]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the mutants; the exit status is 1 if any survives."""
    args = _parser().parse_args(argv)
    mutants = [m for m in kept_mutants() if args.only in m.name or args.only in m.file]
    if args.files is not None:
        mutants = touched(mutants, args.files)
    if args.quick:
        mutants = mutants[:2]
    known = {} if args.fresh else _earlier(args.out)
    keys = {mutant: _key(mutant) for mutant in mutants}  # as the files are when they are copied
    left = [mutant for mutant in mutants if keys[mutant] not in known]
    whys = defaultdict(list)
    print(f"{len(mutants)} mutants, {len(mutants) - len(left)} known from an earlier run")
    with tempfile.TemporaryDirectory() as folder:
        copies = _copies(Path(folder), args.workers)
        bench = Bench(copies, args.workers, time.monotonic() + 60.0 * args.minutes)
        for part in _PARTS:
            for mutant, noticed in bench.results(left, part):
                verdict = "noticed" if noticed["noticed"] else f"survived {part!r}"
                print(f"{verdict:9} {noticed['seconds']:5.0f} s  {mutant.name}", flush=True)
                whys[mutant].append(f"{part}: {noticed['why']}")
                if noticed["noticed"] or part == _PARTS[-1]:
                    noticed["why"] = "" if noticed["noticed"] else "; ".join(whys[mutant])
                    known[keys[mutant]] = {"name": mutant.name, "file": mutant.file, **noticed}
                    _save(args.out, known)
            left = [mutant for mutant in left if keys[mutant] not in known]
    rows = [known[keys[mutant]] for mutant in mutants if keys[mutant] in known]
    survivors = [row for row in rows if not row["noticed"]]
    save_json(args.out, "mutants", {"mutants": rows})
    if survivors:
        print_table(
            ["survivor", "file", "why"],
            [[row["name"], row["file"], row["why"]] for row in survivors],
            title="SURVIVED",
        )
    if len(rows) < len(mutants):
        print(f"no time for {len(mutants) - len(rows)} more: {args.minutes:g} minutes are over")
    print(f"{len(rows)} mutants, survivors: {len(survivors) or 'none'}")
    return 1 if survivors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks mutants",
        description="Apply each kept mutant to a copy, run its tests, and print the survivors.",
    )
    add_common_arguments(parser)
    parser.add_argument("--only", default="", help="mutants whose name or file contains this")
    parser.add_argument(
        "--files",
        nargs="*",
        metavar="PATH",
        help="mutants of these files or folders, and those that tests in these are to notice",
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no mutant after so many minutes"
    )
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time (default: 2)")
    parser.add_argument(
        "--fresh", action="store_true", help="forget what an interrupted run of these files found"
    )
    return parser


def _copies(folder: Path, number: int) -> SimpleQueue[Path]:
    """Return copies of the checkout, each with caches of its own."""
    copies: SimpleQueue[Path] = SimpleQueue()
    ignore = shutil.ignore_patterns("__pycache__", "results", "*.png")
    for k in range(number):
        copy = folder / f"copy-{k}"
        copy.mkdir()
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=ignore)
            else:
                shutil.copy2(source, copy / name)
        copies.put(copy)
    return copies


@dataclass(frozen=True, slots=True)
class Bench:
    """Copies of the checkout that are worked on at the same time, and when to begin no more."""

    copies: SimpleQueue[Path]
    workers: int
    until: float
    passed: set[tuple[str, str]] = field(default_factory=set)  # parts of tests, unmutated

    def results(self, mutants: list[Mutant], part: str) -> Iterator[tuple[Mutant, dict[str, Any]]]:
        """Yield each mutant with what its tests said, while there is time."""

        def run(mutant: Mutant) -> tuple[Mutant, dict[str, Any]] | None:
            if time.monotonic() > self.until:
                return None
            copy = self.copies.get()
            try:
                self._check_unmutated(mutant.tests, part, copy)
                return mutant, _noticed(mutant, part, copy)
            finally:
                self.copies.put(copy)

        with ThreadPoolExecutor(self.workers) as pool:
            yield from (result for result in pool.map(run, mutants) if result is not None)

    def _check_unmutated(self, tests: Sequence[str], part: str, copy: Path) -> None:
        """Refuse to go on where a test fails anyway: every mutant would seem to be noticed."""
        for test in tests:
            if (test, part) in self.passed:
                continue
            done = _pytest(copy, [test], part, copy / ".numba")
            if done.returncode not in _PASSED:
                output = done.stdout[-3000:] + done.stderr[-1000:]
                sys.exit(f"{test} fails without any mutant:\n{output}")
            self.passed.add((test, part))


def _noticed(mutant: Mutant, part: str, copy: Path) -> dict[str, Any]:
    """Apply a mutant to a copy, run its tests, and take it back."""
    path, report, start = copy / mutant.file, copy / ".report.xml", time.monotonic()
    source = path.read_text(encoding="utf-8")
    _write(path, mutant.mutated(source))
    cache = copy / (f".numba-{next(_CLOCK)}" if is_compiled(mutant.file, copy) else ".numba")
    report.unlink(missing_ok=True)
    try:
        _pytest(copy, list(mutant.tests), part, cache)
        why = unnoticed(report)
    except subprocess.TimeoutExpired:
        why = f"its tests ran for more than {_LONGEST:g} seconds"
    finally:
        _write(path, source)
    return {"noticed": not why, "why": why, "seconds": round(time.monotonic() - start, 1)}


def unnoticed(report: Path) -> str:
    """Return why no test of a run noticed the mutant; nothing if one failed because of it."""
    if not report.exists():
        return "pytest could not run its tests"
    cases = list(ElementTree.parse(report).iter("testcase"))
    if not cases:
        return "no test ran"
    for case in cases:
        if case.find("error[@message='collection failure']") is not None:
            return "its tests could not be collected"
        for failed in (*case.iter("failure"), *case.iter("error")):
            said = failed.get("message", "")
            return said if _UNRUN.match(said) else ""
    return "no test failed"


def is_compiled(file: str, root: Path) -> bool:
    """Return whether compiled code may hold something of this file.

    A cache of compiled code does not know when a function or constant that it took from another
    file has changed: neither would the mutant run, nor would it be gone when the next one runs.
    """
    return root / file in compiled_sources(root)


def _sources(root: Path) -> list[tuple[Path, str]]:
    paths = sorted((root / "skdpnoise").rglob("*.py"))
    return [(path, path.read_text(encoding="utf-8")) for path in paths]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    os.utime(path, (moment := next(_CLOCK), moment))


def _pytest(
    copy: Path, tests: list[str], part: str, cache: Path
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(cache)}
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", part, "--junitxml=.report.xml"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    return subprocess.run(
        command,
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_LONGEST,
    )


def _key(mutant: Mutant) -> str:
    """Name what the result of a mutant depends on: itself, its file, its tests and this file."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + repr(mutant).encode())
    for name in (mutant.file, *(test.partition("::")[0] for test in mutant.tests)):
        path = ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _earlier(out: Path) -> dict[str, dict[str, Any]]:
    path = out / "mutants-progress.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _save(out: Path, known: dict[str, dict[str, Any]]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "mutants-progress.json").write_text(json.dumps(known))
