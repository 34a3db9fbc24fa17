"""Follow every link of the built site to its file and its anchor, without a browser: part of `make docs-check`.

python tools/site_links.py HTML
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the names that links can lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        if tag in ("a", "area", "link") and "href" in given:
            self.links.append(given["href"])
        self.anchors |= {given[key] for key in ("id", "name") if key in given}


def dead_links(html: Path) -> list[str]:
    """A line for each link between files of this folder whose file or anchor does not exist."""
    # What lies in `_static` are templates and parts of the theme, no pages.
    found = [path for path in sorted(html.rglob("*.html")) if "_static" not in path.relative_to(html).parts]
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in found}
    return list(_dead(html.resolve(), pages))


def _dead(root: Path, pages: dict[Path, Page]) -> Iterator[str]:
    for path, page in pages.items():
        name = path.relative_to(root).as_posix()
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.is_file() or not target.is_relative_to(root):
                yield f"{name}: no file for the link {link}"
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: no anchor for the link {link}"


def main(html: Path) -> None:
    wrong = dead_links(html)
    print("\n".join(wrong) or "every link of the site leads somewhere")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
