"""The error that ends a fit to remote data."""

from __future__ import annotations

__all__ = ["EngineLostError"]


class EngineLostError(RuntimeError):
    """The samples are lost and cannot be recomputed."""
