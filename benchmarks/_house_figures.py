"""The figures of the house that follow from its syntax trees: each a list of places.

Every function takes the root of a checkout, so that a contract test can ask for an empty list.
Which names stand for storage, releases and data is kept in ``house.toml``.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._source_files import (
    MOST_PARAMETERS,
    PACKAGE,
    Definition,
    Function,
    SourceFile,
    circles,
    exported,
    import_graph,
    parameters,
    private_functions,
    source_files,
)

KEPT: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("house.toml").read_text(encoding="utf-8")
)
_CHANGES = {"append", "add", "update", "setdefault", "pop", "popitem", "clear", "extend", "insert"}
_CHANGES |= {"remove", "discard", "appendleft", "popleft", "move_to_end"}


class Place(NamedTuple):
    """Where something stands in the package."""

    file: str
    line: int
    symbol: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.symbol or '(module)'}: {self.what}"


files_of = cache(source_files)


def _place(file: SourceFile, node: Any, symbol: str, what: str = "") -> Place:
    text = what or " ".join(ast.unparse(node).split())
    return Place(file.name, node.lineno, symbol, text if len(text) < 90 else f"{text[:86]} ...")


def _fits(names: Iterable[str], text: str) -> bool:
    return any(re.fullmatch(name, text) for name in names)


def _last(node: ast.AST) -> str:
    """Return the last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


# Rows: how they are kept


def storage_branches(root: Path) -> list[Place]:
    """Return where the package asks how rows are kept: by a class, a function or an attribute.

    What is asked several times in one line is one branch.
    """
    found: dict[tuple[str, int], Place] = {}
    for file in files_of(root):
        for node, symbol in file.nodes:
            for one in _questions_of_storage(node):
                found.setdefault((file.name, one.lineno), _place(file, one, symbol))
    return list(found.values())


def _questions_of_storage(node: ast.AST) -> Iterator[Any]:
    kept = KEPT["storage"]
    if isinstance(node, ast.Call) and _fits(kept["functions"], _last(node.func)):
        yield node
    asked: list[Any] = []  # where a class may be named
    if isinstance(node, ast.MatchClass):
        asked = [node.cls]
    elif isinstance(node, ast.Call) and _last(node.func) in ("isinstance", "issubclass"):
        asked = node.args[1:]
    elif isinstance(node, ast.Compare) and re.search(r"\btype\(|__class__", ast.unparse(node)):
        asked = [node]
    names = (ast.unparse(one) for part in asked for one in ast.walk(part))
    yield from asked[:1] if any(_fits(kept["classes"], name) for name in names) else ()
    tests = [getattr(node, "test", None), getattr(node, "guard", None), *getattr(node, "ifs", [])]
    for one in (one for test in tests if test is not None for one in ast.walk(test)):
        if isinstance(one, ast.Compare) and isinstance(known := one.comparators[0], ast.Constant):
            is_length = isinstance(one.left, ast.Call) and _last(one.left.func) == "len"
            names = kept["optional"] if known.value is None else kept["numbers"]
            if _fits(names, _last(one.left.args[0] if is_length else one.left)):
                yield one
        if _fits(kept["values"], _last(one) or str(getattr(one, "value", ""))):
            yield one  # by a value, or by its name in hasattr


# Releases


def noise_sites(root: Path) -> list[Place]:
    """Return where integers meet noise, or noise is drawn, outside of the session."""
    return _outside(root, "meets", KEPT["releases"]["floor"])


def charge_sites(root: Path) -> list[Place]:
    """Return where a charge is made outside of the session."""
    return _outside(root, "charges", KEPT["releases"]["floor"] + KEPT["releases"]["accounts"])


def _outside(root: Path, kind: str, free: list[str]) -> list[Place]:
    """Return where functions, or methods, of a kind are called or handed on."""
    kept = KEPT["releases"]
    return [
        _place(file, one, symbol, ast.unparse(node))
        for file in files_of(root)
        if file.folder not in free
        for node, symbol in file.nodes
        if isinstance(node, ast.Call) and kept["session"] not in symbol.split(".")
        for one in [node.func, *node.args, *(each.value for each in node.keywords)]
        if _last(one) in kept[kind]["functions"]
        or (isinstance(one, ast.Attribute) and one.attr in kept[kind]["methods"])
        if not _fits(kept["receivers"], ast.unparse(getattr(one, "value", one)))
    ]


# State


