"""The kernels that read svmlight: lines of bytes in, labels, queries and entries out.

Every kernel works on one block of whole lines and writes into arrays that `count` has found to be long enough.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel
from rankhinge.datasets.decimals import FINE, HARD, MISSING, TOO_LARGE, number_at

__all__ = ["BAD", "count", "fill_dense", "gather", "parse"]

# What may be wrong with a line; 0 is nothing.
BAD = {
    name: code
    for code, name in enumerate(
        ("label", "entry", "query", "order", "value", "index", "beyond", "no query", "query after none", "byte"),
        start=1,
    )
}
_LABEL, _ENTRY, _QUERY, _ORDER, _VALUE, _INDEX, _BEYOND, _NO_QUERY, _LATE_QUERY, _BYTE = range(1, 11)
_LARGEST_INDEX = 2**31 - 2
_LARGEST_QUERY_DIGITS = 18

# Places in `found`, the array of what a block turned out to be.
ROWS, ENTRIES, LINES, LEAST, LARGEST, HARDS, MISSES, ERROR, PLACE, LINE, DETAIL, QUERIES = range(12)
FROM_0, FROM_1, WIDTH, ODD_ROWS = 12, 13, 14, 15
N_FOUND = 16


@kernel
def count(text):
    """How many lines (and what may be a last one without an end) and colons there are."""
    lines, colons = 1, 0
    for c in text:
        lines += c == 10
        colons += c == 58
    return lines, colons


@inner
def _is_end(text, p, stop):
    """Whether a token ends here."""
    return p >= stop or text[p] <= 32 or text[p] == 35


@inner
def _note_row(found, first, size, in_turn, line):
    """Whether a row has all columns from 0 or from 1: a file of both kinds counts in two ways."""
    complete = in_turn and size > 1 and (found[WIDTH] < 0 or found[WIDTH] == size)
    if complete and first == 0:
        found[WIDTH] = size
        if found[FROM_0] == 0:
            found[FROM_0] = line
    elif complete and first == 1:
        found[WIDTH] = size
        if found[FROM_1] == 0:
            found[FROM_1] = line
    else:
        found[ODD_ROWS] += 1


@kernel
def parse(text, labels, queries, ends, lines, comments, indices, values, hard, found):
    """Read all lines of a block.

    `ends[row]` is how many entries there are up to the end of a row, `comments[row]` begin and end of its comment,
    `hard` lists (row or −1, entry, begin, end) of numbers that Python has to read. An error ends the work.
    """
    stop = text.size
    bits = np.zeros(1, np.uint64)
    p, row, entry, line, n_hard, n_missing = 0, 0, 0, 1, 0, 0
    least, largest = 2**62, -1
    found[WIDTH] = -1
    error, place, detail = 0, 0, 0
    while p < stop:
        c = text[p]
        if c == 10:
            line += 1
            p += 1
            continue
        if c == 32 or c == 9 or c == 13:
            p += 1
            continue
        if c == 35:
            while p < stop and text[p] != 10:
                p += 1
            continue
        # A label.
        begin = p
        value, p, status = number_at(text, p, stop, bits)
        if status == MISSING:
            value, p = np.nan, begin + 3
            while not _is_end(text, p, stop):
                p += 1
        elif status == HARD:
            if n_hard < hard.shape[0]:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = row, -1, begin, p
            n_hard += 1
        elif status != FINE or not _is_end(text, p, stop):
            error, place = (_BYTE if text[p] == 0 else _LABEL), begin
            break
        labels[row] = value
        lines[row] = line
        comments[row, 0], comments[row, 1] = 0, 0
        has_query = False
        before, first, size, in_turn = -1, -1, 0, True
        while True:
            while p < stop and (text[p] == 32 or text[p] == 9 or text[p] == 13):
                p += 1
            if p >= stop or text[p] == 10:
                break
            if text[p] == 35:
                begin = p + 1
                while p < stop and text[p] != 10:
                    p += 1
                end = p
                while begin < end and text[begin] <= 32:
                    begin += 1
                while begin < end and text[end - 1] <= 32:
                    end -= 1
                comments[row, 0], comments[row, 1] = begin, end
                break
            begin = p
            if text[p] == 113 and not has_query and size == 0:
                # qid:
                if p + 4 >= stop or text[p + 1] != 105 or text[p + 2] != 100 or text[p + 3] != 58:
                    error, place = _ENTRY, begin
                    break
                p += 4
                negative = text[p] == 45
                p += negative
                start, query = p, 0
                while p < stop and text[p] >= 48 and text[p] <= 57:
                    query = query * 10 + text[p] - 48
                    p += 1
                if p == start or p - start > _LARGEST_QUERY_DIGITS or not _is_end(text, p, stop):
                    error, place = _QUERY, begin
                    break
                queries[row] = -query if negative else query
                has_query = True
                continue
            index = 0
            while p < stop and text[p] >= 48 and text[p] <= 57:
                index = min(index * 10 + text[p] - 48, 2**40)
                p += 1
            if p == begin or p >= stop or text[p] != 58:
                error, place = (_BYTE if p < stop and text[p] == 0 else _ENTRY), begin
                break
            if index > _LARGEST_INDEX:
                error, place = _INDEX, begin
                break
            if index <= before:
                error, place, detail = _ORDER, begin, before
                break
            p += 1
            start = p
            value, p, status = number_at(text, p, stop, bits)
            if status == FINE:
                if not _is_end(text, p, stop):
                    error, place = _VALUE, begin
                    break
                values[entry] = value
                if np.isinf(values[entry]):
                    error, place = _BEYOND, begin
                    break
            elif status == HARD and _is_end(text, p, stop):
                values[entry] = 0.0
                if n_hard < hard.shape[0]:
                    hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = -1, entry, start, p
                n_hard += 1
            elif status == MISSING:
                values[entry] = np.nan
                n_missing += 1
                while not _is_end(text, p, stop):
                    p += 1
            else:
                error, place = (_BEYOND if status == TOO_LARGE else _VALUE), begin
                break
            indices[entry] = index
            entry += 1
            size += 1
            if first < 0:
                first = index
            elif index != before + 1:
                in_turn = False
            before = index
        if error:
            break
        if first >= 0:
            least, largest = min(least, first), max(largest, before)
            _note_row(found, first, size, in_turn, line)
        if row == 0:
            found[QUERIES] = has_query
        elif has_query != found[QUERIES]:
            error, place = (_LATE_QUERY if has_query else _NO_QUERY), p - 1
            break
        ends[row] = entry
        row += 1
    found[ROWS], found[ENTRIES], found[LINES] = row, entry, line - 1
    found[LEAST], found[LARGEST], found[HARDS], found[MISSES] = least, largest, n_hard, n_missing
    found[ERROR], found[PLACE], found[LINE], found[DETAIL] = error, place, line, detail


@kernel
def gather(text, comments, content, offsets, start):
    """Copy the comments of a block behind those before it."""
    for row in range(comments.shape[0]):
        for k in range(comments[row, 0], comments[row, 1]):
            content[start] = text[k]
            start += 1
        offsets[row] = start
    return start


@kernel
def fill_dense(X, ends, indices, values, base):
    """Put the entries of a block in their places."""
    entry = 0
    for row in range(ends.size):
        while entry < ends[row]:
            X[row, indices[entry] - base] = values[entry]
            entry += 1
