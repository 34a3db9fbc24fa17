"""The page itself: template, style and script in one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any

from rankhinge.report.facts import Facts

__all__ = ["render"]


def render(facts: Facts) -> str:
    """Render the page as self-contained HTML.

    The template escapes text. A Content-Security-Policy allows the one script and the one style whose digests it names,
    and images inside the page. The browser loads nothing else.

    Parameters
    ----------
    facts : Facts

    Returns
    -------
    str

    Raises
    ------
    ModuleNotFoundError
        Without jinja2.
    """
    try:
        import jinja2
    except ModuleNotFoundError as error:
        if error.name != "jinja2":
            raise
        raise ModuleNotFoundError("the report needs jinja2: pip install 'rankhinge[report]'", name="jinja2") from None
    from markupsafe import Markup

    style, script = _part("style.css"), _part("script.js")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # They are our own files, and must stay exactly as digested.
    return environment.from_string(_part("page.html")).render(
        facts=facts,
        style=Markup(style),
        script=Markup(script),
        data=Markup(_json({"curve": facts.curve, "queries": facts.queries, "convergence": facts.convergence})),
        policy=_policy(style, script),
    )


def _part(name: str) -> str:
    return (resources.files("rankhinge.report") / name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    allowed = "; ".join(f"{kind}-src 'sha256-{_digest(text)}'" for kind, text in (("style", style), ("script", script)))
    return f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    """JSON that cannot end the element it stands in, whatever names there are."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
