"""The kept list of mutants is up to date, and the command tells survivors from the others."""

import json
import re
import subprocess
from functools import cache
from queue import SimpleQueue

import pytest

from benchmarks import mutants
from benchmarks.mutants import ROOT, Mutant, kept_mutants, touched, unnoticed

ROOMS = ("privacy", "sensitivity", "noises", "mechanisms", "sampling", "ledger", "kernels")
ESTIMATORS = ("linear_model", "decomposition", "model_selection")
kept = cache(kept_mutants)  # which reads the whole package: not where tests are collected


def test_the_list_covers_every_room_that_a_guarantee_rests_on():
    assert len(kept()) >= 60
    rooms = [mutant.file.split("/")[1] for mutant in kept()]
    assert all(rooms.count(room) >= 2 for room in ROOMS)
    assert all(rooms.count(room) >= 1 for room in ESTIMATORS)
    assert len({mutant.name for mutant in kept()}) == len(kept())


def test_every_mutant_applies_to_the_source_as_it_is():
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in {m.file for m in kept()}}
    # One that does not apply is an error, which says why.
    assert [m.name for m in kept() if m.mutated(texts[m.file]) == texts[m.file]] == []


def test_every_mutant_names_tests_that_are_there():
    assert [mutant.name for mutant in kept() if not mutant.tests] == []
    named = {test for mutant in kept() for test in mutant.tests}
    assert {test for test in named if not _exists(test)} == set()


def _exists(test: str) -> bool:
    path, *names = test.split("::")
    if not (ROOT / path).exists():
        return False
    text = (ROOT / path).read_text("utf-8") if names else ""
    return all(re.search(rf"(?:def|class) {name}\b", text) for name in names)


def test_a_mutant_that_no_longer_applies_is_an_error():
    with pytest.raises(ValueError, match=r"occurs 2 times.*up to date"):
        Mutant("m", "f.py", "x", "y", ("t",)).mutated("x = x")


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_a_mutant_is_found_by_its_symbol_wherever_that_is(tmp_path):
    text = "A = 1\n\n\nclass B:\n    c = 1\n\n    def d(self):\n        return 1\n"
    write(tmp_path, {"skdpnoise/a/b.py": text, "skdpnoise/c.py": "A = 2\n"})
    kept = tmp_path / "kept.toml"

    def listed(symbol, before):
        one = f"{{name = 'm', symbol = '{symbol}', before = '{before}', after = '3'}}"
        kept.write_text(f"[[group]]\ntests = ['t']\nmutant = [{one}]\n")
        return kept_mutants(kept, tmp_path)[0]

    for symbol in ("B.d", "b:B.d"):
        mutant = listed(symbol, "1")
        assert mutant.file == "skdpnoise/a/b.py"
        assert mutant.mutated(text) == text.replace("return 1", "return 3")
    assert listed("A", "2").file == "skdpnoise/c.py"
    assert listed("B.c", "1").mutated(text) == text.replace("c = 1", "c = 3")
    assert listed("c:A", "A = ").file == "skdpnoise/c.py"
    for symbol, before in (("A", "A"), ("B.d", "2"), ("gone", "1")):
        with pytest.raises(ValueError, match=r"definitions of .* hold its piece, not one"):
            listed(symbol, before)


def test_changed_files_ask_for_their_mutants_and_for_those_that_changed_tests_are_to_notice():
    all_names = [mutant.name for mutant in kept()]
    assert [mutant.name for mutant in touched(kept(), ["."])] == all_names
    assert touched(kept(), []) == touched(kept(), ["README.md"]) == []
    one = kept()[-1]
    found = touched(kept(), [one.file])
    assert found == [mutant for mutant in kept() if mutant.file == one.file]
    test = one.tests[0].partition("::")[0]
    by_test = touched(kept(), [test])
    assert one in by_test
    here = [name.partition("::")[0] for mutant in by_test for name in mutant.tests]
    assert all(
        any(test.startswith(name.partition("::")[0]) for name in mutant.tests) for mutant in by_test
    )
    assert test in here
    # A changed file within a folder of tests counts too, after the mutants of changed files.
    folder = Mutant("m", "skdpnoise/a.py", "x", "y", ("tests/contracts",))
    mine = Mutant("n", "skdpnoise/b.py", "x", "y", ("tests/privacy",))
    given = ["skdpnoise/b.py", "tests/contracts/_register.py"]
    assert touched([folder, mine], given) == [mine, folder]


UNRUN = "NameError: name 'x' is not defined"
ANSWERS = {
    "assert 1 == 2": '<failure message="assert 1 == 2"/>',
    "ValueError in a fixture": '<error message="failed on setup with &quot;ValueError: x&quot;"/>',
    "an error that names another": '<failure message="Failed: DID NOT RAISE ImportError"/>',
}
NO_ANSWERS = {
    "no test failed": '<skipped message="no library"/>',
    UNRUN: f'<failure message="{UNRUN}"/>',
    "subprocess.TimeoutExpired: 9 s": '<failure message="subprocess.TimeoutExpired: 9 s"/>',
    'failed on setup with "ImportError: x"': "<error message="
    '"failed on setup with &quot;ImportError: x&quot;"/>',
    "its tests could not be collected": '<error message="collection failure">x</error>',
}


