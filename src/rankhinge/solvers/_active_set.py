"""Compiled active-set method for the small quadratic programme of the solvers.

The programme, in ``x`` of length n, with ``H`` a Gram matrix (symmetric, positive semidefinite)::

    maximise   q @ x - 0.5 * x @ H @ x
    subject to x >= 0,   sum of x over the capped variables == total.

Optimality (KKT): there is a number ``mu`` such that the violation
``r = q - H @ x - mu * capped`` is ``<= 0`` everywhere and ``== 0`` where ``x > 0``.

The method keeps a *support* of variables on which the equality-constrained maximiser is unique,
moves towards that maximiser, drops variables that reach 0, and takes in the variable that violates
most (Wolfe 1976 for the nearest point of a polytope; Lawson and Hanson 1974 for least squares).

On the feasible set ``H`` may be replaced by ``M = H + rho * capped capped'``: the objective changes by a constant, and
``M`` is positive definite on a support as soon as the support's points are *affinely* independent. Its Cholesky factor
is updated, O(size**2) for each change.

A variable whose column depends on the support's columns (duplicate or collinear planes) is taken
in along the null direction: the objective is linear there, so a step goes until some variable of
the support reaches 0, which then leaves. If none ever does, the programme is unbounded.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import NONE, ZERO, inner, kernel, once

OPTIMAL, STEP_LIMIT, UNBOUNDED, STALLED = range(4)

# A value that has not risen by this part of x times the scale of violations (see `_price`), in as many steps as there
# are variables, is as high as rounding lets it be. Nearly dependent columns would otherwise alternate for ever.
_RISE = 1e-13
# A pivot below this fraction of its diagonal is rounding noise: the column counts as dependent.
_PIVOT_FLOOR = 1e-13
# Not literals, each of which would be a type of its own (see `_jit`).


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


@inner
def _drop(factor, support, size, place, x):
    """Take the variable at ``place`` out of the support and set it to 0. Returns the new size.

    Its row and column of ``L @ L.T`` are deleted, by rotations that restore the triangle.
    """
    x[support[place]] = 0.0
    for i in range(place, size - 1):
        support[i] = support[i + 1]
        for k in range(i + 2):
            factor[i, k] = factor[i + 1, k]
    for c in range(place, size - 1):
        a, b = factor[c, c], factor[c, c + 1]
        norm = np.hypot(a, b)
        cosine, sine = (a / norm, b / norm) if norm > 0.0 else (1.0, 0.0)
        for i in range(c, size - 1):
            a, b = factor[i, c], factor[i, c + 1]
            factor[i, c] = cosine * a + sine * b
            factor[i, c + 1] = cosine * b - sine * a
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
        pivot, row = diagonal, factor[size]
        for i in range(size):
            k = support[i]
            row[i] = hessian[j, k] + (rho if capped[j] and capped[k] else 0.0)
        _forward(factor, size, row)
        for i in range(size):
            pivot -= row[i] * row[i]
        if pivot > _PIVOT_FLOOR * diagonal and diagonal > 0.0:
            row[size], support[size] = np.sqrt(pivot), j
            return size + 1
        for i in range(size):
            work[i] = row[i]
        _backward(factor, size, work)
        largest, step, place = 0.0, np.inf, NONE
        for i in range(size):
            largest = max(largest, abs(work[i]))
        for i in range(size):
            if work[i] > 1e-9 * largest and x[support[i]] < step * work[i]:
                step, place = x[support[i]] / work[i], i
        if place < 0:
            return NONE
        for i in range(size):
            x[support[i]] = max(x[support[i]] - step * work[i], 0.0)
        x[j] += step
        size = _drop(factor, support, size, place, x)


@inner
def _target(factor, support, size, linear, capped, total, y, z):
    """Maximise on the support with the sign constraints left out; the answer is in ``y``.

    ``M y + mu * e = linear``, ``e @ y = total``, with e the capped variables.
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


@once
def _settle(factor, support, size, linear, capped, total, x, y, z):
    """Move x to the maximiser on the support, dropping what reaches 0 on the way. New size."""
    while True:
        _target(factor, support, size, linear, capped, total, y, z)
        step, place = 1.0, NONE
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


