"""Every public name explains itself; files stay short and know nothing of one machine."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import skdpnoise
from skdpnoise.noises import get_noise, noise_names

ROOT = Path(__file__).resolve().parents[1]
ROOMS = sorted(room.name for room in pkgutil.iter_modules(skdpnoise.__path__) if room.ispkg)
ROOMS.insert(ROOMS.index("kernels") + 1, "kernels.joint")


def public_names():
    """Room and name of every class and function that a room lists in ``__all__``."""
    for room in ROOMS:
        module = importlib.import_module(f"skdpnoise.{room}")
        for name in getattr(module, "__all__", []):
            obj = getattr(module, name, None)
            if inspect.isclass(obj) or inspect.isroutine(obj):
                yield room, name


def sections(docstring: str) -> dict[str, str]:
    """Text of every numpydoc section by title; the text before the first one is under ''."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}[ ]*$", docstring, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def parameter_names(section: str) -> list[str]:
    """Names described in a Parameters or Attributes section: 'a, b : float' or a bare '*args'."""
    heads = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: ?:.*)?$", section, flags=re.MULTILINE)
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


def _taken(obj) -> list[str]:
    if inspect.isclass(obj) and issubclass(obj, BaseException):
        return []  # a message, as every exception does
    return [name for name in inspect.signature(obj).parameters if not name.startswith("_")]


def faults(obj) -> list[str]:
    """What the docstring of a public class or function lacks."""
    # A class without a docstring would show that of its parent.
    own = vars(obj).get("__doc__") if inspect.isclass(obj) else obj.__doc__
    if not own:
        return ["no docstring"]
    text = inspect.cleandoc(own)
    found = []
    parts = sections(text)
    summary = parts[""].split("\n\n")[0].strip()
    if not summary.endswith("."):
        found.append("the summary is not a sentence that ends in a full stop")
    # A protocol is never called, so it has neither parameters nor an example of its own.
    if not getattr(obj, "_is_protocol", False):
        if ">>>" not in parts.get("Examples", ""):
            found.append("no Examples section")
        taken = _taken(obj)
        described = parameter_names(parts.get("Parameters", ""))
        if taken != described:
            found.append(f"takes {taken}, but its Parameters section describes {described}")
    return found


def undocumented_methods(cls) -> list[str]:
    """Public methods and properties of our own without a docstring, own or inherited."""
    return [
        name
        for name, member in vars(cls).items()
        if not name.startswith("_")
        and isinstance(member, property | classmethod | staticmethod) | inspect.isfunction(member)
        and not inspect.getdoc(getattr(cls, name))
    ]


def public_objects():
    """Every public class and function by room and name."""
    for room, name in public_names():
        yield f"{room}.{name}", getattr(importlib.import_module(f"skdpnoise.{room}"), name)


def test_every_room_lists_its_public_names():
    modules = [importlib.import_module(f"skdpnoise.{room}") for room in ROOMS]
    assert [module.__name__ for module in modules if not module.__doc__] == []
    listed = [(module, name) for module in modules for name in module.__all__]
    assert [(module, name) for module, name in listed if not hasattr(module, name)] == []


def test_a_public_name_has_a_complete_docstring():
    found = {name: faults(obj) for name, obj in public_objects()}
    assert {name: what for name, what in found.items() if what} == {}


def test_public_methods_have_docstrings():
    classes = {name: obj for name, obj in public_objects() if inspect.isclass(obj)}
    found = {name: undocumented_methods(cls) for name, cls in classes.items()}
    assert {name: what for name, what in found.items() if what} == {}


def _complete(scale, *, shape=None):
    """Scale a shape.

    Parameters
    ----------
    scale : float
        The scale.
    shape : tuple, default=None
        The shape.

    Examples
    --------
    >>> 1 + 1
    2
    """


def _without_anything(scale): ...


def _without_sections(scale):
    """Scale something"""


class _Base:
    def explained(self):
        """Explain."""


class _Derived(_Base):
    def explained(self): ...

    def silent(self): ...

    @property
    def value(self): ...


def test_the_docstring_checks_see_what_is_missing():
    assert faults(_complete) == []
    assert faults(_without_anything) == ["no docstring"]
    summary, examples, parameters = faults(_without_sections)
    assert "full stop" in summary
    assert "Examples" in examples
    assert "['scale']" in parameters
    assert faults(_Derived) == ["no docstring"]
    assert undocumented_methods(_Derived) == ["silent", "value"]


TEXT_FILES = sorted(
    path
    for folder in ("skdpnoise", "tests", "examples", "docs", "benchmarks")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".toml", ".json", ".txt"} and "results" not in path.parts
) + sorted(path for path in ROOT.glob("*") if path.suffix in {".md", ".toml"})

# Put together from parts, so that this file does not match itself.
FOLDERS = "|".join(["work", "farm", "root", "tmp"])
MACHINE_PATH = re.compile(rf"(^|[^A-Za-z0-9_./])/({FOLDERS})/")


@pytest.mark.slow
def test_no_file_names_a_path_of_one_machine():
    assert MACHINE_PATH.search("see /" + "work/shared")
    assert not MACHINE_PATH.search("https://example.org/work/shared")
    found = [
        str(path.relative_to(ROOT))
        for path in TEXT_FILES
        if MACHINE_PATH.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def stated(section: str) -> dict[str, tuple[str, str | None]]:
    """Type and default of every parameter in an expanded Parameters section."""
    heads = re.findall(r"^(\w+(?:, \w+)*) : (.*(?:\n .*)?)", section, flags=re.MULTILINE)
    found = {}
    for names, rest in heads:
        kind, _, default = rest.partition("\n")[0].partition(", default=")
        found |= dict.fromkeys(names.split(", "), (kind, default or None))
    return found


def wrong_defaults(obj) -> list[str]:
    """Parameters whose default is documented otherwise than the signature has it."""
    text = inspect.cleandoc(vars(obj).get("__doc__") if inspect.isclass(obj) else obj.__doc__)
    described = stated(sections(text).get("Parameters", ""))
    found = []
    for name, parameter in inspect.signature(obj).parameters.items():
        if name in described:
            default = described[name][1]
            # A field made by a factory has no value to state.
            unstated = inspect.Parameter.empty, None
            absent = default is None and (
                parameter.default in unstated or repr(parameter.default) == "<factory>"
            )
            if not absent and not _same(default, parameter.default):
                found.append(f"{name}: {default} is documented, the default is {parameter.default}")
    return found


def _same(documented: str | None, default: object) -> bool:
    try:
        return ast.literal_eval(documented or "") == default
    except (SyntaxError, ValueError):
        return documented in (repr(default), _name(default))


def _name(default: object) -> str:
    return f"{getattr(default, '__module__', '')}.{getattr(default, '__qualname__', '')}".strip("_")


def test_documented_defaults_are_those_of_the_signature():
    found = {
        name: wrong_defaults(obj)
        for name, obj in public_objects()
        if not (inspect.isclass(obj) and issubclass(obj, BaseException))
    }
    assert {name: what for name, what in found.items() if what} == {}


def _misleading(scale=2.0, *, shape=None, size=3):
    """Scale a shape.

    Parameters
    ----------
    scale : float, default=1.0
        The scale.
    shape : tuple or None, default=None
        The shape.
    size : int
        Its size.
    """


def test_the_check_of_defaults_sees_wrong_and_missing_ones():
    wrong, missing = wrong_defaults(_misleading)
    assert wrong.startswith("scale: 1.0")
    assert missing.startswith("size: None")


def shown() -> set[tuple[str, str]]:
    """Module and dotted name of what help() shows of public classes, inherited or not.

    Noise families count, since :func:`skdpnoise.noises.get_noise` hands them out.
    """
    objs = [getattr(importlib.import_module(f"skdpnoise.{r}"), n) for r, n in public_names()]
    families = [getattr(f, "func", f) for f in map(get_noise, noise_names())]
    families = [f if inspect.isclass(f) else type(f) for f in families]
    own = {(obj.__module__, obj.__qualname__) for obj in [*objs, *families]}
    classes = {c for obj in [*objs, *families] if inspect.isclass(obj) for c in obj.__mro__}
    methods = {(c.__module__, f"{c.__qualname__}.{n}") for c in classes for n in vars(c)}
    return own | {one for one in methods if not one[1].rpartition(".")[2].startswith("_")}


def private_docstrings(tree: ast.AST, module: str, public: set, path: str = ""):
    """Yield dotted name and docstring of everything that nobody is shown."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            if not isinstance(node, ast.expr):
                yield from private_docstrings(node, module, public, path)
            continue
        name = f"{path}{node.name}"
        text = ast.get_docstring(node)
        if text is not None and (module, name) not in public:
            yield f"{module}:{name}", text
        yield from private_docstrings(node, module, public, f"{name}.")


SENTENCE_ENDS = re.compile(r"(?<!e\.g)(?<!i\.e)(?<! [A-Z])[.!?](?=\s+[A-Z`])")


def too_long(docstring: str) -> bool:
    """Whether there is more than a sentence, equations, references and an example."""
    head = sections(docstring)
    first, *others = [" ".join(part.split()) for part in head.pop("").strip().split("\n\n")]
    allowed = (".. math::", "Reference: ")
    return bool(
        set(head) - {"Examples"}
        or SENTENCE_ENDS.search(first)
        or [part for part in others if not part.startswith(allowed)]
    )


def test_private_docstrings_are_one_sentence_and_the_equation():
    public = shown()
    found = []
    for path in sorted((ROOT / "skdpnoise").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = private_docstrings(tree, module, public)
        found += [name for name, text in texts if too_long(text)]
    assert found == []


def test_the_check_of_private_docstrings_sees_what_is_too_long():
    assert not too_long("Return k.\n\n.. math:: k = 1\n\nReference: Dwork (2006).")
    assert not too_long("Return k.\n\nExamples\n--------\n>>> 1\n1")
    assert not too_long("Return k, by the rule of K. Pearson.")
    assert too_long("Return k. It is one.")
    assert too_long("Return k.\n\nIt is one.")
    assert too_long("Return k.\n\nParameters\n----------\nk : int")
    tree = ast.parse("class A:\n  def b(self):\n    def c():\n      'C.'\n  def d(self):\n    'D.'")
    names = [name for name, _ in private_docstrings(tree, "m", {("m", "A.d")})]
    assert names == ["m:A.b.c"]
