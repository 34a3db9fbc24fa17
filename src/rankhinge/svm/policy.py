"""Every number of a search in one place: what it tries, how long it continues, and how it chooses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

__all__ = ["LABELS", "LISTS", "Grid", "SearchPolicy"]


class Grid(NamedTuple):
    """A number of values, evenly spread between two powers of ten."""

    low: float
    high: float
    size: int


_CS, _TIGHTNESS, _REACHES = Grid(-1.0, 5.0, 8), Grid(-3.0, -2.0, 2), Grid(-1.0, 1.5, 6)


@dataclass(frozen=True)
class SearchPolicy:
    """The numbers of a search.

    Attributes
    ----------
    Cs : Grid
        C of the convex bound: from where it is cheap, and hardly ranks, to where it takes by far the most passes.
    passes : int
        Passes over X after which the default grid does not continue to larger C. Up to C = 1000 most problems take
        fewer than half of them; each power of ten beyond takes two or three times as many as the one before.
    coarser : float
        Folds are solved to this many times `tol`: the remaining gap changes scores by less than their noise.
    init_Cs : dict of Grid
        C of the starts, in `start.unit_of_init_C`. Convex starts with a larger C take long, and gain nothing.
    tightness : Grid
        The scale, in numbers of negatives.
    reaches : Grid
        How far the fit may move, in distances of the start from 0.
    stay : float
        A reach with which the fit stays at the start.
    start_tol, window : float, int
        A logistic regression ends when `window` iterations have lowered its objective by less than `start_tol` of it.
    steps, step_tol : int, float
        A descent of the tight bound ends after `steps` iterations, or when two of them gain less than `step_tol`.
    decline : float
        A path ends when its last two points are worse than the best by this part of it: it has begun to overfit.
    tolerated : float
        The chosen point is the one nearest to the start that is worse than the best by at most this many standard
        errors of the difference, taken fold by fold (Breiman et al. 1984 allow one).
    share : float
        Of `max_time`, for the search; the rest is for the fit to all data.
    patience : float
        Seconds after which a search shows on a terminal how far it is, asked or not.
    fits_a_path : int
        How many fits a path is worth, at least, where it is asked whether fewer coordinates are worth finding.
    """

    Cs: Grid = _CS
    passes: int = 200
    coarser: float = 10.0
    init_Cs: dict[str, Grid] = field(
        default_factory=lambda: {"logistic": Grid(-1.5, 1.5, 8), "convex": Grid(-3.0, 1.0, 6)}
    )
    tightness: Grid = _TIGHTNESS
    reaches: Grid = _REACHES
    stay: float = 0.01
    start_tol: float = 1e-4
    steps: int = 20
    step_tol: float = 1e-2
    window: int = 2
    decline: float = 0.02
    tolerated: float = 0.25
    share: float = 0.75
    patience: float = 5.0
    fits_a_path: int = 2


LABELS = SearchPolicy()
# Lists gain next to nothing by leaving the start: there has to be good reason for it.
LISTS = replace(LABELS, tolerated=1.0)
