"""Pictures in scikit-learn's manner (extra ``plot``): how a fit converged, what C does, two models query by query.

Precision-recall curves are scikit-learn's: `sklearn.metrics.PrecisionRecallDisplay`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge import metrics

__all__ = ["ConvergenceDisplay", "PathDisplay", "PerQueryDisplay"]

# Okabe and Ito's colours, which most people can tell apart.
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def _axes(ax: Any, n: int = 1) -> Any:
    """New axes, side by side, or those that are given; the figure with them."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ModuleNotFoundError("plots need matplotlib: pip install 'rankhinge[plot]'", name="matplotlib") from None
    if ax is None:
        figure, axes = plt.subplots(1, n, figsize=(4.8 * n, 3.6), layout="constrained", squeeze=False)
        return figure, list(axes[0])
    axes = list(np.ravel(ax))
    if len(axes) != n:
        raise ValueError(f"ax must be {n} axes, got {len(axes)}")
    return axes[0].figure, axes


def _tidy(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, alpha=0.3)


class ConvergenceDisplay:
    """Objective and lower bound of a fit, and the proved relative gap between them, over the passes or the time.

    Parameters
    ----------
    history : dict of ndarray
        ``primal``, ``dual``, ``gap`` and the abscissa, as `history_` of a model: of shape (n_steps,) or (K, n_steps).
    tol : float, optional
        The gap at which a fit ends: a line.
    names : list, optional
        Of the K problems.
    estimator_name : str, optional

    Attributes
    ----------
    ax_ : list of two matplotlib axes
    figure_ : matplotlib figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge import RankSVC
    >>> from rankhinge.plotting import ConvergenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> display = ConvergenceDisplay.from_estimator(RankSVC(bound="convex").fit(scale(X), y))
    >>> [axes.get_ylabel() for axes in display.ax_]
    ['objective', 'relative gap']
    """

    def __init__(
        self,
        history: dict[str, NDArray[Any]],
        *,
        tol: float | None = None,
        names: list[Any] | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.history, self.tol, self.names, self.estimator_name = history, tol, names, estimator_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, over: str = "passes", ax: Any = None) -> Self:
        """The display of a fitted model; see `plot` for the rest.

        Parameters
        ----------
        estimator : fitted estimator of rankhinge
        over : {"passes", "time", "iteration"}, default "passes"
        ax : two matplotlib axes, optional
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
        classes = getattr(estimator, "classes_", None)
        names = None if classes is None else list(classes)
        display = cls(
            estimator.history_,
            tol=getattr(estimator, "tol", None),
            names=names,
            estimator_name=type(estimator).__name__,
        )
        return display.plot(over=over, ax=ax)

    @classmethod
    def from_history(cls, history: dict[str, NDArray[Any]], *, over: str = "passes", ax: Any = None) -> Self:
        """The display of a history of one's own.

        Parameters
        ----------
        history : dict of ndarray
        over : {"passes", "time", "iteration"}, default "passes"
        ax : two matplotlib axes, optional
        """
        return cls(history).plot(over=over, ax=ax)

    def plot(self, *, over: str = "passes", ax: Any = None) -> Self:
        """Draw objective and bound at the left, the gap at the right.

        Parameters
        ----------
        over : {"passes", "time", "iteration"}, default "passes"
        ax : two matplotlib axes, optional
        """
        labels = {"passes": "passes over X", "time": "seconds", "iteration": "iteration"}
        if over not in labels:
            raise ValueError(f"over must be one of {', '.join(map(repr, labels))}, got {over!r}")
        self.figure_, self.ax_ = _axes(ax, 2)
        primal, dual, gap = (np.atleast_2d(self.history[name]) for name in ("primal", "dual", "gap"))
        n_problems, n_steps = primal.shape
        if over == "iteration":
            abscissa = np.broadcast_to(np.arange(1, n_steps + 1), primal.shape)
        else:
            abscissa = np.broadcast_to(np.atleast_2d(self.history[over]), primal.shape)
        left, right = self.ax_
        self.lines_ = []
        for k in range(n_problems):
            colour = {"color": _BLUE if n_problems == 1 else f"C{k % 10}"}
            name = "" if n_problems == 1 or self.names is None else f" ({self.names[k]})"
            below = {"color": _ORANGE if n_problems == 1 else colour["color"], "linestyle": "--"}
            marker = {"marker": "o", "markersize": 3}
            self.lines_ += left.plot(abscissa[k], primal[k], label=f"objective{name}", **colour, **marker)
            self.lines_ += left.plot(abscissa[k], _finite(dual[k]), label=f"lower bound{name}", **below, **marker)
            self.lines_ += right.plot(abscissa[k], _positive(gap[k]), label=f"gap{name}", **colour, **marker)
        right.set_yscale("log")
        if self.tol is not None:
            right.axhline(self.tol, color=_GREY, linestyle=":", label=f"tol = {self.tol:g}")
        for axes, label in ((left, "objective"), (right, "relative gap")):
            axes.set(xlabel=labels[over], ylabel=label, title=self.estimator_name if axes is left else None)
            _tidy(axes)
            if n_problems <= 5:
                axes.legend(frameon=False, fontsize="small")
        return self


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isfinite(values), values, np.nan)


def _positive(values: NDArray[Any]) -> NDArray[Any]:
    """What a logarithmic axis can show."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


