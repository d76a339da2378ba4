"""Data of which only what is public is there: for what is planned before they are used."""

from __future__ import annotations

import numpy as np

from skdpnoise.data.groups import GroupedRows
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._records import Data


def public_data(bounds, target_bounds=None, n_outputs=1, groups=None):
    """Return data without rows, of columns and a target with these bounds."""
    n_columns = bounds.shape[1]
    groups = np.full(n_columns, NO_GROUP) if groups is None else np.asarray(groups)
    outputs, rows = [np.empty(0)] * n_outputs, GroupedRows(None, 1, 0)
    X = np.empty((0, n_columns))
    return Data(X, np.empty(0), rows, bounds, outputs, target_bounds, {}, groups)
