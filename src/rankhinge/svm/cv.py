"""`RankSVCCV` and `SVMRankerCV`: choose C by cross-validation along warm-started paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from rankhinge._validation import QueryIds, encode_queries
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.problems import one_list
from rankhinge.problems.gains import Grades, grades_of
from rankhinge.problems.label_names import label_names
from rankhinge.problems.queries import NoUsableList, ranking_lists, weights_of_rows
from rankhinge.problems.targets import Targets, encode_targets
from rankhinge.svm._fitting import fitting
from rankhinge.svm.bounds import refuse_strangers
from rankhinge.svm.folds import Part
from rankhinge.svm.foreign import OF_CLASSES, OF_LISTS, explaining
from rankhinge.svm.policy import LABELS, LISTS
from rankhinge.svm.quality import list_metric, lists_metric
from rankhinge.svm.query_folds import query_folds
from rankhinge.svm.rank_svc import RankSVC
from rankhinge.svm.ranker import SVMRanker
from rankhinge.svm.search import GRIDS, TUNED, Search
from rankhinge.svm.threshold import cut_ranking

__all__ = ["RankSVCCV", "SVMRankerCV"]


def _judge(
    metric: Callable[..., float], relevant: NDArray[np.bool_], rows: NDArray[np.int64], scores: NDArray[np.float64]
) -> float:
    """The metric of the list that some rows form."""
    return metric(relevant[rows], scores[rows])


def _judge_signs(
    metric: Callable[..., float],
    relevant: NDArray[np.bool_],
    rows: NDArray[np.int64],
    train: NDArray[np.bool_],
    kind: str,
    threshold: str | float,
    scores: NDArray[np.float64],
) -> float:
    """As `_judge`, for a metric of the scores' signs: with the intercept that the training rows lead to."""
    intercept, _ = cut_ranking(kind, scores[train], relevant[train], threshold)
    return metric(relevant[rows], scores[rows] + intercept)


