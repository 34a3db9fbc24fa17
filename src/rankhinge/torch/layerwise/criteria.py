r"""What a block of samples loses, as a function of the network's scores, and how that is a difference of convex parts.

A criterion :math:`J(s)` is convex in the scores, with a subgradient u. For scores :math:`s = q^+ - q^-` whose parts
are convex in some weights, it knows coefficients :math:`\alpha^\pm \ge 0` such that :math:`u + \alpha^+ \ge 0` and
:math:`\alpha^- - u \ge 0` for every u that can occur. Then

.. math:: \mathrm{ccv} = \sum_k \alpha^+_k q^+_k + \alpha^-_k q^-_k, \qquad \mathrm{cvx} = J(q^+ - q^-) + \mathrm{ccv}

are both convex in those weights, as maxima of sums of convex functions with non-negative coefficients, and
:math:`J = \mathrm{cvx} - \mathrm{ccv}`.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge.inference import core, most_violating_ranking, ranking_loss
from rankhinge.losses import RankingLoss, get_loss

__all__ = ["Criterion", "MulticlassHinge", "OneVersusRest", "Outcome", "make_criterion"]

Floats = NDArray[np.float64]
MULTICLASS_HINGE = "multiclass-hinge"


class Outcome(NamedTuple):
    """J of a block, and its subgradient with regard to the scores, (n, K)."""

    value: float
    slope: Floats


class Criterion(Protocol):
    """What the trainer asks of a loss; `targets` are what `prepare` has made of the user's y."""

    seconds: float  # spent in inference so far

    def prepare(self, y: ArrayLike, n_samples: int, n_outputs: int) -> NDArray[Any]:
        """Targets, one row a sample, from labels; a ValueError names the one that does not fit."""

    def usable(self, targets: NDArray[Any]) -> bool:
        """Whether a block has anything to say."""

    def evaluate(self, scores: Floats, targets: NDArray[Any]) -> Outcome:
        """J and a subgradient, for a block."""

    def shifts(self, targets: NDArray[Any], n_outputs: int) -> tuple[Floats, Floats]:
        """``α⁺`` and ``α⁻``, (n, K)."""

    def metric(self, scores: Floats, targets: NDArray[Any]) -> float:
        """What validation looks at: higher is better."""


def make_criterion(loss: str | RankingLoss, method: str) -> Criterion:
    """The criterion of this name, or that of a ranking loss; `method` is that of inference."""
    if isinstance(loss, str) and loss == MULTICLASS_HINGE:
        if method != "auto":
            raise ValueError(f"the loss {MULTICLASS_HINGE!r} is a single pass: method must be 'auto', not {method!r}")
        return MulticlassHinge()
    try:
        return OneVersusRest(get_loss(loss), method)
    except ValueError as error:
        raise ValueError(f"{error} (or {MULTICLASS_HINGE!r})") from None


