"""The tables of docs/scaling.md, from the figures of `scale.py`."""

from __future__ import annotations

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
# What float32 products may take of the time before, by the number of features.
PRODUCT_MARKS = {50: 0.6, 500: 0.7, 2000: 0.7}


def _of_mark(value, mark):
    return f"{value:.2f}" if mark is None else f"{value:.2f} (wanted: ≤ {mark:g})"


def tables(known):
    """Markdown of what is known."""
    names = {"workers": _of_workers, "shuffle": _of_shuffle, "out of core": _of_files, "products": _of_products}
    parts = [table(known.get(name)) for name, table in names.items()]
    return "\n".join(line for part in parts for line in part)


def _of_workers(rows):
    if not rows:
        return []
    lines = [
        "Workers and their client share one machine with two cores. A round is a score, an inference and a slope; it",
        "is compared with NumPy's float32 products and inference in memory. Medians of calls that alternate. The last",
        "columns are those of a fit; its first iterations are the opening.",
        "",
        "| shape | bound | workers | round, ms | of NumPy | fit, s | of memory | messages an iteration "
        "| in the opening | MB out | MB back |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        round_mark, fit_mark = row["marks"] if row["workers"] == 2 and row["marks"] else (None, None)
        whole = row["round"]
        for place, fit in enumerate(row["fits"]):
            is_convex = fit["bound"] == "convex"
            cells = [
                f"{row['n']:,} × {row['d']:,}",
                fit["bound"],
                str(row["workers"]),
                # A round is the same for both bounds.
                "" if place else f"{1e3 * whole['seconds on workers']:.0f}",
                "" if place else _of_mark(whole["ratio"], round_mark),
                f"{fit['seconds on workers']:.2f}",
                _of_mark(fit["ratio"], fit_mark),
                f"{fit['messages an iteration']:.1f}",
                _of_mark(fit["messages an iteration of the opening"], row["most messages"] if is_convex else None),
                f"{fit['bytes out'] / 1e6:.1f}",
                f"{fit['bytes back'] / 1e6:.1f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _of_shuffle(found):
    if not found:
        return []
    (few, many), (least, most) = found["seconds"], found["marks"]
    return [
        f"Scattered lists, {found['n']:,} × {found['d']} on 2 workers: they lie where they are ranked in {few:.2f} s",
        f"if there are {found['queries'][0]:,} queries, in {many:.2f} s if there are {found['queries'][1]:,}:",
        f"{found['ratio']:.2f} times as long (wanted: {least:g} to {most:g}).",
        "",
    ]


def _of_files(found):
    if not found:
        return []
    read, score, adjoint, whole = found["GB/s of read, score, adjoint, round"]
    how = "forgotten before each pass" if found["forgotten before each pass"] else "larger than memory"
    return [
        f"From disk: {found['GB']:.3g} GB of float32, d = {found['d']}, with {found['GB of memory']:.3g} GB of memory;",
        f"the file is {how}. Plain `read()` {read:.2f} GB/s, scores {score:.2f}, slopes {adjoint:.2f}, rounds",
        f"{whole:.2f}: {found['ratio']:.2f} of `read()` (wanted: ≥ {found['mark']:g}), median of five rounds that",
        f"alternate with it. At most {found['GB of anonymous memory']:.2f} GB of anonymous memory,",
        f"{found['bytes a sample']:.0f} bytes a sample.",
        "",
    ]


def _of_products(found):
    if not found:
        return []
    ratios = {entry["case"]: entry["ratio"] for entry in found["cases"]}
    lines = [
        "Products of float32 rows with one column, on one thread: their time as a part of what they took when blocks",
        f"of rows were converted first (commit {found['against'][:7]}), medians of calls that alternate.",
        "",
        "| features | scores | slopes |",
        "|---|---|---|",
    ]
    for d, mark in PRODUCT_MARKS.items():
        cells = [_of_mark(ratios[f"{name}, d = {d}"], mark) for name in ("score", "adjoint")]
        lines.append(f"| {' | '.join([str(d), *cells])} |")
    return [*lines, ""]


def write_page(path, known):
    """Put the tables where the page has room for them."""
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n{tables(known)}{END}{after}")
