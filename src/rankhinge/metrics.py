"""Ranking metrics by the book, for one list or for many, with every policy explicit.

All metrics are called as ``metric(relevance, scores, *, qid=None, ...)`` and return a float: the
value of one list, or with `qid` the mean over the queries (`per_query` gives them one by one).
They share no code with the losses, so that each can check the other.

Where a metric is binary, a sample is relevant (positive) if its relevance is above 0.

**ties**: what to do with equal scores of one list.

- ``"average"``: the expectation over a uniformly random order of the tied samples, exactly, by the
  closed forms of McSherry and Najork (2008);
- ``"worst"`` / ``"best"``: the least relevant / the most relevant of the tied samples first;
- ``"index"``: the order of the input;
- ``"threshold"`` (average precision only): tied samples are retrieved together, as in scikit-learn.

**no_positives**: the value of a list without a relevant sample, and for `auc` also of a list
without an irrelevant one.

- ``"nan"``: nan, and therefore nan for a mean which contains it;
- ``"zero"`` / ``"one"``: 0 / 1;
- ``"skip"``: left out; what remains of a single list, or if all are left out, is nan;
- ``"raise"``: a `ValueError` that names the query.

A list without negatives has average precision and reciprocal rank 1 in any order, and NDCG 1 if
its gains are all the same.

References
----------
F. McSherry and M. Najork, "Computing information retrieval performance measures efficiently in
the presence of tied scores", ECIR 2008.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "auc",
    "average_precision",
    "make_query_scorer",
    "ndcg",
    "per_query",
    "precision_at_k",
    "rbp",
    "reciprocal_rank",
]

Floats: TypeAlias = NDArray[np.float64]
Ties: TypeAlias = Literal["average", "worst", "best", "index"]
TiesOfAP: TypeAlias = Literal["average", "worst", "best", "index", "threshold"]
NoPositives: TypeAlias = Literal["nan", "zero", "one", "raise", "skip"]
Gains: TypeAlias = Literal["linear", "exponential"] | ArrayLike | Callable[[Floats], ArrayLike]
QueryIds: TypeAlias = ArrayLike | Sequence[Hashable]


def average_precision(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    ties: TiesOfAP = "average",
    no_positives: NoPositives = "nan",
) -> float:
    """Average precision, the mean precision at the ranks of the relevant samples.

    ``AP = (1/P) sum_i i / rank_i`` over the P relevant samples in the order of their ranks. With
    ``ties="threshold"`` it is ``sum_t (R_t - R_{t-1}) P_t`` with recall R and precision P at each
    distinct score t (`sklearn.metrics.average_precision_score`).

    Parameters
    ----------
    relevance : array-like of shape (n_samples,)
        Relevance at least 0; relevant is what is above 0.
    scores : array-like of shape (n_samples,)
        Finite scores, the highest first.
    qid : sequence of shape (n_samples,), optional
        The query of each row: any hashable, rows in any order. Without it: one list.
    ties : {"average", "worst", "best", "index", "threshold"}
        How equal scores are ordered, see `rankhinge.metrics`.
    no_positives : {"nan", "zero", "one", "raise", "skip"}
        What a list without relevant samples gives, see `rankhinge.metrics`.

    Returns
    -------
    float
        The average precision, with `qid` the mean over the queries (MAP).

    References
    ----------
    C. Manning, P. Raghavan, H. Schütze, Introduction to Information Retrieval, 2008, section 8.4.

    Examples
    --------
    >>> average_precision([1, 0, 1], [3.0, 2.0, 1.0])
    0.8333333333333333
    >>> average_precision([0, 1], [5.0, 5.0])  # the mean of 1/2 and 1
    0.75
    >>> average_precision([1, 0, 0, 1], [3, 2, 1, 0], qid=["a", "b", "a", "b"])
    0.75
    """
    return _mean(
        _evaluate(
            _average_precision, relevance, scores, qid=qid, ties=ties, no_positives=no_positives
        )
    )


def ndcg(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    k: int | None = None,
    gains: Gains = "linear",
    ties: Ties = "average",
    no_positives: NoPositives = "nan",
) -> float:
    """Normalised discounted cumulative gain, optionally cut off after rank k.

    ``NDCG@k = DCG@k / max DCG@k`` with ``DCG@k = sum_{rank <= k} gain(rank) / log2(1 + rank)``.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`, but relevance may be graded.
    k : int, optional
        The last rank that counts. Without it: all.
    gains : {"linear", "exponential"}, array-like or callable
        ``"linear"``: the relevance; ``"exponential"``: ``2**relevance - 1`` (Burges et al. 2005);
        an array: ``gains[relevance]`` of integer labels; a callable maps the array of relevances
        to an array of gains. Gains must be finite and at least 0.
    ties, no_positives : str
        As in `average_precision`, less ``"threshold"``; no positives: all gains of the list are 0.

    Returns
    -------
    float
        The NDCG, with `qid` the mean over the queries.

    References
    ----------
    K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002.

    Examples
    --------
    >>> round(ndcg([0, 2, 1], [3.0, 2.0, 1.0]), 6)
    0.669672
    >>> round(ndcg([0, 2, 1], [3.0, 2.0, 1.0], gains="exponential", k=2), 6)
    0.521296
    """
    return _mean(
        _evaluate(
            _ndcg,
            relevance,
            scores,
            qid=qid,
            ties=ties,
            no_positives=no_positives,
            gains=gains,
            k=k,
        )
    )


def reciprocal_rank(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives = "nan",
) -> float:
    """Reciprocal rank of the first relevant sample, ``RR = 1 / min_i rank_i``.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    ties, no_positives : str
        As in `average_precision`, less ``"threshold"``; the average of ties is that of 1 / rank.

    Returns
    -------
    float
        The reciprocal rank, with `qid` the mean over the queries (MRR).

    References
    ----------
    P. Kantor and E. Voorhees, "The TREC-5 confusion track", Information Retrieval 2, 2000.

    Examples
    --------
    >>> reciprocal_rank([0, 1, 1], [3.0, 2.0, 1.0])
    0.5
    >>> reciprocal_rank([0, 0, 1, 0], [3, 2, 1, 0], qid=[1, 1, 2, 2], no_positives="skip")
    1.0
    """
    return _mean(
        _evaluate(
            _reciprocal_rank, relevance, scores, qid=qid, ties=ties, no_positives=no_positives
        )
    )


def auc(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives = "nan",
) -> float:
    """Area under the ROC curve, the share of pairs with the relevant sample above the other.

    ``AUC = #{(i, j) : i relevant, j not, rank_i < rank_j} / (P N)``; tied pairs count one half
    (``ties="average"``), 0 (``"worst"``) or 1 (``"best"``).

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    ties, no_positives : str
        As in `average_precision`, less ``"threshold"``; lists without negatives follow it too.

    Returns
    -------
    float
        The AUC, with `qid` the mean over the queries.

    References
    ----------
    J. Hanley and B. McNeil, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", Radiology 143, 1982.

    Examples
    --------
    >>> auc([1, 0, 1, 0, 0], [4.0, 3.0, 2.0, 2.0, 1.0])
    0.75
    """
    return _mean(_evaluate(_auc, relevance, scores, qid=qid, ties=ties, no_positives=no_positives))


def rbp(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    persistence: float = 0.8,
    normalize: bool = False,
    ties: Ties = "average",
    no_positives: NoPositives = "zero",
) -> float:
    """Rank-biased precision, what a reader finds who goes on after each sample with probability p.

    ``RBP = (1 - p) sum_i p**(rank_i - 1)`` over the relevant samples.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    persistence : float
        p, at least 0 and below 1.
    normalize : bool
        Divide by the value of the best order of the list, which makes that order's value 1.
    ties, no_positives : str
        As in `average_precision`, less ``"threshold"``; without positives the formula gives 0.

    Returns
    -------
    float
        The rank-biased precision, with `qid` the mean over the queries.

    References
    ----------
    A. Moffat and J. Zobel, "Rank-biased precision for measurement of retrieval effectiveness",
    TOIS 27, 2008.

    Examples
    --------
    >>> rbp([1, 0, 1], [3.0, 2.0, 1.0], persistence=0.5)
    0.625
    >>> round(rbp([1, 0, 1], [3.0, 2.0, 1.0], persistence=0.5, normalize=True), 6)
    0.833333
    """
    options = {"persistence": persistence, "normalize": normalize}
    return _mean(
        _evaluate(_rbp, relevance, scores, qid=qid, ties=ties, no_positives=no_positives, **options)
    )


def precision_at_k(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    k: int,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives = "zero",
) -> float:
    """Precision at k, the share of relevant samples among the first k.

    ``P@k = #{i relevant : rank_i <= k} / k``. As in trec_eval, the divisor stays k for a list of
    fewer than k samples.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    k : int
        How many of the first samples to look at.
    ties, no_positives : str
        As in `average_precision`, less ``"threshold"``; without positives the formula gives 0.

    Returns
    -------
    float
        The precision, with `qid` the mean over the queries.

    Examples
    --------
    >>> precision_at_k([1, 0, 1, 1], [4.0, 3.0, 2.0, 1.0], k=2)
    0.5
    """
    return _mean(
        _evaluate(
            _precision_at_k, relevance, scores, qid=qid, ties=ties, no_positives=no_positives, k=k
        )
    )


def per_query(
    metric: str, relevance: ArrayLike, scores: ArrayLike, qid: QueryIds, **options: Any
) -> tuple[NDArray[Any], Floats]:
    """Values of a metric query by query, in the order in which the queries first appear.

    Parameters
    ----------
    metric : str
        The name of a metric of this module, such as ``"ndcg"``; ``"ap"`` is average precision.
    relevance, scores, qid : array-like of shape (n_samples,)
        As for the metric itself.
    **options
        Further arguments of the metric, such as ``k``, ``ties`` or ``no_positives``.

    Returns
    -------
    queries : ndarray of shape (n_queries,)
        The distinct queries, less those left out by ``no_positives="skip"``. Of `qid`'s dtype if
        that was an array, else of dtype object.
    values : ndarray of shape (n_queries,)
        Their values, whose mean is what the metric itself returns.

    Examples
    --------
    >>> queries, values = per_query("ap", [1, 0, 0, 1], [3, 2, 1, 0], np.array([7, 2, 7, 2]))
    >>> queries.tolist(), values.tolist()
    ([7, 2], [1.0, 0.5])
    """
    function = _metric_named(metric)
    if qid is None:
        raise ValueError("qid is missing: one query per row is needed")
    call = inspect.signature(function).bind(relevance, scores, qid=qid, **options)
    call.apply_defaults()
    return _evaluate(_CORES[function], *call.args, **call.kwargs)


def make_query_scorer(metric: str | Callable[..., float] = "ndcg", **options: Any) -> QueryScorer:
    """Scorer for scikit-learn's tools: the mean of a metric over the queries of the test rows.

    The scorer is called as ``scorer(estimator, X, y, qid=qid)``. It requests `qid` from the start,
    so with metadata routing enabled it is enough to pass `qid` to `GridSearchCV.fit` or in the
    `params` of `cross_validate`; ``set_score_request(qid="groups")`` asks for it under another
    name. Without `qid` it raises rather than pool all queries into one list.

    Scores are the estimator's `decision_function` or else its `predict`. Of a classifier with two
    classes the second one is the relevant class, and if it has no `decision_function` the
    probability of that class is the score.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of this module, or ``metric(relevance, scores, *, qid, **options)``.
    **options
        Further arguments of the metric, such as ``k``, ``ties`` or ``no_positives``.

    Returns
    -------
    QueryScorer
        The scorer; higher is better. It can be pickled if the metric and the options can.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X, y, qid = [[3.0], [2.0], [1.0], [5.0]], [1, 0, 2, 3], ["a", "a", "b", "b"]
    >>> make_query_scorer("ndcg", k=1)(Ridge().fit(X, y), X, y, qid=qid)
    1.0
    """
    function = _metric_named(metric) if isinstance(metric, str) else metric
    # Inside a grid search a misspelt option would only show up as a score of nan.
    inspect.signature(function).bind([], [], qid=[], **options)
    return QueryScorer(function, options)


class QueryScorer:
    """What `make_query_scorer` returns; ``scorer(estimator, X, y, qid=qid)`` is a float."""

    def __init__(self, metric: Callable[..., float], options: dict[str, Any]) -> None:
        self._metric = metric
        self._options = options
        self._qid_request: bool | str | None = True

    def __repr__(self) -> str:
        """Show the call that makes this scorer."""
        name = getattr(self._metric, "__name__", repr(self._metric))
        options = "".join(f", {key}={value!r}" for key, value in self._options.items())
        return f"make_query_scorer({name!r}{options})"

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, *, qid: QueryIds | None = None
    ) -> float:
        """Return the mean metric of the estimator's scores of X over the queries."""
        if qid is None:
            raise ValueError(
                f"{self!r} got no qid. In cross-validation or a search, enable metadata routing "
                "(sklearn.set_config(enable_metadata_routing=True)) and pass qid; if all rows are "
                "one list, give them all the same qid"
            )
        classes: Any = getattr(estimator, "classes_", ())
        is_binary = len(classes) == 2
        if hasattr(estimator, "decision_function"):
            scores = estimator.decision_function(X)
        elif is_binary and hasattr(estimator, "predict_proba"):
            scores = estimator.predict_proba(X)[:, 1]
        else:
            scores = estimator.predict(X)
        relevance = np.asarray(y) == classes[1] if is_binary else y
        return float(self._metric(relevance, scores, qid=qid, **self._options))

    def set_score_request(self, *, qid: bool | str | None = True) -> QueryScorer:
        """Say whether scikit-learn shall pass `qid`, or from which other name to take it."""
        previous, self._qid_request = self._qid_request, qid
        try:
            self.get_metadata_routing()
        except ValueError:
            self._qid_request = previous
            raise
        return self

    def get_metadata_routing(self) -> Any:
        """Return the request for `qid` as scikit-learn's metadata routing wants to have it."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=self._qid_request)
        return request


@dataclass(frozen=True)
class _Lists:
    """Validated rows, in the order of the input."""

    gains: Floats  # (n_samples,), at least 0; 0 or 1 for binary metrics
    scores: Floats  # (n_samples,)
    list_index: NDArray[np.intp]  # (n_samples,), the list of each row
    queries: NDArray[Any]  # (n_lists,)

    def count(self, rows: NDArray[np.bool_]) -> Floats:
        """Count the marked rows of each list."""
        counts = np.bincount(self.list_index[rows], minlength=len(self.queries))
        return counts.astype(np.float64)


@dataclass(frozen=True)
class _Ranking:
    """Rows list by list, ranked within each; each array but `starts` has shape (n_samples,).

    Rows whose order is left open form a tied group; where ties are broken every row is its own
    group. So one formula, for groups, serves all policies.
    """

    starts: NDArray[np.intp]  # (n_lists,), the first row of each list
    gain: Floats
    rank: Floats  # from 1 in each list
    place: Floats  # from 0 in each tied group
    tied: Floats  # size of the row's tied group
    tied_gain: Floats  # sum of the gains of the row's tied group
    gain_above: Floats  # sum of the gains of the groups above in the same list

    def sum(self, values: Floats) -> Floats:
        """Sum over the rows of each list."""
        return np.add.reduceat(values, self.starts)


def _rank(lists: _Lists, ties: str) -> _Ranking:
    """Sort by (list, descending score), ties as the policy says."""
    tie_break = {"worst": (lists.gains,), "best": (-lists.gains,)}.get(ties, ())
    order = np.lexsort((*tie_break, -lists.scores, lists.list_index))
    list_index, scores, gain = lists.list_index[order], lists.scores[order], lists.gains[order]
    begins_list = np.append(True, list_index[1:] != list_index[:-1])
    begins_group = np.ones(len(order), dtype=bool)
    if ties in ("average", "threshold"):
        begins_group = begins_list | np.append(True, scores[1:] != scores[:-1])

    rows = np.arange(len(order))
    starts, group_starts = np.flatnonzero(begins_list), np.flatnonzero(begins_group)
    group = np.cumsum(begins_group) - 1
    first_in_group = group_starts[group]
    gain_before = np.cumsum(gain) - gain
    return _Ranking(
        starts=starts,
        gain=gain,
        rank=(rows - starts[list_index] + 1).astype(np.float64),
        place=(rows - first_in_group).astype(np.float64),
        tied=np.bincount(group)[group].astype(np.float64),
        tied_gain=np.add.reduceat(gain, group_starts)[group],
        gain_above=gain_before[first_in_group] - gain_before[starts[list_index]],
    )


def _average_precision(lists: _Lists, ties: str) -> Floats:
    r = _rank(lists, ties)
    if ties == "threshold":
        last_rank = r.rank - r.place + r.tied - 1
        precision = r.gain * (r.gain_above + r.tied_gain) / last_rank
    else:
        # The sample at this place is relevant with probability m/g (m of the g tied ones are), and
        # then each sample before it in the group is so with probability (m - 1) / (g - 1).
        before = r.place * (r.tied_gain - 1) / np.maximum(r.tied - 1, 1)
        precision = r.tied_gain / r.tied * (r.gain_above + 1 + before) / r.rank
    return _ratio(r.sum(precision), lists.count(lists.gains > 0))


def _reciprocal_rank(lists: _Lists, ties: str) -> Floats:
    r = _rank(lists, ties)
    first = (r.gain_above == 0) & (r.tied_gain > 0)
    place, tied, relevant = r.place[first], r.tied[first], r.tied_gain[first]
    # P(the first of the group's relevant samples is at this place): none at the places before,
    # where a place after s irrelevant ones is irrelevant with probability (g - m - s) / (g - s).
    drawn = np.maximum(place - 1, 0)
    irrelevant_left = np.maximum(tied - relevant - drawn, 0)
    none_yet = np.where(place > 0, irrelevant_left / (tied - drawn), 1.0)
    probability = _product_within_groups(none_yet, place) * relevant / (tied - place)
    values = np.zeros_like(r.rank)
    values[first] = probability / r.rank[first]
    return r.sum(values)


def _product_within_groups(factors: Floats, place: Floats) -> Floats:
    """Cumulative product that starts afresh at each place 0; log2(longest group) array passes."""
    product, shift = factors.copy(), 1
    while (rows := np.flatnonzero(place >= shift)).size:
        product[rows] *= product[rows - shift]
        shift *= 2
    return product


def _auc(lists: _Lists, ties: str) -> Floats:
    r = _rank(lists, ties)
    n_positives, n_negatives = lists.count(lists.gains > 0), lists.count(lists.gains == 0)
    sizes = np.diff(r.starts, append=len(r.rank))
    negatives_above = r.rank - r.place - 1 - r.gain_above
    tied_negatives = r.tied - r.tied_gain
    negatives_below = np.repeat(n_negatives, sizes) - negatives_above - tied_negatives
    return _ratio(r.sum(r.gain * (negatives_below + tied_negatives / 2)), n_positives * n_negatives)


def _ndcg(lists: _Lists, ties: str, k: int | None) -> Floats:
    last_rank = np.inf if k is None else _check_k(k)
    return _discounted(lists, ties, lambda rank: (rank <= last_rank) / np.log2(1 + rank), True)


def _rbp(lists: _Lists, ties: str, persistence: float, normalize: bool) -> Floats:
    if not 0 <= persistence < 1:
        raise ValueError(f"persistence is {persistence}, it must be at least 0 and below 1")
    return _discounted(
        lists, ties, lambda rank: (1 - persistence) * persistence ** (rank - 1), normalize
    )


def _precision_at_k(lists: _Lists, ties: str, k: int) -> Floats:
    last_rank = _check_k(k)
    return _discounted(lists, ties, lambda rank: (rank <= last_rank) / last_rank, False)


def _discounted(
    lists: _Lists, ties: str, discount: Callable[[Floats], Floats], normalize: bool
) -> Floats:
    """Sum of gain times discount(rank), divided by its greatest value if `normalize`."""
    r = _rank(lists, ties)
    value = r.sum(r.tied_gain / r.tied * discount(r.rank))
    if not normalize:
        return value
    ideal = _rank(replace(lists, scores=lists.gains), "index")
    # The mean gain of a tied group can be an ulp above the gains it is the mean of.
    return np.minimum(_ratio(value, ideal.sum(ideal.gain * discount(ideal.rank))), 1.0)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, with nan where the denominator is 0."""
    undefined = np.full_like(numerator, np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)


_CORES: dict[Any, Callable[..., Floats]] = {
    average_precision: _average_precision,
    ndcg: _ndcg,
    reciprocal_rank: _reciprocal_rank,
    auc: _auc,
    rbp: _rbp,
    precision_at_k: _precision_at_k,
}


def _metric_named(name: str) -> Any:
    functions = {function.__name__: function for function in _CORES} | {"ap": average_precision}
    if name not in functions:
        raise ValueError(f"metric is {name!r}, choose one of {', '.join(functions)}")
    return functions[name]


def _evaluate(
    core: Callable[..., Floats],
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None,
    ties: str,
    no_positives: str,
    gains: Any = "binary",
    **options: Any,
) -> tuple[NDArray[Any], Floats]:
    """Validate, compute the value of each list and apply the policy to the undefined ones."""
    threshold = ("threshold",) if core is _average_precision else ()
    _check_choice("ties", ties, ("average", "worst", "best", "index", *threshold))
    _check_choice("no_positives", no_positives, ("nan", "zero", "one", "raise", "skip"))
    lists = _validated(relevance, scores, qid, gains)
    values = core(lists, ties, **options)

    n_positives = lists.count(lists.gains > 0)
    undefined = (n_positives == 0) | np.isnan(values)
    if no_positives == "skip":
        return lists.queries[~undefined], values[~undefined]
    if no_positives == "raise" and undefined.any():
        where = int(np.flatnonzero(undefined)[0])
        query = lists.queries[where : where + 1].tolist()[0]
        lacking = "irrelevant" if n_positives[where] else "relevant"
        name = "the list" if qid is None else f"query {query!r}"
        raise ValueError(f"{name} has no {lacking} sample")
    values[undefined] = {"zero": 0.0, "one": 1.0}.get(no_positives, np.nan)
    return lists.queries, values


def _mean(found: tuple[NDArray[Any], Floats]) -> float:
    _, values = found
    return float(values.mean()) if len(values) else float("nan")


def _validated(relevance: ArrayLike, scores: ArrayLike, qid: QueryIds | None, gains: Any) -> _Lists:
    labels, values = _finite("relevance", relevance), _finite("scores", scores)
    if len(labels) != len(values):
        raise ValueError(f"relevance has {len(labels)} entries, scores {len(values)}")
    if len(values) == 0:
        raise ValueError("relevance and scores are empty")
    for row in np.flatnonzero(labels < 0)[:1]:
        raise ValueError(f"relevance[{row}] is {labels[row]:g}, it must be at least 0")
    if qid is None:
        queries, list_index = np.empty(1, dtype=object), np.zeros(len(values), dtype=np.intp)
    else:
        queries, list_index = _encoded(qid)
        if len(list_index) != len(values):
            raise ValueError(f"qid has {len(list_index)} entries, scores {len(values)}")
    return _Lists(_gains_of(labels, gains), values, list_index, queries)


def _finite(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, its shape is {array.shape}")
    for row in np.flatnonzero(~np.isfinite(array))[:1]:
        raise ValueError(f"{name}[{row}] is {array[row]}")
    return array


def _encoded(qid: QueryIds) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct queries as they first appear, and the index into them of each row."""
    # An array made of a list would merge 1 and "1", and split tuples into columns.
    rows: Any = np.asarray(qid) if hasattr(qid, "__array__") else list(qid)  # type: ignore[arg-type]
    if isinstance(rows, np.ndarray) and rows.ndim != 1:
        raise ValueError(f"qid must be one-dimensional, its shape is {rows.shape}")
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        for row in np.flatnonzero(rows != rows)[:1]:
            raise ValueError(f"qid[{row}] is {rows[row]}")
        _, first_row, sorted_index = np.unique(rows, return_index=True, return_inverse=True)
        appearance = np.argsort(first_row)
        return rows[first_row[appearance]], np.argsort(appearance)[sorted_index]

    index_of: dict[Any, int] = {}
    list_index = np.empty(len(rows), dtype=np.intp)
    for row, query in enumerate(rows):
        if isinstance(query, float) and query != query:
            raise ValueError(f"qid[{row}] is {query}")
        try:
            list_index[row] = index_of.setdefault(query, len(index_of))
        except TypeError:
            raise ValueError(f"qid[{row}] is {query!r}, which is not hashable") from None
    return np.fromiter(index_of, dtype=object, count=len(index_of)), list_index


def _gains_of(relevance: Floats, gains: Any) -> Floats:
    if isinstance(gains, str):
        if gains == "binary":
            return (relevance > 0).astype(np.float64)
        _check_choice("gains", gains, ("linear", "exponential"))
        with np.errstate(over="ignore"):
            values = relevance if gains == "linear" else np.exp2(relevance) - 1
    elif callable(gains):
        values = np.asarray(gains(relevance), dtype=np.float64)
        if values.shape != relevance.shape:
            raise ValueError(f"gains gave shape {values.shape} for relevance {relevance.shape}")
    else:
        values = _looked_up(relevance, _finite("gains", gains))
    for row in np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[:1]:
        raise ValueError(
            f"the gain of relevance[{row}] = {relevance[row]:g} is {values[row]:g}, "
            "it must be finite and at least 0"
        )
    return values


def _looked_up(relevance: Floats, table: Floats) -> Floats:
    for row in np.flatnonzero((relevance % 1 != 0) | (relevance >= len(table)))[:1]:
        raise ValueError(
            f"relevance[{row}] is {relevance[row]:g}, "
            f"gains as an array of {len(table)} need integers from 0 to {len(table) - 1}"
        )
    return table[relevance.astype(np.intp)]


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, choose one of {', '.join(choices)}")


def _check_k(k: int) -> int:
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k is {k}, it must be an integer of at least 1")
    return int(k)
