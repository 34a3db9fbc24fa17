"""The objective, written down once: the structured hinge of lists, through handles."""

from __future__ import annotations

from rankhinge.objective.handles import Evaluation, Scores
from rankhinge.objective.ranking import RankingObjective

__all__ = ["Evaluation", "RankingObjective", "Scores"]
