"""The judge is judged: by brute force, by a finite difference, and by fits that were spoilt."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, losses, ranking_loss
from rankhinge.latent import LatentRankSVC, LatentStructuralSVC, LatentSVC
from tests import brute_force, fuzz_more, judge, judge_losses, judge_machines, judge_tight
from tests.latent.helpers import bags_and_labels
from tests.losses import cuts
from tests.svm.helpers import binary, graded, hinge_of_grades, multiclass, multilabel

BY_THE_BOOK = {
    "ap": brute_force.AP,
    "ndcg": brute_force.NDCG,
    "rr": brute_force.RR,
    "auc": brute_force.AUC,
    "rbp": brute_force.RBP,
}


@pytest.mark.parametrize("loss", BY_THE_BOOK)
@pytest.mark.parametrize("seed", range(20))
def test_hinge_is_brute_force(loss, seed):
    rng = np.random.default_rng(seed)
    n_positives, n_negatives = rng.integers(1, 5, 2)
    relevant = rng.permutation(np.arange(n_positives + n_negatives) < n_positives)
    scores = np.round(rng.normal(size=relevant.size) * 10.0 ** rng.uniform(-2, 2), int(rng.integers(0, 3)))
    value, u = judge.hinge(scores.astype(judge.WIDE), relevant, loss)
    assert float(value) == pytest.approx(brute_force.hinge(scores, relevant, BY_THE_BOOK[loss]), abs=1e-13)
    # u is a subgradient: the plane at these scores touches J here and is below it everywhere.
    for other in rng.normal(size=(5, scores.size)):
        elsewhere = brute_force.hinge(other, relevant, BY_THE_BOOK[loss])
        assert float(value + u @ (other - scores)) <= elsewhere + 1e-12


def test_tight_bound_lies_between_loss_and_hinge():
    rng = np.random.default_rng(0)
    relevant = np.arange(12) < 4
    scores = rng.normal(size=12).astype(judge.WIDE)
    ranks = np.sort(np.argsort(np.argsort(-scores))[relevant]) + 1
    J, H = judge.hinge(scores, relevant, "ap")[0], judge.reference(scores, relevant)
    assert brute_force.AP.of_ranks(ranks, 8) <= J - H <= J


@pytest.mark.parametrize("gains", ["exponential", "linear"])
def test_graded_lists_by_the_book(gains):
    X, y, qid = graded()
    weight = {0: 1.0, 1: 0.0, 2: 2.0, 3: 1.0, 4: 0.5, 5: 1.0}
    w = np.random.default_rng(1).normal(size=3)
    levels = judge.lists_of(y, qid, "ndcg", gains, [weight[q] for q in qid])
    problem = judge.Problem(X, levels, "ndcg", 1.0, np.zeros(3))
    table = [0, 1, 3] if gains == "exponential" else [0, 1, 2]
    expected = 0.5 * w @ w + hinge_of_grades(X @ w, y, qid, table, weight)
    assert problem.objective(w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", judge.LOSSES)
def test_ordinary_fits_pass(loss):
    X, y = binary()
    first = RankSVC(loss, C=10.0, bound="convex").fit(X, y)
    other = RankSVC(loss, C=10.0, bound="convex", solver="cutting-plane").fit(sparse.csr_array(X), y)
    figures = judge.check(first, X, y, others=[other.coef_])
    assert figures[0]["judged"] == pytest.approx(first.objective_, rel=1e-12)


def test_all_machines_pass():
    X, y = binary()
    judge.check(RankSVC(bound="tight").fit(X, y), X, y)
    judge.check(RankSVCCV(Cs=[1.0, 10.0], cv=2, bound="convex").fit(X, y), X, y)
    X, y = multiclass()
    judge.check(RankSVC(bound="convex").fit(X, y), X, y)
    X, y = multilabel()
    mask = np.random.default_rng(0).random(y.shape) < 0.8
    judge.check(RankSVC(bound="convex").fit(X, y, mask=mask), X, y, mask=mask)
    X, y, qid = graded()
    for bound in ("convex", "tight"):
        judge.check(SVMRanker(bound=bound).fit(X, y, qid=qid), X, y, qid=qid)
    bags, y = bags_and_labels()
    judge.check(LatentRankSVC(C=10.0).fit(bags, y), bags.candidates(), y, bags=bags.offsets)


@pytest.mark.parametrize(
    ("name", "factor", "message"),
    [
        ("objective_", 1 - 1e-9, "not that of the coefficients"),
        ("dual_objective_", 1.002, "above the objective"),
        ("gap_", 0.5, "smaller than that between"),
        ("gap_", 1e6, "above tol"),
    ],
)
def test_what_is_spoilt_fails(name, factor, message):
    X, y = binary()
    model = RankSVC(C=10.0, bound="convex").fit(X, y)
    setattr(model, name, getattr(model, name) * factor)
    if name == "dual_objective_":
        model.gap_ = 0.0
    with pytest.raises(judge.Violation, match=message):
        judge.check(model, X, y)


def test_spoilt_lower_bound_of_bags_fails():
    bags, y = bags_and_labels()
    model = LatentRankSVC(C=10.0).fit(bags, y)
    model.dual_objective_ *= 1.01
    with pytest.raises(judge.Violation, match="inner objective"):
        judge.check(model, bags.candidates(), y, bags=bags.offsets)


def relabelled(model):
    """A fit that had not converged, as one that has: what a defect of the certificate would look like."""
    assert model.status_ != "converged"
    model.gap_, model.status_ = 0.0, "converged"
    return model


@pytest.mark.parametrize("machine", [LatentRankSVC, LatentSVC])
@pytest.mark.parametrize("bound", ["as it was", "the objective"])
def test_relabelled_bags_fail(machine, bound):
    bags, y = bags_and_labels()
    with pytest.warns(ConvergenceWarning):
        model = machine(C=10.0, max_iter=2, max_outer=2).fit(bags, y)
    judge.check(model, bags.candidates(), y, bags=bags.offsets)
    if bound == "the objective":
        model.dual_objective_ = model.objective_
    message = "the gap is smaller" if bound == "as it was" else "above the inner objective"
    with pytest.raises(judge.Violation, match=message):
        judge.check(relabelled(model), bags.candidates(), y, bags=bags.offsets)


def test_relabelled_trimmed_and_structural_machines_fail():
    bags, y = bags_and_labels()
    options = {"ignore_confusing": 20.0, "random_state": 0, "max_iter": 2, "max_outer": 2}
    with pytest.warns(ConvergenceWarning):
        model = LatentSVC(C=10.0, **options).fit(bags, y)
    judge_machines.check_trimmed(model, bags.candidates(), y, bags.offsets)
    with pytest.raises(judge.Violation, match="smaller than that"):
        judge_machines.check_trimmed(relabelled(model), bags.candidates(), y, bags.offsets)
    bags, y = bags_and_labels(n=8)
    model = LatentStructuralSVC(C=10.0).fit(bags, y)
    model.gap_ = 1e-3
    with pytest.raises(judge.Violation, match="heuristic"):
        judge_machines.check_structural(model, bags.candidates(), y, bags.offsets)
    with pytest.raises(judge.Violation, match="heuristic"):
        judge_machines.check_structural(relabelled(model), bags.candidates(), y, bags.offsets)


@pytest.mark.parametrize("machine", ["svc", "lists"])
def test_a_relabelled_tight_bound_fails(machine):
    """Its bound is the objective itself: nothing but a lower point of the problem above shows what is wrong."""
    X, y, *qid = binary() if machine == "svc" else graded()
    given = {"qid": qid[0]} if qid else {}
    model = (SVMRanker if qid else RankSVC)(bound="tight", reach=10.0, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, **given)
    judge.check(model, X, y, **given)
    model.dual_objective_ = model.objective_
    with pytest.raises(judge.Violation, match="objective at another point"):
        judge.check(relabelled(model), X, y, **given)


@pytest.mark.parametrize("ties", [False, True])
def test_the_problem_above_the_tight_bound(ties):
    """It touches the tight bound, is above it everywhere, and above all tangents of H, whatever ties count."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (20, 2)).astype(float) if ties else rng.normal(size=(20, 2))
    relevant, w = np.arange(20) % 3 == 0, np.array([1.0, 0.0])
    problem = judge.Problem(X, (judge.Level(np.arange(20), relevant, judge.WIDE(1)),), "ap", 3.0, np.ones(2), True)
    convex = judge_tight.above(problem, w)
    assert convex.objective(w) == pytest.approx(problem.objective(w), rel=1e-15)
    assert bool(convex.ties) == ties
    P, N = X[relevant], X[~relevant]
    for _ in range(20):
        v = 3 * rng.normal(size=2)
        assert convex.objective(v) >= problem.objective(v)
        rows = convex.wide_rows @ v.astype(judge.WIDE)
        J = judge.hinge(rows, relevant, "ap")[0]
        excess, share = (N @ w)[:, None] - (P @ w)[None, :], rng.random((len(N), len(P)))
        r = 2 / excess.size * np.where(excess == 0, share, excess > 0)
        tangent = float(np.sum(r * ((N @ v)[:, None] - (P @ v)[None, :])))
        value = 0.5 * np.sum((v - 1) ** 2) + 3.0 * (float(J) - tangent)
        assert value <= convex.objective(v) + 1e-12
        if not ties:
            assert value == pytest.approx(convex.objective(v), rel=1e-12)
    # Its slope is that of its values.
    values, slope = convex.parts(convex.rows @ w)
    for _ in range(5):
        v = rng.normal(size=2)
        assert convex.parts(convex.rows @ v)[0] >= values + slope @ (convex.rows @ (v - w)) - 1e-12


