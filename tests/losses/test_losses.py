"""The losses: formulas, suitability with its witnesses, refusals, copies."""

from __future__ import annotations

import copy
import functools
import math
import pickle

import numba
import numpy as np
import pytest
from sklearn.base import clone

from rankhinge import RankSVC, losses, most_violating_ranking, most_violating_rankings, structured_hinge
from rankhinge.losses import (
    AUC,
    DCG,
    NDCG,
    RBP,
    AveragePrecision,
    CustomLoss,
    RankingLoss,
    ReciprocalRank,
    SoftNDCG,
    ZeroOne,
    check_suitable,
    get_loss,
)
from tests import brute_force
from tests.inference.cases import (
    LOSS_CASES,
    SHAPES,
    large_list,
    reciprocal,
    reciprocal_partial_sum,
    reciprocal_step,
    steep_step,
)
from tests.inference.test_papers import chakrabarti

EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)


def hard_cut(k):
    """NDCG@k as usually defined: ranks beyond k do not count."""
    return DCG(lambda ranks: np.where(ranks <= k, 1 / np.log2(1.0 + ranks), 0.0))


# Formulas.


@EVERY_LOSS
@pytest.mark.parametrize(("n_positives", "n_negatives"), SHAPES)
def test_steps_add_up_to_the_loss(case, n_positives, n_negatives):
    """``Δ = −Σ_i Σ_{j ≤ a_i} t(j, i)`` is the loss by the book, for every pattern."""
    loss = get_loss(case.loss)
    for pattern in brute_force.patterns(n_positives, n_negatives)[::3]:
        ranks = brute_force.positive_ranks(pattern)
        counts_above = [rank - i for i, rank in enumerate(ranks, 1)]
        expected = case.judge.of_ranks(ranks, n_negatives)
        assert loss.from_counts(counts_above, n_negatives) == pytest.approx(expected, abs=1e-14)
        assert -1e-15 <= expected <= 1 + 1e-15


@EVERY_LOSS
def test_steps_are_differences_of_the_loss(case):
    """``t(j, i)``: what the loss changes by when the j-th negative moves from before positive i to after it."""
    n_positives, n_negatives = 4, 5
    for i in range(1, n_positives + 1):
        for j in range(1, n_negatives + 1):
            after, before = (case.judge.part(i, a, n_positives, n_negatives) for a in (j - 1, j))
            step = get_loss(case.loss).step(j, i, n_positives, n_negatives)
            assert step == pytest.approx(after - before, abs=1e-15)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("ap", lambda j, i: -i / (3 * (i + j) * (i + j - 1))),
        ("rr", lambda j, i: -1 / (j * (j + 1)) if i == 1 else 0),
        ("auc", lambda j, i: -1 / 12),
        (DCG([3.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]), lambda j, i: -1 / 6 if i + j <= 4 else 0),
        (
            RBP(0.5),
            lambda j, i: (0.5 ** (i + j - 1) - 0.5 ** (i + j - 2)) / 1.75,
        ),
    ],
)
def test_steps_by_hand(loss, expected):
    for i in (1, 2, 3):
        for j in (1, 2, 3, 4):
            assert get_loss(loss).step(j, i, 3, 4) == pytest.approx(expected(j, i), rel=1e-13)


def test_a_loss_near_zero_keeps_its_digits():
    """Δ is not computed as ``1 − …``: a small loss is as accurate, relatively, as a large one."""
    n_positives = 100_000
    # Only the worst positive has a negative above it: AP loses 1 / (P (P + 1)).
    scores = np.full(n_positives + 1, 1e6)
    scores[-2:] = [0.0, 1e-9]
    relevant = np.arange(scores.size) < n_positives
    loss = most_violating_ranking(scores, relevant, "ap").loss
    assert loss == pytest.approx(1 / n_positives / (n_positives + 1), rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_soft_ndcg_beyond_k(k):
    """Ranks beyond k do not count, those up to k do."""
    table = SoftNDCG(k).table(k + 4)
    assert (table[1 : k + 1] > 0).all()
    assert table[k + 1 : k + 4] == pytest.approx(0, abs=1e-16)
    assert table[1] == pytest.approx(1 - 1 / math.log2(k + 2), rel=1e-15)


# Names and parameters.


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ap", AveragePrecision),
        ("ndcg", NDCG),
        ("rr", ReciprocalRank),
        ("auc", AUC),
        ("rbp", RBP),
        ("zero-one", ZeroOne),
    ],
)
def test_names(name, kind):
    assert type(get_loss(name)) is kind
    assert get_loss(name).name == name
    own = kind()
    assert get_loss(own) is own


