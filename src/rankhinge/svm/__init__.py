"""Linear ranking machines."""

from typing import TYPE_CHECKING

from rankhinge._public import publish, shown_from
from rankhinge.svm.cv import RankSVCCV
from rankhinge.svm.path import RankPath, rank_svm_path
from rankhinge.svm.query_folds import QueryKFold
from rankhinge.svm.rank_svc import RankSVC
from rankhinge.svm.ranker import SVMRanker
from rankhinge.svm.ranker_cv import SVMRankerCV

if TYPE_CHECKING:
    from rankhinge.papers.machines import ApproximateRankSVC as ApproximateRankSVC
else:
    __getattr__ = shown_from(__name__, "rankhinge.papers.machines", "ApproximateRankSVC")

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
