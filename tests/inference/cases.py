"""Losses, methods and lists that the tests of inference share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankhinge import losses
from rankhinge.inference.long_list import LONG
from tests import brute_force

# Lists of 263,000 samples and more stand for long ones in these tests.
assert LONG < 263_000

SHAPES = [(n_positives, n_negatives) for n_positives in range(1, 6) for n_negatives in range(1, 7)]
ANY_LOSS_METHODS = ("auto", "histogram", "greedy", "quicksort")
AP_METHODS = (*ANY_LOSS_METHODS, "search", "select", "quicksort-search")


def steep_step(j, i, n_positives, n_negatives):
    """A step of no known loss: it rises with j and adds up to less than 1."""
    return -1.0 / ((i + j) * (i + j)) / n_positives


def reciprocal_step(j, i, n_positives, n_negatives):
    """The step of DCG with ``D(rank) = 1 / rank``."""
    ideal = 0.0
    for k in range(1, n_positives + 1):
        ideal += 1.0 / k
    return (1.0 / (i + j) - 1.0 / (i + j - 1)) / ideal


def reciprocal_partial_sum(j, i, n_positives, n_negatives):
    """``Σ_{k < i} reciprocal_step(j, k)``."""
    ideal = 0.0
    for k in range(1, n_positives + 1):
        ideal += 1.0 / k
    return (1.0 / (i + j - 1) - 1.0 / j) / ideal


def reciprocal(rank):
    return 1.0 / rank


LINEAR_DISCOUNT = np.maximum(0.0, 1.0 - np.arange(1 << 19) / 8.0)


class LossCase(NamedTuple):
    """One loss as the library has it and as the judge has it."""

    name: str
    loss: str | losses.RankingLoss
    judge: brute_force.Loss

    @property
    def methods(self):
        return AP_METHODS if self.name == "ap" else ANY_LOSS_METHODS


LOSS_CASES = [
    LossCase("ap", "ap", brute_force.AP),
    LossCase("ndcg", "ndcg", brute_force.NDCG),
    LossCase("rr", "rr", brute_force.RR),
    LossCase("auc", "auc", brute_force.AUC),
    LossCase("rbp", "rbp", brute_force.RBP),
    LossCase("soft-ndcg", losses.SoftNDCG(4), brute_force.soft_ndcg(4)),
    LossCase(
        "dcg-array",
        losses.DCG(LINEAR_DISCOUNT),
        brute_force.dcg(lambda rank: max(0.0, 1 - (rank - 1) / 8)),
    ),
    LossCase("dcg-callable", losses.DCG(reciprocal), brute_force.dcg(reciprocal)),
    LossCase("partial-auc", losses.PartialAUC(0.4), brute_force.partial_auc(0.4)),
    LossCase("top-push", losses.TopPush(), brute_force.TOP_PUSH),
    LossCase("p-norm-push", losses.PNormPush(3), brute_force.p_norm_push(3)),
    LossCase("bedroc", losses.BEDROC(5.0), brute_force.bedroc(5.0)),
    LossCase("custom", losses.CustomLoss(steep_step), brute_force.by_steps(steep_step)),
    LossCase(
        "custom-sums",
        losses.CustomLoss(reciprocal_step, reciprocal_partial_sum),
        brute_force.dcg(reciprocal),
    ),
]
BY_NAME = {case.name: case for case in LOSS_CASES}


def mixed(scores, n_positives, rng):
    """Scores, the first `n_positives` of them relevant, and that relevance in a random order."""
    relevant = np.arange(len(scores)) < n_positives
    order = rng.permutation(len(scores))
    return scores[order], relevant[order]


def random_list(rng, n_positives, n_negatives, overlap=1.0):
    """Normal scores, positives `overlap` higher on average."""
    scores = rng.normal(size=n_positives + n_negatives)
    scores[:n_positives] += overlap
    return mixed(scores, n_positives, rng)


# Large lists: scores of every kind that has led a sorting or counting method astray.


def _normal(rng, relevant):
    return rng.normal(size=relevant.size) + relevant


def _organ_pipe(rng, relevant):
    ascending = np.sort(_normal(rng, relevant))
    return np.concatenate([ascending[::2], ascending[1::2][::-1]])


def _clusters(rng, relevant):
    centres = rng.choice([0.0, 1e-6, 1.0, 1e3], relevant.size)
    return centres + 1e-9 * rng.normal(size=relevant.size)


def _signed_powers(rng, relevant):
    signs = rng.choice([-1.0, 1.0], relevant.size)
    return signs * 2.0 ** rng.uniform(-800, 800, relevant.size)


def _trained(rng, relevant):
    return np.where(relevant, 2 + 0.5 * _normal(rng, relevant), -1 + 0.3 * _normal(rng, relevant))


KINDS = {
    "overlapping": _normal,
    "sorted": lambda rng, relevant: np.sort(_normal(rng, relevant)),
    "reversed": lambda rng, relevant: np.sort(_normal(rng, relevant))[::-1].copy(),
    "organ pipe": _organ_pipe,
    "constant": lambda rng, relevant: np.full(relevant.size, 0.3),
    "two values": lambda rng, relevant: rng.choice([0.0, 1.0], relevant.size),
    "integers": lambda rng, relevant: np.round(3 * _normal(rng, relevant)),
    "Cauchy": lambda rng, relevant: rng.standard_cauchy(relevant.size),
    "exponentials": lambda rng, relevant: np.exp(20 * _normal(rng, relevant)),
    "signed powers": _signed_powers,
    "clusters": _clusters,
    "two narrow clusters": lambda rng, relevant: rng.choice([0.0, 1.0], relevant.size) + 1e-13 * _normal(rng, relevant),
    "offset 1e6": lambda rng, relevant: 1e6 + _normal(rng, relevant),
    "offset 1e12": lambda rng, relevant: 1e12 + _normal(rng, relevant),
    "tiny": lambda rng, relevant: 1e-3 * _normal(rng, relevant),
    "trained": _trained,
    "separated": lambda rng, relevant: np.where(relevant, 9.0, -9.0) + 0.1 * _normal(rng, relevant),
    "wrong way round": lambda rng, relevant: _normal(rng, relevant) - 5 * relevant,
}


def large_list(kind, n_positives, n_negatives, seed=0):
    """Scores of one of `KINDS` and their relevance."""
    rng = np.random.default_rng(seed)
    relevant = np.zeros(n_positives + n_negatives, bool)
    relevant[rng.choice(relevant.size, n_positives, replace=False)] = True
    return KINDS[kind](rng, relevant), relevant