@pytest.mark.parametrize("name", ["aap", "auc@5", "", None])
def test_unknown_names(name):
    with pytest.raises(ValueError, match=rf"unknown loss {name!r}( \(did you mean .*\))?: choose one of"):
        get_loss(name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBP(0.0), "persistence is 0.0"),
        (lambda: RBP(1.0), "persistence is 1.0"),
        (lambda: RBP(float("nan")), "persistence is nan"),
        (lambda: SoftNDCG(0), "k is 0"),
        (lambda: SoftNDCG(-3), "k is -3"),
        (lambda: SoftNDCG(2.5), "k is 2.5"),
        (lambda: get_loss(["ap"]), "unknown loss"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("argument", ["step", "partial_sum"])
def test_a_custom_loss_needs_functions(argument):
    with pytest.raises(TypeError, match=f"{argument} must be a plain function of .* got 3"):
        CustomLoss(**{"step": steep_step, argument: 3})


@pytest.mark.parametrize(
    ("discount", "message"),
    [
        ([1.0, 0.5], "discount has 2 entries, but a list of 3 samples needs one for each rank"),
        ([1.0, np.nan, 0.0], r"discount\(2\) is nan: it must be finite and not negative"),
        ([1.0, 0.5, -0.5], r"discount\(3\) is -0.5: it must be finite and not negative"),
        ([0.0, 0.0, 0.0], r"discount\(1\) is 0.0: it must be positive"),
        (lambda ranks: 1.0 / (ranks - 1.0 + 1e-400), r"discount\(1\) is inf"),
        (lambda ranks: 0.0 * ranks, r"discount\(1\) is 0.0: it must be positive"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_wrong_discounts(discount, message):
    with pytest.raises(ValueError, match=message):
        most_violating_ranking([1.0, 0.0, 2.0], [1, 0, 0], DCG(discount))


@pytest.mark.parametrize("discount", [lambda ranks: 1.0, lambda ranks: [1.0, 0.5], np.ones((3, 3))])
def test_discounts_of_a_wrong_shape(discount):
    """One number for each rank is needed."""
    with pytest.raises(ValueError, match="discount"):
        most_violating_ranking([1.0, 0.0, 2.0], [1, 0, 0], DCG(discount))


# Suitability.

SUITABLE = {
    "ap": "ap",
    "ndcg": "ndcg",
    "rr": "rr",
    "auc": "auc",
    "rbp": "rbp",
    "rbp 0.3": RBP(0.3),
    "soft ndcg@1": SoftNDCG(1),
    "soft ndcg@5": SoftNDCG(5),
    "dcg 1 / rank": DCG(reciprocal),
    "dcg linear": DCG(np.maximum(0.0, 5.0 - np.arange(100))),
    "dcg constant": DCG(np.ones(100)),
    "custom": CustomLoss(steep_step),
    "custom with sums": CustomLoss(reciprocal_step, reciprocal_partial_sum),
}


@pytest.mark.parametrize("name", SUITABLE)
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 1), (1, 7), (7, 1), (2, 3), (5, 5), (9, 40), (40, 9)])
def test_suitable(name, n_positives, n_negatives):
    report = check_suitable(SUITABLE[name], n_positives, n_negatives)
    assert report
    assert report.suitable is True
    assert report.reason == ""
    assert report.witness == {}


@pytest.mark.parametrize("k", [*range(1, 40), 100, 1000, 100_000])
def test_soft_ndcg_is_accepted_at_every_length(k):
    """The discount is a difference of rounded numbers, and convex nevertheless."""
    for n_samples in (2, 3, k + 1, k + 2, 2 * k + 10):
        SoftNDCG(k).require_suitable(n_samples)


@pytest.mark.parametrize("persistence", [0.01, 0.5, 0.9, 0.999])
def test_rbp_is_accepted_at_every_length(persistence):
    """Also where ``ρ^(i − 1)`` falls below the smallest float."""
    for n_samples in (2, 100, 5000, 100_000):
        RBP(persistence).require_suitable(n_samples)


def check_witness(loss, judge, report, n_positives, n_negatives):
    """On the witness's list the better of two negatives wants a place below the worse one."""
    scores, relevant = report.witness["scores"], report.witness["relevant"]
    assert relevant.sum() == n_positives
    assert (~relevant).sum() == n_negatives
    j = report.witness["j"]
    negatives = scores[~relevant]
    assert (np.diff(negatives) <= 0).all()
    assert negatives[j - 1] > negatives[j]
    ranks, values = brute_force.best_ranks(scores, relevant, judge)
    assert (ranks[j - 1], ranks[j]) == report.witness["ranks"]
    assert ranks[j - 1] > ranks[j]
    if n_positives + n_negatives <= 10:
        assert values.sum() > brute_force.hinge(scores, relevant, judge) + 1e-9


@pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 2), (1, 6), (2, 3), (4, 5), (9, 20)])
def test_chakrabarti_is_refused(n_positives, n_negatives):
    """``D(2) = D(1)`` and then falls: not convex."""
    loss = DCG(chakrabarti)
    judge = brute_force.dcg(lambda rank: float(chakrabarti(rank)))
    report = check_suitable(loss, n_positives, n_negatives)
    assert not report
    assert report.reason.startswith("step(2, 1) = ")
    check_witness(loss, judge, report, n_positives, n_negatives)
    scores, relevant = report.witness["scores"], report.witness["relevant"]
    with pytest.raises(ValueError, match=r"not suitable for lists of .* samples: step\(2, 1\) = "):
        most_violating_ranking(scores, relevant, loss)
    with pytest.raises(ValueError, match="not suitable"):
        most_violating_rankings(scores, relevant, [0, scores.size], loss)


@pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 2), (2, 2), (3, 4), (2, 8)])
def test_hard_cut_is_refused(n_positives, n_negatives):
    """NDCG@k is not convex at k for ``2 ≤ k < P + N``, N ≥ 2; it is suitable for other k."""
    n_samples = n_positives + n_negatives
    for k in range(1, n_samples + 3):
        judge = brute_force.dcg(lambda rank, k=k: 1 / math.log2(1 + rank) if rank <= k else 0.0)
        report = check_suitable(hard_cut(k), n_positives, n_negatives)
        scores, relevant = large_list("overlapping", n_positives, n_negatives)
        if 2 <= k < n_samples:
            check_witness(hard_cut(k), judge, report, n_positives, n_negatives)
            with pytest.raises(ValueError, match="not suitable for lists"):
                most_violating_ranking(scores, relevant, hard_cut(k))
        else:
            assert report
            value = most_violating_ranking(scores, relevant, hard_cut(k)).value
            assert value == pytest.approx(brute_force.hinge(scores, relevant, judge), abs=1e-13)


def test_hard_cut_is_refused_after_shorter_lists():
    """A discount is suitable for the lengths that have been looked at, and no others."""
    loss = hard_cut(10)
    most_violating_ranking([1.0, 2.0, 3.0], [1, 0, 0], loss)
    most_violating_ranking(*large_list("overlapping", 5, 5), loss)
    with pytest.raises(ValueError, match="not suitable for lists of 20 samples: step"):
        most_violating_ranking(*large_list("overlapping", 10, 10), loss)
    most_violating_ranking(*large_list("overlapping", 5, 5), loss)


@pytest.mark.parametrize(
    ("discount", "n_samples"),
    [([1.0, 1.0, 0.5], 3), ([1.0, 0.6, 0.3, 0.2, 0.15, 0.0], 6), ([0.5, 1.0], 2), ([1.0, 0.2, 0.3], 3)],
)
def test_array_discounts_are_refused_with_their_reason(discount, n_samples):
    """Not convex, or rising, within the entries that are there."""
    scores, relevant = large_list("overlapping", 1, n_samples - 1)
    with pytest.raises(ValueError, match=rf"not suitable for lists of {n_samples} samples: step\("):
        most_violating_ranking(scores, relevant, DCG(discount))


