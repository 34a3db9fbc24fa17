r"""The inner objective of latent ranking machines: bags whose score is that of their best candidate.

With the candidate :math:`h_i` of every positive bag fixed, the inner problem is

.. math:: \min_w \tfrac12 \|w\|^2 + C \, J(s(w)), \qquad
          s_i = w \cdot \Phi_i(h_i) \text{ for positives}, \quad s_j = \max_h w \cdot \Phi_j(h) \text{ for negatives.}

The structured hinge J has coefficients ≥ 0 for the negatives, so it does not fall as their scores rise, and a maximum
of linear functions in their place leaves it convex (Behl et al. 2015, Proposition 3). The handles that the solver
sees hold the scores of *candidates*, which are linear in w; the maximum is taken in `evaluate`. The coefficients live
on candidates too, nonzero only at the best one of each bag.

A plane ``Δ(R) + Σ u s`` is valid for every ranking R and every choice of the negatives' candidates. It therefore
survives a change of the positives' choices: only its slope moves, by ``Σ u_i (Φ_i(h'_i) − Φ_i(h_i))``. `PlaneBook`
remembers the u of the positives for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.latent.segments import segment_maxima
from rankhinge.losses import RankingLoss
from rankhinge.objective import Evaluation, RankingObjective, Scores
from rankhinge.problems import Lists
from rankhinge.solvers import Planes

__all__ = ["BagLists", "LatentObjective", "PlaneBook"]

# Coefficients that the book keeps, of all planes together: 32 MB.
_MOST_NOTED = 1 << 22
_AMBIGUOUS: NDArray[np.float64] = np.zeros(0)


@dataclass(frozen=True)
class BagLists:
    """One problem over bags.

    Attributes
    ----------
    lists : Lists
        Over the bags of the problem.
    positives : ndarray of shape (n_positives,)
        Which of them are relevant.
    start, stop : ndarray of shape (n_bags,)
        Where each bag's candidates lie among those that the feature map has.
    fixed : ndarray of shape (n_bags,)
        The place of the candidate that a bag is fixed to, or -1.
    """

    lists: Lists
    positives: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    fixed: NDArray[np.int64]

    def seen(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The segments over which the score of each bag is maximised."""
        is_fixed = self.fixed >= 0
        return np.where(is_fixed, self.fixed, self.start), np.where(is_fixed, self.fixed + 1, self.stop)


class PlaneBook:
    """The coefficients of the positives in each plane, by the plane's slope.

    Where different coefficients have led to one slope it is not known which plane they belong to: it is forgotten.
    """

    def __init__(self) -> None:
        self._noted: dict[bytes, NDArray[np.float64]] = {}
        self._size = 0

    def note(self, slopes: NDArray[np.float64], coefficients: Sequence[NDArray[np.float64]]) -> None:
        """Remember u of the positives for each column of `slopes`; the oldest are forgotten."""
        for slope, u in zip(slopes.T, coefficients, strict=True):
            key = _digest(slope)
            before = self._noted.pop(key, None)
            if before is not None and not np.array_equal(before, u):
                u = _AMBIGUOUS
            self._noted[key] = u
            self._size += u.size - (0 if before is None else before.size)
        while self._size > _MOST_NOTED:
            self._size -= self._noted.pop(next(iter(self._noted))).size

    def moved(self, planes: Planes, change: NDArray[np.float64], which: NDArray[np.int64]) -> Planes:
        """The planes after the features of some positives have changed.

        Parameters
        ----------
        planes : Planes
        change : ndarray of shape (n_changed, n_features)
            ``Φ(h') - Φ(h)``.
        which : ndarray of shape (n_changed,)
            Which of the positives these are.
        """
        known = [self._noted.get(_digest(slope), _AMBIGUOUS) for slope in planes.slopes]
        keep = [place for place, u in enumerate(known) if u is not _AMBIGUOUS]
        if not keep:
            return Planes(np.zeros(0), np.zeros((0, planes.slopes.shape[1])))
        u = np.stack([known[place] for place in keep])
        slopes = planes.slopes[keep] + u[:, which] @ change
        self.note(slopes.T, list(u))
        misses, reaches = (None if known is None else known[keep] for known in (planes.misses, planes.reaches))
        return Planes(planes.offsets[keep], slopes, misses, reaches)


def _digest(slope: NDArray[np.float64]) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(slope).tobytes(), digest_size=16).digest()


class LatentObjective(RankingObjective):
    """`J` of K problems over bags, seen through handles that hold the scores of candidates.

    Parameters
    ----------
    features : FeatureMap
        Over candidates.
    problems : sequence of BagLists
    loss : RankingLoss
    books : sequence of PlaneBook, optional
        One a problem.
    """

    def __init__(
        self,
        features: FeatureMap,
        problems: Sequence[BagLists],
        loss: RankingLoss,
        books: Sequence[PlaneBook] | None = None,
    ) -> None:
        super().__init__(features, [problem.lists for problem in problems], loss)
        self.bags = list(problems)
        self._seen = [problem.seen() for problem in problems]
        self._books = books

    def evaluate(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """Inference for each problem, the free bags at their best candidates: J, Δ and, if asked for, u."""
        return self.for_each(self._evaluate_bags, scores, coefficients)

    def _evaluate_bags(self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        """J and Δ of problem k; writes u if there is room for it."""
        best, places = segment_maxima(scores, *self._seen[k])
        if u is None:
            return self.hinge(k, best, None)
        of_bags = np.empty_like(best)
        value, loss = self.hinge(k, best, of_bags)
        u[:] = 0.0
        u[places] = of_bags
        return value, loss

    def adjoint(self, coefficients: Scores) -> NDArray[np.float64]:
        """``Xᵀ u`` of each problem, a column each; reads only candidates with a coefficient."""
        slopes = super().adjoint(coefficients)
        if self._books is not None:
            for c, k in enumerate(coefficients.problems):
                bags = self.bags[k]
                u = coefficients.values[c][bags.fixed[bags.positives]]
                self._books[k].note(slopes[:, c : c + 1], [u])
        return slopes
