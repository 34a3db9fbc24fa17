"""The examples run, and do what they claim."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.fixture
def printed(capsys, monkeypatch):
    """What an example prints; the state of PyTorch's generator is left alone."""

    def run(name):
        monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
        with torch.random.fork_rng():
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def qualities(text, metric):
    return [float(number) for number in re.findall(rf"{metric} (\d\.\d+)", text)]


def test_last_layer(printed):
    found = qualities(printed("plot_torch_last_layer.py"), "test AP")
    assert len(found) == 6
    # A tenth of the test samples is relevant: that is what chance would give.
    assert all(0.2 < quality <= 1 for quality in found)


def test_small_network(printed):
    untrained, *trained = qualities(printed("plot_torch_small_network.py"), "test mAP")
    assert len(trained) == 3
    assert min(trained) > 0.9 > untrained


def test_metric_learning(printed, monkeypatch):
    # SmoothAP, the slow one, is left out even where it is installed.
    monkeypatch.setitem(sys.modules, "pytorch_metric_learning", None)
    monkeypatch.setitem(sys.modules, "pytorch_metric_learning.losses", None)
    text = printed("plot_torch_metric_learning.py")
    pixels, learnt = qualities(text, "test mAP")
    assert learnt > pixels + 0.1
    assert "SmoothAP:      skipped" in text
