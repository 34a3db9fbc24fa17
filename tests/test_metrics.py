"""Metrics against plain definitions, all permutations, scikit-learn and ir_measures."""

import itertools
import math
import pickle
import shutil
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankhinge.metrics import (
    auc,
    average_precision,
    make_query_scorer,
    ndcg,
    per_query,
    precision_at_k,
    rbp,
    reciprocal_rank,
)

CLOSE = {"rel": 1e-12, "abs": 1e-12}
EXPONENTIAL = {0: 0, 1: 1, 2: 3, 3: 7}

# Lists without a relevant sample are what many of these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:.*so the metric is nan")


# Definitions, written on the relevances in ranked order and without NumPy.


def plain_ap(ranked):
    hits = [rank for rank, label in enumerate(ranked, 1) if label > 0]
    return sum(i / rank for i, rank in enumerate(hits, 1)) / len(hits) if hits else math.nan


def plain_ndcg(ranked, k=None, gain=float):
    def dcg(labels):
        return sum(gain(x) / math.log2(rank + 1) for rank, x in enumerate(labels[:k], 1))

    ideal = dcg(sorted(ranked, key=gain, reverse=True))
    return dcg(ranked) / ideal if ideal > 0 else math.nan


def plain_rr(ranked):
    return next((1 / rank for rank, label in enumerate(ranked, 1) if label > 0), math.nan)


def plain_auc(ranked):
    pairs = [(i < j) for i, a in enumerate(ranked) if a > 0 for j, b in enumerate(ranked) if b == 0]
    return sum(pairs) / len(pairs) if pairs else math.nan


def plain_rbp(ranked, p=0.8):
    return sum((1 - p) * p**i for i, label in enumerate(ranked) if label > 0)


def plain_normalized_rbp(ranked, p=0.5):
    best = plain_rbp(sorted(ranked, reverse=True), p)
    return plain_rbp(ranked, p) / best if best > 0 else math.nan


def plain_precision(ranked, k=2):
    return sum(label > 0 for label in ranked[:k]) / k


CASES = {
    "ap": (average_precision, {}, plain_ap),
    "ndcg": (ndcg, {"gains": "linear"}, plain_ndcg),
    "ndcg@2": (ndcg, {"k": 2, "gains": "linear"}, lambda r: plain_ndcg(r, k=2)),
    "ndcg, exponential": (
        ndcg,
        {"gains": "exponential"},
        lambda r: plain_ndcg(r, gain=lambda x: 2.0**x - 1),
    ),
    "ndcg, table": (
        ndcg,
        {"gains": [0.0, 0.3, 0.1, 5.5], "k": 3},
        lambda r: plain_ndcg(r, k=3, gain=[0.0, 0.3, 0.1, 5.5].__getitem__),
    ),
    "ndcg, callable": (ndcg, {"gains": np.sqrt}, lambda r: plain_ndcg(r, gain=math.sqrt)),
    "rr": (reciprocal_rank, {}, plain_rr),
    "auc": (auc, {}, plain_auc),
    "rbp": (rbp, {"no_positives": "zero"}, plain_rbp),
    "rbp, normalized": (
        rbp,
        {"persistence": 0.5, "normalize": True, "no_positives": "nan"},
        plain_normalized_rbp,
    ),
    "precision@2": (precision_at_k, {"k": 2}, plain_precision),
}
every_metric = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def rows(max_size, max_label=3, max_score=2, min_size=1):
    row = st.tuples(st.integers(0, max_label), st.integers(0, max_score))
    return st.lists(row, min_size=min_size, max_size=max_size).map(lambda pairs: tuple(np.array(pairs).T))


