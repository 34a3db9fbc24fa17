"""`SVMRanker`: linear learning to rank over many lists."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import column_or_1d

from rankhinge._validation import QueryIds, as_numbers, encode_queries
from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import Lists, RankingObjective, graded_lists
from rankhinge.solvers import SolverResult
from rankhinge.svm._base import LinearRankingMachine, Tuning
from rankhinge.svm._fitting import fitting, warn_user
from rankhinge.svm.foreign import OF_LISTS, explaining
from rankhinge.svm.gains import Grades, check_relevance, gains_of, grades_of
from rankhinge.svm.qid_column import QueryColumn
from rankhinge.svm.quality import lists_quality

__all__ = ["NoUsableList", "SVMRanker", "ranking_lists", "weights_of_rows", "without_words"]


# Rows of a single list without a word about queries: people rank so many samples with `RankSVC`.
_LONG_LIST = 1000


class NoUsableList(ValueError):
    """No list has samples of different relevance."""


def _warn_of_one_list(qid: QueryIds | None, n_rows: int) -> None:
    """Warn who may have forgotten the queries."""
    if qid is None and n_rows >= _LONG_LIST:
        warn_user(
            f"there is no qid: all {n_rows} rows are ranked as one list. Give the query of each row, qid=...; if you "
            "mean one list, give them all the same, np.zeros(len(y)) for instance"
        )


def without_words(y: Any) -> Any:
    """Relevance as it is, or as numbers if it is not made of these by itself."""
    labels = np.asarray(y)
    # scikit-learn would name neither y nor the entry that is no number.
    return as_numbers(y, "y") if labels.ndim > 0 and labels.dtype.kind in "USO" else y


def ranking_lists(
    y: NDArray[Any],
    qid: QueryIds | None,
    loss: RankingLoss,
    gains: str | ArrayLike,
    level_weights: str | ArrayLike | None,
    query_weight: NDArray[np.float64] | None,
    grades: Grades | None = None,
) -> Lists:
    """The lists of one learning-to-rank problem, from labels and query ids.

    `query_weight` has one entry a row (`weights_of_rows`); `grades` are those that there are if `y` is a part of the
    data and may lack some.
    """
    labels = np.asarray(y, dtype=np.float64)
    check_relevance(labels)
    if qid is None:
        queries, codes = np.zeros(1, np.int64), np.zeros(labels.size, np.int64)
    else:
        queries, codes = encode_queries(qid, labels.size, counted="y")
    with np.errstate(over="ignore"):
        graded = gains_of(labels, gains)
    wrong = np.flatnonzero(~np.isfinite(graded))
    if wrong.size:
        raise ValueError(f"y[{wrong[0]}] is {labels[wrong[0]]:g}: its gain is not finite")
    grades = grades_of(labels, gains) if grades is None else grades
    lists = graded_lists(
        np.searchsorted(grades.gains, graded),
        codes.astype(np.int64),
        loss,
        grades.gains,
        _weights_of_levels(loss, grades.labels, level_weights),
        _weights_of_lists(query_weight, queries, codes),
    )
    if lists.n_lists == 0:
        weight = "" if query_weight is None else " and a positive weight"
        raise NoUsableList(f"none of the {queries.size} queries has both a relevant and a less relevant sample{weight}")
    return lists


def _weights_of_levels(
    loss: RankingLoss, labels: NDArray[np.float64], level_weights: str | ArrayLike | None
) -> NDArray[np.float64] | None:
    """The weight of each label but 0, of all labels that there are, ascending from 0."""
    if level_weights is None:
        if labels.size > 2 and not loss.is_graded:
            raise ValueError(
                f"y has {labels.size} grades, but the loss {loss.name!r} knows relevant and not relevant only: "
                "binarise y, or choose level_weights='uniform' or an array"
            )
        return None
    if isinstance(level_weights, str):
        if level_weights != "uniform":
            raise ValueError(f"level_weights must be 'uniform' or an array, got {level_weights!r}")
        return np.ones(labels.size - 1)
    weights = as_numbers(level_weights, "level_weights")
    if weights.ndim != 1 or not (np.isfinite(weights).all() and np.all(weights >= 0) and weights.any()):
        raise ValueError(f"level_weights must be finite numbers ≥ 0, not all 0, got {level_weights!r}")
    # In any scale; by the largest, since the sum of large ones may overflow.
    weights = weights / weights.max()
    if np.all(labels == np.floor(labels)) and weights.size >= labels[-1]:
        # By label, 1, 2, …: thresholds at labels that are missing have the samples of the next one above them.
        return np.diff(np.concatenate([[0.0], np.cumsum(weights)])[labels.astype(np.intp)])
    if weights.size != labels.size - 1:
        raise ValueError(
            f"level_weights has {weights.size} entries, but y has the grades {_shown(labels[1:])}: give a weight for "
            f"each of these {labels.size - 1}, or for labels that are integers one for each from 1 to {labels[-1]:g}"
        )
    return weights


def _shown(labels: NDArray[np.float64]) -> str:
    """Some labels, for a message."""
    return ", ".join(f"{label:g}" for label in labels[:6]) + (", …" if labels.size > 6 else "")


def weights_of_rows(query_weight: Any, qid: QueryIds | None, n_samples: int) -> NDArray[np.float64] | None:
    """The weight of each row's query, from an array with one entry a row or from a mapping by query id."""
    if query_weight is None:
        return None
    if not isinstance(query_weight, Mapping):
        rows = as_numbers(query_weight, "query_weight")
        if rows.shape != (n_samples,):
            raise ValueError(
                f"query_weight has shape {rows.shape}, but there are {n_samples} rows: give the weight of each row's "
                "query, or a mapping from queries to weights (of a Series: to_dict())"
            )
    else:
        if qid is None:
            raise ValueError("query_weight is a mapping by query, but there is no qid")
        queries, codes = encode_queries(qid, n_samples, counted="y")
        weights = [_weight_of(query, query_weight) for query in queries]
        if len(query_weight) and all(weight is None for weight in weights):
            strange, known = next(iter(query_weight)), queries.tolist()[0]
            # A fold may be without the queries that it knows; or words stand for numbers.
            warn_user(f"query_weight knows none of the queries, but {strange!r}; a query is {known!r}: all weigh 1")
        rows = np.array([1.0 if weight is None else weight for weight in weights])[codes]
    return rows


