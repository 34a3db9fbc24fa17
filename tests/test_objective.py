"""The objective: handles, lists, and the decomposition of graded labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankhinge import metrics, structured_hinge
from rankhinge.features import feature_map
from rankhinge.losses import DCG, get_loss
from rankhinge.objective import RankingObjective, spans
from rankhinge.papers.solvers.lists import ListBlocks
from rankhinge.problems import graded_lists, one_list
from rankhinge.solvers.bundle import Bundle

NDCG = get_loss("ndcg")


def ndcg_of(relevance, scores, gains="linear"):
    return metrics.ndcg(relevance, scores, gains=gains)


@st.composite
def graded_list(draw):
    """Labels with at least two values, ascending gains from 0, and a ranking without ties."""
    labels = np.array(draw(st.lists(st.integers(0, 4), min_size=2, max_size=9).filter(lambda y: len(set(y)) > 1)))
    steps = draw(st.lists(st.floats(0.01, 10), min_size=4, max_size=4))
    gains = np.concatenate([[0.0], np.cumsum(steps)])
    scores = np.array(draw(st.permutations(range(labels.size))), dtype=float)
    return labels, gains, scores


@given(graded_list())
@settings(max_examples=200)
def test_graded_loss_is_the_weighted_loss_of_its_levels(case):
    """``Σ ω = 1`` and ``1 - NDCG(R) = Σ ω_ℓ (1 - NDCG_ℓ(R))`` for every ranking R."""
    labels, gains, scores = case
    lists = graded_lists(labels, np.zeros(labels.size, np.int64), NDCG, gains)
    levels = [(level.relevant, level.weights[0]) for level in lists.levels]
    # Levels that all samples reach are left out: their loss is 0. Their weight is the rest.
    rest = 1 - sum(weight for _, weight in levels)
    assert rest >= -1e-12
    if labels.min() == 0:
        assert rest == pytest.approx(0, abs=1e-12)
    assert all(weight > 0 for _, weight in levels)
    ordered = lists.gather(scores)
    decomposed = sum(weight * (1 - ndcg_of(relevant.astype(int), ordered)) for relevant, weight in levels)
    assert 1 - ndcg_of(labels, scores, gains) == pytest.approx(decomposed, abs=1e-12)


@given(graded_list())
@settings(max_examples=100)
def test_hinge_bounds_the_graded_loss(case):
    labels, gains, scores = case
    lists = graded_lists(labels, np.zeros(labels.size, np.int64), NDCG, gains)
    for scale in (0.0, 0.01, 1.0):
        s = scale * scores
        objective = RankingObjective(feature_map(s[:, None]), [lists], NDCG)
        value = objective.evaluate(objective.score(np.ones((1, 1)), np.array([0]))).value[0]
        assert value >= 1 - metrics.ndcg(labels, s, gains=gains, ties="worst") - 1e-12


def test_weights_follow_the_discount_of_the_loss():
    """Any loss of the DCG family: ``ω_ℓ ∝ (γ_ℓ - γ_{ℓ-1}) Σ_{i ≤ P_ℓ} D(i)``."""
    labels, gains = np.array([2, 0, 1, 0, 2]), np.array([0.0, 1.0, 4.0])
    loss = DCG(lambda ranks: 1.0 / ranks)
    lists = graded_lists(labels, np.zeros(5, np.int64), loss, gains)
    raw = np.array([1.0 * (1 + 1 / 2 + 1 / 3), 3.0 * (1 + 1 / 2)])
    np.testing.assert_allclose([level.weights[0] for level in lists.levels], raw / raw.sum(), rtol=1e-12)


def test_given_weights_are_shared_among_the_levels_that_a_list_reaches():
    labels, codes = np.array([0, 1, 2, 0, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    lists = graded_lists(labels, codes, get_loss("ap"), np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0]))
    np.testing.assert_allclose(lists.levels[0].weights, [0.125, 0.5])
    # The second list does not reach it.
    np.testing.assert_allclose(lists.levels[1].weights, [0.375])


def test_a_level_concerns_only_lists_that_have_it():
    """One list with many labels does not make the others pay."""
    rng = np.random.default_rng(0)
    codes, labels = rng.permutation(np.repeat(np.arange(20), 6)), rng.integers(3, size=120)
    labels[codes == 7] = [0, 3, 5, 6, 8, 9]
    weights = rng.random(20)
    lists = graded_lists(labels, codes, NDCG, np.arange(10.0), list_weights=weights)
    n_grades = [np.unique(labels[codes == q]).size for q in range(20)]
    assert sum(level.relevant.size for level in lists.levels) == 6 * (sum(n_grades) - 20)
    assert [level.weights.size for level in lists.levels] == [sum(n > rank for n in n_grades) for rank in range(1, 6)]
    assert lists.weights[0] == pytest.approx(weights[7] / weights[np.array(n_grades) > 1].sum())
    assert labels[lists.index[:6]].tolist() == labels[codes == 7].tolist()


def test_lists_are_gathered_from_rows_in_any_order():
    labels = np.array([1, 0, 0, 1, 1, 0, 1])
    codes = np.array([2, 0, 2, 0, 1, 3, 1])
    lists = graded_lists(labels, codes, NDCG, np.array([0.0, 1.0]))
    assert lists.n_lists == 2
    assert lists.n_unusable == 2
    assert lists.offsets.tolist() == [0, 2, 4]
    assert lists.index.tolist() == [1, 3, 0, 2]
    assert lists.levels[0].relevant.tolist() == [False, True, True, False]
    np.testing.assert_allclose(lists.weights, [0.5, 0.5])


def test_list_weights_sum_to_one_and_zeros_are_left_out():
    labels, codes = np.array([0, 1] * 3 + [1, 1]), np.repeat([0, 1, 2, 3], 2)
    lists = graded_lists(labels, codes, NDCG, np.array([0.0, 1.0]), list_weights=np.array([3.0, 0.0, 1.0, 9.0]))
    np.testing.assert_allclose(lists.weights, [0.75, 0.25])
    assert (lists.n_lists, lists.n_unusable) == (2, 1)
    np.testing.assert_allclose(lists.levels[0].weights, [0.75, 0.25])


def test_nothing_usable():
    for labels in (np.zeros(4, int), np.ones(4, int)):
        lists = graded_lists(labels, np.array([0, 0, 1, 1]), NDCG, np.array([0.0, 1.0])[: labels.max() + 1])
        assert (lists.n_lists, lists.n_unusable, lists.levels) == (0, 2, ())


@pytest.mark.parametrize("loss", ["ndcg", "ap", "zero-one"])
@pytest.mark.parametrize("weights", [None, np.arange(40) % 4], ids=["own", "given"])
def test_lists_have_the_levels_of_their_own_labels(loss, weights):
    """Thresholds between two labels of a list are one problem: few levels, whatever the grades of all lists are."""
    rng = np.random.default_rng(0)
    codes, labels = np.repeat(np.arange(12), 5), rng.integers(41, size=60)
    labels[:5] = [0, 3, 3, 40, 0]
    gains, scores = np.sort(rng.random(41)), rng.normal(size=60)
    gains[0] = 0.0
    loss = get_loss(loss)
    lists = graded_lists(labels, codes, loss, gains, weights)
    assert len(lists.levels) <= 5
    found = RankingObjective(feature_map(np.zeros((60, 1))), [lists], loss).hinge(0, scores, None)[0]
    total = 0.0
    for rows in codes == np.arange(12)[:, None]:
        own = labels[rows]
        thresholds = np.arange(1, own.max() + 1)
        omega = np.ones(own.max()) if weights is None else weights[: own.max()]
        if weights is None and loss.is_graded:
            best = [loss.table(7)[1 : 1 + np.count_nonzero(own >= level)].sum() for level in thresholds]
            omega = np.diff(gains)[: own.max()] * best
        for level, weight in zip(thresholds, omega / omega.sum(), strict=True):
            if not loss.is_ranking or not (own >= level).all():
                total += weight * structured_hinge(scores[rows], own >= level, loss) / 12
    assert found == pytest.approx(total, rel=1e-12)


def problem(loss="ndcg", seed=0):
    """Three problems over the same features: two of several graded lists, and one masked list."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 3))
    codes = rng.permutation(np.repeat([0, 1, 2], 8))
    gains = np.array([0.0, 1.0, 3.0])
    grades = [rng.permutation(np.arange(24) % 3) for _ in range(2)]
    many = [graded_lists(y, codes, get_loss(loss), gains) for y in grades]
    mask = rng.random(24) < 0.7
    relevant = rng.permutation(np.arange(24) < 9)
    objective = RankingObjective(feature_map(X), [*many, one_list(relevant, mask)], get_loss(loss))
    return X, objective, (codes, grades, relevant, mask)