def test_own_descent_finds_the_minimum():
    X, y = binary()
    model = RankSVC(C=10.0, bound="convex", tol=1e-6).fit(X, y)
    problem = judge.problems(model, X, y)[0]
    found = min(problem.objective(point) for point in judge.own_points(problem, np.zeros(4)))
    assert model.dual_objective_ <= found <= 1.01 * model.objective_


CUTS = [("ndcg", 3), ("ap", 2), ("precision", 2), ("recall", 3), ("f1", 4), ("hit", 1), ("r-precision", None)]


@pytest.mark.parametrize(("kind", "k"), CUTS)
@pytest.mark.parametrize("seed", range(12))
def test_hinge_with_a_cut_is_brute_force(kind, k, seed):
    rng = np.random.default_rng(seed)
    n_positives, n_negatives = rng.integers(1, 5, 2)
    relevant = rng.permutation(np.arange(n_positives + n_negatives) < n_positives)
    scores = np.round(rng.normal(size=relevant.size) * 10.0 ** rng.uniform(-2, 2), int(rng.integers(0, 3)))
    loss = kind if k is None else f"{kind}@{k}"
    value, u = judge.hinge(scores.astype(judge.WIDE), relevant, loss)
    by_the_book = cuts.judge(kind, k)
    assert float(value) == pytest.approx(brute_force.hinge(scores, relevant, by_the_book), abs=1e-13)
    for other in rng.normal(size=(5, scores.size)):
        assert float(value + u @ (other - scores)) <= brute_force.hinge(other, relevant, by_the_book) + 1e-12