def _weight_of(query: Any, mapping: Mapping[Any, Any]) -> float | None:
    """The weight that a mapping gives to a query; None if it does not know it.

    A query from an array of dates may be known as what it is there, or as the date that Python makes of it.
    """
    names = [query]
    if isinstance(query, np.datetime64):
        names += [query.item(), query.astype("datetime64[us]").item()]
    known = [name for name in names if name in mapping]
    if not known and not hasattr(type(mapping), "__missing__"):
        return None
    # What does not know a query may have an answer all the same, as a `defaultdict` has.
    weight = mapping[known[0] if known else query]
    try:
        return float(weight)
    except (TypeError, ValueError):
        raise ValueError(f"query_weight of query {query} is {weight!r}: it must be a number") from None


def _weights_of_lists(
    rows: NDArray[np.float64] | None, queries: NDArray[Any], codes: NDArray[Any]
) -> NDArray[np.float64] | None:
    """One weight a list, from one for each row."""
    if rows is None:
        return None
    wrong = np.flatnonzero(~(np.isfinite(rows) & (rows >= 0)))
    if wrong.size:
        query = queries[codes[wrong[0]]]
        raise ValueError(f"the weight of query {query} is {rows[wrong[0]]}: it must be finite and ≥ 0")
    weights = np.empty(queries.size)
    weights[codes] = rows
    wrong = np.flatnonzero(weights[codes] != rows)
    if wrong.size:
        query = queries[codes[wrong[0]]]
        raise ValueError(f"query_weight[{wrong[0]}] differs from that of other rows of query {query}")
    return weights


