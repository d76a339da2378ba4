"""All heavy checks run, but where a good commit is named: then what changed since decides."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ("changed.py", "oldest.py")
EVERYTHING = ["test-docs", "dist", "test-oldest", "test-torch", "mutants"]
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Project:
    """A small repository with the scripts, on the branch `main`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in SCRIPTS:
            self.write(f".ci/{name}", (ROOT / ".ci" / name).read_text("utf-8"))

    def write(self, name: str, text: str = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, *command: str, **variables: str) -> str:
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        kept = {k: v for k, v in os.environ.items() if k != "SKDPNOISE_GREEN" and k[:4] != "GIT_"}
        return subprocess.run(
            command,
            cwd=self.root,
            env={**kept, **quiet, **variables},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def git(self, *words: str) -> str:
        return self.run("git", "-c", "user.name=N", "-c", "user.email=n@example.org", *words)

    def commit(self, *names: str) -> None:
        for name in names:
            self.write(name)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "x")

    def said(self, what: str, **variables: str) -> list[str]:
        return self.run(sys.executable, ".ci/changed.py", what, **variables).split()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write(".gitignore", "__pycache__/\n")
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit("README.md")
    return made


def test_without_history_everything_has_changed(project, tmp_path):
    assert project.said("targets") == EVERYTHING
    assert project.said("files") == ["."]
    bare = Project(tmp_path / "no repository")
    assert bare.said("targets", GIT_CEILING_DIRECTORIES=str(tmp_path)) == EVERYTHING
    project.commit("docs/index.md")
    project.git("clone", "--quiet", "--depth=1", project.root.as_uri(), str(tmp_path / "shallow"))
    shallow = Project(tmp_path / "shallow")
    assert shallow.said("targets") == EVERYTHING


@pytest.mark.slow
def test_the_last_commit_counts_and_what_is_not_committed(project):
    project.commit("docs/index.md")
    assert project.said("targets") == EVERYTHING
    assert project.said("files") == ["docs/index.md"]
    project.commit("README.md", "tests/plotting/test_x.py")
    assert project.said("targets", SKDPNOISE_GREEN="HEAD~1") == ["mutants"]
    project.write("tests/plotting/test_x.py", "changed = 1")
    project.write("skdpnoise/new.py")
    assert project.said("targets", SKDPNOISE_GREEN="HEAD") == EVERYTHING
    assert project.said("files") == ["skdpnoise/new.py", "tests/plotting/test_x.py"]


def test_all_commits_of_a_branch_count(project):
    project.git("switch", "--quiet", "--create", "mine")
    project.commit("tests/contracts/test_x.py")
    project.commit("CHANGELOG.md")
    assert project.said("files") == ["CHANGELOG.md", "tests/contracts/test_x.py"]
    assert project.said("targets", SKDPNOISE_GREEN="main") == ["test-oldest", "mutants"]
    project.git("rm", "--quiet", "README.md")
    project.commit("docs/index.md")
    assert "README.md" in project.said("files")


def test_the_commit_that_is_known_to_be_good_may_be_named(project):
    good = project.git("rev-parse", "HEAD").strip()
    project.commit("docs/index.md")
    project.commit("CHANGELOG.md")
    assert project.said("targets", SKDPNOISE_GREEN=good) == ["test-docs"]
    assert project.said("targets", SKDPNOISE_GREEN="HEAD") == []
    assert project.said("targets", SKDPNOISE_GREEN="0" * 40) == EVERYTHING


@pytest.mark.parametrize("name", ["pyproject.toml", "Makefile", ".ci/run"])
def test_how_things_are_run_asks_for_everything(project, name):
    project.commit(name)
    assert project.said("targets", SKDPNOISE_GREEN="HEAD~1") == EVERYTHING


def test_targets_are_in_the_makefile_and_places_in_the_project(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / ".ci")
    import changed

    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert list(changed.TARGETS) == EVERYTHING
    assert set(changed.TARGETS) <= set(targets)
    for place in {place for places in changed.TARGETS.values() for place in places}:
        folder, _, start = place.rpartition("/")
        assert any(path.name.startswith(start) for path in (ROOT / folder).iterdir()), place
