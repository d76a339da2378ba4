"""How large the package is: lines of code and of docstrings, parameters, imports.

A line of code holds anything but blanks and comments; lines of docstrings count whole. What is
newer than the first edition is named in ``size.toml``, so that the first edition's features can be
compared with what they took then.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from benchmarks._report import ROOT, add_common_arguments, print_table, save_json

PACKAGE = "skdpnoise"
NEW = ROOT / "benchmarks" / "size.toml"
MOST_CODE, MOST_DOCSTRING = 14_500, 8_000  # lines, for the features of the first edition
SHORT_MODEL, MOST_OF_MODEL = "linear_model/_poisson.py", 60  # a model by the short way
MOST_PARAMETERS = 6  # of a private function outside kernels
KERNEL_MARKS = {"njit", "Compilable", "inner"}

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of lines.

    Parameters
    ----------
    code, docstring : int
    """

    code: int = 0
    docstring: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.code + other.code, self.docstring + other.docstring)

    def __sub__(self, other: Size) -> Size:
        return Size(self.code - other.code, self.docstring - other.docstring)


class SourceFile:
    """A file of the package, parsed.

    Parameters
    ----------
    path : Path
    package : Path
        The folder of the package.
    """

    def __init__(self, path: Path, package: Path) -> None:
        source = path.read_text(encoding="utf-8")
        self.path = path
        inner = path.relative_to(package.parent).with_suffix("").parts
        self.module = ".".join(inner[:-1] if inner[-1] == "__init__" else inner)
        self.name = path.relative_to(package).as_posix()
        self.tree = ast.parse(source)
        self._docstring = set(_docstring_lines(self.tree))
        self._code = set(_code_lines(source)) - self._docstring

    def size(self, definition: str | None = None) -> Size:
        """Return the size of the file, or of a definition in it, such as ``Class.method``."""
        if definition is None:
            return Size(len(self._code), len(self._docstring))
        node: ast.AST = self.tree
        for name in definition.split("."):
            node = _child(node, name, f"{self.name}:{definition}")
        assert isinstance(node, _Definition)
        first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
        lines = set(range(first, (node.end_lineno or first) + 1))
        return Size(len(lines & self._code), len(lines & self._docstring))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | _Definition) or ast.get_docstring(node) is None:
            continue
        text = node.body[0]
        yield from range(text.lineno, (text.end_lineno or text.lineno) + 1)


def _code_lines(source: str) -> Iterator[int]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            yield from range(token.start[0], token.end[0] + 1)


def _child(node: ast.AST, name: str, wanted: str) -> _Definition:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition) and child.name == name:
            return child
    raise ValueError(f"{NEW.name} names {wanted!r}, which is not there.")


def long_parameter_lists(
    files: Sequence[SourceFile], public: Set[str]
) -> Iterator[tuple[str, int]]:
    """Yield private functions outside kernels with too many parameters, and their number.

    Public are the names that a room's ``__init__`` exports, and what these classes show.
    """
    for file in files:
        yield from _within(file.tree, file.name, public)


def _within(node: ast.AST, where: str, public: Set[str]) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Definition):
            yield from _within(child, where, public)
            continue
        name = f"{where}{':' if isinstance(node, ast.Module) else '.'}{child.name}"
        shown = child.name in public or child.name.startswith("__")
        if isinstance(child, ast.ClassDef):
            names = {one.name for one in child.body if isinstance(one, ast.FunctionDef)}
            inner = {one for one in names if not one.startswith("_")} if shown else set()
            yield from _within(child, name, inner)
            continue
        given = [*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs]
        number = sum(one.arg not in ("self", "cls") for one in given)
        marks = {ast.unparse(mark).partition("(")[0] for mark in child.decorator_list}
        kernel = not marks.isdisjoint(KERNEL_MARKS)
        if number > MOST_PARAMETERS and not shown and not kernel:
            yield name, number
        yield from _within(child, name, frozenset())


def exported(files: Sequence[SourceFile]) -> frozenset[str]:
    """Return the names in ``__all__`` of the front door and of all rooms."""
    names: set[str] = set()
    for file in files:
        if file.path.name == "__init__.py":
            for node in file.tree.body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    names.update(ast.literal_eval(node.value))
    return frozenset(names)


