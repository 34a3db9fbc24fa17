"""`RankSVCCV`: choose the settings of `RankSVC` by cross-validation along warm-started paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from rankhinge.losses import RankingLoss, get_loss
from rankhinge.problems import one_list
from rankhinge.problems.door import container_of
from rankhinge.problems.targets import Targets
from rankhinge.svm._fitting import OF_CLASSES, explaining, fitting
from rankhinge.svm.cv_elsewhere import fit_classes_elsewhere
from rankhinge.svm.folds import Part
from rankhinge.svm.policy import LABELS
from rankhinge.svm.quality import list_metric
from rankhinge.svm.rank_svc import RankSVC
from rankhinge.svm.search import GRIDS, TUNED, Search
from rankhinge.svm.threshold import Cut
from rankhinge.svm.tuning import refuse_strangers

__all__ = ["RankSVCCV"]


def _judge(
    metric: Callable[[NDArray[np.float64]], float], rows: NDArray[np.int64], scores: NDArray[np.float64]
) -> float:
    """The metric of the list that some rows form."""
    return metric(scores[rows])


def _judge_signs(
    metric: Callable[[NDArray[np.float64]], float],
    rows: NDArray[np.int64],
    relevant: NDArray[np.bool_],
    train: NDArray[np.bool_],
    cut: Cut,
    scores: NDArray[np.float64],
) -> float:
    """As `_judge`, for a metric of the scores' signs: with the intercept that the training rows lead to."""
    intercept, _ = cut(scores[train], relevant[train])
    return metric(scores[rows] + intercept)


