"""Losses as compiled callbacks: the one thing in the kernels that depends on the loss.

A kernel that took a jitted step as its argument would be compiled anew for every loss and never come from the
disk cache. So the formulas of each loss are compiled into three small C functions, and the kernels, compiled once
for all losses, call them by address:

``divisor(P, N, table)``
    What the step and the parts are divided by.
``best_rank(j, score, low, high, positives, P, N, half_scale, table)``
    The largest maximiser of f_j over the ranks ``low … high``. The search maximises ``f_j P N / 2``, whose differences
    ``(p_i - n_j) + half_scale · step``, with half_scale = P N / 2 over the divisor, need no division by ``P N``. The
    scan, with the step inlined, is inside: a call by address costs nothing beside it.
``loss(counts_above, P, N, divisor, table)``
    Δ from the counts, without cancellation.

The kernels know one step themselves, that of AP, whose f_j is concave where it matters (see `edges`).
"""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankhinge._jit import callback
from rankhinge.losses import AveragePrecision, CustomLoss, RankingLoss
from rankhinge.losses.base import Formulas

_I, _F, _FLOATS, _INTS = types.int64, types.float64, types.CPointer(types.float64), types.CPointer(types.int64)
_DIVISOR = _F(_I, _I, _FLOATS)
_BEST_RANK = _I(_I, _F, _I, _I, _FLOATS, _I, _I, _F, _FLOATS)
_LOSS = _F(_INTS, _I, _I, _F, _FLOATS)
_PARTS = types.void(_I, _I, _I, _F, _FLOATS, _FLOATS)
_LLVM = {
    _I: ir.IntType(64),
    _F: ir.DoubleType(),
    _FLOATS: ir.DoubleType().as_pointer(),
    _INTS: ir.IntType(64).as_pointer(),
    types.void: ir.VoidType(),
}


class Code(NamedTuple):
    """Compiled callbacks, which must live as long as their addresses are used, and the addresses."""

    callbacks: tuple[Any, ...]
    addresses: NDArray[np.int64]


_compiling = threading.RLock()
_packed: dict[Any, Code] = {}
_parts: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _renew_lock() -> None:
    global _compiling
    _compiling = threading.RLock()


# A child forked while another thread compiles would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class CompiledLoss(NamedTuple):
    """What the kernels take: addresses of a loss's callbacks, whether its step is AP's, and the table they read."""

    addresses: NDArray[np.int64]
    table: NDArray[np.float64]


def compile_loss(loss: RankingLoss, n_samples: int) -> CompiledLoss:
    """Callbacks for `loss` on lists of at most `n_samples` samples."""
    far = loss.far(n_samples)
    if far is None:
        return compile_tabulated(loss, n_samples)
    loss.require_suitable(n_samples)
    formulas, table = far
    return CompiledLoss(_code_of(loss, formulas).addresses, table)


def compile_tabulated(loss: RankingLoss, n_samples: int) -> CompiledLoss:
    """The same with a table of all ranks, however many: `compile_parts` reads that."""
    loss.require_suitable(n_samples)
    code = _packed.get(type(loss)) or _code(loss)
    return CompiledLoss(code.addresses, loss.table(n_samples + 1))


def _code(loss: RankingLoss) -> Code:
    if isinstance(loss, CustomLoss):
        if loss._compiled is None:
            # One thread at a time: code that another has replaced would be freed while it is still called.
            with _compiling:
                # Kept on the loss: as long as it lives, so does its code.
                if loss._compiled is None:
                    jitted = dict(zip((loss.step_function, loss.partial_sum), loss.jitted(), strict=True))
                    loss._compiled = _compile(loss, loss.formulas(jitted.__getitem__))
        return loss._compiled
    kind = type(loss)
    if kind not in _packed:
        _packed[kind] = _code_of(loss, loss.formulas())
    return _packed[kind]


def _code_of(loss: RankingLoss, formulas: Formulas) -> Code:
    """Losses that differ only in their tables share their code."""
    if formulas not in _packed:
        with _compiling:
            if formulas not in _packed:
                _packed[formulas] = _compile(loss, formulas)
    return _packed[formulas]


def _compile(loss: RankingLoss, formulas: Formulas) -> Code:
    functions = (
        _divisor_callback(formulas, loss.has_discounts),
        best_rank_callback(formulas.step),
        _loss_callback(formulas),
    )
    addresses = [function.address for function in functions]
    return Code(functions, np.array([*addresses, formulas.step is AveragePrecision.step_formula], dtype=np.int64))


def compile_parts(loss: RankingLoss) -> Any:
    """A callback that fills ``out[a]``, a = 0 … N, with what positive i adds to Δ with a negatives above it.

    Its arguments are (i, P, N, divisor, table, out). Needed by direct loss minimisation alone, so compiled apart.
    """
    owner: Any = loss if isinstance(loss, CustomLoss) else type(loss)
    with _compiling:
        if owner not in _parts:
            jitted = {} if owner is not loss else {loss.step_function: loss.jitted()[0], loss.partial_sum: None}
            _parts[owner] = _parts_callback(loss.formulas(lambda function: jitted.get(function, function)))
        return _parts[owner]


