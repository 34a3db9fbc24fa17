"""Links between Markdown files work on the site as they do in the repository.

A page links to `../README.md` or `../examples`; these are no pages of the site. The files that are included in one (the
changelog, the guide for contributors) become links to that page, all others plain text: the site links to nothing
that it does not have.

In a table of contents `papers*` stands for the pages of that name, if there are any.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

# Which page shows a file of the repository.
SHOWN_BY = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "examples": "gallery/index.rst",
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|mailto:)([^)\s]+)\)")

PATTERN = re.compile(r"^([\w/-]+)\*\n", flags=re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", mend_links)
    app.connect("include-read", lambda app, path, name, content: mend_included(app, content))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def mend_links(app: Any, name: str, content: list[str]) -> None:
    folder = (Path(app.srcdir) / name).parent
    content[0] = PATTERN.sub(lambda line: _pages(line[1], folder), content[0])
    content[0] = LINK.sub(lambda link: _mended(link, folder, folder, Path(app.srcdir)), content[0])


def mend_included(app: Any, content: list[str]) -> None:
    """What is included lies in the root of the repository, and is shown by a page in `docs`."""
    docs = Path(app.srcdir)
    content[0] = LINK.sub(lambda link: _mended(link, docs.parent, docs, docs), content[0])


def _mended(link: re.Match[str], written_in: Path, shown_in: Path, docs: Path) -> str:
    text, target = link.groups()
    path, hash_, anchor = target.partition("#")
    file = (written_in / path).resolve()
    if not file.exists():
        return link[0]
    if file.is_relative_to(docs):
        found = file
    else:
        shown = SHOWN_BY.get(file.relative_to(docs.parent).as_posix() if file.is_relative_to(docs.parent) else "")
        if shown is None:
            return text
        found, hash_, anchor = docs / shown, "", ""
    return f"[{text}]({_relative(found, shown_in)}{hash_}{anchor})"


def _pages(beginning: str, folder: Path) -> str:
    return "".join(f"{page.relative_to(folder).with_suffix('').as_posix()}\n" for page in _matching(beginning, folder))


def _matching(beginning: str, folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{beginning}*.md"))


def _relative(file: Path, folder: Path) -> str:
    import os.path

    return Path(os.path.relpath(file, folder)).as_posix()
