"""The links of the built site are followed to their files and anchors."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "site_links.py"
if not TOOL.exists():
    pytest.skip("no tools here", allow_module_level=True)
dead_links = runpy.run_path(str(TOOL))["dead_links"]


def site(folder: Path, **pages: str) -> Path:
    for name, body in pages.items():
        path = folder / f"{name.replace('__', '/')}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"<!doctype html><html><body>{body}</body></html>", "utf-8")
    return folder


def test_good_links(tmp_path):
    (tmp_path / "data file.txt").write_text("x")
    site(
        tmp_path,
        index='<h1 id="π">x</h1><a href="guide/start.html#first">a</a> <a href="#">b</a> <a href="#%CF%80">c</a> '
        '<a href="https://example.org/none.html#x">d</a> <a href="mailto:a@b">e</a> <a href="data%20file.txt">f</a>',
        guide__start='<a name="first"></a><a href="../index.html?v=1">up</a> <a href="../">home</a>',
    )
    assert dead_links(tmp_path) == []


def test_templates_of_the_theme_are_no_pages(tmp_path):
    site(tmp_path, index='<a href="_static/macros.html">a</a>', _static__macros="<a href=\"{{ pathto('x') }}\">b</a>")
    assert dead_links(tmp_path) == []


@pytest.mark.parametrize(
    ("link", "missing"),
    [
        ("none.html", "file"),
        ("guide/start.html#second", "anchor"),
        ("#here", "anchor"),
        ("../outside.html", "file"),
        ("guide", "file"),
    ],
)
def test_dead_links(tmp_path, link, missing):
    (tmp_path / "outside.html").write_text("x")
    html = tmp_path / "html"
    html.mkdir()
    site(html, index=f'<a href="{link}">a</a>', guide__start='<p id="first"></p>')
    assert dead_links(html) == [f"index.html: no {missing} for the link {link}"]
