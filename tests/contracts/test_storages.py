"""Wherever rows lie, a fit is the same, bit for bit, and so is what it is charged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skdpnoise
from benchmarks._house_figures import storage_branches
from tests._cases import each_value
from tests._same_bits import differing
from tests._storage import every_storage_of_parts
from tests.contracts._register import PRIVATE, Notebook, each

pytestmark = pytest.mark.filterwarnings("ignore")

N = 600
NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).uniform(-1.0, 1.0, (N, 3))


@pytest.mark.slow
def test_compositions_and_charges_do_not_ask_how_rows_are_kept():
    rooms = ("accounting/", "compose/", "model_selection/", "planning/")
    asking = map(str, storage_branches(Path(skdpnoise.__file__).parent.parent))
    assert [place for place in asking if place.startswith(rooms)] == []


@each_value(1)
@each([entry for entry in PRIVATE if not entry.by_torch])
@every_storage_of_parts
def test_a_fit_is_the_same_wherever_its_rows_lie(entry, stored):
    frame = pd.DataFrame(X, columns=NAMES)
    if entry.target is not None:
        frame["y"] = entry.y(X)
    fits, ledgers = [], []
    for table in (frame, stored(frame)):
        ledgers.append(Notebook())
        estimator = entry.estimator(random_state=0, ledger=ledgers[-1])
        fits.append(estimator.fit(table[NAMES], None if entry.target is None else table["y"]))
    assert differing(*fits) == []
    assert ledgers[0].charges == ledgers[1].charges
