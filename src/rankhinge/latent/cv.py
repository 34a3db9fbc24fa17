"""`LatentRankSVCCV`: choose C by cross-validation over bags, along paths that keep their planes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from rankhinge._progress import Progress
from rankhinge.latent.bags import Bags
from rankhinge.latent.candidates import CandidateFeatures, Counter
from rankhinge.latent.fit import LatentFit, fit_latent
from rankhinge.latent.problem import LatentProblem, problems_of
from rankhinge.latent.rank_svc import LatentRankSVC
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.problems.targets import Targets
from rankhinge.solvers import Deadline, Solver
from rankhinge.svm._fitting import fitting, interrupts, warn_user
from rankhinge.svm.following import OF, POINT, Watch
from rankhinge.svm.policy import LABELS, Grid
from rankhinge.svm.quality import list_metric
from rankhinge.svm.results import Candidate, summary
from rankhinge.svm.tight_cv import grid_of

__all__ = ["LatentRankSVCCV"]

# The grid, unless one is given: as for `RankSVCCV` with the convex bound.
_CS = Grid(-1.0, 5.0, 8)
_NO_TEST = (
    "no fold has both a positive and a negative bag in its training part and in its test part, or scoring returned "
    "nan: use fewer folds, or other ones"
)


class LatentRankSVCCV(LatentRankSVC):
    """`LatentRankSVC` with C chosen by k-fold cross-validation over bags, on the loss's own metric.

    On each fold the values of C are taken in ascending order. Cutting planes do not depend on C and survive a change of
    the positives' candidates. So each fit begins with the planes, the candidates and the working set of the previous
    one. Bags are not copied. At the end, all bags are fitted with the chosen C, from `n_starts` starts.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
    Cs : int, array or None, default None
        The grid, or the number of values between 0.1 and 100,000. None: 8. The right C depends on the units of the
        features: widen the grid if `C_` lies at one of its ends.
    cv : int, splitter, iterable or None, default None
        Folds of bags, stratified and shuffled with `random_state` if an int; None: 5.
    scoring : str, callable or None, default None
        The metric on the test parts, as for `RankSVCCV`. None: the metric of the loss.
    max_time : float or None, default None
        Seconds for search and fit together. After three quarters of that time, the best C so far is fitted. After
        Ctrl-C, the model starts from the mean of the models of the folds, and takes one step on all bags.
    n_starts, init, solver, tol, max_iter, max_outer, shrinking, threshold, random_state, verbose
        As for `LatentRankSVC`. Paths take the first start only.

    Attributes
    ----------
    C_ : float or ndarray of shape (K,)
        The smallest value with the best mean score, one for each label.
    Cs_ : ndarray of shape (n_Cs,)
    scores_ : ndarray of shape (n_Cs, n_folds) or (K, n_Cs, n_folds)
        The metric on the test part of each fold, nan where it cannot be ranked.
    best_params_ : dict
        The chosen C, as a parameter of `LatentRankSVC`. With several labels, an array with one value for each.
    best_score_ : float
        Mean of the chosen values' scores over folds and labels.
    best_index_ : int or ndarray of shape (K,)
        The row of the chosen value in `cv_results_`.
    cv_results_ : dict
        One row for each C, in the format of `GridSearchCV`; pass it to `pandas.DataFrame`. With several labels, one row
        for each label and C, with a column ``"label"`` and ranks within the label. There are no times, because the fits
        of a fold share their planes. A fold without a score for some C does not count at all.
    n_splits_ : int
    coef_, … :
        Of the model fitted to all bags; see `LatentRankSVC`.

    References
    ----------
    Behl, Mohapatra, Jawahar, Kumar: Optimizing Average Precision using Weakly Supervised Data, TPAMI 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.latent import Bags, LatentRankSVCCV
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3 == 0
    >>> X = rng.normal(size=(60, 5, 4))
    >>> X[y, 2] += 3.0  # the third of five candidates is what makes a bag positive
    >>> model = LatentRankSVCCV(Cs=[1.0, 10.0, 100.0], random_state=0).fit(Bags(list(X)), y)
    >>> model.C_ in (1.0, 10.0, 100.0), model.scores_.shape
    (True, (3, 5))
    """

    C_: Any
    Cs_: NDArray[np.float64]
    scores_: NDArray[np.float64]
    best_index_: Any
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]
    n_splits_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{key: value for key, value in LatentRankSVC._parameter_constraints.items() if key not in ("C", "warm_start")},
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
    }
    # A search has no warm start: C is chosen anew.
    warm_start = False

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        Cs: int | ArrayLike | None = None,
        *,
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        n_starts: int = 1,
        init: str = "mean",
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_outer: int = 50,
        max_time: float | None = None,
        shrinking: bool = True,
        threshold: str | float = "f1",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.n_starts = n_starts
        self.init = init
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_outer = max_outer
        self.max_time = max_time
        self.shrinking = shrinking
        self.threshold = threshold
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(
        self,
        X: Any,
        y: Any,
        chosen: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose C, then fit all bags with it.

        Parameters
        ----------
        X, y, chosen, mask
            As for `LatentRankSVC.fit`. Known candidates are fixed in the training parts only.
        groups : array of shape (n_bags,), optional
            For splitters that keep groups of bags together.

        Returns
        -------
        self
        """
        given, targets, usable, known = self._prepared(X, y, chosen, mask)
        bags: Bags = given.X
        Cs = grid_of(self.Cs, "Cs", _CS)
        folds = list(self._folds(bags, given.y, targets.kind, groups))
        deadline = Deadline.after(self.max_time)
        with Progress(self.verbose, (POINT, OF), patience=LABELS.patience) as progress:
            watch = Watch(progress, deadline.earlier(LABELS.share))
            scores, means = self._search(bags, targets, known, folds, Cs, watch)
        compared = _comparable(scores)
        places = self._choice(compared, usable, ended=watch.ended is not None)
        C = Cs[places]
        tried = [[Candidate({"C": value}, row) for value, row in zip(Cs.tolist(), mine)] for mine in compared]
        one = usable.size == 1
        table = summary(tried, places.tolist(), targets.classes.tolist()[-usable.size :])
        table |= {"Cs_": Cs, "scores_": scores[0] if one else scores, "C_": float(C[0]) if one else C}
        start = np.empty((0, 0))
        if watch.ended == "interrupted":
            deadline, start = Deadline(-np.inf, "interrupted"), means[places, np.arange(usable.size)]
        elif watch.ended is not None:
            watch.warn(LABELS.share, self.max_time)
        fitted = fit_latent(LatentFit(self, given, targets, usable, known, C[usable], deadline, start, table))
        return self._become(fitted if watch.ended != "interrupted" else fitted._replace(interrupt=KeyboardInterrupt()))

    def _search(
        self,
        bags: Bags,
        targets: Targets,
        known: NDArray[np.int64],
        folds: list[Any],
        Cs: NDArray[np.float64],
        watch: Watch,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores (K, n_Cs, n_folds), nan where there is none, and the folds' mean weights (n_Cs, K, d).

        Ctrl-C ends it: `watch` takes note. Before there is any score, it passes on.
        """
        K = targets.relevant.shape[0]
        scores, sums = np.full((K, Cs.size, len(folds)), np.nan), np.zeros((Cs.size, K, bags.n_features))
        counts = np.zeros((Cs.size, K, 1))
        watch.n_expected = Cs.size * len(folds)
        points = (
            (fold, place, point)
            for fold, (train, test) in enumerate(folds)
            for place, point in enumerate(self._along(bags, targets, known, train, test, Cs, watch))
        )
        try:
            with interrupts():
                for fold, place, (ks, weights, found) in points:
                    scores[ks, place, fold] = found
                    sums[place, ks] += weights.T
                    counts[place, ks] += 1
                    watch.point()
                    if watch.over:
                        break
        except KeyboardInterrupt:
            if not np.isfinite(scores).any():
                raise
            watch.interrupt()
        return scores, sums / np.maximum(counts, 1)

    def _folds(self, bags: Bags, y: NDArray[Any], kind: str, groups: Any) -> Iterator[Any]:
        stratified = kind != "multilabel"
        splitter = check_cv(self.cv, y if stratified else None, classifier=stratified)
        if self.cv is None or isinstance(self.cv, Integral):
            # Files are often sorted by class or by time: folds are drawn, not cut.
            splitter.shuffle = True
            splitter.random_state = check_random_state(self.random_state).randint(2**31 - 1)
        return splitter.split(np.zeros(len(bags)), y, groups)

    def _along(
        self,
        bags: Bags,
        targets: Targets,
        known: NDArray[np.int64],
        train: NDArray[Any],
        test: NDArray[Any],
        Cs: NDArray[np.float64],
        watch: Watch,
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]]:
        """For each C the labels that can be trained, their weights, and how well their test bags are ranked."""
        labelled, inside = targets.known(), np.zeros(len(bags), np.bool_)
        inside[train] = True
        part = targets._replace(labelled=labelled & inside)
        ks = np.flatnonzero(part.usable())
        rows = np.arange(len(bags))[test]
        judged = [rows[labelled[k, rows]] for k in ks]
        loss = get_loss(self.loss)
        judges = [
            list_metric(loss, self.scoring, targets.relevant[k, mine]) for k, mine in zip(ks, judged, strict=True)
        ]
        features = self._features(bags)
        for weights in self._path(features, bags, problems_of(bags, part, part.usable(), known), Cs, watch.step):
            best = features.sweep(weights, bags.offsets, 1).values[:, :, 0]
            found = [judge(row[mine]) for judge, row, mine in zip(judges, best, judged, strict=True)]
            yield ks, weights, np.array(found)

    @staticmethod
    def _features(bags: Bags) -> CandidateFeatures:
        skips = bags.n_candidates > len(bags)
        return CandidateFeatures(bags.matrix, bags.rows(), constant=0.0, skip_zeros=skips, counter=Counter())

    def _path(
        self,
        features: CandidateFeatures,
        bags: Bags,
        problems: list[LatentProblem],
        Cs: NDArray[np.float64],
        wants_stop: Callable[[Solver], bool],
    ) -> Iterator[NDArray[np.float64]]:
        """Weights (d, K) for each C; planes, candidates and working sets go from one to the next."""
        if not problems:
            return
        inner = self._make_inner(features, bags, problems, np.full(len(problems), Cs[0]), wants_stop)
        earlier = None
        for C in Cs:
            inner.whole.C = np.full(len(problems), C)
            outer = self._make_outer(inner)
            if earlier is None:
                self._begin(outer, 0, None)
            else:
                outer.go_on_from(earlier)
            while not outer.done:
                outer.step()
            earlier = outer
            yield np.stack([point.w for point in outer.points if point is not None], axis=1)

    @staticmethod
    def _choice(scores: NDArray[np.float64], usable: NDArray[np.bool_], *, ended: bool) -> NDArray[np.intp]:
        """The place of the smallest C with the best mean score of each label, (K,); `ended`: the search, too early."""
        judged = np.isfinite(scores[:, 0])
        known = np.asarray(judged.any(axis=1)) & usable
        if not known.any():
            raise ValueError(_NO_TEST)
        places = np.zeros(usable.size, np.intp)
        for k in np.flatnonzero(known):
            places[k] = int(np.nanargmax(scores[k][:, judged[k]].mean(axis=1)))
        if not (known[usable].all() or ended):
            warn_user(
                f"labels {np.flatnonzero(usable & ~known)[:10].tolist()} have no fold with positives and negatives in "
                "each of its parts: they are fitted with the median of what suits the other labels"
            )
        places[~known] = int(np.median(places[known]))
        return places


def _comparable(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores (K, n_Cs, n_folds) on the folds that have one for each C; with none of these, those of the first fold."""
    complete = np.isfinite(scores).all(axis=1, keepdims=True)
    if not complete.any():
        complete = np.zeros_like(complete)
        complete[..., 0] = True
    return np.where(complete, scores, np.nan)
