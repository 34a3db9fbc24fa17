"""Ranking losses, a file each: the formula, once, for kernels, arrays and tensors.

`base` says what a loss is. References: Mohapatra, Rolínek, Jawahar, Kolmogorov, Kumar: Efficient Optimization for
Rank-based Loss Functions, CVPR 2018.
"""

from rankhinge._public import publish
from rankhinge.losses.auc import AUC
from rankhinge.losses.average_precision import AveragePrecision
from rankhinge.losses.base import RankingLoss
from rankhinge.losses.check import check_suitable
from rankhinge.losses.custom import CustomLoss
from rankhinge.losses.dcg import DCG, NDCG, RBP, SoftNDCG
from rankhinge.losses.names import get_loss
from rankhinge.losses.reciprocal_rank import ReciprocalRank
from rankhinge.losses.suitability import SuitabilityReport
from rankhinge.losses.zero_one import ZeroOne

__all__ = [
    "AUC",
    "DCG",
    "NDCG",
    "RBP",
    "AveragePrecision",
    "CustomLoss",
    "RankingLoss",
    "ReciprocalRank",
    "SoftNDCG",
    "SuitabilityReport",
    "ZeroOne",
    "check_suitable",
    "get_loss",
]

publish(__name__)
