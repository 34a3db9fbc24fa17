"""The Python of the pages in docs runs when pasted and prints what its comments say, and links lead somewhere."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def snippets(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def promised(snippet: str) -> list[str]:
    """What the comments behind the calls of `print` say, without a remark (", the …")."""
    return re.findall(r"^print\(.*\)  # (.+?)(?:, the [a-z ]+)?$", snippet, flags=re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_snippets_run(page, tmp_path, monkeypatch, capsys):
    if "import torch" in page.read_text("utf-8") and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for number, snippet in enumerate(snippets(page), start=1):
        exec(compile(snippet, f"{page.name}, snippet {number}", "exec"), namespace)
        assert capsys.readouterr().out.splitlines() == promised(snippet)


def test_a_promise_is_the_whole_line():
    text = "print(a)  # [2 2], the best of each bag\nprint(b)  # 1.0, 0.5\nprint(c)  # red, green\nprint(d)  # 3"
    assert promised(text) == ["[2 2]", "1.0, 0.5", "red, green", "3"]


def test_there_are_snippets():
    assert len(snippets(DOCS / "latent.md")) >= 3


@pytest.mark.parametrize("page", [*PAGES, *sorted(DOCS.glob("*/*.md"))], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), link
