"""The objective, written down once: the lists of a problem, and their structured hinge through handles."""

from __future__ import annotations

from rankhinge.objective.lists import MOST_LEVELS, Level, Lists, graded_lists, one_list, one_list_of
from rankhinge.objective.ranking import Evaluation, RankingObjective, Scores

__all__ = [
    "MOST_LEVELS",
    "Evaluation",
    "Level",
    "Lists",
    "RankingObjective",
    "Scores",
    "graded_lists",
    "one_list",
    "one_list_of",
]
