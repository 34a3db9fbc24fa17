"""Convex parts, tangents and pieces of one layer's problem; frozen choices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.torch.layerwise.helpers import LOSSES, blobs, convolutional, dense, images, pooled, scores_of, surrogate_of
from tests.torch.layerwise.test_criteria import by_the_book

# name: network, data, index among the layers to be trained
CASES = {
    "last of 2": (lambda: dense(2), blobs, 1),
    "first of 2": (lambda: dense(2), blobs, 0),
    "first of 5": (lambda: dense(5, width=12), blobs, 0),
    "second of 5": (lambda: dense(5, width=12), blobs, 1),
    "before batch norm": (convolutional, images, 2),
    "before pools and a convolution": (pooled, images, 0),
}


@pytest.fixture(params=CASES)
def case(request):
    make, data, layer = CASES[request.param]
    return make(), *data(), layer


@pytest.fixture(params=LOSSES)
def loss(request):
    return request.param


def lines(start, n_lines=4, seed=0):
    """Random directions; also one far out and one that is zero in most places."""
    generator = torch.Generator().manual_seed(seed)
    for size in np.geomspace(0.05, 20, n_lines):
        yield size * torch.randn(start.shape, generator=generator, dtype=torch.float64)


def test_difference_of_convex_parts(case, loss):
    network, X, y, layer = case
    surrogate = surrogate_of(network, X, y, loss, layer)
    cvx, ccv = surrogate.convex_parts(0, surrogate.start)
    assert cvx - ccv == pytest.approx(by_the_book(loss, scores_of(network, X), y), rel=1e-5)
    for move in lines(surrogate.start):
        vector = surrogate.start + move
        cvx, ccv = surrogate.convex_parts(0, vector)
        assert cvx - ccv == pytest.approx(surrogate.true_value(0, vector), rel=1e-4)


def test_sizes_are_above_all_that_is_added_up(case, loss):
    network, X, y, layer = case
    surrogate = surrogate_of(network, X, y, loss, layer)
    for move in lines(surrogate.start):
        vector = surrogate.start + move
        plus, minus = surrogate.parts(0, vector)
        a_plus, a_minus = surrogate.shifts(0, plus)
        terms = float((a_plus * plus.abs() + a_minus * minus.abs()).sum())
        piece = surrogate.size(0, vector.abs())
        size = piece.offset + float(piece.slope @ vector.abs())
        assert terms <= size
        assert max(map(abs, surrogate.convex_parts(0, vector))) <= 2 * size
        # Entry by entry: what is larger has more to add up.
        assert piece.slope.min() >= 0
        again = surrogate.size(0, 1.5 * vector.abs())
        np.testing.assert_allclose(again.slope, piece.slope)
        assert again.offset == pytest.approx(piece.offset, rel=1e-6)
        # What the slope of H adds up is no more.
        assert torch.all(surrogate.piece(0, vector).slope.abs() <= 4 * piece.slope + 1e-12)


def test_parts_are_convex_along_lines(case, loss):
    network, X, y, layer = case
    surrogate = surrogate_of(network, X, y, loss, layer)
    for move in lines(surrogate.start):
        values = np.array([surrogate.convex_parts(0, surrogate.start + t * move) for t in np.linspace(-1, 1, 21)])
        bends = values[2:] - 2 * values[1:-1] + values[:-2]
        assert bends.min() >= -1e-11 * np.abs(values).max()


def test_bound_that_touches_at_the_start(case, loss):
    network, X, y, layer = case
    surrogate = surrogate_of(network.double(), X, y, loss, layer)
    at_start = surrogate.true_value(0, surrogate.start)
    assert surrogate.value(0, surrogate.start) == pytest.approx(at_start, rel=1e-9)
    for move in lines(surrogate.start):
        vector = surrogate.start + move
        J = surrogate.true_value(0, vector)
        assert J >= 0
        assert surrogate.value(0, vector) >= J - 1e-9 * max(J, 1)


def test_pieces_bound_from_below(case, loss):
    network, X, y, layer = case
    surrogate = surrogate_of(network, X, y, loss, layer)
    points = [surrogate.start, *(surrogate.start + move for move in lines(surrogate.start, seed=1))]
    values = [surrogate.value(0, point) for point in points]
    for here, value in zip(points, values):
        offset, slope = surrogate.piece(0, here)
        assert offset + float(slope @ here) == pytest.approx(value, rel=1e-9, abs=1e-9)
        for other, bound in zip(points, values):
            assert offset + float(slope @ other) <= bound + 1e-9 * max(abs(bound), 1)


def test_last_layer_needs_no_bound(loss):
    X, y = blobs()
    network = dense(3, dtype=torch.float64)
    surrogate = surrogate_of(network, X, y, loss)
    for move in lines(surrogate.start):
        vector = surrogate.start + move
        assert surrogate.value(0, vector) == pytest.approx(surrogate.true_value(0, vector), rel=1e-9)


@pytest.mark.parametrize("layer", [0, 1])
def test_frozen_choices_are_affine_and_right_at_the_start(layer):
    X, y = images()
    network = convolutional(dtype=torch.float64)
    surrogate = surrogate_of(network, X, y, "ap", layer)
    start = surrogate.start
    with torch.no_grad():
        here = surrogate._scores(0, start)
        np.testing.assert_allclose(here.numpy(), scores_of(network, X.double()), rtol=1e-12, atol=1e-12)
        for move in lines(start):
            ahead, behind = surrogate._scores(0, start + move), surrogate._scores(0, start - move)
            np.testing.assert_allclose((ahead + behind).numpy(), 2 * here.numpy(), rtol=1e-10, atol=1e-10)
    # The linearisation of the network itself.
    move = next(lines(start))
    for size in (1e-7, -1e-7):
        frozen = surrogate._scores(0, start + size * move).numpy()
        surrogate.layer.load(start + size * move)
        np.testing.assert_allclose(frozen, scores_of(network, X.double()), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layer", [0, 1])
def test_pieces_of_frozen_choices(layer, loss):
    X, y = images()
    surrogate = surrogate_of(convolutional(dtype=torch.float64), X, y, loss, layer)
    points = [surrogate.start, *(surrogate.start + move for move in lines(surrogate.start))]
    values = [surrogate.value(0, point) for point in points]
    assert values[0] == pytest.approx(surrogate.true_value(0, surrogate.start), rel=1e-12)
    for here, value in zip(points, values):
        offset, slope = surrogate.piece(0, here)
        assert offset + float(slope @ here) == pytest.approx(value, rel=1e-9)
        for other, bound in zip(points, values):
            assert offset + float(slope @ other) <= bound + 1e-9 * max(bound, 1)


@pytest.mark.parametrize("layer", range(4))
def test_what_is_not_kept_is_computed_again(layer):
    X, y = images()
    network = convolutional()
    kept, forgetful, partial = (
        surrogate_of(network, X, y, "ap", layer, block_size=16, cache_bytes=room) for room in (1 << 30, 0, 20_000)
    )
    vector = kept.start + 0.1
    for block in [0, 1, 2, 0, 1, 2]:
        offset, slope = kept.piece(block, vector)
        for other in (forgetful, partial):
            assert other.piece(block, vector).offset == offset
            assert torch.equal(other.piece(block, vector).slope, slope)
    assert not forgetful._kept
