"""The bars of the house count what they say: lines, imports, branches, releases, state, rows."""

import functools
import json
import threading
import tomllib
import weakref
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from benchmarks import _house_figures as figures
from benchmarks import house
from benchmarks._rows_traced import N_ROWS, Carriers, Trace
from benchmarks._source_files import (
    Size,
    borrowed,
    circles,
    import_graph,
    long_parameter_lists,
    source_files,
)
from tests.test_imports import RANK

SOURCE = '''"""A module.

Of two paragraphs.
"""

import math  # not a line of its own


# a comment
@property
def seven(a, b, c, d, e, f, g):
    """One sentence."""
    text = """no
    docstring"""

    return text


class Kept:
    def _six(self, a, b, c, *, d, e, f):
        return a

    def _seven(self, a, b, c, *, d, e, f, g):
        def inner(h, i, j, k, l, m, n, o):
            return h

        return inner

    def eight(self, a, b, c, d, e, f, g, h):
        return a


@njit(cache=True)
def _kernel(a, b, c, d, e, f, g):
    return a
'''


@pytest.fixture
def root(tmp_path):
    """Write files of a package, their names with "__in__" for a slash, and return the checkout."""

    def write(**sources):
        for name, source in sources.items():
            path = tmp_path / "skdpnoise" / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
        return tmp_path

    return write


def test_lines_of_code_hold_no_blanks_no_comments_and_no_docstrings(root):
    (file,) = source_files(root(a=SOURCE))
    assert file.size() == Size(code=18, docstring=5)
    assert file.size("seven") == Size(code=5, docstring=1)
    assert file.size("Kept._six") == Size(code=2, docstring=0)
    assert file.size("Kept", "Kept._six") == file.size("Kept")


def test_what_is_public_may_take_as_many_parameters_as_it_likes(root):
    files = source_files(root(a=SOURCE, __init__='__all__ = ["Kept"]\n'))
    assert sorted(long_parameter_lists(files)) == [
        ("a.py:Kept._seven", 7),
        ("a.py:Kept._seven.inner", 8),
        ("a.py:seven", 7),
    ]
    (alone,) = [file for file in files if file.name == "a.py"]
    assert ("a.py:Kept.eight", 8) in long_parameter_lists([alone])


def test_a_circle_is_found_within_functions_and_in_types_too(root):
    files = source_files(
        root(
            a="from skdpnoise import b",
            b="def f():\n    from skdpnoise.c import g",
            c="if TYPE_CHECKING:\n    import skdpnoise.a",
            d="from skdpnoise import a",
        )
    )
    assert circles(import_graph(files)) == [["skdpnoise.a", "skdpnoise.b", "skdpnoise.c"]]


@pytest.mark.parametrize(
    "lazy",
    [
        "import_module('skdpnoise.room.b')",
        "importlib.import_module(f'{__package__}.b')",
        "import_module('.b', __package__)",
        "__import__('skdpnoise.room.b')",
        "NAMES = {'B': 'b'}\nimport_module(f'skdpnoise.room.{NAMES[name]}')",
        "HOMES = {'B': 'skdpnoise.room.b'}",
        "for one in found:\n    import_module(f'skdpnoise.room.{one}')",
    ],
)
def test_a_circle_is_found_through_texts_that_name_modules(root, lazy):
    here = root(room__in__a=lazy, room__in__b="from skdpnoise.room import a")
    assert figures.import_circles(here) == [["skdpnoise.room.a", "skdpnoise.room.b"]]
    assert circles(import_graph(source_files(here))) == []


def test_a_text_that_names_another_module_makes_no_circle(root):
    lazy = "import_module(name)\nNAMES = {'C': 'c'}\nimport_module(f'skdpnoise.room.{NAMES[name]}')"
    here = root(room__in__a=lazy, room__in__b="from skdpnoise.room import a", room__in__c="")
    assert figures.import_circles(here) == []


def test_an_underscore_file_belongs_to_its_folder(root):
    files = source_files(
        root(
            one__in____init__="from skdpnoise.one._own import f",
            one__in___own="f = 1",
            one__in__other="from skdpnoise.one import _own",
            two__in__a="from skdpnoise.one._own import f",
        )
    )
    assert borrowed(files) == [("skdpnoise.two.a", "skdpnoise.one._own")]


def test_new_features_are_found_by_name_wherever_they_are(root):
    files = source_files(root(a=SOURCE, room__in__b="def seven():\n    pass\n"))
    kept = {"one": ["a:seven", "Kept", "Kept._six"], "two": ["renamed"]}
    (a, _) = files
    assert house.newer(files, kept) == {"one": a.size("seven", "Kept"), "two": Size()}
    assert house.gone(files, kept) == ["renamed"]
    assert house.newer(files, {"in two files": ["seven"]}) == {"in two files": Size()}
    assert house.gone(files, {"in two files": ["seven"]}) == ["seven"]


