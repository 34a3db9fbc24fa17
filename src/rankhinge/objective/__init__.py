"""The objective, written down once: the structured hinge of lists, through handles."""

from __future__ import annotations

from rankhinge.objective.handles import Evaluation, Handles, Infer, Scores
from rankhinge.objective.hinge import ListsHinge
from rankhinge.objective.ranking import RankingObjective
from rankhinge.objective.spans import Spans

__all__ = ["Evaluation", "Handles", "Infer", "ListsHinge", "RankingObjective", "Scores", "Spans"]