def _parts_callback(formulas: Formulas) -> Any:
    if formulas.part is None:
        step = njit(formulas.step)

        def by_steps(i, n_positives, n_negatives, divisor, table, out):
            parts = carray(out, n_negatives + 1)
            total = 0.0
            parts[0] = total
            for j in range(1, n_negatives + 1):
                total -= step(1.0, j, i, n_positives, n_negatives, table)
                parts[j] = total / divisor

        return callback(_PARTS, formulas.step)(by_steps)
    part = njit(formulas.part)

    def by_parts(i, n_positives, n_negatives, divisor, table, out):
        parts = carray(out, n_negatives + 1)
        for above in range(n_negatives + 1):
            parts[above] = part(i, above, n_positives, n_negatives, table) / divisor

    return callback(_PARTS, formulas.part)(by_parts)


def _divisor_callback(formulas: Formulas, has_discounts: bool) -> Any:
    divide = njit(formulas.divisor)
    if formulas.discount is not None:
        discount_of = njit(formulas.discount)

        def divisor_far(n_positives, n_negatives, table):
            ideal = 0.0
            for i in range(1, n_positives + 1):
                ideal += discount_of(i, table)
            return divide(n_positives, n_negatives, ideal, table)

        return callback(_DIVISOR, formulas.discount)(divisor_far)

    def divisor(n_positives, n_negatives, table):
        ideal = 0.0
        if has_discounts:
            discount = carray(table, n_positives + 1)
            for i in range(1, n_positives + 1):
                ideal += discount[i]
        return divide(n_positives, n_negatives, ideal, table)

    return callback(_DIVISOR, formulas.divisor)(divisor)


def best_rank_callback(formula: Any) -> Any:
    """``best_rank`` of a step."""
    step = njit(formula)

    def best_rank(j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
        p = carray(positives, n_positives)
        value, best_value, best = 0.0, 0.0, high
        for i in range(high - 1, low - 1, -1):
            value -= (p[i - 1] - score) + step(half_scale, j, i, n_positives, n_negatives, table)
            if value > best_value:
                best_value, best = value, i
        return best

    return callback(_BEST_RANK, formula)(best_rank)


def _loss_callback(formulas: Formulas) -> Any:
    if formulas.part is not None:
        part = njit(formulas.part)

        def by_parts(counts_above, n_positives, n_negatives, divisor, table):
            a = carray(counts_above, n_positives)
            total = 0.0
            for i in range(n_positives):
                total += part(i + 1, a[i], n_positives, n_negatives, table)
            return total / divisor

        return callback(_LOSS, formulas.part)(by_parts)
    if formulas.partial_sum is not None:
        partial_sum = formulas.partial_sum

        def by_partial_sums(counts_above, n_positives, n_negatives, divisor, table):
            a = carray(counts_above, n_positives)
            total, j = 0.0, 0
            for i in range(n_positives):
                # Negatives a_{i-1} + 1 … a_i stand directly before positive i, above it and all that follow.
                while j < a[i]:
                    j += 1
                    whole = partial_sum(j, n_positives + 1, n_positives, n_negatives)
                    total -= whole - partial_sum(j, i + 1, n_positives, n_negatives)
            return total

        return callback(_LOSS, formulas.partial_sum)(by_partial_sums)
    step = njit(formulas.step)

    def by_steps(counts_above, n_positives, n_negatives, divisor, table):
        a = carray(counts_above, n_positives)
        total = 0.0
        for i in range(n_positives):
            # A sum for each positive, or rounding errors would grow with P N.
            sum_of_steps = 0.0
            for j in range(a[i]):
                sum_of_steps -= step(1.0, j + 1, i + 1, n_positives, n_negatives, table)
            total += sum_of_steps
        return total / divisor

    return callback(_LOSS, formulas.step)(by_steps)


def caller(signature: Any) -> Any:
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
def call_divisor(typingctx, address, n_positives, n_negatives, table):
    """``divisor`` at an address."""
    return caller(_DIVISOR)


@intrinsic
def call_best_rank(typingctx, address, j, score, low, high, positives, n_positives, n_negatives, half_scale, table):
    """``best_rank`` at an address."""
    return caller(_BEST_RANK)


@intrinsic
def call_parts(typingctx, address, i, n_positives, n_negatives, divisor, table, out):
    """A callback of `compile_parts` at an address."""
    return caller(_PARTS)


@intrinsic
def call_loss(typingctx, address, counts_above, n_positives, n_negatives, divisor, table):
    """``loss`` at an address."""
    return caller(_LOSS)
