"""Discounted cumulative gains with a cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge.losses.cut import CutLoss, parse_depth
from rankhinge.losses.dcg import DCG, NDCG

__all__ = ["DCGAt", "NDCGAt"]


class DCGAt(CutLoss):
    r"""DCG with any convex discount D, cut off after place k: ``Δ = 1 - Σ D(rank ≤ k) / Σ_{i ≤ min(k, P)} D(i)``.

    Le and Smola (2007) use another bound and find its most violating ranking by solving an assignment problem.

    Parameters
    ----------
    discount : callable or array of shape (n,)
        As for `DCG`: non-increasing and convex on the first k ranks.
    k : int, float or str
        Number of places, or a share of each list (a float in (0, 1], or ``"1%"``).

    Examples
    --------
    >>> from rankhinge.losses import DCGAt
    >>> DCGAt(lambda rank: 1.0 / rank, 2).from_counts([1, 1], n_negatives=3)  # - + + - -
    0.6666666666666666
    """

    word = "dcg"
    is_graded = True
    step_formula = staticmethod(DCG.step_formula)
    part_formula = staticmethod(DCG.part_formula)

    def __init__(self, discount: Callable[[NDArray[Any]], ArrayLike] | ArrayLike, k: int | float | str) -> None:
        super().__init__(k)
        self.metric = None
        self._uncut = DCG(discount)

    @property
    def discount(self) -> Callable[[NDArray[Any]], ArrayLike] | ArrayLike:
        """D, as it was given."""
        return self._uncut.discount

    @staticmethod
    def gain_formula(i: Any, table: Any) -> Any:
        return table[i]

    def table(self, length: int) -> NDArray[np.float64]:
        """``D(0) = 0, D(1), …``: as far as the cut may reach."""
        return self._uncut.table(self._reach(length - 1) + 1)

    def require_suitable(self, n_samples: int) -> None:
        """The discount is convex as far as the cut may reach."""
        self._uncut.require_suitable(self._reach(n_samples))

    def _reach(self, n_samples: int) -> int:
        # The longest list decides: the cut of a shorter one is no deeper.
        return max(1, int(self.depths(np.array([n_samples]))[0]))

    def discounts(self, ranks: NDArray[np.int64], n_samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """``D(rank)``, 0 beyond the cut."""
        inside = ranks <= self.depths(n_samples)
        found = np.zeros(ranks.shape)
        found[inside] = self.table(int(np.max(n_samples, initial=0)) + 1)[ranks[inside]]
        return found

    def ideals(self, n_relevant: NDArray[np.int64], n_samples: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """``Σ_{i ≤ min(k, P)} D(i)``."""
        return self._uncut.ideals(np.minimum(n_relevant, self.depths(n_samples)), n_samples)

    def __repr__(self) -> str:
        return f"DCGAt({repr(self._uncut)[4:-1]}, {self._k!r})"


class NDCGAt(DCGAt):
    """NDCG@k with its hard cut: ``D(i) = 1 / log2(1 + i)``, 0 for i > k.

    Parameters
    ----------
    k : int, float or str
        Number of places, or a share of each list (a float in (0, 1], or ``"1%"``).

    Examples
    --------
    >>> from rankhinge import structured_hinge
    >>> from rankhinge.losses import NDCGAt
    >>> round(structured_hinge([3.0, 2.0, 1.0, 0.0], [0, 1, 1, 0], NDCGAt(2)), 4)
    2.1131
    """

    word = "ndcg"

    def __init__(self, k: int | float | str) -> None:
        CutLoss.__init__(self, parse_depth(k))
        self._uncut = NDCG()

    def __repr__(self) -> str:
        return f"NDCGAt({self._k!r})"
