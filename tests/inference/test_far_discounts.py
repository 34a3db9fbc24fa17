"""Discounts beyond the first 2²⁰ ranks are computed: as if they had been tabulated, without a table of all ranks."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rankhinge.inference import core
from rankhinge.inference.callbacks import compile_loss, compile_tabulated
from rankhinge.inference.long_list import infer_long
from rankhinge.inference.spread import Count, Finish, ListPart, infer_spread, sample_stride
from rankhinge.losses import DCG, NDCG, get_loss
from rankhinge.losses.dcg import TABULATED
from tests.inference.test_spread import large_list

LOSSES = ("ndcg", "soft-ndcg@1500000", "rbp@0.999999")
# Few and many positives; more of them than there are ranks in the table.
SIZES = {
    "few": (TABULATED + 300_000, 300),
    "many": (2 * TABULATED, 50_000),
    "most": (TABULATED + 50_000, TABULATED + 20_000),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", LOSSES)
def test_as_tabulated(name, size):
    """J, Δ and nearly all of u: the last bit of a discount may decide between ranks that are equally good."""
    (n, n_positives), loss = SIZES[size], get_loss(name)
    for kind in ("overlapping", "constant", "offset"):
        scores, relevant = large_list(kind, n, n_positives)
        u, found, _ = infer_long(scores, relevant, compile_loss(loss, n))
        expected_u, expected, _ = infer_long(scores, relevant, compile_tabulated(loss, n))
        assert found.value == pytest.approx(expected.value, rel=1e-12, abs=1e-15)
        assert found.loss == pytest.approx(expected.loss, rel=1e-9)
        assert np.count_nonzero(np.abs(u - expected_u) > 1e-9 * np.abs(u).max()) <= n // 100_000


def test_from_the_same_length_on():
    """Where discounts begin to be computed nothing jumps, and a user's own discount is tabulated however long."""
    loss = NDCG()
    assert compile_loss(loss, TABULATED - 1).table.size >= TABULATED
    assert compile_loss(loss, TABULATED).table.size == TABULATED + 1
    own = DCG(lambda rank: 1.0 / np.log2(1.0 + rank))
    assert compile_loss(own, TABULATED + 10).table.size > TABULATED + 10
    for n in (TABULATED - 1, TABULATED, TABULATED + 1):
        scores, relevant = large_list("overlapping", n, 100)
        assert core.infer_one(scores, relevant, loss).value == pytest.approx(
            core.infer_one(scores, relevant, own).value, rel=1e-12
        )


class Subclass(NDCG):
    """Whose discount is none that is known."""

    @property
    def discount(self):
        return lambda ranks: 1.0 / ranks

    def __init__(self):
        DCG.__init__(self, lambda ranks: 1.0 / ranks)


def test_a_subclass_has_its_own_discount():
    n = TABULATED + 1000
    scores, relevant = large_list("overlapping", n, 50)
    expected = core.infer_one(scores, relevant, DCG(lambda ranks: 1.0 / ranks))
    assert core.infer_one(scores, relevant, Subclass()).value == pytest.approx(expected.value, rel=1e-12)


def inferred(positives, negatives, times, loss):
    """Inference on a list in which each negative stands so many times, by a part that holds it once."""
    distinct = np.concatenate([positives, negatives])
    relevant = np.arange(distinct.size) < positives.size
    u = np.full(distinct.size, np.nan)
    part, n_negatives = ListPart(distinct, relevant, u), times * negatives.size
    compiled = compile_loss(loss, positives.size + n_negatives)
    sample = negatives[:: sample_stride(negatives.size)]
    requests, reply, n_requests = infer_spread(compiled, [positives], n_negatives, sample, most_shipped=0), None, 0
    while True:
        try:
            request = requests.send(reply)
        except StopIteration as end:
            return end.value.loss + float((u * np.where(relevant, 1, times)) @ distinct), n_requests
        n_requests += 1
        if isinstance(request, Finish):
            reply = [part.finish(request, 0)]
        else:
            found = part.count(request) if isinstance(request, Count) else part.refine(request)
            reply = found._replace(counts=found.counts.astype(np.int64) * times)


def test_a_thousand_million_samples():
    """J as in memory where that can be had; of a list that no table of ranks would fit, in as many rounds."""
    rng, loss = np.random.default_rng(0), get_loss("ndcg")
    positives, negatives = rng.normal(size=200) + 1.0, rng.normal(size=20_000)
    scores = np.concatenate([positives, np.repeat(negatives, 60)])
    expected = core.infer_one(scores, np.arange(scores.size) < 200, loss).value
    assert inferred(positives, negatives, 60, loss)[0] == pytest.approx(expected, rel=1e-11)
    tracemalloc.start()
    value, n_requests = inferred(positives, negatives, 50_000, loss)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # With the same scores J hardly depends on how often the negatives stand there.
    assert value == pytest.approx(expected, rel=0.2)
    assert n_requests <= 8
    assert peak < 64_000_000
