"""`LayerwiseTrainer`: passes over the layers from the last to the first, and the best weights at the end."""

from __future__ import annotations

import numbers
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankhinge._progress import Progress
from rankhinge.losses import RankingLoss
from rankhinge.torch.layerwise.blocks import Blocks, all_scores, as_numpy
from rankhinge.torch.layerwise.chain import Chain
from rankhinge.torch.layerwise.checks import check_inputs, count, positive, set_apart, share
from rankhinge.torch.layerwise.criteria import make_criterion
from rankhinge.torch.layerwise.step import LayerStep, train_layer
from rankhinge.torch.layerwise.surrogate import make_surrogate

__all__ = ["LayerwiseTrainer"]

_COLUMNS = ("pass", "layer", "epoch", "dual", "objective", "validation")


class LayerwiseTrainer:
    r"""Train a piecewise-linear network layer by layer, each layer as a structured SVM (LW-SVM).

    The objective, with the samples cut once into n blocks (mini-batches) and :math:`W^l` the weights and biases of
    layer l:

    .. math:: \frac{\lambda}{2} \sum_l \|W^l\|^2 + \frac1n \sum_{i=1}^n J_i(\text{scores of block } i).

    J of a ranking loss is the mean over the network's K outputs of the structured hinge of that output's scores
    within the block (one class against the rest); of ``"multiclass-hinge"`` the mean over samples of
    ``max_k ([k ≠ y] + s_k) - s_y``.

    A pass goes from the last layer to the first. A layer's turn is one step of the convex-concave procedure: J is
    bounded by a convex function H of the layer's weights W, and

    .. math:: \frac{\lambda}{2}\|W\|^2 + \frac{\mu}{2}\|W - W_t\|^2 + \frac1n \sum_i H_i(W)

    is minimised by block-coordinate Frank-Wolfe, which has no learning rate and knows a lower bound, the dual. For
    dense layers H is exact, computed in float64. For convolutions the choices of ReLUs and max-pools downstream are
    frozen to those of :math:`W_t`, which is no upper bound. Either way new weights are taken only if the true
    objective falls, so that it never rises.

    Parameters
    ----------
    network : nn.Sequential
        Made of Linear, Conv2d, ReLU, MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, BatchNorm (used as in evaluation mode,
        with its running statistics, and not trained), Dropout (the identity), Flatten, Unflatten, Identity and
        further Sequentials. It is trained in place. Layers whose weight does not require a gradient stay as they are,
        and so do biases that do not.
    loss : str or RankingLoss, default "ap"
        ``"multiclass-hinge"``, ``"ap"``, ``"ndcg"`` or any other suitable ranking loss.
    lam : float, default 1e-3
        λ. The smaller λ and μ, the more epochs Frank-Wolfe needs for the same gap.
    mu : float, optional
        μ; default: 10 λ.
    block_size : int, default 256
        Samples in a block. Each block is ranked by itself.
    max_passes : int, default 10
    max_epochs : int, default 20
        Epochs of Frank-Wolfe over the blocks in one layer's turn, at most.
    tol : float, default 0.01
        A layer's turn ends with an epoch that raises the dual by at most this share.
    method : str, default "auto"
        How the most violating ranking is found, see `rankhinge.most_violating_ranking`. All methods are exact.
    cache_bytes : int, default 1 GiB
        Memory for the inputs of the layer in training. What does not fit is recomputed each time.
    verbose : int, default 0
    random_state : int, numpy.random.Generator or None, default None
        Decides which samples form a block, the order of the blocks, and the validation part.

    Attributes
    ----------
    history_ : list of dict
        First the start (pass 0, layer None), then an entry for each layer's turn: ``"pass"``, ``"layer"`` (path of
        the module), ``"surrogate"`` (``"exact"`` or ``"frozen"``), ``"duals"`` (after each epoch), ``"dual"``,
        ``"primal"`` and ``"gap"`` (relative) of the layer's problem, proved in the arithmetic that it was computed in
        (`rankhinge.solvers.certificate`), ``"taken"`` (which candidate; None if the old
        weights were better), ``"loss"`` and ``"objective"`` (true values afterwards), ``"validation"`` (None without
        validation data), ``"seconds"`` and, thereof, ``"inference_seconds"``.
    best_ : dict
        The entry of the history whose weights the network holds at the end: the best on the validation data, or,
        without these, the one with the least objective.
    status_ : str
        ``"converged"`` (a pass changed nothing), ``"validation fell"``, ``"max_passes"``, ``"interrupted"`` by Ctrl-C,
        or ``"failed"`` with an error.
    n_passes_ : int
        Passes begun.

    Notes
    -----
    The validation metric is accuracy for ``"multiclass-hinge"``, and else one minus the ranking loss, averaged over
    the outputs: for ``"ap"`` the mean average precision. Training ends with the first pass that lowers it.

    Memory: with d weights in the layer and n blocks, Frank-Wolfe keeps n d numbers in float64, and twice as many for
    dense layers.

    Ctrl-C raises a `KeyboardInterrupt` and leaves the best weights so far in the network.

    References
    ----------
    Berrada, Zisserman, Kumar: Trusting SVM for piecewise linear CNNs, ICLR 2017; Mohapatra, Rolínek, Jawahar,
    Kolmogorov, Kumar: Efficient Optimization for Rank-based Loss Functions, CVPR 2018, section 4.3.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from rankhinge.torch.layerwise import LayerwiseTrainer
    >>> generator = torch.Generator().manual_seed(0)
    >>> X = torch.randn(120, 5, generator=generator)
    >>> y = (X[:, 0] > 0.5).long() + (X[:, 1] > 0).long()
    >>> network = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> trainer = LayerwiseTrainer(network, loss="ap", lam=1e-3, block_size=60, max_passes=2, random_state=0)
    >>> trainer = trainer.fit(X, y)
    >>> [entry["layer"] for entry in trainer.history_]
    [None, '2', '0', '2', '0']
    >>> trainer.best_["objective"] < trainer.history_[0]["objective"]
    True
    """

    def __init__(
        self,
        network: nn.Module,
        loss: str | RankingLoss = "ap",
        *,
        lam: float = 1e-3,
        mu: float | None = None,
        block_size: int = 256,
        max_passes: int = 10,
        max_epochs: int = 20,
        tol: float = 0.01,
        method: str = "auto",
        cache_bytes: int = 1 << 30,
        verbose: int = 0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.network, self.loss, self.method = network, loss, method
        self.lam, self.mu, self.tol = lam, mu, tol
        self.block_size, self.max_passes, self.max_epochs = block_size, max_passes, max_epochs
        self.cache_bytes = cache_bytes
        self.verbose, self.random_state = verbose, random_state
        self._prepare()

    def _prepare(self) -> None:
        """Read the network and check the parameters: at once, so that errors come early, and before each fit."""
        self._chain = Chain(self.network)
        self._criterion = make_criterion(self.loss, self.method)
        positive("lam", self.lam)
        positive("mu", self._mu, or_zero=True)
        positive("tol", self.tol, or_zero=True)
        for name in ("block_size", "max_passes", "max_epochs"):
            count(name, getattr(self, name))
        count("cache_bytes", self.cache_bytes, least=0)

    @property
    def _mu(self) -> float:
        return 10.0 * self.lam if self.mu is None else self.mu

    def fit(self, X: Any, y: Any, validation: tuple[Any, Any] | float | None = None) -> LayerwiseTrainer:
        """Train the network in place.

        Parameters
        ----------
        X : Tensor or array of shape (n, ...)
            The inputs of the network, converted to its dtype and device block by block.
        y : Tensor or array of shape (n,) or (n, K)
            Classes ``0 … K - 1``; for ranking losses also 0/1 for each sample and output, and with a single output
            0/1 for each sample.
        validation : (X, y) or float, optional
            Data on which the best weights are chosen, or the share of X to hold out for it.

        Returns
        -------
        LayerwiseTrainer
            Itself.
        """
        generator = np.random.default_rng(self.random_state)
        self._prepare()
        # The exact bound is in float64, and the objective must be that of the network as it is.
        plainly = torch.autocast(self._chain.device.type, enabled=False)
        with torch.inference_mode(False), torch.enable_grad(), plainly:
            return self._fit(X, y, validation, generator)

    def _fit(self, X: Any, y: Any, validation: Any, generator: np.random.Generator) -> LayerwiseTrainer:
        self._chain.check_finite()
        inputs, labels = self._check(X, y, "X")
        held_out = self._held_out(validation)
        if held_out is None and validation is not None:
            inputs, labels, held_out = set_apart(inputs, labels, share(validation), generator)
        if held_out is not None and not self._criterion.usable(held_out[1]):
            raise ValueError("the validation data has no class with both positives and negatives")
        self._blocks = Blocks(inputs, labels, self._criterion, self.block_size, generator)
        self._validation = held_out
        self.history_: list[dict[str, Any]] = []
        self.best_: dict[str, Any] = {}
        self.n_passes_, self.status_ = 0, "failed"
        # Before the first entry, the network's own weights are the best.
        self._best_weights = [layer.vector() for layer in self._chain.layers()]
        try:
            self._begin()
            with Progress(self.verbose, _COLUMNS) as progress:
                self.status_ = self._run(generator, progress)
        except KeyboardInterrupt:
            self.status_ = "interrupted"
            raise
        finally:
            self._load(self._best_weights)
            del self._blocks, self._validation, self._best_weights
        return self

    def _run(self, generator: np.random.Generator, progress: Progress) -> str:
        """Passes until there is a reason to stop, which is returned."""
        for number_of_pass in range(1, self.max_passes + 1):
            self.n_passes_ = number_of_pass
            before = self.history_[-1]
            for number, index in reversed(list(enumerate(self._chain.trainable, start=1))):
                self._turn(number, index, generator, progress)
            after = self.history_[-1]
            if after["objective"] == before["objective"]:
                return "converged"
            if after["validation"] is not None and after["validation"] < before["validation"]:
                return "validation fell"
        return "max_passes"

    def _turn(self, number: int, index: int, generator: np.random.Generator, progress: Progress) -> None:
        """One layer's turn, and its entry in the history."""
        began, inference_before = time.perf_counter(), self._criterion.seconds
        last = self.history_[-1]
        shown = {"pass": self.n_passes_, "layer": number, "objective": last["objective"]}
        if last["validation"] is not None:
            shown["validation"] = last["validation"]
        surrogate = make_surrogate(self._chain, index, self._blocks, self._criterion, self.cache_bytes)
        step = train_layer(
            surrogate,
            lam=self.lam,
            mu=self._mu,
            tol=self.tol,
            max_epochs=self.max_epochs,
            loss=last["loss"],
            generator=generator,
            watch=lambda epoch, dual: progress.update(epoch=epoch, dual=dual, **shown),
        )
        if step.weights is not None:
            surrogate.layer.load(step.weights)
        entry = self._entry(
            layer=surrogate.layer.path,
            surrogate="exact" if surrogate.layer.exact else "frozen",
            step=step,
            validation=last["validation"] if step.weights is None else self._validate(),
        )
        entry["seconds"] = time.perf_counter() - began
        entry["inference_seconds"] = self._criterion.seconds - inference_before
        self._record(entry)

    def _begin(self) -> None:
        """The history's first entry: the network as it came."""
        began = time.perf_counter()
        losses = []
        with torch.no_grad():
            for block in range(len(self._blocks)):
                scores = self._chain.run(self._blocks.inputs(block, self._chain)).double().cpu().numpy()
                losses.append(self._criterion.evaluate(scores, self._blocks.targets(block)).value)
        step = LayerStep(loss=sum(losses) / len(losses))
        entry = self._entry(layer=None, surrogate=None, step=step, validation=self._validate())
        entry["seconds"], entry["inference_seconds"] = time.perf_counter() - began, self._criterion.seconds
        self._record(entry)

    def _entry(
        self, layer: str | None, surrogate: str | None, step: LayerStep, validation: float | None
    ) -> dict[str, Any]:
        squares = sum(float(v @ v) for v in (layer.vector() for layer in self._chain.layers()))
        return {
            "pass": self.n_passes_,
            "layer": layer,
            "surrogate": surrogate,
            "duals": step.duals,
            "dual": step.dual,
            "primal": step.primal,
            "gap": step.gap,
            "taken": step.taken,
            "loss": step.loss,
            "objective": step.loss + 0.5 * self.lam * squares,
            "validation": validation,
        }

    def _record(self, entry: dict[str, Any]) -> None:
        """Append to the history; keep the weights if they are the best so far."""
        self.history_.append(entry)
        if len(self.history_) == 1 or _is_better(entry, self.best_):
            # Weights first: an interrupt in between leaves a good network and an old entry.
            self._best_weights = [layer.vector() for layer in self._chain.layers()]
            self.best_ = entry

    def _load(self, weights: list[Tensor]) -> None:
        for layer, vector in zip(self._chain.layers(), weights):
            layer.load(vector)

    def _validate(self) -> float | None:
        if self._validation is None:
            return None
        X, targets = self._validation
        return self._criterion.metric(all_scores(self._chain, X, self.block_size), targets)

    def _check(self, X: Any, y: Any, name: str) -> tuple[Tensor, NDArray[Any]]:
        inputs = check_inputs(X, name)
        try:
            # Two: one image without channels might pass for a channel of one.
            n_outputs = all_scores(self._chain, inputs[:2], 2).shape[1]
        except (RuntimeError, IndexError) as error:
            raise ValueError(f"the network does not take {name} of shape {tuple(inputs.shape)}: {error}") from None
        return inputs, self._criterion.prepare(as_numpy(y), len(inputs), n_outputs)

    def _held_out(self, validation: Any) -> tuple[Tensor, NDArray[Any]] | None:
        """Validation data given as such; None if there is none, or only a share."""
        if validation is None or isinstance(validation, numbers.Real):
            return None
        if not (isinstance(validation, tuple | list) and len(validation) == 2):
            raise ValueError(f"validation must be (X, y) or a share of the samples, got {type(validation).__name__}")
        X, y = validation
        return self._check(X, y, "validation X")


def _is_better(entry: dict[str, Any], best: dict[str, Any]) -> bool:
    """By validation if there is one; among equals the lower objective, which is the later one."""
    if entry["validation"] is not None and entry["validation"] != best["validation"]:
        return bool(entry["validation"] > best["validation"])
    return bool(entry["objective"] < best["objective"])
