"""The README's Python runs when pasted, from top to bottom, and prints what its comments say."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"


def snippets() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def promised(snippet: str) -> list[str]:
    """What the comments behind the calls of `print` say."""
    return re.findall(r"^print\(.*\)  # (.*)$", snippet, flags=re.MULTILINE)


def test_there_are_snippets():
    assert len(snippets()) >= 2
    assert all("print(" in snippet for snippet in snippets())


def test_snippets_do_what_they_say(capsys):
    namespace: dict[str, object] = {"__name__": "readme"}
    for number, snippet in enumerate(snippets(), start=1):
        if "import torch" in snippet and find_spec("torch") is None:
            continue
        exec(compile(snippet, f"README.md, snippet {number}", "exec"), namespace)
        assert capsys.readouterr().out.splitlines() == promised(snippet)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text("utf-8")))
def test_links_lead_somewhere(link):
    assert (README.parent / link).exists()


def test_one_screen_and_a_half():
    text = README.read_text("utf-8")
    assert len(text.splitlines()) < 150
    prose = re.sub(r"^(```.*?^```$|\|.*?$)", "", text, flags=re.DOTALL | re.MULTILINE)
    assert all(len(paragraph.split()) <= 120 for paragraph in re.split(r"\n\s*\n|\n- ", prose))
