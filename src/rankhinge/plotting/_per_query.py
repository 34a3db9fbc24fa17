"""Compare two models, query by query."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankhinge import metrics
from rankhinge.plotting._style import BLUE, GREEN, GREY, ORANGE, axes_of, tidy

__all__ = ["PerQueryDisplay"]


class PerQueryDisplay:
    """Compare two models query by query: the sorted differences of a metric, so that areas are sums.

    Parameters
    ----------
    first, second : ndarray of shape (n_queries,)
        The metric of each model. nan where a query does not count.
    names : pair of str
    metric : str, default "metric"

    Attributes
    ----------
    differences_ : ndarray
        Second minus first, sorted, for the queries that count.
    ax_ : matplotlib axes
    figure_ : matplotlib figure

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.plotting import PerQueryDisplay
    >>> PerQueryDisplay.from_values([0.5, 0.25, 1.0], [0.75, 0.0, 1.0]).differences_.tolist()
    [-0.25, 0.0, 0.25]
    """

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        *,
        names: tuple[str, str] = ("first", "second"),
        metric: str = "metric",
    ) -> None:
        self.first, self.second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if self.first.ndim != 1 or self.first.shape != self.second.shape:
            raise ValueError(
                f"both models need one value per query, got the shapes {self.first.shape} and {self.second.shape}"
            )
        self.names, self.metric = names, metric

    @classmethod
    def from_values(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        *,
        names: tuple[str, str] = ("first", "second"),
        metric: str = "metric",
        ax: Any = None,
    ) -> Self:
        """Display given values of each query.

        Parameters
        ----------
        first, second : array of shape (n_queries,)
        names : pair of str
        metric : str
        ax : matplotlib axes, optional
        """
        return cls(first, second, names=names, metric=metric).plot(ax=ax)

    @classmethod
    def from_scores(
        cls,
        y: ArrayLike,
        first: ArrayLike,
        second: ArrayLike,
        *,
        qid: Any,
        metric: str = "ndcg",
        names: tuple[str, str] = ("first", "second"),
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Display the metric of two models' scores of the same rows.

        Parameters
        ----------
        y : array of shape (n,)
            Relevance.
        first, second : array of shape (n,)
            Scores.
        qid : array of shape (n,)
        metric : str, default "ndcg"
            As for `metrics.per_query`: ``"ndcg@10"``, ``"ap"``, …
        names : pair of str
        ax : matplotlib axes, optional
        **options
            Passed on to the metric.
        """
        values = [metrics.per_query(metric, y, scores, qid, **options)[1] for scores in (first, second)]
        label = f"{metric}@{options['k']}" if options.get("k") else metric
        return cls(*values, names=names, metric=label).plot(ax=ax)

    @classmethod
    def from_estimators(cls, first: Any, second: Any, X: Any, y: ArrayLike, *, qid: Any, **options: Any) -> Self:
        """Display two fitted rankers on the same lists.

        Parameters
        ----------
        first, second : fitted rankers
            With `predict`, or `decision_function` if they have one.
        X, y, qid
            The lists.
        **options
            As for `from_scores`.
        """
        scores = [
            model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
            for model in (first, second)
        ]
        options.setdefault("names", (type(first).__name__, type(second).__name__))
        return cls.from_scores(y, *scores, qid=qid, **options)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the differences.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.figure_, (self.ax_,) = axes_of(ax)
        difference = self.second - self.first
        self.differences_ = np.sort(difference[np.isfinite(difference)])
        n = self.differences_.size
        if not n:
            raise ValueError("no query counts in both models: there is nothing to compare")
        edges = np.arange(n + 1)
        worse, better = np.minimum(self.differences_, 0), np.maximum(self.differences_, 0)
        n_worse, n_better = int(np.count_nonzero(worse)), int(np.count_nonzero(better))
        first, second = self.names
        self.ax_.stairs(worse, edges, fill=True, color=ORANGE, label=f"{first} better: {n_worse}")
        self.ax_.stairs(better, edges, fill=True, color=BLUE, label=f"{second} better: {n_better}")
        mean = float(self.differences_.mean())
        self.ax_.axhline(mean, color=GREEN, linestyle="--", label=f"mean {mean:+.4f}")
        self.ax_.axhline(0, color=GREY, linewidth=0.8)
        largest = float(np.abs(self.differences_).max()) or 1.0
        self.ax_.set(
            xlabel=f"queries, sorted ({n}, {n - n_worse - n_better} equal)",
            ylabel=f"difference of {self.metric}",
            xlim=(0, n),
            ylim=(-1.08 * largest, 1.08 * largest),
        )
        tidy(self.ax_)
        self.ax_.legend(frameon=False, fontsize="small", loc="upper left")
        return self
