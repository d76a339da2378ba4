"""How `make docs` makes a site of the pages and of the docstrings."""

import skdpnoise

project = "skdpnoise"
version = release = skdpnoise.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
myst_heading_anchors = 4
numpydoc_show_class_members = False
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    # scikit-learn makes these, with references into its own pages.
    "exclude-members": "get_metadata_routing, set_fit_request, set_output, set_predict_request, "
    "set_score_request, set_transform_request",
}
autodoc_typehints = "none"
# The first page lists the others in a table; what searches inherit refers to the glossary of
# scikit-learn.
suppress_warnings = ["toc.not_included", "ref.term"]
