"""Metric learning: a loss over a batch of embeddings, where each sample is a query that ranks the others."""

from __future__ import annotations

import inspect
import math
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch.lists import TensorLists, make_lists
from rankhinge.torch.module import LossModule
from rankhinge.torch.operators import evaluate, is_plain, once, one_by_one, refuse_second, value_dtype, warn_of_nothing
from rankhinge.torch.settings import Settings, encode, settings_of
from rankhinge.torch.tensor_losses import AT_ONCE

__all__ = ["RetrievalLoss", "retrieval_loss"]

_SIMILARITIES = ("cosine", "dot")
# How many similarities are held at a time: 16 MB in float32, and a few times that during inference.


def retrieval_loss(
    embeddings: Tensor,
    labels: Tensor,
    gallery: Tensor | None = None,
    gallery_labels: Tensor | None = None,
    *,
    loss: str | RankingLoss = "ap",
    similarity: str = "cosine",
    scale: float | Tensor = 1.0,
    reduction: str = "mean",
    chunk_size: int | None = None,
    backend: str = "auto",
    bound: str = "convex",
) -> Tensor:
    r"""Mean structured hinge over a batch of embeddings, where each sample is a query that ranks all others.

    .. math:: \frac1Q \sum_q J(s_q), \qquad s_{qk} = \text{scale} \cdot \langle e_q, e_k \rangle, \quad k \ne q,

    where the samples with the query's label are relevant. For ``loss="ap"`` this is an upper bound on one minus mean
    average precision, convex in the similarities. Classes may have any size and batches any composition. A query does
    not count if it is alone in its class or its class is the whole batch. With a gallery, each sample ranks the
    gallery.

    Parameters
    ----------
    embeddings : Tensor of shape (n, d), any floating dtype
    labels : Tensor of shape (n,)
    gallery : Tensor of shape (m, d), optional
        What the batch ranks instead of itself, for instance a queue of earlier batches, documents or another view. It
        gets a gradient if it requires one.
    gallery_labels : Tensor of shape (m,), optional
        Required with a gallery.
    loss : str or RankingLoss, default "ap"
        As for `rank_hinge`.
    similarity : {"cosine", "dot"}, default "cosine"
        ``"cosine"`` normalises the embeddings first.
    scale : float or Tensor of one element, default 1.0
        Factor of the similarities, the inverse of a temperature. The hinge asks for a margin of about half the loss
        between relevant and other samples, and cosines do not exceed 1. So the larger the scale, the smaller the margin
        in comparison. A tensor gets a gradient if it requires one.
    reduction : {"mean", "sum"}, default "mean"
        Over the queries that count. 0 if there are none.
    chunk_size : int, optional
        Queries processed at a time. The n × n similarities are never in memory together: it takes O(n d) plus
        ``chunk_size · n``. Default: as many queries as give 4 million similarities.
    backend : {"auto", "compiled", "torch"}, default "auto"
        As for `rank_hinge`.
    bound : {"convex", "tight"}, default "convex"
        As for `rank_hinge`.

    Returns
    -------
    Tensor
        Shape (). float64 for float64 embeddings, else float32.

    Notes
    -----
    The gradient is computed together with the value, in O(n² d) operations like the similarities themselves.

    Examples
    --------
    >>> import torch
    >>> from rankhinge.torch import retrieval_loss
    >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], requires_grad=True)
    >>> value = retrieval_loss(embeddings, torch.tensor([0, 0, 1, 1]))
    >>> value.backward()
    >>> value.item(), retrieval_loss(embeddings, torch.tensor([0, 1, 0, 1])).item() > 1
    (0.0, True)
    """
    _check(similarity, scale, reduction, chunk_size)
    settings = encode(loss, reduction, backend, "exponential", None, bound)
    return _evaluate(embeddings, labels, gallery, gallery_labels, similarity, scale, chunk_size, settings)


