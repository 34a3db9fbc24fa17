"""The page of `accuracy.py`: tables, verdicts and what they mean."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from _accuracy_sets import OUTSIDE, SETS, places
from _tables import text_table
from numpy.typing import NDArray

LINEAR = ("LinearSVC", "LinearSVC balanced", "LogisticRegression", "LogisticRegression balanced")
ORDER = ("convex", "tight", *LINEAR, "LightGBM")
UNTUNED = tuple(f"{name}, untuned" for name in ("tight", "convex", "LinearSVC", "LogisticRegression"))
OUTSIDE_METHODS = ("convex", "tight", *LINEAR, "tight, untuned", "LogisticRegression, untuned")
RANKERS = ("convex", "tight", "LGBMRanker", "XGBRanker")
MEASURES = (
    "NDCG@10",
    "NDCG@10, lists without positives count 0",
    "MAP",
    "MAP, lists without positives count 0",
)
_SHORT = dict(zip(LINEAR, ("SVC", "SVC b.", "LR", "LR b.")))
# Sets whose best linear rival is above this leave nothing to gain.
SOLVED = 97.0
MARGIN = 0.3

Results = dict[str, dict[str, NDArray[np.float64]]]


def _paired(records: list[dict[str, Any]], measure: str) -> Results:
    """By set and method, 100 × the measure of each fold, in the same order for all methods of a set.

    A set with a single split is paired by its classes instead.
    """
    found: dict[str, dict[str, dict[Any, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if measure not in record:
            continue
        mine = found[record["set"]][record["method"]]
        values = np.atleast_1d(record[measure])
        if record["set"] == "VOC action":
            mine.update({(0, k): 100 * float(value) for k, value in enumerate(values)})
        else:
            mine[record["repeat"], record["fold"]] = 100 * float(np.mean(values))
    results: Results = {}
    for name, methods in found.items():
        shared = sorted(set.intersection(*(set(values) for values in methods.values())))
        if shared:
            results[name] = {m: np.array([values[place] for place in shared]) for m, values in methods.items()}
    return results


def _difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error of paired differences."""
    away = a - b
    return float(away.mean()), float(away.std(ddof=1) / np.sqrt(away.size)) if away.size > 1 else float("nan")


def _best_rival(methods: dict[str, NDArray[np.float64]]) -> str:
    return max((m for m in LINEAR if m in methods), key=lambda m: methods[m].mean())


def _binary_table(results: Results) -> str:
    rows = []
    for name, methods in results.items():
        if "tight" not in methods or "LogisticRegression" not in methods:
            continue
        rival = _best_rival(methods)
        gain, error = _difference(methods["tight"], methods[rival])
        cells = [f"{methods[m].mean():.2f}" if m in methods else "–" for m in ORDER]
        cells[ORDER.index(rival)] += " *"
        rows.append([name, str(methods["tight"].size), *cells, f"{gain:+.2f} ± {error:.2f}"])
    return text_table(["set", "folds", *ORDER, "tight − best linear rival (*)"], rows)


def _untuned_table(results: Results) -> str:
    rows = []
    for name, methods in results.items():
        if set(UNTUNED) <= set(methods):
            cells = [f"{methods[m].mean():.2f}" for m in UNTUNED]
            gain, error = _difference(methods[UNTUNED[0]], methods[UNTUNED[-1]])
            tuned = f"{methods['tight'].mean():.2f}" if "tight" in methods else "–"
            rows.append([name, *cells, f"{gain:+.2f} ± {error:.2f}", tuned])
    calls = ['RankSVC(bound="tight")', 'RankSVC(bound="convex")', "LinearSVC()", "LogisticRegression()"]
    header = ["set", *(f"`{call}`" for call in calls), "first − last", "tight, tuned"]
    return text_table(header, rows)


def _outside_table(results: Results) -> str:
    """Each set with its best linear rival, tuned, and both machines without tuning; below, the means over the sets."""
    rows, figures = [], []
    for name, methods in results.items():
        rival = _best_rival(methods)
        tuned, plain = (methods["tight"], methods[rival]), tuple(methods[m] for m in OUTSIDE_METHODS[-2:])
        gains = _difference(*tuned), _difference(*plain)
        means = [values.mean() for values in (methods["convex"], *tuned, *plain)]
        figures.append([*means, *(gain for gain, _ in gains)])
        texts = [f"{mean:.2f}" for mean in means]
        texts[2] += f" ({_SHORT[rival]})"
        rows.append([name, *texts, *(f"{gain:+.2f} ± {error:.2f}" for gain, error in gains)])
    if rows:
        values = np.array(figures)
        errors = values.std(axis=0, ddof=1) / np.sqrt(len(rows))
        texts = [f"{mean:.2f}" for mean in values.mean(axis=0)[:5]]
        texts += [f"{mean:+.2f} ± {error:.2f}" for mean, error in zip(values.mean(axis=0)[5:], errors[5:])]
        rows.append([f"mean of {len(rows)}", *texts])
    header = ["convex", "tight", "best linear rival", "tight, untuned", "`LogisticRegression()`"]
    return text_table(["set", *header, "tight − rival", "untuned − `LogisticRegression()`"], rows)


