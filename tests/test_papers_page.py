"""The page on the papers names files and methods that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rankhinge.inference.methods import METHODS

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|src)/[\w./]+)`", PAGE))))
def test_files_are_there(path):
    assert (ROOT / path).exists()


def test_methods_are_there():
    named = set(re.findall(r'`method="([\w-]+)"`', PAGE))
    assert named == set(METHODS)


def test_every_table_and_figure_of_the_papers_has_a_line():
    """002 has three tables and nine figures, 003 three and one, 000 six and two, 004 two and three."""
    text = PAGE.replace("Tables", "Table").replace("Figures", "Figure")
    for paper, what, count in [
        ("002", "Table", 3),
        ("002", "Figure", 9),
        ("003", "Table", 3),
        ("003", "Figure", 1),
        ("000", "Table", 6),
        ("000", "Figure", 2),
        ("004", "Table", 2),
        ("004", "Figure", 3),
    ]:
        found = set()
        for numbers in re.findall(rf"{paper} [^|;\n]*?{what} ([\d, –]+)", text):
            for part in numbers.split(","):
                ends = [int(end) for end in re.findall(r"\d+", part)]
                # A paper's number that follows after a comma is none of a table.
                found.update(range(ends[0], ends[-1] + 1) if ends and ends[0] <= 9 else [])
        missing = set(range(1, count + 1)) - found
        assert not missing, (paper, what, missing)
