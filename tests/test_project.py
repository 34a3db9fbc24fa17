"""The habits of the project: one version, public names only, and what the files around the code promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rankhinge

ROOT = Path(__file__).resolve().parent.parent


def text_of(name: str) -> str:
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    return path.read_text("utf-8")


def test_dir_shows_public_names_only():
    # In a process of its own: here, other tests may have imported more.
    program = """
import rankhinge
assert set(dir(rankhinge)) == {*rankhinge.__all__, "__version__"}, dir(rankhinge)
for name in rankhinge.__all__:
    getattr(rankhinge, name)
assert set(dir(rankhinge)) == {*rankhinge.__all__, "__version__"}, dir(rankhinge)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_public_names_are_words_of_their_own():
    assert not [name for name in rankhinge.__all__ if name.startswith("_")]
    assert len(set(rankhinge.__all__)) == len(rankhinge.__all__)


def test_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+([ab]\d+|rc\d+|\.dev\d+)?", rankhinge.__version__)
    assert f"\nversion: {rankhinge.__version__}\n" in text_of("CITATION.cff")
    project = text_of("pyproject.toml")
    assert 'dynamic = ["version"]' in project
    assert not re.search(r'^version = "', project, flags=re.MULTILINE)


def make_targets(text: str) -> set[str]:
    return set(re.findall(r"(?:`|run: |entry: )make ([a-z][a-z-]*)", text))


@pytest.mark.parametrize(
    "page",
    [
        ".github/workflows/test.yml",
        ".github/pull_request_template.md",
        ".pre-commit-config.yaml",
        "CONTRIBUTING.md",
        "README.md",
        "docs/releasing.md",
    ],
)
def test_the_make_targets_that_are_named_exist(page):
    known = set(re.findall(r"^([a-z][a-z-]*):", text_of("Makefile"), flags=re.MULTILINE))
    named = make_targets(text_of(page))
    assert named
    assert named <= known, named - known