def values_of_all_orders(plain, relevance, scores):
    """Value of every order that is sorted by score: ties in all their permutations."""
    orders = [
        order
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return [plain([int(relevance[i]) for i in order]) for order in orders]


@every_metric
@settings(max_examples=60, deadline=None)
@given(data=rows(max_size=6))
def test_ties_agree_with_all_permutations(case, data):
    function, options, plain = case
    relevance, scores = data
    values = values_of_all_orders(plain, relevance, scores)
    expected = {"average": np.mean(values), "worst": min(values), "best": max(values)}
    for ties, value in expected.items():
        found = function(relevance, scores, ties=ties, **options)
        assert found == pytest.approx(value, nan_ok=True, **CLOSE)
    in_input_order = sorted(range(len(scores)), key=lambda i: -scores[i])
    found = function(relevance, scores, ties="index", **options)
    value = plain([int(relevance[i]) for i in in_input_order])
    assert found == pytest.approx(value, nan_ok=True, **CLOSE)


def one_tied_group(above, tied, relevant):
    relevance = np.r_[np.zeros(above), np.ones(relevant), np.zeros(tied - relevant)]
    return relevance, np.r_[np.ones(above), np.zeros(tied)]


@pytest.mark.parametrize(("above", "tied", "relevant"), [(0, 400, 3), (7, 1000, 1), (2, 300, 299), (5, 3000, 1500)])
def test_reciprocal_rank_of_long_tied_groups_is_exact(above, tied, relevant):
    # The first relevant sample is at place t in C(tied - t, relevant - 1) of the patterns.
    expected = sum(Fraction(math.comb(tied - t, relevant - 1), above + t) for t in range(1, tied + 1)) / math.comb(
        tied, relevant
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = reciprocal_rank(*one_tied_group(above, tied, relevant))
    assert found == pytest.approx(float(expected), **CLOSE)


@pytest.mark.parametrize(("above", "tied", "relevant"), [(0, 400, 3), (7, 1000, 1), (2, 200, 199)])
def test_average_precision_of_long_tied_groups_is_exact(above, tied, relevant):
    # Patterns with a relevant sample at place t and b relevant ones before it in the group.
    expected = sum(
        Fraction(math.comb(t - 1, b) * math.comb(tied - t, relevant - 1 - b) * (b + 1), above + t)
        for t in range(1, tied + 1)
        for b in range(max(0, relevant - 1 - (tied - t)), min(t, relevant))
    ) / (math.comb(tied, relevant) * relevant)
    found = average_precision(*one_tied_group(above, tied, relevant))
    assert found == pytest.approx(float(expected), **CLOSE)


def test_known_values_of_one_ranking():
    relevance, scores = [1, 1, 0, 1, 0, 1, 0, 0], [8, 7, 6, 5, 4, 3, 2, 1]
    assert 1 - average_precision(relevance, scores) == pytest.approx(0.1458, abs=5e-5)
    assert 1 - ndcg(relevance, scores) == pytest.approx(0.0561, abs=5e-5)


# scikit-learn


@settings(max_examples=150, deadline=None)
@given(data=rows(max_size=25, max_label=1, max_score=8, min_size=2))
def test_equal_to_scikit_learn_on_binary_lists(data):
    from sklearn.metrics import average_precision_score, roc_auc_score

    relevance, scores = data
    if relevance.any():
        found = average_precision(relevance, scores, ties="threshold")
        assert found == pytest.approx(average_precision_score(relevance, scores), **CLOSE)
    if 0 < relevance.sum() < len(relevance):
        assert auc(relevance, scores) == pytest.approx(roc_auc_score(relevance, scores), **CLOSE)


def test_equal_to_scikit_learn_on_a_long_list():
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    rng = np.random.default_rng(2)
    scores = rng.normal(size=20_000).round(3)
    relevance = rng.random(20_000) < 1 / (1 + np.exp(3 - scores))
    found = [average_precision(relevance, scores, ties="threshold"), auc(relevance, scores)]
    found.append(ndcg(relevance, scores, k=500))
    expected = [average_precision_score(relevance, scores), roc_auc_score(relevance, scores)]
    expected.append(ndcg_score([relevance], [scores], k=500))
    assert found == pytest.approx(expected, **CLOSE)


@settings(max_examples=150, deadline=None)
@given(data=rows(max_size=25, max_score=8, min_size=2), k=st.none() | st.integers(1, 30))
def test_equal_to_scikit_learn_on_graded_lists(data, k):
    from sklearn.metrics import ndcg_score

    relevance, scores = data
    found = ndcg(relevance, scores, k=k, gains="linear", no_positives="zero")
    assert found == pytest.approx(ndcg_score([relevance], [scores], k=k), **CLOSE)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_lists=st.integers(1, 6), n_labels=st.integers(2, 6))
def test_equal_to_scikit_learn_on_label_rankings(seed, n_lists, n_labels):
    from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss

    rng = np.random.default_rng(seed)
    relevance = rng.integers(0, 2, (n_lists, n_labels))
    scores = rng.integers(0, 4, (n_lists, n_labels))
    shuffled = rng.permutation(relevance.size)
    flat = relevance.ravel()[shuffled], scores.ravel()[shuffled]
    options = {"qid": np.repeat(np.arange(n_lists), n_labels)[shuffled], "no_positives": "one"}
    lrap = label_ranking_average_precision_score(relevance, scores)
    assert average_precision(*flat, ties="threshold", **options) == pytest.approx(lrap, **CLOSE)
    loss = label_ranking_loss(relevance, scores)
    assert 1 - auc(*flat, ties="worst", **options) == pytest.approx(loss, **CLOSE)


# ir_measures


def as_trec(relevance, scores, qid):
    """Qrels and run; trec_eval puts the greater document id first among ties."""
    qrels, run = {}, {}
    for row, (label, score, query) in enumerate(zip(relevance, scores, qid, strict=True)):
        document = f"{10**6 - 1 - row}"
        qrels.setdefault(str(query), {})[document] = int(label)
        run.setdefault(str(query), {})[document] = float(score)
    return qrels, run


def assert_equal_to_ir_measures(measures, relevance, scores, qid, tolerance=1e-12):
    import ir_measures

    trec = as_trec(relevance, scores, qid)
    for measure, (name, options) in measures.items():
        # One measure a call: in one call ir_measures may mix up nDCG with and without gains.
        expected = {found.query_id: found.value for found in ir_measures.iter_calc([measure], *trec)}
        options = {"ties": "index", "no_positives": "zero"} | options
        queries, values = per_query(name, relevance, scores, qid, **options)
        assert len(queries) == len(set(qid))
        for query, value in zip(queries, values, strict=True):
            assert value == pytest.approx(expected[str(query)], abs=tolerance)


@settings(max_examples=80, deadline=None)
@given(data=rows(max_size=30, max_score=6), n_queries=st.integers(1, 4), k=st.integers(1, 12))
def test_equal_to_ir_measures(data, n_queries, k):
    ir_measures = pytest.importorskip("ir_measures")
    nDCG = ir_measures.nDCG
    measures = {
        ir_measures.AP: ("ap", {}),
        ir_measures.RR: ("reciprocal_rank", {}),
        ir_measures.P @ k: ("precision_at_k", {"k": k}),
        nDCG: ("ndcg", {"gains": "linear"}),
        nDCG @ k: ("ndcg", {"gains": "linear", "k": k}),
        nDCG(gains=EXPONENTIAL): ("ndcg", {"gains": "exponential"}),
        nDCG(gains=EXPONENTIAL) @ k: ("ndcg", {"gains": "exponential", "k": k}),
    }
    relevance, scores = data
    assert_equal_to_ir_measures(measures, relevance, scores, np.arange(len(scores)) % n_queries)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
def test_equal_to_exponential_gains_of_gdeval():
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(0)
    relevance, qid = rng.integers(0, 4, 120), rng.integers(1, 9, 120)
    measures = {ir_measures.nDCG(dcg="exp-log2") @ k: ("ndcg", {"gains": "exponential", "k": k}) for k in (1, 3, 10)}
    # It prints five digits.
    assert_equal_to_ir_measures(measures, relevance, rng.permutation(120), qid, tolerance=6e-6)


def test_equal_to_rank_biased_precision_of_ir_measures():
    pytest.importorskip("cwl")
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(1)
    relevance, qid = rng.integers(0, 3, 60), rng.integers(0, 5, 60)
    measures = {ir_measures.RBP(rel=1, p=p): ("rbp", {"persistence": p}) for p in (0.3, 0.8, 0.95)}
    assert_equal_to_ir_measures(measures, relevance, rng.permutation(60), qid)


# Queries


@every_metric
@pytest.mark.parametrize("ties", ["average", "worst", "best", "index"])
def test_many_lists_are_the_mean_of_single_lists(case, ties):
    function, options, _ = case
    rng = np.random.default_rng(3)
    qid = rng.integers(0, 40, 300)
    relevance, scores = rng.integers(0, 4, 300), rng.integers(0, 5, 300)
    options = options | {"ties": ties, "no_positives": "zero"}
    one_by_one = [
        function(relevance[qid == query], scores[qid == query], **options) for query in dict.fromkeys(qid.tolist())
    ]
    found = function(relevance, scores, qid=qid, **options)
    assert found == pytest.approx(np.mean(one_by_one), **CLOSE)
    queries, values = per_query(function.__name__, relevance, scores, qid, **options)
    assert queries.tolist() == list(dict.fromkeys(qid.tolist()))
    assert queries.dtype == qid.dtype
    assert values == pytest.approx(one_by_one, **CLOSE)


TUPLES = np.fromiter([("a", 1), ("a", 2), ("a", 1), ("a", 2)], dtype=object)


@pytest.mark.parametrize(
    "qid",
    [
        [7, -3, 7, -3],
        np.array([7, -3, 7, -3]),
        np.array(["q2", "q10", "q2", "q10"]),
        np.array([0.5, 0.25, 0.5, 0.25]),
        np.array(["2024-05-02", "2024-05-01"] * 2, dtype="datetime64[D]"),
        ["b", "a", "b", "a"],
        [1, "1", 1, "1"],
        [None, ("x", 1), None, ("x", 1)],
        [("a", 1), ("a", 2)] * 2,
        TUPLES,
    ],
    ids=str,
)
def test_queries_may_be_any_hashable_in_any_order(qid):
    queries, values = per_query("ap", [1, 0, 0, 1], [4, 3, 2, 1], qid)
    assert list(queries) == list(qid[:2])
    assert values.tolist() == [1.0, 0.5]
    assert average_precision([1, 0, 0, 1], [4, 3, 2, 1], qid=qid) == 0.75


def test_pandas_columns_are_accepted():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"y": [1, 0, 0, 1], "score": [4.0, 3, 2, 1], "query": ["b", "a", "b", "a"]},
        index=[9, 8, 7, 6],
    )
    for query in (frame["query"], frame["query"].astype("category")):
        queries, values = per_query("ap", frame["y"], frame["score"], query)
        assert (queries.tolist(), values.tolist()) == (["b", "a"], [1.0, 0.5])


