r"""What a fit asks of an objective, wherever its samples lie: arrays, or shards on the workers of a cluster.

A fit is ``problem → units → start → solve → last word → thresholds``. Solving takes
`rankhinge.solvers.protocol.TightObjective`: eight calls, two of them passes, and three for the tight bound. The rest of
a fit takes the reductions here. Each returns a few numbers for each column of a handle, or for each feature; none of
them returns anything of length n. What a handle holds is the objective's own business.

An objective that offers these two protocols can be fitted. With spans (`rankhinge.solvers.protocol.SpanObjective`) it
can also be fitted with few samples for each feature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from rankhinge.objective.handles import Evaluation
from rankhinge.objective.reductions import Apart, Audited, Counts
from rankhinge.solvers.protocol import Array, Handle, Indices, TightObjective

__all__ = ["FitObjective"]


class FitObjective(TightObjective, Protocol):
    """J and T of K problems, with the reductions that a whole fit takes."""

    n_entries: int
    """What a pass looks at: all numbers of X, or those that are stored."""

    slack_used: float
    """The most by which any value so far may be above J: 0 where inference is exact."""

    def part(self, problems: Indices) -> FitObjective:
        """The same of some problems only, which are ``0 … m - 1`` there."""

    def counts(self) -> Counts:
        """Samples, positives and negatives of each problem, (K,): known when the data came in."""

    def variances(self, problem: int) -> Array:
        """How much each feature varies within the lists of a problem, (d,). **One pass**."""

    def spread(self, scores: Handle) -> Array:
        """Standard deviation of each column about the means of its lists, (m,); 0 where all are equal."""

    def largest(self, scores: Handle) -> Array:
        """The largest size of a score in each column, (m,)."""

    def apart(self, coefficients: Handle) -> Apart:
        """Slopes of the positive and the negative coefficients, their sizes, and the columns in use. **One pass**."""

    def logistic(self) -> Callable[[Handle], Evaluation]:
        """A new function of scores: the logistic loss, each list at its best intercept, and its gradient as u.

        It may remember intercepts from call to call, to begin with.
        """

    def audit(self, weights: Array, problems: Indices, *, tight: bool = False, lengths: Array | None = None) -> Audited:
        """J or T at the columns of `weights`, computed anew, and what bounds the rounding of that. **One pass**.

        A value that is known to within ε only is given as its upper end. `lengths` are for rows that stand for those
        of X; an objective that is never asked for such rows need not take them.
        """

    def cut(self, scores: Handle, rule: Callable[[Any, Any], Any]) -> list[Any]:
        """Intercept and slope of each column's decisions.

        `rule` is a `rankhinge.svm.threshold.Cut`: on arrays it is called with the scores and the relevance of the
        column's samples; an engine reads its `kind` and `threshold`, and does the same by reductions.
        """
