"""``python -m skdpnoise``: the command line, where its script is not on the path."""

import sys

from skdpnoise.cli import main

if __name__ == "__main__":
    sys.exit(main())