# Lists that lack positives or negatives


ALL = [average_precision, ndcg, reciprocal_rank, auc, rbp]


@pytest.mark.parametrize("function", ALL)
def test_policies_for_lists_without_positives(function):
    assert math.isnan(function([0, 0], [1, 2], no_positives="nan"))
    assert math.isnan(function([0, 0], [1, 2], no_positives="skip"))
    assert function([0, 0], [1, 2], no_positives="zero") == 0
    assert function([0, 0], [1, 2], no_positives="one") == 1
    with pytest.raises(ValueError, match=r"^the list has no relevant sample$"):
        function([0, 0], [1, 2], no_positives="raise")

    many = [1, 0, 0, 0], [2, 1, 2, 1]
    qid = ["q1", "q1", "q17", "q17"]
    of_first = function([1, 0], [2, 1])
    assert of_first > 0
    assert math.isnan(function(*many, qid=qid, no_positives="nan"))
    assert function(*many, qid=qid, no_positives="skip") == of_first
    assert function(*many, qid=qid, no_positives="zero") == of_first / 2
    assert function(*many, qid=qid, no_positives="one") == (of_first + 1) / 2
    for queries in (qid, np.array(qid)):
        with pytest.raises(ValueError, match=r"^query 'q17' has no relevant sample$"):
            function(*many, qid=queries, no_positives="raise")
    queries, values = per_query(function.__name__, *many, qid, no_positives="skip")
    assert (queries.tolist(), values.tolist()) == (["q1"], [of_first])


