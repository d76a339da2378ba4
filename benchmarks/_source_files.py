"""Files of the package as syntax trees: their lines, what they define, and what they import."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

PACKAGE = "skdpnoise"
MOST_PARAMETERS = 6  # of a private function outside kernels
KERNEL_MARKS = {"njit", "Compilable", "inner"}

_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of lines; a line of code holds anything but blanks and comments.

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
        self._source = path.read_text(encoding="utf-8")
        inner = path.relative_to(package.parent).with_suffix("").parts
        self.path, self.tree = path, ast.parse(self._source)
        self.module = ".".join(inner[:-1] if inner[-1] == "__init__" else inner)
        self.name = path.relative_to(package).as_posix()
        self.folder = self.name.rpartition("/")[0].partition("/")[0]  # of the package

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, str]]:
        """All pieces of code, each with the name of the definition that it stands in."""
        return list(_nodes(self.tree, ""))

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Functions and classes by their names, such as ``Class.method``."""
        parts = ((one, where) for one, where in self.nodes if isinstance(one, Definition))
        return {f"{where}.{one.name}".removeprefix("."): one for one, where in parts}

    @cached_property
    def _lines(self) -> tuple[set[int], set[int]]:
        documented = set(_docstring_lines(self.tree))
        return set(_code_lines(self._source)) - documented, documented

    def size(self, *definitions: str) -> Size:
        """Return the size of the file, or of some definitions in it, one within another once."""
        if not definitions:
            return Size(*map(len, self._lines))
        lines: set[int] = set()
        for name in definitions:
            node = self.definitions[name]
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            lines.update(range(first, (node.end_lineno or first) + 1))
        return Size(*(len(lines & kind) for kind in self._lines))


def source_files(root: Path) -> list[SourceFile]:
    """Return the files of the package of a checkout."""
    package = root / PACKAGE
    return [SourceFile(path, package) for path in sorted(package.rglob("*.py"))]


def _nodes(node: ast.AST, where: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        yield child, where
        inner = f"{where}.{child.name}" if isinstance(child, Definition) else where
        yield from _nodes(child, inner.removeprefix("."))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | Definition) or ast.get_docstring(node) is None:
            continue
        text = node.body[0]
        yield from range(text.lineno, (text.end_lineno or text.lineno) + 1)


def _code_lines(source: str) -> Iterator[int]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            yield from range(token.start[0], token.end[0] + 1)


def exported(files: Sequence[SourceFile]) -> frozenset[str]:
    """Return the names in ``__all__`` of the front door and of all rooms."""
    names: set[str] = set()
    for file in files:
        if file.path.name == "__init__.py":
            for node in file.tree.body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    names.update(ast.literal_eval(node.value))
    return frozenset(names)


def parameters(node: Function) -> list[str]:
    """Return the names of what a function takes, but for itself."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [one.arg for one in given if one.arg not in ("self", "cls")]


def private_functions(files: Sequence[SourceFile]) -> Iterator[tuple[SourceFile, str, Function]]:
    """Yield the functions that no room exports, and that no exported class shows."""
    public = exported(files)
    for file in files:
        for name, node in file.definitions.items():
            *above, last = name.split(".")
            shown = last in public if not above else above[-1] in public and last[0] != "_"
            if isinstance(node, Function) and not shown and not last.startswith("__"):
                yield file, name, node


def is_kernel(node: Function) -> bool:
    """Return whether a function is compiled."""
    marks = {ast.unparse(mark).partition("(")[0] for mark in node.decorator_list}
    return not marks.isdisjoint(KERNEL_MARKS)


def long_parameter_lists(files: Sequence[SourceFile]) -> Iterator[tuple[str, int]]:
    """Yield private functions outside kernels with too many parameters, and their number."""
    for file, name, node in private_functions(files):
        number = len(parameters(node))
        if number > MOST_PARAMETERS and not is_kernel(node):
            yield f"{file.name}:{name}", number


def import_graph(files: Sequence[SourceFile], *, lazy: bool = False) -> dict[str, set[str]]:
    """Return which modules of the package each imports, within functions and for types too.

    Where asked for, so do names of modules that are given to ``import_module`` or that are a text
    of their own, as in tables of lazy imports.
    """
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
        targets.update(_by_text(file, modules) if lazy else ())
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


def _by_text(file: SourceFile, modules: Set[str]) -> Iterator[str]:
    """Yield the modules that texts name; where a part is computed, those that other texts name."""
    folder = file.module if file.path.name == "__init__.py" else file.module.rpartition(".")[0]
    known = {"__name__": file.module, "__package__": folder}
    values = (one.value for one, _ in file.nodes if isinstance(one, ast.Constant))
    texts = {value for value in values if isinstance(value, str)}
    yield from texts & modules
    for node, _ in file.nodes:
        if isinstance(node, ast.Call) and _IMPORTS.search(ast.unparse(node.func)) and node.args:
            parts = getattr(node.args[0], "values", [node.args[0]])
            pattern = "".join(_pattern(part, known) for part in parts)
            pattern = re.escape(folder) + pattern if pattern.startswith(r"\.") else pattern
            found = [one for one in map(re.compile(pattern).fullmatch, modules) if one]
            named = [one for one in found if texts.issuperset(one.groups())]
            if pattern != _ANY:  # a name of which nothing is known may be of any module
                yield from (one.string for one in named or found)


_IMPORTS = re.compile(r"\b(import_module|__import__)$")
_ANY = r"([\w.]+)"


def _pattern(part: ast.expr, known: Mapping[str, str]) -> str:
    if isinstance(part, ast.Constant):
        return re.escape(str(part.value))
    name = ast.unparse(part.value if isinstance(part, ast.FormattedValue) else part)
    return re.escape(known[name]) if name in known else _ANY


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the groups of modules that import one another, in a circle of any length."""
    names = sorted(graph)
    number = {name: i for i, name in enumerate(names)}
    arrows = [(number[a], number[b]) for a in names for b in graph[a] if b in number]
    shape = (len(names), len(names))
    one, other = np.array(arrows, dtype=np.intp).reshape(-1, 2).T
    matrix = coo_array((np.ones(len(arrows)), (one, other)), shape=shape)
    _, component = connected_components(matrix, connection="strong")
    groups = [[names[i] for i in np.flatnonzero(component == k)] for k in np.unique(component)]
    return [group for group in groups if len(group) > 1]


def borrowed(files: Sequence[SourceFile]) -> list[tuple[str, str]]:
    """Return importers and underscore files that lie neither beside nor above them."""
    folder = {file.module: file.path.parent for file in files}
    graph = import_graph(files)
    return [
        (module, other)
        for module in sorted(graph)
        for other in sorted(graph[module])
        if other.rpartition(".")[2].startswith("_")
        and not folder[module].is_relative_to(folder[other])
    ]