class RankSVCCV(Search, RankSVC):
    """`RankSVC` with settings chosen by k-fold cross-validation on the metric of the loss.

    Along the path of each fold, planes are kept from one C to the next. The K one-vs-rest problems of a multiclass or
    multilabel target run in lockstep, each with its own C.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
    Cs : int, array or None, default None
        Convex bound: the grid, or the number of values between 0.1 and 100,000. None: 8, but no larger value is tried
        once the path has taken 200 passes over X.
    cv : int, splitter, iterable or None, default None
        An int: that many stratified folds, shuffled with `random_state`. None: 5.
    bound : {"auto", "convex", "tight"}, default "auto"
        As for `RankSVC`. With the tight bound the unit of the features and the start are chosen first, then the
        reach and the scale.
    reaches : int, array or None, default None
        Tight bound: the grid of `reach`, or the number of values between 0.1 and 30. None: 6.
    standardize : {"auto"}, bool or float, default "auto"
        As for `RankSVC`. With the tight bound, ``"auto"`` tries 0.5 and 1 on the same folds, in the same passes, and
        also 0 if the features seem to share a unit.
    scales : int or array, default 2
        Tight bound: the grid of scales, or the number of values between a thousandth and a hundredth of the number of
        negatives.
    init : {"logistic", "convex", "auto"} or array of shape (K, d), default "logistic"
        Tight bound: the start, as for `RankSVC`. ``"auto"`` tries both kinds and continues with the one that ranks the
        test parts better, on average over the labels.
    init_Cs : int, array or None, default None
        Tight bound: the grid of C of the start, or the number of values. None: 8 values between 0.1 and 100, divided by
        the sum of the features' variances, for the logistic regression; 6 values between 0.1 and 1000 for the convex
        bound.
    scoring : str, callable or None, default None
        The metric on the test parts: ``"ap"``, ``"ndcg"``, ``"ndcg@10"``, ``"precision@5"``, ``"rr"``, ``"auc"``, a
        function of relevance (bool) and scores, or a scorer of `metrics.make_query_scorer`. None: the metric of the
        loss. Scores are ``Xw``, without a threshold: they suit metrics of rankings, not of predictions.
    solver, tol, max_iter, threshold, pos_label, verbose
        As for `RankSVC`. The paths use the bundle solver and ten times `tol`. After five seconds the progress of the
        search appears on a terminal, even without `verbose`.
    max_time : float or None, default None
        Seconds for search and fit together. After three quarters of that time, the best setting so far is fitted. After
        Ctrl-C, the model is the mean of the models of the folds, after one step on all data.
    random_state : int, RandomState or None, default None
        As for `RankSVC`, and for the folds. None draws new folds at each fit.

    Attributes
    ----------
    C_ : float or ndarray of shape (K,)
        The chosen value. With the tight bound, the C that follows from `reach_`; `scale_`, `init_C_` and `standardize_`
        are chosen too. If the start itself ranks best, `reach_` is below the whole grid, at most 0.01: the fit stays at
        the start.
    Cs_, reaches_ : ndarray
        The grid of C (convex bound) or of the reach (tight bound).
    scores_ : ndarray of shape (n_Cs, n_folds) or (K, n_Cs, n_folds)
        The metric on the test part of each fold. A path ends after two consecutive values of C that are 2 % worse than
        the best so far; its last score fills the rest. Tight bound: the shape is (n_scales, n_reaches, n_folds) or (K,
        n_scales, n_reaches, n_folds). nan marks what the search did not reach.
    init_ : {"logistic", "convex"}
        Tight bound: the kind of start, unless coefficients were given.
    scales_, init_Cs_, init_scores_ : ndarray
        Tight bound: the grids of the scale and of C of the start, of shape (n,) or (K, n), and the scores of the
        starts.
    best_params_ : dict
        The chosen settings, as parameters of `RankSVC`. With several labels, arrays with one value for each.
    best_score_ : float
        Mean of the chosen setting's scores over folds and labels.
    best_index_ : int or ndarray of shape (K,)
        The row of the chosen setting in `cv_results_`.
    cv_results_ : dict
        One row for each setting, in the format of `GridSearchCV`; pass it to `pandas.DataFrame`. With several labels,
        one row for each label and setting, with a column ``"label"`` and ranks within the label. There are no times,
        because folds share their passes. Tight bound: first all starts, with a reach so small that the fit stays there,
        then the paths from the best start. The chosen setting is not the one with the best mean, but the one nearest to
        the start that is not noticeably worse.
    n_splits_ : int
    coef_, intercept_, … :
        Of the model refitted to all data; see `RankSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge import RankSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RankSVCCV(Cs=[1.0, 10.0, 100.0], random_state=0, bound="convex").fit(scale(X), y)
    >>> model.C_ in (1.0, 10.0, 100.0), model.scores_.shape
    (True, (3, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{key: value for key, value in RankSVC._parameter_constraints.items() if key not in TUNED},
        **GRIDS,
        "cv": ["cv_object"],
    }
    _policy = LABELS

    @explaining(OF_CLASSES)
    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        Cs: int | ArrayLike | None = None,
        *,
        cv: Any = None,
        bound: str = "auto",
        reaches: int | ArrayLike | None = None,
        standardize: str | bool | float = "auto",
        scales: int | ArrayLike = 2,
        init: str | ArrayLike = "logistic",
        init_Cs: int | ArrayLike | None = None,
        scoring: str | Callable[..., float] | None = None,
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        threshold: str | float = "f1",
        pos_label: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.bound = bound
        self.reaches = reaches
        self.standardize = standardize
        self.scales = scales
        self.init = init
        self.init_Cs = init_Cs
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    @explaining(OF_CLASSES)
    def fit(self, X: Any, y: Any, mask: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Choose C, then fit all data with it.

        Parameters
        ----------
        X, y, mask
            As for `RankSVC.fit`.
        groups : array of shape (n,), optional
            For splitters that keep groups together.

        Returns
        -------
        self
        """
        container = container_of(X)
        if hasattr(container, "folds"):
            return self._become(fit_classes_elsewhere(self, container, X, y, mask, groups))
        given, targets = self._read(X, y, mask)
        X, y = given.X, given.y
        refuse_strangers(self, self._bound)
        folds = list(self._folds(X, y, targets.kind, groups))
        parts = [part for fold, rows in enumerate(folds) for part in self._parts(targets, fold, *rows)]
        usable = targets.usable()
        # With two classes, the second one is the positive class.
        labels = targets.classes.tolist()[-len(usable) :]
        problems = {
            label: lists if use else None for label, lists, use in zip(labels, targets.lists(), usable, strict=True)
        }
        with self._search(X, one_list(targets.relevant[0]), parts, len(folds), problems) as (seen, tuning):
            return self._become(self._fit_targets(seen, targets, tuning, given))

    def _folds(self, X: Any, y: NDArray[Any], kind: str, groups: Any) -> Iterator[Any]:
        splitter = check_cv(self.cv, y if kind != "multilabel" else None, classifier=kind != "multilabel")
        if self.cv is None or isinstance(self.cv, Integral):
            # Files are often sorted by class or by time: folds are drawn, not cut.
            splitter.shuffle = True
            splitter.random_state = check_random_state(self.random_state).randint(2**31 - 1)
        return splitter.split(X, y, groups)

    def _parts(self, targets: Targets, fold: int, train: NDArray[Any], test: NDArray[Any]) -> Iterator[Part]:
        """The problems that have both classes in the training part of a fold."""
        loss = get_loss(self.loss)
        of_signs = self.scoring is None and not loss.is_ranking
        labelled = targets.known()
        inside = np.zeros(targets.relevant.shape[1], dtype=bool)
        inside[train] = True
        if np.asarray(train).dtype != bool and np.count_nonzero(inside) < len(train):
            raise ValueError(f"the training part of fold {fold} has rows more than once: a list ranks each sample once")
        part = targets._replace(labelled=labelled & inside)
        lists = part.lists()
        for k in np.flatnonzero(part.usable()):
            rows = np.arange(inside.size)[test]
            rows = rows[labelled[k, rows]]
            metric = list_metric(loss, self.scoring, targets.relevant[k][rows])
            judge: Callable[..., float] = partial(_judge, metric, rows)
            if of_signs:
                cut = Cut(targets.kind, self.threshold)
                judge = partial(_judge_signs, metric, rows, targets.relevant[k], labelled[k] & inside, cut)
            yield Part(int(k), fold, lists[k], judge)
