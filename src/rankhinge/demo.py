"""Training for a ranking metric, shown on data that scikit-learn ships: ``make demo``.

First what training bounds, the value of a most violating ranking. Then `RankSVC` beside logistic regression and
`LinearSVC`, untuned and tuned, where it pays and where it does not.
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
from rankhinge.metrics import average_precision

__all__ = ["main"]

_SHOWN = 72
# A ± pattern is easier to read with the positives heavy and the negatives light.
_POSITIVE, _NEGATIVE = "+", "·"
# Draws of the training half. On a single draw, luck decides.
_SPLITS = 3


class _Split(NamedTuple):
    """Samples for training and for the test, and which of them are relevant."""

    X: NDArray[np.float64]
    y: NDArray[np.bool_]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.bool_]


class _Outcome(NamedTuple):
    """One model on one split; `gap` is nan where the program proves none."""

    scores: NDArray[np.float64]
    precision: float
    seconds: float
    gap: float


def _digits() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The hardest digit, 8, against the rest: raw pixels from 0 to 16."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X, y == 8


def _cancer() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Malignant tumours, in features of very different units: nearly separable."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return X, y == 0


def _splits(data: tuple[NDArray[np.float64], NDArray[np.bool_]]) -> list[_Split]:
    """One half for training, the other for the test, several times."""
    from sklearn.model_selection import train_test_split

    X, y = data
    halves = [train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed) for seed in range(_SPLITS)]
    return [_Split(X, y, X_test, y_test) for X, X_test, y, y_test in halves]


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
    relevant = split.y_test
    w = split.X[split.y].mean(axis=0) - split.X[~split.y].mean(axis=0)
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
        'RankSVC(bound="convex") minimises ½‖w‖² + C·J(Xw);\nthe default, a tighter bound, starts from a logistic '
        "regression and compares with its own ranking."
    )
    if not np.isclose(ranking.loss + score_part, ranking.value, rtol=1e-9, atol=1e-12):
        raise AssertionError("J = loss + u·s does not hold")


Models = dict[str, Callable[[], Any]]


def _sixteenths() -> Models:
    """The obvious choice for pixels between 0 and 16."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    pixels = FunctionTransformer(lambda X: X / 16)
    return {"pixels / 16, LogisticRegression()": lambda: make_pipeline(pixels, LogisticRegression())}


def _models() -> Models:
    """What is compared: each as it is, with scaled features where that is the usual advice, and tuned."""
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    from rankhinge import RankSVC, RankSVCCV

    def tuned_svc() -> Any:
        grid = {"linearsvc__C": np.logspace(-4, 1, 6)}
        return GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), grid, scoring="average_precision", cv=5)

    return {
        "RankSVC()": RankSVC,
        "LogisticRegression()": LogisticRegression,
        "LinearSVC()": LinearSVC,
        "scaled, LogisticRegression()": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        "scaled, LinearSVC()": lambda: make_pipeline(StandardScaler(), LinearSVC()),
        "tuned: RankSVCCV()": lambda: RankSVCCV(random_state=0),
        "tuned: scaled, LogisticRegressionCV": lambda: make_pipeline(
            StandardScaler(), LogisticRegressionCV(Cs=6, cv=5, scoring="average_precision", max_iter=1000)
        ),
        "tuned: scaled, LinearSVC": tuned_svc,
    }


def _outcome(model: Any, split: _Split) -> _Outcome:
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Plain models on raw features and some values of the grids do not converge: that is part of the comparison.
        warnings.simplefilter("ignore")
        model.fit(split.X, split.y)
    seconds = time.perf_counter() - start
    scores = model.decision_function(split.X_test)
    gap = float(getattr(model, "gap_", np.nan))
    return _Outcome(scores, float(average_precision(split.y_test, scores)), seconds, gap)


def _compare(splits: Sequence[_Split], more: Models | None = None) -> dict[str, list[_Outcome]]:
    """Every model on every split, the table, and which wins."""
    models = _models() if more is None else more | _models()
    outcomes = {name: [_outcome(make(), split) for split in splits] for name, make in models.items()}
    rows = []
    for name, found in outcomes.items():
        precision, gap = np.array([outcome.precision for outcome in found]), max(outcome.gap for outcome in found)
        rows.append(
            [
                name,
                f"{100 * precision.mean():.1f} ± {100 * precision.std():.1f}",
                f"{float(np.median([outcome.seconds for outcome in found])):.2f} s",
                "–" if np.isnan(gap) else f"{gap:.1e}",
            ]
        )
    print(_table(["", "test AP, %", "time", "proved gap"], rows))
    for way, ours in (("As they are", "RankSVC()"), ("Tuned", "tuned: RankSVCCV()")):
        print(_verdict(way, ours, outcomes))
    return outcomes


def _verdict(way: str, ours: str, outcomes: dict[str, list[_Outcome]]) -> str:
    """The winner among models of a kind, and its lead, with the standard error of the paired difference."""
    is_tuned = ours.startswith("tuned")
    rivals = {name: found for name, found in outcomes.items() if name != ours and name.startswith("tuned") == is_tuned}
    best = max(rivals, key=lambda name: np.mean([outcome.precision for outcome in rivals[name]]))
    differences = 100 * np.array(
        [mine.precision - other.precision for mine, other in zip(outcomes[ours], rivals[best], strict=True)]
    )
    ahead, error = differences.mean(), differences.std() / max(1, len(differences) - 1) ** 0.5
    # A difference that the table does not show is none.
    least = max(error, 0.05)
    word = "ahead of" if ahead > least else "behind" if ahead < -least else "level with"
    names = (name.removeprefix("tuned: ") for name in (ours, best))
    return f"{way}, {next(names)} is {word} the best of the others, {next(names)}: {ahead:+.1f} ± {error:.1f} points."


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

    figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    styles = {
        "RankSVC()": ("#0072B2", "-"),
        "scaled, LogisticRegression()": ("#009E73", "--"),
        "scaled, LinearSVC()": ("#D55E00", "-."),
    }
    for name, (colour, line) in styles.items():
        outcome = outcomes[name][0]
        recall, precision = _precision_recall(split.y_test, outcome.scores)
        label = f"{name}, AP {100 * outcome.precision:.1f} %"
        axes.plot(recall, precision, color=colour, linestyle=line, linewidth=1.8, label=label)
    axes.axhline(split.y_test.mean(), color="0.6", linewidth=0.8, linestyle=":")
    axes.annotate("random order", (0.01, split.y_test.mean() + 0.015), color="0.4", fontsize="small")
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.005), ylim=(0, 1.02))
    axes.set_title("Digit 8 against the rest, first draw, without tuning", fontsize="medium")
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
    """Print the demonstration and write the plot."""
    parser = argparse.ArgumentParser(
        prog="python -m rankhinge.demo", description="RankSVC beside logistic regression and LinearSVC."
    )
    parser.add_argument("--plot", type=Path, default=Path("rankhinge-demo.png"), help="where to write the plot (PNG)")
    path = parser.parse_args(arguments).plot
    digits = _splits(_digits())
    print(
        f"Data that scikit-learn ships: one half for training, the other for the test, {_SPLITS} draws. "
        "The first call\ncompiles kernels, once."
    )
    _section("1. What training bounds: the most violating ranking")
    _show_rankings(digits[0])
    _section("2. Where the ranking is hard: digit 8 against the rest, raw pixels")
    outcomes = _compare(digits, _sixteenths())
    _section("3. Where it is easy: malignant tumours, raw features")
    _compare(_splits(_cancer()))
    _draw(digits[0], outcomes, path)


if __name__ == "__main__":
    main()
