"""How the documents are built: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference

from nbckpt import __version__

reference.write(Path(__file__).parent / "reference")

project = "nbckpt"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1150px"}  # a line of code has 88 columns
nb_execution_mode = "off"  # make notebooks has run them
myst_heading_anchors = 3
autodoc_typehints = "none"
napoleon_use_param = False
napoleon_use_rtype = False
# Types in docstrings are written for people; only our own names must be found.
nitpick_ignore_regex = [("py:.*", r"(?!nbckpt).*")]
