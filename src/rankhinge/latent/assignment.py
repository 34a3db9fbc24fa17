r"""Loss-augmented inference of the latent structural SVM, by the approximation of Behl et al. 2015, appendix C.

The most violating ranking and candidates maximise

.. math:: \Delta(R) + \sum_k c_k(R) \, s_k(h_k), \qquad
          c = (N - 2 a_i)/(PN) \text{ for positives}, \quad c = (2 b_j - P)/(PN) \text{ for negatives,}

with :math:`a_i` negatives above the positive, :math:`b_j` positives below the negative, over rankings R *and* the
candidates of all bags. A bag takes its best candidate where c ≥ 0 and its worst where c < 0. For a given ± pattern
the bags are assigned to ranks by the Hungarian method; over patterns the search is greedy, and not exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

__all__ = ["Assigned", "greedy_ranking"]


class Assigned(NamedTuple):
    """A ± pattern with bags assigned to its ranks.

    Attributes
    ----------
    value, loss : float
        ``Δ + Σ c s`` and Δ.
    interleaving_ranks : ndarray of shape (N,)
        Directly before which positive each negative stands, best negative first; ``P + 1``: behind all.
    positive_coefficients, negative_coefficients : ndarray of shape (P,) and (N,)
        c of each positive and of each negative, in the order of the arguments.
    """

    value: float
    loss: float
    interleaving_ranks: NDArray[np.int64]
    positive_coefficients: NDArray[np.float64]
    negative_coefficients: NDArray[np.float64]


def _assigned(
    highest: NDArray[np.float64], lowest: NDArray[np.float64], coefficients: NDArray[Any]
) -> tuple[float, NDArray[np.float64]]:
    """The best assignment of bags to ranks with these coefficients: its value, and each bag's coefficient."""
    table = coefficients * np.where(coefficients >= 0, highest[:, None], lowest[:, None])
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum()), coefficients[columns]


def greedy_ranking(
    positives: tuple[NDArray[np.float64], NDArray[np.float64]],
    negatives: tuple[NDArray[np.float64], NDArray[np.float64]],
    loss: Callable[[NDArray[np.int64], int], float],
    scale: float | None = None,
) -> Assigned:
    """The ranking that shifting one negative after the other upwards leads to.

    Parameters
    ----------
    positives, negatives : pair of ndarray
        The best and the worst score of each bag.
    loss : callable
        ``loss(a, N)`` is Δ for `a` negatives above each positive, best positive first.
    scale : float, optional
        What the coefficients are divided by; default PN.

    Notes
    -----
    Two assignment problems of sizes P and N for each of up to ``N (P + 1)`` patterns: O(N P (P³ + N³)).

    Examples
    --------
    The paper's Table 3, where the best ranking has 22.583:

    >>> import numpy as np
    >>> found = greedy_ranking(
    ...     (np.array([7.0, 7.0]), np.array([6.0, 0.0])),
    ...     (np.array([8.0, 9.0]), np.array([4.0, 1.0])),
    ...     lambda above, n_negatives: float(np.mean(above / (np.arange(1, 3) + above))),
    ...     scale=1.0,
    ... )
    >>> found.value
    18.0
    """
    P, N = positives[0].size, negatives[0].size
    unit = P * N if scale is None else scale
    ranks = np.full(N, P + 1)
    best = _evaluated(positives, negatives, ranks, loss, unit)
    for j in range(N):
        first = int(ranks[j - 1]) if j else 1
        # A negative that moves takes with it nothing: those below it stay behind all positives.
        for rank in range(first, P + 1):
            trial = ranks.copy()
            trial[j] = rank
            found = _evaluated(positives, negatives, trial, loss, unit)
            if found.value > best.value:
                best = found
        ranks = best.interleaving_ranks
    return best


def _evaluated(
    positives: tuple[NDArray[np.float64], NDArray[np.float64]],
    negatives: tuple[NDArray[np.float64], NDArray[np.float64]],
    ranks: NDArray[np.int64],
    loss: Callable[[NDArray[np.int64], int], float],
    unit: float,
) -> Assigned:
    P, N = positives[0].size, negatives[0].size
    above = np.searchsorted(ranks, np.arange(1, P + 1), side="right")
    delta = loss(above, N)
    own, positive_coefficients = _assigned(*positives, (N - 2.0 * above) / unit)
    other, negative_coefficients = _assigned(*negatives, (2.0 * (P + 1 - ranks) - P) / unit)
    return Assigned(delta + own + other, delta, ranks, positive_coefficients, negative_coefficients)
