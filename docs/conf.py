"""How `make docs` makes a site of the pages."""

import skdpnoise

project = "skdpnoise"
version = release = skdpnoise.__version__
extensions = ["myst_parser"]
myst_heading_anchors = 4
suppress_warnings = ["toc.not_included"]  # the first page lists the others in a table
