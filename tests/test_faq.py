"""The page of errors quotes messages that are raised, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sklearn.utils.validation

import rankhinge

FAQ = Path(__file__).resolve().parent.parent / "docs" / "faq.md"
SOURCES = [*sorted(Path(rankhinge.__file__).parent.rglob("*.py")), Path(sklearn.utils.validation.__file__)]


def quoted(page: str) -> list[str]:
    """The messages in the first column of the table of errors, and those in double quotes that are words."""
    column = re.findall(r"^\| `([^|]+)` \|", page, flags=re.MULTILINE)
    prose = re.sub(r"`[^`]*`", "", page)
    return column + re.findall(r'"([^"]+ [^"]+)"', prose)


def missing(message: str, text: str) -> list[str]:
    """The parts of a message between its variable parts (…) that no source has."""
    return [part for part in re.split(r"\s*…\s*", message) if part and part not in text]


@pytest.fixture(scope="module")
def text() -> str:
    # Long messages are written as adjacent literals: these become one, and variable parts a sign of their own.
    joined = "\n".join(source.read_text("utf-8") for source in SOURCES)
    return re.sub(r'"\s*\n\s*f?"', "", joined)


def test_messages_are_raised(text):
    messages = quoted(FAQ.read_text("utf-8"))
    assert len(messages) >= 6
    for message in messages:
        assert not missing(message, text), message


def test_a_message_that_is_not_raised_is_found(text):
    assert quoted('| `a b` | c |\nwarns "d e", not `"f g"`\n') == ["a b", "d e"]
    assert missing("no usable query", text) == ["no usable query"]
    assert missing("y has … grades, nowhere said", text) == ["grades, nowhere said"]
