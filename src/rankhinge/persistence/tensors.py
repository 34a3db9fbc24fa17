"""The safetensors format, written and read with NumPy alone, so that a plain installation can save models.

Eight bytes with the length of the header, little-endian; the header, JSON, filled up with blanks to a multiple of 8;
the tensors, one after the other, little-endian and in C order. The order is that of the library ``safetensors``, the
widest types first and names in order, so that both write the same bytes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["load", "save"]

_CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}
_TYPES = {code: name for name, code in _CODES.items()}
# In the order of the format's own list; the later types come first in a file.
_PLACE = {name: place for place, name in enumerate(_CODES)}


def save(tensors: dict[str, NDArray[Any]], metadata: dict[str, str]) -> bytes:
    """The bytes of a file with these tensors.

    Examples
    --------
    >>> import numpy as np
    >>> load(save({"a": np.arange(2.0)}, {"by": "me"}))["a"].tolist()
    [0.0, 1.0]
    """
    names = sorted(tensors, key=lambda name: (-_PLACE[tensors[name].dtype.name], name))
    header: dict[str, Any] = {"__metadata__": metadata}
    parts, end = [], 0
    for name in names:
        tensor = tensors[name]
        parts.append(np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<")).tobytes())
        start, end = end, end + len(parts[-1])
        table = {"dtype": _CODES[tensor.dtype.name], "shape": list(tensor.shape), "data_offsets": [start, end]}
        header[name] = table
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def load(raw: bytes) -> dict[str, NDArray[Any]]:
    """The tensors of a file.

    Raises
    ------
    ValueError, TypeError, KeyError
        If the tables of the header do not fit the bytes.
    """
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, table in header.items():
        begin, end = (start + int(offset) for offset in table["data_offsets"])
        dtype = np.dtype(_TYPES[table["dtype"]]).newbyteorder("<")
        if not start <= begin <= end <= len(raw):
            raise ValueError(f"the tensor {name!r} lies outside the file")
        # A copy, so that fitted arrays are writable.
        found = np.frombuffer(raw[begin:end], dtype=dtype).astype(dtype.newbyteorder("="))
        tensors[name] = found.reshape(table["shape"])
    return tensors
