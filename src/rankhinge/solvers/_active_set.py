"""Compiled active-set method for the small quadratic programme of the solvers.

The programme, in ``x`` of length n, with ``H`` a Gram matrix (symmetric, positive semidefinite)::

    maximise   q @ x - 0.5 * x @ H @ x
    subject to x >= 0,   sum of x over the capped variables == total.

Optimality (KKT): there is a number ``mu`` such that the violation
``r = q - H @ x - mu * capped`` is ``<= 0`` everywhere and ``== 0`` where ``x > 0``.

The method keeps a *support* of variables on which the equality-constrained maximiser is unique,
moves towards that maximiser, drops variables that reach 0, and takes in the variable that violates
most (Wolfe 1976 for the nearest point of a polytope; Lawson and Hanson 1974 for least squares).
On the feasible set ``H`` may be replaced by ``M = H + rho * capped capped'``: the objective changes
by a constant, and ``M`` is positive definite on a support as soon as the support's points are
*affinely* independent. Its Cholesky factor is updated, O(size**2) for each change.

A variable whose column depends on the support's columns (duplicate or collinear planes) is taken
in along the null direction: the objective is linear there, so a step goes until some variable of
the support reaches 0, which then leaves. If none ever does, the programme is unbounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge._jit import inner, kernel, once

OPTIMAL = 0
STEP_LIMIT = 1
UNBOUNDED = 2
STALLED = 3

# A value that has not risen by this part of x times the scale of violations (see `_scale`), in as many steps as there
# are variables, is as high as rounding lets it be. Nearly dependent columns would otherwise take turns for ever.
_RISE = 1e-13
# A pivot below this fraction of its diagonal is rounding noise: the column counts as dependent.
_PIVOT_FLOOR = 1e-13
# Not literals, each of which would be a type of its own (see `_jit`).
_ZERO: Any = np.int64(0)
_NONE: Any = np.int64(-1)


@inner
def _forward(factor, size, b):
    """Overwrite ``b[:size]`` by ``inv(L) @ b``."""
    for i in range(size):
        v = b[i]
        for k in range(i):
            v -= factor[i, k] * b[k]
        b[i] = v / factor[i, i]


@inner
def _backward(factor, size, b):
    """Overwrite ``b[:size]`` by ``inv(L.T) @ b``; row by row, since L is stored by rows."""
    for i in range(size - 1, -1, -1):
        b[i] /= factor[i, i]
        v = b[i]
        for k in range(i):
            b[k] -= factor[i, k] * v


@once
def _append(factor, size, column, diagonal):
    """Add a row to the factor. Returns False, and leaves the factor, if the column depends."""
    row = factor[size]
    for i in range(size):
        row[i] = column[i]
    _forward(factor, size, row)
    pivot = diagonal
    for i in range(size):
        pivot -= row[i] * row[i]
    if pivot <= _PIVOT_FLOOR * diagonal or diagonal <= 0.0:
        return False
    row[size] = np.sqrt(pivot)
    return True


@once
def _remove(factor, size, gone):
    """Delete row and column ``gone`` of ``L @ L.T``, by rotations that restore the triangle."""
    for i in range(gone, size - 1):
        for k in range(i + 2):
            factor[i, k] = factor[i + 1, k]
    for c in range(gone, size - 1):
        a, b = factor[c, c], factor[c, c + 1]
        norm = np.hypot(a, b)
        cosine, sine = (a / norm, b / norm) if norm > 0.0 else (1.0, 0.0)
        for i in range(c, size - 1):
            a, b = factor[i, c], factor[i, c + 1]
            factor[i, c] = cosine * a + sine * b
            factor[i, c + 1] = cosine * b - sine * a


@once
def _column(hessian, capped, rho, support, size, j, out):
    """Write ``M[support, j]``."""
    for i in range(size):
        k = support[i]
        out[i] = hessian[j, k]
        if capped[j] and capped[k]:
            out[i] += rho


@inner
def _drop(factor, support, size, place, x):
    """Take the variable at ``place`` out of the support and set it to 0. Returns the new size."""
    _remove(factor, size, place)
    x[support[place]] = 0.0
    for i in range(place, size - 1):
        support[i] = support[i + 1]
    return size - 1


@inner
def _enter(hessian, capped, rho, factor, support, size, x, j, work):
    """Take variable j into the support. Returns the new size, or -1 if the programme is unbounded.

    While j's column depends on the support, x moves along the null direction
    ``x[j] += t, x[support] -= t * c`` with ``c = inv(M) @ M[support, j]``, and the variable that
    reaches 0 first leaves.
    """
    diagonal = hessian[j, j] + (rho if capped[j] else 0.0)
    while True:
        _column(hessian, capped, rho, support, size, j, work)
        if _append(factor, size, work, diagonal):
            support[size] = j
            return size + 1
        for i in range(size):
            work[i] = factor[size, i]
        _backward(factor, size, work)
        largest = 0.0
        for i in range(size):
            largest = max(largest, abs(work[i]))
        step, place = np.inf, _NONE
        for i in range(size):
            if work[i] > 1e-9 * largest and x[support[i]] < step * work[i]:
                step, place = x[support[i]] / work[i], i
        if place < 0:
            return _NONE
        for i in range(size):
            x[support[i]] = max(x[support[i]] - step * work[i], 0.0)
        x[j] += step
        size = _drop(factor, support, size, place, x)


@inner
def _target(factor, support, size, linear, capped, total, y, z):
    """Maximise on the support with the sign constraints left out; the answer is in ``y``.

    ``M y + mu * e = linear``, ``e @ y = total``, with e the capped variables. Returns mu.
    """
    for i in range(size):
        y[i] = linear[support[i]]
        z[i] = 1.0 if capped[support[i]] else 0.0
    _forward(factor, size, y)
    _forward(factor, size, z)
    zy, zz = 0.0, 0.0
    for i in range(size):
        zy += z[i] * y[i]
        zz += z[i] * z[i]
    # No capped variable is left where the others run away: the programme is unbounded, as the caller will find.
    mu = (zy - total) / zz if zz > 0.0 else 0.0
    for i in range(size):
        y[i] -= mu * z[i]
    _backward(factor, size, y)
    return mu


@once
def _settle(factor, support, size, linear, capped, total, x, y, z):
    """Move x to the maximiser on the support, dropping what reaches 0 on the way. New size."""
    while True:
        _target(factor, support, size, linear, capped, total, y, z)
        step, place = 1.0, _NONE
        for i in range(size):
            old = x[support[i]]
            if y[i] <= 0.0 and old <= step * (old - y[i]):
                step, place = old / (old - y[i]) if old > y[i] else 0.0, i
        for i in range(size):
            k = support[i]
            x[k] = max(x[k] + step * (y[i] - x[k]), 0.0)
        if place < 0:
            return size
        size = _drop(factor, support, size, place, x)


@inner
def _violation(hessian, linear, support, size, x, out):
    """Write ``linear - H @ x``, of which only the support's columns count."""
    for j in range(linear.size):
        v = linear[j]
        for i in range(size):
            k = support[i]
            v -= hessian[j, k] * x[k]
        out[j] = v


