"""Checks of what the user gives to the trainer: parameters and data."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["check_inputs", "count", "positive", "set_apart", "share"]


def check_inputs(X: Any, name: str) -> Tensor:
    """X as a tensor of finite numbers with at least one row; a ValueError names the sample that is not."""
    tensor = X.detach() if isinstance(X, Tensor) else _from_array(np.asarray(X), name)
    if tensor.ndim < 2 or len(tensor) == 0:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: samples, at least one, along the first axis needed")
    if tensor.is_complex():
        raise ValueError(f"{name} is complex")
    if tensor.is_floating_point():
        bad = torch.nonzero(~torch.isfinite(tensor).flatten(1).all(dim=1))
        if len(bad):
            raise ValueError(f"{name}[{int(bad[0])}] holds a value that is not finite")
    return tensor


def _from_array(X: NDArray[Any], name: str) -> Tensor:
    """The array's own memory as a tensor, or a copy where PyTorch cannot read it."""
    if X.dtype.kind not in "iufb" or X.dtype.itemsize > 8:
        raise ValueError(f"{name} must hold numbers of at most 64 bits, got dtype {X.dtype}")
    if not X.dtype.isnative or any(stride < 0 for stride in X.strides):
        X = np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))
    with warnings.catch_warnings():
        # A mapped file may be read-only: nobody writes to it.
        warnings.filterwarnings("ignore", message=".*not writable")
        return torch.from_numpy(X)


def set_apart(
    inputs: Tensor, targets: NDArray[Any], share: float, generator: np.random.Generator
) -> tuple[Tensor, NDArray[Any], tuple[Tensor, NDArray[Any]]]:
    """The samples that remain, and those of the validation part."""
    order = generator.permutation(len(inputs))
    n_validation = round(share * len(inputs))
    if not 0 < n_validation < len(inputs):
        raise ValueError(f"validation={share} of {len(inputs)} samples leaves a part without samples")
    apart, rest = np.sort(order[:n_validation]), np.sort(order[n_validation:])
    return inputs[rest], targets[rest], (inputs[apart], targets[apart])


def share(validation: Any) -> float:
    """A share of the samples."""
    if not 0.0 < validation < 1.0:
        raise ValueError(f"validation={validation}: a share must be between 0 and 1")
    return float(validation)


def positive(name: str, value: Any, or_zero: bool = False) -> float:
    """A finite number above (or at) 0."""
    if not isinstance(value, numbers.Real) or not math.isfinite(value) or value < 0 or (value == 0 and not or_zero):
        raise ValueError(f"{name} must be a {'non-negative' if or_zero else 'positive'} number, got {value!r}")
    return float(value)


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer that is large enough."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)
