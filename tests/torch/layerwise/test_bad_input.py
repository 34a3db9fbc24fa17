"""Networks, parameters and data that cannot be used: each error names the culprit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from rankhinge.torch.layerwise import LayerwiseTrainer
from tests.torch.layerwise.helpers import blobs, convolutional, dense


class Doubled(nn.Sequential):
    def forward(self, x):
        return 2 * super().forward(x)


def shared():
    layer = nn.Linear(3, 3)
    return nn.Sequential(layer, nn.ReLU(), layer)


def tied():
    network = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    network[2].weight = network[0].weight
    return network


def tied_in_memory():
    network = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    network[2].weight.data = network[0].weight.data
    return network


def overruled():
    network = dense()
    network[1].forward = lambda x: 2 * x
    return network


def hooked():
    network = dense()
    network[1].register_forward_hook(lambda module, args, output: 2 * output)
    return network


def frozen():
    return dense().requires_grad_(False)


REFUSED = {
    "gelu": (lambda: nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.GELU()), nn.Linear(3, 2)), r"'1\.0' is a GELU"),
    "softmax": (lambda: nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1)), "'1' is a Softmax"),
    "leaky": (lambda: nn.Sequential(nn.Linear(3, 2), nn.LeakyReLU()), "'1' is a LeakyReLU"),
    "own forward": (lambda: nn.Sequential(Doubled(nn.Linear(3, 2))), "'0' is a Doubled"),
    "no sequence": (lambda: nn.MultiheadAttention(4, 2), "'' is a MultiheadAttention"),
    "parametrised": (
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))),
        "'0' is a ParametrizedLinear",
    ),
    "not yet made": (lambda: nn.Sequential(nn.Linear(2, 2), nn.LazyLinear(2)), "'1' is a LazyLinear"),
    "hooks": (hooked, r"'1' \(ReLU\) has forward hooks"),
    "shared layer": (shared, r"'0' \(Linear\) and '2' \(Linear\) share"),
    "tied weights": (tied, r"'0' \(Linear\) and '2' \(Linear\) share"),
    "tied in memory": (tied_in_memory, r"'0' \(Linear\) and '2' \(Linear\) share"),
    "forward function": (overruled, r"'1' \(ReLU\) has a forward function of its own"),
    "nothing to train": (frozen, "no layer to train"),
    "half precision": (lambda: dense().half(), "float16"),
    "mixed precision": (
        lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()),
        "'1' .*float64 .*first trained layer is torch.float32",
    ),
    "padding": (lambda: nn.Sequential(nn.Conv2d(1, 1, 3, padding_mode="circular")), "padding_mode 'circular'"),
    "dilation": (lambda: nn.Sequential(nn.Conv2d(1, 1, 3), nn.MaxPool2d(2, dilation=2)), "dilation 2"),
    "indices": (lambda: nn.Sequential(nn.Conv2d(1, 1, 3), nn.MaxPool2d(2, return_indices=True)), "indices"),
    "batch statistics": (
        lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3, track_running_stats=False)),
        r"'1' \(BatchNorm1d\) tracks no running statistics",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_networks(name):
    make, complaint = REFUSED[name]
    with pytest.raises(ValueError, match=complaint):
        LayerwiseTrainer(make())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("lam", value) for value in (0, -1.0, math.nan, math.inf, "1")],
        *[("mu", value) for value in (-1e-9, math.nan)],
        *[("block_size", value) for value in (0, 2.5, True, None)],
        ("max_passes", 0),
        ("max_epochs", 0),
        ("tol", -0.1),
        ("cache_bytes", -1),
    ],
)
def test_parameters(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*got {value!r}"):
        LayerwiseTrainer(dense(), **{name: value})


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weights_that_are_not_finite(bad):
    network = convolutional()
    with torch.no_grad():
        network[2].weight[1, 2, 0, 1] = bad
    trainer = LayerwiseTrainer(network)
    with pytest.raises(ValueError, match=rf"weight of layer '2' \(Conv2d\) is not finite: {bad} at \(1, 2, 0, 1\)"):
        trainer.fit(torch.zeros(4, 2, 8, 8), [0, 1, 2, 0])


def test_running_statistics_that_are_not_finite():
    network = convolutional()
    network[7].running_var[2] = math.nan
    with pytest.raises(ValueError, match=r"running_var of layer '7' \(BatchNorm1d\)"):
        LayerwiseTrainer(network).fit(torch.zeros(4, 2, 8, 8), [0, 1, 2, 0])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"X": np.full((90, 6), np.nan)}, r"X\[0\] holds a value that is not finite"),
        ({"X": np.zeros((0, 6))}, r"shape \(0, 6\)"),
        ({"X": np.zeros(6)}, r"shape \(6,\)"),
        ({"X": np.zeros((90, 5))}, r"does not take X of shape \(90, 5\)"),
        ({"X": [["a"]]}, "numbers"),
        ({"y": np.full(90, 3)}, r"y\[0\] is 3: with 3 outputs"),
        ({"y": np.zeros(89)}, r"shape \(89,\), but there are 90"),
        ({"validation": 0.0}, "validation=0.0"),
        ({"validation": 1.5}, "validation=1.5"),
        ({"validation": 0.001}, "validation=0.001 of 90 samples"),
        ({"validation": "some"}, "got str"),
        ({"validation": (np.zeros((5, 6)), np.zeros(5))}, "validation data has no class"),
        ({"validation": (np.full((5, 6), np.inf), np.zeros(5))}, r"validation X\[0\]"),
    ],
)
def test_data(change, complaint):
    X, y = blobs()
    with pytest.raises(ValueError, match=complaint):
        LayerwiseTrainer(dense()).fit(**{"X": X, "y": y, **change})


def test_output_of_another_shape():
    network = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1))
    with pytest.raises(ValueError, match=r"output for 2 samples has shape \(2, 2, 4, 4\)"):
        LayerwiseTrainer(network).fit(torch.zeros(3, 1, 4, 4), [0, 1, 1])


@pytest.mark.parametrize(
    ("network", "complaint"),
    [
        (nn.Sequential(nn.Linear(6, 1), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)), "has 4 channels, its input 1"),
        (nn.Sequential(nn.Linear(6, 4), nn.BatchNorm2d(4), nn.Linear(4, 3)), "expected 4D input"),
        (nn.Sequential(nn.Flatten(2), nn.Linear(6, 3)), r"does not take X of shape \(90, 6\)"),
    ],
)
def test_networks_that_do_not_take_the_data(network, complaint):
    X, y = blobs()
    with pytest.raises(ValueError, match=complaint):
        LayerwiseTrainer(network).fit(X, y)


def test_validation_scores_that_are_not_finite():
    X, y = blobs()
    with pytest.raises(ValueError, match="the network's score of sample 0, output 0, is"):
        LayerwiseTrainer(dense(), "multiclass-hinge").fit(X, y, validation=(X.double() * 1e39, y))


def test_numbers_that_pytorch_does_not_know():
    X, y = blobs()
    with pytest.raises(ValueError, match="at most 64 bits, got dtype"):
        LayerwiseTrainer(dense()).fit(X.numpy().astype(np.longdouble), y)


def test_images_without_channels():
    X, y = torch.randn(20, 8, 8), torch.arange(20) % 3
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    for block_size in (1, 10):
        with pytest.raises(ValueError, match=r"does not take X of shape \(20, 8, 8\)"):
            LayerwiseTrainer(network, block_size=block_size).fit(X, y)


def test_an_output_for_each_channel():
    X, y = torch.randn(1, 8, 8), torch.zeros(1, dtype=torch.int64)
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(ValueError, match=r"output for 1 samples has shape \(4, 3\)"):
        LayerwiseTrainer(network).fit(X, y)
