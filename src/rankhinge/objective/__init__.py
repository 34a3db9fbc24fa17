"""The objective, written down once: the structured hinge of lists, through handles."""

from __future__ import annotations

from rankhinge.objective.ranking import Evaluation, RankingObjective, Scores

__all__ = ["Evaluation", "RankingObjective", "Scores"]
