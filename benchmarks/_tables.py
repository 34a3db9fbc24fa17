"""Tables in Markdown, numbers as text, and verdicts on targets: what the generated pages share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from _harness import power_of_ten


def time_text(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError


def number_text(number: float) -> str:
    """Two or three digits that matter, no exponent."""
    if number >= 1000:
        return power_of_ten(round(number))
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}" if number >= 10 else f"{number:.2f}"


def text_table(header: list[str], rows: list[list[str]], align: str = "right") -> str:
    """A table in Markdown, padded so that it reads as well in a terminal; `align` is for all but the first column."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    right = align == "right"

    def line(row: list[str]) -> str:
        rest = (text.rjust(width) if right else text.ljust(width) for text, width in zip(row[1:], widths[1:]))
        return "| " + " | ".join([row[0].ljust(widths[0]), *rest]) + " |"

    dashes = ["-" * (width + 2) for width in widths]
    rule = "|" + "|".join([dashes[0], *(dash[:-1] + ":" if right else dash for dash in dashes[1:])]) + "|"
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


@dataclass
class Verdict:
    """One target and the figures that decide about it."""

    target: str
    limit: float
    at_most: bool
    figures: dict[str, float]
    aim: float | None = None
    unit: str = ""
    met: bool | None = field(init=False)

    def __post_init__(self) -> None:
        self.met = all(map(self._fits, self.figures.values())) if self.figures else None

    def _fits(self, figure: float) -> bool:
        return figure <= self.limit if self.at_most else figure >= self.limit

    def verdict(self) -> str:
        if self.met is None:
            return "not measured"
        if not self.met:
            missed = sum(not self._fits(figure) for figure in self.figures.values())
            return f"NOT MET ({missed} of {len(self.figures)})"
        if self.aim is None:
            return "met"
        reached = max(self.figures.values()) <= self.aim
        return f"met, {'and' if reached else 'but not'} the aim of {self.aim}"

    def worst(self) -> str:
        if not self.figures:
            return "–"
        choose = max if self.at_most else min
        where = choose(self.figures, key=self.figures.__getitem__)
        return f"{number_text(self.figures[where])}{self.unit} ({where})"

    def bound(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.limit:g}{self.unit}"


def verdicts_as_json(verdicts: list[Verdict]) -> list[dict[str, Any]]:
    return [{**asdict(verdict), "verdict": verdict.verdict()} for verdict in verdicts]


def verdict_table(verdicts: list[Verdict]) -> str:
    header = ["", "target", "bound", "worst figure"]
    rows = [[verdict.verdict(), verdict.target, verdict.bound(), verdict.worst()] for verdict in verdicts]
    return text_table(header, rows, align="left")


_SHOWN = 8


_IN_A_LINE = 2


def figure_list(verdicts: list[Verdict]) -> str:
    """All figures behind the verdicts: one or two in a line, more in a table of their own."""
    lines, tables = [], []
    for verdict in verdicts:
        if len(verdict.figures) > _IN_A_LINE:
            tables.append(_figure_table(verdict))
        elif verdict.figures:
            figures = "; ".join(f"{where}: {number_text(figure)}" for where, figure in verdict.figures.items())
            lines.append(f"- {verdict.target}, {verdict.bound()}: {figures}.")
    return "\n\n".join([*(["\n".join(lines)] if lines else []), *tables])


def _figure_table(verdict: Verdict) -> str:
    # Of very many figures, which have a table elsewhere, the worst.
    figures = list(verdict.figures.items())
    left_out = 0
    if len(figures) > 2 * _SHOWN:
        left_out = len(figures) - _SHOWN
        figures = sorted(figures, key=lambda item: item[1], reverse=verdict.at_most)[:_SHOWN]
    rows = [[where, number_text(figure)] for where, figure in figures]
    rows += [[f"{left_out} better ones", ""]] if left_out else []
    return text_table([verdict.target, verdict.bound()], rows)
