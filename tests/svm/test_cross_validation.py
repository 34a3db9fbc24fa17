"""C from a grid, by folds that are drawn from a seed and keep queries together."""

from __future__ import annotations

import tracemalloc
from functools import partial
from itertools import count, pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedKFold

from rankhinge import QueryKFold, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, metrics
from rankhinge.losses import get_loss
from rankhinge.problems.targets import encode_targets
from rankhinge.svm import folds as folds_module
from rankhinge.svm import lockstep
from rankhinge.svm import path as path_module
from rankhinge.svm.following import overfits
from rankhinge.svm.quality import lists_metric
from tests.svm.helpers import binary, graded, multiclass, multilabel

CS = [0.1, 10.0, 1000.0]


def test_scores_are_those_of_separate_fits():
    X, y = binary(noise=2.0)
    folds = PredefinedSplit(np.arange(60) % 3)
    # At a tight tolerance both are at the optimum, and rank alike.
    model = RankSVCCV(Cs=CS, cv=folds, tol=1e-9, bound="convex").fit(X, y)
    expected = [
        [
            RankSVC(C=C, tol=1e-9, bound="convex").fit(X[train], y[train]).score(X[test], y[test])
            for train, test in folds.split()
        ]
        for C in CS
    ]
    np.testing.assert_allclose(model.scores_, expected, atol=1e-9)
    best = int(np.argmax(np.mean(expected, axis=1)))
    assert CS[best] == model.C_
    final = RankSVC(C=model.C_, tol=1e-9, bound="convex").fit(X, y)
    np.testing.assert_allclose(model.coef_, final.coef_, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, final.intercept_, atol=1e-9)


def test_ranker_scores_are_those_of_separate_fits():
    X, y, qid = graded(n_queries=9)
    model = SVMRankerCV(Cs=CS, cv=3, tol=1e-9, random_state=5, bound="convex").fit(X, y, qid=qid)
    for fold, (train, test) in enumerate(QueryKFold(3, shuffle=True, random_state=5).split(X, groups=qid)):
        assert not set(qid[test]) & set(qid[train])
        for place, C in enumerate(CS):
            fitted = SVMRanker(C=C, bound="convex", tol=1e-9).fit(X[train], y[train], qid=qid[train])
            assert model.scores_[place, fold] == pytest.approx(fitted.score(X[test], y[test], qid=qid[test]), abs=1e-9)
    assert model.C_ in CS
    assert model.gap_ <= 1e-9


def test_five_folds_by_default():
    X, y, qid = graded(n_queries=9)
    model = SVMRankerCV(Cs=CS, random_state=0, bound="convex").fit(X, y, qid=qid)
    assert model.cv is None
    np.testing.assert_array_equal(
        model.scores_, SVMRankerCV(Cs=CS, cv=5, random_state=0, bound="convex").fit(X, y, qid=qid).scores_
    )


