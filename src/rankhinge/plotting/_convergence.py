"""How a fit converged."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankhinge.plotting._style import BLUE, GREY, ORANGE, axes_of, tidy

__all__ = ["ConvergenceDisplay"]


class ConvergenceDisplay:
    """Objective, lower bound and proved relative gap of a fit, over passes, time or iterations.

    Parameters
    ----------
    history : dict of ndarray
        ``primal``, ``dual``, ``gap`` and the abscissa, as in `history_` of a model, of shape (n_steps,) or (K,
        n_steps).
    tol : float, optional
        The gap at which the fit ends, drawn as a line.
    names : list, optional
        The names of the K problems.
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
        """Display a fitted model.

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
        """Display a history that is given as arrays.

        Parameters
        ----------
        history : dict of ndarray
        over : {"passes", "time", "iteration"}, default "passes"
        ax : two matplotlib axes, optional
        """
        return cls(history).plot(over=over, ax=ax)

    def plot(self, *, over: str = "passes", ax: Any = None) -> Self:
        """Draw the objective and its bound on the left, the gap on the right.

        Parameters
        ----------
        over : {"passes", "time", "iteration"}, default "passes"
        ax : two matplotlib axes, optional
        """
        labels = {"passes": "passes over X", "time": "seconds", "iteration": "iteration"}
        if over not in labels:
            raise ValueError(f"over must be one of {', '.join(map(repr, labels))}, got {over!r}")
        self.figure_, self.ax_ = axes_of(ax, 2)
        primal, dual, gap = (np.atleast_2d(self.history[name]) for name in ("primal", "dual", "gap"))
        n_problems, n_steps = primal.shape
        if over == "iteration":
            abscissa = np.broadcast_to(np.arange(1, n_steps + 1), primal.shape)
        else:
            abscissa = np.broadcast_to(np.atleast_2d(self.history[over]), primal.shape)
        left, right = self.ax_
        self.lines_ = []
        for k in range(n_problems):
            colour = {"color": BLUE if n_problems == 1 else f"C{k % 10}"}
            name = "" if n_problems == 1 or self.names is None else f" ({self.names[k]})"
            below = {"color": ORANGE if n_problems == 1 else colour["color"], "linestyle": "--"}
            marker = {"marker": "o", "markersize": 3}
            self.lines_ += left.plot(abscissa[k], primal[k], label=f"objective{name}", **colour, **marker)
            self.lines_ += left.plot(abscissa[k], _finite(dual[k]), label=f"lower bound{name}", **below, **marker)
            self.lines_ += right.plot(abscissa[k], _positive(gap[k]), label=f"gap{name}", **colour, **marker)
        right.set_yscale("log")
        if self.tol is not None:
            right.axhline(self.tol, color=GREY, linestyle=":", label=f"tol = {self.tol:g}")
        for axes, label in ((left, "objective"), (right, "relative gap")):
            axes.set(xlabel=labels[over], ylabel=label, title=self.estimator_name if axes is left else None)
            tidy(axes)
            if n_problems <= 5:
                axes.legend(frameon=False, fontsize="small")
        return self


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isfinite(values), values, np.nan)


def _positive(values: NDArray[Any]) -> NDArray[Any]:
    """The values that a logarithmic axis can show."""
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)