def test_array_discounts_are_used_up_to_the_length_of_the_list():
    """What lies beyond the list does not matter: here the discount stops being convex after rank 4."""
    loss = DCG([1.0, 0.6, 0.3, 0.1, 0.1, 0.0])
    judge = brute_force.dcg(lambda rank: [1.0, 0.6, 0.3, 0.1][rank - 1])
    scores, relevant = large_list("overlapping", 2, 2)
    value = most_violating_ranking(scores, relevant, loss).value
    assert value == pytest.approx(brute_force.hinge(scores, relevant, judge), abs=1e-13)
    with pytest.raises(ValueError, match="not suitable for lists of 6 samples"):
        most_violating_ranking(*large_list("overlapping", 2, 4), loss)


def rising_in_sign(j, i, n_positives, n_negatives):
    return 0.001 * (i - 2)


def not_finite(j, i, n_positives, n_negatives):
    return -np.inf if j == 2 else -0.001


def not_a_number(j, i, n_positives, n_negatives):
    return np.nan if i == 2 else -0.001


def too_large(j, i, n_positives, n_negatives):
    return -1.0


def falling_in_j(j, i, n_positives, n_negatives):
    return -0.001 * j / (n_positives * n_negatives)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (rising_in_sign, r"step\(1, 3\) is 0.001: it must be finite and ≤ 0"),
        (not_finite, r"step\(2, 1\) is -inf: it must be finite and ≤ 0"),
        (not_a_number, r"step\(1, 2\) is nan: it must be finite and ≤ 0"),
        (too_large, "the worst ranking has loss 48: it must not exceed 1"),
        (falling_in_j, r"step\(2, 1\) = .* < step\(1, 1\) = .*: negative 2 may want a place above"),
    ],
)
def test_custom_losses_are_refused(step, reason):
    """Each with its reason, by the check and by inference."""
    loss = CustomLoss(step)
    report = check_suitable(loss, 6, 8)
    assert not report
    with pytest.raises(ValueError, match=reason):
        raise ValueError(report.reason)
    for _ in range(2):
        with pytest.raises(ValueError, match="not suitable: " + reason):
            most_violating_ranking([1.0, 0.0, 2.0], [1, 0, 0], loss)
    if "j" in report.witness and "next_step" not in report.witness:
        j, i = report.witness["j"], report.witness["i"]
        np.testing.assert_equal(report.witness["step"], step(j, i, 6, 8))


def test_a_step_that_falls_in_j_has_a_witness():
    report = check_suitable(CustomLoss(falling_in_j), 3, 4)
    check_witness(None, brute_force.by_steps(falling_in_j), report, 3, 4)


def test_zero_one_has_no_step():
    assert not check_suitable("zero-one", 2, 2)
    with pytest.raises(NotImplementedError, match="ZeroOne does not define a step"):
        ZeroOne().step(1, 1, 2, 2)


@pytest.mark.parametrize(("n_positives", "n_negatives"), [(0, 1), (1, 0), (-1, 2)])
def test_suitability_needs_both_classes(n_positives, n_negatives):
    with pytest.raises(ValueError, match=f"n_positives={n_positives} and n_negatives={n_negatives}"):
        check_suitable("ap", n_positives, n_negatives)


# Custom losses.


def ap_step(j, i, n_positives, n_negatives):
    return -i / ((i + j) * (i + j - 1)) / n_positives


def auc_step(j, i, n_positives, n_negatives):
    return -1.0 / (n_positives * n_negatives)


def rr_step(j, i, n_positives, n_negatives):
    if i == 1:
        return -1.0 / (j * (j + 1))
    return 0


def rr_partial_sum(j, i, n_positives, n_negatives):
    return 0.0 if i == 1 else -1.0 / (j * (j + 1))