FOUND = [
    ("storage_branches", "if isinstance(rows, RowSource): pass"),
    ("storage_branches", "if not is_spread(rows) and x: pass"),
    ("storage_branches", "if data.parts is None: pass"),
    ("storage_branches", "if len(table.partitions) > 1: pass"),
    ("storage_branches", "assert hasattr(rows, 'partitions')"),
    ("storage_branches", "match rows:\n  case Spread(): pass"),
    ("noise_sites", "plus_noise(mechanism, sums, draws)"),
    ("noise_sites", "observer.adder(mechanism)"),
    ("noise_sites", "mechanism.release(sums, rng)"),
    ("noise_sites", "run(self.mechanism.sample)"),
    ("charge_sites", "account.charge('sums', mechanism)"),
    ("charge_sites", "run(charge=self.account.spend)"),
    ("context_variables", "a: ContextVar[int] = ContextVar('a')"),
    ("other_state", "def f():\n  global a"),
    ("other_state", "a = threading.local()"),
    ("other_state", "a = {}\ndef f():\n  a[1] = 2"),
    ("other_state", "a: list[int] = []\ndef f():\n  a.append(1)"),
    ("other_state", "a = count()\ndef f():\n  next(a)"),
    ("other_state", "class A: pass\nA_ = A()\ndef f():\n  A_.found = 1"),
    ("other_state", "class A:\n  def f(cls):\n    cls.found = 1"),
    ("other_state", "@cache\ndef f(values: Any): pass"),
    ("starred_calls", "def _f(a, *b): pass\ndef g():\n  y = (1, 2, 3, 4, 5, 6)\n  _f(0, *y)"),
    ("starred_calls", "def _f(a, *b): pass\ndef g():\n  y = (1, 2, 3, 4, *b)\n  _f(0, *y, 7)"),
    ("starred_calls", "def _f(a, b, c, d, e, f, g): pass\n_f(*facts)"),
    ("starred_calls", "def _f(**facts): pass\n_f(a=1, b=2, c=3, **dict(d=1, e=2, f=3, g=4))"),
]  # fmt: skip
FREE = [
    ("storage_branches", "if isinstance(rows, np.ndarray) and parts: spread = 1"),
    ("storage_branches", "for part in table.partitions: pass"),
    ("noise_sites", "self._session.release('sums', query, table, budget)"),
    ("noise_sites", "class Session:\n  def release(self): return plus_noise(a, b, c)"),
    ("noise_sites", "f(release, sample)"),
    ("charge_sites", "class Session:\n  def reserve(self): self.ledger.charge(1)"),
    ("other_state", "a = {}\ndef f():\n  b = {}\n  b[1] = a[1]"),
    ("other_state", "a = {}\na[1] = 2"),
    ("other_state", "FAMILIES = {}\ndef f():\n  FAMILIES[1] = 2"),
    ("other_state", "@cache\ndef f(a: int, b: tuple[float, ...]): pass"),
    ("starred_calls", "def _f(a, b, c, d, e, f, g): pass\n_f(1, 2, 3, 4, 5, 6, 7)"),
    ("starred_calls", "def _f(a, b, c, d, e, f): pass\n_f(*facts)"),
]


@pytest.mark.parametrize(("figure", "source"), FOUND)
def test_a_figure_counts_what_it_is_for(root, figure, source):
    (place,) = getattr(figures, figure)(root(room__in__a=source))
    assert str(place).startswith("room/a.py:")


@pytest.mark.parametrize(("figure", "source"), FREE)
def test_a_figure_counts_nothing_else(root, figure, source):
    assert getattr(figures, figure)(root(room__in__a=source)) == []


def test_a_cache_in_the_folder_of_the_rows_may_be_asked_for_names_and_numbers_alone(root):
    asked = root(
        data__in__names="@cache\ndef f(path: str, written: int, size: int): pass",
        data__in__rows="@cache\ndef f(path: str, columns: tuple[str, ...]): pass",
        data__in__unsaid="@cache\ndef f(path: str, rows): pass",
        room__in__names="@cache\ndef f(path: str, columns: tuple[str, ...]): pass",
    )
    places = [place.file for place in figures.other_state(asked)]
    assert places == ["data/rows.py", "data/unsaid.py"]


def test_the_mechanisms_themselves_and_the_ledger_are_what_is_called(root):
    here = root(
        mechanisms__in__a="self.sample(rng)\nplus_noise(a, b)", ledger__in__a="self.charge(1)"
    )
    assert figures.noise_sites(here) == figures.charge_sites(here) == []