def test_defaults_for_lists_without_positives():
    for function in (average_precision, ndcg, reciprocal_rank, auc):
        assert math.isnan(function([0, 0], [1, 2]))
    assert rbp([0, 0], [1, 2]) == 0
    assert precision_at_k([0, 0], [1, 2], k=1) == 0


def test_lists_without_negatives():
    for ties in ("average", "worst", "best", "index"):
        assert average_precision([1, 2, 1], [1, 1, 5], ties=ties) == 1
        assert reciprocal_rank([1, 2, 1], [1, 1, 5], ties=ties) == 1
        assert ndcg([1, 1, 1], [1, 1, 5], ties=ties) == 1
        assert ndcg([0.1, 0.1, 0.1], [1, 1, 1], ties=ties) == 1
        assert math.isnan(auc([1, 2, 1], [1, 1, 5], ties=ties))
    assert average_precision([1, 2, 1], [1, 1, 5], ties="threshold") == 1
    assert auc([1, 1], [1, 2], no_positives="one") == 1
    assert auc([1, 1, 1, 0], [1, 2, 1, 0], qid=[1, 1, 2, 2], no_positives="skip") == 1
    with pytest.raises(ValueError, match=r"^query 3 has no irrelevant sample$"):
        auc([1, 1, 1, 0], [1, 2, 1, 0], qid=np.array([3, 3, 2, 2]), no_positives="raise")


def test_rounding_never_lifts_ndcg_above_one():
    for n_samples in range(2, 40):
        value = ndcg([0.7] * n_samples, [0] * n_samples)
        assert value <= 1
        assert value == pytest.approx(1, **CLOSE)


def test_lists_of_one_sample():
    for function in (average_precision, ndcg, reciprocal_rank):
        assert function([1], [0.0]) == 1
    assert rbp([1], [0.0], persistence=0.75) == 0.25
    assert precision_at_k([1], [0.0], k=4) == 0.25
    qid = np.arange(1000)
    assert ndcg(np.ones(1000), np.zeros(1000), qid=qid) == 1


