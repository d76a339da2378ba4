"""A search for the location and the scale of an array."""

from __future__ import annotations

import numpy as np

from skdpnoise.accounting.session import Session, no_charge
from skdpnoise.data.table import InMemory
from skdpnoise.queries import searched_location
from skdpnoise.sampling import random_words


def search_location(values, loss, bounds=(-np.inf, np.inf), *, noise, **terms):
    """Search an array; terms are the number of records, and those of a session."""
    n_samples, charge = terms["n_samples"], terms.get("charge", no_charge)
    session = Session(random_words(terms["random_state"]), terms["adjacency"], charge)
    table = InMemory.of(np.asarray(values))
    return searched_location.search_location(table, loss, bounds, noise, n_samples, session)


def search_quantile(values, quantile, loss, *, noise, **terms):
    """Search an array for a quantile, on the same terms."""
    n_samples, charge = terms["n_samples"], terms.get("charge", no_charge)
    session = Session(random_words(terms["random_state"]), terms["adjacency"], charge)
    table = InMemory.of(np.asarray(values))
    return searched_location.search_quantile_of(table, quantile, loss, noise, n_samples, session)
