"""Values as JSON and tensors, and back. A file names types, never classes to import.

JSON's own values (null, booleans, integers, finite numbers, text) are written as they are. Everything else is an
object with one key that says what it is: ``{"tensor": name}``, ``{"number": "nan"}``, ``{"scalar": [dtype, value]}``,
``{"texts": [shape, dtype, values]}``, ``{"objects": [shape, values]}``, ``{"list": …}``, ``{"tuple": …}``,
``{"dict": [[key, value], …]}``, ``{"loss": [name, parameters]}``, ``{"splitter": [name, parameters]}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import losses
from rankhinge.persistence.errors import ModelFileError

__all__ = ["decode", "encode"]

# Losses that their class and these parameters determine. Every reader of the file has the class.
_LOSSES: dict[str, tuple[str, ...]] = {
    "APAt": ("k",),
    "AUC": (),
    "AveragePrecision": (),
    "BEDROC": ("alpha",),
    "F1At": ("k",),
    "HitAt": ("k",),
    "NDCG": (),
    "NDCGAt": ("k",),
    "PNormPush": ("p",),
    "PartialAUC": ("max_fpr",),
    "PrecisionAt": ("k",),
    "RBP": ("persistence",),
    "RPrecision": (),
    "RecallAt": ("k",),
    "ReciprocalRank": (),
    "SoftNDCG": ("k",),
    "TopPush": (),
    "ZeroOne": (),
}
# Splitters of scikit-learn that consist of nothing but numbers.
_SPLITTERS: dict[str, tuple[str, ...]] = {
    "GroupKFold": ("n_splits",),
    "KFold": ("n_splits", "shuffle", "random_state"),
    "LeaveOneGroupOut": (),
    "LeaveOneOut": (),
    "StratifiedGroupKFold": ("n_splits", "shuffle", "random_state"),
    "StratifiedKFold": ("n_splits", "shuffle", "random_state"),
}
_TENSORS = frozenset(
    ["bool", "float16", "float32", "float64"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
_SCALARS = _TENSORS - {"float16"}
# Values within values: a file that nests deeper was not written here.
_DEEPEST = 8


def encode(value: Any, where: str, tensors: dict[str, NDArray[Any]]) -> Any:
    """Encode a value as JSON. Arrays are added to `tensors` under the name `where`.

    Raises
    ------
    ModelFileError
        If a file cannot hold this value.

    Examples
    --------
    >>> import numpy as np
    >>> tensors = {}
    >>> encode({"gap": np.array([0.5]), "n": 3}, "history_", tensors), list(tensors)
    ({'dict': [['gap', {'tensor': 'history_.gap'}], ['n', 3]]}, ['history_.gap'])
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"number": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, where, tensors)
    if isinstance(value, np.generic):
        return _encode_scalar(value, where)
    if type(value) in (list, tuple):
        parts = [encode(entry, f"{where}.{k}", tensors) for k, entry in enumerate(value)]
        return {type(value).__name__: parts}
    if type(value) is dict:
        for key in value:
            if type(key) not in (str, int, bool):
                raise ModelFileError(f"{where} has the key {key!r}: a file holds text and integers as keys")
        return {"dict": [[key, encode(entry, f"{where}.{key}", tensors)] for key, entry in value.items()]}
    if isinstance(value, losses.RankingLoss):
        return _encode_loss(value)
    known = _SPLITTERS.get(type(value).__name__)
    if known is not None and type(value).__module__.startswith("sklearn.model_selection."):
        parameters = {name: getattr(value, name) for name in known}
        return {"splitter": [type(value).__name__, encode(parameters, where, tensors)["dict"]]}
    raise ModelFileError(
        f"{where} is {_short(value)}: a file holds numbers, text, arrays, lists and dicts of them, built-in losses. "
        f"Where predictions do not need it, model.set_params({where}=None) before saving"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"an object of the type {type(value).__name__}"


def _encode_array(array: NDArray[Any], where: str, tensors: dict[str, NDArray[Any]]) -> dict[str, Any]:
    if type(array) is not np.ndarray:
        raise ModelFileError(f"{where} is an array of the type {type(array).__name__}: convert it by np.asarray")
    if array.dtype.name in _TENSORS:
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        # The order of the entries decides about the last bits of products.
        tensors[where] = np.ascontiguousarray(array.T if by_columns else array).reshape(
            array.T.shape if by_columns else array.shape
        )
        return {"tensor": where, "transposed": True} if by_columns else {"tensor": where}
    if array.dtype.kind == "U":
        return {"texts": [list(array.shape), array.dtype.str, array.ravel().tolist()]}
    if array.dtype.kind == "O":
        entries = [encode(entry, f"{where}.{k}", tensors) for k, entry in enumerate(array.ravel().tolist())]
        return {"objects": [list(array.shape), entries]}
    raise ModelFileError(f"{where} is an array of {array.dtype}: a file holds numbers, booleans and text")


def _encode_scalar(value: np.generic, where: str) -> dict[str, Any]:
    name = value.dtype.name
    if isinstance(value, np.str_):
        return {"scalar": ["str", str(value)]}
    if name not in _SCALARS:
        raise ModelFileError(f"{where} is {value!r}: a file holds no numbers of the type {name}")
    return {"scalar": [name, encode(value.item(), where, {})]}


def _encode_loss(loss: losses.RankingLoss) -> dict[str, Any]:
    name = type(loss).__name__
    if name not in _LOSSES or type(loss) is not getattr(losses, name):
        raise ModelFileError(
            f"the loss {_short(loss)} is a function of yours, and model files hold no code. To save the "
            "model without it, first call model.set_params(loss='ap'): predictions stay the same, `score` does not"
        )
    return {"loss": [name, [[parameter, getattr(loss, parameter)] for parameter in _LOSSES[name]]]}


def decode(value: Any, tensors: dict[str, NDArray[Any]], depth: int = 0) -> Any:
    """The value that `encode` encoded.

    Raises
    ------
    ValueError, TypeError, KeyError, …
        If `encode` writes nothing like this.
    """
    if depth > _DEEPEST:
        raise ValueError("values are nested too deep")
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise ValueError("a list without its kind")
        return value
    kind = next(iter(value))
    return _DECODERS[kind](value, value[kind], tensors, depth + 1)


def _tensor(whole: dict[str, Any], name: str, tensors: dict[str, NDArray[Any]], depth: int) -> NDArray[Any]:
    return tensors[name].T if whole.get("transposed") else tensors[name]


def _number(whole: Any, text: str, tensors: Any, depth: int) -> float:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text]


