"""One HTML page about a model (extra ``report``): what it gets right, where it fails, and how it was made."""

from rankhinge.report.facts import Extreme, Facts, gather
from rankhinge.report.page import render

__all__ = ["Extreme", "Facts", "gather", "render"]
