"""Open every page of the site in a browser: `make docs-check`.

Each page is loaded at the width of a phone and of a desk, with other hosts blocked. It must ask none of them, scroll
only downwards, show its formulas, and leave no error in the console. Pictures are kept in `.make/docs/pictures`.

    python tools/look_at_pages.py HTML PICTURES
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

WIDTHS = (390, 1280)
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

# What is wrong with a page that has been loaded, as a list of sentences.
INSPECT = """
async () => {
  const wrong = [];
  if (window.MathJax && window.MathJax.startup) await window.MathJax.startup.promise;
  const formulas = document.querySelectorAll('.math').length;
  const drawn = document.querySelectorAll('mjx-container svg').length;
  if (formulas && drawn < formulas) wrong.push(`${formulas} formulas, ${drawn} drawn`);
  if (document.querySelector('[data-mjx-error], mjx-merror')) wrong.push('a formula has an error');
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1) {
    const wide = [...document.querySelectorAll('main *')]
      .filter(e => e.getBoundingClientRect().right > root.clientWidth + 1).slice(0, 3)
      .map(e => e.tagName.toLowerCase() + '.' + e.className);
    wrong.push(`${root.scrollWidth} px wide: ${wide}`);
  }
  for (const image of document.images)
    if (image.complete && !image.naturalWidth && image.offsetParent) wrong.push(`no picture: ${image.src}`);
  return wrong;
}
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


def serve(folder: Path) -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def look(browser: Any, address: str, pages: list[str], pictures: Path) -> list[str]:
    """What is wrong, a line each."""
    wrong: list[str] = []
    for width in WIDTHS:
        context = browser.new_context(viewport={"width": width, "height": 900})
        asked: list[str] = []

        def gate(route: Any, asked: list[str] = asked) -> None:
            if route.request.url.startswith((address, "data:")):
                route.continue_()
            else:
                asked.append(route.request.url)
                route.abort()

        context.route("**/*", gate)
        for name in pages:
            page = context.new_page()
            messages: list[str] = []
            page.on("console", lambda m, kept=messages: kept.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda error, kept=messages: kept.append(str(error)))
            page.goto(f"{address}/{name}", wait_until="load")
            found = [*page.evaluate(INSPECT), *messages, *(f"asked {url}" for url in asked)]
            wrong += [f"{name} at {width} px: {what}" for what in found]
            page.screenshot(path=pictures / f"{name.replace('/', '-')[:-5]}-{width}.png")
            page.close()
            asked.clear()
        context.close()
    return wrong


def main(html: Path, pictures: Path) -> None:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        sys.exit("no chromium here: apt-get install chromium, or the package of your system")
    pictures.mkdir(parents=True, exist_ok=True)
    pages = sorted(page.relative_to(html).as_posix() for page in html.rglob("*.html") if "_static" not in page.parts)
    server = serve(html)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        wrong = look(browser, f"http://127.0.0.1:{server.server_port}", pages, pictures)
        browser.close()
    server.shutdown()
    print("\n".join(wrong) or f"{len(pages)} pages at {' and '.join(map(str, WIDTHS))} px: nothing wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
