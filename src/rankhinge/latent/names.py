"""Names of the features of bags, checked as scikit-learn checks those of frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.svm._fitting import warn_user

__all__ = ["check_names"]


def check_names(estimator: Any, names: NDArray[Any] | None, reset: bool) -> None:
    """Remember the features' names in ``feature_names_in_``, or compare with those of training."""
    if reset:
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = names
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and names is not None and not np.array_equal(known, names):
        raise ValueError(
            "The feature names should match those that were passed during fit: "
            f"got {names[:5].tolist()}, fitted with {known[:5].tolist()}"
        )
    if (known is None) != (names is None):
        which = "X does not have valid feature names, but" if names is None else "X has feature names, but"
        how = "with" if names is None else "without"
        warn_user(f"{which} {type(estimator).__name__} was fitted {how} feature names")
