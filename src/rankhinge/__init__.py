"""Train models whose ranking is what counts: exact convex bounds on average precision, NDCG and their kind."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: a script that only needs inference
# should not wait for scikit-learn.
_HOME = {
    "MostViolatingRanking": "inference",
    "MostViolatingRankings": "inference",
    "most_violating_ranking": "inference",
    "most_violating_rankings": "inference",
    "ranking_loss": "inference",
    "structured_hinge": "inference",
    "tight_hinge": "inference",
    "BagTransformer": "latent",
    "Bags": "latent",
    "LatentRankSVC": "latent",
    "LatentSVC": "latent",
    "LatentStructuralSVC": "latent",
    "ApproximateRankSVC": "svm",
    "RankSVC": "svm",
    "RankSVCCV": "svm",
    "SVMRanker": "svm",
    "SVMRankerCV": "svm",
    "rank_svm_path": "svm",
}
_ROOMS = ("detection", "inference", "latent", "losses", "metrics", "svm")

__all__ = [*_HOME, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"rankhinge.{_HOME[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"rankhinge.{name}")
    raise AttributeError(f"module 'rankhinge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
