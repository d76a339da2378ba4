"""Texts that docstrings share are put in where their marks stand."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skdpnoise._utils import shared_texts as module
from skdpnoise._utils.shared_texts import shared_texts

PACKAGE = Path(__file__).resolve().parents[2] / "skdpnoise"
MARK = re.compile(r"%\((\w+): ([\w, *]+)\)s")


def marks():
    """File, section and name of every mark in the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path != Path(module.__file__):
            for section, names in MARK.findall(path.read_text(encoding="utf-8")):
                yield from ((path.name, section, name) for name in names.split(", "))


def test_every_shared_text_is_used_and_more_than_once():
    used = [(section, name) for _, section, name in marks()]
    kept = {(section, name) for section, texts in module._TEXTS.items() for name in texts}
    assert kept == set(used)
    assert {one for one in kept if used.count(one) == 1} == set()


def test_marks_in_a_class_and_its_methods_are_replaced():
    @shared_texts
    class Model:
        """Fit.

        %(estimators: epsilon, l1_ratio)s
            Between 0 and 1.
        """

        def fit(self, X, groups=None):
            """Fit.

            %(fits: groups)s
            """

        @classmethod
        def of(cls, ax):
            """%(displays: ax)s."""  # not alone on its line, so it is text

        @property
        def privacy_(self):
            """Report.

            %(estimators: privacy_)s
            """

    text = inspect.cleandoc(Model.__doc__)
    assert text.splitlines()[2:4] == [
        "epsilon : float, default=1.0",
        "    The guarantee's ε > 0: smaller is more private.",
    ]
    assert text.endswith("1 for the lasso and 0 for ridge.\n    Between 0 and 1.")
    assert "groups : array-like" in Model.fit.__doc__
    assert "privacy_ : PrivacyReport" in Model.privacy_.__doc__
    assert Model.of.__doc__ == "%(displays: ax)s."


@pytest.mark.parametrize("mark", ["%(estimators: nothing)s", "%(nowhere: epsilon)s"])
def test_an_unknown_mark_is_an_error(mark):
    def function():
        pass

    function.__doc__ = mark
    with pytest.raises(KeyError):
        shared_texts(function)


def test_no_docstring_of_the_package_keeps_a_mark():
    left = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not MARK.search(text) or path == Path(module.__file__):
            continue
        name = ".".join(("skdpnoise", *path.relative_to(PACKAGE).with_suffix("").parts))
        loaded = importlib.import_module(name)
        for one in vars(loaded).values():
            if getattr(one, "__module__", None) == name:
                inner = vars(one).values() if inspect.isclass(one) else ()
                left += [x for x in (one, *inner) if MARK.search(getattr(x, "__doc__", "") or "")]
    assert left == []


@pytest.mark.slow
def test_without_docstrings_the_package_is_imported_all_the_same():
    script = "import skdpnoise; print(skdpnoise.BoundsClipper.__doc__, skdpnoise.DPPCA().epsilon)"
    answer = subprocess.run(
        [sys.executable, "-OO", "-c", script], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["None", "1.0"]
