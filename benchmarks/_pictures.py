"""Pictures of benchmarks: saved, never shown."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any | None:
    """Return matplotlib's pyplot, which draws into files; without it, say so and return None."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        print("no picture: matplotlib is not installed (the extra 'plot' brings it)")
        return None
    return plt
