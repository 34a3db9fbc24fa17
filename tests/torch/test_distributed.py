"""Two processes that share gradients arrive where one process arrives with their mean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rankhinge.torch import RankHingeLoss
from tests.torch import distributed_worker as worker


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch is built without distributed")
def test_two_processes(tmp_path):
    root = Path(__file__).resolve().parent.parent.parent
    command = [sys.executable, "-m", "tests.torch.distributed_worker"]
    processes = [
        subprocess.Popen([*command, str(rank), "2", str(tmp_path)], cwd=root, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    try:
        for process in processes:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
    finally:
        for process in processes:
            process.kill()
    layer, criterion = worker.make_layer(), RankHingeLoss("ap")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for step in range(3):
        optimizer.zero_grad()
        for rank in range(2):
            inputs, relevant = worker.make_batch(rank, step)
            (criterion(layer(inputs).squeeze(1), relevant) / 2).backward()
        optimizer.step()
    for rank in range(2):
        state = torch.load(tmp_path / f"{rank}.pt")
        for name, tensor in layer.state_dict().items():
            torch.testing.assert_close(state[name], tensor)
