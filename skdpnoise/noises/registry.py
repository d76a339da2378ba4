"""Noise families by name: each file of this package is one."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from skdpnoise.noises.base import FAMILIES, ForRatio, Noise, register

__all__ = ["ForRatio", "Noise", "get_noise", "noise_names", "register", "shape_rule"]


def noise_names(*, pure: bool = False) -> tuple[str, ...]:
    """List the families, in alphabetical order.

    Parameters
    ----------
    pure : bool, default=False
        Only those that can give a guarantee with delta = 0.

    Examples
    --------
    >>> "gaussian" in noise_names(), "gaussian" in noise_names(pure=True)
    (True, False)
    """
    _load_families()
    return tuple(sorted(n for n, family in FAMILIES.items() if not pure or family().supports_pure))


def get_noise(name: str, *shape: Any) -> Noise:
    """Return the noise of a name.

    Parameters
    ----------
    name : str
        One of `noise_names`.
    *shape : float
        Parameters of the family, if not its defaults.

    Examples
    --------
    >>> get_noise("laplace").variance
    2.0
    """
    _load_families()
    if name not in FAMILIES:
        names = ", ".join(repr(known) for known in noise_names())
        raise ValueError(f"The 'noise' family must be one of {names}, got {name!r}.")
    return FAMILIES[name](*shape)


def shape_rule(name: str) -> ForRatio | None:
    """Return how the shape of a family follows a budget; see `Noise`."""
    return getattr(type(get_noise(name)), "for_ratio", None)


@cache
def _load_families() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.startswith("_") and module.name not in ("base", "registry"):
            import_module(f"{__package__}.{module.name}")
