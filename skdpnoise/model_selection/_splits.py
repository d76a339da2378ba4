r"""Rows fall into parts by secret coins that see no data: to be fitted to, scored, or for units.

**Coins.** Each row has a secret word by its number (:mod:`~skdpnoise.sampling.keyed`)
or by the label of its group (:func:`~skdpnoise.data.groups.words_of_groups`), and public shares say
into which part it falls: where it would in memory, too.

**Guarantee.** Words are as independent uniform ones to all who do not know the key. Fix all words.
Then neighbours differ in one of the parts only:

- *Replace one.* Numbers and labels of groups are the same, so that all rows fall where they do on
  the neighbour; how many rows a part has is public, once words are fixed.
- *Add or remove.* The word of the row, or group, that is there or not is independent of the others.
  Rows behind it have other numbers; but all words are alike, so that they can be given those of the
  neighbour. How many rows a part has is private, and is estimated where it is needed.

So each part may spend the whole budget (McSherry, "Privacy integrated queries", SIGMOD 2009,
Theorem 4). The whole is a mixture over words whose law does not depend on the data, and the
hockey-stick divergence is jointly convex.

**Fresh coins.** Whether a part has too few rows is, under replace-one, a function of the number of
rows, or of the groups' sizes, and of the words: all coins are tossed again then, to the same law on
neighbours. Under add/remove they are tossed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.silence import silence
from skdpnoise.accounting.session import Session
from skdpnoise.data.groups import Groups, group_codes, words_of_groups
from skdpnoise.data.table import Division
from skdpnoise.sampling.keyed import new_key, words_of_rows

_TOSSES = 100  # of all coins, where parts have too few rows

Places = NDArray[np.intp]
Records = dict[str, Any]
"""X and y of some records, by name."""


@dataclass(frozen=True, slots=True)
class Coins:
    """Where each row falls: into the part of one of the shares, from 1 on, or what is left, 0."""

    key: bytes
    shares: tuple[float, ...]

    @property
    def n_places(self) -> int:
        return len(self.shares) + 1

    def of_numbers(self, begin: int, end: int) -> Places:
        return self._of_words(words_of_rows(self.key, begin, end))

    def of_labels(self, labels: Any) -> Places:
        with silence():
            codes = group_codes("fit", labels, len(labels))
        return self._of_words(words_of_groups(self.key, labels, codes))

    def _of_words(self, words: NDArray[np.uint64]) -> Places:
        coins = np.ldexp(words.astype(np.float64), -64)
        place = 1 + np.searchsorted(np.cumsum(self.shares), coins, side="right")
        return np.where(place == self.n_places, 0, place)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Places of records that are fitted to, that are scored, and that tell units of the target."""

    division: Division[Records]
    # Disjoint; of a cross-validation the first two are all folds, of one release all records.
    train: tuple[int, ...]
    validation: tuple[int, ...]
    reference: tuple[int, ...] = ()

    def n_in(self, places: Iterable[int]) -> int:
        return sum(self.division.sizes[place] for place in places)


def divide(
    records: Groups[Records], shares: Sequence[float], session: Session, folds: bool
) -> Parts | None:
    """Divide rows into what is left and these shares; None where a fit or a score has too few."""
    # The last share is the reference. The others and what is left are all folds, or one part to fit
    # to and one to score.
    public, last = session.adjacency == "replace_one", len(shares)
    used = tuple(range(last))
    train, validation = (used, used) if folds else (used[:1], used[1:])
    for _ in range(_TOSSES if public else 1):
        coins = Coins(new_key(session.rng), tuple(shares))
        division = records.rows.divided(coins, records.labels)
        *sizes, kept = division.sizes
        scored = sizes[validation[0] :]
        fits = sum(sizes) - max(scored) >= 2
        if fits and (not public or (min(scored) >= 1 and kept >= (shares[-1] > 0.0))):
            return Parts(division, train, validation, (last,))
    return None