class PathDisplay:
    """A metric on the test parts of a cross-validation over C: the mean, one standard error, and each fold.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
    scores : ndarray of shape (n_Cs, n_folds)
    chosen : float, optional
        The C that was chosen: a line.
    metric : str, default "score"
    name : str, optional

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    line_ : matplotlib line
        Of the mean.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge import RankSVCCV
    >>> from rankhinge.plotting import PathDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RankSVCCV(bound="convex", Cs=[1.0, 10.0, 100.0], random_state=0).fit(scale(X), y)
    >>> PathDisplay.from_estimator(model).line_.get_xdata().tolist()
    [1.0, 10.0, 100.0]
    """

    def __init__(
        self,
        Cs: ArrayLike,
        scores: ArrayLike,
        *,
        chosen: float | None = None,
        metric: str = "score",
        name: str | None = None,
    ) -> None:
        self.Cs, self.scores = np.asarray(Cs, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        if self.Cs.ndim != 1 or self.scores.ndim != 2 or self.scores.shape[0] != self.Cs.size:
            raise ValueError(
                f"scores must have a row for each of the {self.Cs.size} values of C and a column for each fold, got "
                f"shape {self.scores.shape}"
            )
        self.chosen, self.metric, self.name = chosen, metric, name
        self.strength = "C"

    @classmethod
    def from_estimator(cls, estimator: Any, *, problem: int | None = None, ax: Any = None) -> Self:
        """The display of a fitted search; of the tight bound the path of the best start and scale.

        Parameters
        ----------
        estimator : fitted RankSVCCV or SVMRankerCV
        problem : int, optional
            Which of the K labels; of one there is no choice.
        ax : matplotlib axes, optional
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
        if not hasattr(estimator, "scores_"):
            raise ValueError(f"{type(estimator).__name__} has no path: take RankSVCCV or SVMRankerCV")
        tight, scores = hasattr(estimator, "reaches_"), np.asarray(estimator.scores_)
        # The tight bound has a strength of its own.
        Cs, chosen = (estimator.reaches_, estimator.reach_) if tight else (estimator.Cs_, estimator.C_)
        Cs, chosen, n_problems = np.asarray(Cs), np.ravel(chosen), np.size(chosen)
        if n_problems > 1:
            if problem is None:
                raise ValueError(f"there are {n_problems} labels: choose one by problem=0, …")
            scores = scores[problem]
        Cs, scores = _best_path(np.broadcast_to(Cs, scores.shape[:-1]) if tight else Cs, scores)
        metric = getattr(estimator, "scoring", None) or estimator.loss
        metric = metric if isinstance(metric, str) else getattr(metric, "name", "score")
        made = cls(Cs, scores, chosen=float(chosen[problem or 0]), metric=metric, name=type(estimator).__name__)
        made.strength = "reach" if tight else "C"
        return made.plot(ax=ax)

    @classmethod
    def from_scores(cls, Cs: ArrayLike, scores: ArrayLike, *, metric: str = "score", ax: Any = None) -> Self:
        """The display of scores that were found otherwise.

        Parameters
        ----------
        Cs : array of shape (n_Cs,)
        scores : array of shape (n_Cs, n_folds)
        metric : str, default "score"
        ax : matplotlib axes, optional
        """
        return cls(Cs, scores, metric=metric).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.figure_, (self.ax_,) = _axes(ax)
        known = np.isfinite(self.scores).any(axis=1)
        Cs, scores = self.Cs[known], self.scores[known]
        order = np.argsort(Cs, kind="stable")
        Cs, scores = Cs[order], scores[order]
        mean = np.nanmean(scores, axis=1)
        n_folds = np.isfinite(scores).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.nansum((scores - mean[:, None]) ** 2, axis=1)
            error = np.where(n_folds > 1, np.sqrt(squares / np.maximum(n_folds - 1, 1) / n_folds), 0.0)
        folds = self.ax_.plot(Cs, scores, color=_GREY, alpha=0.35, linewidth=1)
        folds[0].set_label("folds")
        self.ax_.fill_between(Cs, mean - error, mean + error, color=_BLUE, alpha=0.2, label="± one standard error")
        (self.line_,) = self.ax_.plot(Cs, mean, color=_BLUE, marker="o", markersize=4, label="mean")
        if self.chosen is not None:
            self.ax_.axvline(self.chosen, color=_ORANGE, linestyle="--", label=f"C = {self.chosen:.3g}")
        self.ax_.set(xscale="log", xlabel=self.strength, ylabel=self.metric, title=self.name)
        _tidy(self.ax_)
        self.ax_.legend(frameon=False, fontsize="small")
        return self


def _best_path(Cs: NDArray[Any], scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of the paths for several starts and scales the one with the best mean."""
    if scores.ndim == 2:
        return Cs, scores
    flat_scores, flat_Cs = scores.reshape(-1, *scores.shape[-2:]), Cs.reshape(-1, Cs.shape[-1])
    known = np.where(np.isfinite(flat_scores), flat_scores, -np.inf).mean(axis=2).max(axis=1)
    best = int(np.argmax(known))
    return flat_Cs[best], flat_scores[best]


class PerQueryDisplay:
    """Two models query by query: the difference of a metric, sorted, so that areas are sums.

    Parameters
    ----------
    first, second : ndarray of shape (n_queries,)
        The metric of each model; nan where a query does not count.
    names : pair of str
    metric : str, default "metric"

    Attributes
    ----------
    differences_ : ndarray
        Second less first, sorted; queries that count.
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
                f"both models need one value a query, got shapes {self.first.shape} and {self.second.shape}"
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
        """The display of values of each query.

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
        """The display of two models' scores of the same rows.

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
        """The display of two fitted rankers on the same lists.

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
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.figure_, (self.ax_,) = _axes(ax)
        difference = self.second - self.first
        self.differences_ = np.sort(difference[np.isfinite(difference)])
        n = self.differences_.size
        if not n:
            raise ValueError("no query counts in both models: there is nothing to compare")
        edges = np.arange(n + 1)
        worse, better = np.minimum(self.differences_, 0), np.maximum(self.differences_, 0)
        n_worse, n_better = int(np.count_nonzero(worse)), int(np.count_nonzero(better))
        first, second = self.names
        self.ax_.stairs(worse, edges, fill=True, color=_ORANGE, label=f"{first} better: {n_worse}")
        self.ax_.stairs(better, edges, fill=True, color=_BLUE, label=f"{second} better: {n_better}")
        mean = float(self.differences_.mean())
        self.ax_.axhline(mean, color=_GREEN, linestyle="--", label=f"mean {mean:+.4f}")
        self.ax_.axhline(0, color=_GREY, linewidth=0.8)
        largest = float(np.abs(self.differences_).max()) or 1.0
        self.ax_.set(
            xlabel=f"queries, sorted ({n}, {n - n_worse - n_better} equal)",
            ylabel=f"difference of {self.metric}",
            xlim=(0, n),
            ylim=(-1.08 * largest, 1.08 * largest),
        )
        _tidy(self.ax_)
        self.ax_.legend(frameon=False, fontsize="small", loc="upper left")
        return self
