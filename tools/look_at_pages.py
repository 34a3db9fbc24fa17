"""Open every page of the site in a browser: `make docs-check`.

First every link between the pages is followed to its file and anchor (`site_links`). Then each page is loaded at the
width of a phone and of a desk, with other hosts blocked. It must ask none of them, scroll only downwards, show its
formulas, and leave no error in the console. A page that is not done within 30 seconds is wrong, too. Pictures of the
whole pages are kept in `.make/docs/pictures`.

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

from site_links import dead_links

WIDTHS = (390, 1280)
# For loading, formulas and picture of one page, each.
DEADLINE_MS = 30_000
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

# What is wrong with a page that has been loaded, as a list of sentences.
INSPECT = """
async (deadline) => {
  const wrong = [];
  if (window.MathJax && window.MathJax.startup) {
    const late = new Promise(done => setTimeout(() => done('late'), deadline));
    if (await Promise.race([window.MathJax.startup.promise, late]) === 'late') wrong.push('formulas take too long');
  }
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
        context.set_default_timeout(DEADLINE_MS)
        messages: list[str] = []

        def gate(route: Any, kept: list[str] = messages) -> None:
            if route.request.url.startswith((address, "data:")):
                route.continue_()
            else:
                kept.append(f"asked {route.request.url}")
                route.abort()

        context.route("**/*", gate)
        for done, name in enumerate(pages):
            tell(f"{width} px: {done} of {len(pages)} pages, {len(wrong)} faults; now {name}")
            messages.clear()
            picture = pictures / f"{name.replace('/', '-')[:-5]}-{width}.png"
            found = inspect(context, f"{address}/{name}", picture, messages)
            wrong += [f"{name} at {width} px: {what}" for what in found]
        context.close()
    tell("")
    return wrong


def inspect(context: Any, address: str, picture: Path, messages: list[str]) -> list[str]:
    """What is wrong with one page."""
    from playwright.sync_api import Error

    page = context.new_page()
    page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    try:
        page.goto(address, wait_until="load")
        wrong = page.evaluate(INSPECT, DEADLINE_MS)
        page.screenshot(path=picture, full_page=True)
    except Error as error:
        wrong = [str(error).splitlines()[0]]
    page.close()
    return [*wrong, *messages]


def tell(line: str) -> None:
    """How far it is: one line on a terminal, else a line for every tenth page."""
    if sys.stderr.isatty():
        print(f"\r{line:<110.110}\r", end="", file=sys.stderr, flush=True)
    elif "0 of" in line and line:
        print(line, file=sys.stderr, flush=True)


def main(html: Path, pictures: Path) -> None:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        sys.exit("no chromium here: apt-get install chromium, or the package of your system")
    pictures.mkdir(parents=True, exist_ok=True)
    pages = sorted(page.relative_to(html).as_posix() for page in html.rglob("*.html") if "_static" not in page.parts)
    dead = dead_links(html)
    server = serve(html)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        wrong = dead + look(browser, f"http://127.0.0.1:{server.server_port}", pages, pictures)
        browser.close()
    server.shutdown()
    print(
        "\n".join(wrong)
        or f"{len(pages)} pages at {' and '.join(map(str, WIDTHS))} px: nothing wrong, every link leads somewhere"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
