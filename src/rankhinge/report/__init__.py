"""One HTML page about a model and data: what it gets right, where it fails, and how it was made (extra ``report``)."""

from rankhinge.report.facts import Extreme, Facts, gather
from rankhinge.report.page import render

__all__ = ["Extreme", "Facts", "gather", "render"]
