"""One layer's turn: Frank-Wolfe on its surrogate, then the best of a few candidates by the true objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

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
    primal : float
        The surrogate problem's value at the candidate taken, or at the first one if none was.
    loss : float
        The true mean loss of the blocks afterwards.
    taken : str or None
        Which candidate was taken; None: the weights stay as they are.
    weights : Tensor or None
        The new weights.
    """

    duals: list[float] = field(default_factory=list)
    primal: float = np.inf
    loss: float = np.inf
    taken: str | None = None
    weights: Tensor | None = None

    @property
    def gap(self) -> float:
        """``(primal - dual) / |primal|``, of the surrogate problem."""
        excess = self.primal - self.duals[-1]
        return excess / abs(self.primal) if self.primal else excess


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
    chosen = solver.average if step.weights is None else step.weights
    step.primal = proximal_term(chosen, surrogate.start, lam, mu) + _mean(surrogate.value, surrogate, chosen)
    return step


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
