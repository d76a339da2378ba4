"""Integers meet noise, and a charge is made, in a session and in the rooms that define both."""

import ast
from collections import Counter
from pathlib import Path

import skdpnoise

ROOT = Path(skdpnoise.__file__).parent
# What defines mechanisms, charges and ledgers; everything else asks a session.
DEFINE = ("accounting", "ledger", "mechanisms", "noises", "sampling")
# Rooms that still do it by themselves, and in how many places: to shrink, and at last to go.
LEFT: dict[str, int] = {}
FUNCTIONS = {"add_quanta", "noisy_cells", "note_charge", "plus_noise"}
METHODS = {"charge", "release", "sample", "select", "shown"}
OF_OTHERS = {"np", "sa"}  # numpy and SQLAlchemy have a `select` of their own


def receiver(node):
    """The last name of what a method is called on."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_site(node):
    """Return True if a name or an attribute samples, adds noise or charges without a session."""
    if isinstance(node, ast.Name):
        return node.id in FUNCTIONS
    if not isinstance(node, ast.Attribute):
        return False
    on = receiver(node.value)
    return node.attr in METHODS and on not in OF_OTHERS and not on.endswith("session")


def called_or_handed_on(call):
    """Return the functions that a call calls, or hands on to be called there."""
    return [call.func, *call.args, *(keyword.value for keyword in call.keywords)]


def sites(source):
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [one.lineno for call in calls for one in called_or_handed_on(call) if is_site(one)]


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
        "noisy_cells(m, cells, counts, noise)",
        "mechanism.sample(rng)",
        "self.mechanism.release(sums, rng)",
        "chooser.select(utilities, rng)",
        "made.shown(counts, rng)",
        "run.account.charge('sums', mechanism)",
        "note_charge('sums', mechanism)",
        "partial(ledger.charge, 'fit', cost)",
        "Session(rng, adjacency, account.charge)",
        "private_mean(values, charge=self.account.charge)",
        "map(mechanism.release, sums)",
        "Session(rng, adjacency, charge=note_charge)",
    ):
        assert sites(f"def fit(self):\n    return {call}\n") == [2], call
    for call in (
        *("session.release(*how)", "self.session.add(*how)", "np.select(a, b)"),
        "private_mean(values, charge=session.charge)",
    ):
        assert sites(call) == [], call
