"""Losses as compiled callbacks: the one thing in the kernels that depends on the loss.

A kernel that took a jitted step as its argument would be compiled anew for every loss and never come from the
disk cache. So each family of losses is compiled into three small C functions, and the kernels, compiled once
for all losses, call them by address:

``half_scale(P, N, table)``
    The factor ``P N / 2`` times the family's normaliser: the search maximises ``f_j P N / 2``, whose differences
    ``(p_i - n_j) + half_scale · step`` need no division by ``P N``.
``best_rank(j, score, low, high, positives, P, N, half_scale, table)``
    The largest maximiser of f_j over the ranks ``low … high``. The scan, with the step inlined, is inside: a call
    by address costs nothing beside it.
``loss(counts_above, P, N, table)``
    Δ from the counts, without cancellation.

One family is known to the kernels by name: the AP loss, whose f_j is concave where it matters (see `edges`).
"""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankhinge._jit import callback
from rankhinge.losses import AUC, DCG, AveragePrecision, CustomLoss, RankingLoss, ReciprocalRank

_I, _F, _FLOATS, _INTS = types.int64, types.float64, types.CPointer(types.float64), types.CPointer(types.int64)
_HALF_SCALE = _F(_I, _I, _FLOATS)
_BEST_RANK = _I(_I, _F, _I, _I, _FLOATS, _I, _I, _F, _FLOATS)
_LOSS = _F(_INTS, _I, _I, _FLOATS)
_LLVM = {
    _I: ir.IntType(64),
    _F: ir.DoubleType(),
    _FLOATS: ir.DoubleType().as_pointer(),
    _INTS: ir.IntType(64).as_pointer(),
}


_compiling = threading.RLock()
_packed: dict[str, tuple[tuple[Any, ...], NDArray[np.int64]]] = {}


def _renew_lock() -> None:
    global _compiling
    _compiling = threading.RLock()


# A child that was forked while another thread compiled would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class CompiledLoss(NamedTuple):
    """Addresses of a loss's callbacks, whether it is the AP loss, and the table they read, as the kernels take them."""

    addresses: NDArray[np.int64]
    table: NDArray[np.float64]


def compile_loss(loss: RankingLoss, n_samples: int) -> CompiledLoss:
    """Callbacks for `loss` on lists of at most `n_samples` samples."""
    loss.require_suitable(n_samples)
    return CompiledLoss(_addresses(loss), loss.table(n_samples + 1))


def _addresses(loss: RankingLoss) -> NDArray[np.int64]:
    owner = _OWNERS.get(loss.family)
    # The kernels would not see a step that a subclass has of its own.
    if owner is None or type(loss).step is not owner.step:
        raise TypeError(f"{loss!r} has no compiled step: use CustomLoss for a step of your own")
    if isinstance(loss, CustomLoss):
        if loss._compiled is None:
            # One thread at a time: code that another has replaced would be freed while it is still called.
            with _compiling:
                # Kept on the loss: as long as it lives, so does its code.
                if loss._compiled is None:
                    loss._compiled = _pack(_custom_callbacks(loss))
        return loss._compiled[1]
    if loss.family not in _packed:
        with _compiling:
            if loss.family not in _packed:
                _packed[loss.family] = _pack(_FAMILIES[loss.family](), is_ap=loss.family == "ap")
    return _packed[loss.family][1]


def _pack(callbacks: tuple[Any, ...], is_ap: bool = False) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    return callbacks, np.array([*(callback.address for callback in callbacks), is_ap], dtype=np.int64)


