"""`RankSVCCV` and `SVMRankerCV`: choose C by cross-validation along warm-started paths."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval

from rankhinge._validation import encode_queries
from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import RankingObjective
from rankhinge.svm.path import walk_path
from rankhinge.svm.quality import list_quality, lists_quality
from rankhinge.svm.rank_svc import RankSVC, encode_targets
from rankhinge.svm.ranker import SVMRanker, gains_of, ranking_lists

__all__ = ["RankSVCCV", "SVMRankerCV"]

_SPAN = (-1.0, 5.0)


def _grid(Cs: Any) -> NDArray[np.float64]:
    """Values of C, ascending: those given, or that many between 0.1 and 100,000, evenly in the logarithm."""
    values = np.logspace(*_SPAN, Cs) if isinstance(Cs, Integral) else np.sort(np.asarray(Cs, dtype=np.float64))
    if values.ndim != 1 or values.size == 0 or not (np.isfinite(values).all() and values[0] > 0):
        raise ValueError(f"Cs must be positive and finite, got {Cs!r}")
    return values


def _choose(scores: NDArray[np.float64]) -> int:
    """The smallest C with the highest mean score over the folds; folds without a score do not count."""
    counted = scores[:, ~np.isnan(scores).any(axis=0)]
    if counted.shape[1] == 0:
        raise ValueError("no fold has both a positive and a negative in its test part: use fewer folds")
    return int(np.argmax(counted.mean(axis=1)))


class RankSVCCV(RankSVC):
    """`RankSVC` with C chosen by k-fold cross-validation on the loss's own metric.

    Along each fold's path the planes are kept from one C to the next. All K one-vs-rest problems of a multiclass or
    multilabel target run in lockstep, each with a C of its own.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
    Cs : int or array, default 8
        The grid, or how many values between 0.1 and 100,000.
    cv : int, splitter or iterable, default 5
        Stratified folds, shuffled with `random_state`, if an int.
    solver, tol, max_iter, threshold, random_state, verbose
        As for `RankSVC`; the paths use the bundle solver.

    Attributes
    ----------
    C_ : float or ndarray of shape (K,)
        The chosen value.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_Cs, n_folds) or (K, n_Cs, n_folds)
        The metric on the test part of each fold.
    coef_, intercept_, … :
        Of the model refitted to all data; see `RankSVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge import RankSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RankSVCCV(Cs=[1.0, 10.0, 100.0], random_state=0).fit(scale(X), y)
    >>> model.C_ in (1.0, 10.0, 100.0), model.scores_.shape
    (True, (3, 5))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{key: value for key, value in RankSVC._parameter_constraints.items() if key not in ("C", "warm_start")},
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        Cs: int | ArrayLike = 8,
        *,
        cv: Any = None,
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        threshold: str | float = "f1",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.threshold = threshold
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, mask: ArrayLike | None = None, groups: ArrayLike | None = None) -> RankSVCCV:
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
        X, y = self._validated_targets(X, y, mask)
        self.Cs_ = _grid(self.Cs)
        targets = encode_targets(y, mask)
        n_problems = targets.relevant.shape[0]
        folds = list(self._folds(X, y, targets.kind, groups))
        scores = np.full((n_problems, self.Cs_.size, len(folds)), np.nan)
        for fold, (train, test) in enumerate(folds):
            part = None if mask is None else np.asarray(mask)[train]
            scores[:, :, fold] = self._fold_scores(X, y, part, train, test, targets)
        chosen = [_choose(scores[k]) if targets.usable()[k] else 0 for k in range(n_problems)]
        self.C_ = self.Cs_[chosen] if n_problems > 1 else float(self.Cs_[chosen[0]])
        self.scores_ = scores if n_problems > 1 else scores[0]
        return self._fit_targets(X, targets, self.C_)

    def _folds(self, X: Any, y: NDArray[Any], kind: str, groups: Any) -> Iterator[Any]:
        splitter = check_cv(self.cv, y if kind != "multilabel" else None, classifier=kind != "multilabel")
        if self.cv is None or isinstance(self.cv, Integral):
            # Files are often sorted by class or by time: folds are drawn, not cut.
            splitter.shuffle = True
            splitter.random_state = check_random_state(self.random_state).randint(2**31 - 1)
        return splitter.split(X, y, groups)

    def _fold_scores(
        self, X: Any, y: NDArray[Any], mask: Any, train: NDArray[Any], test: NDArray[Any], targets: Any
    ) -> NDArray[np.float64]:
        """The metric of each problem and C on the test part of one fold; nan where it is not defined."""
        loss = get_loss(self.loss)
        relevant = targets.relevant[:, train]
        labelled = None if targets.labelled is None else targets.labelled[:, train]
        fold = targets._replace(relevant=np.ascontiguousarray(relevant), labelled=labelled)
        usable = np.flatnonzero(fold.usable())
        scores = np.full((targets.relevant.shape[0], self.Cs_.size), np.nan)
        if usable.size == 0:
            return scores
        problems = fold.lists()
        objective = RankingObjective(feature_map(_safe_indexing(X, train)), [problems[k] for k in usable], loss)
        test_features = feature_map(_safe_indexing(X, test))
        results = walk_path(objective, self.Cs_, tol=self.tol, max_iter=self.max_iter)
        for place, result in enumerate(results):
            rows = test_features.scores(result.coef)
            for k, row in zip(usable, rows, strict=True):
                known = slice(None) if targets.labelled is None else targets.labelled[k, test]
                scores[k, place] = list_quality(loss, targets.relevant[k, test][known], row[known])
        return scores


class SVMRankerCV(SVMRanker):
    """`SVMRanker` with C chosen by k-fold cross-validation over queries.

    Parameters
    ----------
    loss : str or RankingLoss, default "ndcg"
    Cs : int or array, default 8
        The grid, or how many values between 0.1 and 100,000.
    cv : int, default 5
        Folds; each query is in one test part. Queries are shuffled with `random_state`.
    gains, level_weights, solver, tol, max_iter, random_state, verbose
        As for `SVMRanker`; the paths use the bundle solver.

    Attributes
    ----------
    C_ : float
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_Cs, n_folds)
    coef_, … :
        Of the model refitted to all data; see `SVMRanker`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{key: value for key, value in SVMRanker._parameter_constraints.items() if key not in ("C", "warm_start")},
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        loss: str | RankingLoss = "ndcg",
        Cs: int | ArrayLike = 8,
        *,
        cv: int = 5,
        gains: str | ArrayLike = "exponential",
        level_weights: str | ArrayLike | None = None,
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.gains = gains
        self.level_weights = level_weights
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, qid: ArrayLike | None = None, query_weight: Any = None) -> SVMRankerCV:
        """Choose C, then fit all data with it; see `SVMRanker.fit`.

        Parameters
        ----------
        X, y, qid, query_weight
            As for `SVMRanker.fit`. Without `qid` there is one list, and rows are split instead.

        Returns
        -------
        self
        """
        X, y = self._validated(X, y, y_numeric=True, ensure_min_samples=2)
        self.Cs_ = _grid(self.Cs)
        # What is wrong with the data as a whole is said here: below, a part that cannot be ranked does not count.
        ranking_lists(y, qid, get_loss(self.loss), self.gains, self.level_weights, query_weight)
        units = np.arange(y.size) if qid is None else encode_queries(qid, y.size, counted="y")[1]
        folds = self._unit_folds(units)
        scores = np.full((self.Cs_.size, self.cv), np.nan)
        for fold in range(self.cv):
            test = folds[units] == fold
            scores[:, fold] = self._fold_scores(X, y, qid, query_weight, ~test, test)
        self.scores_ = scores
        self.C_ = float(self.Cs_[_choose(scores)])
        return self._fit_lists(X, y, qid, query_weight, self.C_)

    def _unit_folds(self, units: NDArray[Any]) -> NDArray[np.int64]:
        """The fold of each query."""
        n_units = int(units.max()) + 1
        if n_units < self.cv:
            raise ValueError(f"cv={self.cv} folds need at least as many queries, got {n_units}")
        folds = np.arange(n_units) % self.cv
        check_random_state(self.random_state).shuffle(folds)
        return folds

    def _fold_scores(
        self, X: Any, y: NDArray[Any], qid: Any, query_weight: Any, train: NDArray[Any], test: NDArray[Any]
    ) -> NDArray[np.float64]:
        loss = get_loss(self.loss)
        scores = np.full(self.Cs_.size, np.nan)
        inside, outside = np.flatnonzero(train), np.flatnonzero(test)
        qid_train, qid_test = (None if qid is None else _safe_indexing(qid, rows) for rows in (inside, outside))
        weight = query_weight
        if query_weight is not None and not hasattr(query_weight, "get"):
            weight = _safe_indexing(query_weight, inside)
        try:
            levels = np.unique(np.append(gains_of(y.astype(np.float64), self.gains), 0.0))
            lists = ranking_lists(y[inside], qid_train, loss, self.gains, self.level_weights, weight, levels)
        except ValueError:
            return scores
        objective = RankingObjective(feature_map(_safe_indexing(X, inside)), [lists], loss)
        features = feature_map(_safe_indexing(X, outside))
        for place, result in enumerate(walk_path(objective, self.Cs_, tol=self.tol, max_iter=self.max_iter)):
            row = features.scores(result.coef)[0]
            scores[place] = lists_quality(loss, y[outside].astype(np.float64), self.gains, row, qid_test)
        return scores
