"""The objective, written down once: the lists of a problem, and their structured hinge through handles."""

from __future__ import annotations

from rankhinge.objective.lists import Level, Lists, graded_lists, one_list
from rankhinge.objective.ranking import Evaluation, RankingObjective, Scores

__all__ = ["Evaluation", "Level", "Lists", "RankingObjective", "Scores", "graded_lists", "one_list"]
