"""What is public of rows, for what is planned before they are used."""

from __future__ import annotations

import numpy as np

from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._records import LinearSchema


def public_schema(bounds, target_bounds=None, n_outputs=1):
    """Return the schema of columns and a target with these bounds, of unknown records."""
    n_columns = bounds.shape[1]
    return LinearSchema(
        n_columns,
        None,
        bounds=bounds,
        column_groups=np.full(n_columns, NO_GROUP),
        target_bounds=target_bounds,
        n_outputs=n_outputs,
    )
