"""MathJax from this site: one file, copied out of the package that ships it; no other host is asked."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.util.fileutil import copy_asset_file

# Formulas as SVG: the whole of MathJax is then this one file, without fonts to be fetched.
SCRIPT = "tex-svg.js"


def setup(app: Any) -> dict[str, bool]:
    app.config.mathjax_path = SCRIPT
    # The menu would fetch parts of MathJax that are not here.
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.connect("build-finished", copy_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def copy_script(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        package = find_spec("sphinx-mathjax-offline")
        if package is None or package.origin is None:
            raise ImportError("sphinx-mathjax-offline is not installed: pip install 'rankhinge[docs]'")
        script = Path(package.origin).parent / "static" / "mathjax" / SCRIPT
        copy_asset_file(script, Path(app.outdir) / "_static" / SCRIPT)
