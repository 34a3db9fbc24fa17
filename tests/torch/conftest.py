"""Lists that rank nothing are what many of these tests are about."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/torch" in item.path.as_posix():
            item.add_marker(pytest.mark.filterwarnings("ignore:.*samples of different relevance"), append=False)
