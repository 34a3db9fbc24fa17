"""The certificate as a value: what is proved, what rounding takes away, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from rankhinge.solvers.certificate import (
    Carrying,
    Certificate,
    CertificateError,
    Rounding,
    relative_gap,
    unit_of_rounding,
    witness,
)


def certificate(primal, dual, rounding=0.0, tolerated=0.0):
    return Certificate(*(np.array([value], dtype=float) for value in (primal, dual, rounding, tolerated)))


@pytest.mark.parametrize(
    ("primal", "dual", "rounding", "lower", "gap"),
    [
        (2.0, 1.5, 0.0, 1.5, 0.25),
        (2.0, 1.5, 0.5, 1.0, 0.5),
        # No objective falls below 0, whatever rounding is.
        (2.0, 0.5, 1.0, 0.0, 1.0),
        (0.0, 0.0, 0.0, 0.0, 0.0),
        (2.0, -np.inf, 0.0, -np.inf, np.inf),
        (np.inf, 1.0, 0.0, 1.0, np.inf),
    ],
)
def test_what_is_proved(primal, dual, rounding, lower, gap):
    known = certificate(primal, dual, rounding)
    assert known.lower[0] == lower
    assert known.gap[0] == gap
    known.check()


def test_a_bound_above_its_value_is_a_defect_unless_rounding_explains_it():
    certificate(1.0, 1.1, rounding=0.2).check()
    certificate(1.0, 1.1, tolerated=0.2).check()
    with pytest.raises(CertificateError, match="lies above the objective"):
        certificate(1.0, 1.1, rounding=0.05).check()


def test_constraints_that_hold_nearly_leave_no_bound_above_the_value():
    assert certificate(1.0, 1.1, tolerated=0.2).lower[0] == 1.0


def test_converged_means_a_proved_gap():
    known = Certificate(*np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.1], [0.0, 0.0]]))
    assert known.status(np.array(["converged", "converged"]), 1e-3).tolist() == ["converged", "precision"]
    assert known.status(np.array(["max_iter", "max_iter"]), 1e-3).tolist() == ["max_iter", "max_iter"]


def test_gaps_of_values_below_zero_go_by_their_size():
    assert relative_gap(np.array([-2.0]), np.array([-3.0])).tolist() == [0.5]


@pytest.mark.parametrize("n_terms", [3, 50, 400])
def test_the_unit_of_rounding_covers_sums(n_terms):
    rng = np.random.default_rng(n_terms)
    for _ in range(20):
        a, b = rng.normal(size=(2, n_terms)) * 10.0 ** rng.integers(-3, 4, n_terms)
        exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)), Fraction(0))
        error = abs(float(Fraction(float(a @ b)) - exact))
        assert error <= unit_of_rounding(n_terms) * float(np.abs(a) @ np.abs(b))


def plane_of(point, value, slope, w):
    """A plane that was cut at a point, as it is seen from w."""
    offsets, slopes = np.array([value - slope @ point]), slope[None, :]
    misses, reach = witness(offsets, slopes, point, np.array([value]))
    return Carrying(offsets, slopes @ w, misses, np.array([reach]))


def test_planes_of_a_convex_function_are_held_and_others_refused():
    rng = np.random.default_rng(0)
    w, point = rng.normal(size=(2, 5))
    allowed = Rounding(n_terms=100, slope=1.0)

    def J(v):
        return float(np.linalg.norm(v))

    true = plane_of(point, J(point), point / J(point), w)
    allowed.hold(true, J(w), J(w))
    with pytest.raises(CertificateError, match="misses J where it was cut"):
        allowed.hold(true._replace(misses=np.array([1e-6])), J(w), J(w))
    with pytest.raises(CertificateError, match="lies above J"):
        allowed.hold(plane_of(w, J(w) + 1e-6, w / J(w), w), J(w), J(w))
    # What inference leaves undecided is no miss.
    Rounding(n_terms=100, slope=1.0, slack=1e-5).hold(true._replace(misses=np.array([1e-6])), J(w), J(w))


def test_values_that_are_no_numbers_are_refused():
    planes = Carrying(np.array([np.nan]), np.zeros(1), np.zeros(1), np.zeros(1))
    with pytest.raises(CertificateError):
        Rounding(n_terms=10, slope=1.0).hold(planes, 1.0, 1.0)


def test_no_plane_proves_nothing_and_is_refused_by_nobody():
    Rounding(n_terms=10, slope=1.0).hold(Carrying.none(), 1.0, 1.0)
