"""`SVMRankerCV`: choose the settings of `SVMRanker` by cross-validation over queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds, encode_queries
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.problems.door import container_of
from rankhinge.problems.gains import Grades, grades_of
from rankhinge.problems.queries import NoUsableList, ranking_lists, weights_of_rows
from rankhinge.svm._fitting import OF_LISTS, explaining, fitting
from rankhinge.svm.cv_elsewhere import fit_lists_elsewhere
from rankhinge.svm.folds import Part
from rankhinge.svm.policy import LISTS
from rankhinge.svm.quality import lists_metric
from rankhinge.svm.query_folds import query_folds
from rankhinge.svm.ranker import SVMRanker, warn_of_one_list
from rankhinge.svm.search import GRIDS, TUNED, Search
from rankhinge.svm.tuning import refuse_strangers

__all__ = ["SVMRankerCV"]


class SVMRankerCV(Search, SVMRanker):
    """`SVMRanker` with settings chosen by k-fold cross-validation over queries.

    Parameters
    ----------
    loss : str or RankingLoss, default "ndcg"
    Cs : int, array or None, default None
        The grid, or the number of its values, as for `RankSVCCV`.
    cv : int, splitter, iterable or None, default None
        An int: that many folds of whole queries, drawn with `random_state`. None: 5. Splitters that take groups get the
        queries as groups. Use `PredefinedSplit` or pairs of row indices for data with a validation part. A query with
        rows in both parts of a fold is an error.
    bound, reaches, standardize, scales, init, init_Cs
        As for `RankSVCCV`. The default of `init` is ``"auto"``.
    scoring : str, callable or None, default None
        As for `RankSVCCV`, averaged over queries. NDCG uses the gains of training. A function takes labels, scores and
        the keyword `qid`, like the metrics of `rankhinge.metrics`.
    gains, level_weights, qid_column, solver, tol, max_iter, verbose
        As for `SVMRanker`. The paths use the bundle solver and ten times `tol`.
    max_time : float or None, default None
        As for `RankSVCCV`.
    random_state : int, RandomState or None, default None
        As for `SVMRanker`, and for the folds. None draws new folds at each fit.

    Attributes
    ----------
    C_ : float
    Cs_, reaches_ : ndarray
    scores_ : ndarray of shape (n_Cs, n_folds)
        The metric on the test part of each fold. For the tight bound, the shape is that of `RankSVCCV`.
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
        """Choose the settings, then fit all data with them. See `SVMRanker.fit`.

        Parameters
        ----------
        X, y, qid, query_weight
            As for `SVMRanker.fit`. Query weights also apply to the scores of the folds. Without `qid` and `qid_column`
            there is one list, and the folds split its rows.

        Returns
        -------
        self
        """
        container = container_of(X)
        if hasattr(container, "folds"):
            return self._become(fit_lists_elsewhere(self, container, X, y, qid, query_weight))
        whole = X
        X, qid = self._separated(X, qid)
        given = self._validated_relevance(X, y, qid)
        X, y = given.X, given.y
        warn_of_one_list(qid, y.size)
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
        metric = lists_metric(loss, self.gains, self.scoring, y[outside].astype(np.float64), qid_test, weight)
        index = inside if lists.index is None else inside[lists.index]
        return Part(0, fold, replace(lists, index=index), lambda scores: metric(scores[outside]))
