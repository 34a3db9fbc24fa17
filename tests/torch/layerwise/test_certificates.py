"""A layer's turn: the dual rises, the gap closes on a convex problem, and the optimum is that of other solvers."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

from rankhinge import RankSVC
from rankhinge.solvers.certificate import CertificateError
from rankhinge.torch.layerwise import LayerwiseTrainer
from rankhinge.torch.layerwise.frank_wolfe import FrankWolfe
from rankhinge.torch.layerwise.step import train_layer
from rankhinge.torch.layerwise.surrogate import ExactSplit, Piece
from tests.torch.layerwise.helpers import LOSSES, blobs, convolutional, dense, images, surrogate_of


def turn(surrogate, lam, mu, tol=0.0, max_epochs=300, loss=None):
    blocks = range(len(surrogate.blocks))
    loss = np.mean([surrogate.true_value(block, surrogate.start) for block in blocks]) if loss is None else loss
    options = {"lam": lam, "mu": mu, "tol": tol, "max_epochs": max_epochs, "loss": loss}
    return train_layer(surrogate, **options, generator=np.random.default_rng(0), watch=lambda epoch, dual: None)


@pytest.mark.parametrize("block_size", [100, 30])
@pytest.mark.parametrize("loss", LOSSES)
def test_gap_closes_on_the_last_layer(loss, block_size):
    X, y = blobs()
    step = turn(surrogate_of(dense(2), X, y, loss, block_size=block_size), lam=0.1, mu=1.0, max_epochs=400)
    assert np.diff(step.duals).min() >= -1e-12
    assert -1e-9 <= step.gap <= 2e-3


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("make", "data", "layer"), [(dense, blobs, 0), (convolutional, images, 0), (convolutional, images, 2)]
)
def test_dual_rises_and_bounds_on_every_layer(loss, make, data, layer):
    X, y = data()
    step = turn(surrogate_of(make(), X, y, loss, layer, block_size=20), lam=1e-2, mu=0.1, max_epochs=30)
    assert np.diff(step.duals).min() >= -1e-9
    assert step.gap >= -1e-6


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("decades", [0, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_is_never_below_what_rounding_leaves(seed, decades, layer):
    """Inputs of all sizes: values and duals lose digits, and the lower bound says so."""
    X, y = blobs(30, seed=seed)
    X = X.double() * 10.0 ** torch.as_tensor(np.random.default_rng(seed).uniform(-decades, decades, X.shape[1]))
    step = turn(surrogate_of(dense(dtype=torch.float64), X, y, "ap", layer), lam=1e-4, mu=1e-3, max_epochs=20)
    assert 0 <= step.dual <= step.primal
    assert step.gap == pytest.approx((step.primal - step.dual) / step.primal)
    assert step.dual <= step.duals[-1]
    if decades == 0:
        assert step.dual == pytest.approx(step.duals[-1], rel=1e-6)


def test_planes_above_the_loss_raise():
    class TooHigh(OneWeight):
        def piece(self, block, vector):
            return 1.5, -torch.ones(1, dtype=torch.float64)

    with pytest.raises(CertificateError, match="planes of block 0"):
        turn(TooHigh(1.0), lam=1.0, mu=0.0, max_epochs=2)


def test_a_lower_bound_above_the_value_raises(monkeypatch):
    monkeypatch.setattr(FrankWolfe, "dual", 0.6)
    with pytest.raises(CertificateError, match="lies above the objective"):
        turn(OneWeight(1.0), lam=1.0, mu=0.0, max_epochs=2)


@pytest.mark.parametrize("part", ["offset", "slope"])
@pytest.mark.parametrize("factor", [0.5, 0.99, 1.001, 1.01, 1.5, 2.0])
@pytest.mark.parametrize("layer", [0, 1])
def test_faults(monkeypatch, part, factor, layer):
    """Spoilt planes raise, or leave a true bound: the value of the whole problem is nowhere below it."""
    X, y = blobs(40)
    options = {"lam": 0.1, "mu": 1.0, "max_epochs": 100}
    right = turn(surrogate_of(dense(2), X, y, "ap", layer), **options)
    true_piece = ExactSplit.piece

    def spoilt(self, block, vector):
        piece = true_piece(self, block, vector)
        return piece._replace(**{part: getattr(piece, part) * factor})

    monkeypatch.setattr(ExactSplit, "piece", spoilt)
    try:
        step = turn(surrogate_of(dense(2), X, y, "ap", layer), **options)
    except CertificateError:
        return
    assert step.dual <= right.primal or step.gap > 0.01


@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_optimum_is_that_of_the_linear_machine(loss):
    X, y = blobs(60, n_classes=2)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 1, bias=False)).double()
    lam = 0.05
    reference = RankSVC(C=1 / lam, loss=loss, tol=1e-6, bound="convex").fit(X.double().numpy(), y)
    step = turn(surrogate_of(network, X, y, loss), lam, mu=0.0, max_epochs=1500)
    optimum = lam * reference.objective_
    assert step.duals[-1] <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-5) <= step.primal
    assert step.primal == pytest.approx(optimum, rel=2e-3)
    assert step.duals[-1] == pytest.approx(optimum, rel=2e-3)


def test_optimum_is_that_of_a_quadratic_program():
    """The multiclass hinge with its slack variables, two blocks of different size, and a proximal term."""
    X, y = blobs(21, d=2)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 3)).double()
    lam, mu = 0.1, 0.5
    surrogate = surrogate_of(network, X, y, "multiclass-hinge", block_size=11)
    start, n = surrogate.start.numpy(), len(y)
    weights = np.zeros(n)
    for rows in surrogate.blocks.rows:
        weights[rows] = 1 / (rows.size * len(surrogate.blocks))
    # Weight (3, 2) row by row, then the bias.
    features = np.zeros((n, 3, 9))
    for k in range(3):
        features[:, k, 2 * k : 2 * k + 2] = X.double().numpy()
        features[:, k, 6 + k] = 1.0
    margins = features - features[np.arange(n), y][:, None, :]
    delta = 1.0 - np.eye(3)[y]

    def value(v):
        W, slack = v[:9], v[9:]
        return 0.5 * lam * W @ W + 0.5 * mu * (W - start) @ (W - start) + weights @ slack

    A = np.concatenate([-margins.reshape(-1, 9), np.repeat(np.eye(n), 3, axis=0)], axis=1)
    result = minimize(
        value,
        np.concatenate([start, np.full(n, 20.0)]),
        jac=lambda v: np.concatenate([lam * v[:9] + mu * (v[:9] - start), weights]),
        constraints={"type": "ineq", "fun": lambda v: A @ v - delta.ravel(), "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.success
    step = turn(surrogate, lam, mu, max_epochs=2000)
    assert step.duals[-1] <= result.fun + 1e-8
    assert step.primal >= result.fun - 1e-8
    assert step.primal == pytest.approx(result.fun, rel=1e-3)
    assert step.duals[-1] == pytest.approx(result.fun, rel=1e-3)


def test_stops_when_an_epoch_gains_little():
    X, y = blobs()
    loose, tight = (turn(surrogate_of(dense(), X, y, block_size=30), 0.1, 1.0, tol) for tol in (0.1, 0.001))
    assert len(loose.duals) < len(tight.duals) < 300
    assert loose.duals[-1] - loose.duals[-2] <= 0.1 * loose.duals[-1]
    gains = np.diff(tight.duals)[:-1]
    assert np.all(gains > 0.001 * np.array(tight.duals[1:-1]))


def test_no_candidate_is_taken_that_does_not_lower_the_objective():
    X, y = blobs()
    step = turn(surrogate_of(dense(), X, y), 0.1, 1.0, loss=0.0)
    assert (step.taken, step.weights, step.loss) == (None, None, 0.0)


class OneWeight:
    """The surrogate ``max(0, 1 - W)`` leads from 0 to 1; the true loss is ``|W - least|``."""

    n_parts, n_terms, dtype = 1, 1, torch.float64

    def __init__(self, least, dtype=torch.float64):
        self.least = least
        self.start, self.blocks = torch.zeros(1, dtype=torch.float64), [None]
        self.chain = SimpleNamespace(dtype=dtype)

    def piece(self, block, vector):
        return 1.0, -torch.ones(1, dtype=torch.float64)

    def value(self, block, vector):
        return max(0.0, 1.0 - vector.item())

    def true_value(self, block, vector):
        return abs(vector.item() - self.least)

    def size(self, block, magnitudes):
        return Piece(1.0, torch.ones(1, dtype=torch.float64))


@pytest.mark.parametrize(
    ("least", "taken"),
    [(1.0, "average"), (0.5, "0.5 of the way"), (0.25, "0.25 of the way"), (0.125, "0.125 of the way"), (0.05, None)],
)
def test_shorter_steps_are_tried_where_the_whole_one_raises_the_objective(least, taken):
    step = turn(OneWeight(least), lam=1.0, mu=0.0, max_epochs=1)
    assert step.taken == taken
    assert step.loss == (least if taken is None else 0.0)
    assert (step.weights is None) if taken is None else (step.weights.item() == least)


def test_candidates_are_judged_as_the_network_will_hold_them():
    """Frank-Wolfe finds W = 1/3, where the objective is 0.1667; in bfloat16 it is 0.3340, with 0.1680."""
    held = torch.tensor(1 / 3).bfloat16().item()
    surrogate = OneWeight(1 / 3, torch.bfloat16)
    step = turn(surrogate, lam=3.0, mu=0.0, max_epochs=1)
    assert (step.weights.item(), step.loss) == (held, held - 1 / 3)
    assert turn(surrogate, lam=3.0, mu=0.0, max_epochs=1, loss=0.1675).taken is None
    assert turn(surrogate, lam=3.0, mu=0.0, max_epochs=1, loss=0.1685).taken == "average"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("make", "data"), [(dense, blobs), (convolutional, images)])
def test_true_objective_never_rises(make, data, loss, seed):
    X, y = data(seed=seed)
    trainer = LayerwiseTrainer(make(seed=seed), loss, lam=1e-2, block_size=30, max_passes=3, random_state=seed)
    history = trainer.fit(X, y).history_
    objectives = [entry["objective"] for entry in history]
    assert np.diff(objectives).max() <= 0
    assert objectives[-1] < objectives[0]
    for before, entry in pairwise(history):
        assert (entry["taken"] is None) == (entry["objective"] == before["objective"])
        assert np.diff(entry["duals"]).min(initial=0) >= -1e-9
        assert entry["gap"] >= -1e-6
