"""The operators that PyTorch sees: opaque to `torch.compile`, differentiable once.

``rankhinge::rank_loss`` returns the value and, because inference finds both at once, the gradient u with respect to the
scores; ``rankhinge::retrieval_loss`` does so for embeddings. The backward pass only multiplies, if need be in an
operator of its own (``rankhinge::once``), so that a second derivative is refused and not silently 0.

To call an operator from Python costs more than inference on a few hundred scores. Where nobody looks at the graph,
`rank_loss` takes the shorter way of an ``autograd.Function`` with the same forward and backward pass; the transforms of
`torch.func` want one in a style of their own.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from rankhinge._validation import warn_user
from rankhinge.losses import RankingLoss
from rankhinge.torch import compiled, direct_on_device, on_device
from rankhinge.torch.levels import make_levels
from rankhinge.torch.lists import TensorLists, make_lists
from rankhinge.torch.on_device import BadScore, Found
from rankhinge.torch.settings import Settings, loss_of, settings_of

__all__ = [
    "evaluate",
    "is_plain",
    "once",
    "one_by_one",
    "rank_loss",
    "rank_loss_operator",
    "refuse_second",
    "value_dtype",
    "warn_of_nothing",
]


def value_dtype(dtype: torch.dtype) -> torch.dtype:
    """Values and gradients are computed in float32 at least."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def rank_loss(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None,
    groups: Tensor | None,
    dim: int,
    settings: str,
    epsilon: float,
) -> Tensor:
    """The reduced value of tensors that `check_shapes` has let in.

    `epsilon` is 0 for the structured hinge, else, for direct loss minimisation, ε with the sign of the update.
    """
    inputs = (scores, relevance, mask, groups, dim, settings, epsilon)
    if not is_plain(scores):
        return rank_loss_operator(*inputs)[0]
    if torch._C._are_functorch_transforms_active():
        return _Transformed.apply(*inputs)[0]
    return _Eager.apply(*inputs)[0]


def is_plain(tensor: Tensor) -> bool:
    """Whether an ``autograd.Function`` will do: subclasses (fake tensors for instance) and compilers want operators."""
    kind_is_plain = type(tensor) in (Tensor, torch.nn.Parameter) and tensor.device.type != "meta"
    return kind_is_plain and not torch.compiler.is_compiling()


