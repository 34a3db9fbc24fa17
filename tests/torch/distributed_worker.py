"""One of two processes that train a layer together; its number, the number of all and a folder are the arguments."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from rankhinge.torch import RankHingeLoss


def make_layer() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(5, 1, dtype=torch.float64)


def make_batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """In step 1 the second process has no positive."""
    generator = torch.Generator().manual_seed(10 * rank + step)
    relevant = torch.rand(40, generator=generator) < 0.3
    if rank == 1 and step == 1:
        relevant[:] = False
    return torch.randn(40, 5, generator=generator, dtype=torch.float64), relevant


def loopback() -> str:
    """The name of the loopback interface: gloo takes the host's own otherwise, whose name may lead nowhere."""
    return next(name for _, name in socket.if_nameindex() if name.lower().startswith("lo"))


def main(rank: int, n_processes: int, folder: Path) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = loopback()
    dist.init_process_group("gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=n_processes)
    model = DistributedDataParallel(make_layer())
    criterion = RankHingeLoss("ap")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(3):
        inputs, relevant = make_batch(rank, step)
        optimizer.zero_grad()
        criterion(model(inputs).squeeze(1), relevant).backward()
        optimizer.step()
    torch.save(model.module.state_dict(), folder / f"{rank}.pt")
    # Nobody leaves while the other still needs an answer.
    dist.barrier()
    dist.destroy_process_group()
    # At the interpreter's end PyTorch's own threads abort the process now and then.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
