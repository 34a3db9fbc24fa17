"""Action classification by AP and by NDCG: the papers' main experiment (003 Table 1, 000 Tables 1 and 4, 004 §4.1).

``make experiments ONLY=actions`` computes what is missing in ``results/actions.json`` and writes
``docs/experiments/actions.md``. C is chosen by five folds of the training boxes, three values a decade, and the grid
grows by a decade at a time until the choice of every class lies inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _actions_page
import numpy as np
from _action_data import N_FOLDS, PREPARATIONS, Actions, folds_of, load_actions
from _run import Run, main
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, metrics, rank_svm_path

PER_DECADE = 3
# Powers of ten where the search begins, by preparation; it continues from there.
FIRST_DECADES = {
    "norm": {"ap": (2, 3), "ndcg": (2, 3), "zero-one": (4, 5)},
    "standard": {"ap": (-2, -1), "ndcg": (-2, -1), "zero-one": (0, 1)},
}
RIVALS = {"LinearSVC": 0, "logistic regression": 1}
KEPT = (25, 50, 75)
# A machine that improves for ever is stopped here, and the page shows that its C lies at the end.
MOST_DECADES = 6

SETTINGS = {
    "cv/": [PER_DECADE, N_FOLDS],
    "choice/": [PER_DECADE, N_FOLDS, FIRST_DECADES, MOST_DECADES],
    "test/": [PER_DECADE, N_FOLDS, FIRST_DECADES, MOST_DECADES],
    "tight/": N_FOLDS,
}


def decade(power: int) -> list[float]:
    return [round(float(10 ** (power + k / PER_DECADE)), 6) for k in range(PER_DECADE)]


def quality(y: Any, scores: Any) -> list[float]:
    """AP and NDCG of one class."""
    return [float(metrics.average_precision(y, scores)), float(metrics.ndcg(y, scores))]


def judged(Y: np.ndarray, scores: np.ndarray) -> list[list[float]]:
    """AP and NDCG of each class on its labelled rows, from scores (n, K)."""
    return [quality((Y[Y[:, k] != 0, k] > 0).astype(int), scores[Y[:, k] != 0, k]) for k in range(Y.shape[1])]


def grown(first: tuple[int, ...], score: Callable[[int], np.ndarray], most: int) -> tuple[np.ndarray, np.ndarray]:
    """Cs and scores (K, n_Cs, n_folds, 2), from `score` of a decade, grown until no class chooses an end by either."""
    powers = list(first)
    found = {power: score(power) for power in powers}
    while True:
        powers.sort()
        Cs = np.concatenate([decade(power) for power in powers])
        scores = np.concatenate([found[power] for power in powers], axis=1)
        chosen = scores.mean(axis=2).argmax(axis=1)
        wanted = [powers[0] - 1] * bool((chosen == 0).any()) + [powers[-1] + 1] * bool((chosen == Cs.size - 1).any())
        if not wanted or len(powers) >= most:
            return Cs, scores
        for power in wanted:
            found[power] = score(power)
        powers += wanted


def search(run: Run, machine: str, first: tuple[int, ...], fold_scores: Callable[[list[float], int], Any]) -> None:
    """Cells ``cv/<machine>/<power>/<fold>`` as far as the grid grows, then the choice as a cell."""

    def score(power: int) -> np.ndarray:
        folds = range(1 if run.quick else N_FOLDS)
        run.expect(len(folds))
        cells = [
            run.cell(f"cv/{machine}/{power}/{fold}", lambda fold=fold: fold_scores(decade(power), fold))
            for fold in folds
        ]
        return np.array(cells).transpose(1, 2, 0, 3)

    def choice() -> dict[str, Any]:
        Cs, scores = grown(first[:1] if run.quick else first, score, 1 if run.quick else MOST_DECADES)
        means = scores.mean(axis=2)
        return {
            "Cs": Cs.tolist(),
            "chosen": Cs[means.argmax(axis=1)].tolist(),
            "folds": _folds_at(scores, means.argmax(axis=1)),
        }

    run.cell(f"choice/{machine}", choice)


def _folds_at(scores: np.ndarray, chosen: np.ndarray) -> list[list[list[float]]]:
    """Of each class and metric the folds' scores at the C chosen by that metric."""
    return [[scores[k, chosen[k, m], :, m].tolist() for m in range(2)] for k in range(scores.shape[0])]


def convex(run: Run, data: Actions, preparation: str, loss: str) -> None:
    """A machine of `RankSVC` with the convex bound: all classes in lockstep along a path of C."""
    folds, positive, known = folds_of(len(data.Y)), (data.Y > 0).astype(int), data.Y != 0
    machine = f"{preparation}/{loss}"

    def fold_scores(Cs: list[float], fold: int) -> Any:
        train, test = folds[fold]
        path = rank_svm_path(data.X[train], positive[train], Cs, loss=loss, mask=known[train])
        per_C = [judged(data.Y[test], data.X[test] @ coefs.T) for coefs in path.coefs]
        return np.array(per_C).swapaxes(0, 1).tolist()

    search(run, machine, FIRST_DECADES[preparation][loss], fold_scores)
    chosen = np.array(run[f"choice/{machine}"]["chosen"])
    for m, metric in enumerate(("ap", "ndcg")):
        if loss in (metric, "zero-one"):
            run.expect(1)

            def test_scores(m: int = m) -> Any:
                model = RankSVC(loss, C=chosen[:, m], bound="convex").fit(data.X, positive, mask=known)
                return [pair[m] for pair in judged(data.Y_test, data.X_test @ model.coef_.T)]

            run.cell(f"test/{machine}/{metric}", test_scores)