def context_variables(root: Path) -> list[Place]:
    """Return the context variables."""
    return [
        _place(file, node, symbol)
        for file in files_of(root)
        for node, symbol in file.nodes
        if isinstance(node, ast.Call) and _last(node.func) == "ContextVar"
    ]


def other_state(root: Path) -> list[Place]:
    """Return what else a thread or a module keeps, but for what ``house.toml`` gives reasons for.

    It is what belongs to a thread, what ``global`` names, what a module or a class defines and a
    function changes, and caches of functions that take what may be data: in the folder of the rows
    all that are asked for more than names and numbers, which hold no rows.
    """
    kept, files = KEPT["state"]["kept"], files_of(root)
    classes = {
        node.name
        for file in files
        for node in file.definitions.values()
        if isinstance(node, ast.ClassDef)
    }
    found = (place for file in files for place in _state(file, classes))
    return [one for one in found if not {one.symbol, re.split(r"[.[]", one.what)[0]} & set(kept)]


def _state(file: SourceFile, classes: Set[str]) -> Iterator[Place]:
    imports = [one for one, _ in file.nodes if isinstance(one, ast.ImportFrom)]
    foreign = [one for one in imports if not (one.module or "").startswith(PACKAGE)]
    classes = classes - {alias.asname or alias.name for one in foreign for alias in one.names}
    own = {
        ast.unparse(target)
        for node in file.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_changeable(node.value, classes)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    for node, symbol in file.nodes:
        changed = symbol and not symbol.endswith("__init_subclass__") and _changed(node)
        if (
            isinstance(node, ast.Global)
            or (isinstance(node, ast.Attribute) and ast.unparse(node) == "threading.local")
            or (changed and re.split(r"[.[]", changed)[0] in {"cls", *own, *classes})
        ):
            yield _place(file, node, symbol)
        elif isinstance(node, Function) and _may_keep_data(file, node, symbol):
            yield _place(file, node, f"{symbol}.{node.name}".removeprefix("."), "cache")


def _is_changeable(value: ast.expr | None, classes: Set[str]) -> bool:
    if isinstance(value, ast.Call):
        return _last(value.func) in {*KEPT["state"]["containers"], *classes}
    return isinstance(
        value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp
    )


def _changed(node: ast.AST) -> str:
    """Return what a piece of code changes without giving it another name, or nothing."""
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return ast.unparse(node.value)
    if isinstance(node, ast.Call) and _last(node.func) in _CHANGES:
        return ast.unparse(node.func)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "next":
        return ast.unparse(node.args[0])
    return ""


def _may_keep_data(file: SourceFile, node: Function, symbol: str) -> bool:
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    inside = isinstance(file.definitions.get(symbol), Function)  # made anew with what it is in
    if inside or not any(re.match(r"(functools\.)?(lru_)?cache\b", mark) for mark in marks):
        return False
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    words = " ".join(ast.unparse(one.annotation) if one.annotation else "Any" for one in given)
    risky = [word for word in KEPT["state"]["data"] if re.search(rf"\b{word}\b", words)]
    plain = {"bool", "float", "int", "str"}.issuperset(words.split())
    return bool(risky or (not plain and file.folder in KEPT["storage"]["folders"]))


# Names, arguments, fields, words


def class_names_used_twice(root: Path) -> list[Place]:
    """Return the classes that share their name with another."""
    found: dict[str, list[Place]] = defaultdict(list)
    for file in files_of(root):
        for node, symbol in file.nodes:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(_place(file, node, symbol, f"class {node.name}"))
    return [place for name in sorted(found) if len(found[name]) > 1 for place in found[name]]


def starred_calls(root: Path) -> list[Place]:
    """Return calls that hand more than six arguments to what is private, some by a star.

    Private are functions that no room exports, and constructors but those of the front door. A
    star stands for as many arguments as its tuple or its dict has where it is written out in the
    same function, else for all parameters that are left, and at least for one.
    """
    files = files_of(root)
    front = exported([file for file in files if file.name == "__init__.py"])
    most: dict[str, int] = defaultdict(int)  # parameters of what has a name
    for _, _, function in private_functions(files):
        most[function.name] = max(most[function.name], len(parameters(function)))
    for node in (node for file in files for node in file.definitions.values()):
        if isinstance(node, ast.ClassDef) and node.name not in front:
            most[node.name] = max(most[node.name], len(list(_fields(node))))
    return [
        _place(file, node, symbol)
        for file in files
        for node, symbol in file.nodes
        if isinstance(node, ast.Call)
        and (name := _last(node.func)) in most
        and _handed(node, file.definitions.get(symbol), most[name]) > MOST_PARAMETERS
    ]


def _handed(call: ast.Call, around: Definition | None, most: int) -> int:
    """Return how many arguments a call hands over; none where it has no star."""
    stars = [one.value for one in call.args if isinstance(one, ast.Starred)]
    stars += [one.value for one in call.keywords if one.arg is None]
    if not stars:
        return 0
    lengths = [_length(star, around) for star in stars]
    number = len(call.args) + len(call.keywords) - len(stars) + sum(one for one, _ in lengths)
    return number if all(exact for _, exact in lengths) else max(number, most)


def _length(value: ast.expr, around: Definition | None) -> tuple[int, bool]:
    """Return how long a tuple or a dict is, at least, and whether that is all."""
    inner: list[tuple[int, bool]] = []
    if isinstance(value, ast.Name) and around is not None:
        assigned = [one for one in ast.walk(around) if isinstance(one, ast.Assign)]
        written = [one.value for one in assigned if ast.unparse(one.targets[0]) == value.id]
        return max((_length(one, None) for one in written), default=(1, False))
    if isinstance(value, ast.Tuple | ast.List):
        stars = [one.value for one in value.elts if isinstance(one, ast.Starred)]
        inner = [(len(value.elts) - len(stars), True), *(_length(one, around) for one in stars)]
    elif isinstance(value, ast.Dict):
        stars = [one for key, one in zip(value.keys, value.values, strict=True) if key is None]
        inner = [(len(value.keys) - len(stars), True), *(_length(one, around) for one in stars)]
    elif isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
        inner = [(len(value.keywords), True)]
    else:
        return 1, False
    return sum(one for one, _ in inner), all(exact for _, exact in inner)


def import_circles(root: Path) -> list[list[str]]:
    """Return the modules that import one another, by name or by a text; the front door is free."""
    return circles(import_graph([file for file in files_of(root) if file.folder], lazy=True))


def constructor_fields(root: Path) -> list[Place]:
    """Return the parameters that constructors of estimators, and of what these inherit, write."""
    files, bases = files_of(root), defaultdict(set)
    classes = [
        (file, name, node)
        for file in files
        for name, node in file.definitions.items()
        if isinstance(node, ast.ClassDef)
    ]
    for _, _, node in classes:
        bases[node.name].update(_last(base) for base in node.bases)
    wanted = {name for name in exported(files) if name.startswith("DP")}
    while more := {base for name in wanted for base in bases[name] if base in bases} - wanted:
        wanted |= more
    return [
        _place(file, one, name, field)
        for file, name, node in classes
        if node.name in wanted
        for one, field in _fields(node)
    ]


_RECORD = re.compile(r"\b(dataclass|constructor_of_fields)\b")  # what writes an __init__


def _fields(node: ast.ClassDef) -> Iterator[tuple[ast.AST, str]]:
    is_record = any(_RECORD.search(ast.unparse(mark)) for mark in node.decorator_list)
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            yield from ((part, name) for name in parameters(part))
        elif is_record and isinstance(part, ast.AnnAssign):
            name = ast.unparse(part.target)
            if name != "_" and "ClassVar" not in ast.unparse(part.annotation):
                yield part, name


def repeated_fields(root: Path) -> list[Place]:
    """Return the parameters of constructors whose name another constructor has written before."""
    seen: set[str] = set()
    return [one for one in constructor_fields(root) if one.what in seen or seen.add(one.what)]


def questions(root: Path) -> list[Place]:
    """Return docstrings that begin with What or Whether."""
    return [
        Place(file.name, getattr(node, "lineno", 1), name, text.partition("\n")[0])
        for file in files_of(root)
        for name, node in [("", file.tree), *file.definitions.items()]
        if re.match(r"(What|Whether)\b", text := ast.get_docstring(node) or "")
    ]


def untyped(root: Path) -> list[Place]:
    """Return annotations that say Any, each as often as it says so."""
    return [
        _place(file, one, symbol, ast.unparse(note))
        for file in files_of(root)
        for node, symbol in file.nodes
        for name in ("annotation", "returns")
        if isinstance(note := getattr(node, name, None), ast.expr)
        for one in ast.walk(note)
        if isinstance(one, ast.Name) and one.id == "Any"
    ]