def _list_table(results: dict[str, Results]) -> str:
    rows = []
    for measure, sets in results.items():
        for name, methods in sets.items():
            cells = [f"{methods[m].mean():.2f}" if m in methods else "–" for m in RANKERS]
            boosted = max((m for m in RANKERS[2:] if m in methods), key=lambda m: methods[m].mean(), default=None)
            away = "–"
            if boosted and "tight" in methods:
                gain, error = _difference(methods["tight"], methods[boosted])
                away = f"{gain:+.2f}" + ("" if np.isnan(error) else f" ± {error:.2f}")
            rows.append([f"{name}: {measure}", str(methods["tight"].size), *cells, away])
    return text_table(["set and measure", "folds", *RANKERS, "tight − better boosted"], rows)


def _cost_verdict(cost: dict[str, dict[str, list[float]]]) -> list[str]:
    """The search for the tight bound beside the convex path, each with the library's defaults."""
    ratios = {name: float(np.median(s["tight"]) / np.median(s["convex"])) for name, s in cost.items()}
    if not ratios:
        return ["–", "search", "≤ 5", "not measured"]
    listed = ", ".join(f"{name} {ratio:.1f}" for name, ratio in sorted(ratios.items(), key=lambda item: -item[1]))
    verdict = "met" if max(ratios.values()) <= 5 else "NOT MET"
    return [verdict, "time of the search with its refit, tight / convex", "≤ 5", listed]


def _verdicts(binary: Results, lists: dict[str, Results]) -> list[list[str]]:
    gains, shortfalls, below_convex = {}, {}, {}
    for name, methods in binary.items():
        if not {"tight", "convex", "LogisticRegression"} <= set(methods):
            continue
        rival = _best_rival(methods)
        gain, error = _difference(methods["tight"], methods[rival])
        if methods[rival].mean() < SOLVED:
            gains[name] = gain
        if gain < -(MARGIN + (0.0 if np.isnan(error) else error)):
            shortfalls[name] = gain
    both = {"": binary, **{measure: lists.get(measure, {}) for measure in ("NDCG@10", "MAP")}}
    for measure, sets in both.items():
        for name, methods in sets.items():
            if {"tight", "convex"} <= set(methods):
                away = _difference(methods["tight"], methods["convex"])[0]
                if away < -MARGIN:
                    below_convex[f"{name} {measure}".strip()] = away
    mean = float(np.mean(list(gains.values()))) if gains else float("nan")
    listed = ", ".join(f"{name} {gain:+.2f}" for name, gain in gains.items())
    rows = [
        [
            "met" if mean >= 1.0 else "NOT MET",
            "tight − best linear rival, mean over the sets below 97",
            "≥ 1.0",
            f"{mean:+.2f} ({listed})",
        ],
        [
            "met" if not shortfalls else "NOT MET",
            "tight below the best linear rival",
            "≤ 0.3 + one s.e.",
            _named(shortfalls),
        ],
        ["met" if not below_convex else "NOT MET", "tight below convex, any set", "≤ 0.3", _named(below_convex)],
    ]
    for measure in ("NDCG@10", "MAP"):
        methods = lists.get(measure, {}).get("mq2008", {})
        if {"tight", "LGBMRanker", "XGBRanker"} <= set(methods):
            boosted = max(RANKERS[2:], key=lambda m: methods[m].mean())
            gain, error = _difference(methods["tight"], methods[boosted])
            rows.append(
                [
                    "met" if gain >= -error else "NOT MET",
                    f"mq2008 {measure}: tight − {boosted}",
                    "≥ − one s.e.",
                    f"{gain:+.2f} ± {error:.2f}",
                ]
            )
    return rows


