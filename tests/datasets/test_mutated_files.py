"""500 mutated files of each format; `make fuzz` goes through 10,000."""

from __future__ import annotations

import pytest

from tests import fuzz_files


@pytest.mark.parametrize("kind", fuzz_files.FORMATS)
def test_mutated_files(kind):
    needs = {"parquet": "pyarrow", "csv": "pyarrow", "model": "safetensors"}
    if kind in needs:
        pytest.importorskip(needs[kind])
    ends = fuzz_files.run(kind, 500)
    assert ends["refused"] > 50
    assert ends["read"] + ends["refused"] == 500
