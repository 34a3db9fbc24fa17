"""Where the concave-convex procedure starts: the first choice of the positives' candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.problem import LatentProblem

__all__ = ["INITS", "class_means", "first_choice", "random_choice"]

INITS = ("mean", "first", "random")


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
