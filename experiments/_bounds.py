"""What two trainings minimise, and what they do not: both bounds and the loss after each round (002 Figure 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from _latent_choice import MACHINES

from rankhinge import metrics, most_violating_ranking
from rankhinge.latent import Bags
from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.cccp import ConcaveConvex
from rankhinge.latent.problem import latent_problem
from rankhinge.losses import get_loss
from rankhinge.papers.machines.structural import StructuralObjective


class Recorded(ConcaveConvex):
    """The outer loop of one problem, with its weights after each round."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.weights: list[np.ndarray] = []

    def step(self) -> None:
        super().step()
        assert self.points[0] is not None
        self.weights.append(self.points[0].w.copy())


def traced(kind: str, C: float, bags: Bags, y: np.ndarray, n_rounds: int) -> dict[str, list[float]]:
    """Both bounds and the loss on the training bags after each round of a training."""
    made: list[Recorded] = []

    class Traced(MACHINES[kind]):  # type: ignore[misc]
        def _make_outer(self, inner: Any) -> ConcaveConvex:
            made.append(Recorded(inner, self._loss(), self.tol, self.max_outer))
            return made[-1]

    Traced(C=C, max_outer=n_rounds).fit(bags, y)
    return both_bounds(bags, y == 1, made[0].weights)


def both_bounds(bags: Bags, relevant: np.ndarray, weights: list[np.ndarray]) -> dict[str, list[float]]:
    """The latent AP-SVM bound, the latent SSVM bound as its greedy inference finds it, and 1 − AP, at each w."""
    found: dict[str, list[float]] = {"latent AP-SVM bound": [], "latent SSVM bound": [], "loss": []}
    features = CandidateFeatures(bags.matrix, bags.rows())
    problem = latent_problem(bags, relevant, None, np.full(len(bags), -1))
    for w in weights:
        scores = bags.candidates() @ w
        best = np.maximum.reduceat(scores, bags.offsets[:-1])
        first = np.array([np.argmax(scores[a:b]) for a, b in zip(bags.offsets, bags.offsets[1:], strict=False)])
        fixed = np.where(relevant, bags.offsets[:-1] + first, -1)
        objective = StructuralObjective(features, [problem.seen_among(None, fixed)], get_loss("ap"))
        structural = objective.evaluate(objective.score(w[:, None], np.zeros(1, np.int64)), coefficients=False)
        found["latent AP-SVM bound"].append(float(most_violating_ranking(best, relevant, loss="ap").value))
        found["latent SSVM bound"].append(float(structural.value[0]))
        found["loss"].append(1.0 - float(metrics.average_precision(relevant.astype(np.int64), best)))
    return found