def _check_embeddings(embeddings: Any, labels: Any, names: tuple[str, str]) -> None:
    for name, tensor in zip(names, (embeddings, labels), strict=True):
        if not isinstance(tensor, Tensor) or tensor.layout != torch.strided:
            raise ValueError(f"{name} must be a dense tensor, got {type(tensor).__name__}")
    if embeddings.ndim != 2 or embeddings.numel() == 0 or not embeddings.is_floating_point():
        raise ValueError(
            f"{names[0]} must be of shape (n, d), not empty, of a floating-point dtype, "
            f"got {embeddings.dtype} of shape {tuple(embeddings.shape)}"
        )
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(f"{names[1]} have shape {tuple(labels.shape)}, but there are {embeddings.shape[0]} {names[0]}")
    if labels.device != embeddings.device:
        raise ValueError(f"{names[1]} are on {labels.device}, {names[0]} on {embeddings.device}")


def _with_gallery(embeddings: Tensor, labels: Tensor, gallery: Any, gallery_labels: Any) -> tuple[Tensor, Tensor]:
    """The queries, and below them the samples that they rank."""
    if gallery is None or gallery_labels is None:
        raise ValueError("gallery and gallery_labels go together: give both, or neither")
    _check_embeddings(gallery, gallery_labels, ("gallery", "gallery_labels"))
    if gallery.shape[1] != embeddings.shape[1] or gallery.device != embeddings.device:
        raise ValueError(
            f"embeddings have {embeddings.shape[1]} columns on {embeddings.device}, "
            f"the gallery has {gallery.shape[1]} on {gallery.device}"
        )
    return torch.cat([embeddings, gallery.to(embeddings.dtype)]), torch.cat([labels, gallery_labels])