def hinge_by_hand(objective, k, scores, data, loss):
    codes, grades, relevant, mask = data
    if k == 2:
        return structured_hinge(scores[mask], relevant[mask], loss)
    lists = objective.problems[k]
    total = 0.0
    for place, level in enumerate(lists.levels, 1):
        for q, weight in enumerate(level.weights):
            mine = codes == q
            reached = grades[k][mine] >= place
            if reached.any() and not reached.all():
                total += weight * structured_hinge(scores[mine], reached, loss)
    return total


@pytest.mark.parametrize("loss", ["ndcg", "ap"])
def test_evaluate(loss):
    X, objective, data = problem(loss)
    W = np.random.default_rng(1).normal(size=(3, 3))
    scores = objective.score(W, np.arange(3))
    found = objective.evaluate(scores)
    for k in range(3):
        assert found.value[k] == pytest.approx(hinge_by_hand(objective, k, X @ W[:, k], data, loss), rel=1e-12)
        # value = loss + Σ u s
        dot = found.coefficients.values[k] @ scores.values[k]
        assert found.value[k] == pytest.approx(found.loss[k] + dot, rel=1e-12)
    # Samples under the mask have no part.
    np.testing.assert_array_equal(found.coefficients.values[2][~data[3]], 0.0)
    without = objective.evaluate(scores, coefficients=False)
    np.testing.assert_array_equal(without.value, found.value)
    assert without.coefficients is None


