"""What a search leaves behind, under the names that scikit-learn's searches have made usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

__all__ = ["Candidate", "summary"]


class Candidate(NamedTuple):
    """A setting that was tried for one problem, and its scores on the folds: nan where there is none."""

    params: dict[str, Any]
    scores: NDArray[np.float64]


def summary(tried: Sequence[Sequence[Candidate]], chosen: Sequence[int], names: Sequence[Any]) -> dict[str, Any]:
    """The attributes `best_params_`, `best_score_`, `best_index_`, `cv_results_` and `n_splits_`.

    Parameters
    ----------
    tried : K sequences of Candidate
        With the same parameters everywhere.
    chosen : K places in these sequences
    names : K labels
        With several problems, `cv_results_` has a column ``"label"`` that says which problem a candidate belongs to.
    """
    flat = [candidate for candidates in tried for candidate in candidates]
    scores = np.array([candidate.scores for candidate in flat])
    means, spreads = _over_folds(scores)
    sizes = [len(candidates) for candidates in tried]
    starts = np.cumsum([0, *sizes[:-1]])
    results: dict[str, Any] = {}
    if len(tried) > 1:
        results["label"] = np.repeat(np.array(names), sizes)
    results |= {f"param_{key}": np.array([candidate.params[key] for candidate in flat]) for key in flat[0].params}
    results["params"] = [candidate.params for candidate in flat]
    results |= {f"split{fold}_test_score": column for fold, column in enumerate(scores.T)}
    results["mean_test_score"], results["std_test_score"] = means, spreads
    results["rank_test_score"] = np.concatenate([_ranks(part) for part in np.split(means, starts[1:])])
    best = starts + np.asarray(chosen)
    known = means[best][np.isfinite(means[best])]
    return {
        "best_index_": best if len(tried) > 1 else int(best[0]),
        "best_params_": _joined([flat[index].params for index in best]),
        "best_score_": float(known.mean()) if known.size else float("nan"),
        "cv_results_": results,
        "n_splits_": scores.shape[1],
    }


def _over_folds(scores: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each row over the folds that have a score; nan for a row without any."""
    known = np.isfinite(scores)
    counts = known.sum(axis=1)
    with np.errstate(invalid="ignore"):
        means = np.where(known, scores, 0.0).sum(axis=1) / counts
        spreads = np.sqrt(np.where(known, (scores - means[:, None]) ** 2, 0.0).sum(axis=1) / counts)
    return means, spreads


def _ranks(means: NDArray[np.float64]) -> NDArray[np.int32]:
    """1 for the highest mean; equal ones share the least rank, and those without a score come last."""
    known = np.isfinite(means)
    ranks = np.full(means.size, np.count_nonzero(known) + 1, np.int32)
    ranks[known] = rankdata(-means[known], method="min")
    return ranks


def _joined(params: list[dict[str, Any]]) -> dict[str, Any]:
    """One value of each parameter, or an array with one for each problem; a word is the same for all of them."""
    if len(params) == 1:
        return dict(params[0])
    return {
        key: value if isinstance(value, str) or key == "standardize" else np.array([mine[key] for mine in params])
        for key, value in params[0].items()
    }