@pytest.mark.parametrize(
    ("custom", "built_in"),
    [
        (CustomLoss(ap_step), "ap"),
        (CustomLoss(auc_step), "auc"),
        (CustomLoss(rr_step), "rr"),
        (CustomLoss(rr_step, rr_partial_sum), "rr"),
    ],
    ids=["ap", "auc", "rr", "rr with sums"],
)
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 1), (5, 20), (40, 700), (1000, 280_000)])
def test_a_custom_loss_equals_its_twin(custom, built_in, n_positives, n_negatives):
    """A step of one's own gives what the built-in loss gives, whatever the path.

    Without partial sums Δ is a sum of up to P N steps. Rounding errors may grow with N, not with P N.
    """
    scores, relevant = large_list("overlapping", n_positives, n_negatives)
    one = most_violating_ranking(scores, relevant, custom)
    other = most_violating_ranking(scores, relevant, built_in)
    allowed = 1e-14 + n_negatives * np.finfo(float).eps
    assert one.value == pytest.approx(other.value, rel=allowed)
    assert one.loss == pytest.approx(other.loss, rel=allowed)


def test_functions_made_on_the_spot():
    """Lambdas and closures are compiled like any function."""
    scale = 0.25
    loss = CustomLoss(lambda j, i, n_positives, n_negatives: -scale / (n_positives * n_negatives))
    scores, relevant = large_list("overlapping", 3, 5)
    judge = brute_force.by_steps(lambda j, i, p, n: -0.25 / (p * n) + 0.0 * j)
    value = most_violating_ranking(scores, relevant, loss).value
    assert value == pytest.approx(brute_force.hinge(scores, relevant, judge), abs=1e-14)


def test_a_class_of_ones_own_is_told_what_to_do():
    """A `RankingLoss` without compiled steps is refused in words."""

    class Mine(RankingLoss):
        def step(self, j, i, n_positives, n_negatives):
            return -1.0 / (n_positives * n_negatives)

    with pytest.raises((TypeError, ValueError), match="CustomLoss"):
        most_violating_ranking([1.0, 0.0], [1, 0], Mine())


# Tables and copies.


def test_tables_grow():
    """A loss that has served short lists serves long ones."""
    loss = NDCG()
    for size in (2, 10, 1000, 50, 300_000, 3):
        scores, relevant = large_list("overlapping", 1, size)
        value = most_violating_ranking(scores, relevant, loss).value
        assert value == most_violating_ranking(scores, relevant, NDCG()).value
        assert loss.table(size + 2).size >= size + 2


@EVERY_LOSS
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("used", [False, True])
def test_copies(case, duplicate, used):
    """A copy gives what the original gives, whether that has been used before or not."""
    original = copy.deepcopy(get_loss(case.loss))
    scores, relevant = large_list("overlapping", 6, 100)
    if used:
        most_violating_ranking(scores, relevant, original)
    copied = duplicate(original)
    assert type(copied) is type(original)
    assert copied.name == original.name
    for n_negatives in (100, 2000):
        scores, relevant = large_list("overlapping", 6, n_negatives)
        value = most_violating_ranking(scores, relevant, case.loss).value
        assert most_violating_ranking(scores, relevant, copied).value == value


def test_a_clone_shares_what_is_compiled():
    """scikit-learn clones an estimator, and its loss, for every fit of a search."""
    loss = CustomLoss(lambda j, i, n_positives, n_negatives: (1 / (i + j) - 1 / (i + j - 1)) / n_positives)
    scores, relevant = large_list("overlapping", 6, 100)
    value = most_violating_ranking(scores, relevant, loss).value
    twin = clone(RankSVC(loss, bound="convex")).loss
    assert twin is not loss
    assert twin.jitted() is loss.jitted()
    assert twin._compiled is loss._compiled is not None
    assert most_violating_ranking(scores, relevant, twin).value == value


def test_copies_of_the_zero_one_loss():
    for copied in (copy.deepcopy(ZeroOne()), pickle.loads(pickle.dumps(ZeroOne()))):
        assert most_violating_ranking([0.5, 0.0], [1, 0], copied).value == 0.75


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (AveragePrecision(), "AveragePrecision()"),
        (NDCG(), "NDCG()"),
        (SoftNDCG(5), "SoftNDCG(k=5)"),
        (RBP(0.8), "RBP(persistence=0.8)"),
        (ReciprocalRank(), "ReciprocalRank()"),
        (AUC(), "AUC()"),
        (ZeroOne(), "ZeroOne()"),
        (DCG([1.0, 0.5]), "DCG([1.0, 0.5])"),
    ],
)
def test_repr(loss, expected):
    assert repr(loss) == expected