@pytest.mark.parametrize("loss", [*BY_THE_BOOK, *fuzz_more.PUSHES])
@pytest.mark.parametrize("seed", range(5))
def test_two_ways_to_the_hinge(loss, seed):
    rng = np.random.default_rng(seed)
    scores, relevant = rng.normal(size=20).astype(judge.WIDE), rng.permutation(np.arange(20) < 6)
    value, u = judge.hinge(scores, relevant, loss)
    again, other = judge_losses.hinge_of_parts(scores, relevant, loss)
    assert float(value) == pytest.approx(float(again), abs=1e-15)
    np.testing.assert_allclose(u.astype(float), other.astype(float), atol=1e-15)


@pytest.mark.parametrize("loss", [*fuzz_more.PUSHES, "ndcg@20%", "ap@30%", "r-precision"])
def test_parts_add_up_to_the_loss(loss):
    rng = np.random.default_rng(0)
    for _ in range(20):
        relevant = np.append(rng.random(12) < 0.4, [True, False])
        positives = np.flatnonzero(relevant)
        above = positives - np.arange(positives.size)
        table = judge_losses.parts(loss, positives.size, int((~relevant).sum()))
        expected = ranking_loss(-np.arange(14.0), relevant, losses.get_loss(loss))
        assert float(table[np.arange(positives.size), above].sum()) == pytest.approx(expected, abs=1e-12)


