"""The members of a noise family, and the names of those that are known."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy.half_lines import Array, unbounded_loss
from skdpnoise.sampling import RandomWords

FAMILIES: dict[str, type[Noise]] = {}
Size = int | tuple[int, ...]
ForRatio = Callable[[float, float, float], "Noise"]
"""From ratio, step and p to a noise; see `Noise`."""


@runtime_checkable
class Noise(Protocol):
    r"""A symmetric density whose rounded samples can be made exactly, and what it hides.

    A family is a frozen dataclass, and the curve of its own privacy loss
    (:class:`~skdpnoise.privacy.LossCurve`): a mechanism that adds it, at scale s, to a query that
    one record moves by d has the loss of ``shift = abs(d) / s``. A new family is one new file in
    this package: a subclass with these members, and ``register("its_name", ItsClass)``.

    Attributes
    ----------
    norm_order : float or None
        q, if the loss of several coordinates depends on :math:`|d / s|_q` alone (Gaussian 2), or
        its largest value is that norm (Laplace 1); None otherwise.
    supports_pure : bool
        Whether the family can give (epsilon, 0)-differential privacy.
    log_concave : bool
        Whether the density is log-concave. Then a larger change costs more, and a change spread
        over coordinates costs no more than one coordinate moved by the sum of all shifts.
    shape_range : tuple of float or None
        Interval in which calibration looks for the best value of the first constructor parameter;
        None if the family has no shape to choose.
    lattice : bool
        Whether the noise lives on the integers, for integer-valued queries.

    Notes
    -----
    The scale of most families follows the budget. A family whose *shape* does, since its steps are
    those of the query, has one more member, a class method ``for_ratio(ratio, step, p)``. For a
    coordinate that one record moves by at most `step` it returns the noise with about the loss of
    Laplace noise of scale ``step / ratio`` (if it can be pure: no more) and the least mean of
    ``abs(Z)**p``. Its scale will be `step`, or 1 on the integers.
    """

    __slots__ = ()

    # What a family does not say promises nothing.
    norm_order: ClassVar[float | None] = None
    supports_pure: ClassVar[bool] = False
    log_concave: ClassVar[bool] = False
    shape_range: ClassVar[tuple[float, float] | None] = None
    lattice: ClassVar[bool] = False

    @property
    def variance(self) -> float:
        """Variance at unit scale."""
        return self.absolute_moment(2.0)

    @property
    def fisher_information(self) -> float:
        """Expectation of the squared slope of the log-density; infinity where the density jumps."""
        return math.inf

    @abstractmethod
    def logpdf(self, z: ArrayLike) -> Array:
        """Logarithm of the density at `z`; of the probability, for noise on the integers."""

    @abstractmethod
    def sf(self, z: ArrayLike) -> Array:
        """Probability of exceeding `z`, with full relative accuracy in the upper tail."""

    @abstractmethod
    def isf(self, q: ArrayLike) -> Array:
        """The smallest value that is exceeded with probability `q` at most."""

    @abstractmethod
    def absolute_moment(self, p: float) -> float:
        """Expectation of ``abs(Z)**p``, for p > -1; infinite for p < 0 where Z may be 0."""

    @abstractmethod
    def sample_rounded(self, rng: RandomWords, size: Size, bits: int) -> NDArray[np.int64]:
        """Exact samples of round(2**bits * Z), as int64 of shape `size`.

        Noise on the integers has no binary places: `bits` must be 0.
        """

    @abstractmethod
    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Array:
        """The smallest delta at each epsilon >= 0 for a change of at most `shift`; broadcasts."""

    def max_loss(self, shift: ArrayLike) -> Array:
        """The largest loss for a change of at most `shift`; infinity if there is none."""
        return unbounded_loss(shift)


def register(name: str, noise_class: type[Noise]) -> None:
    """Make a family known under a name, which then works in every ``noise="<rule>_<name>"``.

    Parameters
    ----------
    name : str
        Lower-case identifier, not used by another family.
    noise_class : type
        A class with the members of `Noise` whose constructor needs no argument.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> register("gaussian", type(get_noise("gaussian")))  # already so: nothing changes
    """
    if not name.isidentifier() or name != name.lower():
        raise ValueError(f"The 'name' parameter must be a lower-case identifier, got {name!r}.")
    if FAMILIES.setdefault(name, noise_class) is not noise_class:
        raise ValueError(
            f"The 'name' parameter must not be the name of another family, got {name!r}; choose a "
            "name that is not taken yet."
        )
