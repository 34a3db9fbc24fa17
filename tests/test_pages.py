"""The Python of the pages in docs runs when pasted and prints what its comments say, and links lead somewhere."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
# Written by `make docs`.
MADE = {"api", "gallery"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in MADE)
# Its snippets need a package each: tests/test_interoperability.py runs them.
APART = DOCS / "interoperability.md"
# Pages about what may not be installed.
EXTRAS = {"torch", "lightgbm", "joblib", "skops", "onnx", "safetensors", "distributed", "shap", "optuna", "mlflow"}
# Starts workers, whose sockets may be open a little longer.
ON_WORKERS = DOCS / "scaling.md"
WORKERS = [pytest.mark.dask, pytest.mark.filterwarnings("ignore::ResourceWarning")]
# At the root of the repository, and on the site.
AT_THE_ROOT = [DOCS.parent / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
LONGEST_PARAGRAPH = 90  # words; a paragraph is one idea
# Pages with longer ones.
LONGER = dict.fromkeys(["scaling"], 120)


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


def snippets(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def promised(snippet: str) -> list[str]:
    """What the comments behind the calls of `print` say, without a remark (", the …")."""
    return re.findall(r"^ *print\(.*\)  # (.+?)(?:, the [a-z ]+)?$", snippet, flags=re.MULTILINE)


RUN = [page for page in PAGES if snippets(page) and page != APART]


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=WORKERS if page == ON_WORKERS else (), id=name_of(page)) for page in RUN]
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_snippets_run(page, tmp_path, monkeypatch, capsys):
    for library in re.findall(r"^(?:import|from) (\w+)", page.read_text("utf-8"), flags=re.MULTILINE):
        if library in EXTRAS and find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    monkeypatch.chdir(tmp_path)
    # As a script: what starts processes says ``if __name__ == "__main__"``.
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, snippet in enumerate(snippets(page), start=1):
        exec(compile(snippet, f"{page.name}, snippet {number}", "exec"), namespace)
        assert capsys.readouterr().out.splitlines() == promised(snippet)


def test_a_promise_is_the_whole_line():
    text = "print(a)  # [2 2], the best of each bag\nprint(b)  # 1.0, 0.5\nprint(c)  # red, green\nprint(d)  # 3"
    assert promised(text) == ["[2 2]", "1.0, 0.5", "red, green", "3"]
    assert promised("if here:\n    print(a)  # 4") == ["4"]


def test_pages_run_as_scripts(tmp_path):
    """What stands below ``if __name__ == "__main__"`` is run: there is no page whose only snippet does nothing."""
    assert RUN.count(ON_WORKERS) == 1
    assert all('if __name__ == "__main__":' in snippet for snippet in snippets(ON_WORKERS))
    assert promised(snippets(ON_WORKERS)[0])


def test_there_are_snippets():
    assert len(snippets(DOCS / "latent.md")) >= 3


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\((?!http)([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        target = page.parent / link
        made_from = DOCS.parent / "examples" / (target.stem + ".py")
        assert (
            target.exists()
            or (target.parent.name == "gallery" and made_from.exists())
            or (target.parent.name in MADE and target.stem == "index")
        ), link


def paragraphs(text: str) -> list[str]:
    """Text between blank lines, without code, tables, directives and headings; each item of a list by itself."""
    text = re.sub(r"^(```|:::+)[^\n]*\n.*?^\1\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^( {4,}|\||#|<|:).*$", "", text, flags=re.MULTILINE)
    return [
        part
        for block in re.split(r"\n\s*\n", text)
        for part in re.split(r"^(?:[-*]|\d+\.) ", block, flags=re.MULTILINE)
    ]


def test_a_paragraph_is_what_it_should_be():
    text = "# Title\n\none two\nthree\n\n- four\n- five six\n\n```python\nno text\n```\n\n| a | b |\n"
    assert [part.split() for part in paragraphs(text) if part.strip()] == [
        ["one", "two", "three"],
        ["four"],
        ["five", "six"],
    ]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paragraphs_are_short(page):
    for paragraph in paragraphs(page.read_text("utf-8")):
        assert len(paragraph.split()) <= LONGER.get(name_of(page), LONGEST_PARAGRAPH), paragraph[:80]


@pytest.mark.parametrize("page", AT_THE_ROOT, ids=lambda page: page.name)
def test_paragraphs_at_the_root_are_short(page):
    if not page.exists():
        pytest.skip(f"no {page.name} here")
    for paragraph in paragraphs(page.read_text("utf-8")):
        assert len(paragraph.split()) <= LONGEST_PARAGRAPH, paragraph[:80]


def test_the_page_of_accuracy_is_mostly_tables():
    text = re.sub(r"^\|.*$", "", (DOCS / "accuracy.md").read_text("utf-8"), flags=re.MULTILINE)
    assert 300 < len(text.split()) < 1200
