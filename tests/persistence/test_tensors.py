"""The safetensors format of our own: the bytes of the library, both ways."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge.persistence import tensors

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def some_tensors():
    rng = np.random.default_rng(0)
    made = {f"{dtype}.{k}": (100 * rng.random((2, 3))).astype(dtype) for k, dtype in enumerate(DTYPES)}
    return made | {"empty": np.zeros((0, 4)), "scalar": np.array(2.5), "ü <": np.arange(3)}


def test_the_bytes_are_those_of_the_library():
    library = pytest.importorskip("safetensors.numpy")
    metadata = {"rankhinge": 'text "quoted", ünïcode'}
    assert tensors.save(some_tensors(), metadata) == library.save(some_tensors(), metadata=metadata)


def test_there_and_back():
    found = tensors.load(tensors.save(some_tensors(), {}))
    assert found.keys() == some_tensors().keys()
    for name, tensor in some_tensors().items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert found[name].tobytes() == tensor.tobytes()
        assert found[name].flags.writeable


def test_the_library_s_files_are_read():
    library = pytest.importorskip("safetensors.numpy")
    found = tensors.load(library.save(some_tensors()))
    assert all(np.array_equal(found[name], tensor) for name, tensor in some_tensors().items())


@pytest.mark.parametrize("offsets", [[0, 999], [-8, 8], [8, 0], [0, 7]])
def test_tables_that_do_not_fit(offsets):
    raw = tensors.save({"a": np.arange(2.0)}, {})
    text = str(offsets).replace(" ", "").encode()
    damaged = raw.replace(b"[0,16]", text)
    header = damaged[8 : damaged.index(b"}}") + 2]
    damaged = len(header).to_bytes(8, "little") + header + raw[-16:]
    with pytest.raises((ValueError, TypeError)):
        tensors.load(damaged)
