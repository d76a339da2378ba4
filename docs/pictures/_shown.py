"""What becomes of a picture that was drawn."""

import sys

import matplotlib.pyplot as plt


def save_or_show(picture):
    """Save a figure where the command names a file, and show it where it names none."""
    if sys.argv[-1].endswith(".png"):
        picture.savefig(sys.argv[-1], dpi=120)
    else:
        plt.show()