class RankSVCCV(Search, RankSVC):
    """`RankSVC` with its settings chosen by k-fold cross-validation on the loss's own metric.

    Along each fold's path the planes are kept from one C to the next. All K one-vs-rest problems of a multiclass or
    multilabel target run in lockstep, each with a C of its own.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
    Cs : int, array or None, default None
        Convex bound: the grid, or how many values between 0.1 and 100,000; None: 8, of which larger ones are not
        tried once the path has taken 200 passes over X.
    cv : int, splitter, iterable or None, default None
        Stratified folds, shuffled with `random_state`, if an int; None: 5.
    bound : {"auto", "convex", "tight"}, default "auto"
        As for `RankSVC`. With the tight bound the unit of the features and the start are chosen first, then the
        reach and the scale.
    reaches : int, array or None, default None
        Tight bound: the grid of `reach`, or how many values between 0.1 and 30; None: 6.
    standardize : {"auto"}, bool or float, default "auto"
        As for `RankSVC`; ``"auto"`` tries 0.5 and 1 with the tight bound, and 0 where the features seem to share a
        unit, on the same folds and in the same passes.
    scales : int or array, default 2
        Tight bound: the grid of scales, or how many between a thousandth and a hundredth of the number of negatives.
    init : {"logistic", "convex", "auto"} or array of shape (K, d), default "logistic"
        Tight bound: the start, as for `RankSVC`; ``"auto"`` tries both kinds and goes on with the one that ranks the
        test parts better, on average over the labels.
    init_Cs : int, array or None, default None
        Tight bound: the grid of C of the start, or how many; None: 8 between 0.1 and 100 over the sum of the features'
        variances for the logistic regression, 6 between 0.1 and 1000 for the convex bound.
    scoring : str, callable or None, default None
        What test parts are judged by: ``"ap"``, ``"ndcg"``, ``"ndcg@10"``, ``"precision@5"``, ``"rr"``, ``"auc"`` or a
        function of relevance (bool) and scores; also what `metrics.make_query_scorer` returns. None: the loss's own
        metric. Scores are ``Xw``, without a threshold: judge rankings by them, not predictions.
    solver, tol, max_iter, threshold, pos_label, verbose
        As for `RankSVC`; the paths use the bundle solver, and ten times `tol`. After five seconds a terminal shows how
        far the search is, also without `verbose`.
    max_time : float or None, default None
        Seconds for search and fit together. The search goes on with its best setting after three quarters of them.
        After Ctrl-C it does so, too: the model then is the mean of those of the folds, after one step on all data.
    random_state : int, RandomState or None, default None
        As for `RankSVC`, and for the folds: with None they are drawn anew at each fit.

    Attributes
    ----------
    C_ : float or ndarray of shape (K,)
        The chosen value; for the tight bound that of `reach_`, beside `scale_`, `init_C_` and `standardize_`.
        Where the start itself ranks best, the reach is smaller than all of the grid, 0.01 at most: the fit stays there.
    Cs_, reaches_ : ndarray
        The grid of the bound in force.
    scores_ : ndarray of shape (n_Cs, n_folds) or (K, n_Cs, n_folds)
        The metric on the test part of each fold. A path is given up when two values of C in turn were worse than the
        best so far by 2 %: from there on the last score is repeated. Tight bound: of shape (n_scales, n_reaches,
        n_folds), or K of them. nan where the search has not come to.
    init_ : {"logistic", "convex"}
        Tight bound: the kind of start, unless coefficients were given.
    scales_, init_Cs_, init_scores_ : ndarray
        Tight bound: the grids of the scale and of the start's C, of shape (n,) or (K, n), and the starts' own scores.
    best_params_ : dict
        What was chosen, as `RankSVC` takes it; for several labels arrays with a value for each.
    best_score_ : float
        Mean of the chosen setting's scores over folds and labels.
    best_index_ : int or ndarray of shape (K,)
        Where the chosen settings are in `cv_results_`.
    cv_results_ : dict
        A row for each setting, as `GridSearchCV` has it, of several labels for each label and setting (column
        ``"label"``, and ranks within a label); `pandas.DataFrame` takes it. Times are missing: folds share their
        passes. Tight bound: first all starts, with a reach so small that the fit stays there, then the paths from
        the best; not the best mean is chosen there, but the setting nearest to the start that is not noticeably worse.
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
        names = label_names(y)
        given = self._validated_targets(X, y, mask)
        X, y = given.X, given.y
        targets = encode_targets(y, mask, self.pos_label).named(names)
        refuse_strangers(self, self._bound)
        folds = list(self._folds(X, y, targets.kind, groups))
        parts = [part for fold, rows in enumerate(folds) for part in self._parts(targets, fold, *rows)]
        usable = targets.usable()
        # Of two classes it is the second that is ranked first.
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
        metric = list_metric(get_loss(self.loss), self.scoring)
        of_signs = self.scoring is None and not get_loss(self.loss).is_ranking
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
            problem = (metric, targets.relevant[k], rows)
            if of_signs:
                judge: Callable[..., float] = partial(
                    _judge_signs, *problem, labelled[k] & inside, targets.kind, self.threshold
                )
            else:
                judge = partial(_judge, *problem)
            yield Part(int(k), fold, lists[k], judge)


class SVMRankerCV(Search, SVMRanker):
    """`SVMRanker` with its settings chosen by k-fold cross-validation over queries.

    Parameters
    ----------
    loss : str or RankingLoss, default "ndcg"
    Cs : int, array or None, default None
        The grid, or how many values; as for `RankSVCCV`.
    cv : int, splitter, iterable or None, default None
        An int: that many folds of whole queries, drawn with `random_state`; None: 5. A splitter that takes groups is
        given the queries as such. `PredefinedSplit` and pairs of rows serve sets that come with parts for training and
        validation. A fold with rows of a query in both of its parts is an error.
    bound, reaches, standardize, scales, init, init_Cs
        As for `RankSVCCV`, but for `init`, which is ``"auto"`` by default.
    scoring : str, callable or None, default None
        As for `RankSVCCV`, the mean over queries; NDCG with the gains of training. A function takes labels, scores and
        the keyword `qid`, like those of `rankhinge.metrics`.
    gains, level_weights, qid_column, solver, tol, max_iter, verbose
        As for `SVMRanker`; the paths use the bundle solver, and ten times `tol`.
    max_time : float or None, default None
        As for `RankSVCCV`.
    random_state : int, RandomState or None, default None
        As for `SVMRanker`, and for the folds: with None they are drawn anew at each fit.

    Attributes
    ----------
    C_ : float
    Cs_, reaches_ : ndarray
    scores_ : ndarray of shape (n_Cs, n_folds)
        Of both, the shapes for the tight bound are those of `RankSVCCV`.
    init_, scales_, init_Cs_, init_scores_
        For the tight bound; see `RankSVCCV`.
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As for `RankSVCCV`.
    coef_, … :
        Of the model refitted to all data; see `SVMRanker`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge import SVMRankerCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=300) + 1), 0, 2)
    >>> qid = np.repeat(np.arange(30), 10)
    >>> ranker = SVMRankerCV(Cs=[1.0, 10.0, 100.0], random_state=0, bound="convex").fit(X, y, qid=qid)
    >>> ranker.C_ in (1.0, 10.0, 100.0), ranker.scores_.shape
    (True, (3, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{key: value for key, value in SVMRanker._parameter_constraints.items() if key not in TUNED},
        **GRIDS,
        "cv": ["cv_object"],
    }
    _policy = LISTS

    @explaining(OF_LISTS)
    def __init__(
        self,
        loss: str | RankingLoss = "ndcg",
        Cs: int | ArrayLike | None = None,
        *,
        cv: Any = None,
        gains: str | ArrayLike = "exponential",
        level_weights: str | ArrayLike | None = None,
        qid_column: str | int | None = None,
        bound: str = "auto",
        reaches: int | ArrayLike | None = None,
        standardize: str | bool | float = "auto",
        scales: int | ArrayLike = 2,
        init: str | ArrayLike = "auto",
        init_Cs: int | ArrayLike | None = None,
        scoring: str | Callable[..., float] | None = None,
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.gains = gains
        self.level_weights = level_weights
        self.qid_column = qid_column
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
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    @explaining(OF_LISTS)
    def fit(self, X: Any, y: Any, qid: QueryIds | None = None, query_weight: Any = None) -> Self:
        """Choose C, then fit all data with it; see `SVMRanker.fit`.

        Parameters
        ----------
        X, y, qid, query_weight
            As for `SVMRanker.fit`; the folds are judged by weighted means, too. Without `qid` and `qid_column`
            there is one list, and rows are split instead.

        Returns
        -------
        self
        """
        whole = X
        X, qid = self._separated(X, qid)
        given = self._validated_relevance(X, y, qid)
        X, y = given.X, given.y
        refuse_strangers(self, self._bound)
        queries, units = (None, np.arange(y.size)) if qid is None else encode_queries(qid, y.size, counted="y")
        # What is wrong with the data as a whole is said here: below, a part that cannot be ranked does not count.
        names = None if queries is None else queries[units]
        weights = weights_of_rows(query_weight, names, y.size)
        lists = ranking_lists(y, names, get_loss(self.loss), self.gains, self.level_weights, weights)
        # A splitter may look for the queries in the column that is no feature.
        folds = query_folds(self.cv, whole, y, names, self.random_state)
        grades = grades_of(y.astype(np.float64), self.gains)
        parts = [self._part(y, queries, units, weights, grades, place, *rows) for place, rows in enumerate(folds)]
        known = [part for part in parts if part is not None]
        with self._search(X, lists, known, len(folds), {"": lists}) as (seen, tuning):
            return self._become(self._fit_lists(seen, lists, tuning, given))

    def _part(
        self,
        y: NDArray[Any],
        queries: NDArray[Any] | None,
        units: NDArray[Any],
        weights: NDArray[np.float64] | None,
        grades: Grades,
        fold: int,
        inside: NDArray[np.int64],
        outside: NDArray[np.int64],
    ) -> Part | None:
        """One fold, or None if its training part has no usable list; without queries it is one list."""
        loss = get_loss(self.loss)
        qid_train, qid_test = (None if queries is None else units[rows] for rows in (inside, outside))
        if queries is not None and callable(self.scoring):
            # A function of the user's knows the queries by their own names.
            qid_test = queries[qid_test]
        weight = None if weights is None else weights[inside]
        try:
            lists = ranking_lists(y[inside], qid_train, loss, self.gains, self.level_weights, weight, grades)
        except NoUsableList:
            return None
        # One list is one list, whatever it weighs.
        weight = None if weights is None or queries is None else weights[outside]
        labels, metric = y[outside].astype(np.float64), lists_metric(loss, self.gains, self.scoring, weight)

        def quality(scores: NDArray[np.float64]) -> float:
            return metric(labels, scores[outside], qid=qid_test)

        index = inside if lists.index is None else inside[lists.index]
        return Part(0, fold, replace(lists, index=index), quality)