def test_persistence_zero_looks_at_the_first_sample_only():
    assert rbp([1, 1], [2, 1], persistence=0) == 1
    assert rbp([0, 1], [2, 1], persistence=0) == 0


def test_huge_scores_are_compared_without_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert average_precision([0, 1], [1.7e308, -1.7e308]) == 0.5
        assert auc([1, 0], [0.0, -0.0]) == 0.5


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ndcg([1, 0, 1, 0], [1, 2, 3, np.nan]), r"^scores\[3\] is nan$"),
        (lambda: ndcg([1, 0], [np.inf, 0]), r"^scores\[0\] is inf$"),
        (lambda: auc([1, np.nan], [1, 2]), r"^relevance\[1\] is nan$"),
        (lambda: auc([1, -1], [1, 2]), r"^relevance\[1\] is -1, it must be at least 0$"),
        (lambda: auc([1, 0], [1, 2, 3]), "^relevance has 2 entries, scores 3$"),
        (lambda: auc([1] * 8, [1] * 8, qid=[1] * 7), "^qid has 7 entries, scores 8$"),
        (lambda: auc([], []), "empty"),
        (lambda: auc([], [], qid=[]), "empty"),
        (lambda: auc([[1, 0]], [1, 2]), r"relevance must be one-dim.* \(1, 2\)"),
        (lambda: auc([1, 0], [[1], [2]]), r"scores must be one-dim.* \(2, 1\)"),
        (lambda: auc([1, 0], [1, 2], qid=np.ones((2, 1))), r"qid must be one-dim.* \(2, 1\)"),
        (lambda: auc([1, 0], [1, 2], qid=np.array([0, np.nan])), r"^qid\[1\] is nan$"),
        (lambda: auc([1, 0], [1, 2], qid=["a", float("nan")]), r"^qid\[1\] is nan$"),
        (lambda: auc([1, 0], [1, 2], qid=["a", [3]]), r"^qid\[1\] is \[3\], which is not hash"),
        (lambda: ndcg([1, 0.5], [1, 2], gains=[0, 1]), r"^relevance\[1\] is 0.5, gains as an"),
        (lambda: ndcg([1, 2], [1, 2], gains=[0, 1]), r"^relevance\[1\] is 2, gains as an array"),
        (lambda: ndcg([1, 2], [1, 2], gains=[0, 1, -3]), r"gain of relevance\[1\] = 2 is -3"),
        (lambda: ndcg([1, 2], [1, 2], gains=[0, np.nan]), r"^gains\[1\] is nan$"),
        (lambda: ndcg([1, 2000], [1, 2], gains="exponential"), r"relevance\[1\] = 2000 is inf"),
        (lambda: ndcg([1, 2], [1, 2], gains=lambda x: 1.0), r"^gains gave shape \(\)"),
        (lambda: ndcg([1, 2], [1, 2], gains="binary-ish"), "^gains is 'binary-ish', choose"),
        (lambda: ndcg([1, 0], [1, 2], k=0), "^k is 0, it must be"),
        (lambda: ndcg([1, 0], [1, 2], k=1.5), "^k is 1.5, it must be"),
        (lambda: precision_at_k([1, 0], [1, 2], k=-2), "^k is -2, it must be"),
        (lambda: precision_at_k([1, 0], [1, 2], k=None), "^k is None, it must be"),
        (lambda: rbp([1, 0], [1, 2], persistence=1), "^persistence is 1, it must be"),
        (lambda: rbp([1, 0], [1, 2], persistence=np.nan), "^persistence is nan, it must be"),
        (lambda: ndcg([1, 0], [1, 2], ties="mean"), "^ties is 'mean', choose one of average"),
        (lambda: ndcg([1, 0], [1, 2], ties="threshold"), "^ties is 'threshold', choose"),
        (lambda: ndcg([1, 0], [1, 2], no_positives="no"), "^no_positives is 'no', choose one"),
        (lambda: per_query("mapp", [1], [1], [1]), "^metric is 'mapp', choose one of average_prec"),
        (lambda: per_query("ap", [1], [1], None), "^qid is missing"),
        (lambda: make_query_scorer("ndgc@10"), r"did you mean 'ndcg@10'\?"),
        (lambda: make_query_scorer("mrrr"), "^metric is 'mrrr', choose one of"),
        (lambda: make_query_scorer("ndcg@0"), "^metric is 'ndcg@0': after the @ there must be an integer"),
        (lambda: make_query_scorer("ndcg@1", k=3), "^metric is 'ndcg@1', which names a depth already: leave out k=3"),
        (lambda: per_query("ndcg@1", [1, 0], [1, 0], [0, 0], k=3), "leave out k=3"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_unknown_options_are_refused_at_once():
    with pytest.raises(TypeError, match="kk"):
        make_query_scorer("ndcg", kk=3)
    for name in ("precision_at_k", "precision"):
        with pytest.raises(TypeError, match=rf"metric '{name}' .* 'k'; a depth is given as k=10 or in the name"):
            make_query_scorer(name)
    for metric, option in (("ndcg", "kk"), ("ap", "gains"), ("auc", "k")):
        with pytest.raises(TypeError, match=option):
            per_query(metric, [1], [1], [1], **{option: 3})


def test_inputs_are_left_alone():
    relevance, scores, qid = np.array([0.0, 1, 2]), np.array([1.0, 1, 2]), np.array([2, 1, 2])
    copies = relevance.copy(), scores.copy(), qid.copy()
    for function, options, _ in CASES.values():
        function(relevance, scores, qid=qid, **options)
    for array, copy in zip((relevance, scores, qid), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_import_needs_numpy_only():
    code = (
        "import sys\n"
        "from rankhinge import metrics\n"
        "assert metrics.ndcg([1, 0], [1, 2], qid=['a', 'a']) > 0\n"
        "assert not {'sklearn', 'scipy', 'numba'} & set(sys.modules)\n"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('rankhinge.')}\n"
        "assert rooms == {'metrics', '_public', '_validation'}, rooms\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# The scorer, in scikit-learn's tools


class OneFeatureRanker(BaseEstimator):
    """Scores are one of the features; neither a classifier nor a regressor."""

    def __init__(self, feature=0):
        self.feature = feature

    def fit(self, X, y, qid=None):
        if qid is None or len(qid) != len(y):
            raise ValueError("fit needs one qid per row")
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        return np.asarray(X)[:, self.feature]


class DecidingRanker(OneFeatureRanker):
    def decision_function(self, X):
        return -np.asarray(X)[:, self.feature]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def problem():
    rng = np.random.default_rng(5)
    qid = np.array([f"q{i}" for i in rng.integers(0, 24, 240)])
    X = rng.normal(size=(240, 3))
    y = np.clip(np.round(X[:, 1] + rng.normal(size=240)), 0, 3).astype(int)
    # A shift per query leaves its own ranking alone, but not that of all rows together.
    X += 20 * rng.normal(size=(24, 1))[np.unique(qid, return_inverse=True)[1]]
    return X, y, qid


def fold_values(function, problem, scores, **options):
    X, y, qid = problem
    return [function(y[test], scores[test], qid=qid[test], **options) for _, test in GroupKFold(4).split(X, y, qid)]


SKIP = {"no_positives": "skip"}


def test_grid_search_over_a_pipeline(routing, problem):
    X, y, qid = problem
    pipeline = make_pipeline(StandardScaler(), OneFeatureRanker().set_fit_request(qid=True))
    scorer = make_query_scorer("ndcg", k=5, **SKIP).set_score_request(qid=True)
    grid = {"onefeatureranker__feature": [0, 1, 2]}
    search = GridSearchCV(pipeline, grid, scoring=scorer, cv=GroupKFold(4), error_score="raise")
    search = clone(search).fit(X, y, qid=qid, groups=qid)
    for feature in range(3):
        expected = fold_values(ndcg, problem, X[:, feature], k=5, **SKIP)
        found = [search.cv_results_[f"split{i}_test_score"][feature] for i in range(4)]
        assert found == pytest.approx(expected, **CLOSE)
    assert search.best_params_ == {"onefeatureranker__feature": 1}
    assert search.score(X, y, qid=qid) == pytest.approx(ndcg(y, X[:, 1], qid=qid, k=5, **SKIP))


def test_cross_validate_with_several_scorers(routing, problem):
    X, y, qid = problem
    found = cross_validate(
        OneFeatureRanker(1).set_fit_request(qid=True),
        X,
        y,
        params={"qid": qid, "groups": qid},
        scoring={"ndcg": make_query_scorer("ndcg", **SKIP), "ap": make_query_scorer("ap", **SKIP)},
        cv=GroupKFold(4),
        error_score="raise",
    )
    expected = {"ndcg": ndcg, "ap": average_precision}
    for name, function in expected.items():
        values = fold_values(function, problem, X[:, 1], **SKIP)
        assert found[f"test_{name}"] == pytest.approx(values, **CLOSE)


def test_qid_under_another_name_and_beside_a_classifier(routing, problem):
    X, y, qid = problem
    model = LogisticRegression()
    scorer = make_query_scorer("auc", **SKIP).set_score_request(qid="groups")
    found = cross_val_score(model, X, y > 0, params={"groups": qid}, scoring=scorer, cv=GroupKFold(4))
    expected = []
    for train, test in GroupKFold(4).split(X, y, qid):
        scores = clone(model).fit(X[train], y[train] > 0).decision_function(X[test])
        expected.append(auc(y[test] > 0, scores, qid=qid[test], **SKIP))
    assert found == pytest.approx(expected, **CLOSE)


def test_wrong_request_is_refused_and_forgotten():
    scorer = make_query_scorer("ap")
    with pytest.raises(ValueError, match="not an identifier"):
        scorer.set_score_request(qid="not an identifier")
    assert scorer.get_metadata_routing().score.requests == {"qid": True}


def test_qid_of_the_wrong_length_fails_clearly(routing, problem):
    X, y, qid = problem
    scorer = make_query_scorer("ndcg", **SKIP)
    model = OneFeatureRanker().fit(X, y, qid)
    with pytest.raises(ValueError, match=r"^qid has 239 entries, scores 240$"):
        scorer(model, X, y, qid=qid[1:])
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=scorer, error_score="raise")
    with pytest.raises(ValueError, match=r"^qid has 239 entries, scores 48$"):
        search.fit(X, y > 0, qid=qid[1:])


def test_missing_qid_fails_instead_of_pooling(problem):
    X, y, _ = problem
    scorer = make_query_scorer("ndcg", k=5)
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=scorer, error_score="raise")
    with pytest.raises(ValueError, match=r"^make_query_scorer\('ndcg', k=5\) got no qid"):
        search.fit(X, y > 0)


