"""The master problem against a quadratic program that is solved by other means."""

import numpy as np
import pytest

from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Planes
from tests.convex_judge import quadratic_minimum


def some_planes(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.0, 1.0, n), rng.normal(size=(n, d))


def least(C, centre, offsets, slopes):
    """``min ½ ‖w - w0‖² + C max(0, offset + slope @ w)``, by the judge: in the way from the centre and the maximum."""
    d = centre.size
    lines = np.column_stack([-slopes, np.ones(offsets.size)])
    lines = np.vstack([lines, np.append(np.zeros(d), 1.0)])
    return quadratic_minimum(
        np.append(np.ones(d), 0.0), np.append(np.zeros(d), C), lines, np.append(offsets + slopes @ centre, 0.0)
    )


def value_at(w, C, centre, offsets, slopes):
    return 0.5 * float((w - centre) @ (w - centre)) + C * max(0.0, float(np.max(offsets + slopes @ w)))


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_minimum(C, seed):
    offsets, slopes = some_planes(12, 5, seed)
    centre = np.random.default_rng(seed + 100).normal(size=5)
    master = Master(C, centre)
    for first in range(0, 12, 4):
        # Cuts come one group after another, each solved from the last solution.
        master.add_planes(offsets[first : first + 4], slopes[first : first + 4])
        master.solve()
    expected = least(C, centre, offsets, slopes)
    assert master.dual_value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert value_at(master.point, C, centre, offsets, slopes) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert master.multipliers.sum() == pytest.approx(C)
    assert (master.multipliers >= 0.0).all()


def test_the_bound_never_falls_as_planes_are_added():
    offsets, slopes = some_planes(20, 4, 0)
    master, bounds = Master(5.0, np.zeros(4)), [0.0]
    for offset, slope in zip(offsets, slopes, strict=True):
        master.add_planes(np.array([offset]), slope[None, :])
        master.solve()
        bounds.append(master.dual_value)
    assert (np.diff(bounds) >= -1e-12).all()


def test_planes_that_carry_the_bound_prove_it_alone():
    offsets, slopes = some_planes(15, 3, 1)
    master = Master(2.0, np.ones(3))
    master.add_planes(offsets, slopes)
    master.solve()
    carrying = master.planes(carrying=True)
    assert 0 < carrying.offsets.size < 15
    assert least(2.0, np.ones(3), carrying.offsets, carrying.slopes) == pytest.approx(master.dual_value, rel=1e-9)
    other = Master(2.0, np.ones(3))
    other.take(Planes(carrying.offsets, carrying.slopes))
    other.solve()
    assert other.dual_value == pytest.approx(master.dual_value, rel=1e-9)


def test_what_planes_carry_comes_back_with_them():
    offsets, slopes = some_planes(6, 3, 2)
    payloads = np.arange(12.0).reshape(6, 2)
    master = Master(1.0, np.zeros(3), width=2)
    master.add_planes(offsets, slopes, np.full(6, 0.5), np.arange(6.0), payloads)
    found = master.planes()
    np.testing.assert_array_equal(found.payloads, payloads)
    np.testing.assert_array_equal(found.reaches, np.arange(6.0))
    np.testing.assert_array_equal(found.slopes, slopes)


def test_a_master_in_a_subspace_has_the_value_there():
    offsets, slopes = some_planes(10, 6, 3)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 2)))[0]
    master = Master(3.0, np.zeros(6))
    master.add_planes(offsets, slopes)
    small = master.restricted(basis, room=4)
    small.solve()
    assert small.dual_value == pytest.approx(least(3.0, np.zeros(2), offsets, slopes @ basis), rel=1e-9)


def test_slopes_that_overflow_are_refused():
    master = Master(1.0, np.zeros(2))
    with pytest.raises(ValueError, match="overflow"):
        master.add_planes(np.zeros(1), np.full((1, 2), 1e200))
