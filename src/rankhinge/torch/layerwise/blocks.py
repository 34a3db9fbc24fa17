"""The samples, cut once into the mini-batches that the objective is a mean over."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankhinge.torch.layerwise.chain import Chain
from rankhinge.torch.layerwise.criteria import Criterion, Floats

__all__ = ["Blocks", "all_scores", "as_numpy"]


class Blocks:
    """Inputs and targets, block by block.

    Parameters
    ----------
    X : Tensor of shape (n, ...)
    targets : array of shape (n, ...)
        As `Criterion.prepare` makes them.
    criterion : Criterion
        Blocks that are not usable for it are left out, with a warning, and do not count in the mean.
    block_size : int
        The largest size; all blocks have about the same.
    generator : numpy.random.Generator
        The blocks are drawn once.
    """

    def __init__(
        self, X: Tensor, targets: NDArray[Any], criterion: Criterion, block_size: int, generator: np.random.Generator
    ) -> None:
        n_blocks = -(-len(targets) // block_size)
        rows = [np.sort(part) for part in np.array_split(generator.permutation(len(targets)), n_blocks)]
        self.rows = [part for part in rows if criterion.usable(targets[part])]
        if not self.rows:
            raise ValueError(f"none of the {n_blocks} blocks has both positives and negatives of any class")
        n_left_out = n_blocks - len(self.rows)
        if n_left_out:
            n_samples = len(targets) - sum(part.size for part in self.rows)
            warnings.warn(
                f"{n_left_out} of {n_blocks} blocks have no class with both positives and negatives: their {n_samples} "
                f"of {len(targets)} samples are not used. Choose a block_size larger than {block_size}",
                UserWarning,
                stacklevel=4,
            )
        self._X, self._targets = X, targets

    def __len__(self) -> int:
        return len(self.rows)

    def inputs(self, block: int, chain: Chain) -> Tensor:
        """X of a block, as the network takes it."""
        return self._X[torch.from_numpy(self.rows[block])].to(chain.device, chain.dtype)

    def targets(self, block: int) -> NDArray[Any]:
        return self._targets[self.rows[block]]


def as_numpy(y: Any) -> NDArray[Any]:
    """Labels as an array, from wherever they are."""
    if not isinstance(y, Tensor):
        return np.asarray(y)
    # NumPy has no bfloat16.
    return (y.float() if y.dtype == torch.bfloat16 else y).detach().cpu().numpy()


@torch.no_grad()
def all_scores(chain: Chain, X: Tensor, block_size: int) -> Floats:
    """The network's scores in evaluation mode, (n, K)."""
    parts = []
    for part in X.split(block_size):
        found = chain.run(part.to(chain.device, chain.dtype)).double().cpu().numpy()
        if found.ndim != 2 or len(found) != len(part):
            raise ValueError(f"the network's output for {len(part)} samples has shape {found.shape}: (n, K) is needed")
        parts.append(found)
    scores = np.concatenate(parts)
    for row, column in np.argwhere(~np.isfinite(scores))[:1]:
        raise ValueError(f"the network's score of sample {row}, output {column}, is {scores[row, column]}")
    return scores
