"""matplotlib is optional: it is imported when something is drawn."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            "The displays of skdpnoise draw with matplotlib, which is not installed. Install it "
            'with: pip install "skdpnoise[plot]"'
        ) from error
    return matplotlib.pyplot
