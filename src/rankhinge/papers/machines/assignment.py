r"""Loss-augmented inference of the latent structural SVM, by the approximation of Behl et al. 2015, appendix C.

The most violating ranking and candidates maximise

.. math:: \Delta(R) + \sum_k c_k(R) \, s_k(h_k), \qquad
          c = (N - 2 a_i)/(PN) \text{ for positives}, \quad c = (2 b_j - P)/(PN) \text{ for negatives,}

with :math:`a_i` negatives above the positive, :math:`b_j` positives below the negative, over rankings R *and* the
candidates of all bags. A bag takes its best candidate where c ≥ 0 and its worst where c < 0. For a given ± pattern
the bags are assigned to ranks by the dynamic Hungarian method; over patterns the search is greedy, and not exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.papers.machines.hungarian import Assignment

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
    Up to N P patterns, each of which changes one coefficient of the positives and one of the negatives, for which
    their assignments are mended: O(N P (P² + N²)).

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
    unit = float(P * N) if scale is None else scale
    ranks, above = np.full(N, P + 1), np.zeros(P, np.int64)
    own, other = Assignment(*positives, N / unit), Assignment(*negatives, -P / unit)
    delta = loss(above, N)
    best = delta + own.value() + other.value(), delta, own.copy(), other.copy(), above.copy()
    for j in range(N):
        # Upwards place by place: one positive more is below it, and two coefficients change at a time.
        for rank in range(P, int(ranks[j - 1]) - 1 if j else 0, -1):
            above[rank - 1] += 1
            own.change(rank - 1, (N - 2.0 * above[rank - 1]) / unit)
            other.change(j, (2.0 * (P + 1 - rank) - P) / unit)
            delta = loss(above, N)
            value = delta + own.value() + other.value()
            if value > best[0]:
                best, ranks[j] = (value, delta, own.copy(), other.copy(), above.copy()), rank
        own, other, above = best[2].copy(), best[3].copy(), best[4].copy()
    return Assigned(best[0], best[1], ranks, best[2].of_bags(), best[3].of_bags())
