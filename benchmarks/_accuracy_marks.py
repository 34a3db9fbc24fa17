"""The marks of `accuracy.py`'s page: what was wanted, what came out, met or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from _accuracy_tables import Duel, Results, best_rival, difference, paired

# Differences that two decimals show as 0.
_EQUAL = 0.005
# Sets whose best linear rival is above this leave nothing to gain.
_SOLVED = 97.0
_MARGIN = 0.3


def _row(met: bool, what: str, wanted: str, figure: str) -> list[str]:
    return ["met" if met else "NOT MET", what, wanted, figure]


def _named(figures: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {figure}" if isinstance(figure, str) else f"{name} {figure:+.2f}" for name, figure in figures.items()
    )


def _with_errors(found: list[Duel]) -> str:
    listed = {duel.name: f"{duel.gain:+.2f} ± {duel.error:.2f}" for duel in sorted(found, key=lambda duel: duel.gain)}
    return _named(listed) or "nowhere"


def _share(found: list[Duel], n_all: int) -> str:
    return f"{100 * len(found) / n_all:.0f} % ({len(found)} of {n_all})"


def untuned_marks(found: list[Duel]) -> list[list[str]]:
    """`RankSVC()` against the better of both logistic regressions, as they are."""
    if not found:
        return []
    n, wide = len(found), [duel for duel in found if duel.wide]
    equal, strictly = ([duel for duel in found if duel.gain >= least] for least in (-_EQUAL, 0.0))
    below = [duel for duel in found if duel.gain < -duel.error]
    far = [duel for duel in found if duel.gain < -0.5 - 2 * duel.error]
    mean = float(np.mean([duel.gain for duel in found]))
    rows = [
        _row(
            len(equal) >= 0.75 * n,
            "untuned: at least equal as two decimals show it",
            "≥ 75 % of the sets",
            f"{_share(equal, n)}; without rounding {_share(strictly, n)}",
        ),
        _row(
            len(below) <= 0.1 * n,
            "untuned: below by more than one s.e.",
            "≤ 10 % of the sets",
            f"{_share(below, n)}: {_with_errors(below)}",
        ),
        _row(not far, "untuned: below by more than 0.5 + two s.e.", "nowhere", _with_errors(far)),
        _row(mean >= 0.6, "untuned: mean", "≥ +0.6", f"{mean:+.2f}"),
    ]
    if wide:
        of_wide = float(np.mean([duel.gain for duel in wide]))
        rows.append(_row(of_wide >= 2.0, "untuned: mean of the wide ones", "≥ +2", f"{of_wide:+.2f}"))
    return rows


def tuned_marks(found: list[Duel]) -> list[list[str]]:
    """`RankSVCCV()` against the better of both tuned logistic regressions."""
    if not found:
        return []
    below = [duel for duel in found if duel.gain < -_MARGIN - duel.error]
    mean = float(np.mean([duel.gain for duel in found]))
    return [
        _row(not below, "tuned: below by more than 0.3 + one s.e.", "nowhere", _with_errors(below)),
        _row(mean >= 0.4, "tuned: mean", "≥ +0.4", f"{mean:+.2f}"),
    ]


def lists_marks(records: list[dict[str, Any]]) -> list[list[str]]:
    """`SVMRankerCV()` against what it was before the defaults, and against boosted trees."""
    rows = []
    for measure in ("NDCG@10", "MAP"):
        for name, methods in paired(records, "lists", measure).items():
            if {"SVMRankerCV()", "tight, before"} <= set(methods) and methods["SVMRankerCV()"].size > 1:
                gain, error = difference(methods["SVMRankerCV()"], methods["tight, before"])
                what = f"`SVMRankerCV()` on raw features − before, {name} {measure}"
                rows.append(_row(gain >= -error, what, "≥ − one s.e.", f"{gain:+.2f} ± {error:.2f}"))
    for measure in ("NDCG@10", "MAP"):
        methods = paired(records, "lists", measure).get("mq2008", {})
        if {"SVMRankerCV()", "LGBMRanker", "XGBRanker"} <= set(methods):
            boosted = max(("LGBMRanker", "XGBRanker"), key=lambda m: methods[m].mean())
            gain, error = difference(methods["SVMRankerCV()"], methods[boosted])
            what = f"`SVMRankerCV()` − {boosted}, mq2008 {measure}"
            rows.append(_row(gain >= -error, what, "≥ − one s.e.", f"{gain:+.2f} ± {error:.2f}"))
    return rows


def rivals_marks(results: Results) -> list[list[str]]:
    """The tight bound against the best of four linear rivals, all tuned on standardised features."""
    gains, shortfalls, below_convex = {}, {}, {}
    for name, methods in results.items():
        if not {"tight", "convex", "LogisticRegression"} <= set(methods):
            continue
        rival = best_rival(methods)
        gain, error = difference(methods["tight"], methods[rival])
        if methods[rival].mean() < _SOLVED:
            gains[name] = gain
        if gain < -(_MARGIN + (0.0 if np.isnan(error) else error)):
            shortfalls[name] = gain
        away = difference(methods["tight"], methods["convex"])[0]
        if away < -_MARGIN:
            below_convex[name] = away
    mean = float(np.mean(list(gains.values()))) if gains else float("nan")
    what = "rivals: tight − best linear rival, mean over the sets below 97"
    return [
        _row(mean >= 1.0, what, "≥ 1.0", f"{mean:+.2f} ({_named(gains)})"),
        _row(
            not shortfalls,
            "rivals: tight below the best linear rival",
            "≤ 0.3 + one s.e.",
            _named(shortfalls) or "nowhere",
        ),
        _row(not below_convex, "rivals: tight below convex", "≤ 0.3", _named(below_convex) or "nowhere"),
    ]


def cost_mark(cost: dict[str, dict[str, list[float]]]) -> list[str]:
    """The search for the tight bound beside the convex path, each with the library's defaults."""
    ratios = {name: float(np.median(s["tight"]) / np.median(s["convex"])) for name, s in cost.items()}
    what = "time of the search with its refit, tight / convex"
    if not ratios:
        return ["–", what, "≤ 5", "not measured"]
    listed = ", ".join(f"{name} {ratio:.1f}" for name, ratio in sorted(ratios.items(), key=lambda item: -item[1]))
    return _row(max(ratios.values()) <= 5, what, "≤ 5", listed)