def test_classes_with_the_name_of_another_are_found_in_all_folders(root):
    here = root(a="class One: pass\nclass Two: pass", room__in__b="def f():\n  class One: pass")
    assert [place.file for place in figures.class_names_used_twice(here)] == ["a.py", "room/b.py"]


def test_parameters_of_constructors_are_counted_where_they_are_written(root):
    here = root(
        __init__='__all__ = ["DPOne", "DPTwo"]',
        base="@dataclass\nclass Base:\n  _: KW_ONLY\n  epsilon: float\n  kind: ClassVar[str] = ''",
        one="class DPOne(Base):\n  def __init__(self, epsilon, *, clip=1): pass",
        two="@dataclass\nclass DPTwo(base.Base):\n  clip: float\n  other: int",
        three="@dataclass\nclass Other:\n  clip: float",
    )
    fields = [(one.symbol, one.what) for one in figures.constructor_fields(here)]
    assert len(fields) == 5
    assert ("Base", "epsilon") in fields
    assert sorted(one.what for one in figures.repeated_fields(here)) == ["clip", "epsilon"]


def test_numbers_that_were_tuned_are_counted_in_records_and_in_functions(root):
    rules = "class FewRules:\n  passes: int = 20\n  clip: float = -2.0**3\n  name: str = 'a'\n"
    names = "BOTH, _ONE = (1, 2.0), 3\nMANY = FewRules(passes=3, clip=4)\n"
    here = root(room__in__a=f"{rules}{names}def share(x): return 0.5 * x + 1")
    (here / "benchmarks").mkdir()
    listed = ["FewRules.passes", "FewRules.clip", "BOTH", "_ONE", "MANY", "share()"]
    entry = f'[[tuned]]\nfile = "room/a.py"\nnames = {json.dumps(listed)}'
    (here / "benchmarks" / "constants.toml").write_text(entry, encoding="utf-8")
    assert [number for _, number in house.tuned(here)] == [1, 1, 2, 1, 1, 1, 1]


# Rows

ROWS = np.arange(3.0 * N_ROWS).reshape(N_ROWS, 3)


class Slots:
    __slots__ = ("kept",)

    def __init__(self, kept):
        self.kept = kept

    def method(self):
        return 1


@dataclass(frozen=True)
class Record:
    inner: object


class FileReader:
    """It holds no rows, and can read them."""

    __module__ = "skdpnoise.data.files"


class OfParts(FileReader):
    __module__ = "skdpnoise.elsewhere"


def closed_over(value):
    return lambda: value


def with_default(value):
    def function(kept=value):
        return kept

    return function


def sees():
    return ROWS


def cached(value):
    function = functools.cache(lambda key: value)
    function(1)
    return function


CARRIERS = {
    "an array": lambda rows: rows,
    "a view": lambda rows: rows[:10, 0],
    "transposed": lambda rows: rows.T,
    "flat": lambda rows: rows.ravel().copy(),
    "sparse": csr_array,
    "a frame": pd.DataFrame,
    "a column": lambda rows: pd.Series(rows[:, 0]),
    "a list of all": lambda rows: rows[:, 0].tolist(),
    "bytes": lambda rows: rows.tobytes(),
    "a memoryview": lambda rows: memoryview(rows)[:5],
    "a list": lambda rows: [1, rows],
    "a dict in a tuple": lambda rows: (1, {"X": rows}),
    "a deque": lambda rows: deque([rows]),
    "an array of objects": lambda rows: np.array([None, Record(rows)], dtype=object),
    "a record in a record": lambda rows: Record(Record(rows)),
    "slots": Slots,
    "a namespace": lambda rows: SimpleNamespace(table=rows),
    "a closure": closed_over,
    "a default": with_default,
    "a partial": lambda rows: functools.partial(len, rows),
    "a keyword of a partial": lambda rows: functools.partial(sorted, key=closed_over(rows)),
    "a bound method": lambda rows: Slots(rows).method,
    "a method of the array": lambda rows: rows.sum,
    "an iterator": lambda rows: map(len, iter([rows])),
    "a generator": lambda rows: (row for row in rows),
    "a cache": cached,
    "a weak reference": lambda rows: weakref.ref(rows),
    "a reader": lambda rows: FileReader(),
    "a closure over a kind of reader": lambda rows: closed_over([OfParts()]),
}
OTHERS = {
    "nothing": lambda rows: None,
    "their number": lambda rows: len(rows),
    "a range of numbers": lambda rows: range(len(rows)),
    "sums": lambda rows: rows.sum(axis=0),
    "a closure over sums": lambda rows: closed_over(rows.sum()),
    "names": lambda rows: {"names": ["a", "b"], "dtype": rows.dtype},
    "a function that sees them in its module": lambda rows: sees,
    "a type": lambda rows: FileReader,
}
PLANTED = """
def gets(value):
    return 1

def takes(*values, **named):
    return 1

class Owner:
    def __init__(self, value):
        self.value = value

    def plan_all(self):
        return 1

def fetches(box):
    table = box.get()
    return 1

def orders(n, *others, also=None):
    order = list(range(n))
    return gets(order)
"""