def _scalar(whole: Any, parts: list[Any], tensors: Any, depth: int) -> Any:
    name, value = parts
    if name == "str":
        return np.str_(value)
    if name not in _SCALARS:
        raise ValueError(f"unknown number {name!r}")
    return np.dtype(name).type(decode(value, {}, depth))


def _texts(whole: Any, parts: list[Any], tensors: Any, depth: int) -> NDArray[Any]:
    shape, dtype, values = parts
    if np.dtype(dtype).kind != "U" or any(len(text) * 4 > np.dtype(dtype).itemsize for text in values):
        raise ValueError(f"text does not fit into {dtype!r}")
    return np.array(values, dtype=dtype).reshape(shape)


def _objects(whole: Any, parts: list[Any], tensors: dict[str, NDArray[Any]], depth: int) -> NDArray[Any]:
    shape, values = parts
    array = np.empty(len(values), dtype=object)
    for k, entry in enumerate(values):
        array[k] = decode(entry, tensors, depth)
    return array.reshape(shape)


def _list(whole: Any, parts: list[Any], tensors: dict[str, NDArray[Any]], depth: int) -> list[Any]:
    return [decode(entry, tensors, depth) for entry in parts]


def _dict(whole: Any, parts: list[Any], tensors: dict[str, NDArray[Any]], depth: int) -> dict[Any, Any]:
    return {key: decode(entry, tensors, depth) for key, entry in parts}


def _loss(whole: Any, parts: list[Any], tensors: Any, depth: int) -> losses.RankingLoss:
    name, parameters = parts
    return getattr(losses, name)(**_known(parameters, _LOSSES[name]))


def _splitter(whole: Any, parts: list[Any], tensors: Any, depth: int) -> Any:
    from sklearn import model_selection

    name, parameters = parts
    return getattr(model_selection, name)(**_known(_dict(None, parameters, {}, depth).items(), _SPLITTERS[name]))


def _known(parameters: Any, names: tuple[str, ...]) -> dict[str, Any]:
    given = dict(parameters)
    if given.keys() != set(names):
        raise ValueError(f"parameters {sorted(given)} instead of {sorted(names)}")
    return given


_DECODERS: dict[str, Callable[..., Any]] = {
    "dict": _dict,
    "list": _list,
    "loss": _loss,
    "number": _number,
    "objects": _objects,
    "scalar": _scalar,
    "splitter": _splitter,
    "tensor": _tensor,
    "texts": _texts,
    "tuple": lambda *arguments: tuple(_list(*arguments)),
}
