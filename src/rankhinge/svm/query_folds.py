"""Folds that keep queries whole. Half a list is a different list, and the other half would give the answer away."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import check_random_state

from rankhinge._validation import QueryIds, encode_queries
from rankhinge.svm.qid_column import query_column

__all__ = ["QueryKFold", "query_folds"]

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


class QueryKFold(GroupKFold):
    """k folds of whole queries. A column of X may hold the query ids.

    Each query is in the test part of one fold. The folds differ by at most one in their number of queries, because a
    ranking metric is a mean over queries. scikit-learn's `GroupKFold` balances the number of rows instead.

    Parameters
    ----------
    n_splits : int, default 5
    qid_column : str or int, optional
        Name or position of the column of X with the query ids. None: `split` takes them as `groups`.
    shuffle : bool, default False
        Draw the folds at random. Otherwise consecutive queries go together.
    random_state : int, RandomState or None, default None
        For `shuffle`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge import QueryKFold
    >>> X = np.array([[7, 0.1], [7, 0.4], [8, 0.2], [9, 0.3]])
    >>> [test.tolist() for train, test in QueryKFold(3, qid_column=0).split(X)]
    [[0, 1], [2], [3]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        qid_column: str | int | None = None,
        shuffle: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)
        self.qid_column = qid_column

    def split(self, X: Any, y: Any = None, groups: QueryIds | None = None) -> Iterator[Fold]:
        """Training and test rows of each fold.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n, d)
            With `qid_column`, the queries are taken from it. Otherwise only its length matters.
        y : ignored
        groups : array of shape (n,), optional
            The query of each row, without `qid_column`.

        Yields
        ------
        train, test : ndarray
        """
        if self.qid_column is not None:
            groups = query_column(X, self.qid_column)
        elif groups is None:
            raise ValueError("QueryKFold needs the queries: qid_column= names a column of X, or pass groups=")
        n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
        queries, codes = encode_queries(groups, n_samples, counted="X")
        if len(queries) < self.n_splits:
            raise ValueError(
                f"{self.n_splits} folds need at least as many queries, got {len(queries)}: choose fewer folds"
            )
        fold_of = np.arange(len(queries)) % self.n_splits
        if self.shuffle:
            check_random_state(self.random_state).shuffle(fold_of)
        else:
            fold_of.sort()
        for fold in range(self.n_splits):
            is_test = fold_of[codes] == fold
            yield np.flatnonzero(~is_test), np.flatnonzero(is_test)


def query_folds(cv: Any, X: Any, y: Any, qid: NDArray[Any] | None, random_state: Any) -> list[Fold]:
    """The rows of the training and test parts; no query is in both parts of a fold.

    Parameters
    ----------
    cv : int, splitter, iterable of splits or None
        Splitters that keep groups together are given the queries as such.
    X, y
        As the splitter is to see them.
    qid : ndarray of shape (n,) or None
        None: all rows are one list, and any of them may be in either part.
    random_state
        For the folds of an int or None, which are drawn.
    """
    n_samples = len(y)
    codes = np.arange(n_samples) if qid is None else encode_queries(qid, n_samples, counted="y")[1]
    groups = codes if qid is None or not _can_be_sorted(qid) else qid
    if cv is None or isinstance(cv, Integral):
        number = {} if cv is None else {"n_splits": int(cv)}
        splitter: Any = QueryKFold(**number, shuffle=True, random_state=random_state)
    else:
        splitter = check_cv(cv)
    n_entries = np.size(getattr(cv, "test_fold", codes))
    if n_entries != n_samples:
        raise ValueError(f"cv={cv!r} has an entry for {n_entries} rows, but there are {n_samples}")
    rows, folds = np.arange(n_samples), []
    for place, (train, test) in enumerate(splitter.split(X, y, groups if _wants_groups(splitter) else None)):
        # A mask, or places in any order, also negative ones.
        try:
            inside, outside = rows[train], rows[test]
        except IndexError as error:
            raise ValueError(f"fold {place} of cv has rows that are not there, of {n_samples}: {error}") from None
        if np.unique(inside).size < inside.size:
            raise ValueError(
                f"the training part of fold {place} has rows more than once: a list ranks each sample once"
            )
        cut = outside[np.isin(codes[outside], codes[inside])]
        if cut.size:
            what = f"row {cut[0]}" if qid is None else f"query {qid[cut[0]]}"
            raise ValueError(
                f"fold {place} of cv={cv!r} has {what} in its training and in its test part: keep queries whole, with "
                "QueryKFold, GroupKFold or another splitter that takes groups, or PredefinedSplit of whole queries"
            )
        folds.append((np.sort(inside), outside))
    if not folds:
        raise ValueError(f"cv={cv!r} has no folds")
    return folds


def _can_be_sorted(qid: NDArray[Any]) -> bool:
    """Whether splitters can sort the queries, as scikit-learn's do: not where words and numbers are mixed."""
    try:
        np.sort(qid)
    except TypeError:
        return False
    return True


def _wants_groups(splitter: Any) -> bool:
    """Whether a splitter is to be given groups: scikit-learn's warn if they are to ignore them."""
    if not hasattr(splitter, "get_metadata_routing"):
        return True
    return "groups" in splitter.get_metadata_routing().split.requests