@pytest.fixture
def planted(tmp_path):
    """Return functions of a file in a folder below."""
    path = tmp_path / "room" / "planted.py"
    path.parent.mkdir()
    path.write_text(PLANTED, encoding="utf-8")
    namespace = {"__name__": "planted"}
    exec(compile(PLANTED, str(path), "exec"), namespace)
    return SimpleNamespace(**namespace)


def traced(root, call):
    """Return the names of the functions below a folder that get rows."""
    carriers = Carriers(r"skdpnoise\.data\.\w+\.\w*Reader")
    return {name for _, name in Trace(root, carriers).during(call).found}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_function_that_gets_rows_is_counted(tmp_path, planted, carrier):
    value = CARRIERS[carrier](ROWS)
    assert traced(tmp_path, lambda: planted.gets(value)) == {"gets"}
    assert traced(tmp_path, lambda: planted.takes(1, value)) == {"takes"}
    assert traced(tmp_path, lambda: planted.takes(key=value)) == {"takes"}
    owner = planted.Owner(value)
    assert traced(tmp_path, owner.plan_all) == {"Owner.plan_all"}
    box = ContextVar("box", default=None)
    token = box.set(value)
    assert traced(tmp_path, lambda: planted.fetches(box)) == {"fetches"}
    box.reset(token)
    assert traced(tmp_path, lambda: (planted.gets(1), len(ROWS))) == set()


@pytest.mark.parametrize("other", OTHERS)
def test_a_function_that_gets_no_rows_is_not_counted(tmp_path, planted, other):
    value = OTHERS[other](ROWS)
    owner = planted.Owner(value)
    calls = (lambda: planted.gets(value), lambda: planted.takes(value), owner.plan_all)
    assert [traced(tmp_path, call) for call in calls] == [set()] * 3


def test_functions_in_other_threads_are_counted(tmp_path, planted):
    def call():
        thread = threading.Thread(target=planted.gets, args=(ROWS,))
        thread.start()
        thread.join()

    assert traced(tmp_path, call) == {"gets"}


def test_a_folder_that_reads_nothing_counts_where_it_is_called_with_rows(tmp_path, planted):
    def found(folders, *arguments, **named):
        trace = Trace(tmp_path, Carriers(), folders)
        return {name for _, name in trace.during(lambda: planted.orders(*arguments, **named)).found}

    # An order of the rows is as long as they are: in other folders it may be one by their values.
    assert found([], N_ROWS) == {"orders", "gets"}
    assert found(["room"], N_ROWS) == set()
    for given in ({"also": ROWS}, {"also": closed_over(ROWS)}):
        assert found(["room"], N_ROWS, **given) == {"orders", "gets"}
    assert found(["room"], N_ROWS, ROWS) == {"orders", "gets"}


def test_folders_that_read_nothing_stand_left_of_those_that_read():
    kept = tomllib.loads((house.ROOT / "benchmarks" / "house.toml").read_text(encoding="utf-8"))
    assert all(RANK[folder] < RANK["data"] for folder in kept["rows"]["of_numbers"])


def test_functions_outside_of_the_folder_are_not_counted(tmp_path, planted):
    assert traced(tmp_path / "other", lambda: planted.gets(ROWS)) == set()


def test_planners_are_told_by_their_names_and_returns_by_their_folders(tmp_path, planted):
    trace = Trace(tmp_path, Carriers()).during(planted.Owner(ROWS).plan_all)
    found = trace.figures(r"plan_\w+", "check")
    assert found["figures"]["functions that plan"] == 1
    checker = r"room/planted\.py: Owner\.plan_all"
    assert trace.figures(r"plan_\w+", checker)["figures"]["functions that plan"] == 0
    trace.calls = [(f"{room}/a.py", "f") for room in "aabbabcb"]
    assert trace.figures("x", "x")["figures"]["returns to a folder"] == 3


# The command


@pytest.mark.slow
def test_the_command_prints_each_bar_before_beside_after(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(house, "rows", lambda root: {})  # two fits, tested above by what is planted
    assert house.main(["--out", str(tmp_path), "--verbose"]) in (0, 1)
    printed = capsys.readouterr().out
    kept = json.loads((tmp_path / "house.json").read_text(encoding="utf-8"))
    assert kept["before"]["lines of code, for the features of before"] == 33_932
    for name in kept["now"]:
        assert name in printed
    assert kept["before"].keys() == house.BARS.keys()
