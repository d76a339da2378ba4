"""Noise families: one file each, found by themselves."""

from skdpnoise.noises.registry import Noise, get_noise, noise_names, register

__all__ = ["Noise", "get_noise", "noise_names", "register"]
