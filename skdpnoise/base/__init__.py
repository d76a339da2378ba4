"""What all private estimators share: the way into a fit, and what is known of their steps.

Nothing here is public but what :mod:`skdpnoise.compose` shows. ``private_fit`` is the one way into
a private fit.
"""

__all__: list[str] = []