def approximate(run: Run, data: Actions, preparation: str, percent: int) -> None:
    """AP-SVM-APPX: no path, since what is easy depends on C."""
    folds, positive, known = folds_of(len(data.Y)), (data.Y > 0).astype(int), data.Y != 0
    machine = f"{preparation}/appx {percent}"

    def fit(C: Any, rows: np.ndarray) -> Any:
        model = ApproximateRankSVC("ap", C=C, keep_easy=percent / 100, max_iter=300)
        return model.fit(data.X[rows], positive[rows], mask=known[rows]).coef_.T

    def fold_scores(Cs: list[float], fold: int) -> Any:
        train, test = folds[fold]
        per_C = [judged(data.Y[test], data.X[test] @ fit(C, train)) for C in Cs]
        return np.array(per_C).swapaxes(0, 1).tolist()

    search(run, machine, FIRST_DECADES[preparation]["ap"][-1:], fold_scores)
    chosen = np.array(run[f"choice/{machine}"]["chosen"])[:, 0]
    run.expect(1)
    run.cell(
        f"test/{machine}/ap",
        lambda: [pair[0] for pair in judged(data.Y_test, data.X_test @ fit(chosen, np.arange(len(data.Y))))],
    )


def rival(run: Run, data: Actions, preparation: str, name: str, k: int) -> None:
    """LinearSVC or a logistic regression, with an intercept, one class at a time."""
    X, y, rows = data.problem(k)
    machine = f"{preparation}/{name}/{data.classes[k]}"
    folds = [(np.isin(rows, train), np.isin(rows, test)) for train, test in folds_of(len(data.Y))]

    def models(Cs: list[float], inside: Any) -> Any:
        # Planes are ours; theirs is the warm start along the path.
        model = LogisticRegression(C=Cs[0], max_iter=1000, warm_start=True) if "log" in name else LinearSVC(C=Cs[0])
        for C in Cs:
            yield model.set_params(C=C).fit(X[inside], y[inside])

    def fold_scores(Cs: list[float], fold: int) -> Any:
        train, test = folds[fold]
        return [[quality(y[test], model.decision_function(X[test])) for model in models(Cs, train)]]

    first = RIVALS[name] - (3 if preparation == "standard" else 0)
    search(run, machine, (first,), fold_scores)
    C = run[f"choice/{machine}"]["chosen"][0][0]
    judging = np.flatnonzero(data.Y_test[:, k])

    def test_score() -> float:
        model = next(models([C], slice(None)))
        return quality((data.Y_test[judging, k] > 0).astype(int), model.decision_function(data.X_test[judging]))[0]

    run.expect(1)
    run.cell(f"test/{machine}/ap", test_score)


def tight(run: Run, data: Actions, preparation: str) -> None:
    """`RankSVCCV` with its defaults: the tight bound, and a search of its own on the same folds."""
    positive, known = (data.Y > 0).astype(int), data.Y != 0

    def fit() -> Any:
        model = RankSVCCV("ap", cv=folds_of(len(data.Y))).fit(data.X, positive, mask=known)
        scores = [pair[0] for pair in judged(data.Y_test, data.X_test @ model.coef_.T)]
        return {"scores": scores, "validation": model.best_score_, "passes": int(model.n_passes_)}

    run.expect(1)
    run.cell(f"tight/{preparation}", fit)


def shortened(data: Actions) -> Actions:
    """Two classes and a few rows and features, for trials."""
    X, Y, X_test, Y_test = data.X[::9, :200], data.Y[::9, 1:3], data.X_test[::9, :200], data.Y_test[::9, 1:3]
    return Actions(X, Y, X_test, Y_test, data.classes[1:3])


def work(run: Run) -> None:
    for preparation in ["norm"] if run.quick else PREPARATIONS:
        data = load_actions(preparation, centred=True)
        if run.quick:
            data = shortened(data)
        for loss in ("ap", "zero-one", "ndcg"):
            convex(run, data, preparation, loss)
        if preparation == "norm":
            for percent in KEPT[:1] if run.quick else KEPT:
                approximate(run, data, preparation, percent)
        for name in RIVALS:
            for k in range(len(data.classes)):
                rival(run, data, preparation, name, k)
        if not run.quick:
            tight(run, data, preparation)
        run.facts = {"classes": list(data.classes)}
    run.write()


if __name__ == "__main__":
    main("actions", __doc__ or "", work, _actions_page.page, SETTINGS)
