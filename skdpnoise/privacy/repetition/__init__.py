"""The best of many runs: how often they are made, and the curve of their winner."""
