"""Ranking losses. Each file states one formula, once, for kernels, arrays and tensors.

`base` defines ranking losses. The theory is in Mohapatra, Rolínek, Jawahar, Kolmogorov and Kumar, "Efficient
Optimization for Rank-based Loss Functions", CVPR 2018.
"""

from rankhinge._public import publish
from rankhinge.losses.auc import AUC, PartialAUC
from rankhinge.losses.average_precision import APAt, AveragePrecision
from rankhinge.losses.base import RankingLoss
from rankhinge.losses.bedroc import BEDROC
from rankhinge.losses.check import check_suitable
from rankhinge.losses.counted import F1At, HitAt, PrecisionAt, RecallAt, RPrecision
from rankhinge.losses.custom import CustomLoss
from rankhinge.losses.dcg import DCG, NDCG, RBP, SoftNDCG
from rankhinge.losses.dcg_at import DCGAt, NDCGAt
from rankhinge.losses.names import get_loss
from rankhinge.losses.push import PNormPush, TopPush
from rankhinge.losses.reciprocal_rank import ReciprocalRank
from rankhinge.losses.suitability import SuitabilityReport
from rankhinge.losses.zero_one import ZeroOne

__all__ = [
    "AUC",
    "BEDROC",
    "DCG",
    "NDCG",
    "RBP",
    "APAt",
    "AveragePrecision",
    "CustomLoss",
    "DCGAt",
    "F1At",
    "HitAt",
    "NDCGAt",
    "PNormPush",
    "PartialAUC",
    "PrecisionAt",
    "RPrecision",
    "RankingLoss",
    "RecallAt",
    "ReciprocalRank",
    "SoftNDCG",
    "SuitabilityReport",
    "TopPush",
    "ZeroOne",
    "check_suitable",
    "get_loss",
]

publish(__name__)