@once
def _refine(hessian, linear, capped, total, factor, support, size, x, r, y, z):
    """One step of iterative refinement: the factor's error is corrected with the true H.

    The known part of the multiplier is subtracted first, lest it swamp the small correction. Leaves
    ``r = q - H @ x`` and returns the cap's multiplier, the mean of r over the capped support.
    """
    refined = False
    while True:
        mu, count, missing = 0.0, 0, total
        # Of H only the support's columns count.
        for j in range(linear.size):
            r[j] = linear[j]
            for i in range(size):
                r[j] -= hessian[j, support[i]] * x[support[i]]
        for i in range(size):
            if capped[support[i]]:
                mu += r[support[i]]
                count += 1
                missing -= x[support[i]]
        mu /= max(count, 1)
        if refined:
            return mu
        for i in range(size):
            if capped[support[i]]:
                r[support[i]] -= mu
        _target(factor, support, size, r, capped, missing, y, z)
        for i in range(size):
            x[support[i]] = max(x[support[i]] + y[i], 0.0)
        refined = True


@once
def _price(hessian, linear, capped, rho, support, size, x, r, mu, banned, tol):
    """Find the variable to take in, and say where the climb stands.

    Violations are compared with the terms ``q`` and ``H @ x`` of which they are made, the scale. The second counts a
    thousandth: it may be much larger than the result of its cancellation.

    Returns the variable, or -1, whose violation is the largest beside the length of its column; the largest violation
    and the scale; the objective, from ``r = q - H @ x``, and what it must rise by to be more than rounding.
    """
    value, whole, used, largest, scale = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        k = support[i]
        value += 0.5 * x[k] * (linear[k] + r[k])
        whole += x[k]
        used += x[k] * np.sqrt(hessian[k, k])
    for j in range(linear.size):
        largest = max(largest, hessian[j, j])
        scale = max(scale, abs(linear[j]))
    scale = max(scale + 1e-3 * used * np.sqrt(largest), 1e-300)
    entering, best, worst = NONE, 0.0, 0.0
    for j in range(r.size):
        v = r[j] - (mu if capped[j] else 0.0)
        worst = max(worst, v if x[j] == 0.0 else abs(v))
        if v > tol * scale and x[j] == 0.0 and not banned[j]:
            gain = v / np.sqrt(max(hessian[j, j] + (rho if capped[j] else 0.0), 1e-300))
            if gain > best:
                best, entering = gain, j
    return entering, worst / scale, value, _RISE * whole * scale


@once
def _climb(hessian, linear, capped, rho, total, x, tol, max_steps):
    """Run the method once, from a fresh factor. Returns as `maximise` does."""
    n = linear.size
    factor, support = np.empty((n + 1, n + 1)), np.empty(n + 1, np.int64)
    work, y, z, r = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1), np.empty(n)
    banned = np.zeros(n, np.bool_)
    size, mu, worst, entering = ZERO, 0.0, 0.0, NONE
    best, since = -np.inf, ZERO
    # The support consists of the positive entries of x, the largest first; r lists those still to be taken in.
    for j in range(n):
        r[j] = x[j]
    for _ in range(n):
        for j in range(n):
            if entering < 0 or r[j] > r[entering]:
                entering = j
        if not r[entering] > 0.0:
            break
        size = _enter(hessian, capped, rho, factor, support, size, x, entering, work)
        if size < 0:
            return mu, np.inf, 0, UNBOUNDED
        r[entering] = 0.0
    entering = NONE
    for steps in range(max_steps):
        size = _settle(factor, support, size, linear, capped, total, x, y, z)
        # Taken in and thrown out at once: rounding decides here, and would decide so for ever.
        if entering >= 0 and x[entering] == 0.0:
            banned[entering] = True
        mu = _refine(hessian, linear, capped, total, factor, support, size, x, r, y, z)
        entering, worst, value, rise = _price(hessian, linear, capped, rho, support, size, x, r, mu, banned, tol)
        if entering < 0:
            return mu, worst, steps, OPTIMAL
        if value > best + rise:
            best, since = value, ZERO
        since += 1
        if since > n:
            return mu, worst, steps, STALLED
        size = _enter(hessian, capped, rho, factor, support, size, x, entering, work)
        if size < 0:
            return mu, np.inf, steps, UNBOUNDED
    return mu, worst, max_steps, STEP_LIMIT


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
    tol : float, a violation counts if it exceeds ``tol * scale``, see `_price`
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
        # A worn factor can end a climb too early; a fresh one continues as long as there is much to gain.
        if status != OPTIMAL or residual <= 2.0 * tol or steps == 0 or residual > 0.5 * before:
            return mu, residual, done, status
        before = residual
