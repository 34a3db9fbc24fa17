"""The public functions of inference: for one list, for its value alone, and for many lists."""

from __future__ import annotations

from numpy.typing import ArrayLike

from rankhinge._validation import check_offsets, check_relevant, check_scores
from rankhinge.inference import core
from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.losses.base import BY_STEP

__all__ = ["most_violating_ranking", "most_violating_rankings", "ranking_loss", "structured_hinge"]


def most_violating_ranking(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: str | RankingLoss = "ap",
    method: str = "auto",
) -> MostViolatingRanking:
    r"""Find the ranking that maximises loss plus score, which gives the structured hinge and a subgradient.

    .. math:: J(s) = \max_R \; \Delta(R) + \sum_k u_k(R) \, s_k

    with ``u = -2 a_i / (P N)`` for a positive with ``a_i`` negatives above it in R and ``u = 2 b_j / (P N)`` for a
    negative with ``b_j`` positives below it. J is convex in s, bounds the loss of the ranking by s from above, and
    the returned coefficients are a subgradient: ``J(s) = loss + coefficients @ scores``.

    Parameters
    ----------
    scores : array of shape (n,)
        float32 and float64 are used as they are. Other types are converted to float64.
    relevant : array of shape (n,)
        Bool or 0/1.
    loss : str or RankingLoss, default "ap"
        ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, with a cut ``"ndcg@10"``, ``"precision@1%"`` and others
        (see `rankhinge.losses.get_loss`), any object of `rankhinge.losses`, or ``"zero-one"``, the
        decomposable baseline (value and coefficients, no ranks).
    method : str, default "auto"
        All methods are exact. ``"histogram"`` (any loss; what ``"auto"`` takes), ``"quicksort"`` (any loss),
        ``"greedy"`` (any loss, O(PN)), ``"search"``, ``"select"`` and ``"quicksort-search"`` (AP).

    Returns
    -------
    MostViolatingRanking
        With `value`, `loss`, `coefficients`, `interleaving_ranks`, `order`.

    Raises
    ------
    ValueError
        If scores are not finite, shapes do not fit, relevance is not 0/1, the list has no positives or no negatives, or
        inference would not be exact for the loss.

    References
    ----------
    Mohapatra, Rolínek, Jawahar, Kolmogorov, Kumar: Efficient Optimization for Rank-based Loss Functions, CVPR 2018;
    Mohapatra, Jawahar, Kumar: Efficient Optimization for Average Precision SVM, NIPS 2014.

    Examples
    --------
    >>> from rankhinge import most_violating_ranking
    >>> ranking = most_violating_ranking([2.0, 1.5, 1.0, 0.5], [True, False, True, False])
    >>> round(ranking.value, 4), round(ranking.loss, 4)
    (0.4167, 0.1667)
    >>> ranking.order
    array([0, 1, 2, 3])
    """
    loss = get_loss(loss)
    scores = check_scores(scores)
    relevant = check_relevant(relevant, scores.size)
    if method == "auto" or (method == "histogram" and loss.way == BY_STEP):
        return core.infer_one(scores, relevant, loss)
    # The papers' methods are imported on demand.
    from rankhinge.inference.methods import infer_by

    return infer_by(method, scores, relevant, loss)


def structured_hinge(scores: ArrayLike, relevant: ArrayLike, loss: str | RankingLoss = "ap") -> float:
    """The structured hinge ``J(s)``: the value of `most_violating_ranking` alone.

    Parameters
    ----------
    scores, relevant : array of shape (n,)
    loss : str or RankingLoss, default "ap"

    Examples
    --------
    >>> from rankhinge import structured_hinge
    >>> structured_hinge([3.0, 0.0, -1.0], [True, False, False], loss="rr")
    0.0
    """
    return most_violating_ranking(scores, relevant, loss).value


def ranking_loss(scores: ArrayLike, relevant: ArrayLike, loss: str | RankingLoss = "ap") -> float:
    """The loss Δ of the ranking by descending score. Among equal scores negatives come first, the worst order.

    `structured_hinge` is an upper bound on it.

    Parameters
    ----------
    scores, relevant : array of shape (n,)
    loss : str or RankingLoss, default "ap"

    Examples
    --------
    >>> from rankhinge import ranking_loss
    >>> ranking_loss([3.0, 2.0, 1.0], [False, True, False], loss="rr")
    0.5
    """
    loss = get_loss(loss)
    scores = check_scores(scores)
    relevant = check_relevant(relevant, scores.size)
    return core.loss_by_scores(scores, relevant, loss)


def most_violating_rankings(
    scores: ArrayLike,
    relevant: ArrayLike,
    offsets: ArrayLike,
    loss: str | RankingLoss = "ap",
) -> MostViolatingRankings:
    """`most_violating_ranking` for many lists at once, on all threads.

    Parameters
    ----------
    scores, relevant : array of shape (n,)
        All lists, one after the other.
    offsets : array of shape (n_lists + 1,), int
        List q is ``scores[offsets[q]:offsets[q + 1]]``.
    loss : str or RankingLoss, default "ap"

    Returns
    -------
    MostViolatingRankings
        Lists without a positive or without a negative are not usable. Their value, loss and coefficients are 0.

    Examples
    --------
    >>> from rankhinge import most_violating_rankings
    >>> batch = most_violating_rankings([1.0, 0.0, 2.0, 5.0], [1, 0, 1, 1], offsets=[0, 2, 4])
    >>> batch.usable
    array([ True, False])
    """
    loss = get_loss(loss)
    scores = check_scores(scores)
    relevant = check_relevant(relevant, scores.size)
    return core.infer_many(scores, relevant, check_offsets(offsets, scores.size), loss)
