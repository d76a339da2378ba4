"""Noise families: one file each, found by themselves."""

from skdpnoise.noises._registry import (
    ForRatio,
    Noise,
    get_noise,
    noise_names,
    register,
    shape_rule,
)

__all__ = ["ForRatio", "Noise", "get_noise", "noise_names", "register", "shape_rule"]
