"""The door for containers: data other than arrays declare how they enter, before any validation.

scikit-learn's validation would call `numpy.asarray` on a dask array, and load it whole. So `fit`, `decision_function`
and `predict` ask `container_of` first. A room of its own registers what it knows (`register`), and does for its data
what validation, targets and lists do for arrays: each chunk is checked once, where it lies; labels are united over the
chunks; relevance stays beside the samples.

What comes back is `Opened`: a few numbers, and a function that makes the objective once the unit of the features is
known. A fit asks nothing else of data. What it asks of the objective is `rankhinge.svm.protocol.FitObjective`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses import RankingLoss
from rankhinge.problems.standing import Standing

__all__ = ["Container", "Opened", "container_of", "register"]


class Opened(Protocol):
    """K problems over samples that lie elsewhere."""

    n_features: int
    feature_names: NDArray[Any] | None
    """Of a frame, as `feature_names_in_`."""
    usable: NDArray[np.bool_]
    """Which problems have both a positive and a negative, (K,); the objective has these only."""
    attributes: dict[str, Any]
    """Fitted attributes that follow from labels alone.

    Of a classifier ``classes_`` and ``_kind`` (``"binary"``, ``"multiclass"`` or ``"multilabel"``), of a ranker
    ``n_queries_`` and ``n_unusable_queries_``.
    """
    constant: NDArray[np.float64]
    """Intercepts of the problems that are not usable: 1 if all their samples are relevant, else -1; (K,)."""

    def variances(self) -> NDArray[np.float64]:
        """How much each feature varies within the lists of the first problem, (d,). **One pass**."""

    def renew(self) -> None:
        """Forget what a fit has left: another one may follow. Searches call it."""

    def objective(self, loss: RankingLoss, scale: NDArray[np.float64] | None) -> Any:
        """The `FitObjective` of the usable problems, for features that are divided by `scale` (d,); None: as they are.

        Weights and slopes that it takes and returns are those of the divided features.
        """


class Container(Protocol):
    """A kind of data that can be fitted."""

    def classes(self, X: Any, y: Any, *, mask: Any, pos_label: Any) -> Opened:
        """One-vs-rest problems, as `RankSVC.fit` is given them."""

    def queries(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any,
        qid_column: Any,
        query_weight: Any,
        loss: RankingLoss,
        gains: Any,
        level_weights: Any,
    ) -> Opened:
        """Lists, as `SVMRanker.fit` is given them."""

    def each(self, X: Any, function: Callable[[Any], NDArray[Any]]) -> Any:
        """``function(chunk)``, row by row, for each chunk of X as an array: lazily, if that is the container's way."""

    def folds(
        self, X: Any, y: Any, *, n_folds: int, seed: int, qid: Any = None, qid_column: Any = None
    ) -> list[tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]]:
        """Training and test part (X, y, qid) of each fold: by hash of the row number, of the query if there are any."""

    def standings(
        self, X: Any, y: Any, function: Callable[[Any], NDArray[Any]], *, kind: str, classes: NDArray[Any]
    ) -> list[Standing]:
        """Where the positives of each one-vs-rest problem stand, by the scores ``function(chunk)``."""

    def judged(
        self,
        X: Any,
        y: Any,
        function: Callable[[Any], NDArray[Any]],
        *,
        qid: Any,
        qid_column: Any,
        by_list: Callable[..., NDArray[np.float64]],
        of_standing: Callable[[Standing], float],
    ) -> NDArray[np.float64]:
        """The value of each list, nan for those without one, by the scores ``function(chunk)``.

        Where a list's samples are together it is ``by_list(labels, scores, qid)``, where they are not `of_standing`.
        """


_REGISTERED: list[tuple[Callable[[Any], bool], Container]] = []


def register(accepts: Callable[[Any], bool], container: Container) -> None:
    """Let every X with ``accepts(X)`` enter by `container`; later ones are asked first."""
    _REGISTERED.insert(0, (accepts, container))


# Rooms that register themselves when they are loaded, by the package that their containers come from.
_ROOMS = {"dask": "rankhinge.dask", "dask_expr": "rankhinge.dask"}


def container_of(X: Any) -> Container | None:
    """The container of X. None for arrays, sparse arrays and frames."""
    room = _ROOMS.get(type(X).__module__.partition(".")[0])
    if room is not None:
        import_module(room)
    return next((container for accepts, container in _REGISTERED if accepts(X)), None)
