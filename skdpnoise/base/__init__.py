"""Shared by all private estimators: the way into a fit, and the register of steps.

Nothing here is public but what :mod:`skdpnoise.compose` shows. ``private_fit`` is the one way into
a private fit.
"""

__all__: list[str] = []
