"""Prediction with a fitted latent machine: the best candidate of each bag, its score, and the class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rankhinge.latent.bags import Bags, as_bags, is_bags_like
from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.names import check_names
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm.quality import labels_quality
from rankhinge.svm.threshold import classes_of

__all__ = ["BagPredictor"]


class BagPredictor(ClassifierMixin, LinearRankingMachine):
    """Prediction from `coef_`, `intercept_`, `slope_` and `classes_`."""

    classes_: NDArray[Any]
    intercept_: NDArray[np.float64]
    slope_: NDArray[np.float64]

    def _bags(self, X: Any, reset: bool) -> Bags:
        """Bags of what came in, with the number of features checked or remembered."""
        if not isinstance(X, Bags) and not is_bags_like(X):
            return Bags(self._validated(X, reset=reset))
        bags = as_bags(X)
        if len(bags) == 0:
            raise ValueError("there are no bags")
        check_names(self, bags.feature_names, reset)
        if reset:
            self.n_features_in_ = bags.n_features
        elif bags.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {bags.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return bags

    def _loss(self) -> RankingLoss:
        """The loss whose metric `score` returns."""
        return get_loss(getattr(self, "loss", "ap"))

    def _best(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Score and number of each bag's best candidate, (n_bags, K) each."""
        check_is_fitted(self)
        bags = self._bags(X, reset=False)
        features = CandidateFeatures(bags.matrix, bags.rows())
        found = features.sweep(self.coef_.T, bags.offsets, 1)
        return found.values[:, :, 0].T, (found.places[:, :, 0] - bags.offsets[:-1]).T

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The score of each bag's best candidate, ``max_h w · x_h + intercept_``; multiclass: calibrated log-odds.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)

        Returns
        -------
        ndarray of shape (n_bags,) or (n_bags, K)
        """
        best = self._best(X)[0]
        scores = self.slope_ * (best + self.intercept_)
        return scores[:, 0] if self._kind == "binary" else scores

    def predict_candidates(self, X: Any) -> NDArray[np.int64]:
        """Which candidate of each bag scores best, counted from 0 within the bag.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)

        Returns
        -------
        ndarray of shape (n_bags,) or (n_bags, K)
        """
        places = self._best(X)[1]
        return places[:, 0] if self._kind == "binary" else places

    def score_candidates(self, X: Any) -> NDArray[np.float64]:
        """The score of every candidate, ``w · x + intercept_``, bag by bag; multiclass: calibrated log-odds.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)

        Returns
        -------
        ndarray of shape (n_candidates,) or (n_candidates, K)
        """
        check_is_fitted(self)
        bags = self._bags(X, reset=False)
        linear = CandidateFeatures(bags.matrix, bags.rows()).scores(self.coef_.T).T
        scores = self.slope_ * (linear + self.intercept_)
        return scores[:, 0] if self._kind == "binary" else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes (binary: by the sign of the score; multiclass: the largest log-odds) or label indicators.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)

        Returns
        -------
        ndarray of shape (n_bags,) or (n_bags, K)
        """
        return classes_of(self.decision_function(X), self._kind, self.classes_)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, mask: ArrayLike | None = None) -> float:
        """The loss's own metric (average precision for ``"ap"``), its mean over the labels.

        Average precision for machines without a `loss`, too; accuracy for ``loss="zero-one"``.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)
        y : array of shape (n_bags,) or (n_bags, K)
        sample_weight : None
            Accepted because scikit-learn's tools pass it; a ranking has no sample weights.
        mask : bool array of shape (n_bags, K), optional
            With a multilabel y: False where an entry is not labelled.

        Returns
        -------
        float
            Labels without both a positive and a negative in y do not count; nan if none does.
        """
        scores = self.decision_function(X)
        if np.shape(y)[:1] != scores.shape[:1]:
            found = f"{np.shape(y)[0]} labels" if np.ndim(y) else "no labels"
            raise ValueError(f"there are {scores.shape[0]} bags, but y has {found}")
        return labels_quality(self._loss(), self._kind, self.classes_, y, scores, sample_weight, mask)
