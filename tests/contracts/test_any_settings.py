"""Linear models with settings and records drawn at random, on neighbours.

A replay gives the neighbour the released numbers of the first run. The noise must make up for no
more than is charged for, and all else must be the same: the model, its predictions, its labels,
errors and warnings.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from tests._cases import each_value, quick
from tests._replay import two_runs
from tests.contracts._register import MODELS, each

FEW = 40  # fits in one case
LAYOUTS = (sp.csr_array, sp.csc_matrix, sp.coo_array)


class Draw:
    """Settings of a model, a table and a neighbour, all of one seed."""

    def __init__(self, entry, seed):
        self.rng = np.random.default_rng(seed)
        self.make, self.kind = entry.make, entry.target
        self.takes = entry.make().get_params()
        self.n_columns, self.unit = int(self.rng.integers(1, 6)), float(self.power(-2, 3))
        self.sparse = entry.reads_sparse and self.chance(0.4)
        self.settings = {name: value for name, value in self.drawn() if name in self.takes}
        self.single = not self.sparse and self.chance(0.2)
        self.layout = LAYOUTS[seed % len(LAYOUTS)]

    def chance(self, share):
        return self.rng.random() < share

    def power(self, low, high):
        return 10.0 ** self.rng.integers(low, high + 1)

    def drawn(self):
        """Yield settings, few of which are at their defaults."""
        yield from self.public()
        yield "epsilon", float(10.0 ** self.rng.uniform(-1.0, 3.5))
        yield "delta", float(self.rng.choice([1e-6, 1e-3, 0.1]))
        yield "adjacency", str(self.rng.choice(["replace_one", "add_remove"]))
        yield "fit_intercept", self.chance(0.5)
        weights = {label: float(self.power(-2, 2)) for label in range(3)}
        some = {
            "solver": (0.8, "joint"),
            "n_passes": (0.8, int(self.rng.integers(1, 4))),
            "clip": (0.4, float(10.0 ** self.rng.choice([-30, -3, -1, 0, 1, 3, 30, 90]))),
            "alpha": (0.5, float(self.power(-6, 3))),
            "l1_ratio": (0.5, float(self.rng.random())),
            "class_weight": (0.5, "balanced" if self.chance(0.5) else weights),
            "smoothing": (0.4, float(self.rng.choice([0.01, 0.1, 1.0, 3.0]))),
            "threshold": (0.4, float(self.power(-4, 3))),
        }
        yield from ((name, value) for name, (share, value) in some.items() if self.chance(share))

    def public(self):
        """Yield what may be public of the data."""
        rng, unit = self.rng, np.full(self.n_columns, self.unit)
        yield "classes", [0, 1, 2]
        if self.sparse or self.chance(0.3):
            yield "feature_bounds", (-self.unit, self.unit)
        elif self.chance(0.4):
            low, high = (np.where(rng.random(unit.size) < 0.3, np.inf, unit) for _ in range(2))
            yield "feature_bounds", (-low, high)
        if self.chance(0.4):
            columns, cut = rng.permutation(unit.size).tolist(), int(rng.integers(unit.size + 1))
            yield "column_groups", [part for part in (columns[:cut], columns[cut:]) if part]
        if self.chance(0.5):
            yield "target_bounds", (0.0, 5.0) if self.kind == "counts" else (-5.0, 5.0)

    def extreme(self, size, unit):
        """Return numbers at a bound, beside it, tiny, huge, or ordinary ones."""
        if self.chance(0.3):
            return self.rng.normal(size=size) * self.power(-3, 3)
        ends = [unit, np.nextafter(unit, np.inf), np.nextafter(unit, 0.0)]
        pool = np.array([0.0, *ends, 1e-300, 1e-30, 0.5, 1.0, 3.0, 1e10, 1e100])
        return self.rng.choice(pool, size=size) * self.rng.choice([-1.0, 1.0], size=size)

    def target(self, n):
        """Return ordinary targets, and those of one record here and there."""
        if self.kind == "labels":
            return self.rng.integers(3, size=n), self.rng.integers(3, size=2)
        ends = self.extreme(2, 5.0) if self.chance(0.6) else np.array([1e50, -1e50])
        if self.kind == "counts":
            return self.rng.poisson(2.0, size=n).astype(float), np.abs(ends)
        return self.rng.normal(size=n) * self.power(-2, 2) + self.rng.choice([0.0, 10.0]), ends

    def neighbours(self):
        """Return two tables with targets that differ in the last record."""
        n = int(self.rng.integers(3, 40))
        X = self.rng.normal(size=(n, self.n_columns)) * self.unit * self.rng.choice([0.1, 1.0, 3.0])
        y, ends = self.target(n)
        row = self.extreme(self.n_columns, self.unit)
        rows = row, -row if self.chance(0.6) else self.extreme(self.n_columns, self.unit)
        tables = []
        for one, end in zip(rows, ends, strict=True):
            here, there = X.copy(), y.copy()
            here[-1], there[-1] = one, end
            tables.append((here, there))
        if self.settings["adjacency"] == "add_remove":
            tables[1] = tables[0][0][:-1], tables[0][1][:-1]
        return tables

    def fit(self, X, y):
        """Return all that a fit shows."""
        X = np.clip(X, -1e38, 1e38).astype(np.float32) if self.single else X
        X = self.layout(X) if self.sparse else X
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                model = self.make(**self.settings).fit(X, y)
            except (ValueError, TypeError) as error:
                return repr(error)
            seen = {name: value for name, value in vars(model).items() if name.endswith("_")}
            del seen["privacy_"]
            releases = [(one.label, one.n_coordinates) for one in model.privacy_.releases]
            predicted = model.predict(np.ones((2, self.n_columns)))
        said = sorted(str(one.message) for one in heard)
        return seen, predicted, releases, said


@quick("0-DPQuantileRegressor 2")
@each_value(1)
@each(MODELS)
@pytest.mark.parametrize("block", range(2))
def test_no_setting_lets_a_record_move_more_than_is_paid_for_or_show_elsewhere(entry, block):
    found, fitted = {}, 0
    for seed in range(FEW * block, FEW * (block + 1)):
        draw = Draw(entry, seed)
        runs = two_runs(draw.fit, *draw.neighbours(), seed)
        runs.check_same()
        fitted += not isinstance(runs.first, str)
        for moved in runs.moved:
            found[moved.label] = max(found.get(moved.label, 0.0), moved.share)
    assert max(found.values()) <= 1.0 + 1e-9
    assert found["second moments" if "alphas" in entry.make().get_params() else "gradients"] > 0.9
    assert fitted > FEW // 2
