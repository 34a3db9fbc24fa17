"""The two baselines: what they minimise, against literal formulas and brute force."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankhinge import RankSVC, ranking_loss, structured_hinge
from rankhinge.latent import Bags, LatentRankSVC, LatentStructuralSVC, LatentSVC
from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.problem import latent_problem
from rankhinge.losses import get_loss
from rankhinge.papers.machines.assignment import greedy_ranking
from rankhinge.papers.machines.latent_svc import _less_confusing
from rankhinge.papers.machines.structural import StructuralObjective
from rankhinge.solvers.certificate import HEURISTIC, MESSAGES
from tests import brute_force, fuzz, judge, judge_machines
from tests.latent.helpers import bags_and_labels, multilabel_bags
from tests.svm.helpers import binary


def ap_loss(above, n_negatives):
    ranks = np.arange(1, above.size + 1) + above
    return brute_force.AP.of_ranks(ranks.tolist(), n_negatives)


def best_of_all(positives, negatives, unit):
    """``max Δ + Σ c s`` over all orders of the bags and all candidates: the judge."""
    scores = [*positives, *negatives]
    P, N = len(positives), len(negatives)
    relevant = np.arange(P + N) < P
    best = -np.inf
    for order in itertools.permutations(range(P + N)):
        ranked = relevant[list(order)]
        delta = brute_force.AP.of_ranks([rank for rank, r in enumerate(ranked, 1) if r], N)
        total = delta
        for place, k in enumerate(order):
            above = int(np.sum(ranked[:place] != relevant[k]))
            below = (N if relevant[k] else P) - above
            c = (below - above) / unit
            total += max(c * s for s in scores[k])
        best = max(best, total)
    return best


POSITIVES, NEGATIVES = [[7.0, 6.0], [0.0, 7.0]], [[4.0, 8.0], [1.0, 9.0]]


def test_counter_example():
    """Table 3 of Behl et al.: the best ranking has 22.583, the greedy search stays at 18."""
    assert best_of_all(POSITIVES, NEGATIVES, 1.0) == pytest.approx(22 + 7 / 12)
    found = greedy_ranking(
        (np.max(POSITIVES, axis=1), np.min(POSITIVES, axis=1)),
        (np.max(NEGATIVES, axis=1), np.min(NEGATIVES, axis=1)),
        ap_loss,
        scale=1.0,
    )
    assert found.value == 18.0
    assert found.interleaving_ranks.tolist() == [3, 3]
    assert found.loss == 0.0


@pytest.mark.parametrize("seed", range(30))
def test_greedy_is_a_ranking_and_exact_for_single_candidates(seed):
    rng = np.random.default_rng(seed)
    P, N = rng.integers(1, 4, size=2)
    single = rng.normal(size=P), rng.normal(size=N)
    found = greedy_ranking((single[0], single[0]), (single[1], single[1]), ap_loss)
    exact = structured_hinge(np.concatenate(single), np.arange(P + N) < P)
    assert found.value - single[0].mean() + single[1].mean() == pytest.approx(exact, abs=1e-12)
    positives, negatives = rng.normal(size=(P, 3)), rng.normal(size=(N, 3))
    found = greedy_ranking(
        (positives.max(axis=1), positives.min(axis=1)), (negatives.max(axis=1), negatives.min(axis=1)), ap_loss
    )
    assert found.value <= best_of_all(positives, negatives, P * N) + 1e-12
    total = sum(max(c * s) for c, s in zip(found.positive_coefficients, positives, strict=True))
    total += sum(max(c * s) for c, s in zip(found.negative_coefficients, negatives, strict=True))
    assert found.value == pytest.approx(found.loss + total)


@pytest.mark.parametrize("seed", range(30))
def test_proposition_1(seed):
    """True loss ≤ bound of latent AP-SVM ≤ bound of latent SSVM, whatever the model."""
    rng = np.random.default_rng(seed)
    bags, y = bags_and_labels(n=5, d=3, seed=seed, sizes=(1, 4), share=2)
    w = rng.normal(size=3) * 10 ** rng.uniform(-2, 1)
    scores = [bag @ w for bag in bags]
    best = np.array([s.max() for s in scores])
    relevant = y.astype(bool)
    latent_ap = structured_hinge(best, relevant)
    positives = [scores[b] for b in np.flatnonzero(relevant)]
    negatives = [scores[b] for b in np.flatnonzero(~relevant)]
    latent_ssvm = best_of_all(positives, negatives, len(positives) * len(negatives))
    latent_ssvm += best[~relevant].mean() - best[relevant].mean()
    assert ranking_loss(best, relevant) <= latent_ap + 1e-12
    assert latent_ap <= latent_ssvm + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_structural_planes(seed):
    bags, y = bags_and_labels(n=6, d=3, seed=seed, sizes=(1, 4), share=2)
    rng = np.random.default_rng(seed)
    problem = latent_problem(bags, y.astype(bool), None, np.full(6, -1))
    choice = bags.offsets[:-1] + rng.integers(0, bags.sizes)
    features = CandidateFeatures(bags.matrix, None)
    objective = StructuralObjective(features, [problem.seen_among(None, problem.fixed(choice))], get_loss("ap"))
    w, v = rng.normal(size=(2, 3, 1))
    k = np.zeros(1, int)
    handle = objective.score(w, k)
    found = objective.evaluate(handle)
    u = found.coefficients.values[0]
    assert found.value[0] == pytest.approx(found.loss[0] + u @ handle.values[0], abs=1e-12)
    # A bound on the exact J of any other point.
    scores = [bag @ v[:, 0] for bag in bags]
    positives, negatives = ([scores[b] for b in np.flatnonzero(y == label)] for label in (1, 0))
    exact = best_of_all(positives, negatives, len(positives) * len(negatives))
    exact -= np.mean([scores[b][choice[b] - bags.offsets[b]] for b in np.flatnonzero(y)])
    exact += np.mean([s.max() for s in negatives])
    assert found.loss[0] + objective.adjoint(found.coefficients)[:, 0] @ v[:, 0] <= exact + 1e-12


def test_structural_of_single_candidates_is_rank_svc():
    X, y = binary(n=24)
    plain = RankSVC(C=10.0, tol=1e-6, bound="convex").fit(X, y)
    structural = LatentStructuralSVC(C=10.0, tol=1e-6).fit(Bags(X), y)
    assert structural.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    np.testing.assert_allclose(structural.coef_, plain.coef_, rtol=0.02, atol=1e-3)
    assert (structural.status_, structural.gap_ <= 1e-6) == ("converged", True)


@pytest.mark.parametrize("solver", ["cutting-plane", "bundle"])
def test_structural_fits(solver):
    bags, y = bags_and_labels(n=18, sizes=(1, 4), shift=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LatentStructuralSVC(C=5.0, solver=solver, max_outer=5).fit(bags, y)
    values = model.outer_history_["objective"]
    assert np.all(np.diff(values) <= 0)
    assert model.score(bags, y) > 0.5
    assert model.predict_candidates(bags).shape == (18,)


@pytest.mark.parametrize("seed", [702410, 701352])
def test_a_heuristic_proves_nothing(seed):
    """Fits whose greedy search has settled far below the true objective, 6.61 instead of 4.0e-5 for one."""
    case = fuzz.draw(seed)
    assert case.kind == "structural"
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = fuzz.fitted(case, case.X)
    problem = judge.problems(model, case.X, case.y, bags=case.facts["offsets"])[0]
    assert float(judge_machines.structural_objective(problem, model.coef_[0])) > 1.2 * model.objective_
    assert (model.status_, model.gap_) == ("heuristic", np.inf)
    assert np.all(model.history_["gap"] == np.inf)
    assert HEURISTIC in MESSAGES


def test_a_heuristic_that_has_not_settled_warns():
    bags, y = bags_and_labels(n=12, sizes=(2, 4))
    with pytest.warns(ConvergenceWarning, match="ended as max_iter, and nothing is proved"):
        model = LatentStructuralSVC(C=100.0, max_iter=1, max_outer=1).fit(bags, y)
    assert (model.status_, model.gap_) == ("max_iter", np.inf)


def test_known_candidates_make_the_search_exact():
    bags, y = bags_and_labels(n=12, sizes=(2, 4))
    model = LatentStructuralSVC().fit(bags, y, chosen=np.zeros(12, int))
    first = np.stack([bag[0] for bag in bags])
    assert (model.status_, model.gap_ <= 1e-3) == ("converged", True)
    assert model.objective_ == pytest.approx(RankSVC(bound="convex").fit(first, y).objective_, rel=2e-3)


def hinge_objective(w, b, bags, y, C, weight):
    scores = np.array([(bag @ w).max() + b for bag in bags])
    sign = 2 * y - 1
    weights = np.where(y == 1, weight, 1.0)
    return 0.5 * (w @ w + b**2) + C * np.mean(weights * np.maximum(0, 1 - sign * scores))


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_latent_svm_minimises_its_objective(shrinking, intercept):
    bags, y = bags_and_labels(n=60, sizes=(2, 9), shift=3.0)
    model = LatentSVC(C=20.0, positive_weight=2.5, fit_intercept=intercept, shrinking=shrinking, tol=1e-5).fit(bags, y)
    expected = hinge_objective(model.coef_[0], model.intercept_[0], bags, y, 20.0, 2.5)
    assert model.objective_ == pytest.approx(expected, rel=1e-10)
    assert np.all(np.diff(model.outer_history_["objective"]) <= 0)
    assert model.gap_ <= 1e-5
    assert (model.intercept_[0] != 0) == intercept
    assert model.score(bags, y) > 0.7
    assert not intercept or np.mean(model.predict(bags) == y) > 0.7


def test_latent_svm_of_single_candidates_is_a_linear_svm():
    from sklearn.svm import LinearSVC

    X, y = binary()
    latent = LatentSVC(C=10.0, tol=1e-7).fit(Bags(X), y)
    linear = LinearSVC(loss="hinge", C=10.0 / len(y), tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(latent.coef_, linear.coef_, atol=2e-3)
    np.testing.assert_allclose(latent.intercept_, linear.intercept_, atol=2e-3)


@pytest.mark.parametrize("percent", [0, 10, 50, 90, 100])
def test_ignored_candidates(percent):
    """The highest of the negatives whose candidate is not known, but for the lowest of each bag."""
    bags, y = bags_and_labels(n=20, sizes=(1, 6))
    known = np.where(np.arange(20) % 4 == 0, 0, -1)
    problem = latent_problem(bags, y == 1, None, known)
    scores = np.random.default_rng(0).normal(size=bags.n_candidates)
    free = [b for b in range(20) if y[b] == 0 and known[b] < 0 and bags.sizes[b] > 1]
    parts = [range(*bags.offsets[b : b + 2]) for b in free]
    places = sorted((place for part in parts for place in part), key=lambda place: -scores[place])
    highest = set(places[: len(places) * percent // 100])
    ignored = highest - {min(part, key=lambda place: scores[place]) for part in parts}
    assert set(np.flatnonzero(~_less_confusing(problem, scores, percent))) == ignored
    assert (len(ignored) > 0) == (percent > 0)
    assert (len(ignored) < len(highest)) == (percent > 50)


def test_latent_svm_without_the_most_confusing():
    bags, y = bags_and_labels(n=60, sizes=(4, 9), shift=3.0)
    # Some negatives contain what makes a bag positive: a label that is missing.
    rng = np.random.default_rng(1)
    X = bags.matrix.copy()
    for b in np.flatnonzero(y == 0)[:5]:
        X[bags.offsets[b] + rng.integers(4), 0] += 4.0
    spoilt = Bags(X, offsets=bags.offsets)
    model = LatentSVC(C=20.0, ignore_confusing=5.0, max_outer=20).fit(spoilt, y)
    assert model.status_ in ("converged", "max_outer")
    again = LatentSVC(C=20.0, ignore_confusing=5.0, max_outer=20).fit(spoilt, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert model.objective_ < LatentSVC(C=20.0).fit(spoilt, y).objective_


def test_labels():
    bags, Y = multilabel_bags(n=50)
    for options in ({}, {"ignore_confusing": 5.0}):
        model = LatentSVC(C=10.0, **options).fit(bags, Y)
        assert model.coef_.shape == (3, 4)
        assert model.predict(bags).shape == Y.shape
    warm = LatentSVC(C=10.0, warm_start=True).fit(bags, Y)
    before = warm.objective_
    assert np.all(warm.fit(bags, Y).objective_ <= before * (1 + 1e-9))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"positive_weight": 0.0}, "positive_weight"), ({"ignore_confusing": 101.0}, "ignore_confusing")],
)
def test_refuses(options, message):
    bags, y = bags_and_labels()
    with pytest.raises(ValueError, match=message):
        LatentSVC(**options).fit(bags, y)


def test_a_label_whose_labelled_bags_are_negative():
    bags, Y = multilabel_bags()
    mask = np.ones(Y.shape, bool)
    mask[:, 1] = Y[:, 1] == 0
    with pytest.warns(UserWarning, match=r"labels \[1\]"):
        model = LatentSVC().fit(bags, Y, mask=mask)
    assert not model.predict(bags)[:, 1].any()


def test_structural_needs_a_ranking():
    bags, y = bags_and_labels()
    with pytest.raises(ValueError, match="use LatentSVC"):
        LatentStructuralSVC(loss="zero-one").fit(bags, y)


@pytest.mark.parametrize("machine", [LatentSVC(fit_intercept=False), LatentRankSVC()])
def test_features_times_two_are_four_times_the_C(machine):
    # A power of two: not a bit of the way differs.
    bags, y = bags_and_labels()
    scaled = Bags(2.0 * bags.candidates(), offsets=bags.offsets)
    one, other = (clone(machine).set_params(C=C).fit(some, y) for some, C in ((bags, 4.0), (scaled, 1.0)))
    np.testing.assert_allclose(2.0 * other.coef_, one.coef_, rtol=1e-9)
    assert 4.0 * other.objective_ == pytest.approx(one.objective_, rel=1e-9)
    assert other.n_passes_ == one.n_passes_
