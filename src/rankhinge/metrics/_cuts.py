"""The public metrics of the first places and of the best negatives. Each returns a float."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from rankhinge._validation import QueryIds
from rankhinge.metrics._cut_values import (
    bedrocs,
    f1s_at_k,
    hits_at_k,
    p_norm_pushes,
    partial_aucs,
    precisions_at_k,
    r_precisions,
    recalls_at_k,
    top_pushes,
)
from rankhinge.metrics._evaluate import evaluate, mean
from rankhinge.metrics._policies import Depth, NoPositives, Ties


def precision_at_k(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    k: Depth,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives = "zero",
) -> float:
    """Precision at k: the share of relevant samples among the first k.

    ``P@k = #{i relevant : rank_i <= k} / k``. As in trec_eval, the divisor stays k even if the list has fewer than k
    samples.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    k : int, float or str
        How many of the first samples count: a number, or a share of each list (a float in (0, 1] or ``"1%"``).
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        The precision. With `qid`, the mean over the queries.

    Examples
    --------
    >>> precision_at_k([1, 0, 1, 1], [4.0, 3.0, 2.0, 1.0], k=2)
    0.5
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives, "k": k}
    return mean(evaluate(precisions_at_k, relevance, scores, qid=qid, **options), no_positives)


def recall_at_k(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    k: Depth,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """Recall at k: the share of all relevant samples that are among the first k.

    ``R@k = #{i relevant : rank_i <= k} / P``.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    k : int, float or str
        How many of the first samples count: a number, or a share of each list (a float in (0, 1] or ``"1%"``).
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        The recall. With `qid`, the mean over the queries.

    Examples
    --------
    >>> recall_at_k([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0], k=2)
    0.5
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives, "k": k}
    return mean(evaluate(recalls_at_k, relevance, scores, qid=qid, **options), no_positives)


def f1_at_k(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    k: Depth,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives = "zero",
) -> float:
    """F1 at k, where the first k are predicted relevant.

    ``F1@k = 2 #{i relevant : rank_i <= k} / (k + P)``, the harmonic mean of precision and recall at k.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    k : int, float or str
        How many of the first samples count: a number, or a share of each list (a float in (0, 1] or ``"1%"``).
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        F1. With `qid`, the mean over the queries.

    Examples
    --------
    >>> f1_at_k([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0], k=2)
    0.5
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives, "k": k}
    return mean(evaluate(f1s_at_k, relevance, scores, qid=qid, **options), no_positives)


def hit_at_k(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    k: Depth,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives = "zero",
) -> float:
    """Hit at k, also called success: whether a relevant sample is among the first k.

    1 if there is one, else 0. With ties, the probability of a hit.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    k : int, float or str
        How many of the first samples count: a number, or a share of each list (a float in (0, 1] or ``"1%"``).
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        The share of hits. With `qid`, the mean over the queries.

    Examples
    --------
    >>> hit_at_k([0, 1, 1], [3.0, 2.0, 1.0], k=1)
    0.0
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives, "k": k}
    return mean(evaluate(hits_at_k, relevance, scores, qid=qid, **options), no_positives)


def r_precision(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """R-precision: the share of relevant samples among the first P, where P is the number of relevant samples.

    ``#{i relevant : rank_i <= P} / P``.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        The R-precision. With `qid`, the mean over the queries.

    Examples
    --------
    >>> r_precision([1, 0, 1], [3.0, 2.0, 1.0])
    0.5
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives}
    return mean(evaluate(r_precisions, relevance, scores, qid=qid, **options), no_positives)


def partial_auc(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    max_fpr: float = 0.1,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """Area under the ROC curve up to a false-positive rate, divided by that rate.

    With ``a_j`` relevant samples above the j-th best irrelevant one,
    ``sum_j clip(max_fpr N - j + 1, 0, 1) a_j / (P max_fpr N)``. `sklearn.metrics.roc_auc_score` rescales this value so
    that chance gives 1/2.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    max_fpr : float, default 0.1
        Above 0 and at most 1.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        The partial AUC. With `qid`, the mean over the queries.

    Examples
    --------
    >>> partial_auc([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0], max_fpr=0.5)
    0.5
    """
    return mean(
        evaluate(partial_aucs, relevance, scores, qid=qid, ties=ties, no_positives=no_positives, max_fpr=max_fpr)
    )


def top_push(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """The share of relevant samples above the best irrelevant one.

    Also known as positives at the top (Boyd et al. 2012).

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        The share. With `qid`, the mean over the queries.

    Examples
    --------
    >>> top_push([1, 0, 1], [3.0, 2.0, 1.0])
    0.5
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives}
    return mean(evaluate(top_pushes, relevance, scores, qid=qid, **options), no_positives)


def p_norm_push(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    p: float = 4.0,
    qid: QueryIds | None = None,
    ties: Literal["worst", "best", "index"] = "worst",
    no_positives: NoPositives | None = None,
) -> float:
    """One minus the mean of ``(b / P)^p`` over the irrelevant samples, with b relevant samples below each.

    With ``p=1`` this is the AUC. See C. Rudin, "The P-norm push", JMLR 2009.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    p : float, default 4
        At least 1. A larger p puts more weight on the top of the list.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"`` and ``"average"``: the mean of a power has no closed form.

    Returns
    -------
    float
        The value. With `qid`, the mean over the queries.

    Examples
    --------
    >>> p_norm_push([1, 0, 1], [3.0, 2.0, 1.0], p=2)
    0.75
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives, "p": p}
    return mean(evaluate(p_norm_pushes, relevance, scores, qid=qid, **options), no_positives)


def bedroc(
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    alpha: float = 20.0,
    qid: QueryIds | None = None,
    ties: Ties = "average",
    no_positives: NoPositives | None = None,
) -> float:
    """Boltzmann-enhanced discrimination of ROC, for early recognition in virtual screening.

    ``sum_i exp(-alpha rank_i / n)`` over the relevant samples, scaled to 0 for the worst and 1 for the best order.
    J.-F. Truchon and C. Bayly, J. Chem. Inf. Model. 47, 2007.

    Parameters
    ----------
    relevance, scores, qid : array-like of shape (n_samples,)
        As in `average_precision`.
    alpha : float, default 20
        Above 0. A larger alpha puts more weight on the first places.
    ties, no_positives : str
        As in `average_precision`, except ``"threshold"``.

    Returns
    -------
    float
        BEDROC. With `qid`, the mean over the queries.

    Examples
    --------
    >>> round(bedroc([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]), 6)
    0.993352
    """
    options: dict[str, Any] = {"ties": ties, "no_positives": no_positives, "alpha": alpha}
    return mean(evaluate(bedrocs, relevance, scores, qid=qid, **options), no_positives)
