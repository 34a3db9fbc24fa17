"""The public metrics of whole lists. Each returns a float."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from rankhinge._validation import QueryIds
from rankhinge.metrics._cut_values import average_precisions
from rankhinge.metrics._evaluate import evaluate, mean
from rankhinge.metrics._policies import Depth, Gains, NoPositives, Ties, TiesOfAP
from rankhinge.metrics._values import aucs, ndcgs, rbps, reciprocal_ranks


def average_precision(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    k: Depth | None = None,
    divide_by: Literal["best", "positives"] = "best",
    ties: TiesOfAP = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """Average precision: the mean precision at the ranks of the relevant samples.

    ``AP = (1/P) sum_i i / rank_i`` over the P relevant samples in the order of their ranks. With ``ties="threshold"``
    it is ``sum_t (R_t - R_{t-1}) P_t``, with recall R and precision P at each distinct score t, as in
    `sklearn.metrics.average_precision_score`.

    Parameters
    ----------
    relevance : array-like of shape (n_samples,)
        At least 0. Samples above 0 are relevant.
    scores : array-like of shape (n_samples,)
        Finite scores. The highest score ranks first.
    qid : sequence of shape (n_samples,), optional
        The query of each row: any hashable values, rows in any order. Default: one list.
    k : int, float or str, optional
        The last rank that counts, or a share of each list (a float in (0, 1] or ``"1%"``). Default: all ranks.
    divide_by : {"best", "positives"}, default "best"
        With `k`: divide by ``min(k, P)``, which makes the best value 1, or by P, as trec_eval does.
    ties : {"average", "worst", "best", "index", "threshold"}, default "average"
        The order of equal scores, see `rankhinge.metrics`.
    no_positives : {"nan", "zero", "one", "raise", "skip"}, optional
        The value of a list without relevant samples, see `rankhinge.metrics`. Default: nan, with a warning.

    Returns
    -------
    float
        The average precision. With `qid`, the mean over the queries (MAP).

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
    options: dict[str, Any] = {"k": k, "divide_by": divide_by, "ties": ties, "no_positives": no_positives}
    return mean(evaluate(average_precisions, relevance, scores, qid=qid, **options), no_positives)


def ndcg(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    k: Depth | None = None,
    gains: Gains = "exponential",
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """Normalised discounted cumulative gain (NDCG), optionally cut off after rank k.

    ``NDCG@k = DCG@k / max DCG@k`` with ``DCG@k = sum_{rank <= k} gain(rank) / log2(1 + rank)``.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`, but relevance may be graded.
    k : int, float or str, optional
        The last rank that counts, or a share of each list (a float in (0, 1] or ``"1%"``). Default: all ranks.
    gains : {"exponential", "linear"}, array-like or callable, default "exponential"
        ``"exponential"``: ``2**relevance - 1`` (Burges et al. 2005), as in `SVMRanker`. ``"linear"``: the relevance
        itself. An array: ``gains[relevance]``, for integer labels. A callable maps the array of relevances to an array
        of gains. Gains must be finite and at least 0.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``. A list has no positives if all its gains are 0.

    Returns
    -------
    float
        The NDCG. With `qid`, the mean over the queries.

    References
    ----------
    K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002.

    Examples
    --------
    >>> round(ndcg([0, 2, 1], [3.0, 2.0, 1.0], gains="linear"), 6)
    0.669672
    >>> round(ndcg([0, 2, 1], [3.0, 2.0, 1.0], k=2), 6)
    0.521296
    """
    return mean(
        evaluate(
            ndcgs,
            relevance,
            scores,
            qid=qid,
            ties=ties,
            no_positives=no_positives,
            gains=gains,
            k=k,
        ),
        no_positives,
    )


def reciprocal_rank(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """Reciprocal rank of the first relevant sample: ``RR = 1 / min_i rank_i``.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``. The average over ties is that of 1 / rank.

    Returns
    -------
    float
        The reciprocal rank. With `qid`, the mean over the queries (MRR).

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
    return mean(
        evaluate(reciprocal_ranks, relevance, scores, qid=qid, ties=ties, no_positives=no_positives), no_positives
    )


def auc(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """Area under the ROC curve: the share of pairs in which the relevant sample is above the irrelevant one.

    ``AUC = #{(i, j) : i relevant, j not, rank_i < rank_j} / (P N)``; tied pairs count one half
    (``ties="average"``), 0 (``"worst"``) or 1 (``"best"``).

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``. `no_positives` also applies to lists without negatives.

    Returns
    -------
    float
        The AUC. With `qid`, the mean over the queries.

    References
    ----------
    J. Hanley and B. McNeil, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", Radiology 143, 1982.

    Examples
    --------
    >>> auc([1, 0, 1, 0, 0], [4.0, 3.0, 2.0, 2.0, 1.0])
    0.75
    """
    return mean(evaluate(aucs, relevance, scores, qid=qid, ties=ties, no_positives=no_positives), no_positives)


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
    """Rank-biased precision: the expected gain of a reader who continues after each sample with probability p.

    ``RBP = (1 - p) sum_i p**(rank_i - 1)`` over the relevant samples.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    persistence : float, default 0.8
        p, at least 0 and below 1.
    normalize : bool, default False
        Divide by the value of the best order of the list, so that the best value is 1.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``. The default of `no_positives` is ``"zero"``, which is what
        the formula gives.

    Returns
    -------
    float
        The rank-biased precision. With `qid`, the mean over the queries.

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
    return mean(evaluate(rbps, relevance, scores, qid=qid, ties=ties, no_positives=no_positives, **options))