def test_everything_public_is_there():
    for name in losses.__all__:
        assert hasattr(losses, name)


def test_a_copy_checks_as_the_original_does():
    for loss in (DCG([1.0, 2.0]), copy.deepcopy(DCG([1.0, 2.0]))):
        with pytest.raises(ValueError, match="not suitable"):
            loss.require_suitable(2)


LIST = np.random.default_rng(0).normal(size=200), np.arange(200) < 60


def ndcg_at_20(j, i, n_positives, n_negatives):
    total = 0.0
    for k in range(1, n_positives + 1):
        total += 1 / math.log2(1 + k)
    here = 1 / math.log2(i + j + 1) if i + j <= 20 else 0.0
    before = 1 / math.log2(i + j) if i + j - 1 <= 20 else 0.0
    return (here - before) / total


def raises(j, i, n_positives, n_negatives):
    if n_positives > 50:
        raise ValueError("too many")
    return -1.0 / (n_positives * n_negatives)


UNSUITABLE = {
    "a hard cut": (ndcg_at_20, r"step.* < step.*: negative \d+ may want a place above negative \d+"),
    "an error": (raises, "step raised ValueError: too many"),
    "NaN": (lambda j, i, P, N: np.nan if P > 50 else -1.0 / (P * N), "is nan: it must be finite"),
    "too large": (lambda j, i, P, N: -1.0 / (P * N) if P < 50 else -2.0 / (P * N), "must not exceed 1"),
    "division by 0": (lambda j, i, P, N: -1.0 / (P * N) if P < 50 else -1.0 / (j - 5), "step raised ZeroDivisionError"),
    "cannot be compiled": (lambda j, i, P, N: -float(str(1)) / (P * N) / len({}.setdefault(1, {2: 3})), "compiled"),
}


@pytest.mark.parametrize("name", UNSUITABLE)
def test_steps_are_checked_at_the_size_of_the_list(name):
    step, message = UNSUITABLE[name]
    with pytest.raises(ValueError, match=message):
        structured_hinge(*LIST, CustomLoss(step))


def test_integers_of_64_bits():
    scores = np.random.default_rng(0).normal(size=100_000)
    loss = CustomLoss(lambda j, i, P, N: -1.0 / ((i + j) ** 4 * P))
    with pytest.raises(ValueError, match=r"with .* positives and .* negatives, step"):
        structured_hinge(scores, np.arange(100_000) < 10, loss)


def test_a_partial_sum_that_is_another():
    loss = CustomLoss(lambda j, i, P, N: -1 / (P * N), lambda j, i, P, N: -i / (P * N) if i > 1 else 0.0)
    with pytest.raises(ValueError, match=r"partial_sum\(1, 2\) - partial_sum\(1, 1\) is .* but the steps"):
        structured_hinge(*LIST, loss)


def test_functions_that_are_no_functions():
    class Callable:
        def __call__(self, j, i, P, N):
            return -1.0 / (P * N)

    for wrong in (Callable(), functools.partial(steep_step, N=3), Callable().__call__):
        with pytest.raises(TypeError, match="step must be a plain function"):
            CustomLoss(wrong)
    jitted = CustomLoss(numba.njit(lambda j, i, P, N: -1.0 / (P * N)))
    assert structured_hinge(*LIST, jitted) == pytest.approx(structured_hinge(*LIST, "auc"))


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_linear_discounts_are_convex(n):
    loss = DCG(np.linspace(1, 0, n))
    scores, relevant = np.random.default_rng(0).normal(size=n), np.arange(n) < 5
    assert check_suitable(loss, 5, n - 5)
    assert structured_hinge(scores, relevant, loss) > 0
    assert structured_hinge(scores, relevant, DCG(lambda rank: np.maximum(1 - rank / 50, 0))) > 0
    assert repr(loss) == f"DCG({n} discounts)"


def test_a_discount_is_asked_for_ranks_of_the_list_only():
    assert structured_hinge([0.3, 0.1, -0.2, 0.5, 0], [1, 0, 1, 0, 0], DCG(lambda rank: (10.0 - rank) / 10)) > 0
    with pytest.raises(ValueError, match=r"discount\(11\) is -0.1"):
        structured_hinge(np.arange(12.0), np.arange(12) < 3, DCG(lambda rank: (10.0 - rank) / 10))


