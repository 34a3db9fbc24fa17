"""What inference returns."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MostViolatingRanking", "MostViolatingRankings"]


class MostViolatingRanking:
    """The ranking R that maximises ``Δ(R) + u(R)·s`` for one list.

    Attributes
    ----------
    value : float
        ``J(s) = loss + coefficients @ scores``, in float64.
    loss : float
        Δ of the ranking.
    coefficients : ndarray of shape (n,)
        u, aligned with the scores and of their dtype. Samples with equal scores share their mean. Σu = 0.
    n_steps : int
        The number of steps of the loss that inference evaluated.

    Notes
    -----
    `interleaving_ranks` and `order` are computed at the first access, from the scores that were passed in. Do not
    change the scores in place before.

    Examples
    --------
    >>> from rankhinge import most_violating_ranking
    >>> ranking = most_violating_ranking([2.0, 1.5, 1.0], [True, False, True], loss="ap")
    >>> round(ranking.value, 4), round(ranking.loss, 4), ranking.order.tolist()
    (0.6667, 0.1667, [0, 1, 2])
    """

    def __init__(
        self,
        value: float,
        loss: float,
        coefficients: NDArray[Any],
        n_steps: int,
        scores: NDArray[Any],
        relevant: NDArray[np.bool_],
        rank_counts: NDArray[np.int64] | None,
    ) -> None:
        self.value = value
        self.loss = loss
        self.coefficients = coefficients
        self.n_steps = n_steps
        self._scores, self._relevant, self._rank_counts = scores, relevant, rank_counts

    @cached_property
    def interleaving_ranks(self) -> NDArray[np.int64]:
        """``r_j`` of each negative, in the order of the input: the negative stands directly before positive ``r_j``.

        Positives are counted from 1, best first. P + 1 means after all positives. Ties are broken by index.
        """
        ranks = np.empty(self._sorted_negatives.size, np.int64)
        place_in_input = np.cumsum(~self._relevant) - 1
        ranks[place_in_input[self._sorted_negatives]] = self._sorted_ranks
        return ranks

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Indices of all samples, best first."""
        negatives, ranks = self._sorted_negatives, self._sorted_ranks
        positives = _best_first(self._scores, np.flatnonzero(self._relevant))
        order = np.empty(self._scores.size, np.int64)
        is_negative = np.zeros(order.size, np.bool_)
        is_negative[np.arange(negatives.size) + ranks - 1] = True
        order[is_negative], order[~is_negative] = negatives, positives
        return order

    @cached_property
    def _sorted_negatives(self) -> NDArray[np.int64]:
        return _best_first(self._scores, np.flatnonzero(~self._relevant))

    @property
    def _sorted_ranks(self) -> NDArray[np.int64]:
        if self._rank_counts is None:
            raise AttributeError("the zero-one loss decomposes over samples: it has no ranking")
        return np.repeat(np.arange(self._rank_counts.size), self._rank_counts)

    def __repr__(self) -> str:
        return f"MostViolatingRanking(value={self.value:.6g}, loss={self.loss:.6g}, n={self.coefficients.size})"


class MostViolatingRankings:
    """The most violating rankings of many lists.

    Attributes
    ----------
    values, losses : ndarray of shape (n_lists,)
        J and Δ of each list. 0 if the list is not usable.
    coefficients : ndarray of shape (n,)
        u of all lists, aligned with the scores. 0 in lists that are not usable.
    usable : ndarray of shape (n_lists,), bool
        Whether the list has both a positive and a negative. For ``"zero-one"``: whether it has a sample.

    Examples
    --------
    >>> from rankhinge import most_violating_rankings
    >>> batch = most_violating_rankings([1.0, 0.0, 2.0, 5.0], [1, 0, 1, 1], offsets=[0, 2, 4])
    >>> batch.usable.tolist()
    [True, False]
    """

    def __init__(
        self,
        values: NDArray[np.float64],
        losses: NDArray[np.float64],
        coefficients: NDArray[Any],
        usable: NDArray[np.bool_],
    ) -> None:
        self.values = values
        self.losses = losses
        self.coefficients = coefficients
        self.usable = usable

    @classmethod
    def empty(cls, scores: NDArray[Any], offsets: NDArray[np.int64]) -> MostViolatingRankings:
        """Room for the results of lists, none of them usable yet."""
        n_lists = offsets.size - 1
        return cls(np.zeros(n_lists), np.zeros(n_lists), np.empty_like(scores), np.zeros(n_lists, np.bool_))

    def __repr__(self) -> str:
        return f"MostViolatingRankings({self.usable.sum()} of {self.usable.size} lists usable)"


def _best_first(scores: NDArray[Any], index: NDArray[np.int64]) -> NDArray[np.int64]:
    return index[np.argsort(-scores[index], kind="stable")]
