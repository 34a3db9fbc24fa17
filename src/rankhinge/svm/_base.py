"""What all linear ranking machines share: parameters, checks at the door, and becoming what a fit has found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from rankhinge._validation import in_native_order, refuse_masked
from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.problems.door import Opened, container_of
from rankhinge.solvers import NEVER, SOLVERS, Deadline
from rankhinge.svm._fitting import earlier_model
from rankhinge.svm.containers import fit_opened
from rankhinge.svm.fit import Fitted, Given, Seen
from rankhinge.svm.flat import warn_of_flaws
from rankhinge.svm.threshold import Cut
from rankhinge.svm.tuning import Tuning, refuse_strangers

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""


__all__ = ["LinearRankingMachine"]


class LinearRankingMachine(CallbackSupportMixin, BaseEstimator):
    """Parameters, what is checked at the door, and the attributes that a fit (`svm.fit`) leaves behind."""

    # Fitted attributes: numbers for one problem, arrays of length K for K. A fit replaces all that are declared here
    # and in the subclasses.
    coef_: NDArray[np.float64]
    C_: Any
    reach_: Any
    feature_scale_: NDArray[np.float64]
    scale_: Any
    init_C_: Any
    init_coef_: NDArray[np.float64]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    objective_: Any
    dual_objective_: Any
    gap_: Any
    n_iter_: Any
    n_passes_: float
    status_: Any
    history_: dict[str, NDArray[Any]]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [str, RankingLoss],
        "C": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "bound": [StrOptions({"auto", "convex", "tight"})],
        "reach": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "standardize": [StrOptions({"auto"}), "boolean", Interval(Real, 0, 1, closed="both")],
        "scale": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "init": [StrOptions({"logistic", "convex"}), "array-like"],
        "init_C": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "checkpoint": [str, os.PathLike, None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _validated(self, *arrays: Any, reset: bool = True, **options: Any) -> Any:
        """X (and y) in the form that feature maps take. Arrays of numbers are not copied."""
        if container_of(arrays[0]) is not None:
            raise TypeError(
                f"{type(self).__name__} takes no {type(arrays[0]).__name__}: pass an array, or use RankSVC or SVMRanker"
            )
        for array, name in zip(arrays, ("X", "y"), strict=False):
            refuse_masked(array, name)
        if hasattr(arrays[0], "tocsr"):
            arrays = (in_native_order(arrays[0]), *arrays[1:])
        return validate_data(self, *arrays, accept_sparse=("csr", "csc"), dtype="numeric", reset=reset, **options)

    # Machines without these have nothing to choose.
    bound: str = "convex"
    standardize: str | bool | float = False
    max_time: float | None = None
    warm_start: bool = False
    checkpoint: Any = None

    @property
    def _bound(self) -> str:
        """The bound in force: ``"auto"`` is the tight one, unless the loss ranks nothing."""
        ranks = get_loss(getattr(self, "loss", "ap")).is_ranking
        if self.bound == "tight" and not ranks:
            raise ValueError("bound='tight' compares rankings: loss='zero-one' has none")
        return self.bound if self.bound != "auto" else "tight" if ranks else "convex"

    def _tuning(self) -> Tuning:
        """What the user has chosen; what the bound does not use is refused."""
        bound, deadline = self._bound, NEVER if self.max_time is None else Deadline.after(self.max_time)
        refuse_strangers(self, bound)
        if bound == "convex":
            return Tuning(self.C, deadline=deadline)
        return Tuning("auto", self.reach, self.scale, self.init_C, self.init, deadline)

    # Whether no stage of the fit looks at anything but differences of scores, if the loss does not.
    _ranks_only = True

    def _linear(self, X: Any) -> NDArray[np.float64]:
        """``X @ coef_.T``, of shape (n, K)."""
        check_is_fitted(self)
        return feature_map(self._validated(X, reset=False)).scores(np.atleast_2d(self.coef_).T).T

    def _warm_start(self, seen: Seen, usable: NDArray[np.bool_] | None) -> NDArray[np.float64] | None:
        """Coefficients (d, K) of the previous fit, if they are those of as many problems; None: there is one."""
        coef: NDArray[np.float64] = earlier_model(self).get("coef_", np.empty(0))
        shape = () if usable is None else (usable.size,)
        if coef.shape != (*shape, seen.coordinates.n_features):
            return None
        inside = seen.coordinates.inside(coef)
        return inside[:, None] if usable is None else inside[usable].T

    def _fit_opened(self, data: Opened, given: Given, rule: Cut | None = None, tuning: Tuning | None = None) -> Fitted:
        """Fit data that entered by the door for containers."""
        try:
            return fit_opened(self, data, given, rule, tuning)
        except BaseException:
            # A traceback would hold what lies elsewhere for as long as somebody looks at it.
            getattr(data, "close", lambda: None)()
            raise

    def _become(self, fitted: Fitted) -> Self:
        """Take all attributes of a model at once: an interrupt finds none of them or all. The only place that does."""
        self.__dict__.update(fitted.attributes)
        if fitted.interrupt is not None:
            # A traceback would hold what lies elsewhere for as long as somebody looks at it.
            getattr(fitted.objective, "close", lambda: None)()
            raise fitted.interrupt
        if not ((fitted.result.gap <= self.tol).all() and fitted.result.coef.any(axis=0).all()):
            warn_of_flaws(self, fitted.result, fitted.objective)
        return self

    @contextmanager
    def _callbacks(
        self, fitted: Callable[[], dict[str, Any]] | None = None, given: Given | None = None
    ) -> Iterator[Callable[[], bool]]:
        """A function to be called once an iteration: it tells scikit-learn's callbacks, which may want to stop.

        `fitted` makes the attributes of a model out of what there is at present, for those who ask.
        """
        if not hasattr(self, "_init_callback_context"):
            yield lambda: False
            return
        context = self._init_callback_context(max_subtasks=None)
        known = {"estimator": self, **({} if given is None else given._asdict())}
        context.call_on_fit_task_begin(**known)

        def wants_stop() -> bool:
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(**known)
            return bool(task.call_on_fit_task_end(**known, reconstruction_attributes=fitted))

        yield wants_stop
        context.call_on_fit_task_end(**known, reconstruction_attributes=fitted)
