r"""Convex functions of one layer's weights that stand for the loss of a block.

`ExactSplit` bounds the loss from above: everything downstream is split into convex parts (`Link.split`), the loss
into :math:`\mathrm{cvx} - \mathrm{ccv}` (`criteria`), and ccv is replaced by its tangent at :math:`W_t`:

.. math:: H(W) = \mathrm{cvx}(W) - \mathrm{ccv}(W_t) - \langle \nabla \mathrm{ccv}(W_t), W - W_t \rangle \ge J(W),

with equality at :math:`W_t` (CCCP; Yuille and Rangarajan 2003). It computes in float64, because the parts grow with
depth while their difference does not.

`FrozenChoices` keeps the choices that ReLUs and max-pools downstream make at :math:`W_t`: the scores are then linear
in W, and J of them is convex. This is no upper bound: the true loss may rise though H falls.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankhinge.torch.layerwise.blocks import Blocks
from rankhinge.torch.layerwise.chain import Chain
from rankhinge.torch.layerwise.criteria import Criterion, Outcome
from rankhinge.torch.layerwise.links import Affine

__all__ = ["ExactSplit", "FrozenChoices", "Piece", "Surrogate", "make_surrogate"]


class Piece(NamedTuple):
    """``offset + ⟨slope, W⟩``; of H a lower bound that is tight where it was made."""

    offset: float
    slope: Tensor


class _Prepared(NamedTuple):
    """What a block needs that does not change while the layer is trained."""

    inputs: Tensor  # of the layer
    choices: list[Tensor | None]  # downstream, at W_t

    @property
    def n_bytes(self) -> int:
        return sum(t.element_size() * t.numel() for t in [self.inputs, *self.choices] if t is not None)


class Surrogate:
    """H of each block for one layer, and the true J beside it.

    `n_parts` says how many times over H adds up numbers of its `size`, and `dtype` what they are rounded to.

    Parameters
    ----------
    chain : Chain
        With the weights ``W_t``, which must not change in the meantime.
    index : int
        Of the layer's link.
    blocks : Blocks
    criterion : Criterion
    cache_bytes : int
        How much of the layer's inputs (and of choices) to keep; what does not fit is computed at every visit.
    """

    n_parts: int

    def __init__(self, chain: Chain, index: int, blocks: Blocks, criterion: Criterion, cache_bytes: int) -> None:
        self.chain, self.blocks, self.criterion = chain, blocks, criterion
        self.layer, self._index = chain.layer(index), index
        self.downstream = chain.links[index + 1 :]
        self.start = self.layer.vector()
        self._kept: dict[int, _Prepared] = {}
        self._room = cache_bytes

    @property
    def dtype(self) -> torch.dtype:
        """In which H is computed."""
        raise NotImplementedError

    def piece(self, block: int, vector: Tensor) -> Piece:
        """A piece of the block's H that is tight at this vector."""
        raise NotImplementedError

    def value(self, block: int, vector: Tensor) -> float:
        """H of the block at this vector."""
        raise NotImplementedError

    @torch.no_grad()
    def true_value(self, block: int, vector: Tensor) -> float:
        """J of the block, were this vector written into the network."""
        weights = self.layer.unpack(vector.to(self.chain.dtype))
        output = self.layer.apply(self.prepared(block).inputs, *weights)
        return self._evaluate(block, self.chain.run(output, self._index + 1)).value

    def size(self, block: int, magnitudes: Tensor) -> Piece:
        """How large the numbers are that H of the block adds up, at vectors with entries of these sizes at most.

        That is a linear function, which the slope tells: entry by entry what H's own slope adds up.
        """
        magnitudes = magnitudes.detach().clone().requires_grad_()
        inputs = self.prepared(block).inputs.double().abs()
        with torch.enable_grad():
            weight, bias = self.layer.unpack(magnitudes)
            x = self.layer.apply(inputs, weight, None if bias is None else bias.abs())
            for link in self.downstream:
                x = link.sizes(x)
            # Coefficients of scores are within ``-α⁺`` and ``α⁻``.
            plus, minus = self.criterion.shifts(self.blocks.targets(block), x.shape[1])
            total = (torch.as_tensor(plus + minus).to(x) * x).sum()
        (slope,) = torch.autograd.grad(total, magnitudes)
        # The loss itself is 1 at most.
        return Piece(1.0 + total.item() - float(slope @ magnitudes.detach()), slope)

    @property
    def n_terms(self) -> int:
        """Of the sums one after the other that lead to H: through the layers, and over the samples of a block."""
        layers = [link for link in (self.layer, *self.downstream) if isinstance(link, Affine)]
        through = sum(weight[:1].numel() for weight, _ in (link.parameters() for link in layers))
        return through + max(rows.size for rows in self.blocks.rows)

    @torch.no_grad()
    def prepared(self, block: int) -> _Prepared:
        if block in self._kept:
            return self._kept[block]
        inputs = self.chain.run(self.blocks.inputs(block, self.chain), stop=self._index)
        prepared = _Prepared(inputs, self._choices(inputs))
        if prepared.n_bytes <= self._room:
            self._room -= prepared.n_bytes
            self._kept[block] = prepared
        return prepared

    def _choices(self, inputs: Tensor) -> list[Tensor | None]:
        return []

    def _evaluate(self, block: int, scores: Tensor) -> Outcome:
        return self.criterion.evaluate(scores.detach().double().cpu().numpy(), self.blocks.targets(block))


