"""Run examples without a screen and save their pictures.

python examples/_draw.py docs/images            # all of them
python examples/_draw.py docs/images path plan  # plot_path.py and plot_plan.py
"""

import runpy
import sys
import time
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).resolve().parent
DOTS_PER_INCH = 120


def draw(example, picture):
    """Run an example, and save the last figure that it makes."""
    plt.switch_backend("Agg")
    with patch.object(plt, "show"), patch.object(sys, "path", [str(EXAMPLES), *sys.path]):
        runpy.run_path(str(example), run_name="__main__")
    plt.gcf().savefig(picture, dpi=DOTS_PER_INCH)
    plt.close("all")


if __name__ == "__main__":
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    for path in sorted(EXAMPLES.glob("plot_*.py")):
        name = path.stem.removeprefix("plot_")
        if not names or name in names:
            start = time.perf_counter()
            draw(path, folder / f"{name}.png")
            print(f"{name}: {time.perf_counter() - start:.1f} s")