def test_pickled_scorer_gives_the_same_and_keeps_its_request(problem):
    X, y, qid = problem
    model = OneFeatureRanker(1).fit(X, y, qid)
    scorer = make_query_scorer(ndcg, gains=[0, 1, 2, 9], **SKIP).set_score_request(qid="groups")
    copy = pickle.loads(pickle.dumps(scorer))
    assert repr(copy) == repr(scorer)
    assert copy(model, X, y, qid=qid) == scorer(model, X, y, qid=qid)
    assert copy.get_metadata_routing().score.requests == {"qid": "groups"}


def test_scores_come_from_decision_function_then_probability_then_predict(problem):
    X, y, qid = problem
    scorer = make_query_scorer("ap", **SKIP)
    model = DecidingRanker(1).fit(X, y, qid)
    assert scorer(model, X, y, qid=qid) == average_precision(y, -X[:, 1], qid=qid, **SKIP)
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y > 0)
    expected = average_precision(y > 0, forest.predict_proba(X)[:, 1], qid=qid, **SKIP)
    assert scorer(forest, X, y > 0, qid=qid) == expected


@pytest.mark.parametrize("labels", [(-1, 1), ("no", "yes"), (False, True)])
def test_second_class_of_a_binary_classifier_is_the_relevant_one(problem, labels):
    X, y, qid = problem
    target = np.array(labels)[(y > 1).astype(int)]
    model = LogisticRegression().fit(X, target)
    expected = average_precision(y > 1, model.decision_function(X), qid=qid, **SKIP)
    assert make_query_scorer("ap", **SKIP)(model, X, target, qid=qid) == expected


