"""The operators that PyTorch sees: opaque to `torch.compile`, differentiable once.

``rankhinge::rank_loss`` returns the value and, because inference finds both at once, the gradient with respect to the
scores; ``rankhinge::retrieval_loss`` does so for embeddings. The backward pass only multiplies, in an operator of its
own (``rankhinge::pull_back``), so that a second derivative is refused and not silently 0.

To call an operator from Python costs more than inference on a few hundred scores. Where nobody looks at the graph,
`rank_loss` takes the shorter way of an ``autograd.Function`` with the same forward and backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch import compiled, direct_on_device, on_device
from rankhinge.torch.levels import make_levels
from rankhinge.torch.lists import Lists, make_lists
from rankhinge.torch.on_device import BadScore, Found
from rankhinge.torch.settings import Settings, loss_of, settings_of

__all__ = ["differentiate", "evaluate", "rank_loss", "rank_loss_operator", "value_dtype"]


def value_dtype(dtype: torch.dtype) -> torch.dtype:
    """Values and gradients are computed in float32 at least."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def rank_loss(
    scores: Tensor, relevance: Tensor, mask: Tensor | None, groups: Tensor | None, dim: int, settings: str
) -> Tensor:
    """The reduced value of tensors that `check_shapes` has let in."""
    # Subclasses of Tensor (fake ones, for instance) and compilers want an operator.
    is_plain = type(scores) in (Tensor, torch.nn.Parameter) and not torch.compiler.is_compiling()
    if is_plain:
        return _Eager.apply(scores, relevance, mask, groups, dim, settings)
    return rank_loss_operator(scores, relevance, mask, groups, dim, settings)[0]


def _compute(
    scores: Tensor, relevance: Tensor, mask: Tensor | None, groups: Tensor | None, dim: int, settings: str
) -> tuple[Tensor, Tensor, Tensor]:
    """The reduced value, its gradient, and, where the backward pass needs it, the list of each sample."""
    chosen = settings_of(settings)
    if scores.ndim == 1 and mask is None and groups is None:
        found = _of_one_list(scores, relevance, chosen)
        if found is not None:
            return found
    lists = make_lists(scores, mask, groups, dim)
    values, u, usable = evaluate(scores, relevance, lists, chosen)
    dtype = value_dtype(scores.dtype)
    if chosen.reduction == "none":
        list_of = scores.new_empty(0, dtype=torch.int64) if lists.list_of is None else lists.list_of
        return lists.per_list(values.to(dtype)), lists.scatter(u), list_of
    value = values.sum()
    if chosen.reduction == "mean" and lists.n_lists > 1:
        share = 1.0 / usable.sum().clamp(min=1).to(values.dtype)
        value, u = value * share, u * share.to(dtype)
    return value.to(dtype), lists.scatter(u), scores.new_empty(0, dtype=torch.int64)


def _of_one_list(scores: Tensor, relevance: Tensor, settings: Settings) -> tuple[Tensor, Tensor, Tensor] | None:
    """What `_compute` returns for a plain list on the CPU, with nothing in between; None where there is more to it.

    The tensors that many lists need take longer than inference on a few thousand scores.
    """
    is_on_cpu = scores.device.type == relevance.device.type == "cpu" and settings.backend != "torch"
    if not is_on_cpu or settings.level_weights is not None or settings.epsilon != 0:
        return None
    relevant = relevance if relevance.dtype == torch.bool else relevance != 0
    if relevant is not relevance and not torch.equal(relevant.to(relevance.dtype), relevance):
        return None
    dtype = value_dtype(scores.dtype)
    try:
        value, u = compiled.infer_one(scores.detach().to(dtype), relevant, loss_of(settings))
    except ValueError:
        # One class only, or a bad score: the general way knows what to do, or to say.
        return None
    return torch.tensor(value, dtype=dtype), u, torch.empty(0, dtype=torch.int64)


def evaluate(scores: Tensor, relevance: Tensor, lists: Lists, settings: Settings) -> Found:
    """Values, coefficients (gathered) and usability of lists; graded relevance level by level."""
    loss = loss_of(settings)
    levels = make_levels(relevance, lists, loss, settings)
    flat = lists.gather(scores.detach()).to(value_dtype(scores.dtype))
    total: Found | None = None
    try:
        for relevant, weights in levels:
            found = infer(flat, relevant, lists.offsets, loss, settings)
            if weights is not None:
                share = torch.repeat_interleave(weights, lists.sizes, output_size=flat.shape[0])
                found = Found(found.values * weights, found.coefficients * share.to(flat.dtype), found.usable)
            total = found if total is None else _add(total, found)
    except BadScore as error:
        raise ValueError(_describe(flat, error.place, lists)) from None
    except ValueError as error:
        # The kernels name a place in the gathered scores.
        bad = ~(flat.abs() <= on_device.LARGEST_SCORE)
        if not bool(bad.any()):
            raise
        raise ValueError(_describe(flat, int(bad.to(torch.uint8).argmax()), lists)) from error
    if total is None:
        nothing = flat.new_zeros(lists.n_lists)
        return Found(nothing, torch.zeros_like(flat), nothing.bool())
    return total