def test_the_other_machines_pass():
    X, y = binary()
    assert judge_machines.check_approximate(ApproximateRankSVC(C=10.0).fit(X, y), X, y)
    bags, y = bags_and_labels()
    X = bags.candidates()
    for positive_weight, intercept in ((1.0, True), (3.0, False)):
        model = LatentSVC(C=10.0, positive_weight=positive_weight, fit_intercept=intercept).fit(bags, y)
        judge.check(model, X, y, bags=bags.offsets)
        judge_machines.check_falls(model)
    model = LatentSVC(C=10.0, ignore_confusing=20.0, random_state=0).fit(bags, y)
    judge_machines.check_trimmed(model, X, y, bags.offsets)
    bags, y = bags_and_labels(n=8)
    model = LatentStructuralSVC(C=10.0).fit(bags, y)
    judge_machines.check_structural(model, bags.candidates(), y, bags.offsets)


@pytest.mark.parametrize(
    ("name", "factor"), [("objective_", 1 + 1e-6), ("dual_objective_", 1.01), ("coef_", 0.5), ("n_easy_", 2)]
)
def test_a_spoilt_approximation_fails(name, factor):
    X, y = binary()
    model = ApproximateRankSVC(C=10.0).fit(X, y)
    setattr(model, name, getattr(model, name) * factor)
    with pytest.raises(judge.Violation):
        judge_machines.check_approximate(model, X, y)


@pytest.mark.parametrize(("name", "factor"), [("objective_", 1.5), ("dual_objective_", 1.5)])
def test_a_spoilt_structural_machine_fails(name, factor):
    bags, y = bags_and_labels(n=8)
    model = LatentStructuralSVC(C=10.0).fit(bags, y)
    setattr(model, name, getattr(model, name) * factor)
    with pytest.raises(judge.Violation):
        judge_machines.check_structural(model, bags.candidates(), y, bags.offsets)


def test_spoilt_latent_classifiers_fail():
    bags, y = bags_and_labels()
    model = LatentSVC(C=10.0, ignore_confusing=20.0, random_state=0).fit(bags, y)
    model.dual_objective_ = 100.0
    with pytest.raises(judge.Violation, match="inner objective"):
        judge_machines.check_trimmed(model, bags.candidates(), y, bags.offsets)
    model.objective_ = 100.0
    with pytest.raises(judge.Violation, match="all candidates"):
        judge_machines.check_trimmed(model, bags.candidates(), y, bags.offsets)
    model.outer_history_["objective"] = np.array([1.0, 2.0])
    with pytest.raises(judge.Violation, match="rises"):
        judge_machines.check_falls(model)


def test_the_structural_hinge_by_enumeration():
    """All orders of four bags, and both candidates of each."""
    rng = np.random.default_rng(0)
    relevant = np.array([True, False, True, False])
    for _ in range(5):
        low, high = np.sort(rng.normal(size=(2, 4)), axis=0).astype(judge.WIDE)
        best = -np.inf
        for order in itertools.permutations(range(4)):
            for pick in itertools.product((0, 1), repeat=4):
                s = np.where(pick, high, low)
                rank = np.argsort(order)
                F = sum(
                    (1 if rank[p] < rank[n] else -1) * (s[p] - s[n]) / 4
                    for p in np.flatnonzero(relevant)
                    for n in np.flatnonzero(~relevant)
                )
                best = max(best, float(F) + ranking_loss(-rank, relevant, "ap"))
        assert float(judge_machines.structural_hinge(low, high, relevant, "ap")) == pytest.approx(best, abs=1e-12)
