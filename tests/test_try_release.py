"""A version is released with a dated section of the changelog only."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "try_release.py"
if not TOOL.exists():
    pytest.skip("no tools here", allow_module_level=True)
check_changelog = runpy.run_path(str(TOOL))["check_changelog"]


@pytest.mark.parametrize(
    "heading", ["## 0.1.0 (unreleased)", "## 0.1.0", "## 0.1.00 (2026-11-18)", "text 0.1.0 (2026-11-18)"]
)
def test_without_a_day(tmp_path, heading):
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\nThe first release.\n", "utf-8")
    with pytest.raises(SystemExit, match="not to be released yet"):
        check_changelog(tmp_path, "0.1.0")


def test_with_a_day(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-11-18)\n\nx\n", "utf-8")
    check_changelog(tmp_path, "0.1.0")
