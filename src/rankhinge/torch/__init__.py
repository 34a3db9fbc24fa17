"""Losses for PyTorch: exact bounds on ranking metrics, direct loss minimisation, and layer-wise training."""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "torch":
        raise
    raise ModuleNotFoundError("rankhinge.torch needs PyTorch: pip install 'rankhinge[torch]'", name="torch") from None

from rankhinge._public import publish
from rankhinge.torch.direct import DirectLoss, direct_loss
from rankhinge.torch.hinge import RankHingeLoss, rank_hinge
from rankhinge.torch.layerwise import LayerwiseTrainer
from rankhinge.torch.retrieval import RetrievalLoss, retrieval_loss

__all__ = [
    "DirectLoss",
    "LayerwiseTrainer",
    "RankHingeLoss",
    "RetrievalLoss",
    "direct_loss",
    "rank_hinge",
    "retrieval_loss",
]

publish(__name__)
