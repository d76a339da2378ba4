"""Noise on vectors: the value is checked, releases are counted, and integers are added exactly."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms import grid_sizes
from skdpnoise.mechanisms.base import Mechanism
from skdpnoise.privacy import check_count, check_real
from skdpnoise.sampling import RandomWords, random_words
from skdpnoise.sampling.observer import plus_noise

Vector = NDArray[np.float64]


@shared_texts
class VectorMechanism(Mechanism):
    r"""Noise on a vector, added exactly.

    .. math:: M(D)_j = q_j \left(\mathrm{round}(f_j(D)/q_j) + Z_j\right)
    """

    # Z is integer noise. A mechanism says which, by `_draw`, and what that costs, by
    # privacy_loss.

    __slots__ = ()

    @property
    @abstractmethod
    def grid_size(self) -> Vector:
        """Size of one integer step, of shape (n_coordinates,) or (n_releases, n_coordinates)."""

    def sample(
        self, rng: RandomWords, n_releases: int | None = None, *, first: int | None = None
    ) -> NDArray[np.int64]:
        """Return the noise of consecutive releases, in grid steps: one row each.

        Parameters
        ----------
        %(mechanisms: rng)s
        n_releases : int or None, default=None
            Number of releases; None is all of them, from ``first`` on.
        first : int or None, default=None
            Index of the first release, from 0: needed if scales differ and not all are sampled.
        """
        return self._draw(rng, *self._span("sample", "n_releases", n_releases, first))

    def release(
        self, value: ArrayLike, random_state: Any = None, *, first: int | None = None
    ) -> Vector:
        """Return the value with noise added, which may be made public.

        Nothing is remembered: each call is another release. No charge covers a second release t.

        Parameters
        ----------
        value : array-like of shape (n_coordinates,) or (m, n_coordinates)
            The query's value, or those of m consecutive releases. Integers of any size stay exact.
        %(queries: random_state)s
        first : int or None, default=None
            As of :meth:`sample`.

        Returns
        -------
        ndarray of the shape of ``value``

        Examples
        --------
        >>> from skdpnoise.mechanisms import calibrate
        >>> from skdpnoise.privacy import GaussianLoss
        >>> from skdpnoise.sensitivity import SensitivityProfile
        >>> profile, loss = SensitivityProfile([1.0]), GaussianLoss(0.5)
        >>> mechanism = calibrate("iid_gaussian", profile, loss, n_releases=2)
        >>> answers = [mechanism.release([10.0], first=t) for t in range(2)]
        """
        rows = self._checked(value)
        self._span("release", "value", len(rows), first)
        return self._released(rows, random_state, first).reshape(np.shape(value))

    def expected_error(self, p: float = 2.0, weights: ArrayLike | None = None) -> float:
        r"""Return the expected error of all releases together, in the p-th power of units.

        .. math:: \sum_{t, j} w_{tj} \, E|\hat f_{tj} - f_{tj}|^p

        The rounding of the value, below one part in 2**20 of the noise, is not counted.

        Parameters
        ----------
        p : float, default=2.0
            Error exponent; 2 gives the total variance, 1 the total absolute error.
        weights : array-like of shape (n_coordinates,) or (n_releases, n_coordinates), or None
            w; None is all ones.
        """
        moments = self._moments(check_real(f"{type(self).__name__}.expected_error", "p", p))
        errors = np.broadcast_to(moments, (self.n_releases, moments.shape[-1]))
        if weights is not None:
            errors = errors * np.asarray(weights, dtype=np.float64)
        return float(errors.sum())

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self._facts()}, n_releases={self.n_releases}, "
            f"loss={self.privacy_loss()})"
        )

    @abstractmethod
    def _draw(self, rng: RandomWords, start: int, count: int) -> NDArray[np.int64]:
        """Return the noise of ``count`` releases from index ``start`` on, in grid steps."""

    @abstractmethod
    def _moments(self, p: float) -> Vector:
        """Return E|error|^p of every coordinate, or of every release and coordinate."""

    @abstractmethod
    def _facts(self) -> str: ...

    def _released(self, rows: NDArray[Any], random_state: Any, first: int | None) -> Vector:
        draws = self.sample(random_words(random_state), len(rows), first=first)
        start, grid_size = first or 0, self.grid_size
        step = grid_size if grid_size.ndim == 1 else grid_size[start : start + len(rows)]
        return add_steps(rows, draws, step, self)

    def _checked(self, value: ArrayLike) -> NDArray[Any]:
        owner, n_entries = f"{type(self).__name__}.release", self.grid_size.shape[-1]
        array = grid_sizes.exact_array(owner, "value", value)
        if array.ndim not in (1, 2) or array.size == 0 or array.shape[-1] != n_entries:
            shapes = f"({n_entries},) or (n, {n_entries}) with n up to n_releases={self.n_releases}"
            given = f"shape {array.shape}"
            raise ValueError(complaint(owner, "value", f"be of shape {shapes}", given))
        return array.reshape(-1, n_entries)

    def _span(
        self, method: str, name: str, count: int | None, first: int | None
    ) -> tuple[int, int]:
        """Return the index of a call's first release and their number, all charged for."""
        owner, n_releases = f"{type(self).__name__}.{method}", self.n_releases
        start = 0 if first is None else check_count(owner, "first", first, low=0)
        if count is None:
            count = max(1, n_releases - start)
        count = check_count(owner, name, count)
        if count > n_releases:
            raise ValueError(
                f"The {name!r} parameter of {owner} asks for {count} releases, but the mechanism "
                f"is charged for {n_releases}: make it with n_releases={count}."
            )
        if start + count > n_releases:
            made = f"{count} release{'s' * (count > 1)}"
            must = f"be at most {n_releases - count}, so that {made} from there are of the "
            must += f"{n_releases=} that are charged for"
            raise ValueError(complaint(owner, "first", must, str(first)))
        if first is None and count < n_releases and self.grid_size.ndim == 2:
            must = "be given where scales differ between releases and a call makes some of them: "
            must += f"this one makes {count} of {n_releases=}"
            remedy = "Pass the index of the first release that this call makes, such as first=0."
            raise ValueError(complaint(owner, "first", must, "None", remedy))
        return start, count


def add_steps(
    value: NDArray[Any], draws: NDArray[np.int64], grid_size: Vector, mechanism: Any = None
) -> Vector:
    """Return values, rounded to grid steps, plus noise; unchanged where the grid size is zero."""
    # The sum of integers is exact, also beyond 2**53. What is returned is the double nearest to it,
    # times the grid step: post-processing. An observer is told which mechanism sampled.
    step = np.broadcast_to(grid_size, value.shape)
    noisy = step > 0.0
    rows = np.empty(value.shape)
    rows[~noisy] = value[~noisy].astype(np.float64)
    integers = grid_sizes.exact_steps(value[noisy], step[noisy])
    rows[noisy] = plus_noise(mechanism, integers, draws[noisy]) * step[noisy]
    return rows
