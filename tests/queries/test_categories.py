"""Categories from private columns: the guarantee by force, chances exact, nothing told by order."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise.ledger import BudgetExceededError, PrivacyLedger
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee
from skdpnoise.queries import CategoryMechanism, private_categories
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, every_pair, quick
from tests.contracts._register import Notebook

GUARANTEE = PrivacyGuarantee(1.0, 1e-6)
KINDS = [
    (noise, adjacency)
    for noise in ("iid_laplace", "iid_gaussian")
    for adjacency in ("replace_one", "add_remove")
]


def coarse(noise, adjacency, scale=1.5, threshold=6.0, n_columns=1, bits=3):
    """Return a mechanism whose laws are short enough to be written down."""
    cells = n_columns * (2 if adjacency == "replace_one" else 1)
    profile = SensitivityProfile(np.ones(cells), l1=float(cells), l2=math.sqrt(cells))
    additive = AdditiveMechanism(noise, np.full(cells, scale), bits, profile)
    return CategoryMechanism(additive, threshold, adjacency)


def law(mechanism, count):
    """Return the probabilities of what a cell shows: nothing, or each number from the limit on."""
    if count == 0:
        return np.eye(1, 400)[0]
    made = mechanism.additive
    limit = math.ceil(mechanism.threshold / mechanism.grid_size)
    steps = round(count / mechanism.grid_size)
    ends = (np.arange(limit, limit + 400) - steps - 0.5) * 2.0**-made.bits
    tails = np.asarray(made.family.sf(ends))
    return np.r_[1.0 - tails[0], -np.diff(tails)]


def hockey_stick(first, second, epsilon):
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


@each_value(1)
@pytest.mark.parametrize(("noise", "adjacency"), KINDS)
@pytest.mark.parametrize("threshold", [2.5, 6.0])
def test_no_neighbours_are_told_apart_better_than_is_charged_for(noise, adjacency, threshold):
    mechanism = coarse(noise, adjacency, threshold=threshold)
    loss, closest = mechanism.privacy_loss(), 0.0
    pairs = [(c, c - 1) for c in (1, 2, 3, 5, 9)]
    moves = [[pair] for pair in pairs]
    if adjacency == "replace_one":  # one less here, one more there
        moves = [[one, other[::-1]] for one, other in itertools.product(pairs, repeat=2)]
    for cells in moves:
        laws = [tuple(law(mechanism, count) for count in pair) for pair in cells]
        first, second = laws[0]
        for one, other in laws[1:]:
            first, second = np.outer(first, one).ravel(), np.outer(second, other).ravel()
        for epsilon in (0.0, 0.3, 0.8, 1.4, 3.0, 6.0):
            most = max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
            claimed = loss.delta(epsilon)
            assert most <= claimed * (1.0 + 1e-9)
            closest = max(closest, most / claimed)
    # The charge counts every cell as one that may vanish and as one that stays.
    assert closest > (0.9 if adjacency == "add_remove" else 0.45)


@every_pair
@pytest.mark.parametrize(("noise", "adjacency"), KINDS)
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("n_columns", [1, 4])
def test_it_is_within_the_guarantee_and_uses_nearly_all_of_it(noise, adjacency, epsilon, n_columns):
    guarantee = PrivacyGuarantee(epsilon, 1e-6, adjacency)
    values = np.full((5, n_columns), "a")
    made = private_categories(values, guarantee, noise=noise, random_state=0).mechanism
    assert made.n_columns == n_columns
    loss = made.privacy_loss()
    assert loss.delta(epsilon) <= 1e-6
    assert loss.epsilon(1e-6) > 0.99 * epsilon
    cells = n_columns * (2 if adjacency == "replace_one" else 1)
    assert 0.45e-6 < cells * made.chance(1) <= 0.5e-6
    auto = private_categories(values, guarantee, random_state=0).mechanism
    assert auto.threshold <= made.threshold


@pytest.mark.parametrize(("noise", "adjacency"), KINDS)
def test_the_chance_is_that_of_rounded_noise(noise, adjacency):
    mechanism, words = coarse(noise, adjacency), SeededWords(0)
    for count in (1, 2, 5, 6, 8, 20):
        assert mechanism.chance(count) == pytest.approx(1.0 - law(mechanism, count)[0], rel=1e-9)
        shown, noisy = mechanism.shown([count] * 40_000, words)
        chance = mechanism.chance(count)
        assert abs(shown.mean() - chance) < 5.0 * math.sqrt(chance / 40_000) + 1e-4
        assert (noisy >= mechanism.threshold).all()
        assert (noisy / mechanism.grid_size == np.rint(noisy / mechanism.grid_size)).all()
    assert mechanism.chance(1) < mechanism.chance(2) < mechanism.chance(7) <= mechanism.chance(99)


def test_a_count_that_nobody_has_is_not_looked_at():
    mechanism = coarse("iid_laplace", "replace_one")
    shown, noisy = mechanism.shown([], SeededWords(0))
    assert (shown.size, noisy.size) == (0, 0)
    for values in ([], [None, np.nan], pd.Series([], dtype=str), np.empty((0, 2), dtype=object)):
        found = private_categories(values, GUARANTEE, random_state=0)
        assert all(names == () for names in found.categories)


TABLE = ["b"] * 300 + ["a"] * 200 + ["c"] * 150 + ["Ann"]


@pytest.mark.slow
def test_neither_the_order_of_records_nor_that_of_categories_shows():
    rng = np.random.default_rng(0)
    first = private_categories(TABLE, GUARANTEE, random_state=3)
    assert first.categories == (("a", "b", "c"),)
    for _ in range(5):
        again = private_categories(rng.permutation(TABLE), GUARANTEE, random_state=3)
        assert again.categories == first.categories
        assert again.counts[0].tolist() == first.counts[0].tolist()
    assert np.abs(first.counts[0] - [200, 300, 150]).max() < 5.0 * first.standard_error


def test_equal_values_are_one_category_and_what_is_no_category_is_not_counted():
    class Odd:
        def __hash__(self):
            return hash("Odd")

    values = [1, 1.0, "1", 0.0, -0.0, 2.5, None, np.nan, np.inf, Odd(), ("a",), b"a", 1j, pd.NA]
    mixed = [value for value in values for _ in range(200)]
    found = private_categories(mixed, GUARANTEE, random_state=0)
    assert [type(name).__name__ for name in found.categories[0]] == ["int", "int", "float", "str"]
    assert found.categories[0] == (0, 1, 2.5, "1")
    assert found.counts[0][:2].min() > 350.0  # 1 and 1.0 are one, as both zeros are
    truths = private_categories([True, False, None] * 300, GUARANTEE, random_state=0)
    assert list(map(type, truths.categories[0])) == [bool, bool]
    with pytest.raises(ValueError, match="the list has both"):
        private_categories([True, 1] * 300, GUARANTEE)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": TABLE, "n": [1] * 651}),
        pd.DataFrame({"x": TABLE, "n": [1] * 651}).astype({"x": "category", "n": "Int64"}),
        pl.DataFrame({"x": TABLE, "n": [1] * 651}),
        np.array([[name, 1] for name in TABLE], dtype=object),
    ],
    ids=["pandas", "nullable", "polars", "array"],
)
def test_frames_have_columns_of_their_own(frame):
    found = private_categories(frame, GUARANTEE, random_state=0)
    assert found.categories == (("a", "b", "c"), (1,))
    assert found.mechanism.n_columns == 2
    assert "column 1: 1 categories: 1" in str(found)
    assert "NOT PRIVATE" in str(found)


def test_columns_of_one_name_are_columns():
    frame = pd.DataFrame([["a", "b"]] * 300, columns=["x", "x"])
    assert private_categories(frame, GUARANTEE, random_state=0).categories == (("a",), ("b",))


def test_missing_values_of_nullable_columns_are_no_category():
    column = pd.array([1, None] * 300, dtype="Int64")
    for frame in (pd.DataFrame({"n": column}), pl.DataFrame({"n": [1, None] * 300})):
        assert private_categories(frame, GUARANTEE, random_state=0).categories == ((1,),)


CONTAINERS = {
    "list": lambda values: values,
    "array of objects": lambda values: np.array([*values, None], dtype=object)[:-1],
    "series": lambda values: pd.Series(values, dtype="Int64"),
    "categories": lambda values: pd.Series(pd.Categorical(values, categories=[1, 2])),
    "index of categories": lambda values: pd.CategoricalIndex(values, categories=[1, 2]),
    "frame of categories": lambda values: pd.DataFrame(
        {"n": pd.Categorical(values, categories=[1, 2])}
    ),
    "polars": lambda values: pl.Series(values, dtype=pl.Int64),
    "polars frame": lambda values: pl.DataFrame({"n": pl.Series(values, dtype=pl.Int64)}),
    "arrow": lambda values: pytest.importorskip("pyarrow").array(values, type="int64"),
    "arrow table": lambda values: pytest.importorskip("pyarrow").table({"n": values}),
}


@quick("arrow table", "array of objects", "index of categories", "polars")
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_one_missing_value_does_not_change_how_the_others_are_read(container):
    for values in ([1, 2] * 100, [1, 2] * 99 + [1, None]):
        found = private_categories(container(values), PrivacyGuarantee(5.0, 1e-3), random_state=0)
        assert [type(name) for name in found.categories[0]] == [int, int]
        assert found.categories == ((1, 2),)


class Loud:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("secret")


@quick("str", "object", "list", "Loud")
@pytest.mark.parametrize(
    "odd",
    [("a", "b"), ["a"], np.array(["a", "b"]), Loud(), 10**400, "\ud800", np.ma.masked, object()],
    ids=lambda odd: type(odd).__name__,
)
def test_one_odd_record_of_a_list_changes_nothing_but_its_own_count(odd):
    found = private_categories([*TABLE, odd], GUARANTEE, random_state=0)
    alone = private_categories([odd], GUARANTEE, random_state=0)
    assert found.categories == (("a", "b", "c"),)
    assert alone.categories == ((),)


def test_counts_beyond_64_bits_of_steps_are_clipped_and_still_shown():
    one = SensitivityProfile([1.0], l1=1.0, l2=1.0)
    fine = AdditiveMechanism("iid_laplace", np.array([1.0]), 52, one)
    mechanism = CategoryMechanism(fine, 30.0, "add_remove")
    for count in (2047, 5000, 10**15, 10**30):
        assert mechanism.chance(count) == 1.0
        with np.errstate(all="raise"):
            assert mechanism.shown([count] * 200, SeededWords(0))[0].all()
    with pytest.raises(ValueError, match="'threshold'"):
        dataclasses.replace(mechanism, threshold=1e300)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises((TypeError, ValueError), match="'n_records'"):
            mechanism.chance(wrong)


def test_it_is_charged_before_a_word_is_drawn(monkeypatch):
    ledger = Notebook()

    def stop(*_):
        assert len(ledger.charges) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(CategoryMechanism, "shown", stop)
    with pytest.raises(KeyboardInterrupt):
        private_categories(TABLE, GUARANTEE, ledger=ledger)
    assert ledger.charges[0]["guarantee"] == (1.0, 1e-6)


@pytest.mark.usefixtures("the_same_words")
def test_a_ledger_takes_the_exact_loss_and_refuses_what_is_too_much():
    ledger = PrivacyLedger("people", 1.5, 1e-5, storage="memory")
    private_categories(TABLE, GUARANTEE, ledger=ledger)
    assert ledger.total().epsilon <= 1.0
    with pytest.raises(BudgetExceededError):
        private_categories(TABLE, PrivacyGuarantee(1.4, 1e-5), ledger=ledger)
    assert ledger.total().n_charges == 1


@pytest.mark.parametrize(
    ("given", "kind", "named"),
    [
        ({"guarantee": PrivacyGuarantee(1.0)}, ValueError, "'guarantee'.*delta > 0.*public"),
        ({"guarantee": GaussianLoss(1.0)}, TypeError, "'guarantee'"),
        ({"noise": "inid_laplace"}, ValueError, "'noise'"),
        ({"noise": "iid_discrete_laplace"}, ValueError, "'noise'"),
        ({"noise": 3}, ValueError, "'noise'"),
        ({"adjacency": "none"}, ValueError, "'adjacency'"),
        ({"values": np.zeros((2, 2, 2))}, ValueError, "'values'"),
        ({"values": np.zeros((3, 0))}, ValueError, "'values'"),
        ({"values": pd.DataFrame(index=[0, 1])}, ValueError, "'values'"),
        ({"values": "text"}, ValueError, "'values'"),
        ({"values": np.ma.masked_array([1, 2])}, ValueError, "'values'"),
        ({"values": np.array(["2020"], dtype="M8[ns]")}, ValueError, "'values'.*dates"),
        ({"guarantee": PrivacyGuarantee(1.0, 1e-300)}, ValueError, "'guarantee'.*delta"),
        ({"ledger": 3}, TypeError, "'ledger'"),
        ({"random_state": "seed"}, (TypeError, ValueError), "random_state"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_the_charge(given, kind, named):
    ledger = Notebook()
    asked = {"values": TABLE, "guarantee": GUARANTEE, "ledger": ledger} | given
    with pytest.raises(kind, match=named):
        private_categories(**asked)
    assert ledger.charges == []


def test_a_mechanism_of_another_noise_for_some_cells_is_refused():
    made = coarse("iid_laplace", "replace_one")
    uneven = dataclasses.replace(made.additive, scale=np.array([1.5, 1.6]))
    with pytest.raises(ValueError, match="'additive'"):
        CategoryMechanism(uneven, 6.0)
