"""The Python of docs/latent.md runs when pasted, and prints what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "latent.md"


def test_snippets_do_what_they_say(capsys):
    snippets = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert len(snippets) >= 3
    namespace: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, PAGE.name, "exec"), namespace)
        promised = re.findall(r"^print\(.*\)  # (.*)$", snippet, flags=re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == len(promised)
        assert all(promise.startswith(line) for line, promise in zip(printed, promised, strict=True))


def test_links_lead_somewhere():
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", PAGE.read_text("utf-8")):
        assert (PAGE.parent / link).exists()