def import_graph(files: Sequence[SourceFile]) -> dict[str, set[str]]:
    """Return which modules of the package each imports, within functions and for types too."""
    modules = {file.module for file in files}
    graph: dict[str, set[str]] = {}
    for file in files:
        targets = graph.setdefault(file.module, set())
        for source, name in _imported(file.tree):
            dotted = f"{source}.{name}" if name else source
            if dotted in modules:
                targets.add(dotted)
            elif source in modules:
                targets.add(source)
        targets.discard(file.module)
    return graph


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, "") for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and not child.level:
            yield from ((child.module or "", alias.name) for alias in child.names)
        else:
            yield from _imported(child)


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the groups of modules that import one another, in a circle of any length."""
    names = sorted(graph)
    number = {name: i for i, name in enumerate(names)}
    rows = [number[a] for a in names for b in graph[a]]
    columns = [number[b] for a in names for b in graph[a]]
    shape = (len(names), len(names))
    arrows = coo_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    _, component = connected_components(arrows, connection="strong")
    groups = [[names[i] for i in np.flatnonzero(component == k)] for k in np.unique(component)]
    return [group for group in groups if len(group) > 1]


def borrowed(files: Sequence[SourceFile]) -> list[tuple[str, str]]:
    """Return importers and underscore files of another folder that they import."""
    folder = {file.module: file.path.parent for file in files}
    graph = import_graph(files)
    return [
        (module, other)
        for module in sorted(graph)
        for other in sorted(graph[module])
        if other.rpartition(".")[2].startswith("_") and folder[module] != folder[other]
    ]


def newer(files: Sequence[SourceFile], kept: Mapping[str, Sequence[str]]) -> dict[str, Size]:
    """Return the size of every new feature: of the folders, files and definitions named.

    ``file +3`` stands for three lines of code that a new feature needs in an older file, and
    ``file +3/2`` for two lines of docstrings besides.
    """
    sizes: dict[str, Size] = {}
    seen: set[tuple[str, str]] = set()
    for feature, places in kept.items():
        total = Size()
        for name in places:
            place, _, added = name.partition(" +")
            where, _, definition = place.partition(":")
            inside = [f for f in files if f.name == where or f"/{f.name}".startswith(f"/{where}/")]
            if not inside:
                raise ValueError(f"{NEW.name} names {place!r}, which is not there.")
            if added:
                code, _, documented = added.partition("/")
                total += Size(int(code), int(documented or 0))
                continue
            for file in inside:
                if (file.name, definition) in seen or (file.name, "") in seen:
                    raise ValueError(f"{NEW.name} names {place!r} twice.")
                seen.add((file.name, definition))
                total += file.size(definition or None)
        sizes[feature] = total
    return sizes


def main(argv: Sequence[str] | None = None) -> int:
    """Print the lines of every room, what is new, and what is over the limits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks size", description=__doc__)
    add_common_arguments(parser)
    args = parser.parse_args(argv)
    folder = ROOT / PACKAGE
    files = [SourceFile(path, folder) for path in sorted(folder.rglob("*.py"))]
    rooms: dict[str, Size] = {}
    for file in files:
        room = file.name.partition("/")[0] if "/" in file.name else "(none)"
        rooms[room] = rooms.get(room, Size()) + file.size()
    with NEW.open("rb") as text:
        new = newer(files, tomllib.load(text)["new"])
    whole, added = (sum(sizes.values(), Size()) for sizes in (rooms, new))
    first = whole - added
    _print_sizes("rooms", rooms | {"all": whole})
    _print_sizes("newer than the first edition", new | {"all that is new": added})
    _print_sizes("compared", {"the first edition's features": first})
    short = sum(file.size().code for file in files if file.name == SHORT_MODEL)
    lists = sorted(long_parameter_lists(files, exported(files)), key=lambda one: -one[1])
    print_table(["function", "parameters"], lists, title=f"private, > {MOST_PARAMETERS} parameters")
    crossing, rings = borrowed(files), circles(import_graph(files))
    print_table(["importer", "file"], crossing, title="underscore files of other folders")
    print_table(["modules"], [[", ".join(ring)] for ring in rings], title="circular imports")
    bars = {
        f"code of the first edition's features, <= {MOST_CODE:,}": (first.code, MOST_CODE),
        f"docstrings of these, <= {MOST_DOCSTRING:,}": (first.docstring, MOST_DOCSTRING),
        f"code of {SHORT_MODEL}, <= {MOST_OF_MODEL}": (short, MOST_OF_MODEL),
        f"private functions of more than {MOST_PARAMETERS} parameters": (len(lists), 0),
        "underscore files imported from other folders": (len(crossing), 0),
        "circular imports": (len(rings), 0),
    }
    rows = [[name, found, "yes" if found <= most else "NO"] for name, (found, most) in bars.items()]
    print_table(["bar", "found", "reached"], rows)
    save_json(
        args.out,
        "size",
        {
            "rooms": {name: asdict(size) for name, size in rooms.items()},
            "new": {name: asdict(size) for name, size in new.items()},
            "first_edition": asdict(first),
            "bars": {name: found for name, (found, _) in bars.items()},
        },
    )
    return 0


def _print_sizes(title: str, sizes: Mapping[str, Size]) -> None:
    rows = [[name, size.code, size.docstring] for name, size in sizes.items()]
    print_table(["", "code", "docstrings"], rows, title=title)
