"""What is printed for a report of a fault: what a fit depends on, and nothing of who runs it."""

from __future__ import annotations

import platform
import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

import skdpnoise
from skdpnoise.inspection import versions

ROOT = Path(__file__).resolve().parents[2]


def names_of(requirements):
    return {Requirement(one).name for one in requirements} - {"skdpnoise"}


def test_all_that_users_may_install_is_named_once_and_nothing_else(capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    users = [extras[name] for name in extras if name not in ("test", "docs", "all")]
    skdpnoise.show_versions()
    head, listed = capsys.readouterr().out.split("\n\n")
    found = [line.partition(": ")[0] for line in listed.splitlines()]
    assert sorted(found) == sorted(names_of(project["dependencies"]).union(*map(names_of, users)))
    assert [line.partition(": ")[0] for line in head.splitlines()] == [
        *("skdpnoise", "python", "system")
    ]


def test_no_folder_and_no_machine_is_named(capsys):
    skdpnoise.show_versions()
    words = set(re.split(r"[\s:,()]+", capsys.readouterr().out))
    assert platform.node() not in words
    assert not any("/" in word or "\\" in word for word in words)


def test_what_is_not_installed_is_said_to_be_so(capsys, monkeypatch):
    lines = ['plain>=1; extra == "plot"', "skdpnoise[plot]", "numpy>=2", 'ruff; extra == "test"']
    monkeypatch.setattr(versions, "requires", lambda name: lines)
    skdpnoise.show_versions()
    listed = capsys.readouterr().out.partition("\n\n")[2].splitlines()
    assert [line.partition(": ")[0] for line in listed] == ["numpy", "plain"]
    assert listed[1] == "plain: not installed"