def test_planes_support_the_hinge():
    """``J(v) ≥ Δ + (Xᵀu) · v`` for every v, with equality where the plane was cut."""
    _, objective, _ = problem()
    rng = np.random.default_rng(2)
    W = rng.normal(size=(3, 3))
    cut = objective.evaluate(objective.score(W, np.arange(3)))
    slopes = objective.adjoint(cut.coefficients)
    np.testing.assert_allclose(cut.loss + np.sum(slopes * W, axis=0), cut.value, rtol=1e-12)
    for _ in range(30):
        V = rng.normal(size=(3, 3)) * rng.exponential()
        value = objective.evaluate(objective.score(V, np.arange(3)), coefficients=False).value
        assert np.all(value >= cut.loss + np.sum(slopes * V, axis=0) - 1e-12)


def test_problems_in_any_order_and_repeated():
    _, objective, _ = problem()
    W = np.random.default_rng(3).normal(size=(3, 3))
    one_by_one = [objective.evaluate(objective.score(W[:, [k]], np.array([k]))).value[0] for k in range(3)]
    places = np.array([2, 0, 2, 1])
    found = objective.evaluate(objective.score(W[:, places], places))
    np.testing.assert_allclose(found.value, np.array(one_by_one)[places], rtol=1e-12)


def test_handles():
    """Everything that a solver does with handles, against the same with arrays."""
    X, objective, _ = problem()
    rng = np.random.default_rng(4)
    problems = np.array([0, 2])
    W = rng.normal(size=(3, 4))
    scores = objective.score(W, np.repeat(problems, 2))
    moved = objective.along(scores, objective.score(W[::-1], np.repeat(problems, 2)), np.array([0.0, 1.0, -2.0, 0.5]))
    directions = W + W[::-1] * [0.0, 1.0, -2.0, 0.5]
    np.testing.assert_allclose(moved.values, (X @ directions).T, rtol=1e-10, atol=1e-12)
    assert moved.problems.tolist() == scores.problems.tolist()

    single = objective.select(scores, np.array([0, 2]))
    assert single.problems.tolist() == [0, 2]
    u = objective.evaluate(single).coefficients
    np.testing.assert_allclose(objective.dots(u, single), np.sum(u.values * single.values, axis=1), rtol=1e-12)
    np.testing.assert_allclose(objective.adjoint(u), X.T @ u.values.T, rtol=1e-12)
    joined = objective.join([u, objective.select(u, np.array([1]))])
    assert joined.problems.tolist() == [0, 2, 2]
    np.testing.assert_array_equal(objective.zeros(problems).values, 0.0)

    parts = objective.split(u, 3, rng)
    assert parts.problems.tolist() == [0] * 6 + [2] * 6
    np.testing.assert_allclose(parts.values.reshape(2, 6, -1).sum(axis=1), u.values)
    assert np.count_nonzero(parts.values) == np.count_nonzero(u.values)


