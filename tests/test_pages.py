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


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_snippets_run(page, tmp_path, monkeypatch, capsys):
    if "import torch" in page.read_text("utf-8") and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for number, snippet in enumerate(snippets(page), start=1):
        exec(compile(snippet, f"{page.name}, snippet {number}", "exec"), namespace)
        promised = re.findall(r"^print\(.*\)  # (.*)$", snippet, flags=re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == len(promised)
        assert all(promise.startswith(line) for line, promise in zip(printed, promised, strict=True))


def test_there_are_snippets():
    assert len(snippets(DOCS / "latent.md")) >= 3


@pytest.mark.parametrize("page", [*PAGES, *sorted(DOCS.glob("*/*.md"))], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), link
