"""Textbook ranking metrics for one list or for many, with an explicit policy for every special case.

Call a metric as ``metric(relevance, scores, *, qid=None, ...)``. It returns a float: the value of one list or, with
`qid`, the mean over the queries. `per_query` returns the values one by one. Metrics share no code with the losses, so
that each can check the other.

For binary metrics a sample is relevant (positive) if its relevance is above 0.

**ties**: how equal scores in a list are treated.

- ``"average"``: the exact expectation over a uniformly random order of the tied samples, by the closed forms of
  McSherry and Najork (2008);
- ``"worst"`` / ``"best"``: the least / the most relevant of the tied samples come first;
- ``"index"``: the order of the input;
- ``"threshold"`` (average precision only): tied samples are retrieved together, as in scikit-learn.

**no_positives**: the value of a list without a relevant sample. For `auc` it also applies to a list without an
irrelevant one.

- ``"nan"``: nan, which makes the mean nan as well;
- ``"zero"`` / ``"one"``: 0 / 1;
- ``"skip"``: the list is left out. The result is nan if no list remains;
- ``"raise"``: a `ValueError` that names the query.

A list without negatives has average precision 1 and reciprocal rank 1 in any order. Its NDCG is 1 if all gains are
equal.

References
----------
F. McSherry and M. Najork, "Computing information retrieval performance measures efficiently in
the presence of tied scores", ECIR 2008.
"""

from rankhinge._public import publish
from rankhinge._validation import QueryIds as QueryIds
from rankhinge.metrics._comparison import Comparison as Comparison
from rankhinge.metrics._comparison import Estimate as Estimate
from rankhinge.metrics._comparison import compare, holm, interval
from rankhinge.metrics._cuts import (
    bedroc,
    f1_at_k,
    hit_at_k,
    p_norm_push,
    partial_auc,
    precision_at_k,
    r_precision,
    recall_at_k,
    top_push,
)
from rankhinge.metrics._functions import auc, average_precision, ndcg, rbp, reciprocal_rank
from rankhinge.metrics._per_query import per_query
from rankhinge.metrics._policies import Floats as Floats
from rankhinge.metrics._policies import Gains as Gains
from rankhinge.metrics._policies import NoPositives as NoPositives
from rankhinge.metrics._policies import Ties as Ties
from rankhinge.metrics._policies import TiesOfAP as TiesOfAP
from rankhinge.metrics._scorer import QueryScorer as QueryScorer
from rankhinge.metrics._scorer import make_query_scorer

__all__ = [
    "auc",
    "average_precision",
    "bedroc",
    "compare",
    "f1_at_k",
    "hit_at_k",
    "holm",
    "interval",
    "make_query_scorer",
    "ndcg",
    "p_norm_push",
    "partial_auc",
    "per_query",
    "precision_at_k",
    "r_precision",
    "rbp",
    "recall_at_k",
    "reciprocal_rank",
    "top_push",
]

publish(__name__)
# Listed because pickled scorers name it. Nobody needs to import it.
QueryScorer.__module__ = __name__
