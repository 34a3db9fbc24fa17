"""A metric over the strength of a bound."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge.plotting._style import BLUE, GREY, ORANGE, axes_of, tidy

__all__ = ["PathDisplay"]


class PathDisplay:
    """A cross-validated metric over C: the mean, one standard error, and each fold.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
    scores : ndarray of shape (n_Cs, n_folds)
    chosen : float, optional
        The chosen C, drawn as a line.
    metric : str, default "score"
    name : str, optional

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    line_ : matplotlib line
        The line of the mean.

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
        """Display a fitted search. For the tight bound: the path over `reach` of the best start and scale.

        Parameters
        ----------
        estimator : fitted RankSVCCV or SVMRankerCV
        problem : int, optional
            Which of the K labels to draw, if there are several.
        ax : matplotlib axes, optional
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
        if not hasattr(estimator, "scores_"):
            raise ValueError(f"{type(estimator).__name__} has no path: use RankSVCCV or SVMRankerCV")
        tight, scores = hasattr(estimator, "reaches_"), np.asarray(estimator.scores_)
        # The tight bound has a strength of its own.
        Cs, chosen = (estimator.reaches_, estimator.reach_) if tight else (estimator.Cs_, estimator.C_)
        Cs, chosen, n_problems = np.asarray(Cs), np.ravel(chosen), np.size(chosen)
        if n_problems > 1:
            if problem is None:
                raise ValueError(f"there are {n_problems} labels: choose one with problem=0, …")
            scores = scores[problem]
        Cs, scores = _best_path(np.broadcast_to(Cs, scores.shape[:-1]) if tight else Cs, scores)
        metric = getattr(estimator, "scoring", None) or estimator.loss
        metric = metric if isinstance(metric, str) else getattr(metric, "name", "score")
        made = cls(Cs, scores, chosen=float(chosen[problem or 0]), metric=metric, name=type(estimator).__name__)
        made.strength = "reach" if tight else "C"
        return made.plot(ax=ax)

    @classmethod
    def from_scores(cls, Cs: ArrayLike, scores: ArrayLike, *, metric: str = "score", ax: Any = None) -> Self:
        """Display scores from another search.

        Parameters
        ----------
        Cs : array of shape (n_Cs,)
        scores : array of shape (n_Cs, n_folds)
        metric : str, default "score"
        ax : matplotlib axes, optional
        """
        return cls(Cs, scores, metric=metric).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        self.figure_, (self.ax_,) = axes_of(ax)
        known = np.isfinite(self.scores).any(axis=1)
        Cs, scores = self.Cs[known], self.scores[known]
        order = np.argsort(Cs, kind="stable")
        Cs, scores = Cs[order], scores[order]
        mean = np.nanmean(scores, axis=1)
        n_folds = np.isfinite(scores).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = np.nansum((scores - mean[:, None]) ** 2, axis=1)
            error = np.where(n_folds > 1, np.sqrt(squares / np.maximum(n_folds - 1, 1) / n_folds), 0.0)
        folds = self.ax_.plot(Cs, scores, color=GREY, alpha=0.35, linewidth=1)
        folds[0].set_label("folds")
        self.ax_.fill_between(Cs, mean - error, mean + error, color=BLUE, alpha=0.2, label="± one standard error")
        (self.line_,) = self.ax_.plot(Cs, mean, color=BLUE, marker="o", markersize=4, label="mean")
        if self.chosen is not None:
            self.ax_.axvline(self.chosen, color=ORANGE, linestyle="--", label=f"{self.strength} = {self.chosen:.3g}")
        self.ax_.set(xscale="log", xlabel=self.strength, ylabel=self.metric, title=self.name)
        tidy(self.ax_)
        self.ax_.legend(frameon=False, fontsize="small")
        return self


def _best_path(Cs: NDArray[Any], scores: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The path with the best mean, of those for several starts and scales."""
    if scores.ndim == 2:
        return Cs, scores
    flat_scores, flat_Cs = scores.reshape(-1, *scores.shape[-2:]), Cs.reshape(-1, Cs.shape[-1])
    known = np.where(np.isfinite(flat_scores), flat_scores, -np.inf).mean(axis=2).max(axis=1)
    best = int(np.argmax(known))
    return flat_Cs[best], flat_scores[best]
