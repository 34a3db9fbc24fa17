"""`save` and `load`: a fitted model as one safetensors file. docs/model-files.md specifies the format."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import __version__
from rankhinge.datasets import written
from rankhinge.persistence.encoding import decode, encode
from rankhinge.persistence.errors import ModelFileError
from rankhinge.persistence.foreign import describe_foreign
from rankhinge.persistence.tensors import load as from_bytes
from rankhinge.persistence.tensors import save as to_bytes

__all__ = ["load", "save"]

FORMAT = 1
_KEY = "rankhinge"
# Which estimators have a file, and the room of each: no other class is ever made, whatever a file says.
_ROOMS = {
    "ApproximateRankSVC": "svm",
    "LatentRankSVC": "latent",
    "LatentRankSVCCV": "latent",
    "LatentSVC": "latent",
    "LatentStructuralSVC": "latent",
    "RankSVC": "svm",
    "RankSVCCV": "svm",
    "SVMRanker": "svm",
    "SVMRankerCV": "svm",
}
_ZEROS = "0" * 64
# What a reader may want to know without decoding the rest.
_SUMMARY = {"classes": "classes_", "feature_names": "feature_names_in_", "gap": "gap_", "status": "status_"}


def _estimator(name: str) -> Any:
    return getattr(importlib.import_module(f"rankhinge.{_ROOMS[name]}"), name)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that holds numbers and text, but no code.

    Equal models give equal bytes. `load` returns an estimator with the same bits in every attribute.

    Parameters
    ----------
    model : fitted estimator
        An estimator of rankhinge. For a pipeline, save its last step, or save all of it with skops.
    path : path
        An existing file is replaced only when the new one is complete.

    Raises
    ------
    ModelFileError
        If the model is not fitted, is not an estimator of rankhinge, or has a part that a file cannot hold, such as a
        loss written by you.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import rankhinge
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = rankhinge.RankSVC(bound="convex").fit(scale(X), y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.safetensors"
    ...     rankhinge.save(model, path)
    ...     again = rankhinge.load(path)
    >>> bool((again.predict(scale(X)) == model.predict(scale(X))).all())
    True
    """
    content = _serialised(model)
    with written(path, compress=False) as file:
        file.write(content)


