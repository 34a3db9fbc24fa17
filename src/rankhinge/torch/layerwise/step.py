"""One layer's turn: Frank-Wolfe on its surrogate, then the best of a few candidates by the true objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from rankhinge.solvers.certificate import Certificate, CertificateError, rounding_bound, unit_of_rounding
from rankhinge.torch.layerwise.frank_wolfe import FrankWolfe, proximal_term
from rankhinge.torch.layerwise.surrogate import Surrogate

__all__ = ["LayerStep", "train_layer"]


@dataclass
class LayerStep:
    """What became of a layer's turn.

    Attributes
    ----------
    duals : list of float
        The dual value after each epoch; it never falls.
    certificate : Certificate, optional
        Of the surrogate problem, at the candidate taken, or at the first one if none was.
    loss : float
        The true mean loss of the blocks afterwards.
    taken : str or None
        Which candidate was taken; None: the weights stay as they are.
    weights : Tensor or None
        The new weights.
    """

    duals: list[float] = field(default_factory=list)
    certificate: Certificate | None = None
    loss: float = np.inf
    taken: str | None = None
    weights: Tensor | None = None

    @property
    def primal(self) -> float | None:
        """The surrogate problem's value."""
        return None if self.certificate is None else float(self.certificate.primal[0])

    @property
    def dual(self) -> float | None:
        """A lower bound on it, less what rounding may have added."""
        return None if self.certificate is None else float(self.certificate.lower[0])

    @property
    def gap(self) -> float | None:
        """``(primal - dual) / |primal|``."""
        return None if self.certificate is None else float(self.certificate.gap[0])


def train_layer(
    surrogate: Surrogate,
    *,
    lam: float,
    mu: float,
    tol: float,
    max_epochs: int,
    loss: float,
    generator: np.random.Generator,
    watch: Callable[[int, float], None],
) -> LayerStep:
    """Minimise ``λ/2 ‖W‖² + μ/2 ‖W - W_t‖² + mean H_i(W)`` over one layer's weights.

    Parameters
    ----------
    surrogate : Surrogate
    lam, mu : float
    tol : float
        Stop after an epoch that raises the dual by less than this share of it.
    max_epochs : int
    loss : float
        The true mean loss of the blocks at ``W_t``: a candidate is taken only if it lowers ``λ/2 ‖W‖²`` plus loss.
    generator : numpy.random.Generator
        For the order of the blocks.
    watch : callable
        Called with the number of the epoch and the dual after each.
    """
    solver = FrankWolfe(surrogate.start, len(surrogate.blocks), lam, mu)
    step = LayerStep(loss=loss)
    for epoch in range(1, max_epochs + 1):
        for block in generator.permutation(solver.n_blocks).tolist():
            solver.visit(block, *surrogate.piece(block, solver.point))
        solver.refresh()
        step.duals.append(solver.dual)
        watch(epoch, step.duals[-1])
        before = step.duals[-2] if epoch > 1 else -np.inf
        if step.duals[-1] - before <= tol * abs(step.duals[-1]):
            break
    _choose(step, surrogate, solver, lam)
    step.certificate = _certified(surrogate, solver, solver.average if step.weights is None else step.weights, lam, mu)
    step.certificate.check()
    return step


def _certified(surrogate: Surrogate, solver: FrankWolfe, chosen: Tensor, lam: float, mu: float) -> Certificate:
    """What is proved of the surrogate problem at a point. One pass over the blocks, for the sizes of what is rounded.

    In the coordinates ``√(λ + μ) W`` the problem is that of a linear machine, which is what `rounding_bound` knows.
    """
    start, root = surrogate.start, (lam + mu) ** 0.5
    # H is nowhere below 0, where its convex parts may lead by rounding.
    values = [max(surrogate.value(block, chosen), 0.0) for block in range(len(surrogate.blocks))]
    primal = proximal_term(chosen, start, lam, mu) + sum(values) / len(values)
    reach = torch.stack([solver.largest, solver.average.abs(), chosen.abs(), start.abs()]).amax(dim=0)
    sizes = [surrogate.size(block, reach) for block in range(len(surrogate.blocks))]
    slope = torch.stack([size.slope for size in sizes]).mean(dim=0)
    size = sum(size.offset for size in sizes) / len(sizes) + float(slope @ reach)
    n_terms = surrogate.n_terms + solver.n_visits
    times, centre = torch.finfo(surrogate.dtype).eps / torch.finfo(torch.float64).eps, root * float(start.norm())
    rounding = rounding_bound(
        n_terms,
        1.0,
        # Values are added up as often again as slopes.
        times * surrogate.n_parts / 2 * float(slope.norm()) / root,
        # Sizes are those at the dual's own point, too: from there errors of slopes count by their squares.
        0.0,
        root * float(reach.norm()) + centre,
        size=times * surrogate.n_parts * size,
        centre=centre,
    )
    allowed = unit_of_rounding(n_terms) * times * surrogate.n_parts
    for block, (piece, value, of_block) in enumerate(zip(solver.pieces_at(chosen), values, sizes, strict=True)):
        if not piece - value <= allowed * (of_block.offset + float(of_block.slope @ reach)):
            raise CertificateError(
                f"the planes of block {block} say {piece!r} where the layer's loss is {value!r}, which is less by more "
                "than rounding: this is a defect of the library, please report it"
            )
    return Certificate(*(np.array([value]) for value in (primal, solver.dual, rounding, 0.0)))


def _choose(step: LayerStep, surrogate: Surrogate, solver: FrankWolfe, lam: float) -> None:
    """Take the first candidate that lowers the true objective, if there is one."""
    start = surrogate.start
    before = step.loss + 0.5 * lam * float(start @ start)
    for name, weights in _candidates(solver, start):
        # As the network will hold them: rounding to its dtype must not make a rise of a fall.
        rounded = weights.to(surrogate.chain.dtype).double()
        loss = _mean(surrogate.true_value, surrogate, rounded)
        if loss + 0.5 * lam * float(rounded @ rounded) < before:
            step.taken, step.weights, step.loss = name, rounded, loss
            return


def _candidates(solver: FrankWolfe, start: Tensor) -> Iterator[tuple[str, Tensor]]:
    yield "average", solver.average
    yield "last", solver.point
    # The surrogate is only good near where it was made, and Frank-Wolfe may have stopped early.
    for share in (0.5, 0.25, 0.125):
        yield f"{share:g} of the way", start + share * (solver.average - start)


def _mean(value: Callable[[int, Tensor], float], surrogate: Surrogate, weights: Tensor) -> float:
    n_blocks = len(surrogate.blocks)
    return sum(value(block, weights) for block in range(n_blocks)) / n_blocks
