"""Losses with a cut as compiled callbacks, called by address as those of `callbacks`.

``gains(M, table, out)``
    Writes ``g(1) … g(M)``.
``norm(P, depth, ideal)``
    Z.
``parts(counts_above, m, P, N, table)``
    ``Σ_{i ≤ m} part(i, a_i)``, undivided.
``advance(i, score, size, negatives, unit, scale, P, N, table, extra)``
    One more positive in the block: ``E_j ← max(0, E_j - t(j, i) - unit (p_i - n_j)₊)`` for j = 1 … size; their sum.
``best_rank``
    As for suitable losses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from rankhinge._jit import callback
from rankhinge.inference import callbacks
from rankhinge.inference.callbacks import Code, best_rank_callback, caller
from rankhinge.losses.cut import CutFormulas, CutLoss

__all__ = [
    "ADVANCE",
    "BEST_RANK",
    "GAINS",
    "NORM",
    "PARTS",
    "call_advance",
    "call_gains",
    "call_norm",
    "call_parts",
    "cut_addresses",
]

_I, _F, _FLOATS, _INTS = types.int64, types.float64, types.CPointer(types.float64), types.CPointer(types.int64)
_GAINS = types.void(_I, _FLOATS, _FLOATS)
_NORM = _F(_I, _I, _F)
_PARTS = _F(_INTS, _I, _I, _I, _FLOATS)
_ADVANCE = _F(_I, _F, _I, _FLOATS, _F, _F, _I, _I, _FLOATS, _FLOATS)
# Where the addresses lie; the last three are 0 for losses that only count positives.
GAINS, NORM, PARTS, ADVANCE, BEST_RANK = range(5)
_packed: dict[CutFormulas, Code] = {}


def cut_addresses(loss: CutLoss) -> NDArray[np.int64]:
    """The addresses of a loss's callbacks."""
    formulas = loss.cut_formulas()
    if formulas not in _packed:
        with callbacks._compiling:
            if formulas not in _packed:
                _packed[formulas] = _compile(formulas)
    return _packed[formulas].addresses


def _compile(formulas: CutFormulas) -> Code:
    functions = [_gains_callback(formulas.gain), _norm_callback(formulas.norm)]
    if formulas.step is not None:
        functions += [
            _parts_callback(formulas.part),
            _advance_callback(formulas.step),
            best_rank_callback(formulas.step),
        ]
    addresses = np.zeros(5, np.int64)
    addresses[: len(functions)] = [function.address for function in functions]
    return Code(tuple(functions), addresses)


def _gains_callback(formula: Any) -> Any:
    gain = njit(formula)

    def gains(most, table, out):
        values = carray(out, most)
        for i in range(most):
            values[i] = gain(i + 1, table)

    return callback(_GAINS, formula)(gains)


def _norm_callback(formula: Any) -> Any:
    divide = njit(formula)

    def norm(n_positives, depth, ideal):
        return divide(n_positives, depth, ideal)

    return callback(_NORM, formula)(norm)


def _parts_callback(formula: Any) -> Any:
    part = njit(formula)

    def parts(counts_above, m, n_positives, n_negatives, table):
        above = carray(counts_above, m)
        total = 0.0
        for i in range(m):
            total += part(i + 1, above[i], n_positives, n_negatives, table)
        return total

    return callback(_PARTS, formula)(parts)


def _advance_callback(formula: Any) -> Any:
    step = njit(formula)

    def advance(i, score, size, negatives, unit, scale, n_positives, n_negatives, table, extra):
        n, e = carray(negatives, size), carray(extra, size)
        # Two loops: the first is vectorised.
        for j in range(size):
            ahead = max(0.0, score - n[j])
            e[j] = max(0.0, e[j] - step(scale, j + 1, i, n_positives, n_negatives, table) - unit * ahead)
        sum0 = sum1 = sum2 = sum3 = 0.0
        for quarter in range(size // 4):
            j = 4 * quarter
            sum0, sum1, sum2, sum3 = sum0 + e[j], sum1 + e[j + 1], sum2 + e[j + 2], sum3 + e[j + 3]
        for j in range(size // 4 * 4, size):
            sum0 += e[j]
        return (sum0 + sum1) + (sum2 + sum3)

    return callback(_ADVANCE, formula)(advance)


@intrinsic
def call_gains(typingctx, address, most, table, out):
    """``gains`` at an address."""
    return caller(_GAINS)


@intrinsic
def call_norm(typingctx, address, n_positives, depth, ideal):
    """``norm`` at an address."""
    return caller(_NORM)


@intrinsic
def call_parts(typingctx, address, counts_above, m, n_positives, n_negatives, table):
    """``parts`` at an address."""
    return caller(_PARTS)


@intrinsic
def call_advance(typingctx, address, i, score, size, negatives, unit, scale, n_positives, n_negatives, table, extra):
    """``advance`` at an address."""
    return caller(_ADVANCE)