def test_multiclass_scores_are_refused(problem):
    X, y, qid = problem
    model = LogisticRegression(max_iter=1000).fit(X, y)
    with pytest.raises(ValueError, match=r"^scores must be one-dimensional, its shape is \(240,"):
        make_query_scorer("ndcg")(model, X, y, qid=qid)


def test_names_with_a_depth_and_short_names():
    relevance, scores, qid = [1, 0, 2, 0], [0.1, 0.2, 0.3, 0.4], ["a", "a", "b", "b"]
    for short, name, options in (
        ("ndcg@1", "ndcg", {"k": 1}),
        ("precision@1", "precision_at_k", {"k": 1}),
        ("rr", "reciprocal_rank", {}),
    ):
        np.testing.assert_array_equal(
            per_query(short, relevance, scores, qid)[1], per_query(name, relevance, scores, qid, **options)[1]
        )
    for name in ("f2", "auc@3", "ndcg@", "ndcg@0", "ndcg@x"):
        with pytest.raises(ValueError, match=f"metric is '{name}'"):
            per_query(name, relevance, scores, qid)


def test_a_scorer_leaves_out_queries_without_a_relevant_row():
    """A score of nan would end a search without a word."""
    X, y, qid = np.array([[0.0], [3.0], [1.0], [2.0]]), [0, 1, 0, 0], [1, 1, 2, 2]
    model = Ridge().fit(X, y)
    assert make_query_scorer("ndcg@10")(model, X, y, qid=qid) == 1.0
    assert math.isnan(make_query_scorer("ndcg", no_positives="nan")(model, X, y, qid=qid))
    assert make_query_scorer(lambda relevance, scores, *, qid: 0.5)(model, X, y, qid=qid) == 0.5