def grid(bound, values):
    """The strengths to try, by the name that they have for this bound."""
    return {"Cs" if bound == "convex" else "reaches": values}


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_whether_folds_run_side_by_side_does_not_show(monkeypatch, bound):
    X, y = multiclass()
    options = {"cv": 3, "bound": bound, "tol": 1e-9, "random_state": 0} | grid(bound, 3)
    together = RankSVCCV(**options).fit(X, y)
    monkeypatch.setattr(lockstep, "MEMORY", lockstep.MEMORY._replace(entries=2 * len(y), part_of_X=0.0))
    by_twos = RankSVCCV(**options).fit(X, y)
    np.testing.assert_allclose(together.scores_, by_twos.scores_, atol=1e-9)


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_folds_do_not_copy_a_mapped_X(tmp_path, bound):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 1200)).astype(np.float32)
    y = X[:, :5].sum(axis=1) + rng.normal(size=6000) > 3
    np.save(tmp_path / "X.npy", X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = grid(bound, [1.0, 10.0]) | ({} if bound == "convex" else {"scales": 1, "init_Cs": [0.1]})
    model = RankSVCCV(cv=3, bound=bound, tol=0.1, random_state=0, **options)
    # What is compiled or loaded by the first fit of a process takes memory, too.
    model.fit(X[:300, :20], y[:300])
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A training part in its own memory would be two thirds of X.
    assert peak < X.nbytes / 2


@pytest.mark.parametrize("estimator", [RankSVCCV, SVMRankerCV])
def test_deterministic_for_a_seed(estimator):
    X, y = binary(noise=2.0)
    options = {"bound": "convex", "loss": "ap", "Cs": CS, "cv": 3}
    models = [estimator(random_state=seed, **options).fit(X, y) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(models[0].scores_, models[1].scores_)
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert not np.array_equal(models[0].scores_, models[2].scores_)


@pytest.mark.parametrize("data", [multiclass, multilabel])
def test_each_problem_has_its_own_C(data):
    X, y = data()
    model = RankSVCCV(Cs=CS, cv=2, random_state=0, bound="convex").fit(X, y)
    assert model.C_.shape == (3,)
    assert set(model.C_) <= set(CS)
    assert model.scores_.shape == (3, 3, 2)
    best = np.array(CS)[np.argmax(model.scores_.mean(axis=2), axis=1)]
    np.testing.assert_array_equal(model.C_, best)
    np.testing.assert_allclose(model.objective_, RankSVC(C=model.C_, bound="convex").fit(X, y).objective_, rtol=2e-3)


def test_number_of_values():
    X, y = binary()
    model = RankSVCCV(Cs=3, cv=2, random_state=0, bound="convex").fit(X, y)
    np.testing.assert_allclose(model.Cs_, [1e-1, 1e2, 1e5])
    assert np.all(np.diff(RankSVCCV(Cs=[10.0, 1.0], cv=2, bound="convex").fit(X, y).Cs_) > 0)


def test_groups_stay_together():
    X, y = binary()
    groups = np.arange(60) // 10
    folds = [(train, test) for train, test in GroupKFold(3).split(X, y, groups)]
    by_splitter = RankSVCCV(Cs=CS, cv=GroupKFold(3), bound="convex").fit(X, y, groups=groups)
    by_folds = RankSVCCV(Cs=CS, cv=folds, bound="convex").fit(X, y)
    np.testing.assert_array_equal(by_splitter.scores_, by_folds.scores_)


def test_sorted_labels_are_shuffled():
    """A file sorted by class: folds cut in order would have one class only."""
    X, Y = multilabel(n=60, n_labels=2)
    order = np.argsort(Y[:, 0], kind="stable")
    model = RankSVCCV(Cs=[1.0], cv=5, random_state=0, bound="convex").fit(X[order], Y[order])
    assert np.isfinite(model.scores_).all()


def test_folds_that_cannot_be():
    X, y = binary()
    positive = np.flatnonzero(y)
    with pytest.raises(ValueError, match="no fold has both a positive and a negative in its training part"):
        RankSVCCV(cv=[(positive[:5], np.arange(60))], bound="convex").fit(X, y)
    with pytest.raises(ValueError, match="fold 1 has rows more than once"):
        RankSVCCV(cv=[(np.arange(30), np.arange(30, 60)), (np.arange(60) // 2, np.arange(30, 60))], bound="convex").fit(
            X, y
        )


def test_folds_of_other_rows():
    X, y, qid = graded(n_queries=6)
    for cv, message in (
        (
            [(np.arange(8), [len(y)])],
            f"fold 0 of cv has rows that are not there, of {len(y)}: index ",
        ),
        (PredefinedSplit(qid[1:] % 2), f"has an entry for {len(y) - 1} rows, but there are {len(y)}$"),
    ):
        with pytest.raises(ValueError, match=message):
            SVMRankerCV(cv=cv, bound="convex").fit(X, y, qid=qid)


def test_mask():
    X, Y = multilabel()
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    models = [
        RankSVCCV(Cs=CS, cv=2, random_state=0, bound="convex").fit(X, labels, mask=mask)
        for labels in (Y, np.where(mask, Y, 1 - Y))
    ]
    np.testing.assert_array_equal(models[0].scores_, models[1].scores_)
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_weights_of_levels_that_a_fold_lacks():
    """The only list with the highest grade is in one test part: the other parts still have their weights."""
    X, y, qid = graded(n_queries=4, n_grades=3)
    y = np.where((y == 2) & (qid > 0), 1, y)
    model = SVMRankerCV(loss="ap", level_weights=[1.0, 5.0], Cs=[1.0], cv=4, random_state=0, bound="convex").fit(
        X, y, qid=qid
    )
    assert np.isfinite(model.scores_).all()


def test_query_weight_is_cut_with_the_rows():
    X, y, qid = graded()
    by_row, by_query = (
        SVMRankerCV(Cs=CS, cv=3, random_state=0, bound="convex").fit(X, y, qid=qid, query_weight=weight)
        for weight in (1.0 + qid, {q: 1.0 + q for q in range(6)})
    )
    np.testing.assert_allclose(by_row.scores_, by_query.scores_, atol=1e-12)
    np.testing.assert_allclose(by_row.coef_, by_query.coef_, atol=1e-12)


def test_scoring_by_another_metric():
    X, y = binary(noise=2.0)
    folds = PredefinedSplit(np.arange(60) % 3)
    train, test = next(iter(folds.split()))
    by_name = RankSVCCV(Cs=CS, cv=folds, tol=1e-9, scoring="precision@5", bound="convex").fit(X, y)
    fitted = RankSVC(C=CS[1], tol=1e-9, bound="convex").fit(X[train], y[train])
    expected = metrics.precision_at_k(y[test] == 1, fitted.decision_function(X[test]), k=5)
    assert by_name.scores_[1, 0] == pytest.approx(expected)
    by_function = RankSVCCV(
        Cs=CS, cv=folds, tol=1e-9, scoring=partial(metrics.precision_at_k, k=5), bound="convex"
    ).fit(X, y)
    np.testing.assert_array_equal(by_name.scores_, by_function.scores_)
    assert not np.allclose(by_name.scores_, RankSVCCV(Cs=CS, cv=folds, tol=1e-9, bound="convex").fit(X, y).scores_)


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_scoring_of_queries(bound):
    X, y, qid = graded(n_queries=9)
    options = {"cv": 3, "bound": bound, "random_state": 5} | grid(bound, 2)
    by_name = SVMRankerCV(scoring="ndcg@3", **options).fit(X, y, qid=qid)
    linear = [SVMRankerCV(scoring=name, gains="linear", **options).fit(X, y, qid=qid) for name in ("ndcg@3", "NDCG@3")]
    assert linear[0].best_score_ == linear[1].best_score_ != by_name.best_score_
    function = partial(metrics.ndcg, k=3, gains="exponential", no_positives="skip")
    by_function = SVMRankerCV(scoring=function, **options).fit(X, y, qid=qid)
    np.testing.assert_array_equal(by_name.scores_, by_function.scores_)
    assert not np.allclose(by_name.scores_, SVMRankerCV(**options).fit(X, y, qid=qid).scores_, equal_nan=True)


@pytest.mark.parametrize("scoring", ["kappa", "auc@3", "ndcg@", "ndcg@0", "ndcg@x"])
def test_unknown_scoring(scoring):
    X, y = binary()
    with pytest.raises(ValueError, match=rf"scoring='{scoring}' is not known: "):
        RankSVCCV(scoring=scoring, bound="convex").fit(X, y)
    with pytest.raises(ValueError, match="is not known"):
        SVMRankerCV(scoring=scoring, bound="convex").fit(X, y)


@pytest.mark.parametrize("scoring", ["precision", "precision_at_k"])
def test_scoring_that_needs_a_depth(scoring):
    X, y = binary()
    with pytest.raises(ValueError, match=rf"scoring='{scoring}' needs a depth: 'precision@5' for instance"):
        RankSVCCV(scoring=scoring, bound="convex").fit(X, y)


def test_a_function_that_takes_something_else():
    X, y, qid = graded(n_queries=12)
    with pytest.raises(ValueError, match=r"cannot be called with \(labels, scores, qid\): .*'qid'"):
        SVMRankerCV(scoring=lambda labels, scores: 0.0, bound="convex").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"cannot be called with \(labels, scores\): .*'k'"):
        RankSVCCV(scoring=metrics.precision_at_k, bound="convex").fit(X, y > 0)


def test_a_metric_of_the_users_sees_lists_with_a_relevant_sample_only():
    X, y, qid = graded(n_queries=12)
    y[qid % 4 == 0] = 0
    model = SVMRankerCV(Cs=[1.0, 10.0], cv=2, scoring=metrics.ndcg, random_state=0, bound="convex").fit(X, y, qid=qid)
    assert np.isfinite(model.scores_).all()
    named = SVMRankerCV(Cs=[1.0, 10.0], cv=2, scoring="ndcg", random_state=0, bound="convex").fit(X, y, qid=qid)
    np.testing.assert_allclose(model.scores_, named.scores_)


def test_scores_below_0_are_no_reason_to_end_a_path():
    assert not overfits(np.array([[-3.0], [-2.0], [-1.0]]), 0.02)[0]
    assert overfits(np.array([[-1.0], [-2.0], [-3.0]]), 0.02)[0]
    assert overfits(np.array([[0.9], [0.8], [0.7]]), 0.02)[0]


def test_a_single_start_is_tried_once():
    X, y = binary(n=120)
    model = RankSVCCV(bound="tight", init=np.ones(4), cv=2).fit(X, y)
    assert np.isfinite(model.scores_).all()
    assert model.init_scores_.shape == (1, 2)


@pytest.mark.parametrize("hold", [pd.Series, list, np.asarray])
def test_weights_of_queries_in_any_container(hold):
    X, y, qid = graded(n_queries=10)
    weights = 1.0 + qid % 3
    by_row = SVMRankerCV(Cs=[1.0, 10.0], cv=2, random_state=0, bound="convex").fit(
        X, y, qid=qid, query_weight=hold(weights)
    )
    by_query = SVMRankerCV(Cs=[1.0, 10.0], cv=2, random_state=0, bound="convex")
    by_query.fit(X, y, qid=qid, query_weight={q: 1.0 + q % 3 for q in range(10)})
    np.testing.assert_array_equal(by_row.scores_, by_query.scores_)
    np.testing.assert_array_equal(by_row.coef_, by_query.coef_)


def test_of_equally_good_values_the_smallest_C_is_taken():
    X, y = binary()
    tied = RankSVCCV(Cs=CS, cv=2, scoring=lambda relevant, scores: 0.5, bound="convex").fit(X, y)
    assert CS[0] == tied.C_
    values = iter([0.5, 0.5, 0.5, 0.7, 0.6, 0.6])
    model = RankSVCCV(Cs=CS, cv=2, scoring=lambda relevant, scores: next(values), bound="convex").fit(X, y)
    np.testing.assert_allclose(model.scores_.mean(axis=1), [0.5, 0.6, 0.6])
    assert CS[1] == model.C_


def test_labels_that_no_fold_can_judge_have_the_median_C_of_the_others():
    X, Y = multilabel(n_labels=4)
    Y[:, 1] = np.arange(len(Y)) == 7
    best = set()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model = RankSVCCV(
            Cs=CS, cv=3, random_state=0, scoring=lambda *_, rng=rng: 0.5 + 0.004 * rng.normal(), bound="convex"
        )
        with pytest.warns(UserWarning, match=r"labels \[1\] have no fold"):
            model.fit(X, Y)
        assert np.isnan(model.scores_[1]).any(axis=0).all()
        places = [int(np.argmax(model.scores_[k].mean(axis=1))) for k in (0, 2, 3)]
        assert model.C_.tolist() == [CS[place] for place in (places[0], sorted(places)[1], *places[1:])]
        best.add(sorted(places)[1])
    assert len(best) > 1


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_labels_that_no_fold_can_judge_are_named(bound):
    X, y = binary()
    for labels in (np.array([10, 20, 3]), np.array(["ham", "spam", "a pity"])):
        y[5] = 2
        with (
            pytest.warns(UserWarning, match="least populated class"),
            pytest.warns(UserWarning, match=rf"labels \[{labels.tolist()[2]!r}\] have no fold"),
        ):
            RankSVCCV(cv=3, bound=bound, random_state=0, **grid(bound, 2)).fit(X, labels[y])


def test_a_single_positive_cannot_be_in_both_parts():
    X, _ = binary(n=40)
    for y in (np.arange(40) == 3, np.arange(40) != 3):
        with (
            pytest.warns(UserWarning, match="least populated class"),
            pytest.raises(ValueError, match=r"in its training part and in its test part, .* with a single positive"),
        ):
            RankSVCCV(Cs=2, cv=2, random_state=0, bound="convex").fit(X, y)


@pytest.mark.parametrize("size", [1e308, 1e-320])
def test_weights_of_queries_of_any_size(size):
    X, y, qid = graded(n_queries=12)
    models = [
        SVMRankerCV(Cs=2, cv=3, random_state=0, bound="convex").fit(X, y, qid=qid, query_weight=weight)
        for weight in (None, np.full(y.size, size))
    ]
    np.testing.assert_allclose(models[1].scores_, models[0].scores_, rtol=1e-12)


def test_the_folds_of_a_label_are_given_up_together():
    """One fold falls, but their mean does not: both go on, with other models."""
    X, y = binary(noise=2.0)
    seen = {0: [], 1: []}

    def scoring(relevant, scores):
        fold = int(len(seen[0]) > len(seen[1]))
        seen[fold].append(scores)
        return 0.5 + (0.1 if fold else -0.1) * len(seen[fold])

    RankSVCCV(Cs=np.logspace(-1, 2, 5), cv=2, scoring=scoring, random_state=0, bound="convex", tol=1e-5).fit(X, y)
    for scores in seen.values():
        assert len(scores) == 5
        assert not any(np.array_equal(before, after) for before, after in pairwise(scores))


def test_folds_that_run_apart_choose_among_what_all_of_them_have_seen(monkeypatch):
    X, y = binary(n=40, d=12, noise=3.0)
    monkeypatch.setattr(lockstep, "MEMORY", lockstep.MEMORY._replace(part_of_X=0.0, entries=2 * y.size))
    given_up = 0
    for seed in range(12):
        model = RankSVCCV(cv=4, random_state=seed, bound="convex").fit(X, y)
        halves = model.scores_[:, :2].mean(axis=1), model.scores_[:, 2:].mean(axis=1)
        lasts = [_last_point(half) for half in halves]
        given_up += min(lasts) < max(lasts)
        assert np.searchsorted(model.Cs_, model.C_) <= min(lasts)
    assert given_up > 0


def _last_point(means):
    """Where a path with these mean scores is given up, by the book."""
    for place in range(2, means.size):
        if np.all(means[place - 1 : place + 1] < 0.98 * means[: place + 1].max()):
            return place
    return means.size - 1


@pytest.mark.parametrize("data", [binary, multiclass])
def test_the_binary_machine_is_judged_as_score_judges_it(data):
    """Accuracy depends on the threshold, which belongs to the training part."""
    X, y = data(n=120)
    folds = list(StratifiedKFold(4).split(X, y))
    Cs = [0.1, 1.0, 10.0, 100.0]
    model = RankSVCCV("zero-one", Cs, cv=folds, tol=1e-6, bound="convex").fit(X, y)
    for fold, (train, test) in enumerate(folds):
        for place, C in enumerate(Cs):
            alone = RankSVC("zero-one", C, tol=1e-6, bound="convex").fit(X[train], y[train])
            mean = np.mean(model.scores_[..., place, fold])
            assert mean == pytest.approx(alone.score(X[test], y[test]), abs=1e-2)


def test_folds_with_many_features_run_apart(monkeypatch):
    """Solvers keep dozens of weights: beside a sparse X these, not the scores, are what takes memory."""
    X, y = multiclass(n=60)
    rng = np.random.default_rng(0)
    wide = sparse.csr_array(np.column_stack([X, (rng.random((60, 200)) < 0.02).astype(float)]))
    sizes = []

    class Seen(folds_module.Batch):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            sizes.append(self.problems.size)

    monkeypatch.setattr(folds_module, "Batch", Seen)
    options = {"bound": "convex", "Cs": 3, "cv": 3, "tol": 1e-9, "random_state": 0}
    together = RankSVCCV(**options).fit(wide, y)
    assert sizes == [9]
    monkeypatch.setattr(lockstep, "MEMORY", lockstep.MEMORY._replace(entries=16 * 204 * 2))
    apart = RankSVCCV(**options).fit(wide, y)
    assert sizes[1:] == [2, 2, 2, 2, 1]
    np.testing.assert_allclose(together.scores_, apart.scores_, atol=1e-9)
    # A dense X takes so much memory itself that a part of it goes to all of them.
    RankSVCCV(**options).fit(np.tile(wide.toarray(), (5, 1)), np.tile(y, 5))
    assert sizes[6:] == [9]


def test_classes_share_the_samples_of_a_fold():
    targets = encode_targets(multiclass()[1])
    for parts in (
        list(RankSVCCV(bound="convex")._parts(targets, 0, np.arange(60), np.arange(60, 90))),
        targets.lists(),
    ):
        indices = [getattr(part, "lists", part).index for part in parts]
        assert len(indices) == 3
        assert all(index is indices[0] for index in indices)
    Y, mask = multilabel()[1], np.ones((60, 3), bool)
    mask[:5, 1] = False
    indices = [lists.index for lists in encode_targets(Y, mask).lists()]
    assert [None if index is None else index.size for index in indices] == [None, 55, None]


def test_who_is_given_up_is_not_solved_any_more(monkeypatch):
    """Large C take by far the most passes: it is for them that a path is given up."""
    X, y = multiclass(n=120)
    solved, calls, make = [], count(), path_module.make_solver

    def noting(name, objective, C, **options):
        solved.append(objective.n_problems if options["problems"] is None else len(options["problems"]))
        return make(name, objective, C, **options)

    def scoring(relevant, scores):
        """Fold by fold, label by label: the first label's scores fall from point to point."""
        call = next(calls)
        return 0.5 ** (call // 6) if call % 3 == 0 else 1.0

    monkeypatch.setattr(path_module, "make_solver", noting)
    RankSVCCV(Cs=6, cv=2, scoring=scoring, random_state=0, bound="convex").fit(X, y)
    assert solved == [6, 6, 6, 4, 4, 4]


@pytest.mark.parametrize(
    "scoring",
    [None, "ndcg@3", metrics.ndcg, metrics.make_query_scorer("ap")],
    ids=["own", "name", "function", "scorer"],
)
@pytest.mark.parametrize("loss", ["ndcg", "rbp", "ap"])
def test_folds_are_judged_by_the_weights_of_their_queries(loss, scoring):
    X, y, qid = graded(n_queries=12, n_grades=2)
    y[qid >= 6] = 1 - y[qid >= 6]
    options = {"bound": "convex", "loss": loss, "Cs": CS, "cv": 2, "scoring": scoring, "random_state": 0}
    weights = {q: (0.0 if q >= 6 else 1.0 + q) for q in range(12)}
    model = SVMRankerCV(**options).fit(X, y, qid=qid, query_weight=weights)
    # Queries of weight 0 might be anything.
    y[qid >= 6] = np.random.default_rng(0).permutation(y[qid >= 6])
    other = SVMRankerCV(**options).fit(X, y, qid=qid, query_weight=weights)
    np.testing.assert_allclose(model.scores_, other.scores_, rtol=1e-12)
    assert model.C_ == other.C_
    # The mean is weighted by them.
    own = (get_loss(loss), "linear", scoring)
    y[qid == 3] = 0
    y, values = y.astype(float), []
    for q in np.delete(np.arange(12), 3):
        values.append(lists_metric(*own, y[qid == q], qid[qid == q])(X[qid == q, 0]))
    expected = np.average(values, weights=1.0 + np.delete(np.arange(12), 3))
    assert lists_metric(*own, y, qid, 1.0 + qid)(X[:, 0]) == pytest.approx(expected, rel=1e-12)
