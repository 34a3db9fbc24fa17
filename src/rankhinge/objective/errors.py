"""What ends a fit whose samples lie elsewhere."""

from __future__ import annotations

__all__ = ["EngineLostError"]


class EngineLostError(RuntimeError):
    """The samples are gone, and there is nobody left to make them anew."""
