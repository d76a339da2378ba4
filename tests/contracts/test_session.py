"""Integers meet noise, and a charge is made, in a session and in the rooms that define both."""

import ast
from collections import Counter
from pathlib import Path

import skdpnoise

ROOT = Path(skdpnoise.__file__).parent
# What defines mechanisms, charges and ledgers; everything else asks a session.
DEFINE = ("accounting", "ledger", "mechanisms", "noises", "sampling")
# Rooms that still do it by themselves, and in how many places: to shrink, and at last to go.
LEFT = {
    "model_selection": 8,
}
FUNCTIONS = {"add_quanta", "adder", "exact_release", "noisy_cells", "note_charge", "plus_noise"}
METHODS = {"charge", "release", "sample", "select", "shown"}
OF_OTHERS = {"np", "sa"}  # numpy and SQLAlchemy have a `select` of their own


def receiver(node):
    """The last name of what a method is called on."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_site(call):
    """Whether a call samples or adds noise, or charges, without a session."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in FUNCTIONS
    if not isinstance(function, ast.Attribute):
        return False
    on = receiver(function.value)
    return function.attr in METHODS and on not in OF_OTHERS and not on.endswith("session")


def sites(source):
    tree = ast.parse(source)
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and is_site(node)]


def found():
    files = (path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
    return {
        str(path): lines
        for path in files
        if path.parts[0] not in DEFINE and (lines := sites((ROOT / path).read_text()))
    }


def test_noise_is_added_and_charged_for_in_a_session_only():
    by_room = Counter()
    for path, lines in found().items():
        by_room[Path(path).parts[0]] += len(lines)
    assert not set(by_room) - set(LEFT), {
        path: lines for path, lines in found().items() if Path(path).parts[0] not in LEFT
    }
    for room, most in LEFT.items():
        assert by_room[room] <= most, f"{room} has more places than before"
        assert by_room[room], f"{room} has no such place any more: take it from the list"


def test_the_walk_sees_each_way_to_go_round_a_session():
    for call in (
        "plus_noise(m, sums, noise)",
        "adder(m)(1, 2)",
        "noisy_cells(m, cells, counts, noise)",
        "mechanism.sample(rng)",
        "self.mechanism.release(sums, rng)",
        "exact_release(m, rows, parts, rng)",
        "chooser.select(utilities, rng)",
        "made.shown(counts, rng)",
        "run.account.charge('sums', mechanism)",
        "note_charge('sums', mechanism)",
    ):
        assert sites(f"def fit(self):\n    return {call}\n") == [2], call
    for call in ("session.release(*how)", "self.session.add(*how)", "np.select(a, b)"):
        assert sites(call) == [], call
