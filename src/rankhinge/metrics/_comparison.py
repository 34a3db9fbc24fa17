"""How reliable a metric is and whether two models differ: intervals, tests and Holm's correction.

With queries, the queries are resampled, and the test exchanges the two models' values of a query. A single list has
only rows, so its rows take the place of queries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds
from rankhinge.metrics._per_query import metric_named, per_query
from rankhinge.metrics._policies import Floats


class Resampling(NamedTuple):
    """How often queries and rows are drawn again, or exchanged.

    A resample of queries costs one average. Quantiles settle after a few thousand of them. A resample of rows costs one
    evaluation of the metric. 500 of them give a standard error to within 1/√(2·500) = 3 %, 999 exchanges give a p-value
    of 0.05 to within 0.007. `entries` are those that SciPy may draw at a time: 32 MB of numbers.
    """

    of_queries: int = 9999
    of_rows: int = 500
    exchanges: int = 999
    entries: int = 1 << 22


RESAMPLING = Resampling()


class Estimate(NamedTuple):
    """A value and its interval."""

    value: float
    low: float
    high: float


class Comparison(NamedTuple):
    """The mean difference, second less first, its interval, and the p-value of no difference (two-sided)."""

    difference: float
    low: float
    high: float
    p_value: float


def interval(
    metric: str,
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    **options: Any,
) -> Estimate:
    """A metric with a confidence interval, by resampling the queries or, for a single list, the rows.

    Over queries, this is the bias-corrected and accelerated (BCa) interval of Efron (1987) with 9,999 resamples. For a
    single list, 500 resamples of the rows give a standard error on the scale ``log(m / (1 - m))``, and the interval is
    the normal one on that scale.

    Parameters
    ----------
    metric : str
        As for `per_query`.
    relevance, scores : array-like of shape (n_samples,)
    qid : array-like of shape (n_samples,), optional
        None: all rows are one list.
    confidence : float, default 0.95
    random_state : int, default 0
        Seed of the resamples. The same data and seed give the same interval.
    **options
        Further arguments of the metric. Queries without a relevant row are left out unless `no_positives` is given.

    Returns
    -------
    Estimate
        ``(value, low, high)``; all nan if no query has a value.

    References
    ----------
    B. Efron, "Better bootstrap confidence intervals", Journal of the American Statistical Association 82, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, qid = np.tile([1, 0, 0, 0], 50), np.repeat(np.arange(50), 4)
    >>> found = interval("ap", y, y + rng.normal(size=200), qid=qid)
    >>> found.low < found.value < found.high
    True
    """
    _check(confidence)
    from scipy.special import expit, logit, ndtri  # the metrics themselves need NumPy only

    options = {"no_positives": "skip"} | options
    if qid is not None:
        _, values = per_query(metric, relevance, scores, qid, **options)
        return Estimate(*_mean_interval(values, confidence, random_state))
    labels, values = _in_order(relevance, scores)
    evaluate = _of_rows(metric, labels, values, options)
    value = evaluate(slice(None))
    found = _resampled(evaluate, labels.size, random_state)
    if not found.size or np.ptp(found) == 0.0:
        return Estimate(value, value, value)
    # A resample may be perfect although the list is not: infinite on this scale.
    margin = 0.25 / labels.size
    spread = float(np.std(logit(np.clip(found, margin, 1 - margin)), ddof=1))
    reach = ndtri(0.5 + confidence / 2) * spread
    centre = logit(np.clip(value, margin, 1 - margin))
    low, high = expit(centre - reach), expit(centre + reach)
    return Estimate(value, float(min(low, value)), float(max(high, value)))


def compare(
    metric: str,
    relevance: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    qid: QueryIds | None = None,
    confidence: float = 0.95,
    random_state: int = 0,
    **options: Any,
) -> Comparison:
    """The difference in a metric between two models' scores, with an interval and a paired test.

    Over queries: the BCa interval of the mean of ``m(second) - m(first)``, and Fisher's randomisation test, which
    exchanges the two values of a query at random (Smucker et al. 2007). For a single list: the normal interval with a
    standard error from resampled rows, and a test that exchanges the ranks that the two models give to a row.

    Parameters
    ----------
    metric, relevance, qid, confidence, random_state, **options
        As for `interval`.
    first, second : array-like of shape (n_samples,)
        Scores of the two models.

    Returns
    -------
    Comparison
        ``(difference, low, high, p_value)``.

    References
    ----------
    M. D. Smucker, J. Allan and B. Carterette, "A comparison of statistical significance tests for information
    retrieval evaluation", CIKM 2007.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, qid = np.tile([1, 0, 0, 0], 50), np.repeat(np.arange(50), 4)
    >>> found = compare("ap", y, rng.normal(size=200), 2 * y + rng.normal(size=200), qid=qid)
    >>> found.low > 0, found.p_value < 0.01
    (True, True)
    """
    _check(confidence)
    options = {"no_positives": "skip"} | options
    if qid is not None:
        _, before = per_query(metric, relevance, first, qid, **options)
        _, after = per_query(metric, relevance, second, qid, **options)
        differences = after - before
        found = _mean_interval(differences, confidence, random_state)
        return Comparison(*found, _sign_test(differences, random_state))
    return _compare_rows(metric, relevance, first, second, confidence, random_state, options)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust the p-values of several comparisons by Holm's method (1979), so that they hold jointly.

    ``p̃_(k) = max_{j ≤ k} min(1, (m - j + 1) p_(j))`` in ascending order of the m p-values.

    Parameters
    ----------
    p_values : array-like of shape (m,)

    Returns
    -------
    ndarray of shape (m,)
        In the order of `p_values`.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted


def _check(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}: it must lie between 0 and 1, for example 0.95")


def _mean_interval(values: Floats, confidence: float, random_state: int) -> tuple[float, float, float]:
    """The mean and its BCa interval."""
    if not values.size:
        return np.nan, np.nan, np.nan
    mean = float(values.mean())
    # One value, or equal values: there is nothing to resample.
    if values.size < 2 or np.ptp(values) == 0.0:
        return mean, mean, mean
    from scipy import stats  # takes a third of a second to import

    found = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=confidence,
        n_resamples=RESAMPLING.of_queries,
        batch=max(1, RESAMPLING.entries // values.size),
        method="BCa",
        rng=np.random.default_rng(random_state),
    ).confidence_interval
    return mean, float(found.low), float(found.high)


def _sign_test(differences: Floats, random_state: int) -> float:
    """The p-value of Fisher's randomisation test of mean 0."""
    if not differences.size:
        return float("nan")
    if not differences.any():
        return 1.0
    from scipy import stats

    found = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=RESAMPLING.of_queries,
        batch=max(1, RESAMPLING.entries // differences.size),
        rng=np.random.default_rng(random_state),
    )
    return float(found.pvalue)


