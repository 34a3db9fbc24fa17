"""The papers' methods of inference: greedy, search, select, quicksort."""

from rankhinge.papers.inference.methods import METHODS

__all__ = ["METHODS"]
