"""Recognise files that are not model files by their first bytes, so that the message can name them."""

from __future__ import annotations

__all__ = ["describe_foreign"]

_MAGICS = {
    b"PK\x03\x04": "a zip archive (such as npz, skops or PyTorch files)",
    b"\x1f\x8b": "a gzip file",
    b"\x89HDF": "an HDF5 file",
    b"PAR1": "a Parquet file",
    b"\x93NUMPY": "a NumPy array",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG image",
}
# Pickles of protocol 2 and later begin with this byte and their protocol; those of 0 and 1, and compressed ones that
# joblib writes, with others.
_PICKLE, _PROTOCOLS = 0x80, range(2, 10)
_JOBLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
# safetensors' own bound for headers.
_LONGEST_HEADER = 100_000_000


def describe_foreign(raw: bytes) -> str | None:
    """What is wrong with the first bytes of a model file. None if nothing is.

    Examples
    --------
    >>> describe_foreign(b"")
    'the file is empty'
    """
    if not raw:
        return "the file is empty"
    length = int.from_bytes(raw[:8], "little")
    if raw[8:9] == b"{" and length <= _LONGEST_HEADER:
        # Its first bytes are a number, which may look like the beginning of anything.
        return None if 8 + length <= len(raw) else f"the file is cut off: its header alone has {length} bytes"
    if raw[0] == _PICKLE and len(raw) > 1 and raw[1] in _PROTOCOLS:
        return "the file is a pickle, which is not loaded because it could run any program"
    if raw.startswith(_JOBLIB):
        return "the file is compressed by zlib, as joblib does with pickles: it is not loaded"
    for magic, name in _MAGICS.items():
        if raw.startswith(magic):
            return f"the file is {name}, not a model file"
    if len(raw) < 8:
        return f"the file is cut off: it has {len(raw)} bytes"
    if raw[8:9] == b"{":
        return f"the header is damaged: its length is given as {length} bytes"
    if len(raw) == 8 and length <= _LONGEST_HEADER:
        return "the file is cut off: it has 8 bytes"
    return f"the file is not a safetensors file: it begins with {raw[:8]!r}"
