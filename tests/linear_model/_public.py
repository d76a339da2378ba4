"""What is public of rows, for what is planned before they are used."""

from __future__ import annotations

import numpy as np

from skdpnoise.data.schema import Schema
from skdpnoise.linear_model._column_groups import NO_GROUP


def public_schema(bounds, target_bounds=None, n_outputs=1):
    """Return the schema of columns and a target with these bounds, of unknown records."""
    n_columns = bounds.shape[1]
    return Schema(
        n_columns,
        None,
        bounds=bounds,
        column_groups=np.full(n_columns, NO_GROUP),
        target_bounds=target_bounds,
        n_outputs=n_outputs,
    )
