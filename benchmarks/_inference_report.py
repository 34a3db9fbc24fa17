"""The results of `inference.py` as tables, verdicts and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from _harness import power_of_ten
from _tables import Verdict, figure_list, number_text, text_table, time_text, verdict_table

Cell = dict[str, Any]

LOSS_NAMES = {"ap": "AP", "ndcg": "NDCG"}
KINDS = {
    "overlapping": "overlapping",
    "trained": "as after training",
    "separated": "separated",
}
KIND_TEXTS = {
    "overlapping": "standard normal scores, the positives' raised by 0.5",
    "trained": "the positives' raised until 99 % of the negatives have the last interleaving rank, P + 1",
    "separated": "the positives' raised until all of them have it: the hinge is 0",
}
ROW_NAMES = {
    "zero-one": "0-1 pass",
    "auto": "default (`auto`)",
    "histogram": "`histogram`",
    "quicksort": "`quicksort`",
    "select": "`select`",
    "search": "`search`",
    "greedy": "`greedy`",
    "sort": "NumPy's sort of the negatives",
    "read": "one read of the scores",
}


def size_name(cell: Cell) -> str:
    return f"{power_of_ten(cell['n_positives'])} × {power_of_ten(cell['n_negatives'])}"


def select(cells: Iterable[Cell], **wanted: Any) -> list[Cell]:
    wanted.setdefault("dtype", "float64")
    return [cell for cell in cells if all(cell[key] == value for key, value in wanted.items())]


def ratio_table(cells: list[Cell]) -> str:
    """Rows: rivals; columns: sizes; entries: time relative to the 0-1 pass with its quartiles."""
    header = ["time / 0-1 pass", *(size_name(cell) for cell in cells)]
    rows = [["0-1 pass takes", *(time_text(cell["seconds"]["zero-one"]["median"]) for cell in cells)]]
    for rival, name in ROW_NAMES.items():
        if rival == "zero-one" or not any(rival in cell["to_zero_one"] for cell in cells):
            continue
        rows.append([name, *(_ratio_text(cell["to_zero_one"].get(rival)) for cell in cells)])
    return text_table(header, rows)


def _ratio_text(entry: dict[str, float] | None) -> str:
    if entry is None:
        return "–"
    return f"{number_text(entry['ratio'])} ({number_text(entry['low'])}…{number_text(entry['high'])})"


def step_table(cells: list[Cell]) -> str:
    header = ["steps evaluated", *(size_name(cell) for cell in cells)]
    methods = [method for method in ROW_NAMES if any(method in cell["steps"] for cell in cells)]
    rows = [
        [
            ROW_NAMES[method],
            *(power_of_ten(cell["steps"][method]) if method in cell["steps"] else "–" for cell in cells),
        ]
        for method in methods
    ]
    return text_table(header, rows)


def _per_cell(cells: Iterable[Cell], figure: Callable[[Cell], float]) -> dict[str, float]:
    found = {}
    for cell in cells:
        where = f"{LOSS_NAMES[cell['loss']]}, {KINDS[cell['kind']]}, {size_name(cell)}"
        found[where] = figure(cell)
    return found


def _times_faster(fast: str, slow: str) -> Callable[[Cell], float]:
    return lambda cell: cell["seconds"][slow]["median"] / cell["seconds"][fast]["median"]


def _to_zero_one(cell: Cell) -> float:
    return cell["to_zero_one"]["auto"]["ratio"]


def _growth(cells: list[Cell]) -> dict[str, float]:
    small = {(c["loss"], c["kind"]): c for c in select(cells, n_positives=10**3, n_negatives=10**6)}
    found = {}
    for cell in select(cells, n_positives=10**4, n_negatives=10**7):
        other = small.get((cell["loss"], cell["kind"]))
        if other is not None:
            where = f"{LOSS_NAMES[cell['loss']]}, {KINDS[cell['kind']]}"
            found[where] = _to_zero_one(cell) / _to_zero_one(other)
    return found


def judge(results: dict[str, Any]) -> list[Verdict]:
    """Every target, with all the figures that it speaks of."""
    cells = results["cells"]
    long = [cell for cell in select(cells) if cell["n_negatives"] >= 10**6]
    easy = [cell for cell in long if cell["kind"] != "overlapping"]
    hard = [cell for cell in long if cell["kind"] == "overlapping"]
    longest = select(cells, n_negatives=10**7, kind="overlapping")
    phoning = select(cells, n_positives=227, n_negatives=3120)
    middle = [cell for cell in select(cells, n_positives=10**3, n_negatives=10**5) if "greedy" in cell["seconds"]]
    memory = {
        f"{LOSS_NAMES[entry['loss']]}, {KINDS[entry['kind']]}, {call} call": entry[call]
        for entry in results["memory"]
        if entry["n_negatives"] >= 10**7
        for call in ("first", "later")
    }
    starts, fits = results["cold_start"], results["first_fit"]
    return [
        Verdict("default / 0-1 pass, N ≥ 10⁶, trained and separated", 3, True, _per_cell(easy, _to_zero_one), 1.5),
        Verdict("default / 0-1 pass, N ≥ 10⁶, overlapping", 5, True, _per_cell(hard, _to_zero_one), 1.5),
        Verdict(
            "`quicksort` / default, N = 10⁷, overlapping",
            10,
            False,
            _per_cell(longest, _times_faster("auto", "quicksort")),
        ),
        Verdict(
            "`quicksort` / default at 227 × 3120", 5, False, _per_cell(phoning, _times_faster("auto", "quicksort"))
        ),
        Verdict(
            "`greedy` / `quicksort` at 10³ × 10⁵", 10, False, _per_cell(middle, _times_faster("quicksort", "greedy"))
        ),
        Verdict("(default / 0-1 pass) at 10⁴ × 10⁷ / the same at 10³ × 10⁶", 1.3, True, _growth(cells)),
        Verdict("peak extra memory at N = 10⁷, in arrays of N float64, result included", 3, True, memory),
        Verdict("cold start, nothing compiled yet", 10, True, _starts(starts, "first"), unit=" s"),
        Verdict("cold start, later", 1.5, True, _starts(starts, "later"), unit=" s"),
        Verdict("first fit, 569 samples, nothing compiled yet", 10, True, _starts(fits, "first"), unit=" s"),
        *(_cut_verdicts(results["cuts"]) if results.get("cuts") else []),
    ]


def _starts(starts: dict[str, dict[str, float]], which: str) -> dict[str, float]:
    return {name: seconds[which] for name, seconds in starts.items()}


_EXPLANATION = """\
- *The default against the 0-1 pass at 10³ × 10⁶, overlapping*, lies near its bound, and a run on a machine that others
  use may fall on either side. Counting and writing take half of the time; the 2 to 5 % of the negatives that share a
  bucket with a threshold take most of the rest, as they are written to places far apart.
