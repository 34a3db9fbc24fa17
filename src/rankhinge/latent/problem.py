"""Problems over bags: which bags are relevant, which candidates are known, and what the solver sees of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import refuse_masked
from rankhinge.latent.bags import Bags
from rankhinge.latent.objective import BagLists
from rankhinge.problems import one_list
from rankhinge.problems.targets import Targets

__all__ = ["LatentProblem", "check_chosen", "latent_problem", "problems_of"]


@dataclass(frozen=True)
class LatentProblem:
    """One problem; places count the candidates of all bags.

    Attributes
    ----------
    members : ndarray of shape (m,)
        The bags that are labelled.
    relevant : ndarray of bool of shape (m,)
    known : ndarray of shape (m,)
        The place of the candidate that is known to be meant, or -1.
    start, stop : ndarray of shape (m,)
        Where each member's candidates lie.
    """

    members: NDArray[np.int64]
    relevant: NDArray[np.bool_]
    known: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    @property
    def latent(self) -> NDArray[np.bool_]:
        """The members of which it is not known which candidate is meant."""
        return (self.known < 0) & (self.stop - self.start > 1)

    @property
    def given(self) -> NDArray[np.int64]:
        """The place of the known or only candidate of each member, -1 where there are several."""
        return np.where(self.latent, -1, np.where(self.known < 0, self.start, self.known))

    def fixed(self, choice: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the inner problem fixes: the choice for the relevant, what is given for the others."""
        return np.where(self.relevant, choice, self.given)

    def needed(self, fixed: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The candidates that the problem sees: the fixed ones, and those of the free members that are wanted."""
        seen = np.zeros(wanted.size, np.bool_)
        seen[fixed[fixed >= 0]] = True
        free = fixed < 0
        spans = np.zeros(wanted.size + 1, np.int64)
        np.add.at(spans, self.start[free], 1)
        np.add.at(spans, self.stop[free], -1)
        return seen | (wanted & (np.cumsum(spans[:-1]) > 0))

    def seen_among(self, places: NDArray[np.int64] | None, fixed: NDArray[np.int64]) -> BagLists:
        """The problem over the candidates at these places, ascending (None: all)."""
        start, stop = self.start, self.stop
        known = self.known >= 0
        start, stop = np.where(known, self.known, start), np.where(known, self.known + 1, stop)
        if places is not None:
            start, stop = np.searchsorted(places, start), np.searchsorted(places, stop)
            fixed = np.where(fixed >= 0, np.searchsorted(places, fixed), -1)
        return BagLists(one_list(self.relevant), np.flatnonzero(self.relevant), start, stop, fixed)


def latent_problem(
    bags: Bags, relevant: NDArray[np.bool_], labelled: NDArray[np.bool_] | None, chosen: NDArray[np.int64]
) -> LatentProblem:
    """A problem of the bags that are labelled; `chosen` has the known candidate of each bag, or -1."""
    members = np.arange(len(bags)) if labelled is None else np.flatnonzero(labelled)
    offsets = bags.offsets
    start, stop, own = offsets[:-1][members], offsets[1:][members], chosen[members]
    known = np.where(own < 0, -1, start + own)
    return LatentProblem(members, np.ascontiguousarray(relevant[members]), known, start, stop)


def problems_of(
    bags: Bags, targets: Targets, usable: NDArray[np.bool_], chosen: NDArray[np.int64]
) -> list[LatentProblem]:
    """The problems of the labels that can be ranked; `chosen`, (K, n_bags), has the known candidates, or -1."""
    labelled = [None] * usable.size if targets.labelled is None else list(targets.labelled)
    return [latent_problem(bags, targets.relevant[k], labelled[k], chosen[k]) for k in np.flatnonzero(usable)]


def check_chosen(chosen: ArrayLike | None, bags: Bags, n_problems: int) -> NDArray[np.int64]:
    """Known candidates as an array (n_problems, n_bags), -1 where unknown.

    Raises
    ------
    ValueError
        If the shape is neither (n_bags,) nor (n_bags, n_problems), or a number is no candidate of its bag.
    """
    n_bags = len(bags)
    if chosen is None:
        return np.full((n_problems, n_bags), -1)
    refuse_masked(chosen, "chosen")
    array: NDArray[Any] = np.asarray(chosen)
    if array.shape not in ((n_bags,), (n_bags, n_problems)):
        raise ValueError(f"chosen has shape {array.shape}, but there are {n_bags} bags")
    if array.dtype.kind not in "iu":
        raise ValueError(f"chosen must be integers, got dtype {array.dtype}")
    columns = array.reshape(n_bags, -1).T.astype(np.int64)
    wrong = np.argwhere((columns < -1) | (columns >= bags.sizes))
    if wrong.size:
        k, b = wrong[0]
        raise ValueError(f"chosen[{b}] is {columns[k, b]}, but bag {b} has {bags.sizes[b]} candidates (unknown: -1)")
    return np.broadcast_to(columns, (n_problems, n_bags)).copy()
