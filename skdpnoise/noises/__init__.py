"""Noise families: one file each, found by themselves."""

from skdpnoise.noises._registry import Noise, get_noise, noise_names, register

__all__ = ["Noise", "get_noise", "noise_names", "register"]