def _compute(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None,
    groups: Tensor | None,
    dim: int,
    settings: str,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The reduced value, its gradient, and, where the backward pass needs it, the list of each sample."""
    chosen = settings_of(settings)
    if scores.ndim == 1 and mask is None and groups is None and epsilon == 0:
        found = _of_one_list(scores, relevance, chosen)
        if found is not None:
            return found
    lists = make_lists(scores, mask, groups, dim)
    values, u, usable = evaluate(scores, relevance, lists, chosen, epsilon)
    if not bool(usable.any()):
        warn_of_nothing(lists.n_lists)
    dtype = value_dtype(scores.dtype)
    if scores.device.type == "cpu" and not bool(torch.isfinite(values.to(dtype)).all()):
        flat = lists.gather(scores.detach())
        raise ValueError(_describe(flat, int(flat.abs().argmax()), lists))
    if chosen.reduction == "none":
        list_of = scores.new_empty(0, dtype=torch.int64) if lists.list_of is None else lists.list_of
        return lists.per_list(values.to(dtype)), lists.scatter(u), list_of
    value = values.sum()
    if chosen.reduction == "mean" and lists.n_lists > 1:
        share = 1.0 / usable.sum().clamp(min=1).to(values.dtype)
        value, u = value * share, u * share.to(dtype)
    return value.to(dtype), lists.scatter(u), scores.new_empty(0, dtype=torch.int64)


def warn_of_nothing(n_lists: int) -> None:
    """Warn that there is nothing to learn from. Python shows the warning once."""
    which = "the list" if n_lists == 1 else f"none of the {n_lists} lists"
    has = "has no samples" if n_lists == 1 else "has samples"
    warn_user(
        f"{which} {has} of different relevance: the loss is 0 and so is its gradient. If that is not one odd batch: "
        "check relevance, dim and groups, or draw larger batches"
    )


def _of_one_list(scores: Tensor, relevance: Tensor, settings: Settings) -> tuple[Tensor, Tensor, Tensor] | None:
    """What `_compute` returns for a plain list on the CPU, with nothing in between; None where there is more to it.

    The tensors that many lists need take longer than inference on a few thousand scores.
    """
    is_on_cpu = scores.device.type == relevance.device.type == "cpu" and settings.backend != "torch"
    if not is_on_cpu or settings.level_weights is not None:
        return None
    relevant = relevance if relevance.dtype == torch.bool else relevance != 0
    if relevant is not relevance and not torch.equal(relevant.to(relevance.dtype), relevance):
        return None
    dtype = value_dtype(scores.dtype)
    try:
        value, u = compiled.infer_one(
            scores.detach().to(dtype).resolve_neg(), relevant, loss_of(settings), settings.bound
        )
    except ValueError:
        # One class only, or a bad score: the general way handles or reports it.
        return None
    if value > torch.finfo(dtype).max:
        return None
    # The CPU may not be where new tensors go by default.
    device = scores.device
    return torch.tensor(value, dtype=dtype, device=device), u, torch.empty(0, dtype=torch.int64, device=device)


def evaluate(scores: Tensor, relevance: Tensor, lists: TensorLists, settings: Settings, epsilon: float = 0.0) -> Found:
    """Values, coefficients (gathered) and usability of lists; graded relevance level by level."""
    loss = loss_of(settings)
    levels = make_levels(relevance, lists, loss, settings)
    flat = lists.gather(scores.detach()).to(value_dtype(scores.dtype))
    total: Found | None = None
    try:
        for relevant, weights in levels:
            found = infer(flat, relevant, lists.offsets, loss, settings, epsilon)
            if weights is not None:
                share = torch.repeat_interleave(weights, lists.sizes, output_size=flat.shape[0])
                found = Found(found.values * weights, found.coefficients * share.to(flat.dtype), found.usable)
            total = found if total is None else _add(total, found)
    except BadScore as error:
        raise ValueError(_describe(flat, error.place, lists)) from None
    except ValueError as error:
        # The kernels name a place in the gathered scores.
        bad = on_device.unusable(flat)
        if not bool(bad.any()):
            raise
        raise ValueError(_describe(flat, int(bad.to(torch.uint8).argmax()), lists)) from error
    if total is None:
        nothing = flat.new_zeros(lists.n_lists)
        return Found(nothing, torch.zeros_like(flat), nothing.bool())
    return total


def infer(
    scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss, settings: Settings, epsilon: float
) -> Found:
    """Inference on gathered lists of binary relevance: compiled on the CPU, by PyTorch's operators elsewhere."""
    backend = settings.backend
    is_compiled = backend == "compiled" or (backend == "auto" and scores.device.type == "cpu")
    if is_compiled and scores.device.type != "cpu":
        raise ValueError(f"backend='compiled' serves tensors on the CPU only, the scores are on {scores.device}")
    if epsilon == 0:
        here: Any = compiled if is_compiled else on_device
        return (here.infer_tight if settings.bound == "tight" else here.infer)(scores, relevant, offsets, loss)
    module = compiled if is_compiled else direct_on_device
    return module.infer_direct(scores, relevant, offsets, loss, epsilon)


def _add(first: Found, second: Found) -> Found:
    return Found(first.values + second.values, first.coefficients + second.coefficients, first.usable | second.usable)


def _describe(flat: Tensor, k: int, lists: TensorLists) -> str:
    value = flat[k].item()
    problem = "its differences to other scores would overflow" if abs(value) < float("inf") else "scores must be finite"
    return f"scores{lists.place(k)} is {value}: {problem}"


_N_INPUTS = len(inspect.signature(_compute).parameters)
rank_loss_operator = torch.library.custom_op(
    "rankhinge::rank_loss",
    _compute,
    mutates_args=(),
    schema="(Tensor scores, Tensor relevance, Tensor? mask, Tensor? groups, int dim, str settings, float epsilon)"
    " -> (Tensor, Tensor, Tensor)",
)


@rank_loss_operator.register_fake
def _(
    scores: Tensor,
    relevance: Tensor,
    mask: Tensor | None,
    groups: Tensor | None,
    dim: int,
    settings: str,
    epsilon: float,
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
    if gradient is None:
        return (None,) * _N_INPUTS
    u, list_of = ctx.saved_tensors
    return once(_spread(gradient, list_of, ctx.dim), u).to(ctx.dtype), *(None,) * (_N_INPUTS - 1)


def _spread(gradient: Tensor, list_of: Tensor, dim: int) -> Tensor:
    """The gradient of the value (dim < 0: one number) or of each list's value, for each sample."""
    if list_of.numel():
        return gradient[list_of]
    return gradient.unsqueeze(dim) if dim >= 0 else gradient


def once(gradient: Tensor, slopes: Tensor) -> Tensor:
    """Their product, a backward pass, which refuses to be differentiated."""
    if not torch.is_grad_enabled():
        return gradient * slopes
    # The slopes depend on the inputs of the forward pass. As outputs of the forward pass they record that, so that a
    # second derivative with respect to these inputs leads back to this function.
    return _once_operator(gradient, slopes if slopes.requires_grad else slopes.detach().requires_grad_())


_once_operator = torch.library.custom_op(
    "rankhinge::once", torch.mul, mutates_args=(), schema="(Tensor gradient, Tensor slopes) -> Tensor"
)


@_once_operator.register_fake
def _(gradient: Tensor, slopes: Tensor) -> Tensor:
    return torch.empty_like(slopes)


def refuse_second(*_: Any) -> None:
    """Say why there is no second derivative."""
    raise RuntimeError(
        "rankhinge's losses cannot be differentiated twice: as functions of the scores they are piecewise linear, and "
        "how the slopes change with the ranking is not recorded"
    )


_once_operator.register_autograd(refuse_second)
rank_loss_operator.register_autograd(_backward, setup_context=_keep)


class _Eager(torch.autograd.Function):
    """The operator without the operator."""

    # A context set up in place: PyTorch's newer style looks at the signature at every call. The gradient is an output
    # for the sake of `once`.
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        output = _compute(*inputs)
        _keep(ctx, inputs, output)
        return output[:2]

    backward = staticmethod(_backward)


def one_by_one(
    function: type[torch.autograd.Function], info: Any, in_dims: tuple[int | None, ...], inputs: tuple[Any, ...]
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """A rule for `torch.vmap`: the function of one sample after the other."""
    found = [
        function.apply(*(x if d is None else x.select(d, b) for x, d in zip(inputs, in_dims, strict=True)))
        for b in range(info.batch_size)
    ]
    if len({tuple(part.shape for part in parts) for parts in found}) > 1:
        raise ValueError("under vmap, all samples must have the same number of lists: their values cannot be stacked")
    outputs = tuple(torch.stack(parts) for parts in zip(*found, strict=True))
    return outputs, (0,) * len(outputs)


class _Transformed(torch.autograd.Function):
    """The same in the newer style, with a rule for `torch.vmap`: one after the other."""

    forward = staticmethod(_compute)
    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, of_u: Tensor | None, _: Any) -> tuple[Any, ...]:
        # Operators do not take part in transforms. But u is an output, so its derivative is asked for here.
        if of_u is not None:
            refuse_second()
        u, list_of = ctx.saved_tensors
        found = None if gradient is None else (_spread(gradient, list_of, ctx.dim) * u).to(ctx.dtype)
        return found, *(None,) * (_N_INPUTS - 1)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return one_by_one(_Transformed, info, in_dims, inputs)
