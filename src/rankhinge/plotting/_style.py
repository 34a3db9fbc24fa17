"""Axes and colours that all displays share."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["BLUE", "GREEN", "GREY", "ORANGE", "axes_of", "tidy"]

# Okabe and Ito's colours, which most people can tell apart.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def axes_of(ax: Any, n: int = 1) -> Any:
    """New axes, side by side, or those that are given; the figure with them."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ModuleNotFoundError("plots need matplotlib: pip install 'rankhinge[plot]'", name="matplotlib") from None
    if ax is None:
        figure, axes = plt.subplots(1, n, figsize=(4.8 * n, 3.6), layout="constrained", squeeze=False)
        return figure, list(axes[0])
    axes = list(np.ravel(ax))
    if len(axes) != n:
        raise ValueError(f"ax must be {n} axes, got {len(axes)}")
    return axes[0].figure, axes


def tidy(axes: Any) -> None:
    """Two sides of a frame are enough; a faint grid helps to read off values."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, alpha=0.3)
