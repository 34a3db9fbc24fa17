"""Where the concave-convex procedure starts: the first choice of the positives' candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.problem import LatentProblem

if TYPE_CHECKING:
    from rankhinge.latent.whole import Whole

__all__ = ["INITS", "class_means", "first_choice", "random_choice", "ways_from_zero"]

INITS = ("mean", "first", "random")

# From w = 0: the number of random directions, and the steps that each climbs.
_N_WAYS, _N_CLIMBS = 15, 4


def class_means(features: CandidateFeatures, problems: Sequence[LatentProblem]) -> NDArray[np.float64]:
    """``mean of the positives - mean of the negatives``, each bag by the mean of its candidates; shape (d, K).

    It is the way that the objective falls fastest from w = 0 if all candidates of a bag count alike. One pass.
    """
    u = np.zeros((len(problems), features.n_samples))
    for row, problem in zip(u, problems, strict=True):
        n_positives = int(problem.relevant.sum())
        sign = np.where(problem.relevant, 1 / n_positives, -1 / (problem.relevant.size - n_positives))
        given = problem.given
        row[given[given >= 0]] = sign[given >= 0]
        free = np.flatnonzero(given < 0)
        sizes = problem.stop[free] - problem.start[free]
        before = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(before[-1]) + np.repeat(problem.start[free] - before[:-1], sizes)
        row[places] = np.repeat(sign[free] / sizes, sizes)
    return features.adjoint(u)


def first_choice(problems: Sequence[LatentProblem]) -> list[NDArray[np.int64]]:
    """The first candidate of each bag."""
    return [problem.start.copy() for problem in problems]


def random_choice(problems: Sequence[LatentProblem], generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """A candidate of each bag, drawn at random."""
    return [generator.integers(problem.start, problem.stop) for problem in problems]


def ways_from_zero(whole: Whole, k: int) -> NDArray[np.float64]:
    """Directions, (d, m), along which F of problem k may fall from w = 0; their bags' scores spread by 1.

    At 0 the structured hinge has the slope of the worst ranking: it falls the faster, the higher the mean of the
    positives' scores lies above that of the negatives', each bag by its best candidate. The directions climb that
    difference, from the classes' means, from those of random candidates, and from differences of two candidates.
    """
    problem, features = whole.problems[k], whole.features
    n_positives = int(problem.relevant.sum())
    sign = np.where(problem.relevant, 1 / n_positives, -1 / (problem.relevant.size - n_positives))
    signs = np.tile(sign, (_N_WAYS, 1))
    generator = np.random.default_rng(0)
    for row in signs[: _N_WAYS // 2]:
        pair = generator.choice(np.flatnonzero(sign > 0)), generator.choice(np.flatnonzero(sign < 0))
        row[:] = 0.0
        row[list(pair)] = 1.0, -1.0
    choices = np.stack(random_choice([problem] * _N_WAYS, generator))
    ways = np.column_stack([class_means(features, [problem]), _sums(features, problem, signs, choices)])
    columns = np.full(ways.shape[1], k)
    best, height = ways, np.full(columns.size, -np.inf)
    for _ in range(_N_CLIMBS):
        ways = ways / np.maximum(np.linalg.norm(ways, axis=0), np.finfo(float).tiny)
        found = whole.sweep(columns, ways, [problem.given] * columns.size)
        scores = np.where(problem.given >= 0, found.at[:, problem.members], found.values[:, problem.members, 0])
        spread = scores.std(axis=1)
        reached = np.divide(scores @ sign, spread, out=np.full(spread.size, -np.inf), where=spread > 0)
        best = np.where(reached > height, ways / np.where(spread > 0, spread, 1.0), best)
        height = np.maximum(height, reached)
        ahead = _sums(features, problem, np.tile(sign, (columns.size, 1)), found.places[:, problem.members, 0])
        ways = ways + ahead / np.maximum(np.linalg.norm(ahead, axis=0), np.finfo(float).tiny)
    return best[:, height > 0]


def _sums(
    features: CandidateFeatures, problem: LatentProblem, signs: NDArray[np.float64], choices: NDArray[np.int64]
) -> NDArray[np.float64]:
    """``Σ sign Φ(choice)`` over the bags, (d, m), of m choices of a candidate for each; known ones as they are."""
    u = np.zeros((len(choices), features.n_samples))
    for row, sign, choice in zip(u, signs, choices, strict=True):
        row[np.where(problem.given >= 0, problem.given, choice)] = sign
    return features.adjoint(u)