- *`quicksort` at 227 × 3120, as after training*, takes 80 µs and the default 18, of which 5 are the call itself. The
  ratio depends on the processor.
- *The aim of 1.5 times the 0-1 pass* is out of reach for overlapping scores: the negatives have to be read twice, once
  to be counted and once to be written.
- *The cold start* is the compiler's time, and varies with the load of the machine. The ratio of two sizes compares runs
  minutes apart, and varies likewise.
- *The first fit* also compiles the quadratic programme, and the tight bound its logistic start; the programs import
  scikit-learn, too. Two thirds of the time is numba's own work in Python, in proportion to the lines of code. The
  compiled code is kept: later processes load it.

The [design notes](../design-notes.md#numba) list what was tried.
"""


def page(results: dict[str, Any], verdicts: list[Verdict], figures: dict[str, str]) -> str:
    """The generated page; `figures` maps what a figure shows to where it is, seen from the page."""
    cells, machine = results["cells"], results["machine"]
    facts = ", ".join(f"{name} {fact}" for name, fact in machine.items())
    parts = [
        "# Benchmark: the most violating ranking",
        "Generated by `make bench ONLY=inference` (`benchmarks/inference.py`); do not edit by hand.",
        "How long does inference take beside the cheapest thing that training could do with the same scores, the "
        '0-1 hinge pass (`loss="zero-one"` through the same call: same validation, same threads, coefficients '
        "written)? Sizes are positives × negatives. The rivals take turns in one run. A ratio is one of medians, "
        "followed by the quartiles over the rounds. `greedy` is left out where P·N > 10⁹.",
        f"Machine: {facts}; {results['threads']} threads for the default and the 0-1 pass. The other methods "
        "and NumPy's sort run on one thread.",
    ]
    if results["quick"]:
        parts.append("**A quick trial, not a measurement.**")
    parts += ["## Targets", verdict_table(verdicts), figure_list(verdicts)]
    parts += ["## What stands in the way", _EXPLANATION, "## Time relative to the 0-1 pass"]
    for loss in LOSS_NAMES:
        for kind in KINDS:
            chosen = select(cells, loss=loss, kind=kind)
            if chosen:
                parts += [f"### {LOSS_NAMES[loss]}, {KINDS[kind]}", f"({KIND_TEXTS[kind]})", ratio_table(chosen)]
    single = select(cells, dtype="float32")
    if single:
        title = f"### {LOSS_NAMES[single[0]['loss']]}, {KINDS[single[0]['kind']]}, float32"
        parts += [title, ratio_table(single)]
    parts += _cuts(results)
    parts += _asides(cells) + _steps(cells) + _memory(results["memory"])
    parts.append("## Figures")
    for caption, path in figures.items():
        parts += [f"![{caption}]({path})", f"*{caption}.*"]
    return "\n\n".join(parts) + "\n"


def _is_deep(loss: str) -> bool:
    """Whether more than a hundred places count."""
    return loss == "r-precision" or int(loss.partition("@")[2]) > 100


def _cut_verdicts(rows: list[dict[str, Any]]) -> list[Verdict]:
    """Time and memory of losses with a cut against AP's."""
    times: dict[bool, dict[str, float]] = {False: {}, True: {}}
    memory = {}
    for row in rows:
        where = f"{KINDS[row['kind']]}, {size_name(row)}"
        for loss, entry in row["to_ap"].items():
            times[_is_deep(loss)][f"{loss}, {where}"] = entry["ratio"]
        for loss, peaks in row["memory"].items():
            if loss != "ap":
                memory[f"{loss}, {where}"] = peaks["later"] / row["memory"]["ap"]["later"]
    return [
        Verdict("cut at up to 100 places / AP on the same scores", 1.5, True, times[False]),
        Verdict("cut at 1000 places, or at P / AP on the same scores", 2, True, times[True]),
        Verdict("peak extra memory of a cut / AP's", 1.1, True, memory),
    ]


def _cuts(results: dict[str, Any]) -> list[str]:
    """Losses with a cut, relative to AP."""
    rows = results.get("cuts", [])
    if not rows:
        return []
    losses = list(rows[0]["to_ap"])
    header = ["time / AP", "AP takes", *losses]
    lines = [
        [
            f"{KINDS[row['kind']]}, {size_name(row)}",
            time_text(row["ap"]["median"]),
            *(_ratio_text(row["to_ap"][loss]) for loss in losses),
        ]
        for row in rows
    ]
    parts = ["## Losses with a cut", "Time relative to AP's on the same scores.", text_table(header, lines)]
    peaks = [row for row in rows if row["memory"]]
    if peaks:
        lines = [
            [
                f"{KINDS[row['kind']]}, {size_name(row)}",
                *(f"{row['memory'][loss]['later']:.2f}" for loss in ["ap", *losses]),
            ]
            for row in peaks
        ]
        parts.append(text_table(["peak extra memory / N float64, later calls", "ap", *losses], lines))
    return parts


def _asides(cells: list[Cell]) -> list[str]:
    with_asides = [cell for cell in select(cells) if cell["asides"]]
    if not with_asides:
        return []
    text = (
        "If nearly all coefficients are 0, the default leaves their memory untouched, and the first reader pays for "
        "that: in the first column both sides also sum u. The other columns use one thread."
    )
    columns = ["both, then reading u", "both on one thread", "quicksort to one thread"]
    header = ["", "default / 0-1, u read", "default / 0-1, one thread", "`quicksort` / default, one thread"]
    rows = [
        [
            f"{LOSS_NAMES[cell['loss']]}, {KINDS[cell['kind']]}, {size_name(cell)}",
            *(number_text(cell["asides"][column]["ratio"]) for column in columns),
        ]
        for cell in with_asides
    ]
    return ["## What the ratios leave out", text, text_table(header, rows)]


def _steps(cells: list[Cell]) -> list[str]:
    parts = ["## Steps evaluated", "How often the step function of the loss is evaluated, overlapping scores."]
    for loss, name in LOSS_NAMES.items():
        chosen = select(cells, loss=loss, kind="overlapping")
        if chosen:
            parts += [f"### {name}", step_table(chosen)]
    return parts


def _memory(entries: list[dict[str, Any]]) -> list[str]:
    if not entries:
        return []
    header = ["peak extra memory / N float64", "first call", "later calls", "0-1 pass"]
    rows = [
        [
            f"{LOSS_NAMES[entry['loss']]}, {KINDS[entry['kind']]}, {size_name(entry)}",
            *(f"{entry[call]:.2f}" for call in ("first", "later", "zero_one")),
        ]
        for entry in entries
    ]
    text = "The result is one of these arrays. The first call on lists of a new length may build a table of discounts."
    return ["## Memory", text, text_table(header, rows)]