def test_words_are_named():
    with pytest.raises(ValueError, match=r"relevance\[1\] is 'good': it must be a number"):
        average_precision([1, "good"], [0.1, 0.2])


@pytest.mark.parametrize("which", ["relevance", "scores", "qid"])
def test_masked_entries(which):
    arguments = {"relevance": np.array([1, 0, 1]), "scores": np.array([1.0, 2.0, 3.0]), "qid": np.zeros(3, int)}
    arguments[which] = np.ma.array(arguments[which], mask=[False, True, False])
    with pytest.raises(ValueError, match=rf"{which}\[1\] is masked"):
        average_precision(**arguments)


def test_complex_scores():
    with pytest.raises(ValueError, match="scores must be real"):
        average_precision([1, 0], [1j, 2.0])


def test_gains_of_very_different_size_in_different_queries():
    """Each query has its own scale: the gains of one do not change the value of another."""
    alone = per_query("ndcg", [1e-20, 0.0], [1.0, 2.0], [1, 1], gains="linear")[1]
    both = per_query("ndcg", [1e300, 0.0, 1e-20, 0.0], [1.0, 2.0, 1.0, 2.0], [0, 0, 1, 1], gains="linear")[1]
    np.testing.assert_array_equal(both, [alone[0], alone[0]])
    tiny = per_query("ndcg", [0.0, 5e-324, 0.0], [3.0, 2.0, 1.0], [0, 0, 0], gains="linear")[1]
    assert tiny[0] == pytest.approx(1 / np.log2(3))


@pytest.mark.parametrize("target", [lambda y: y > 0, lambda y: (y > 0).astype(int), lambda y: (y > 0) * 1.0])
def test_scorer_of_a_classifier_that_was_told_relevant_from_not(target):
    """Grades beyond 1 count, though the classifier knows 0 and 1 only."""
    X, y = np.array([[3.0], [2.0], [1.0], [0.0]]), np.array([2, 1, 0, 0])
    classifier = LogisticRegression().fit(X, target(y))
    for labels in (y, y.astype(float), y.astype(object), np.array([2, 2, 0, 0])):
        assert make_query_scorer("ndcg")(classifier, X, labels, qid=np.zeros(4)) == 1.0
    words = LogisticRegression().fit(X, np.where(y > 0, "yes", "no"))
    with pytest.raises(ValueError, match=r"label .*2.*, but the estimator was fitted to .*no.* and .*yes.* only"):
        make_query_scorer("ndcg")(words, X, y, qid=np.zeros(4))
    signs = LogisticRegression().fit(X, np.where(y > 0, 1, -1))
    with pytest.raises(ValueError, match=r"label .*2.*, but the estimator was fitted to .*-1.* and .*1.* only"):
        make_query_scorer("ndcg")(signs, X, y, qid=np.zeros(4))


@pytest.mark.filterwarnings("error")
def test_a_mean_that_is_nan_says_why():
    qid, relevance, scores = [0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 0, 0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for metric in (ndcg, average_precision, reciprocal_rank, auc):
        with pytest.warns(
            UserWarning, match="^2 of 3 queries have no relevant sample.*no_positives='skip' leaves them"
        ):
            assert np.isnan(metric(relevance, scores, qid=qid))
        with pytest.warns(UserWarning, match="^the list has no relevant sample"):
            assert np.isnan(metric([0, 0], [1.0, 2.0]))
        # Whoever asks for it knows; one by one they show.
        assert np.isnan(metric(relevance, scores, qid=qid, no_positives="nan"))
        assert np.isnan(per_query(metric.__name__, relevance, scores, qid)[1]).sum() == 2


def test_gains_of_the_ranker():
    relevance, scores = [0, 2, 1, 3], [4.0, 3.0, 2.0, 1.0]
    assert ndcg(relevance, scores) == ndcg(relevance, scores, gains="exponential")
