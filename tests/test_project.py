"""What stands around the code agrees with it: pages for contributors, versions, workflows."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import skdpnoise
from skdpnoise.base import register
from tests.contracts._register import ENTRIES, NETWORKS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOR_PEOPLE = ["CONTRIBUTING.md", ".github/pull_request_template.md"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def field(page: str, name: str) -> str:
    """Value of a top-level field of a YAML file that is written on one line."""
    return re.search(rf"^{name}: *(.+)$", page, flags=re.MULTILINE)[1]


def paths_in(text: str) -> set[str]:
    """Files and folders that a page names as code."""
    named = re.findall(r"`((?:skdpnoise|tests|benchmarks|docs|examples)/[^`\s]*)`", text)
    return set(named) | set(re.findall(r"`([\w.]+\.(?:toml|md|cff))`", text))


def commands_in(text: str) -> set[str]:
    """Benchmarks and targets of make that a page tells to run."""
    benchmarks = re.findall(r"python -m benchmarks (\w+)", text)
    targets = re.findall(r"(?:`|^)make ([\w-]+)", text, flags=re.MULTILINE)
    return {f"benchmarks/{name}.py" for name in benchmarks} | {f"make {name}" for name in targets}


@pytest.mark.parametrize("name", FOR_PEOPLE)
def test_pages_for_people_name_files_and_commands_that_are_there(name):
    text = (ROOT / name).read_text("utf-8")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    there = {f"make {target}" for target in targets}
    named = paths_in(text) | commands_in(text)
    assert named
    assert [one for one in sorted(named) if one not in there and not (ROOT / one).exists()] == []


def test_names_that_contributors_are_sent_to_are_in_the_files_that_are_named():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for name, path in {
        "_slope": "skdpnoise/kernels/_kernels.py",
        "LOSSES": "skdpnoise/kernels/losses.py",
        "PrivateLinearModel": "skdpnoise/linear_model/_model.py",
        "choose_defaults": "skdpnoise/linear_model/_tuned.py",
        "PrivateEstimator": "skdpnoise/base/private_fit.py",
        "read_table": "skdpnoise/data/tables.py",
        "register_private": "skdpnoise/base/register.py",
        "Session": "skdpnoise/accounting/session.py",
        "ENTRIES": "tests/contracts/_register.py",
        "SOUND": "benchmarks/_audit_cases.py",
        "LINE": "tests/test_imports.py",
    }.items():
        assert f"`{name}`" in text or f"`@{name}`" in text
        assert path in text
        assert re.search(rf"^(?:def |class )?{name}\b", (ROOT / path).read_text("utf-8"), re.M)


def test_every_private_estimator_is_in_the_register_of_the_tests():
    ours = {
        cls
        for cls in register._private
        if cls.__module__.startswith("skdpnoise.")
        # An example that ran before may have registered a class of its own.
        and getattr(sys.modules[cls.__module__], cls.__qualname__, None) is cls
    }
    assert {entry.make for entry in [*ENTRIES, *NETWORKS] if entry.spends} == ours


def test_one_version_and_one_licence_are_stated_everywhere():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert skdpnoise.__version__ == PROJECT["version"] == field(citation, "version")
    assert PROJECT["license"] == field(citation, "license")
    assert [author["name"] for author in PROJECT["authors"]] == re.findall(
        r"^  - name: (.+)$", citation, flags=re.MULTILINE
    )


def oldest(what: str) -> list[str]:
    """What the Makefile and the workflows ask for."""
    command = [sys.executable, str(ROOT / ".ci" / "oldest.py"), what]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_the_oldest_versions_are_those_that_the_ranges_begin_with():
    pins = {pin.name: pin for pin in map(Requirement, oldest("pins"))}
    ranges = [Requirement(text) for text in PROJECT["dependencies"]]
    assert {one.name for one in ranges} == pins.keys() - {"polars", "dask", "pyarrow"}
    for one in ranges:
        (pin,) = pins[one.name].specifier
        assert pin.operator == "=="
        assert pin.version in one.specifier
        assert str(one.specifier) == f">={pin.version}"


def test_what_runs_with_the_oldest_versions_is_there():
    folders = oldest("tests")
    assert "tests/contracts" in folders
    assert all((ROOT / folder).is_dir() for folder in folders)


def test_hooks_check_with_a_ruff_that_the_tests_accept():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    revision = re.search(r"/ruff-pre-commit\n +rev: v(\S+)", hooks)[1]
    tested = map(Requirement, PROJECT["optional-dependencies"]["test"])
    (ruff,) = [one for one in tested if one.name == "ruff"]
    assert revision in ruff.specifier


@every_workflow
def test_a_workflow_may_read_and_no_more_and_its_actions_have_a_version(path):
    text = path.read_text("utf-8")
    assert "\npermissions:\n  contents: read\n" in text
    assert "\nconcurrency:\n" in text
    actions = re.findall(r"uses: (\S+)", text)
    assert actions
    for action in actions:
        own = action.startswith("./") and (ROOT / action).exists()
        assert own or re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", action), action


def test_only_a_release_may_write_and_only_where_it_must():
    for path in WORKFLOWS:
        granted = re.findall(r"^ +([\w-]+): write\b", path.read_text("utf-8"), flags=re.MULTILINE)
        assert granted == (["id-token", "contents"] if path.name == "release.yml" else [])


def test_a_source_distribution_holds_nothing_that_git_leaves_out():
    manifest = (ROOT / "MANIFEST.in").read_text("utf-8")
    grafted = set(re.findall(r"^graft (\S+)$", manifest, flags=re.MULTILINE))
    left_out = set(re.findall(r"^(?:prune|exclude) (\S+)$", manifest, flags=re.MULTILINE))
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    made = {path.rstrip("/") for path in ignored if path.partition("/")[0] in grafted}
    assert {"docs/api", "docs/gallery", "benchmarks/results"} <= made
    assert made <= left_out


def test_the_checks_see_what_is_missing():
    text = "Run `make nothing` or `python -m benchmarks nothing`; see `tests/nothing.py`, `no.md`."
    assert paths_in(text) == {"tests/nothing.py", "no.md"}
    assert commands_in(text) == {"make nothing", "benchmarks/nothing.py"}
    assert field("a: 1\nversion:  2.0\n", "version") == "2.0"
