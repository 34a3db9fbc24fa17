"""`SVMRanker`: linear learning to rank over many lists."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import column_or_1d

from rankhinge._validation import QueryIds, as_numbers
from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems import Lists
from rankhinge.problems.door import container_of
from rankhinge.problems.gains import check_relevance
from rankhinge.problems.queries import ranking_lists, weights_of_rows, without_words
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm._fitting import OF_LISTS, explaining, fitting, warn_user
from rankhinge.svm.checkpointing import naming
from rankhinge.svm.fit import Fit, Fitted, Given, Seen, fit_linear, see
from rankhinge.svm.judging import lists_quality_elsewhere
from rankhinge.svm.qid_column import QueryColumn
from rankhinge.svm.quality import lists_quality
from rankhinge.svm.tuning import Tuning

__all__ = ["SVMRanker"]


# From this many rows on, a fit without `qid` warns: a single list of that size is usually a forgotten `qid`.
_LONG_LIST = 1000


def warn_of_one_list(qid: QueryIds | None, n_rows: int) -> None:
    """Warn users who may have forgotten the queries."""
    if qid is None and n_rows >= _LONG_LIST:
        warn_user(
            f"there is no qid: all {n_rows} rows are ranked as one list. Give the query of each row, qid=...; if you "
            "mean one list, give them all the same, np.zeros(len(y)) for instance"
        )


class SVMRanker(QueryColumn, LinearRankingMachine):
    r"""Linear learning to rank that optimises NDCG, average precision, … over lists.

    .. math:: \min_w \tfrac12 \|w\|^2 + C \, \frac1Q \sum_q \sum_\ell \omega_{q\ell} \, J_{q\ell}(X_q w)

    over the Q usable lists, which have samples of different relevance. Graded labels are decomposed by thresholds ℓ.
    For NDCG this is exact: with the weights :math:`\omega_{q\ell}` the sum bounds one minus the graded NDCG.

    Parameters
    ----------
    loss : str or RankingLoss, default "ndcg"
        As for `RankSVC`.
    C : float or "auto", default "auto"
        Convex bound: weight of the loss. ``"auto"``: 1.
    gains : {"exponential", "linear"} or array, default "exponential"
        Gain of label y: ``2^y - 1``, ``y``, or ``gains[y]`` (ascending from 0).
    level_weights : {"uniform"} or array, optional
        Weights of the thresholds for losses outside the DCG family. Without it these losses take labels 0/1 only. An
        array has an entry for each label 1, 2, …, or only for each grade above 0 that occurs in y. For a loss of the
        DCG family, they replace the exact weights: the objective then no longer bounds the graded metric.
    bound : {"auto", "convex", "tight"}, default "auto"
        As for `RankSVC`. The tight bound is taken for each list at each threshold. The formula above is the convex one.
    reach, standardize
        As for `RankSVC`. Features are measured within the lists. The default `reach` is 0.1 for several lists.
    scale : float or "auto", default "auto"
        Tight bound: standard deviation of the start's scores within the lists. ``"auto"``: the mean number of
        negatives over 100.
    init : {"logistic", "convex"} or array of shape (d,), default "logistic"
        Tight bound: the start. The logistic regression tells the samples at or above each threshold from the others,
        with an intercept for each list.
    init_C : float or "auto", default "auto"
        C of the start. ``"auto"``: as for `RankSVC`, with the variances within the lists.
    qid_column : str or int, optional
        Name or position of the column of X with the query ids, or name of a level of a pandas frame's index. The column
        is not a feature. Searches and cross-validation are then per query without metadata routing. Use `QueryKFold` to
        keep queries whole: a fit sees only its own rows, so only `score` can warn that a fold has cut a query.
    solver, tol, max_iter, max_time, checkpoint, warm_start, random_state, verbose
        As for `RankSVC`.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Without the column of the query ids.
    intercept_ : float
        Always 0, for tools that expect one: an intercept does not change the order of a list.
    n_queries_ : int
        The number of usable lists, which form the mean.
    n_unusable_queries_ : int
        The number of lists that were left out because all their samples have the same relevance.
    C_, reach_, scale_, init_C_, init_coef_, feature_scale_
        As for `RankSVC`.
    objective_, dual_objective_, gap_, n_iter_, n_passes_, history_, status_
        As for `RankSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge import SVMRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.clip(np.round(X[:, 0] + 1), 0, 2)
    >>> qid = np.repeat(["a", "b", "c"], 20)
    >>> ranker = SVMRanker().fit(X, y, qid=qid)
    >>> ranker.score(X, y, qid=qid) > 0.95
    True
    """

    intercept_: float
    n_queries_: int
    n_unusable_queries_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearRankingMachine._parameter_constraints,
        # There is one problem, so no array of values.
        **{
            key: [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})]
            for key in ("C", "reach", "scale", "init_C")
        },
        "gains": [StrOptions({"exponential", "linear"}), "array-like"],
        "level_weights": [StrOptions({"uniform"}), "array-like", None],
        "qid_column": [str, Integral, None],
    }

    @explaining(OF_LISTS)
    def __init__(
        self,
        loss: str | RankingLoss = "ndcg",
        C: float | str = "auto",
        *,
        gains: str | ArrayLike = "exponential",
        level_weights: str | ArrayLike | None = None,
        qid_column: str | int | None = None,
        bound: str = "auto",
        reach: float | str = "auto",
        standardize: str | bool | float = "auto",
        scale: float | str = "auto",
        init: str | ArrayLike = "logistic",
        init_C: float | str = "auto",
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.gains = gains
        self.level_weights = level_weights
        self.qid_column = qid_column
        self.bound = bound
        self.reach = reach
        self.standardize = standardize
        self.scale = scale
        self.init = init
        self.init_C = init_C
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    @explaining(OF_LISTS)
    def fit(self, X: Any, y: Any, qid: QueryIds | None = None, query_weight: Any = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)
        y : array of shape (n,)
            Relevance. 0 means not relevant.
        qid : array of shape (n,), optional
            Query of each row: any hashable values, rows in any order. Default: those of `qid_column`, or one list.
        query_weight : array of shape (n,) or mapping, optional
            Weight of each row's query (the same for all its rows), or a mapping from query ids to weights. Queries that
            a mapping does not name weigh 1; names without rows are ignored. Default: all equal.

        Returns
        -------
        self
        """
        container = container_of(X)
        if container is not None:
            options: dict[str, Any] = {
                "loss": get_loss(self.loss),
                "gains": self.gains,
                "level_weights": self.level_weights,
                "qid_column": self.qid_column,
            }
            if qid is None and self.qid_column is None:
                warn_of_one_list(qid, _LONG_LIST)
            with naming(self.checkpoint):
                data = container.queries(X, y, qid=qid, query_weight=query_weight, **options)
                return self._become(self._fit_opened(data, Given(X, y, {} if qid is None else {"qid": qid})))
        X, qid = self._separated(X, qid)
        given = self._validated_relevance(X, y, qid)
        warn_of_one_list(qid, given.y.size)
        weights = weights_of_rows(query_weight, qid, given.y.size)
        lists = ranking_lists(given.y, qid, get_loss(self.loss), self.gains, self.level_weights, weights)
        tuning = self._tuning()
        seen = see(self, given.X, lists, 1, getattr(self, "feature_names_in_", None))
        return self._become(self._fit_lists(seen, lists, tuning, given))

    def _validated_relevance(self, X: Any, y: Any, qid: QueryIds | None) -> Given:
        """X, and y as numbers."""
        X, y = self._validated(X, without_words(y), y_numeric=True, ensure_min_samples=2)
        return Given(X, y, {} if qid is None else {"qid": qid})

    def _fit_lists(self, seen: Seen, lists: Lists, tuning: Tuning, given: Given) -> Fitted:
        objective = RankingObjective(feature_map(seen.X), [lists], get_loss(self.loss))
        usable = np.ones(1, np.bool_)
        fit = Fit(
            self,
            seen,
            objective,
            usable,
            tuning.of(usable, seen.X.shape[1]),
            given,
            describe=lambda certified: {
                "coef_": certified.coef[0],
                "intercept_": 0.0,
                "n_queries_": lists.n_lists,
                "n_unusable_queries_": lists.n_unusable,
            },
            start=self._warm_start(seen, None) if self.warm_start else None,
        )
        return fit_linear(fit)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Scores ``Xw``. Within a list, sort by them in descending order.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
        """
        container = container_of(X)
        if container is not None:
            return container.each(X, self.predict)
        return self._linear(self._separated_again(X)[0])[:, 0]

    def score(self, X: Any, y: Any, qid: QueryIds | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of the loss's metric over the queries, with the gains of training.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)
        y : array of shape (n,)
        qid : array of shape (n,), optional
            Default: those of `qid_column`, or one list. After a fit to several lists, one list raises a warning,
            because a search may have dropped `qid`.
        sample_weight : None
            Only None. `Pipeline.score` passes it; a ranking has no sample weights.

        Returns
        -------
        float
            Queries without a relevant sample do not count. For losses outside the DCG family every label above 0 is
            relevant, whatever `level_weights` is. Equal scores take the mean over their orders (the worst order for
            your own losses that are given by a step).
        """
        if sample_weight is not None:
            raise ValueError("sample_weight is not supported: ranking metrics have no sample weights")
        container = container_of(X)
        if container is not None:
            return lists_quality_elsewhere(container, X, y, qid, self)
        X, qid = self._separated_again(X, qid)
        self._warn_if_cut(qid)
        scores = self._linear(X)[:, 0]
        labels = column_or_1d(as_numbers(y, "y"))
        if labels.size != scores.size:
            raise ValueError(f"y has {labels.size} entries, but X has {scores.size} rows")
        check_relevance(labels)
        if qid is None and self.n_queries_ + self.n_unusable_queries_ > 1:
            warn_user(
                "score got no qid, after a fit to several queries: all rows are ranked as one list. A search takes it "
                "along as a column of X (qid_column=), or passes it on if metadata routing is enabled "
                "(sklearn.set_config(enable_metadata_routing=True)) and scoring=metrics.make_query_scorer(...)"
            )
        return lists_quality(get_loss(self.loss), labels, self.gains, scores, qid)

    def __sklearn_tags__(self) -> Any:
        """Neither classifier nor regressor."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = None
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