def _named(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {figure:+.2f}" for name, figure in figures.items()) or "nowhere"


def _missing(records: list[dict[str, Any]]) -> str:
    """Which outer folds have not been run, or the word that all have."""
    done = {(record["set"], record["repeat"], record["fold"]) for record in records if record["method"] == "tight"}
    parts = []
    for name in SETS:
        n_done, n_all = sum(key[0] == name for key in done), len(places(name))
        if n_done < n_all:
            parts.append(f"{name} {n_done} of {n_all}")
    if not parts:
        return "All outer folds have been run."
    return f"**This run is not complete.** Outer folds done where some are missing: {'; '.join(parts)}."


def page(results: dict[str, Any]) -> str:
    """The whole page, in Markdown."""
    records = results["records"]
    paired = _paired(records, "AP")
    binary = {name: methods for name, methods in paired.items() if name not in OUTSIDE}
    outside = {name: paired[name] for name in OUTSIDE if set(OUTSIDE_METHODS) <= set(paired.get(name, {}))}
    lists = {measure: _paired(records, measure) for measure in MEASURES}
    verdicts = [*_verdicts(binary, lists), _cost_verdict(results.get("cost", {}))]
    facts = ", ".join(f"{key} {value}" for key, value in results["machine"].items())
    return _TEXT.format(
        missing=_missing(records),
        binary=_binary_table(binary),
        untuned=_untuned_table(binary),
        outside=_outside_table(outside),
        lists=_list_table(lists),
        verdicts=text_table(["", "mark", "bound", "figure"], verdicts, align="left"),
        facts=facts,
    )


_TEXT = """# Accuracy: which bound, or another tool?

How well do the models rank data that they have not seen? This page is made by `make bench ONLY=accuracy`. All figures
are percent of average precision unless said otherwise. No choice within a run has seen the test data.

## In plain words

- **No time to tune?** Take the tight bound as it is. On nearly all sets it ranks better than `LogisticRegression()` and
  `LinearSVC()` as they are, by much where features are many.
- **Will it pay on my data?** On most sets linear models rank alike, and the tight bound is within half a point of the
  best of them. On some it gains five points or more, and nothing else that is linear finds them. With fewer than a
  thousand rows, the noise of tuning may cost more than it gains.
- **Rare positives, overlapping classes, few features** (fraud, screening by a handful of measurements): use
  `RankSVCCV(bound="tight")`. Where a logistic regression is wrong about the data, as on mammography, it gains several
  points.
- **Many features, few positives** (fingerprints, network features): regularisation decides, not the loss. A logistic
  regression with a well chosen C is hard to beat.
- **The convex bound** does well where the classes can nearly be separated. Where they overlap, a tuned logistic
  regression ranks better.
- **Graded lists, a few hundred queries**: `SVMRankerCV(bound="tight")` is on a par with boosted rankers on mq2008 (627
  training queries). On lightgbm_rank (251 queries, 300 features) they are three points of NDCG@10 ahead. With many more
  queries trees will win.
- **Enough data for a non-linear model**: boosted trees win wherever the classes are not linear in the features. The
  column LightGBM shows by how much.

## Tuned, on ten sets

Each method tunes itself by cross-validation within the training part, on the same folds. The rival marked * is the best
linear one by its *test* score, which favours it. The last column is the paired difference with its standard error.

{missing}

{binary}

{lists}

NDCG@10 has exponential gains, ``2^y − 1``. LETOR's own tool counts queries without a relevant document as 0; other
tools leave them out. Both are in the table.

## Sets outside the design

The defaults and grids of the library were chosen on the sets above, or on others that the
[design notes](design-notes.md) name. These 31 had no part in that: surveys, registers, trials and mail. Sets, labels
and columns were written down before anything was fitted; none was left out, and nothing was changed because of them.
(Parts of two, caravans and spam by its words, were seen in an earlier trial.) The rival is again the best linear one by
its test score: LR is logistic regression, SVC is LinearSVC, b. is balanced.

{outside}

## Without any tuning

The same folds and standardised features, every model as it is by default, fitted once:

{untuned}

The tight bound starts from a logistic regression whose C is 3 over the sum of the features' variances. So it is
regularised alike whatever the number of features is; C = 1 overfits as soon as there are many.

## Marks

What we wanted to reach, and what came out:

{verdicts}

The last row is measured apart (``--cost``), with nothing else running: `RankSVCCV` and `SVMRankerCV` as they are by
default, with all threads, on the training part of the first outer fold. VOC action is left out: there the convex path
takes minutes.

The first mark asks for more than a linear model has on these sets. With start, scale and C chosen *on the test part*,
the tight bound is above the best logistic regression by only 0.9 points on CIFAR10_0, 0.3 on hiv_molecules and 0.1 on
w8a. The [design notes](design-notes.md) list what was tried.

## How it was measured

- **Folds.** Five outer folds, three times over for mammography, CIFAR10_0, digits, breast cancer and lightgbm_rank. VOC
  action is trained on the boxes of 2011, tested on the others, and paired by class. The two files of lightgbm_rank are
  one set; their own split is a row apart.
- **Features** are standardised on the training part; sparse ones are not centred.
- **Inner folds** are the same for all methods: five, or three for more than 20 000 rows and for VOC action.
- **Budgets.** Logistic regression and LinearSVC choose among eleven values of C (1e-4 to 10, and 1e-6 to 0.1, as larger
  ones take long), LightGBM among eleven settings. The tight bound chooses its start among eight, then its scale among
  two and its C among six. The convex bound chooses among seven values of C, at a gap of 1e-2.
- **Lists.** Each tool draws its own five folds of queries. All choose by NDCG@10, also for the rows of MAP.
- **Errors** are over folds that share training data: they are somewhat too small.

{facts}
"""