def _evaluate(
    embeddings: Tensor,
    labels: Tensor,
    gallery: Tensor | None,
    gallery_labels: Tensor | None,
    similarity: str,
    scale: float | Tensor,
    chunk_size: int | None,
    settings: str,
) -> Tensor:
    _check_embeddings(embeddings, labels, ("embeddings", "labels"))
    n_queries = 0
    if gallery is not None or gallery_labels is not None:
        n_queries = embeddings.shape[0]
        embeddings, labels = _with_gallery(embeddings, labels, gallery, gallery_labels)
    wide = embeddings.to(value_dtype(embeddings.dtype))
    if similarity == "cosine":
        wide = _normalised(wide)
    if isinstance(scale, Tensor):
        # A step of an optimiser may have led it anywhere.
        _check_scale(scale)
        # ⟨√c e, √c e'⟩ = c ⟨e, e'⟩, and autograd does the rest.
        wide, scale = wide * scale.to(wide).reshape(()).sqrt(), 1.0
    rows = chunk_size or max(1, AT_ONCE // embeddings.shape[0])
    if torch._C._are_functorch_transforms_active():
        # Whether a gradient will be asked for cannot be seen from inside.
        return _Transformed.apply(wide, labels, n_queries, scale, rows, True, settings)[0]
    with_gradient = torch.is_grad_enabled() and wide.requires_grad
    inputs = (wide, labels, n_queries, scale, rows, with_gradient, settings)
    return (_Eager.apply if is_plain(wide) else _retrieval)(*inputs)[0]


def _normalised(embeddings: Tensor) -> Tensor:
    """Rows of length 1, whatever their size; rows of zeros stay, with a gradient of 0."""
    # Lengths do not depend on this factor, and so neither does the gradient.
    largest = embeddings.detach().abs().amax(dim=1, keepdim=True)
    rows = torch.nn.functional.normalize(embeddings / torch.where(largest > 0, largest, 1.0), dim=1)
    return torch.where(largest == 0, 0.0, rows)


def _compute(
    embeddings: Tensor, labels: Tensor, n_queries: int, scale: float, rows: int, with_gradient: bool, settings: str
) -> tuple[Tensor, Tensor]:
    """The value, and its gradient if wanted.

    The first `n_queries` rows rank those after them; if there are none, each row ranks all others.
    """
    embeddings, chosen = embeddings.detach(), settings_of(settings)
    bad = ~torch.isfinite(embeddings)
    if bool(bad.any()):
        row, column = torch.nonzero(bad)[0].tolist()
        raise ValueError(f"embeddings[{row}, {column}] is {embeddings[row, column].item()}: they must be finite")
    _refuse_overflow(embeddings, scale)
    gradient = torch.zeros_like(embeddings) if with_gradient else embeddings.new_empty(0)
    totals = []
    # Rounded to half the bits, similarities would be tied: no autocast here.
    with torch.autocast(embeddings.device.type, enabled=False):
        for first in range(0, n_queries or embeddings.shape[0], rows):
            chunk = slice(first, min(first + rows, n_queries or embeddings.shape[0]))
            totals.append(_add_chunk(embeddings, labels, n_queries, scale, chunk, chosen, gradient))
    value, n_usable = torch.stack(totals).sum(dim=0).unbind()
    if not bool(n_usable):
        warn_of_nothing(n_queries or embeddings.shape[0])
    if chosen.reduction == "mean":
        share = 1.0 / n_usable.clamp(min=1)
        value, gradient = value * share, gradient * share.to(gradient.dtype)
    return value.to(embeddings.dtype), gradient


def _refuse_overflow(embeddings: Tensor, scale: float) -> None:
    """Raise if a similarity might be too large, by the largest entry."""
    n_columns = embeddings.shape[1]
    place = int(embeddings.abs().argmax())
    largest = embeddings.flatten()[place].item()
    if scale * n_columns * largest * largest > 0.1 * torch.finfo(embeddings.dtype).max:
        raise ValueError(
            f"embeddings[{place // n_columns}, {place % n_columns}] is {largest}: similarities would overflow; choose "
            "similarity='cosine' or a smaller scale"
        )


def _add_chunk(
    embeddings: Tensor,
    labels: Tensor,
    n_queries: int,
    scale: float,
    chunk: slice,
    settings: Settings,
    gradient: Tensor,
) -> Tensor:
    """Sum of the values and number of usable queries among some rows; adds to the gradient if there is one."""
    queries, n = embeddings[chunk], embeddings.shape[0]
    if n_queries:
        ranked = slice(n_queries, n)
        scores, relevant = (scale * queries) @ embeddings[ranked].T, labels[chunk, None] == labels[ranked]
        values, u, usable = evaluate(scores, relevant, make_lists(scores, None, None, 1), settings)
        if gradient.numel():
            weights = u.reshape(scores.shape)
            gradient[chunk] += scale * (weights @ embeddings[ranked])
            gradient[ranked] += scale * (weights.T @ queries)
        return torch.stack([values.sum(), usable.sum().to(values.dtype)])
    scores = (scale * queries) @ embeddings.T
    relevant = labels[chunk, None] == labels
    # Each query's similarity to itself goes to the end of its row, into a list of its own, which is not usable.
    own = torch.arange(chunk.start, chunk.start + len(queries), device=scores.device)[:, None]
    for matrix in (scores, relevant):
        matrix.scatter_(1, own, matrix[:, -1:].clone())
    starts = n * torch.arange(len(queries), device=scores.device)
    offsets = torch.cat([torch.stack([starts, starts + n - 1], dim=1).reshape(-1), (starts[-1:] + n)])
    values, u, usable = evaluate(scores, relevant, TensorLists(scores.shape, 1, offsets), settings)
    if gradient.numel():
        weights = u.reshape(scores.shape)
        weights[:, -1:] = weights.gather(1, own)
        weights.scatter_(1, own, 0.0)
        gradient[chunk] += scale * (weights @ embeddings)
        gradient += scale * (weights.T @ queries)
    return torch.stack([values.sum(), usable.sum().to(values.dtype)])


_N_INPUTS = len(inspect.signature(_compute).parameters)
_retrieval = torch.library.custom_op(
    "rankhinge::retrieval_loss",
    _compute,
    mutates_args=(),
    schema="(Tensor embeddings, Tensor labels, int n_queries, float scale, int rows, bool with_gradient, str settings)"
    " -> (Tensor, Tensor)",
)


@_retrieval.register_fake
def _(
    embeddings: Tensor, labels: Tensor, n_queries: int, scale: float, rows: int, with_gradient: bool, settings: str
) -> tuple[Tensor, Tensor]:
    return embeddings.new_empty(()), torch.empty_like(embeddings) if with_gradient else embeddings.new_empty(0)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    (slopes,) = ctx.saved_tensors
    return None if gradient is None else once(gradient, slopes), *(None,) * (_N_INPUTS - 1)


_retrieval.register_autograd(_backward, setup_context=_keep)


class _Eager(torch.autograd.Function):
    """The operator without the operator, which has no forward mode and would not say so."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        output = _compute(*inputs)
        _keep(ctx, inputs, output)
        return output

    backward = staticmethod(_backward)


class _Transformed(torch.autograd.Function):
    """The same for the transforms of `torch.func`, which do not handle operators."""

    forward = staticmethod(_compute)
    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, of_slopes: Tensor | None) -> tuple[Any, ...]:
        if of_slopes is not None:
            refuse_second()
        (slopes,) = ctx.saved_tensors
        return None if gradient is None else gradient * slopes, *(None,) * (_N_INPUTS - 1)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        return one_by_one(_Transformed, info, in_dims, inputs)


class RetrievalLoss(LossModule):
    """`retrieval_loss` as a module. It replaces SmoothAP and FastAP, and needs no special sampler.

    Parameters
    ----------
    loss, similarity, scale, reduction, chunk_size, backend, bound
        As for `retrieval_loss`. For a learnt temperature pass ``scale=torch.nn.Parameter(torch.tensor(16.0))``.

    Examples
    --------
    >>> import torch
    >>> from rankhinge.torch import RetrievalLoss
    >>> embeddings = torch.randn(6, 4, requires_grad=True)
    >>> RetrievalLoss("ap", scale=4.0)(embeddings, torch.tensor([0, 0, 0, 1, 1, 2])).backward()
    >>> embeddings.grad.shape
    torch.Size([6, 4])
    """

    _chosen = LossModule._chosen | {"similarity", "scale", "chunk_size", "bound"}

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        *,
        similarity: str = "cosine",
        scale: float | Tensor = 1.0,
        reduction: str = "mean",
        chunk_size: int | None = None,
        backend: str = "auto",
        bound: str = "convex",
    ) -> None:
        super().__init__()
        self.bound = bound
        self.loss = loss
        self.similarity = similarity
        self.scale = scale
        self.reduction = reduction
        self.chunk_size = chunk_size
        self.backend = backend
        self._encode()

    def _encode(self) -> None:
        _check(self.similarity, self.scale, self.reduction, self.chunk_size)
        self._keep(encode(self.loss, self.reduction, self.backend, "exponential", None, self.bound))

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        gallery: Tensor | None = None,
        gallery_labels: Tensor | None = None,
    ) -> Tensor:
        """The loss; see `retrieval_loss`."""
        return _evaluate(
            embeddings, labels, gallery, gallery_labels, self.similarity, self.scale, self.chunk_size, self._settings
        )

    def extra_repr(self) -> str:
        """What `print` shows between the brackets."""
        return f"{self.loss!r}, similarity={self.similarity!r}, scale={self.scale}, reduction={self.reduction!r}"


def _check(similarity: str, scale: float | Tensor, reduction: str, chunk_size: int | None) -> None:
    if similarity not in _SIMILARITIES:
        raise ValueError(f"similarity is {similarity!r}: choose one of {list(_SIMILARITIES)}")
    if isinstance(scale, Tensor):
        _check_scale(scale)
    # Written as a comparison, which `torch.compile` can trace for a scale that changes; `Real` declares no order.
    elif not (isinstance(scale, Real) and 0 < scale < math.inf):  # type: ignore[operator]
        raise ValueError(f"scale is {scale!r}: it must be a positive and finite number")
    if reduction == "none":
        raise ValueError("reduction is 'none': choose 'mean' or 'sum', or give a matrix of similarities to rank_hinge")
    if chunk_size is not None and not (isinstance(chunk_size, Integral) and chunk_size >= 1):
        raise ValueError(f"chunk_size is {chunk_size!r}: it must be an integer of at least 1")


def _check_scale(scale: Tensor) -> None:
    if scale.numel() != 1 or not scale.is_floating_point():
        raise ValueError(f"scale is {scale!r}: it must be a single floating-point number")
    # Compilers and transforms cannot look at the value; the roots of negative ones are NaN, and found later.
    unseen = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if not unseen and not 0 < scale.item() < math.inf:
        raise ValueError(f"scale is {scale.item()}: it must be positive and finite")