@inner
def _multiplier(capped, support, size, r):
    """The cap's multiplier: the mean of ``q - H @ x`` over the capped support."""
    total, count = 0.0, 0
    for i in range(size):
        if capped[support[i]]:
            total += r[support[i]]
            count += 1
    return total / max(count, 1)


@once
def _refine(hessian, linear, capped, total, factor, support, size, x, r, y, z):
    """One step of iterative refinement: the factor's error is corrected with the true H.

    The known part of the multiplier is subtracted first, lest it swamp the small correction.
    Leaves ``r = q - H @ x`` and returns the multiplier.
    """
    missing = total
    for i in range(size):
        if capped[support[i]]:
            missing -= x[support[i]]
    _violation(hessian, linear, support, size, x, r)
    mu = _multiplier(capped, support, size, r)
    for i in range(size):
        if capped[support[i]]:
            r[support[i]] -= mu
    _target(factor, support, size, r, capped, missing, y, z)
    for i in range(size):
        x[support[i]] = max(x[support[i]] + y[i], 0.0)
    _violation(hessian, linear, support, size, x, r)
    return _multiplier(capped, support, size, r)


@once
def _scale(hessian, linear, support, size, x):
    """What a violation is compared with: the terms ``q`` and ``H @ x`` of which it is made.

    The second counts a thousandth: it may be much larger than the result of its cancellation.
    """
    largest, used, scale = 0.0, 0.0, 0.0
    for j in range(linear.size):
        largest = max(largest, hessian[j, j])
        scale = max(scale, abs(linear[j]))
    for i in range(size):
        used += x[support[i]] * np.sqrt(hessian[support[i], support[i]])
    return max(scale + 1e-3 * used * np.sqrt(largest), 1e-300)