def infer(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss, settings: Settings) -> Found:
    """Inference on gathered lists of binary relevance: compiled on the CPU, by PyTorch's operators elsewhere."""
    is_compiled = settings.backend == "compiled" or (settings.backend == "auto" and scores.device.type == "cpu")
    if is_compiled and scores.device.type != "cpu":
        raise ValueError(f"backend='compiled' serves tensors on the CPU only, the scores are on {scores.device}")
    if settings.epsilon == 0:
        return (compiled if is_compiled else on_device).infer(scores, relevant, offsets, loss)
    module = compiled if is_compiled else direct_on_device
    return module.infer_direct(scores, relevant, offsets, loss, settings.epsilon)


def _add(first: Found, second: Found) -> Found:
    return Found(first.values + second.values, first.coefficients + second.coefficients, first.usable | second.usable)


def _describe(flat: Tensor, k: int, lists: Lists) -> str:
    value = flat[k].item()
    problem = "its differences to other scores would overflow" if abs(value) < float("inf") else "scores must be finite"
    return f"scores{lists.place(k)} is {value}: {problem}"


rank_loss_operator = torch.library.custom_op(
    "rankhinge::rank_loss",
    _compute,
    mutates_args=(),
    schema="(Tensor scores, Tensor relevance, Tensor? mask, Tensor? groups, int dim, str settings)"
    " -> (Tensor, Tensor, Tensor)",
)


@rank_loss_operator.register_fake
def _(
    scores: Tensor, relevance: Tensor, mask: Tensor | None, groups: Tensor | None, dim: int, settings: str
) -> tuple[Tensor, Tensor, Tensor]:
    dtype = value_dtype(scores.dtype)
    u = torch.empty(scores.shape, dtype=dtype, device=scores.device)
    nothing = scores.new_empty(0, dtype=torch.int64)
    if settings_of(settings).reduction != "none":
        return scores.new_empty((), dtype=dtype), u, nothing
    if groups is None:
        shape = [size for axis, size in enumerate(scores.shape) if axis != dim]
        return scores.new_empty(shape, dtype=dtype), u, nothing
    n_lists = torch.library.get_ctx().new_dynamic_size()
    return scores.new_empty(n_lists, dtype=dtype), u, scores.new_empty(scores.shape, dtype=torch.int64)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    scores, dim, settings = inputs[0], inputs[4], inputs[5]
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1], output[2])
    ctx.dtype = scores.dtype
    ctx.dim = dim if settings_of(settings).reduction == "none" else -1


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    u, list_of = ctx.saved_tensors
    return differentiate(gradient, u, list_of, ctx.dim, ctx.dtype), None, None, None, None, None


rank_loss_operator.register_autograd(_backward, setup_context=_keep)


class _Eager(torch.autograd.Function):
    """The operator without the operator."""

    # One output, and a context set up in place: PyTorch's newer style looks at the signature at every call.
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        output = _compute(*inputs)
        _keep(ctx, inputs, output)
        return output[0]

    backward = staticmethod(_backward)


def differentiate(
    gradient: Tensor | None, coefficients: Tensor, list_of: Tensor, dim: int, dtype: torch.dtype
) -> Tensor | None:
    """The backward pass; an operator only where its own derivative may be asked for, or a compiler looks at it."""
    if gradient is None:
        return None
    if torch.is_grad_enabled():
        # The coefficients depend on the scores, though the eager way does not record it: a second derivative must fail.
        return _pull_back_operator(gradient, coefficients.detach().requires_grad_(), list_of, dim, dtype)
    if torch.compiler.is_compiling():
        return _pull_back_operator(gradient, coefficients, list_of, dim, dtype)
    return _pull_back(gradient, coefficients, list_of, dim, dtype)


def _pull_back(gradient: Tensor, coefficients: Tensor, list_of: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """The coefficients times the gradient of the value (dim < 0: one number) or of each list's value."""
    if list_of.numel():
        gradient = gradient[list_of]
    elif dim >= 0:
        gradient = gradient.unsqueeze(dim)
    return (gradient * coefficients).to(dtype)


_pull_back_operator = torch.library.custom_op(
    "rankhinge::pull_back",
    _pull_back,
    mutates_args=(),
    schema="(Tensor gradient, Tensor coefficients, Tensor list_of, int dim, ScalarType dtype) -> Tensor",
)


@_pull_back_operator.register_fake
def _(gradient: Tensor, coefficients: Tensor, list_of: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    return torch.empty(coefficients.shape, dtype=dtype, device=coefficients.device)


def _refuse(ctx: Any, gradient: Tensor) -> None:
    raise RuntimeError(
        "rankhinge's losses cannot be differentiated twice: they are piecewise linear in the scores, "
        "their second derivative is 0 wherever there is one"
    )


_pull_back_operator.register_autograd(_refuse)
