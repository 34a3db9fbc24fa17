"""Labels, queries and grades become lists: for linear machines, bags and networks alike."""

from __future__ import annotations

from rankhinge.problems.grading import MOST_LEVELS, graded_lists
from rankhinge.problems.lists import Level, Lists, one_list

__all__ = ["MOST_LEVELS", "Level", "Lists", "graded_lists", "one_list"]
