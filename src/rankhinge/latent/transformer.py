"""Row-wise transformers for bags: each candidate is a row."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from rankhinge.latent.bags import Bags, as_bags, is_bags_like
from rankhinge.latent.names import check_names

__all__ = ["BagTransformer"]


class BagTransformer(
    MetaEstimatorMixin,
    TransformerMixin,
    BaseEstimator,
    # Bags are not frames. (The mixin's own keyword; it has no types.)
    auto_wrap_output_keys=None,  # type: ignore[call-arg]
):
    """Apply a row-wise transformer (a scaler, PCA) to the candidates of bags, inside a pipeline.

    Parameters
    ----------
    transformer : transformer
        A scikit-learn transformer. It is fitted to all candidates of the training bags, without labels: a bag's label
        is not the label of each candidate. Bags made from frames are passed on as a frame (if pandas is installed), so
        that it can select columns by name.

    Attributes
    ----------
    transformer_ : transformer
        The fitted one.
    n_features_in_ : int
        Features of a candidate, if the transformer has this attribute.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names. Only for bags made from frames.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankhinge.latent import Bags, BagTransformer
    >>> bags = Bags([[[0.0], [2.0]], [[4.0]]])
    >>> scaled = BagTransformer(StandardScaler()).fit_transform(bags)
    >>> scaled.sizes.tolist(), float(round(scaled.candidates().std(), 6))
    ([2, 1], 1.0)
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> BagTransformer:
        """Fit the transformer to the candidates.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        if _is_plain(X):
            self.transformer_ = clone(self.transformer).fit(X)
            names = getattr(self.transformer_, "feature_names_in_", None)
        else:
            bags = as_bags(X)
            names = bags.feature_names
            self.transformer_ = clone(self.transformer).fit(_framed(bags.candidates(), names))
        check_names(self, names, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Bags of transformed candidates; an array for an array.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)

        Returns
        -------
        Bags, or what the transformer returns for an array
        """
        check_is_fitted(self)
        if _is_plain(X):
            return self.transformer_.transform(X)
        bags = as_bags(X)
        check_names(self, bags.feature_names, reset=False)
        known = getattr(self, "feature_names_in_", None)
        transformed = self.transformer_.transform(_framed(bags.candidates(), known))
        result = Bags(transformed, offsets=bags.offsets)
        result._ids = bags._ids
        if known is not None and result.feature_names is None and hasattr(self.transformer_, "get_feature_names_out"):
            result.feature_names = self.get_feature_names_out()
        return result

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The feature names that the transformer returns."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None) if input_features is None else input_features
        return self.transformer_.get_feature_names_out(names)

    @property
    def n_features_in_(self) -> int:
        """Features of a candidate."""
        try:
            check_is_fitted(self)
        except NotFittedError as error:
            raise AttributeError(f"{type(self).__name__} has no n_features_in_ before fit") from error
        return int(self.transformer_.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        """The transformer accepts or refuses sparse candidates."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _is_plain(X: Any) -> bool:
    return not isinstance(X, Bags) and not is_bags_like(X)


def _framed(candidates: Any, names: NDArray[Any] | None) -> Any:
    """The candidates as a frame if they have names and there is pandas, else as they are."""
    if names is None or candidates.shape[1] != len(names):
        return candidates
    try:
        pandas = import_module("pandas")
    except ImportError:
        return candidates
    return pandas.DataFrame(candidates, columns=names)
