"""How `make docs` makes a site of the pages, of the docstrings and of the examples."""

import os
import sys
from pathlib import Path

import skdpnoise

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "skdpnoise"
author = "The skdpnoise developers"
version = release = skdpnoise.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Our own, in the folder _extensions.
    "api_pages",
    "llms",
    "mathml",
]
exclude_patterns = ["_*", "build"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# The API: a page for each public name, listed by the rooms that have it in `__all__`.
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
numpydoc_show_class_members = False
autodoc_default_options = {
    # scikit-learn makes these, with references into its own pages.
    "exclude-members": "get_metadata_routing, set_fit_request, set_output, set_predict_request, "
    "set_score_request, set_transform_request",
}
autodoc_typehints = "none"
# What searches inherit refers to the glossary of scikit-learn.
suppress_warnings = ["ref.term", "config.cache"]

# The gallery: the examples that draw a picture. The others need what is not everywhere.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "backreferences_dir": None,
    "abort_on_example_error": True,
    "parallel": int(os.environ.get("WORKERS", "2")),
}

# Prompts are not part of what is copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = "skdpnoise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
