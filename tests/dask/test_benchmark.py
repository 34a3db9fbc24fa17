"""The benchmark of scale runs: its quick form, from beginning to end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dask import clusters

pytestmark = [*clusters.MARKS, pytest.mark.slow]
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scale.py"


def test_quick(tmp_path):
    output = tmp_path / "scale.json"
    subprocess.run([sys.executable, SCRIPT, "--quick", "--output", output], check=True, timeout=300)
    found = json.loads(output.read_text())
    assert [row["workers"] for row in found["workers"]] == [1, 2]
    for row in found["workers"]:
        (fit,) = row["fits"]
        assert row["round"]["messages"] > 0
        assert fit["objective"][1] == pytest.approx(fit["objective"][0], rel=1e-2)
        assert 0 < fit["iterations of the opening"] <= fit["iterations"]
        assert 0 < fit["messages an iteration of the opening"] * fit["iterations of the opening"] < fit["messages"]
    # That rows move is asserted there.
    assert len(found["shuffle"]["ratios"]) == 5
    assert set(found["machine"]) == {"workers", "shuffle", "out of core"}
    assert all(facts["commit"] for facts in found["machine"].values())
    files = found["out of core"]
    assert files["n"] * files["d"] * 4 <= 1e9 * files["GB"] + 1e4
    assert len(files["rounds against read"]) == 5