class FrozenChoices(Surrogate):
    """H = J of the scores with the downstream choices of ``W_t``, in the network's own dtype."""

    # Value, and slope times point.
    n_parts = 2

    @property
    def dtype(self) -> torch.dtype:
        return self.chain.dtype

    def _choices(self, inputs: Tensor) -> list[Tensor | None]:
        x, choices = self.layer.plain(inputs), []
        for link in self.downstream:
            x, choice = link.choose(x)
            choices.append(choice)
        return choices

    def _scores(self, block: int, vector: Tensor) -> Tensor:
        prepared = self.prepared(block)
        x = self.layer.apply(prepared.inputs, *self.layer.unpack(vector))
        for link, choice in zip(self.downstream, prepared.choices):
            x = link.frozen(x, choice)
        return x

    def piece(self, block: int, vector: Tensor) -> Piece:
        # A copy: in float64 it would be the solver's own point that starts to record gradients.
        rounded = vector.detach().to(self.chain.dtype, copy=True).requires_grad_()
        with torch.enable_grad():
            scores = self._scores(block, rounded)
        value, u = self._evaluate(block, scores)
        (slope,) = torch.autograd.grad(scores, rounded, torch.as_tensor(u).to(scores))
        slope = slope.double()
        return Piece(value - float(slope @ rounded.detach().double()), slope)

    @torch.no_grad()
    def value(self, block: int, vector: Tensor) -> float:
        return self._evaluate(block, self._scores(block, vector.to(self.chain.dtype))).value


class ExactSplit(Surrogate):
    """H = cvx less the tangent of ccv at ``W_t``, in float64."""

    # J, cvx and ccv, and the tangent; each with its value, and its slope times point.
    n_parts = 8

    @property
    def dtype(self) -> torch.dtype:
        return torch.float64

    def __init__(self, chain: Chain, index: int, blocks: Blocks, criterion: Criterion, cache_bytes: int) -> None:
        super().__init__(chain, index, blocks, criterion, cache_bytes)
        self._tangents: dict[int, Piece] = {}

    def parts(self, block: int, vector: Tensor) -> tuple[Tensor, Tensor]:
        """Convex parts of the scores: ``s = plus - minus``."""
        plus = self.layer.apply(self.prepared(block).inputs.double(), *self.layer.unpack(vector))
        minus = torch.zeros_like(plus)
        for link in self.downstream:
            plus, minus = link.split(plus, minus)
        return plus, minus

    def shifts(self, block: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """``α⁺`` and ``α⁻`` of the criterion."""
        plus, minus = self.criterion.shifts(self.blocks.targets(block), like.shape[1])
        return torch.as_tensor(plus).to(like), torch.as_tensor(minus).to(like)

    def piece(self, block: int, vector: Tensor) -> Piece:
        tangent = self._tangent(block)
        vector = vector.detach().clone().requires_grad_()
        with torch.enable_grad():
            plus, minus = self.parts(block, vector)
        value, slope_of_scores = self._evaluate(block, plus - minus)
        u = torch.as_tensor(slope_of_scores).to(plus)
        a_plus, a_minus = self.shifts(block, plus)
        with torch.enable_grad():
            linear = ((u + a_plus) * plus + (a_minus - u) * minus).sum()
        (slope,) = torch.autograd.grad(linear, vector)
        cvx = value + float((a_plus * plus + a_minus * minus).detach().sum())
        offset = cvx - float(slope @ vector.detach())
        return Piece(offset - tangent.offset, slope - tangent.slope)

    @torch.no_grad()
    def value(self, block: int, vector: Tensor) -> float:
        tangent = self._tangent(block)
        cvx, _ = self.convex_parts(block, vector)
        return cvx - tangent.offset - float(tangent.slope @ vector)

    @torch.no_grad()
    def convex_parts(self, block: int, vector: Tensor) -> tuple[float, float]:
        """``(cvx, ccv)`` of the block, both convex in the vector: ``J = cvx - ccv``."""
        plus, minus = self.parts(block, vector)
        a_plus, a_minus = self.shifts(block, plus)
        ccv = float((a_plus * plus + a_minus * minus).sum())
        return self._evaluate(block, plus - minus).value + ccv, ccv

    def _tangent(self, block: int) -> Piece:
        """The tangent of ccv at ``W_t``."""
        if block not in self._tangents:
            vector = self.start.clone().requires_grad_()
            with torch.enable_grad():
                plus, minus = self.parts(block, vector)
                a_plus, a_minus = self.shifts(block, plus)
                ccv = (a_plus * plus + a_minus * minus).sum()
            (slope,) = torch.autograd.grad(ccv, vector)
            self._tangents[block] = Piece(ccv.item() - float(slope @ self.start), slope)
        return self._tangents[block]


def make_surrogate(chain: Chain, index: int, blocks: Blocks, criterion: Criterion, cache_bytes: int) -> Surrogate:
    """The exact split for dense layers, frozen choices for convolutions."""
    kind = ExactSplit if chain.layer(index).exact else FrozenChoices
    return kind(chain, index, blocks, criterion, cache_bytes)
