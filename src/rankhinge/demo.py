"""What a most violating ranking is, and what finding it costs, shown on scikit-learn's digits: ``make demo``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge import most_violating_ranking
from rankhinge.metrics import average_precision

__all__ = ["main"]

_DIGIT = 8
_SHOWN = 72
# A ± pattern is easier to read with the positives heavy and the negatives light.
_POSITIVE, _NEGATIVE = "+", "·"


class _List(NamedTuple):
    """One list to rank: images of all digits, of which one digit is relevant."""

    X: NDArray[np.float64]
    relevant: NDArray[np.bool_]
    name: str


def _digit_against_the_rest(digit: int) -> _List:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X / 16
    return _List(X - X.mean(axis=0), y == digit, f"digit {digit} against the rest")


def _class_mean_scores(data: _List) -> NDArray[np.float64]:
    """Scores along the line between the means of the two classes, with standard deviation 1."""
    w = data.X[data.relevant].mean(axis=0) - data.X[~data.relevant].mean(axis=0)
    scores = data.X @ w
    return np.asarray(scores / scores.std())


def _pattern(order: NDArray[np.intp], relevant: NDArray[np.bool_], length: int = _SHOWN) -> str:
    """The top of a ranking, ``+`` for a positive and ``·`` for a negative, best first.

    Examples
    --------
    >>> import numpy as np
    >>> _pattern(np.array([1, 0, 2]), np.array([False, True, True]))
    '+·+'
    """
    return "".join(_POSITIVE if relevant[k] else _NEGATIVE for k in order[:length])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first flush left and the others flush right.

    Examples
    --------
    >>> print(_table(["name", "size"], [["a", "10"], ["long name", "2"]]))
    name       size
    a            10
    long name     2
    """
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in [header, *rows]
    )


def _show_rankings(data: _List, scores: NDArray[np.float64]) -> None:
    relevant = data.relevant
    by_score = np.argsort(-scores, kind="stable")
    ranking = most_violating_ranking(scores, relevant)
    loss_by_score = 1 - average_precision(relevant, scores)
    print(f"Ranked by score ({_POSITIVE} relevant, {_NEGATIVE} not, best first), AP loss {loss_by_score:.4f}:")
    print(f"  {_pattern(by_score, relevant)} …")
    print(f"The most violating ranking, AP loss Δ = {ranking.loss:.4f}:")
    print(f"  {_pattern(ranking.order, relevant)} …")
    print(
        "It is the worst that the scores do not clearly rule out: every negative climbs as long as the loss it causes\n"
        "exceeds the score it gives up."
    )


def _show_identity(data: _List, scores: NDArray[np.float64]) -> None:
    ranking = most_violating_ranking(scores, data.relevant)
    u = ranking.coefficients
    loss_by_score = 1 - average_precision(data.relevant, scores)
    print(f"Structured hinge  J = {ranking.value:.6f}")
    print(f"        Δ + u·s     = {ranking.loss:.6f} + ({u @ scores:+.6f}) = {ranking.loss + u @ scores:.6f}")
    print(f"        Σu          = {u.sum():.1e}")
    print(f"        J bounds the AP loss of the ranking by score: {ranking.value:.4f} ≥ {loss_by_score:.4f}")
    if not np.isclose(ranking.loss + u @ scores, ranking.value, rtol=1e-9, atol=1e-12):
        raise AssertionError("J = loss + u·s does not hold")


def _show_margins(data: _List, scores: NDArray[np.float64]) -> None:
    """The same ranking by score at several scales: the larger the margins, the less can violate them."""
    last_rank, length = int(data.relevant.sum()) + 1, 48
    rows = []
    for scale in (1, 3, 10, 30, 100, 300):
        ranking = most_violating_ranking(scale * scores, data.relevant)
        last = float(np.mean(ranking.interleaving_ranks == last_rank))
        pattern = _pattern(ranking.order, data.relevant, length)
        rows.append([f"× {scale}", f"{ranking.value:.3f}", f"{ranking.loss:.3f}", f"{last:.0%}", pattern])
    print(_table(["scores", "J", "Δ", "last", "most violating ranking".ljust(length)], rows))
    print(
        "Δ approaches the loss of the ranking by score; J grows, because pairs in the wrong order now cost more.\n"
        '"last": negatives behind all positives, which the fast methods settle without sorting them.'
    )


def _milliseconds(call: Callable[[], Any], budget: float = 0.2) -> float:
    """Median over a few calls; the first, which may compile, is not counted."""
    call()
    taken: list[float] = []
    while len(taken) < 3 or (sum(taken) < budget and len(taken) < 25):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return 1e3 * float(np.median(taken))


def _larger_list(
    data: _List, scores: NDArray[np.float64], copies: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The list several times over, with a little noise so that no two scores are equal."""
    noise = np.random.default_rng(0).normal(scale=0.1, size=copies * scores.size)
    return np.tile(scores, copies) + noise, np.tile(data.relevant, copies)


def _show_costs(data: _List, scores: NDArray[np.float64]) -> None:
    lists = [(scores, data.relevant), _larger_list(data, scores, 10)]
    rivals = [("0-1 hinge pass, for comparison", "zero-one", "auto")]
    rivals += [(f"AP, {method}", "ap", method) for method in ("auto", "quicksort", "select", "search", "greedy")]
    rows = []
    for name, loss, method in rivals:
        row = [name]
        for values, relevant in lists:
            call = partial(most_violating_ranking, values, relevant, loss, method)
            row += [f"{_milliseconds(call):.3f}", "" if loss == "zero-one" else f"{call().n_steps:,}"]
        rows.append(row)
    header = [""]
    for _, relevant in lists:
        header += [f"{int(relevant.sum()):,} + {int((~relevant).sum()):,}: ms", "steps"]
    print(_table(header, rows))
    print("All methods are exact and find the same J; steps: how often the loss's step function was evaluated.")


def _section(title: str) -> None:
    print(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}")


def main() -> None:
    """Print the demonstration."""
    data = _digit_against_the_rest(_DIGIT)
    scores = _class_mean_scores(data)
    n_positives = int(data.relevant.sum())
    print(f"scikit-learn's digits, {data.name}: {n_positives} positives, {data.relevant.size - n_positives} negatives.")
    print("Scores: the direction between the class means, not trained.")
    _section("1. What a most violating ranking is")
    _show_rankings(data, 10 * scores)
    _section("2. Its value is convex in the scores, and u is a subgradient")
    _show_identity(data, 10 * scores)
    _section("3. Larger margins leave less to violate")
    _show_margins(data, scores)
    _section("4. What the methods cost (positives + negatives)")
    _show_costs(data, 10 * scores)


if __name__ == "__main__":
    main()