def test_random_parts_go_by_round_and_block():
    """A block's parts depend on no other block; rounds and blocks differ; every part is as frequent as the others."""
    n, block = 200_000, spans._BLOCK_ROWS
    whole = spans.random_parts(7, 5, n)
    for n_first in (0, 1, block, block + 1, 3 * block):
        np.testing.assert_array_equal(spans.random_parts(7, 5, n_first), whole[:n_first])
    assert (whole[:block] != whole[block : 2 * block]).any()
    assert (spans.random_parts(8, 5, block) != whole[:block]).any()
    np.testing.assert_allclose(np.bincount(whole, minlength=5) / n, 0.2, atol=0.005)
    assert set(np.unique(spans.random_parts(2**63 - 1, 300, 50_000))) == set(range(300))


@pytest.mark.parametrize("capacity", [0, 3, 20])
def test_spans(capacity):
    """What a solver does with a span, against the same with arrays; a span grows beyond its capacity."""
    X, objective, _ = problem()
    rng = np.random.default_rng(5)
    problems = np.array([0, 2])
    W = rng.normal(size=(2, 3, 1))
    span = objective.span(objective.score(W[:, :, 0].T, problems), capacity)
    for r in (3, 1, 2):
        others = rng.normal(size=(2, 3, r))
        span = objective.widen(span, objective.score(np.hstack(list(others)), np.repeat(problems, r)))
        W = np.concatenate([W, others], axis=2)
        _check_span(objective, span, X, W, problems, rng)
        oldest = rng.normal(size=(2, 2))
        span = objective.narrow(span, oldest)
        W = np.concatenate([W[:, :, :2] @ oldest[:, :, None], W[:, :, 2:]], axis=2)
        _check_span(objective, span, X, W, problems, rng)
    _check_span(objective, objective.select(span, np.array([1])), X, W[1:], problems[1:], rng)


def _check_span(objective, span, X, W, problems, rng):
    coordinates = rng.normal(size=(len(W), W.shape[2]))
    points = np.einsum("mdt,mt->dm", W, coordinates)
    mixed = objective.mix(span, coordinates)
    assert mixed.problems.tolist() == problems.tolist()
    np.testing.assert_allclose(mixed.values, (X @ points).T, rtol=1e-10, atol=1e-10)
    u = objective.evaluate(mixed).coefficients
    np.testing.assert_allclose(
        objective.slopes(u, span), np.einsum("mn,nd,mdt->mt", u.values, X, W), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("loss", ["ndcg", "ap"])
def test_blocks_add_up(loss):
    """``J = Σ π_q J_q``: the planes of the lists, weighted, are the plane of the problem."""
    _, objective, _ = problem(loss)
    w = np.random.default_rng(5).normal(size=3)
    whole = objective.evaluate(objective.score(np.tile(w[:, None], 3), np.arange(3)))
    slopes = objective.adjoint(whole.coefficients)
    for k in range(3):
        weights = ListBlocks(objective).block_weights(k)
        assert weights.sum() == pytest.approx(1.0)
        planes = [ListBlocks(objective).block_plane(w, k, block) for block in range(objective.problems[k].n_lists)]
        for value in (lambda b, g, value: b + g @ w, lambda b, g, value: value):
            total = sum(weight * value(*plane) for weight, plane in zip(weights, planes))
            assert total == pytest.approx(whole.value[k], rel=1e-12)
        np.testing.assert_allclose(
            sum(weight * g for weight, (_, g, _) in zip(weights, planes)), slopes[:, k], atol=1e-12
        )


def test_one_list_with_a_full_mask_needs_no_index():
    relevant = np.array([True, False, True])
    assert one_list(relevant, np.ones(3, bool)).index is None
    masked = one_list(relevant, np.array([True, True, False]))
    assert masked.index.tolist() == [0, 1]
    assert masked.levels[0].relevant.tolist() == [True, False]


@pytest.mark.parametrize("size", [1, 50, 20_000])
def test_gather_and_scatter(size):
    """Short and long lists of some of the samples, in any order, go different ways."""
    rng = np.random.default_rng(0)
    index = rng.permutation(2 * size)[:size]
    lists = replace(one_list(rng.random(size) < 0.5), index=index)
    scores, u = rng.normal(size=2 * size), np.full(2 * size, np.nan)
    np.testing.assert_array_equal(lists.gather(scores), scores[index])
    lists.scatter(scores[index], u)
    np.testing.assert_array_equal(u, np.where(np.isin(np.arange(2 * size), index), scores, 0.0))


def test_levels_of_weight_0_make_no_list_usable():
    labels, codes = np.array([1, 2, 0, 1]), np.array([0, 0, 1, 1])
    lists = graded_lists(labels, codes, get_loss("ap"), np.arange(3.0), np.array([1.0, 0.0]))
    assert (lists.n_lists, lists.n_unusable) == (1, 1)
    assert lists.index.tolist() == [2, 3]


def test_huge_list_weights():
    labels, codes = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    lists = graded_lists(labels, codes, get_loss("ap"), np.arange(2.0), None, np.array([1e308, 1e308]))
    np.testing.assert_array_equal(lists.weights, [0.5, 0.5])


def test_lists_in_order_need_no_index():
    labels = np.array([0, 1, 0, 1])
    assert graded_lists(labels, np.array([0, 0, 1, 1]), get_loss("ap"), np.arange(2.0)).index is None
    assert graded_lists(labels, np.array([0, 1, 1, 0]), get_loss("ap"), np.arange(2.0)).index is not None
    assert graded_lists(np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1]), get_loss("ap"), np.arange(2.0)).index.size == 2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["ap", "ndcg", "zero-one"])