def _of_rows(metric: str, relevance: ArrayLike, scores: ArrayLike, options: dict[str, Any]) -> Callable[[Any], float]:
    """The metric of a list made of these rows."""
    function, options = metric_named(metric, options)
    labels, values = np.asarray(relevance), np.asarray(scores)
    return lambda rows: float(function(labels[rows], values[rows], **options))


def _in_order(*columns: ArrayLike) -> list[NDArray[Any]]:
    """Columns with their rows in ascending order of the last."""
    arrays = [np.asarray(column) for column in columns]
    if any(array.shape != arrays[-1].shape or array.ndim != 1 for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"labels and scores must each have one entry per row, got the shapes {shapes}")
    order = np.argsort(arrays[-1], kind="stable")
    return [array[order] for array in arrays]


def _resampled(evaluate: Callable[[Any], float], n_rows: int, random_state: int) -> Floats:
    """The values of `evaluate` on resamples of the rows, without those where it is undefined.

    A resample keeps the order of its rows: sorting sorted data takes a third of the time.
    """
    rng = np.random.default_rng(random_state)
    rows = np.arange(n_rows)
    draws = (np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows) for _ in range(RESAMPLING.of_rows))
    found = np.array([evaluate(np.repeat(rows, counts)) for counts in draws])
    return found[np.isfinite(found)]


def _compare_rows(
    metric: str,
    relevance: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    confidence: float,
    random_state: int,
    options: dict[str, Any],
) -> Comparison:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    relevance, first, second = _in_order(relevance, first, second)
    before, after = (_of_rows(metric, relevance, scores, options) for scores in (first, second))

    def difference(rows: Any) -> float:
        return after(rows) - before(rows)

    found = difference(slice(None))
    n_rows = relevance.size
    spread = _resampled(difference, n_rows, random_state)
    reach = float(ndtri(0.5 + confidence / 2) * np.std(spread, ddof=1)) if spread.size > 1 else 0.0
    # Scores of two models differ in scale, so the test exchanges ranks.
    ranks = np.stack([rankdata(first), rankdata(second)])
    rng = np.random.default_rng(random_state)
    n_extreme = 0
    for _ in range(RESAMPLING.exchanges):
        swapped = np.where(rng.random(n_rows) < 0.5, ranks, ranks[::-1])
        one, other = (_of_rows(metric, relevance, scores, options)(slice(None)) for scores in swapped)
        # Rounding must not make equal values differ.
        n_extreme += abs(other - one) >= abs(found) * (1 - 1e-12)
    p_value = (n_extreme + 1) / (RESAMPLING.exchanges + 1) if np.isfinite(found) else float("nan")
    return Comparison(found, found - reach, found + reach, p_value)
