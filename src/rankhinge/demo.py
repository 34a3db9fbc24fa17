"""Training for a ranking metric, shown on scikit-learn's digits: ``make demo``.

First what training minimises, the value of a most violating ranking; then `RankSVC` beside `LinearSVC`.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge import most_violating_ranking
from rankhinge.metrics import average_precision, ndcg

__all__ = ["main"]

_DIGIT = 8
_SHOWN = 72
# A ± pattern is easier to read with the positives heavy and the negatives light.
_POSITIVE, _NEGATIVE = "+", "·"
# Few samples and several draws of them: on much data the digits are too easy, and on one draw luck decides.
_N_TRAIN = 200
_SPLITS = 5


class _Split(NamedTuple):
    """Images for training and for the test, and which digit each shows."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


class _Outcome(NamedTuple):
    """One fit on one split; `gap` is nan where the program does not report one."""

    scores: NDArray[np.float64]
    seconds: float
    gap: float


def _split(seed: int) -> _Split:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, train_size=_N_TRAIN, stratify=y, random_state=seed)
    return _Split(X, y, X_test, y_test)


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


def _show_rankings(split: _Split) -> None:
    """What training minimises, on scores that are not trained: the direction between the class means."""
    relevant = split.y_test == _DIGIT
    w = split.X[split.y == _DIGIT].mean(axis=0) - split.X[split.y != _DIGIT].mean(axis=0)
    scores = split.X_test @ w
    scores = 10 * (scores - scores.mean()) / scores.std()
    ranking = most_violating_ranking(scores, relevant)
    loss_by_score = 1 - float(average_precision(relevant, scores))
    print(
        f"Ranked by untrained scores ({_POSITIVE} relevant, {_NEGATIVE} not, best first), AP loss {loss_by_score:.4f}:"
    )
    print(f"  {_pattern(np.argsort(-scores, kind='stable'), relevant)} …")
    print(f"The most violating ranking, AP loss Δ = {ranking.loss:.4f}:")
    print(f"  {_pattern(ranking.order, relevant)} …")
    score_part = float(ranking.coefficients @ scores)
    print(
        "It is the worst that the scores do not clearly rule out: every negative climbs as long as the loss it causes\n"
        f"exceeds the score it gives up. Its value J = Δ + u·s = {ranking.loss:.4f} + ({score_part:+.4f}) = "
        f"{ranking.value:.4f} bounds the AP loss, is convex in\nthe scores, and u is a subgradient: "
        "RankSVC minimises ½‖w‖² + C·J(Xw)."
    )
    if not np.isclose(ranking.loss + score_part, ranking.value, rtol=1e-9, atol=1e-12):
        raise AssertionError("J = loss + u·s does not hold")


def _timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    model = fit()
    return model, time.perf_counter() - start


def _folds(split: _Split) -> list[Any]:
    """Folds with all ten digits in the same proportions, for one digit and for all: each has the same C in both."""
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(5, shuffle=True, random_state=0).split(split.X, split.y))


def _rank_svc(loss: str) -> Callable[[_Split], _Outcome]:
    """`RankSVC` with C by cross-validation on the training part; the time is that of the final fit."""
    from rankhinge import RankSVC, RankSVCCV

    def run(split: _Split) -> _Outcome:
        y = split.y == _DIGIT
        C = RankSVCCV(loss=loss, Cs=np.logspace(0, 5, 6), cv=_folds(split), bound="convex").fit(split.X, y).C_
        model, seconds = _timed(lambda: RankSVC(loss=loss, C=C, bound="convex").fit(split.X, y))
        return _Outcome(model.decision_function(split.X_test), seconds, model.gap_)

    return run


