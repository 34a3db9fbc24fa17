"""How `make docs` builds the site: no network, and every warning is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

# The gallery runs in processes of its own; without a display, and with threads that do not wait for each other.
os.environ.setdefault("MPLBACKEND", "agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import public_names  # noqa: E402  (it lies in the folder that was just entered into the path)

import rankhinge  # noqa: E402

public_names.write_index(HERE / "api" / "index.rst")

project = "rankhinge"
author = "the rankhinge developers"
copyright = author
version = release = rankhinge.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "local_mathjax",
    "links_out_of_docs",
]
templates_path = ["_templates"]
# `gallery` is written by sphinx-gallery, `api` by autosummary.
exclude_patterns = ["_ext", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# The functions that the templates call cannot be pickled with the other settings, and need not be.
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_all_links_external = False

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = ["api/index.rst"]
autosummary_ignore_module_all = False
# `RankSVC` in a docstring links to its page; what has none is code.
default_role = "py:obj"
autosummary_context = {
    "names_of_kind": public_names.names_of_kind,
    "own_members": public_names.own_members,
}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "gallery_order.InOrder",
    "download_all_examples": False,
    "show_memory": False,
    # The page of execution times loads jQuery from another host.
    "write_computation_times": False,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "rankhinge"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": [], "changelog": []}