class SVMRanker(QueryColumn, LinearRankingMachine):
    r"""Linear learning to rank that optimises NDCG, average precision, … over lists.

    .. math:: \min_w \tfrac12 \|w\|^2 + C \, \frac1Q \sum_q \sum_\ell \omega_{q\ell} \, J_{q\ell}(X_q w)

    over the Q usable lists (with samples of different relevance). Graded labels are decomposed by thresholds ℓ, which
    for NDCG is exact: the weights :math:`\omega_{q\ell}` are such that the sum bounds one minus the graded NDCG.

    Parameters
    ----------
    loss : str or RankingLoss, default "ndcg"
        As for `RankSVC`.
    C : float or "auto", default "auto"
        ``"auto"``: 1 for the convex bound, ``0.3 ‖w₀‖ / ‖∇T(w₀)‖`` for the tight one.
    gains : {"exponential", "linear"} or array, default "exponential"
        Gain of label y: ``2^y - 1``, ``y``, or ``gains[y]`` (ascending from 0).
    level_weights : {"uniform"} or array, optional
        Weights of the thresholds for losses outside the DCG family; without it they take labels 0/1 only. An array has
        an entry for each label 1, 2, …, or, shorter than that, for each different grade of y above 0. Given for a
        loss of that family, they take the place of those that make the decomposition exact: what is minimised then
        no longer bounds the graded metric, which `score` still is.
    bound : {"convex", "tight"}, default "convex"
        As for `RankSVC`; the tight bound is taken of each list at each threshold.
    scale : float or "auto", default "auto"
        Tight bound: standard deviation of the start's scores within the lists. ``"auto"``: the mean number of
        negatives over 100.
    init : {"logistic", "convex"} or array of shape (d,), default "logistic"
        Tight bound: the start. The logistic regression tells the samples at or above each threshold from the others,
        with an intercept for each list.
    init_C : float or "auto", default "auto"
        C of the start. ``"auto"``: 100 for the convex bound; for the logistic regression 3 over the sum of the
        features' variances within the lists.
    qid_column : str or int, optional
        Name or position of a column of X that holds the query ids and is no feature, in `fit`, `predict` and `score`.
        So searches and cross-validation take them along without metadata routing; see `QueryKFold`.
    solver, tol, max_iter, warm_start, random_state, verbose
        As for `RankSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Of the features alone, without the column of the query ids.
    intercept_ : float
        0: no list changes its order with it. For tools that look for one.
    n_queries_ : int
        Usable lists: the mean is over these.
    n_unusable_queries_ : int
        Lists that were left out because all their samples have the same relevance.
    C_, scale_, init_C_, init_coef_, objective_, dual_objective_, gap_, n_iter_, n_passes_, history_, status_
        As for `RankSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge import SVMRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.clip(np.round(X[:, 0] + 1), 0, 2)
    >>> qid = np.repeat(["a", "b", "c"], 20)
    >>> ranker = SVMRanker(C=100.0, bound="convex").fit(X, y, qid=qid)
    >>> ranker.score(X, y, qid=qid) > 0.95
    True
    """

    intercept_: float
    n_queries_: int
    n_unusable_queries_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearRankingMachine._parameter_constraints,
        # There is one problem, and no array of them.
        **{key: [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})] for key in ("C", "scale", "init_C")},
        "gains": [StrOptions({"exponential", "linear"}), "array-like"],
        "level_weights": [StrOptions({"uniform"}), "array-like", None],
        "qid_column": [str, Integral, None],
    }

    @explaining(OF_LISTS)
    def __init__(
        self,
        loss: str | RankingLoss = "ndcg",
        C: float | str = "auto",
        *,
        gains: str | ArrayLike = "exponential",
        level_weights: str | ArrayLike | None = None,
        qid_column: str | int | None = None,
        bound: str = "convex",
        scale: float | str = "auto",
        init: str | ArrayLike = "logistic",
        init_C: float | str = "auto",
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.gains = gains
        self.level_weights = level_weights
        self.qid_column = qid_column
        self.bound = bound
        self.scale = scale
        self.init = init
        self.init_C = init_C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    @explaining(OF_LISTS)
    def fit(self, X: Any, y: Any, qid: QueryIds | None = None, query_weight: Any = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)
        y : array of shape (n,)
            Relevance, 0 = not relevant.
        qid : array of shape (n,), optional
            Query of each row: any hashable values, rows in any order. None: those of `qid_column`, or one list.
        query_weight : array of shape (n,) or mapping, optional
            Weight of each row's query (the same for all its rows), or by query id: queries that a mapping does not
            name weigh 1, and names that no row has do not matter. Default: all equal.

        Returns
        -------
        self
        """
        X, qid = self._separated(X, qid)
        X, y = self._validated_relevance(X, y, qid)
        _warn_of_one_list(qid, y.size)
        weights = weights_of_rows(query_weight, qid, y.size)
        lists = ranking_lists(y, qid, get_loss(self.loss), self.gains, self.level_weights, weights)
        return self._fit_lists(self._reduced(X, 1), lists, self._tuning())

    def _validated_relevance(self, X: Any, y: Any, qid: QueryIds | None) -> tuple[Any, NDArray[Any]]:
        """X, and y as numbers."""
        return self._note(*self._validated(X, without_words(y), y_numeric=True, ensure_min_samples=2), qid=qid)

    def _fit_lists(self, X: Any, lists: Lists, tuning: Tuning) -> Self:
        self._finish_with, features = lists, feature_map(X)
        earlier = self._earlier_coef()
        objective = RankingObjective(features, [lists], get_loss(self.loss))
        result = self._solve(
            objective,
            tuning.of(np.ones(1, np.bool_), features.n_features),
            start=None if earlier is None else earlier[:, None],
        )
        self._store(result)
        self._warn_of_flaws(result, objective)
        return self

    def _fitted(self, result: SolverResult) -> dict[str, Any]:
        lists = self._finish_with
        return self._certificate(result) | {
            "coef_": self._coordinates.everywhere(result.coef[:, 0].copy()),
            "intercept_": 0.0,
            "n_queries_": lists.n_lists,
            "n_unusable_queries_": lists.n_unusable,
        }

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Scores ``Xw``: within a list, sort by them in descending order.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._linear(self._separated_again(X)[0])[:, 0]

    def score(self, X: Any, y: Any, qid: QueryIds | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of the loss's metric over the queries, with the gains of training.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)
        y : array of shape (n,)
        qid : array of shape (n,), optional
            None: those of `qid_column`, or one list; the latter after a fit to several with a warning, since search
            tools may have dropped them on the way.
        sample_weight : None
            Accepted because `Pipeline.score` passes it; a ranking has no sample weights.

        Returns
        -------
        float
            Queries without a relevant sample do not count. For losses outside the DCG family every label above 0 is
            relevant, whatever `level_weights` is. Equal scores: the mean over their orders (the worst order for losses
            of one's own that are given by a step).
        """
        if sample_weight is not None:
            raise ValueError("sample_weight is not supported: ranking metrics have no sample weights")
        X, qid = self._separated_again(X, qid)
        self._warn_if_cut(qid)
        scores = self._linear(X)[:, 0]
        labels = column_or_1d(as_numbers(y, "y"))
        if labels.size != scores.size:
            raise ValueError(f"y has {labels.size} entries, but X has {scores.size} rows")
        check_relevance(labels)
        if qid is None and self.n_queries_ + self.n_unusable_queries_ > 1:
            warn_user(
                "score got no qid, after a fit to several queries: all rows are ranked as one list. A search takes it "
                "along as a column of X (qid_column=), or passes it on if metadata routing is enabled "
                "(sklearn.set_config(enable_metadata_routing=True)) and scoring=metrics.make_query_scorer(...)"
            )
        return lists_quality(get_loss(self.loss), labels, self.gains, scores, qid)

    def __sklearn_tags__(self) -> Any:
        """Neither classifier nor regressor."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = None
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