def test_blocks_add_up_to_the_whole(loss, weighted):
    """``J = Σ π J_q``, whatever part of a list reaches a level."""
    rng = np.random.default_rng(3)
    X, labels, codes = rng.normal(size=(30, 3)), rng.integers(0, 3, size=30), np.repeat(np.arange(6), 5)
    labels[:5] += 1 - labels[:5].min()
    labels = np.minimum(labels, 3)
    weights = np.array([1.0, 10.0, 0.3, 2.0, 5.0, 1.0]) if weighted else None
    level_weights = None if loss == "ndcg" else np.ones(3)
    lists = graded_lists(labels, codes, get_loss(loss), np.arange(4.0), level_weights, weights)
    assert (np.ptp(lists.weights) > 0.1) == weighted
    objective = RankingObjective(feature_map(X), [lists], get_loss(loss))
    w = rng.normal(size=3)
    planes = [ListBlocks(objective).block_plane(w, 0, q) for q in range(lists.n_lists)]
    whole = objective.evaluate(objective.score(w[:, None], np.array([0])))
    for value in (lambda b, g, value: b + g @ w, lambda b, g, value: value):
        total = sum(weight * value(*plane) for weight, plane in zip(lists.weights, planes, strict=True))
        assert total == pytest.approx(whole.value[0], rel=1e-12)


def test_what_a_pass_costs():
    X = sparse.random(50, 400, density=0.02, format="csr", random_state=0)
    lists = [one_list(np.arange(50) % 7 == 0)]
    for made, width in ((X, 8.0), (X.tocsc(), 8.0), (X.toarray(), 400.0), (np.asfortranarray(X.toarray()), 400.0)):
        assert RankingObjective(feature_map(made), lists, get_loss("ap")).width == width


def test_wide_sparse_features_are_not_worth_many_directions():
    X = sparse.random(300, 5000, density=0.004, format="csr", random_state=0)
    lists = [one_list(np.arange(300) % 7 == 0)]
    narrow = Bundle(RankingObjective(feature_map(X), lists, get_loss("ap")), np.ones(1))
    wide = Bundle(RankingObjective(feature_map(X.toarray()), lists, get_loss("ap")), np.ones(1))
    assert (narrow.n_directions, narrow.n_cuts, narrow.n_parts, narrow.n_turns) == (4, 2, 0, 6)
    assert (wide.n_directions, wide.n_parts, wide.n_turns) == (48, 8, 20)
    assert narrow._opens
    assert not wide._opens
    # Both reach the same minimum, with a proof.
    for solver in (narrow, wide):
        assert solver.run().gap[0] <= solver.tol
    assert narrow.result().objective[0] == pytest.approx(wide.result().objective[0], rel=2e-3)
