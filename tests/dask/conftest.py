"""Workers in processes of their own, on loopback, shared by the tests of a module."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("distributed")
    from tests.dask import clusters

    with clusters.started(2) as client:
        yield client
