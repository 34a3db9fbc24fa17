"""Numbers for queries: equal for equal ones, different for others, the same in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rankhinge.problems.query_codes import codes_of_queries, salt_of

SCRIPT = """
import numpy as np
from rankhinge.problems.query_codes import codes_of_queries
print(codes_of_queries(np.array(["a", "b", (1, "x"), 7], dtype=object)[:2]).tolist())
"""


def test_equal_queries_have_equal_numbers():
    integers, floats = np.array([1, 2, -3]), np.array([1.0, 2.0, -3.0])
    objects = np.array([1, 2.0, np.int64(-3)], dtype=object)
    np.testing.assert_array_equal(codes_of_queries(floats), codes_of_queries(objects))
    np.testing.assert_array_equal(codes_of_queries(floats), codes_of_queries(integers))
    np.testing.assert_array_equal(codes_of_queries(np.array(["a"])), codes_of_queries(np.array(["a"], dtype=object)))
    assert np.unique(codes_of_queries(np.arange(10**6))).size == 10**6
    assert not np.array_equal(codes_of_queries(integers), codes_of_queries(integers, salt=1))


@pytest.mark.parametrize("kind", [float, object, np.int64])
def test_numbers_that_python_hashes_alike_are_told_apart(kind):
    assert salt_of(np.array([-1, -2, 0, 2**61 - 1 if kind is not float else 0.5], dtype=kind)) == 0
    assert hash(-1) == hash(-2)


def test_numbers_that_are_large_or_odd_have_a_code_each():
    assert salt_of(np.array([0.5, 1e300, -1e300, np.inf, -np.inf, 2**70, 3 + 4j], dtype=object)) == 0


def test_the_same_in_every_process():
    found = [
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=own).stdout
        for own in ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("1", "2"))
    ]
    assert found[0] == found[1]
    assert json.loads(found[0]) == codes_of_queries(np.array(["a", "b"])).tolist()


def test_queries_that_cannot_be_told_apart():
    assert salt_of(np.arange(10)) == 0
    with pytest.raises(ValueError, match="cannot be told apart"):
        salt_of(np.array([1, 1.0], dtype=object))
