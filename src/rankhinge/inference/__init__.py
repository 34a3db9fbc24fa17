"""Inference of the most violating ranking, the one routine that all training calls."""

from rankhinge._public import publish
from rankhinge.inference.api import most_violating_ranking, most_violating_rankings, ranking_loss, structured_hinge
from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.inference.tight_bound import TightHinge, tight_hinge

__all__ = [
    "MostViolatingRanking",
    "MostViolatingRankings",
    "TightHinge",
    "most_violating_ranking",
    "most_violating_rankings",
    "ranking_loss",
    "structured_hinge",
    "tight_hinge",
]

publish(__name__)
