"""The order of the gallery: what a newcomer looks at first comes first."""

from __future__ import annotations

FIRST = [
    "plot_first_steps.py",
    "plot_which_loss.py",
    "plot_threshold.py",
    "plot_lists.py",
    "plot_report.py",
    "plot_many_labels.py",
    "plot_nonlinear.py",
    "plot_weak_labels.py",
    "plot_bounds.py",
    "plot_convergence.py",
    "plot_path_over_c.py",
    "plot_own_loss.py",
]


class InOrder:
    """A key for sorting: the place in the list above, and then by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"
