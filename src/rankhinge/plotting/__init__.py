"""Displays in scikit-learn's style (extra ``plot``): convergence, a path over C, two models query by query.

For precision-recall curves use `sklearn.metrics.PrecisionRecallDisplay`.
"""

from rankhinge._public import publish
from rankhinge.plotting._convergence import ConvergenceDisplay
from rankhinge.plotting._path import PathDisplay
from rankhinge.plotting._per_query import PerQueryDisplay

__all__ = ["ConvergenceDisplay", "PathDisplay", "PerQueryDisplay"]

publish(__name__)
