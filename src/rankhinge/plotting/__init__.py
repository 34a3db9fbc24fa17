"""Pictures in scikit-learn's manner (extra ``plot``): how a fit converged, what C does, two models query by query.

Precision-recall curves are scikit-learn's: `sklearn.metrics.PrecisionRecallDisplay`.
"""

from rankhinge._public import publish
from rankhinge.plotting._convergence import ConvergenceDisplay
from rankhinge.plotting._path import PathDisplay
from rankhinge.plotting._per_query import PerQueryDisplay

__all__ = ["ConvergenceDisplay", "PathDisplay", "PerQueryDisplay"]

publish(__name__)