class MulticlassHinge:
    """Mean over samples of ``max_k ([k ≠ y] + s_k) - s_y``, which bounds the share of errors: the papers' 0-1 loss.

    Crammer and Singer: On the algorithmic implementation of multiclass kernel-based vector machines, JMLR 2001.
    Here ``ccv = q⁺_y + Σ_{k ≠ y} q⁻_k``, averaged over samples.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def prepare(self, y: ArrayLike, n_samples: int, n_outputs: int) -> NDArray[Any]:
        if n_outputs < 2:
            raise ValueError(f"the loss {MULTICLASS_HINGE!r} needs an output for each class, the network has one")
        return _class_labels(np.asarray(y), n_samples, n_outputs)

    def usable(self, targets: NDArray[Any]) -> bool:
        return targets.size > 0

    def evaluate(self, scores: Floats, targets: NDArray[Any]) -> Outcome:
        _require_finite(scores)
        began = time.perf_counter()
        rows = np.arange(targets.size)
        augmented = scores + 1.0
        augmented[rows, targets] -= 1.0
        worst = augmented.argmax(axis=1)
        value = float(np.mean(augmented[rows, worst] - scores[rows, targets]))
        slope = np.zeros_like(scores)
        slope[rows, worst] += 1.0 / targets.size
        slope[rows, targets] -= 1.0 / targets.size
        self.seconds += time.perf_counter() - began
        return Outcome(value, slope)

    def shifts(self, targets: NDArray[Any], n_outputs: int) -> tuple[Floats, Floats]:
        plus = np.zeros((targets.size, n_outputs))
        plus[np.arange(targets.size), targets] = 1.0 / targets.size
        return plus, 1.0 / targets.size - plus

    def metric(self, scores: Floats, targets: NDArray[Any]) -> float:
        return float(np.mean(scores.argmax(axis=1) == targets))


class OneVersusRest:
    """Mean over the K outputs of the structured hinge of that output's scores: each class ranks the whole block.

    Outputs without a positive or a negative in the block do not count in its mean. With P positives and N negatives
    ``ccv = (2/P) Σ₊ q⁺ + (2/N) Σ₋ q⁻``.
    """

    def __init__(self, loss: RankingLoss, method: str) -> None:
        if not loss.is_ranking:
            raise ValueError("the zero-one loss ranks nothing: choose a ranking loss")
        self.loss, self.method, self.seconds = loss, method, 0.0
        # An unknown method, or one that does not serve the loss, is an error now rather than in the first fit.
        most_violating_ranking([0.0, 1.0], [True, False], loss, method)

    def prepare(self, y: ArrayLike, n_samples: int, n_outputs: int) -> NDArray[Any]:
        labels = np.asarray(y)
        if labels.ndim == 1 and n_outputs > 1:
            return _class_labels(labels, n_samples, n_outputs)[:, None] == np.arange(n_outputs)
        if labels.ndim == 1:
            labels = labels[:, None]
        if labels.shape != (n_samples, n_outputs):
            raise ValueError(f"y has shape {np.shape(y)}, but the network gives scores of {(n_samples, n_outputs)}")
        relevant = labels == 1
        wrong = np.argwhere(~relevant & (labels != 0))
        if wrong.size:
            place = tuple(int(i) for i in wrong[0][: np.ndim(y)])
            raise ValueError(f"y[{', '.join(map(str, place))}] is {np.asarray(y)[place]}: it must be 0 or 1")
        return relevant

    def usable(self, targets: NDArray[Any]) -> bool:
        return bool(_both(targets).any())

    def evaluate(self, scores: Floats, targets: NDArray[Any]) -> Outcome:
        _require_finite(scores)
        lists, relevant = np.ascontiguousarray(scores.T), np.ascontiguousarray(targets.T)
        began = time.perf_counter()
        total, slopes = self._infer_together(lists, relevant) if self.method == "auto" else self._infer(lists, relevant)
        self.seconds += time.perf_counter() - began
        n_usable = int(_both(targets).sum())
        return Outcome(total / n_usable, slopes.T / n_usable)

    def _infer_together(self, lists: Floats, relevant: NDArray[np.bool_]) -> tuple[float, Floats]:
        offsets = np.arange(lists.shape[0] + 1) * lists.shape[1]
        batch = core.infer_many(lists.ravel(), relevant.ravel(), offsets, self.loss)
        return float(batch.values.sum()), batch.coefficients.reshape(lists.shape)

    def _infer(self, lists: Floats, relevant: NDArray[np.bool_]) -> tuple[float, Floats]:
        total, slopes = 0.0, np.zeros_like(lists)
        for k in np.flatnonzero(_both(relevant.T)):
            ranking = most_violating_ranking(lists[k], relevant[k], self.loss, self.method)
            total += ranking.value
            slopes[k] = ranking.coefficients
        return total, slopes

    def shifts(self, targets: NDArray[Any], n_outputs: int) -> tuple[Floats, Floats]:
        usable = _both(targets)
        weight = 2.0 * usable / max(int(usable.sum()), 1)
        n_positives = targets.sum(axis=0)
        plus = targets * (weight / np.maximum(n_positives, 1))
        minus = ~targets * (weight / np.maximum(len(targets) - n_positives, 1))
        return plus, minus

    def metric(self, scores: Floats, targets: NDArray[Any]) -> float:
        losses = [ranking_loss(scores[:, k], targets[:, k], self.loss) for k in np.flatnonzero(_both(targets))]
        return 1.0 - float(np.mean(losses))


def _both(targets: NDArray[Any]) -> NDArray[np.bool_]:
    """Which outputs have positives and negatives."""
    return np.logical_and(targets.any(axis=0), ~targets.all(axis=0))


def _class_labels(y: NDArray[Any], n_samples: int, n_outputs: int) -> NDArray[np.int64]:
    if y.shape != (n_samples,):
        raise ValueError(f"y has shape {y.shape}, but there are {n_samples} samples")
    if y.dtype.kind not in "iuf":
        raise ValueError(f"y must hold class numbers, got dtype {y.dtype}")
    fits = (y == np.round(y)) & (y >= 0) & (y < n_outputs)
    for place in np.flatnonzero(~fits)[:1]:
        raise ValueError(f"y[{place}] is {y[place]}: with {n_outputs} outputs, classes are 0 … {n_outputs - 1}")
    return y.astype(np.int64)


def _require_finite(scores: Floats) -> None:
    bad = np.argwhere(~np.isfinite(scores))
    if bad.size:
        row, column = bad[0]
        raise ValueError(f"the network's score of sample {row} of a block, output {column}, is {scores[row, column]}")
