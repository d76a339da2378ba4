"""Lines, parameters and imports are counted as they stand in the text."""

import json

import pytest

from benchmarks.size import (
    Size,
    SourceFile,
    borrowed,
    circles,
    exported,
    import_graph,
    long_parameter_lists,
    main,
    newer,
)

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
def package(tmp_path):
    """Write files of a package and return them, parsed."""

    def write(**sources):
        folder = tmp_path / "skdpnoise"
        for name, source in sources.items():
            path = folder / f"{name.replace('__in__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8")
        return [SourceFile(path, folder) for path in sorted(folder.rglob("*.py"))]

    return write


def test_lines_of_code_hold_no_blanks_no_comments_and_no_docstrings(package):
    (file,) = package(a=SOURCE)
    assert file.size() == Size(code=18, docstring=5)
    assert file.size("seven") == Size(code=5, docstring=1)
    assert file.size("Kept._six") == Size(code=2, docstring=0)


def test_what_is_public_may_take_as_many_parameters_as_it_likes(package):
    files = package(a=SOURCE, __init__='__all__ = ["Kept"]\nfrom skdpnoise.a import Kept\n')
    assert exported(files) == {"Kept"}
    assert sorted(long_parameter_lists(files, exported(files))) == [
        ("a.py:Kept._seven", 7),
        ("a.py:Kept._seven.inner", 8),
        ("a.py:seven", 7),
    ]
    assert ("a.py:Kept.eight", 8) in long_parameter_lists(files, frozenset())


def test_a_circle_is_found_within_functions_and_in_types_too(package):
    files = package(
        a="from skdpnoise import b",
        b="def f():\n    from skdpnoise.c import g",
        c="if TYPE_CHECKING:\n    import skdpnoise.a",
        d="from skdpnoise import a",
    )
    assert circles(import_graph(files)) == [["skdpnoise.a", "skdpnoise.b", "skdpnoise.c"]]


def test_an_underscore_file_belongs_to_its_folder(package):
    files = package(
        one__in____init__="from skdpnoise.one._own import f",
        one__in___own="f = 1",
        one__in__other="from skdpnoise.one import _own",
        two__in__a="from skdpnoise.one._own import f",
    )
    assert borrowed(files) == [("skdpnoise.two.a", "skdpnoise.one._own")]


def test_new_features_are_folders_files_and_definitions(package):
    files = package(a=SOURCE, room__in__b="x = 1\n", room__in__c="y = 2\n")
    new = newer(files, {"one": ["room"], "two": ["a.py:seven", "a.py:Kept._six"]})
    assert new == {"one": Size(2, 0), "two": Size(7, 1)}
    alone = newer(files, {"three": ["a.py:seven"]})["three"]
    assert newer(files, {"three": ["a.py +3", "a.py:seven"]})["three"] == alone + Size(3, 0)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (["gone.py"], "not there"),
        (["gone.py +3"], "not there"),
        (["a.py:gone"], "not there"),
        (["roo"], "not there"),
        (["room", "room/b.py"], "twice"),
        (["a.py", "a.py:seven"], "twice"),
    ],
)
def test_a_list_that_does_not_fit_the_package_is_refused(package, places, message):
    files = package(a=SOURCE, room__in__b="x = 1\n")
    with pytest.raises(ValueError, match=message):
        newer(files, {"one": places})


@pytest.mark.slow
def test_the_kept_list_fits_the_package(tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 0
    kept = json.loads((tmp_path / "size.json").read_text(encoding="utf-8"))
    assert kept["first_edition"]["code"] > 0
    assert "first edition" in capsys.readouterr().out