def _ap_callbacks() -> tuple[Any, ...]:
    @callback(_HALF_SCALE)
    def half_scale(n_positives, n_negatives, table):
        return 0.5 * n_negatives

    @callback(_BEST_RANK)
    def best_rank(j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
        p = carray(positives, n_positives)
        value, best_value, best = 0.0, 0.0, high
        for i in range(high - 1, low - 1, -1):
            place = float(i + j)
            value -= (p[i - 1] - score) - half_scale * i / (place * (place - 1.0))
            if value > best_value:
                best_value, best = value, i
        return best

    @callback(_LOSS)
    def loss(counts_above, n_positives, n_negatives, table):
        a = carray(counts_above, n_positives)
        total = 0.0
        for i in range(n_positives):
            total += a[i] / (i + 1.0 + a[i])
        return total / n_positives

    return half_scale, best_rank, loss


def _discount_callbacks() -> tuple[Any, ...]:
    @callback(_HALF_SCALE)
    def half_scale(n_positives, n_negatives, table):
        discount = carray(table, n_positives + 1)
        total = 0.0
        for i in range(1, n_positives + 1):
            total += discount[i]
        return 0.5 * n_positives * n_negatives / total

    @callback(_BEST_RANK)
    def best_rank(j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
        p = carray(positives, n_positives)
        discount = carray(table, n_positives + n_negatives + 1)
        value, best_value, best = 0.0, 0.0, high
        for i in range(high - 1, low - 1, -1):
            value -= (p[i - 1] - score) + half_scale * (discount[i + j] - discount[i + j - 1])
            if value > best_value:
                best_value, best = value, i
        return best

    @callback(_LOSS)
    def loss(counts_above, n_positives, n_negatives, table):
        a = carray(counts_above, n_positives)
        discount = carray(table, n_positives + n_negatives + 1)
        lost, total = 0.0, 0.0
        for i in range(n_positives):
            lost += discount[i + 1] - discount[i + 1 + a[i]]
            total += discount[i + 1]
        return lost / total

    return half_scale, best_rank, loss


def _pairs_half_scale() -> Any:
    @callback(_HALF_SCALE)
    def half_scale(n_positives, n_negatives, table):
        return 0.5 * n_positives * n_negatives

    return half_scale


def _reciprocal_rank_callbacks() -> tuple[Any, ...]:
    @callback(_BEST_RANK)
    def best_rank(j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
        p = carray(positives, n_positives)
        value, best_value, best = 0.0, 0.0, high
        first_step = -half_scale / (float(j) * (j + 1.0))
        for i in range(high - 1, low - 1, -1):
            value -= p[i - 1] - score
            if i == 1:
                value -= first_step
            if value > best_value:
                best_value, best = value, i
        return best

    @callback(_LOSS)
    def loss(counts_above, n_positives, n_negatives, table):
        above_first = carray(counts_above, n_positives)[0]
        return above_first / (1.0 + above_first)

    return _pairs_half_scale(), best_rank, loss


def _auc_callbacks() -> tuple[Any, ...]:
    @callback(_BEST_RANK)
    def best_rank(j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
        p = carray(positives, n_positives)
        value, best_value, best = 0.0, 0.0, high
        for i in range(high - 1, low - 1, -1):
            value -= (p[i - 1] - score) - 0.5
            if value > best_value:
                best_value, best = value, i
        return best

    @callback(_LOSS)
    def loss(counts_above, n_positives, n_negatives, table):
        a = carray(counts_above, n_positives)
        total = 0.0
        for i in range(n_positives):
            total += a[i]
        return total / n_positives / n_negatives

    return _pairs_half_scale(), best_rank, loss


def _custom_callbacks(custom: CustomLoss) -> tuple[Any, ...]:
    step, partial_sum = custom.jitted()

    @cfunc(_BEST_RANK, error_model="numpy")
    def best_rank(j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
        p = carray(positives, n_positives)
        value, best_value, best = 0.0, 0.0, high
        for i in range(high - 1, low - 1, -1):
            value -= (p[i - 1] - score) + half_scale * step(j, i, n_positives, n_negatives)
            if value > best_value:
                best_value, best = value, i
        return best

    return _pairs_half_scale(), best_rank, _custom_loss(step, partial_sum)


def _custom_loss(step: Any, partial_sum: Any) -> Any:
    if partial_sum is None:

        @cfunc(_LOSS, error_model="numpy")
        def loss(counts_above, n_positives, n_negatives, table):
            a = carray(counts_above, n_positives)
            total = 0.0
            for i in range(n_positives):
                # A sum for each positive, or rounding errors would grow with P N.
                part = 0.0
                for j in range(a[i]):
                    part -= step(j + 1, i + 1, n_positives, n_negatives)
                total += part
            return total

        return loss

    @cfunc(_LOSS, error_model="numpy")
    def loss_by_partial_sums(counts_above, n_positives, n_negatives, table):
        a = carray(counts_above, n_positives)
        total, j = 0.0, 0
        for i in range(n_positives):
            # Negatives a_{i-1} + 1 … a_i stand directly before positive i, above it and all that follow.
            while j < a[i]:
                j += 1
                whole = partial_sum(j, n_positives + 1, n_positives, n_negatives)
                total -= whole - partial_sum(j, i + 1, n_positives, n_negatives)
        return total

    return loss_by_partial_sums


_OWNERS: dict[str, type[RankingLoss]] = {
    "ap": AveragePrecision,
    "discount": DCG,
    "rr": ReciprocalRank,
    "auc": AUC,
    "custom": CustomLoss,
}
_FAMILIES = {
    "ap": _ap_callbacks,
    "discount": _discount_callbacks,
    "rr": _reciprocal_rank_callbacks,
    "auc": _auc_callbacks,
}


def _caller(signature: Any) -> Any:
    """An intrinsic ``call(address, *arguments)``; pointer arguments are given as integer addresses."""
    plain = [_I if kind in (_FLOATS, _INTS) else kind for kind in signature.args]

    def codegen(context, builder, _signature, arguments):
        kinds = [_LLVM[kind] for kind in signature.args]
        function_type = ir.FunctionType(_LLVM[signature.return_type], kinds)
        function = builder.inttoptr(arguments[0], function_type.as_pointer())
        values = [
            builder.inttoptr(value, kind) if kind.is_pointer else value
            for value, kind in zip(arguments[1:], kinds, strict=True)
        ]
        return builder.call(function, values)

    return signature.return_type(_I, *plain), codegen


@intrinsic
def call_half_scale(typingctx, address, n_positives, n_negatives, table):
    """``half_scale`` at an address."""
    return _caller(_HALF_SCALE)


@intrinsic
def call_best_rank(typingctx, address, j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
    """``best_rank`` at an address."""
    return _caller(_BEST_RANK)


@intrinsic
def call_loss(typingctx, address, counts_above, n_positives, n_negatives, table):
    """``loss`` at an address."""
    return _caller(_LOSS)
