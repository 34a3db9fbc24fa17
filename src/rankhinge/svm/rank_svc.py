"""`RankSVC`: a linear classifier that optimises a ranking metric."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions

from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems import one_list
from rankhinge.problems.door import container_of
from rankhinge.problems.targets import Targets, as_targets, check_mask_names, encode_targets, label_names, plain_targets
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm._fitting import OF_CLASSES, explaining, fitting, warn_user
from rankhinge.svm.checkpointing import naming
from rankhinge.svm.fit import Certified, Fit, Fitted, Given, Seen, fit_linear, see
from rankhinge.svm.judging import labels_quality_elsewhere
from rankhinge.svm.quality import labels_quality
from rankhinge.svm.threshold import Cut, classes_of, constant_intercepts
from rankhinge.svm.tuning import Tuning

__all__ = ["RankSVC"]


def _describe(targets: Targets, usable: NDArray[np.bool_], certified: Certified) -> dict[str, Any]:
    """Fitted attributes of a classifier: coefficients for all labels, and where their rankings are cut."""
    coef = np.zeros((usable.size, certified.coef.shape[1]))
    coef[usable] = certified.coef
    intercept, slope = np.zeros(usable.size), np.ones(usable.size)
    if not usable.all():
        intercept = constant_intercepts(targets, usable)
    for c, cut in certified.cuts.items():
        k = np.flatnonzero(usable)[c]
        intercept[k], slope[k] = cut
    return {
        "classes_": targets.classes,
        "_kind": targets.kind,
        "coef_": coef,
        "intercept_": intercept,
        "slope_": slope,
    }


class RankSVC(ClassifierMixin, LinearRankingMachine):
    r"""Linear support vector classifier that optimises a ranking metric.

    For each one-vs-rest problem it minimises

    .. math:: \tfrac12 \|\sigma \circ (w - w_0)\|^2 + C \, T(Xw)

    T, the tight bound, is an upper bound on one minus the average precision (or NDCG, …) of the training samples when
    ranked by their scores. :math:`w_0` is a logistic regression, and σ is the unit of each feature. With
    ``bound="convex"`` the objective is the papers' :math:`\tfrac12 \|w\|^2 + C \, J(Xw)`, where J is the structured
    hinge of the loss.

    A fit ends with a certificate: the relative gap between the objective and a lower bound on its minimum. Use it in
    place of `LogisticRegression` or `LinearSVC` if average precision is your metric. Features need no scaling.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
        ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, any object of `rankhinge.losses`, or ``"zero-one"``: the
        binary SVM in the same machinery, without an intercept (centre the features); its `score` is accuracy.
    C : float, array of shape (K,) or "auto", default "auto"
        Convex bound: weight of the loss. The loss is a mean, between 0 and little more than 1, so useful values are
        larger than for `LinearSVC`, whose loss is a sum over samples. ``"auto"``: 1. The tight bound has `reach`
        instead.
    bound : {"auto", "convex", "tight"}, default "auto"
        The convex bound compares every ranking with the perfect one. The tight bound compares with the ranking by the
        scores, and tends to the loss itself. It is not convex and needs a start, but ranks better on most data; see
        Notes. ``"auto"``: tight, but convex for ``"zero-one"``. Parameters of the other bound are refused.
    reach : float, array of shape (K,) or "auto", default "auto"
        Tight bound: how far the fit may move from its start: ``C = reach · ‖w₀‖ / ‖∇T(w₀)‖``. Without a unit: 1 is
        about as far as the start is from 0. ``"auto"``: a thirtieth of the positives for each (effective) feature,
        between 0.03 and 1.
    standardize : {"auto"}, bool or float, default "auto"
        The unit of the features: σ is their standard deviation to this power. True: standardised. False: as they are.
        0.5: in between. X is not copied, a sparse X is not centred, and `coef_` is in the units of X. ``"auto"``: True
        if fewer than 30 features share the variance with 0.25, as in tables of mixed units, else 0.5, as for words,
        pixels and embeddings. With the convex bound: False, because C would mean something else.
    scale : float, array of shape (K,) or "auto", default "auto"
        Tight bound: standard deviation of the start's scores. The larger, the tighter. ``"auto"``: the number of
        negatives over 100.
    init : {"logistic", "convex"} or array of shape (K, d), default "logistic"
        Tight bound: the start w₀, towards which the fit is pulled: a logistic regression, the solution of the
        convex bound, or coefficients.
    init_C : float, array of shape (K,) or "auto", default "auto"
        C of the start. ``"auto"``: 100 for the convex bound; for the logistic regression s over the sum of the
        features' variances (in the unit they count in), with s = n / 3 for each effective feature, between 3 and 30.
    solver : {"bundle", "quasi-newton", "cutting-plane", "frank-wolfe", "subgradient"}, default "bundle"
        For the convex bound. All minimise the same objective; the guide to training compares them.
    tol : float, default 1e-3
        Relative gap at which to stop: ``objective - lower bound ≤ tol · objective``.
    max_iter : int, default 1000
    max_time : float or None, default None
        Seconds after which the fit ends with the best point so far, whatever its gap. The time is checked between steps
        of a few passes over X each. None: no limit.
    checkpoint : path or None, default None
        A file to which the fit saves its state every 30 seconds and at its end, and from which it resumes if the file
        exists. Other data or parameters are an error. None: no file.
    threshold : {"f1", "error"} or float, default "f1"
        How to set `intercept_` after training, so that `predict` is usable: the threshold with the best F1 on the
        training data, the one with the fewest errors, or a given score. The ranking does not depend on it. With more
        than two classes it is not used: the scores are calibrated instead, see Notes.
    pos_label : label, optional
        The positive class of two, which ranks first. Default: the larger label, or the later one in the alphabet.
    warm_start : bool, default False
        Start from the coefficients of the previous fit.
    random_state : int, RandomState or None, default None
        For the stochastic solvers and the random parts of the bundle solver. None means 0, so that fits are repeatable.
    verbose : int, default 0
        1: a progress line with iteration, primal, dual, gap and time. For several problems, primal and dual are sums
        and the gap is the largest. 2: a line for each iteration.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (K, d)
    intercept_ : ndarray of shape (1,) or (K,)
    classes_ : ndarray
        With two classes, ``classes_[1]`` is the positive class, which ranks first. For a multilabel y: the numbers of
        its columns, or their names if it is a frame.
    slope_ : ndarray of shape (K,)
        Multiclass: slope of each class's calibration. Otherwise ones.
    C_, reach_, scale_, init_C_ : float, or ndarray of shape (K,)
        The values used. All but `C_` belong to the tight bound. `init_C_` is missing if the start was given as
        coefficients.
    feature_scale_ : ndarray of shape (d,)
        σ, in the units of X. 1 for features that count as they are.
    init_coef_ : ndarray of shape (1, d) or (K, d)
        Tight bound: w₀, the start after rescaling.
    objective_, dual_objective_, gap_ : float, or ndarray of shape (K,)
        The objective at `coef_`, the lower bound, and their relative distance. For the tight bound, the latter two are
        those of the last convex problem (see Notes).
    n_iter_ : int or ndarray of shape (K,)
    n_passes_ : int
        Passes over X, in total for all problems.
    history_ : dict of ndarray
        ``"primal"``, ``"dual"``, ``"gap"``, ``"time"``, … by iteration.
    status_ : str or ndarray of shape (K,)
        ``"converged"``, ``"max_iter"``, ``"time"``, ``"interrupted"``, … A label without positives or negatives has
        ``"constant"``.

    Notes
    -----
    A multiclass `predict` compares scores of different problems, and ranking losses do not make these comparable. So
    Platt's sigmoid is fitted to each class's training scores. `decision_function` returns the log-odds
    ``slope_ · (Xw + intercept_)``, and `predict` takes the largest. For binary and multilabel targets
    `decision_function` returns ``Xw + intercept_``.

    For the tight bound :math:`\Delta \le T \le J` (see `rankhinge.tight_hinge`). Quasi-Newton descent alternates with
    a convex problem that lies above the objective and touches it at the current point. `gap_` belongs to the last such
    problem: no step of the concave-convex procedure could lower the objective by more than about that fraction. There
    may be other local minima. If nothing better is found, the fit returns its start. No step raises the objective.

    References
    ----------
    Yue, Finley, Radlinski, Joachims: A support vector method for optimizing average precision, SIGIR 2007;
    Mohapatra et al.: Efficient Optimization for Rank-based Loss Functions, CVPR 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from rankhinge import RankSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RankSVC().fit(X, y)
    >>> model.gap_ <= 1e-3, model.score(X, y) > 0.99
    (True, True)
    """

    classes_: NDArray[Any]
    intercept_: NDArray[np.float64]
    slope_: NDArray[np.float64]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearRankingMachine._parameter_constraints,
        "threshold": [StrOptions({"f1", "error"}), Interval(Real, None, None, closed="neither")],
        "pos_label": [object],
    }

    @explaining(OF_CLASSES)
    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        C: float | ArrayLike | str = "auto",
        *,
        bound: str = "auto",
        reach: float | ArrayLike | str = "auto",
        standardize: str | bool | float = "auto",
        scale: float | ArrayLike | str = "auto",
        init: str | ArrayLike = "logistic",
        init_C: float | ArrayLike | str = "auto",
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        checkpoint: Any = None,
        threshold: str | float = "f1",
        pos_label: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.bound = bound
        self.reach = reach
        self.standardize = standardize
        self.scale = scale
        self.init = init
        self.init_C = init_C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.threshold = threshold
        self.pos_label = pos_label
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    @explaining(OF_CLASSES)
    def fit(self, X: Any, y: Any, mask: ArrayLike | None = None) -> Self:
        """Fit one linear model for each problem.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)
        y : array of shape (n,) or (n, K)
            Binary, multiclass or multilabel targets. ``classes_[1]``, the larger label, is the positive class unless
            `pos_label` is given. With string labels, pass a boolean: ``y == "fraud"``.
        mask : bool or 0/1 array of shape (n, K), optional
            For a multilabel y (0/1 or -1/1; `predict` returns 0/1): False where a label is unknown. Such entries are
            left out of their problem, whatever they hold, nan included.

        Returns
        -------
        self
        """
        container = container_of(X)
        if container is not None:
            with naming(self.checkpoint):
                data = container.classes(X, y, mask=mask, pos_label=self.pos_label)
                rule = Cut(data.attributes["_kind"], self.threshold)
                return self._become(self._fit_opened(data, Given(X, y, {} if mask is None else {"mask": mask}), rule))
        given, targets = self._read(X, y, mask)
        tuning = self._tuning()
        n_problems, names = len(targets.relevant), getattr(self, "feature_names_in_", None)
        seen = see(self, given.X, one_list(targets.relevant[0]), n_problems, names)
        return self._become(self._fit_targets(seen, targets, tuning, given))

    def _read(self, X: Any, y: Any, mask: ArrayLike | None) -> tuple[Given, Targets]:
        """X and y, validated, and the problems that they make."""
        names = label_names(y) if hasattr(y, "columns") else None
        check_mask_names(mask, names)
        X, y = self._validated(X, plain_targets(y, mask), multi_output=True, ensure_min_samples=2)
        y = y if y.ndim == 1 else as_targets(y, mask)
        return Given(X, y, {} if mask is None else {"mask": mask}), encode_targets(y, mask, self.pos_label, names)

    def _fit_targets(
        self, seen: Seen, targets: Targets, tuning: Tuning, given: Given, run: Callable[[Fit], Fitted] = fit_linear
    ) -> Fitted:
        """Fit the problems that have both classes; the scores of the others are constant."""
        usable = targets.usable()
        if not usable.any():
            raise ValueError("no label has both a positive and a negative sample: there is nothing to rank")
        if not usable.all():
            warn_user(
                f"labels {targets.classes[~usable][:10].tolist()} have no positive or no negative sample: "
                "their scores are constant"
            )
        objective = RankingObjective(feature_map(seen.X), targets.lists(usable), get_loss(self.loss))
        fit = Fit(
            self,
            seen,
            objective,
            usable,
            tuning.of(usable, seen.X.shape[1]),
            given,
            describe=partial(_describe, targets, usable),
            rule=Cut(targets.kind, self.threshold),
            start=self._warm_start(seen, usable) if self.warm_start else None,
        )
        return run(fit)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: ``Xw + intercept_``; multiclass: the calibrated log-odds of each class.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, K)
        """
        container = container_of(X)
        if container is not None:
            return container.each(X, self.decision_function)
        linear = self._linear(X)
        scores = self.slope_ * (linear + self.intercept_)
        return scores[:, 0] if self._kind == "binary" else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes, or label indicators. Binary: by the sign of the score. Multiclass: the largest log-odds.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, K)
        """
        container = container_of(X)
        if container is not None:
            return container.each(X, self.predict)
        return classes_of(self.decision_function(X), self._kind, self.classes_)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        average: str | None = "macro",
    ) -> Any:
        """The metric of the loss (average precision for ``"ap"``), as a mean over the labels.

        For ``"zero-one"`` it is the accuracy, which cannot be compared with the others.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)
        y : array of shape (n,) or (n, K)
            Labels that training has not seen are relevant to no class.
        mask : bool array of shape (n, K), optional
            As for `fit`: unknown entries do not count.
        sample_weight : None
            Only None. scikit-learn's tools pass it; a ranking has no sample weights.
        average : {"macro"} or None, default "macro"
            ``"macro"``: the mean over the labels. None: one value for each label.

        Returns
        -------
        float, or ndarray of shape (K,)
            Labels without a positive or without a negative in y are nan and do not count. If none counts, the mean is
            nan. Equal scores take the mean over their orders (the worst order for losses given by a step).
            scikit-learn's `average_precision_score` treats them like ``metrics.average_precision(...,
            ties="threshold")``.
        """
        container = container_of(X)
        if container is not None:
            if sample_weight is not None or mask is not None:
                raise ValueError("sample_weight is not supported, and mask needs arrays in memory")
            return labels_quality_elsewhere(container, X, y, self, average)
        scores = self.decision_function(X)
        return labels_quality(get_loss(self.loss), self._kind, self.classes_, y, scores, sample_weight, mask, average)

    def __sklearn_tags__(self) -> Any:
        """Multilabel and sparse input are fine."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags
