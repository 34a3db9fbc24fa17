"""Linear ranking machines."""

from rankhinge._public import publish
from rankhinge.svm.approximate import ApproximateRankSVC
from rankhinge.svm.cv import RankSVCCV, SVMRankerCV
from rankhinge.svm.path import RankPath, rank_svm_path
from rankhinge.svm.query_folds import QueryKFold
from rankhinge.svm.rank_svc import RankSVC
from rankhinge.svm.ranker import SVMRanker

__all__ = [
    "ApproximateRankSVC",
    "QueryKFold",
    "RankPath",
    "RankSVC",
    "RankSVCCV",
    "SVMRanker",
    "SVMRankerCV",
    "rank_svm_path",
]

publish(__name__)
