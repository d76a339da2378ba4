"""The pages name every public name, point at files that are there, and set no seeds."""

import ast
import doctest
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import skdpnoise

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES_OF_DOCS = sorted(DOCS.rglob("*.md"))
PAGES = [
    *(page for place in (".", ".github") for page in sorted((ROOT / place).glob("*.md"))),
    *PAGES_OF_DOCS,
]
SECTIONS = sorted({page.parent for page in PAGES_OF_DOCS} - {DOCS})
ROOMS = sorted(room.name for room in pkgutil.iter_modules(skdpnoise.__path__) if room.ispkg)
ROOMS.insert(ROOMS.index("kernels") + 1, "kernels.joint")

# Of scikit-learn: their seeds divide or make the data of an example, and nobody's noise.
MAY_BE_SEEDED = {"train_test_split", "KFold", "StratifiedKFold", "ShuffleSplit"}
# Passages that say what a seed does.
ABOUT_SEEDS = {("sharp_edges.md", "The seed")}
CLASSES = [
    getattr(skdpnoise, name)
    for name in (*skdpnoise.__all__, *skdpnoise.neural_network.__all__)
    if inspect.isclass(getattr(skdpnoise, name))
]
ESTIMATORS = [
    name
    for name in (*skdpnoise.__all__, *skdpnoise.neural_network.__all__)
    if hasattr(getattr(skdpnoise, name), "fit")
]


def section(page: str, title: str) -> str:
    """Text under a heading of the second level, up to the next."""
    after = page.partition(f"\n## {title}\n")[2]
    return after.partition("\n## ")[0]


def missing(names, text: str) -> list[str]:
    """Names that the text does not show as code."""
    return [name for name in names if f"`{name}`" not in text]


def broken_links(page: Path) -> list[str]:
    """Relative links of a page that lead to no file, or to no heading of a page."""
    links = re.findall(r"\]\(([^)\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    return [link for link in links if "://" not in link and not _leads_somewhere(page, link)]


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not anchor or anchor in anchors(target.read_text("utf-8")))


def anchors(text: str) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def in_toctrees(text: str) -> list[str]:
    """Pages that the toctrees of an index name."""
    trees = re.findall(r"^```{toctree}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.strip() for tree in trees for line in tree.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def pages_of(folder: Path) -> list[str]:
    """Pages of a folder, and the indices of the folders within it, as a toctree names them."""
    within = [*folder.glob("*.md"), *folder.glob("*/index.md")]
    names = [page.relative_to(folder).with_suffix("").as_posix() for page in within]
    return sorted(name for name in names if name != "index")


def seeds(text: str) -> list[str]:
    """Calls in the examples of a text by which somebody who copies them would set a seed."""
    found = []
    for example in doctest.DocTestParser().get_examples(text):
        found += [ast.unparse(call) for call in _seeded_calls(ast.parse(example.source))]
    # Blocks that are shown and not run.
    for block in re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        if ">>>" not in block:
            found += re.findall(r"random_state ?=|SeededWords\(", block)
    return found


def _seeded_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        given = [word.value for word in node.keywords if (word.arg or "").endswith("random_state")]
        secure = all(isinstance(value, ast.Constant) and value.value is None for value in given)
        if name == "SeededWords" or (name not in MAY_BE_SEEDED and not secure):
            yield node


def test_no_example_that_a_reader_may_copy_sets_a_seed():
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, title in ABOUT_SEEDS:
            if page.name == name:
                passage = section(text, title)
                assert seeds(passage)
                text = text.replace(passage, "")
        found[page] = seeds(text)
    assert {page: what for page, what in found.items() if what} == {}


def test_no_docstring_of_an_estimator_sets_a_seed():
    methods = [
        method for cls in CLASSES for name, method in vars(cls).items() if not name.startswith("_")
    ]
    texts = [*(cls.__doc__ for cls in CLASSES), *map(inspect.getdoc, methods)]
    assert [seed for text in texts for seed in seeds(text or "")] == []


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_a_picture_that_is_drawn_from_seeds_says_that_private_data_must_not_be():
    texts = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES}
    seeded = {name for name, text in texts.items() if any(_seeded_calls(ast.parse(text)))}
    saying = "can be drawn again: never with private data.\n"
    assert seeded == {name for name, text in texts.items() if saying in text}


