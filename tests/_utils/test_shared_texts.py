"""Texts that docstrings share are put in where their marks stand."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skdpnoise
from skdpnoise import neural_network
from skdpnoise._utils import shared_texts as module
from skdpnoise._utils.shared_texts import shared_texts

PACKAGE = Path(__file__).resolve().parents[2] / "skdpnoise"
MARK = re.compile(r"%\((\w+): ([\w, *]+)\)s")
LEFT = re.compile(r"^ *%\(\w", re.MULTILINE)


def marked():
    """Section and name of every text for which a mark in the package stands."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        # The first paragraphs of the file of the texts say what a mark is.
        text = text.partition("\nestimators\n---")[2] if path == Path(module.__file__) else text
        for section, names in MARK.findall(text):
            yield from ((section, name) for name in names.split(", "))


def inherited():
    """Section and name of every text of a parameter that a public class shows."""
    rooms = skdpnoise, neural_network
    public = {getattr(room, name) for room in rooms for name in room.__all__}
    for kind in [one for one in public if isinstance(one, type)]:
        shown = inspect.getdoc(kind) or ""
        for section in {base.__name__ for base in kind.__mro__} & set(module.TEXTS):
            yield from ((section, n) for n, text in module.TEXTS[section].items() if text in shown)


def test_every_shared_text_is_used_and_more_than_once():
    used = [*marked(), *inherited()]
    kept = {(section, name) for section, texts in module.TEXTS.items() for name in texts}
    assert kept == set(used)
    assert {one for one in kept if used.count(one) == 1} == set()


def test_marks_in_a_class_and_its_methods_are_replaced():
    @shared_texts
    class Model:
        """Fit.

        %(PrivateEstimator: epsilon)s
        %(DescentParameters: l1_ratio)s
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


def test_a_whole_section_stands_under_its_title():
    @shared_texts
    def released(y):
        """Release.

        Parameters
        ----------
        y : array-like
            Labels.
        %(displays: Returns, Raises, NotFittedError)s

        Examples
        --------
        """

    lines = inspect.cleandoc(released.__doc__).splitlines()
    at = lines.index("Returns")
    assert lines[at - 2 :][:9] == [
        "    Labels.",
        "",
        "Returns",
        "-------",
        "Display",
        "    It is drawn already.",
        "",
        "Raises",
        "------",
    ]
    assert lines[lines.index("Examples") - 3 :][:2] == [
        "NotFittedError",
        "    If it was not fitted.",
    ]


@pytest.mark.parametrize("mark", ["%(fits: nothing)s", "%(nowhere: X)s"])
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
        if not LEFT.search(text) or path == Path(module.__file__):
            continue
        name = ".".join(("skdpnoise", *path.relative_to(PACKAGE).with_suffix("").parts))
        loaded = importlib.import_module(name)
        for one in vars(loaded).values():
            if getattr(one, "__module__", None) == name:
                inner = vars(one).values() if inspect.isclass(one) else ()
                left += [x for x in (one, *inner) if LEFT.search(getattr(x, "__doc__", "") or "")]
    assert left == []


@pytest.mark.slow
def test_without_docstrings_the_package_is_imported_all_the_same():
    script = "import skdpnoise; print(skdpnoise.BoundsClipper.__doc__, skdpnoise.DPPCA().epsilon)"
    answer = subprocess.run(
        [sys.executable, "-OO", "-c", script], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["None", "1.0"]
