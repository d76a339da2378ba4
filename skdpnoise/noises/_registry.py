"""What a noise family must offer, and how the families are found by name."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling import RandomWords

_FAMILIES: dict[str, type[Noise]] = {}


class Noise(Protocol):
    r"""A symmetric density of unit scale whose rounded draws can be made exactly.

    Independent noise of scales :math:`s_1, ..., s_K` hides a change :math:`d` of the released
    vector at a cost that depends on :math:`|d / s|_q` only, with :math:`q` the `norm_order`:

    .. math:: \max_d |d / s|_q \le R \quad\Rightarrow\quad \text{the loss is at most } loss(R).

    A new family is one new file in this package that defines a class with these members and ends
    with ``register("its_name", ItsClass)``.

    Attributes
    ----------
    variance : float
        Variance at unit scale.
    norm_order : float
        The order q above.
    supports_pure : bool
        Whether the family can give (epsilon, 0)-differential privacy.
    """

    @property
    def variance(self) -> float:
        """Variance at unit scale."""
        ...

    @property
    def norm_order(self) -> float:
        """Order of the norm of change over scale that the resource bounds."""
        ...

    @property
    def supports_pure(self) -> bool:
        """Whether the family can give a guarantee with delta = 0."""
        ...

    def logpdf(self, z: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the density at `z`."""
        ...

    def sf(self, z: ArrayLike) -> NDArray[np.float64]:
        """Probability of exceeding `z`."""
        ...

    def isf(self, q: ArrayLike) -> NDArray[np.float64]:
        """The value exceeded with probability `q`."""
        ...

    def absolute_moment(self, p: float) -> float:
        """Expectation of ``abs(Z)**p``, for p > -1."""
        ...

    def sample_rounded(
        self, words: RandomWords, size: int | tuple[int, ...], bits: int
    ) -> NDArray[np.int64]:
        """Exact draws of round(2**bits * Z), as int64 of shape `size`."""
        ...

    def resource(self, target: PrivacyGuarantee | PrivacyLoss) -> float:
        """The largest R whose loss meets `target`, rounded down."""
        ...

    def loss(self, resource: float) -> PrivacyLoss:
        """The loss of noise with ``norm(change / scale, norm_order) <= resource``."""
        ...


def register(name: str, noise_class: type[Noise]) -> None:
    """Make a family known under a name, which then works in every ``noise="<rule>_<name>"``.

    Parameters
    ----------
    name : str
        Lower-case identifier, not used by another family.
    noise_class : type
        A class with the members of `Noise` whose constructor needs no argument.

    Raises
    ------
    ValueError
        If `name` is not a lower-case identifier or belongs to another family.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise, register
    >>> register("gaussian", type(get_noise("gaussian")))  # already so: nothing changes
    """
    if not name.isidentifier() or name != name.lower():
        raise ValueError(f"The 'name' parameter must be a lower-case identifier, got {name!r}.")
    if _FAMILIES.setdefault(name, noise_class) is not noise_class:
        raise ValueError(
            f"The 'name' parameter must not be the name of another family, got {name!r}; choose a "
            "name that is not taken yet."
        )


def noise_names(*, pure: bool = False) -> tuple[str, ...]:
    """List the families, in alphabetical order.

    Parameters
    ----------
    pure : bool, default=False
        Only those that can give a guarantee with delta = 0.

    Returns
    -------
    names : tuple of str

    Examples
    --------
    >>> from skdpnoise.noises import noise_names
    >>> "gaussian" in noise_names(), "gaussian" in noise_names(pure=True)
    (True, False)
    """
    _load_families()
    return tuple(sorted(n for n, family in _FAMILIES.items() if not pure or family().supports_pure))


def get_noise(name: str) -> Noise:
    """Return the noise of a name.

    Parameters
    ----------
    name : str
        One of `noise_names`.

    Returns
    -------
    noise : Noise

    Raises
    ------
    ValueError
        If there is no such family; the message lists those that there are.

    Examples
    --------
    >>> from skdpnoise.noises import get_noise
    >>> get_noise("laplace").variance
    2.0
    """
    _load_families()
    if name not in _FAMILIES:
        names = ", ".join(repr(known) for known in noise_names())
        raise ValueError(f"The 'noise' family must be one of {names}, got {name!r}.")
    return _FAMILIES[name]()


@cache
def _load_families() -> None:
    """Import every public module of this package, once; each registers itself."""
    package = import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            import_module(f"{__package__}.{module.name}")