def test_the_list_of_the_api_has_every_package_and_every_name_at_the_front():
    spec = spec_from_file_location("api_pages", ROOT / "docs" / "_extensions" / "api_pages.py")
    api_pages = module_from_spec(spec)
    spec.loader.exec_module(api_pages)
    listed = re.findall(r"^   (skdpnoise\.[\w.]+)$", api_pages.page(), flags=re.MULTILINE)
    rooms = {f"skdpnoise.{room}": import_module(f"skdpnoise.{room}") for room in ROOMS}
    assert listed == [room for room in rooms if room in listed]
    pages = {id(getattr(rooms[room], name)) for room in listed for name in rooms[room].__all__}
    behind = [
        (room, name)
        for room in rooms.keys() - set(listed)
        for name in rooms[room].__all__
        if id(getattr(rooms[room], name)) not in pages
    ]
    assert behind == []  # rooms that are not listed have no name of their own
    front = {name.rpartition(".")[2] for name in api_pages.names_at_the_front()}
    assert front >= {*skdpnoise.__all__, *skdpnoise.neural_network.__all__} - {"__version__"}


def test_the_page_that_helps_to_choose_an_estimator_names_all_of_them():
    page = (ROOT / "docs" / "start" / "which_estimator.md").read_text(encoding="utf-8")
    assert missing(ESTIMATORS, page) == []


def test_the_map_of_estimators_shows_each_class_once():
    drawn = (ROOT / "docs" / "pictures" / "which_estimator.py").read_text(encoding="utf-8")
    names = re.findall(r"(?:DP[A-Z]|Bounds)\w+", drawn)
    assert len(names) == len(set(names))
    # Two names of one class are one box.
    classes = {getattr(skdpnoise, name) for name in ESTIMATORS}
    assert {getattr(skdpnoise, name) for name in names} == classes


def test_links_lead_somewhere():
    found = {page: broken_links(page) for page in PAGES}
    assert {page: links for page, links in found.items() if links} == {}


def test_the_index_of_a_section_lists_each_of_its_pages_once():
    indices = {folder: (folder / "index.md").read_text(encoding="utf-8") for folder in SECTIONS}
    listed = {folder: sorted(in_toctrees(index)) for folder, index in indices.items()}
    assert listed == {folder: pages_of(folder) for folder in SECTIONS}


def test_the_checks_see_what_is_missing(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n## one\n`a` [x](no.md)\n\n"
        "## two, and 3\n`b` [y](page.md#two-and-3) [z](#four)\n"
    )
    assert missing(["a", "b"], section(page.read_text(), "one")) == ["b"]
    assert broken_links(page) == ["no.md", "#four"]
    (tmp_path / "index.md").write_text(
        "# Index\n\n```{toctree}\n:maxdepth: 1\n\npage\ngone\n```\n\n"
        "```{toctree}\nx/index\n```\n\nwords\n"
    )
    assert in_toctrees((tmp_path / "index.md").read_text()) == ["page", "gone", "x/index"]
    assert pages_of(tmp_path) == ["page"]
    shown = ">>> a = DPPCA(\n...     random_state=0)\n>>> m.set_params(b__random_state=rng)\n"
    assert seeds(shown) == ["DPPCA(random_state=0)", "m.set_params(b__random_state=rng)"]
    assert seeds(">>> train_test_split(X, random_state=0)\n>>> A(random_state=None)\n") == []
    assert seeds(">>> m.release(x, random_words(SeededWords(3)))\n") == ["SeededWords(3)"]
    assert seeds("```text\nDPPCA(random_state=1)\n```\n") == ["random_state="]
