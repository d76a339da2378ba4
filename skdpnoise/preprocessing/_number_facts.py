"""Medians, scales and bins of the numbers of a table, or, of few records, scales alone."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skdpnoise.accounting.budget import COUNT_SHARE, split
from skdpnoise.accounting.session import FitSession
from skdpnoise.data.table import Table
from skdpnoise.preprocessing._blocks import NumberFacts
from skdpnoise.preprocessing._scalers import narrowest
from skdpnoise.preprocessing._transformers import ReleasePlan
from skdpnoise.privacy import Adjacency, LossBudget, PureLoss
from skdpnoise.queries.location_scale import LocationScale, locate
from skdpnoise.queries.quantiles import SURE, Quantiles, private_quantiles
from skdpnoise.queries.ranges import Ranges
from skdpnoise.queries.values import as_floats

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]

# Ranks of the lower quantiles whose distances from their like are scales of normal values: the
# quartiles', and that of the first whose noise is small.
_LOWER = np.array([0.025, 0.05, 0.1, 0.25])
_FEW = 60.0  # records that are too few for quantiles, over the noise on a count of each column


def found_numbers(
    values: Table[Any], ends: Ends, at: NDArray[np.float64], plan: ReleasePlan, session: FitSession
) -> list[NumberFacts]:
    """Release what is to be known of columns of numbers within bounds, and quantiles for bins."""
    # Under "add_remove" the number of records is released first: what follows hangs on it alone.
    whole, n_columns = plan.numbers, ends[0].size
    assert whole is not None
    session, loss = session.counted(len(values), plan.noise, whole), whole
    if session.adjacency == "add_remove":
        loss = split(whole, count=COUNT_SHARE, rest=1.0 - COUNT_SHARE)["rest"]
    if session.n_records < _FEW * _noise(loss, n_columns, session.adjacency):
        ranges = Ranges("DPTableVectorizer", n_columns, ends, missing=True, pooled=True)
        filled = values.map(partial(as_floats, fills=True), n_columns)
        search = locate(ranges, session, plan.noise, loss, session.n_records)
        return _located(session.answer(search, filled))
    terms = {"noise": plan.noise, "n_samples": session.n_records, **session.terms}
    at = np.concatenate([_LOWER, 1.0 - _LOWER, [0.5], at])
    return _scaled(private_quantiles(values, at, loss, bounds=ends, missing=True, **terms))


def _noise(loss: LossBudget, n_columns: int, adjacency: Adjacency) -> float:
    """Return about the noise on a count in each of some columns together."""
    moved = n_columns * (2 if adjacency == "replace_one" else 1)
    return moved / loss.pure_epsilon if isinstance(loss, PureLoss) else math.sqrt(moved) / loss.mu


def _located(found: LocationScale) -> list[NumberFacts]:
    none = np.empty(0)
    scale = np.where(found.found, found.scale, 0.0)
    return [
        NumberFacts(float(m), float(s), none, found.typical_found)
        for m, s in zip(found.location, scale, strict=True)
    ]


def _scaled(found: Quantiles) -> list[NumberFacts]:
    """Return medians, scales and edges of columns; a scale of 0 where one is hidden."""
    n, columns = _LOWER.size, np.arange(found.found.size)
    assert found.n_present is not None
    scales = (found.values[n : 2 * n] - found.values[:n]) / (-2.0 * ndtri(_LOWER))[:, np.newaxis]
    clear = np.outer(_LOWER, found.n_present) > SURE * found.error
    clear[-1] = True
    scale = np.maximum(scales[clear.argmax(axis=0), columns], scales[-1])
    scale = np.where(found.found, np.maximum(scale, narrowest(found)), 0.0)
    middle, edges = found.values[2 * n], np.where(found.found, found.values[2 * n + 1 :], 0.0)
    return [
        NumberFacts(float(m), float(s), e, found.typical_found)
        for m, s, e in zip(middle, scale, edges.T, strict=True)
    ]
