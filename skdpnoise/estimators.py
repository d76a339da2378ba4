"""Another name of :mod:`skdpnoise.base`, from the second edition."""

__all__: list[str] = []
