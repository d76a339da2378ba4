"""A fit on a neighbour with the same released numbers: what must the noise make up for?"""

from __future__ import annotations

import sys
from contextlib import contextmanager

import numpy as np
import pytest

from skdpnoise.decomposition import _location, _moments
from skdpnoise.ledger import Account
from skdpnoise.linear_model._gram import PseudoData
from skdpnoise.linear_model._scaling import Standardisation
from skdpnoise.mechanisms import AdditiveMechanism, SymmetricMatrixMechanism
from skdpnoise.mechanisms.norm_quantile import NormQuantileMechanism
from skdpnoise.privacy import PureLoss
from skdpnoise.sampling import SeededWords
from tests._audit import Transcript, _Draws

MECHANISMS = "skdpnoise.mechanisms."


def coupled(order):
    """Return the matching of all records but the last that goes with a matching of all of them.

    This is the joint draw in the proof of `paired_histogram`.
    """
    order, last, half = list(order), len(order) - 1, len(order) // 2
    if len(order) % 2:
        *order, left_out = order
        return [left_out if record == last else record for record in order]
    place = order.index(last)
    partner = place + half if place < half else place - half
    paired = [record for i, record in enumerate(order) if i not in (place, partner)]
    return [*paired, order[partner]]


@contextmanager
def matched_by(order):
    """Let the library match the records by this order."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (m for name, m in sys.modules.items() if name.startswith(MECHANISMS)):
            if hasattr(module, "permutation"):
                patch.setattr(module, "permutation", lambda words, n: np.array(order))
        yield


def two_runs(run, data, other, seed, rows=len):
    """Run on a data set, and on its neighbour with the released numbers of the first.

    `run` must take its randomness from a seed; the secret matchings are drawn here, together.
    `rows` tells from the first column or matrix how many rows there are to match.
    """
    order = np.random.default_rng(seed).permutation(rows(data[0])).tolist()
    results = []
    for columns in (data, other):
        matching = order
        for _ in range(len(order) - rows(columns[0])):
            matching = coupled(matching)
        transcript = Transcript(replay=results[0][1] if results else None)
        with recording(transcript), matched_by(matching):
            results.append((run(*columns), transcript))
    return results[0][0], results[1][0], results[1][1]


def exact(value):
    """What is compared bit for bit."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(exact, value))
    if isinstance(value, Standardisation):
        return exact((value.center, value.scale, value.used, value.limit))
    if isinstance(value, PseudoData):
        return exact((value.X, value.y, value.feature_mean, value.target_mean))
    return repr(value)


# Noise on matrices


@contextmanager
def recording(transcript):
    """Note the integers of matrices too."""
    sample = SymmetricMatrixMechanism.sample

    def hooked(mechanism, words):
        draws = sample(mechanism, words).view(_Draws)
        draws.meet = lambda integers: transcript.meet(mechanism, integers)
        return draws

    with transcript.recording(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(SymmetricMatrixMechanism, "sample", hooked)
        yield


def used_by_matrix(here, there):
    """Return what the change of the integers used, in the currency of the mechanism's loss."""
    mechanism, size = here.mechanism, here.mechanism.row_bounds.n_columns
    upper = np.triu_indices(size)
    change = ((here.integers - there.integers).reshape(size, size) * mechanism.quantum)[upper]
    return float(np.linalg.norm(change / mechanism.scale[upper], norm_order(mechanism)))


def norm_order(mechanism):
    return 1 if mechanism.noise.endswith("laplace") else 2


def paid_for(mechanism):
    loss = mechanism.privacy_loss()
    return loss.pure_epsilon if hasattr(loss, "pure_epsilon") else loss.mu


# Radii, row sums and matrices of principal components


class Replay:
    """Notes what meets noise in one fit, and lets another fit release what the first one did."""

    def __init__(self, first=None):
        self.notes, self._first = [], first

    def meet(self, kind, mechanism, value, outcome=None):
        """Note a private value; return the outcome to use, that of the first fit in a replay."""
        place = len(self.notes)
        kept = outcome if outcome is not None else value
        if self._first is not None:
            kept = self._first.notes[place][3]
            assert self._first.notes[place][0] == kind
        self.notes.append((kind, mechanism, np.array(value), kept))
        return kept

    @contextmanager
    def recording(self):
        select, release = NormQuantileMechanism.select, AdditiveMechanism.release
        last = []

        def hooked_select(mechanism, utilities, words):
            # of its own: how many words a choice takes depends on the utilities
            index = select(mechanism, utilities, SeededWords(len(self.notes)))
            return self.meet("radius", mechanism, utilities, index)

        def hooked_count(mechanism, value, words=None):
            return release(mechanism, self.meet("count", mechanism, value), words)

        def hooked_row_sum(*arguments):
            last[:] = [row_sum(*arguments)]
            return last[0]

        def hooked_sums(X, **settings):
            sums = clipped_row_sums(X, **settings)
            return self.meet("sum", last[0], sums)

        def hooked_moments(X, **settings):
            counts = second_moments(X, **settings)
            return self.meet("moments", settings["row_quantum"], counts)

        row_sum, clipped_row_sums = _location.row_sum, _location.clipped_row_sums
        second_moments = _moments.second_moments
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(NormQuantileMechanism, "select", hooked_select)
            patch.setattr(AdditiveMechanism, "release", hooked_count)
            patch.setattr(_location, "row_sum", hooked_row_sum)
            patch.setattr(_location, "clipped_row_sums", hooked_sums)
            patch.setattr(_moments, "second_moments", hooked_moments)
            yield self


def cost(kind, mechanism, change, drawn):
    """Return what a change used, in units of what it is charged for."""
    if kind == "radius":
        return np.abs(change).max() / mechanism.selection.sensitivity
    if kind == "count":
        return np.abs(change).max()
    if kind == "sum":
        return np.linalg.norm(change * mechanism.quantum) / mechanism.sensitivity.l2
    scaled = change * drawn.quantum / np.outer(drawn.row_scale, drawn.row_scale)
    loss = drawn.privacy_loss()
    if isinstance(loss, PureLoss):
        assert drawn.noise == "wishart"
        return 0.5 * np.linalg.norm(scaled, "nuc") / loss.pure_epsilon
    upper = np.triu_indices(len(scaled))
    shares = np.where(np.equal(*upper), 1.0, drawn.off_diagonal)
    return np.linalg.norm(scaled[upper] / shares) / loss.mu


@contextmanager
def charged_noted(drawn):
    """Keep the mechanisms that are charged for, and see that nothing draws before."""
    charge, sample = Account.charge, SymmetricMatrixMechanism.sample

    def noted_charge(self, label, mechanism):
        charge(self, label, mechanism)
        if isinstance(mechanism, SymmetricMatrixMechanism):
            drawn.append(mechanism)

    def noted_sample(self, words):
        assert any(self is mechanism for mechanism in drawn)
        return sample(self, words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Account, "charge", noted_charge)
        patch.setattr(SymmetricMatrixMechanism, "sample", noted_sample)
        yield