def _linear_svc(y: NDArray[Any], split: _Split) -> tuple[Any, float]:
    """`LinearSVC` with C by cross-validation on average precision, and the time of its final fit."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    search = GridSearchCV(LinearSVC(max_iter=10_000), {"C": np.logspace(-3, 2, 6)}, scoring="average_precision", cv=5)
    with warnings.catch_warnings():
        # Some of the values of C do not converge; cross-validation seldom picks them.
        warnings.simplefilter("ignore")
        C = search.fit(split.X, y).best_params_["C"]
        return _timed(lambda: LinearSVC(C=C, max_iter=10_000).fit(split.X, y))


def _run_linear_svc(split: _Split) -> _Outcome:
    model, seconds = _linear_svc(split.y == _DIGIT, split)
    return _Outcome(model.decision_function(split.X_test), seconds, float("nan"))


def _quality(split: _Split, outcome: _Outcome) -> tuple[float, float]:
    relevant = (split.y_test == _DIGIT).astype(np.int64)
    return float(average_precision(relevant, outcome.scores)), float(ndcg(relevant, outcome.scores))


def _compare(splits: Sequence[_Split]) -> dict[str, list[_Outcome]]:
    """Every model on every split, and the table."""
    models = {"RankSVC(ap)": _rank_svc("ap"), "RankSVC(ndcg)": _rank_svc("ndcg"), "LinearSVC": _run_linear_svc}
    outcomes = {name: [run(split) for split in splits] for name, run in models.items()}
    rows = []
    for name, found in outcomes.items():
        quality = np.array([_quality(split, outcome) for split, outcome in zip(splits, found, strict=True)])
        gap = max(outcome.gap for outcome in found)
        rows.append(
            [
                name,
                *(f"{column.mean():.3f} ± {column.std():.3f}" for column in quality.T),
                f"{1e3 * float(np.median([outcome.seconds for outcome in found])):.1f} ms",
                "not reported" if np.isnan(gap) else f"{gap:.1e}",
            ]
        )
    print(_table(["", "test AP", "test NDCG", "time of a fit", "largest gap"], rows))
    print(
        f"Mean and standard deviation over {len(splits)} draws of the training images, C by cross-validation for each. "
        "The gap\nis a proof: the objective is at most that part above its minimum."
    )
    return outcomes


def _all_digits(split: _Split) -> None:
    """The same for every digit, so that nobody need believe that 8 is typical: it is not."""
    from rankhinge import RankSVCCV

    # Ten problems in lockstep, each with a C of its own.
    model = RankSVCCV(Cs=np.logspace(0, 5, 6), cv=_folds(split), bound="convex").fit(split.X, split.y)
    scores = model.decision_function(split.X_test)
    ours, theirs = [], []
    for digit in range(10):
        relevant = (split.y_test == digit).astype(np.int64)
        other = _linear_svc(split.y == digit, split)[0].decision_function(split.X_test)
        ours.append(float(average_precision(relevant, scores[:, digit])))
        theirs.append(float(average_precision(relevant, other)))
    rows = [
        [name, *(f"{value:.3f}" for value in values), f"{np.mean(values):.3f}"]
        for name, values in (("RankSVC(ap)", ours), ("LinearSVC", theirs))
    ]
    print(_table(["test AP", *map(str, range(10)), "mean"], rows))
    wins = sum(mine > other for mine, other in zip(ours, theirs, strict=True))
    losses = sum(mine < other for mine, other in zip(ours, theirs, strict=True))
    print(
        f"On this draw RankSVC ranks {wins} of the 10 digits better than LinearSVC, and {losses} worse. For digit "
        f"{_DIGIT} it is\nwithin the gap of the model in the plot, not the same to the last digit."
    )


def _precision_recall(
    relevant: NDArray[np.bool_], scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    hits = np.cumsum(relevant[np.argsort(-scores, kind="stable")])
    return hits / hits[-1], hits / np.arange(1, hits.size + 1)


def _draw(split: _Split, outcomes: dict[str, list[_Outcome]], path: Path) -> None:
    try:
        import matplotlib
    except ImportError:
        print("The precision-recall plot needs matplotlib: pip install 'rankhinge[plot]'")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    relevant = split.y_test == _DIGIT
    figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    styles = {"RankSVC(ap)": ("#0072B2", "-"), "RankSVC(ndcg)": ("#009E73", "--"), "LinearSVC": ("#D55E00", "-.")}
    for name, (colour, line) in styles.items():
        outcome = outcomes[name][0]
        recall, precision = _precision_recall(relevant, outcome.scores)
        label = f"{name}, AP {_quality(split, outcome)[0]:.3f}"
        axes.plot(recall, precision, color=colour, linestyle=line, linewidth=1.8, label=label)
    axes.axhline(relevant.mean(), color="0.6", linewidth=0.8, linestyle=":")
    axes.annotate("random order", (0.01, relevant.mean() + 0.015), color="0.4", fontsize="small")
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.005), ylim=(0, 1.02))
    axes.set_title(f"Digit {_DIGIT} against the rest, {_N_TRAIN} training images, first draw", fontsize="medium")
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.14), frameon=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    except OSError as error:
        print(f"\nThe precision-recall plot could not be written to {path}: {error}. Choose another place with --plot")
    else:
        print(f"\nPrecision and recall on the test images of the first draw: {path}")
    plt.close(figure)


def _section(title: str) -> None:
    print(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the demonstration, and write the plot."""
    parser = argparse.ArgumentParser(prog="python -m rankhinge.demo", description="RankSVC beside LinearSVC on digits.")
    parser.add_argument("--plot", type=Path, default=Path("rankhinge-demo.png"), help="where to write the plot (PNG)")
    path = parser.parse_args(arguments).plot
    splits = [_split(seed) for seed in range(_SPLITS)]
    first = splits[0]
    print(
        f"scikit-learn's digits: {first.y.size} images for training, {first.y_test.size} for the test. "
        "The first call compiles kernels, once."
    )
    _section("1. What training minimises: the most violating ranking")
    _show_rankings(first)
    _section(f"2. Digit {_DIGIT}, the hardest, against the rest")
    outcomes = _compare(splits)
    _section("3. All digits, first draw: ten problems in lockstep")
    _all_digits(first)
    _draw(first, outcomes, path)


if __name__ == "__main__":
    main()