@once
def _price(hessian, capped, rho, r, mu, x, banned, limit):
    """Find the variable to take in: largest violation by the length of its column.

    Returns ``(variable or -1, largest violation)``.
    """
    entering, best, worst = _NONE, 0.0, 0.0
    for j in range(r.size):
        v = r[j] - (mu if capped[j] else 0.0)
        worst = max(worst, v if x[j] == 0.0 else abs(v))
        if v > limit and x[j] == 0.0 and not banned[j]:
            gain = v / np.sqrt(max(hessian[j, j] + (rho if capped[j] else 0.0), 1e-300))
            if gain > best:
                best, entering = gain, j
    return entering, worst


@once
def _value(linear, support, size, x, r):
    """The objective, from ``r = q - H @ x``, and the sum of x."""
    value, whole = 0.0, 0.0
    for i in range(size):
        k = support[i]
        value += 0.5 * x[k] * (linear[k] + r[k])
        whole += x[k]
    return value, whole


@once
def _descending(x):
    """Places of the positive entries, the largest first. By insertion: they are few."""
    order, found = np.empty(x.size, np.int64), 0
    for j in range(x.size):
        if x[j] > 0.0:
            place = found
            while place > 0 and x[order[place - 1]] < x[j]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = j
            found += 1
    return order[:found]


@once
def _climb(hessian, linear, capped, rho, total, x, tol, max_steps):
    """Run the method once, from a fresh factor. Returns as `maximise` does."""
    n = linear.size
    factor, support = np.empty((n + 1, n + 1)), np.empty(n + 1, np.int64)
    work, y, z, r = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1), np.empty(n)
    banned = np.zeros(n, np.bool_)
    size, mu, worst, entering = _ZERO, 0.0, 0.0, _NONE
    best, since = -np.inf, _ZERO
    order = _descending(x)
    for i in range(order.size):
        size = _enter(hessian, capped, rho, factor, support, size, x, order[i], work)
        if size < 0:
            return mu, np.inf, 0, UNBOUNDED
    for steps in range(max_steps):
        size = _settle(factor, support, size, linear, capped, total, x, y, z)
        # Taken in and thrown out at once: rounding decides here, and would decide so for ever.
        if entering >= 0 and x[entering] == 0.0:
            banned[entering] = True
        mu = _refine(hessian, linear, capped, total, factor, support, size, x, r, y, z)
        scale = _scale(hessian, linear, support, size, x)
        entering, worst = _price(hessian, capped, rho, r, mu, x, banned, tol * scale)
        if entering < 0:
            return mu, worst / scale, steps, OPTIMAL
        value, whole = _value(linear, support, size, x, r)
        if value > best + _RISE * whole * scale:
            best, since = value, _ZERO
        since += 1
        if since > n:
            return mu, worst / scale, steps, STALLED
        size = _enter(hessian, capped, rho, factor, support, size, x, entering, work)
        if size < 0:
            return mu, np.inf, steps, UNBOUNDED
    return mu, worst / scale, max_steps, STEP_LIMIT


@kernel
def maximise(hessian, linear, capped, total, x, tol, max_steps):
    """Solve the programme above, from a feasible ``x``, which is overwritten.

    Parameters
    ----------
    hessian : (n, n) float64, the Gram matrix H
    linear : (n,) float64, q
    capped : (n,) bool, at least one True
    total : float, > 0
    x : (n,) float64, feasible: ``x >= 0``, ``x[capped].sum() == total``
    tol : float, a violation counts if it exceeds ``tol * scale``, see `_scale`
    max_steps : int, bound on the number of variables taken in

    Returns
    -------
    mu : float, the multiplier of the cap
    residual : float, largest violation of the KKT conditions, divided by the scale
    steps : int
    status : int, OPTIMAL, STEP_LIMIT, UNBOUNDED or STALLED: rounding lets it rise no further
    """
    rho, size = 0.0, 0.0
    for i in range(linear.size):
        size = max(size, abs(linear[i]))
        if capped[i]:
            rho = max(rho, hessian[i, i])
    # A Gram matrix far below q / total is noise: it must not set the scale.
    rho = max(rho, 1e-10 * size / total)
    rho = rho if rho > 0.0 else 1.0
    done, before = 0, np.inf
    while True:
        mu, residual, steps, status = _climb(hessian, linear, capped, rho, total, x, tol, max_steps - done)
        done += steps
        # A worn factor can end a climb too early; a fresh one goes on as long as there is much to gain.
        if status != OPTIMAL or residual <= 2.0 * tol or steps == 0 or residual > 0.5 * before:
            return mu, residual, done, status
        before = residual