@pytest.mark.parametrize(("loss", "name"), [(RBP(0.5), "persistence"), (SoftNDCG(3), "k"), (DCG([1.0]), "discount")])
def test_parameters_cannot_be_changed(loss, name):
    with pytest.raises(AttributeError):
        setattr(loss, name, 2)


def test_a_subclass_with_a_step_of_its_own_is_refused():
    class Mine(AveragePrecision):
        def step(self, j, i, n_positives, n_negatives):
            return -1.0 / (n_positives * n_negatives)

    class Named(AveragePrecision):
        name = "mine"

    with pytest.raises(TypeError, match=r"has no compiled step: .*CustomLoss"):
        structured_hinge(*LIST, Mine())
    assert structured_hinge(*LIST, Named()) == structured_hinge(*LIST, "ap")


def _negative_powers(j, i, n_positives, n_negatives):
    return -((i + j) ** -2) / n_positives


def test_a_step_that_is_another_when_compiled():
    """Whole numbers to a negative power are floats in Python, and 0 when compiled: training would see no loss."""
    assert losses.check_suitable(losses.CustomLoss(_negative_powers), 6, 8)
    with pytest.raises(ValueError, match=r"step\(1, 1, 6, 8\) is -0\.0416667 in Python but -?0 when compiled"):
        losses.CustomLoss(_negative_powers).require_suitable(20)


def test_an_array_of_discounts_is_copied():
    given = np.array([3.0, 2.0, 1.0])
    loss = losses.DCG(given)
    given[:] = 0.0
    assert loss.table(4).tolist() == [0.0, 3.0, 2.0, 1.0]
    np.testing.assert_array_equal(loss.discount, [3.0, 2.0, 1.0])


def test_discounts_too_small_for_ratios():
    with pytest.raises(ValueError, match=r"discount\(1\) is 5e-310, so small that ratios overflow"):
        losses.DCG(np.array([5.0, 4.0, 3.0]) * 1e-310).table(4)


def reciprocal_discount(ranks):
    return 1.0 / ranks


@pytest.mark.parametrize(
    ("make", "others"),
    [
        (losses.AveragePrecision, [losses.AUC(), "ap", None]),
        (losses.RPrecision, [losses.PrecisionAt(1)]),
        (lambda: losses.NDCGAt(10), [losses.NDCGAt(11), losses.NDCGAt(0.1), losses.APAt(10), losses.SoftNDCG(10)]),
        (lambda: losses.PrecisionAt("1%"), [losses.PrecisionAt(1), losses.RecallAt("1%")]),
        (lambda: losses.SoftNDCG(3), [losses.SoftNDCG(4)]),
        (lambda: losses.RBP(0.5), [losses.RBP(0.6)]),
        (lambda: losses.BEDROC(20.0), [losses.BEDROC(21.0)]),
        (lambda: losses.PNormPush(2), [losses.PNormPush(3)]),
        (lambda: losses.PartialAUC(0.5), [losses.PartialAUC(0.25)]),
        (lambda: losses.DCG([1.0, 0.5, 0.25]), [losses.DCG([1.0, 0.5, 0.2]), losses.DCG([1.0, 0.5])]),
        (lambda: losses.DCG(np.array([1.0, 0.5])), [losses.DCG(np.array([1.0, 0.4]))]),
        (lambda: losses.DCGAt(reciprocal_discount, 2), [losses.DCGAt(np.reciprocal, 2), losses.DCGAt(reciprocal, 2)]),
        (
            lambda: losses.CustomLoss(steep_step),
            [losses.CustomLoss(reciprocal_step), losses.CustomLoss(steep_step, name="x")],
        ),
    ],
)
def test_losses_are_values(make, others):
    """Equal if class and parameters are, whatever has been tabulated or checked meanwhile."""
    one, other = make(), make()
    if one.is_ranking:
        structured_hinge([2.0, 1.0], [0, 1], one)
    for twin in (other, copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert one == twin
        assert hash(one) == hash(twin)
    assert len({one, other}) == 1
    for different in others:
        assert one != different