def _serialised(model: Any) -> bytes:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    name = type(model).__name__
    if name not in _ROOMS or type(model) is not _estimator(name):
        raise ModelFileError(f"{name} cannot be saved. Estimators that can: {', '.join(_ROOMS)}")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ModelFileError(f"{name} is not fitted: there is nothing to save") from None
    tensors: dict[str, NDArray[Any]] = {}
    state = model.__getstate__()
    parameters = model.get_params(deep=False)
    if "checkpoint" in parameters:
        # A path says nothing about the model.
        parameters["checkpoint"] = None
    fitted = {key: value for key, value in state.items() if key not in parameters and key != "_sklearn_version"}
    head = {
        "format": FORMAT,
        "sha256": _ZEROS,
        "estimator": name,
        "parameters": {key: encode(value, key, tensors) for key, value in sorted(parameters.items())},
        "fitted": {key: encode(value, key, tensors) for key, value in sorted(fitted.items())},
        **{key: _plain(fitted.get(attribute)) for key, attribute in _SUMMARY.items()},
        "loss": repr(parameters.get("loss")) if not isinstance(parameters.get("loss"), str) else parameters["loss"],
        "versions": _versions(),
    }
    text = json.dumps(head, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    raw = to_bytes(tensors, {_KEY: text})
    return raw.replace(_ZEROS.encode(), _digest(raw).encode(), 1)


def _digest(raw: bytes) -> str:
    """Of a file whose own digest is written as zeros: it covers names, shapes and parameters as well."""
    return hashlib.sha256(raw).hexdigest()


def _plain(value: Any) -> Any:
    """A short form for readers that only know JSON. nan and infinities are text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _versions() -> dict[str, str]:
    import scipy
    import sklearn

    return {
        "numpy": np.__version__,
        "python": platform.python_version(),
        "rankhinge": __version__,
        "scikit-learn": sklearn.__version__,
        "scipy": scipy.__version__,
    }


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that `save` wrote. The file holds no code, and none is run.

    Parameters
    ----------
    path : path

    Returns
    -------
    fitted estimator

    Raises
    ------
    ModelFileError
        If the file is not a model file, is cut off or changed, or needs a newer rankhinge. The message says which.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import rankhinge
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = rankhinge.RankSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.safetensors"
    ...     rankhinge.save(model, path)
    ...     again = rankhinge.load(path)
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            raw = file.read()
    except FileNotFoundError:
        raise ModelFileError("there is no such file", name) from None
    except IsADirectoryError:
        raise ModelFileError("this is a folder, not a file", name) from None
    except PermissionError:
        raise ModelFileError("the file may not be read (permission denied)", name) from None
    head = _head(raw, name)
    try:
        return _restored(head, from_bytes(raw))
    except ModelFileError as error:
        raise ModelFileError(error.what, name) from None
    except Exception as error:
        # The digest is right, so the file is intact, but another program wrote it.
        raise ModelFileError(f"the contents do not fit together: {type(error).__name__}: {error}", name) from None


def _head(raw: bytes, path: str) -> dict[str, Any]:
    """The description of the model, after a check that the file is complete."""
    foreign = describe_foreign(raw)
    if foreign:
        raise ModelFileError(foreign, path)
    start = 8 + int.from_bytes(raw[:8], "little")
    try:
        header = json.loads(raw[8:start].decode("utf-8"))
        tables = {key: value for key, value in header.items() if key != "__metadata__"}
        end = start + max((int(table["data_offsets"][1]) for table in tables.values()), default=0)
        head = json.loads(header["__metadata__"][_KEY]) if _KEY in header.get("__metadata__", {}) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError, OverflowError) as error:
        raise ModelFileError(f"the header is damaged: {type(error).__name__}: {str(error)[:60]}", path) from None
    if head is None:
        raise ModelFileError("a safetensors file of another program: it has no description of a rankhinge model", path)
    if not isinstance(head, dict) or type(head.get("format")) is not int:
        raise ModelFileError("the header is damaged: it has no format version", path)
    if head["format"] > FORMAT:
        written_by = head["versions"].get("rankhinge") if isinstance(head.get("versions"), dict) else None
        raise ModelFileError(
            f"the file has format {head['format']}, this rankhinge ({__version__}) reads up to {FORMAT}: "
            f"it needs a newer one, such as {written_by}",
            path,
        )
    if len(raw) != end:
        raise ModelFileError(f"the file is cut off or too long: it has {len(raw)} bytes instead of {end}", path)
    digest = head.get("sha256")
    if not isinstance(digest, str) or _digest(raw.replace(digest.encode(), _ZEROS.encode(), 1)) != digest:
        raise ModelFileError("the file has been changed since it was written: its SHA-256 differs", path)
    return head


def _restored(head: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> Any:
    name = head["estimator"]
    if name not in _ROOMS:
        raise ModelFileError(f"the file is of the unknown estimator {name!r}")
    kind = _estimator(name)
    parameters = {key: decode(value, tensors) for key, value in head["parameters"].items()}
    unknown = sorted(parameters.keys() - kind().get_params().keys())
    if unknown:
        raise ModelFileError(f"{name} of rankhinge {__version__} has no parameter {unknown[0]!r}")
    model = kind(**parameters)
    for key, value in head["fitted"].items():
        # Methods and properties of the class are no place for data.
        if not key.isidentifier() or key.startswith("__") or callable(getattr(kind, key, None)):
            raise ModelFileError(f"{key!r} is not the name of a fitted attribute")
        setattr(model, key, decode(value, tensors))
    _refuse_halves(model)
    return model


def _refuse_halves(model: Any) -> None:
    """Raise if what predictions are made of is not there, or does not fit together."""
    decides = hasattr(type(model), "decision_function")
    needed = {"coef_", "intercept_", "n_features_in_"} | ({"classes_", "slope_", "_kind"} if decides else set())
    missing = sorted(name for name in needed if not hasattr(model, name))
    if missing:
        raise ModelFileError(f"there is no {missing[0]}, without which nothing can be predicted")
    n_rows, d = np.shape(np.atleast_2d(model.coef_))
    if d != model.n_features_in_:
        raise ModelFileError(f"coef_ is for {d} features, but n_features_in_ is {model.n_features_in_}")
    if decides and (np.shape(model.intercept_) != (n_rows,) or np.shape(model.slope_) != (n_rows,)):
        raise ModelFileError(f"coef_ has {n_rows} rows, intercept_ and slope_ have {np.size(model.intercept_)} values")