def said_by(tmp_path, *cases):
    text = "".join(f"<testcase>{case}</testcase>" for case in cases)
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    return unnoticed(report)


def test_a_mutant_is_noticed_by_a_failure_alone(tmp_path):
    for case in ANSWERS.values():
        assert said_by(tmp_path, "", case) == ""
    for why, case in NO_ANSWERS.items():
        assert said_by(tmp_path, "", case) == why
    assert said_by(tmp_path) == "no test ran"
    assert unnoticed(tmp_path / "none.xml") == "pytest could not run its tests"


def test_a_mutant_whose_tests_run_too_long_is_not_noticed_and_taken_back(tmp_path, monkeypatch):
    def too_long(*_):
        assert (tmp_path / "a.py").read_text() == "x = 2\n"
        raise subprocess.TimeoutExpired("pytest", 600)

    write(tmp_path, {"a.py": "x = 1\n"})
    monkeypatch.setattr(mutants, "_pytest", too_long)
    monkeypatch.setattr(mutants, "is_compiled", lambda *_: False)
    answer = mutants._noticed(Mutant("m", "a.py", "1", "2", ("t",)), "slow", tmp_path)
    assert not answer["noticed"]
    assert answer["why"] == "its tests ran for more than 600 seconds"
    assert (tmp_path / "a.py").read_text() == "x = 1\n"


PROJECT = {
    "skdpnoise/__init__.py": "",
    "skdpnoise/bound.py": "def bound(x):\n    return 2 * x\n\n\ndef other(x):\n    return x\n",
    "tests/test_bound.py": "from skdpnoise.bound import bound\n\n\n"
    "def test_bound():\n    assert bound(1) == 2\n",
    "benchmarks/kept.toml": """
[[group]]
tests = ["tests"]
mutant = [
  { name = "half", symbol = "bound", before = "return 2 * x", after = "return x" },
  { name = "unseen", symbol = "other", before = "return x", after = "return -x" },
  { name = "no module", symbol = "other", before = "def", after = "import missing\\ndef" },
  { name = "no name", symbol = "bound", before = "2 * x", after = "2 * y" },
]
""",
    "docs/index.md": "",
    "README.md": "",
    "conftest.py": "",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
}


@pytest.mark.slow
def test_survivors_are_printed_and_make_the_command_fail(tmp_path, monkeypatch, capsys):
    write(tmp_path, PROJECT)
    listed = kept_mutants(tmp_path / "benchmarks/kept.toml", tmp_path)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "kept_mutants", lambda: listed)
    out = tmp_path / "results"
    assert mutants.main(["--out", str(out), "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    assert "unseen" in printed.split("SURVIVED", 1)[1]
    assert "4 mutants, survivors: 3" in printed
    assert {row["name"]: row["why"] for row in json.loads(_read(out))["mutants"]} == {
        "half": "",
        "unseen": "not slow: no test failed; slow: no test ran",
        "no module": "not slow: its tests could not be collected; slow: its tests could not be "
        "collected",
        "no name": "not slow: NameError: name 'y' is not defined; slow: no test ran",
    }
    # Without time nothing is begun, and it is said.
    assert mutants.main(["--out", str(tmp_path / "none"), "--minutes", "-1"]) == 0
    printed = capsys.readouterr().out
    assert "no time for 4 more" in printed
    assert "0 mutants, survivors: none" in printed
    # What is known is not run again, and one mutant alone is noticed.
    monkeypatch.setattr(mutants, "_pytest", lambda *_: pytest.fail("ran again"))
    assert mutants.main(["--out", str(out), "--only", "half"]) == 0
    assert "survivors: none" in capsys.readouterr().out


@pytest.mark.slow
def test_a_mutant_that_compiled_code_may_hold_gets_a_cache_of_its_own():
    def is_compiled(name):
        return mutants.is_compiled(f"skdpnoise/{name}.py", ROOT)

    # Loops, functions that loops of other files call, and constants that these use.
    assert is_compiled("sampling/lazy")
    assert is_compiled("kernels/_kernels")
    assert is_compiled("kernels/tiles")
    assert not is_compiled("privacy/half_lines")
    # Nobody makes kernels in another way, which the command would not see.
    makers = {path for path, text in mutants._sources(ROOT) if "numba" in text and "jit" in text}
    marked = {path for path, text in mutants._sources(ROOT) if "\n@inner" in text}
    assert makers | marked
    for path in makers | marked:
        assert is_compiled(path.relative_to(ROOT / "skdpnoise").with_suffix("").as_posix())


def test_tests_that_fail_without_a_mutant_stop_the_command(monkeypatch, tmp_path):
    broken = subprocess.CompletedProcess([], 1, "what pytest said", "")
    monkeypatch.setattr(mutants, "_pytest", lambda *_: broken)
    monkeypatch.setattr(mutants, "_copies", lambda *_: copies)
    copies = SimpleQueue()
    copies.put(tmp_path)
    with pytest.raises(SystemExit, match=r"fails without any mutant:\nwhat pytest said"):
        mutants.main(["--quick", "--fresh", "--workers", "1", "--out", str(tmp_path)])


def _read(out):
    return (out / "mutants.json").read_text(encoding="utf-8")
