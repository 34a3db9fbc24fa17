"""Train models whose ranking counts: exact bounds on average precision, NDCG and other ranking metrics."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. They are imported when first used: a script that only needs inference
# should not wait for scikit-learn.
_HOME = {
    "spool": "datasets",
    "MostViolatingRanking": "inference",
    "MostViolatingRankings": "inference",
    "TightHinge": "inference",
    "most_violating_ranking": "inference",
    "most_violating_rankings": "inference",
    "ranking_loss": "inference",
    "structured_hinge": "inference",
    "tight_hinge": "inference",
    "BagTransformer": "latent",
    "Bags": "latent",
    "LatentRankSVC": "latent",
    "LatentRankSVCCV": "latent",
    "LatentSVC": "latent",
    "LatentStructuralSVC": "latent",
    "load": "persistence",
    "save": "persistence",
    "to_onnx": "persistence",
    "ApproximateRankSVC": "svm",
    "QueryKFold": "svm",
    "RankPath": "svm",
    "RankSVC": "svm",
    "RankSVCCV": "svm",
    "SVMRanker": "svm",
    "SVMRankerCV": "svm",
    "rank_svm_path": "svm",
}
_ROOMS = ("datasets", "detection", "inference", "latent", "losses", "metrics", "persistence", "plotting", "svm")
# Not among the public names, all of which can be imported without an extra.
_EXTRA_ROOMS = ("torch",)

__all__ = [*_HOME, *_ROOMS]


if TYPE_CHECKING:
    # For type checkers, which cannot follow the function below: the same names.
    from rankhinge import datasets as datasets
    from rankhinge import detection as detection
    from rankhinge import inference as inference
    from rankhinge import latent as latent
    from rankhinge import losses as losses
    from rankhinge import metrics as metrics
    from rankhinge import persistence as persistence
    from rankhinge import plotting as plotting
    from rankhinge import svm as svm
    from rankhinge.datasets import spool as spool
    from rankhinge.inference import MostViolatingRanking as MostViolatingRanking
    from rankhinge.inference import MostViolatingRankings as MostViolatingRankings
    from rankhinge.inference import TightHinge as TightHinge
    from rankhinge.inference import most_violating_ranking as most_violating_ranking
    from rankhinge.inference import most_violating_rankings as most_violating_rankings
    from rankhinge.inference import ranking_loss as ranking_loss
    from rankhinge.inference import structured_hinge as structured_hinge
    from rankhinge.inference import tight_hinge as tight_hinge
    from rankhinge.latent import Bags as Bags
    from rankhinge.latent import BagTransformer as BagTransformer
    from rankhinge.latent import LatentRankSVC as LatentRankSVC
    from rankhinge.latent import LatentRankSVCCV as LatentRankSVCCV
    from rankhinge.latent import LatentStructuralSVC as LatentStructuralSVC
    from rankhinge.latent import LatentSVC as LatentSVC
    from rankhinge.persistence import load as load
    from rankhinge.persistence import save as save
    from rankhinge.persistence import to_onnx as to_onnx
    from rankhinge.svm import ApproximateRankSVC as ApproximateRankSVC
    from rankhinge.svm import QueryKFold as QueryKFold
    from rankhinge.svm import RankPath as RankPath
    from rankhinge.svm import RankSVC as RankSVC
    from rankhinge.svm import RankSVCCV as RankSVCCV
    from rankhinge.svm import SVMRanker as SVMRanker
    from rankhinge.svm import SVMRankerCV as SVMRankerCV
    from rankhinge.svm import rank_svm_path as rank_svm_path
else:

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            found = getattr(importlib.import_module(f"rankhinge.{_HOME[name]}"), name)
        elif name in _ROOMS or name in _EXTRA_ROOMS:
            found = importlib.import_module(f"rankhinge.{name}")
        else:
            raise AttributeError(f"module 'rankhinge' has no attribute {name!r}")
        # From now on it is found without asking: 2 µs are a lot beside a short list.
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
