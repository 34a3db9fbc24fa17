"""Kernels that read svmlight: lines of bytes in, labels, queries and entries out.

Every kernel works on one block of whole lines. It writes into arrays that are long enough according to `count`.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel, once
from rankhinge.datasets.decimals import FINE, HARD, MISSING, TOO_LARGE, number_at

__all__ = ["BAD", "count", "fill_dense", "gather", "parse"]

# What may be wrong with a line. 0: nothing.
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

# Places in `found`, the array of a block's summary.
ROWS, ENTRIES, LINES, LEAST, LARGEST, HARDS, MISSES, ERROR, PLACE, LINE, DETAIL, QUERIES = range(12)
FROM_0, FROM_1, WIDTH, ODD_ROWS, N_FOUND = range(12, 17)


@kernel
def count(text):
    """The number of lines, a last one without an end included, and of colons."""
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
    """Note whether a row has all columns from 0 or from 1: a file with both kinds is inconsistent."""
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


# Places in `at`, where a line of the block is being read and what has been found in it.
ENTRY, HARD_ONES, MISSING_ONES, FAULT, FAULT_PLACE, FAULT_DETAIL, FIRST, LAST, SIZE, IN_TURN = range(10)
N_AT = 10


@inner
def _refuse(at, fault, place, p):
    """Note what is wrong, and where."""
    at[FAULT], at[FAULT_PLACE] = fault, place
    return p


@inner
def _note_hard(hard, at, row, entry, begin, end):
    """Leave a number to Python."""
    k = at[HARD_ONES]
    if k < hard.shape[0]:
        hard[k, 0], hard[k, 1], hard[k, 2], hard[k, 3] = row, entry, begin, end
    at[HARD_ONES] += 1


@inner
def _skip_blanks(text, p, stop):
    while p < stop and (text[p] == 32 or text[p] == 9 or text[p] == 13):
        p += 1
    return p


@inner
def _label(text, p, stop, bits, row, labels, hard, at):
    begin = p
    value, p, status = number_at(text, p, stop, bits)
    if status == MISSING:
        value, p = np.nan, begin + 3
        while not _is_end(text, p, stop):
            p += 1
    elif status == HARD:
        _note_hard(hard, at, row, -1, begin, p)
    elif status != FINE or not _is_end(text, p, stop):
        return _refuse(at, _BYTE if p < stop and text[p] == 0 else _LABEL, begin, p)
    labels[row] = value
    return p


@inner
def _query(text, p, stop, row, queries, at):
    """``qid:`` and its number."""
    begin = p
    if p + 4 >= stop or text[p + 1] != 105 or text[p + 2] != 100 or text[p + 3] != 58:
        return _refuse(at, _ENTRY, begin, p)
    p += 4
    negative = text[p] == 45
    p += negative
    start, query = p, 0
    while p < stop and text[p] >= 48 and text[p] <= 57:
        query = query * 10 + text[p] - 48
        p += 1
    if p == start or p - start > _LARGEST_QUERY_DIGITS or not _is_end(text, p, stop):
        return _refuse(at, _QUERY, begin, p)
    queries[row] = -query if negative else query
    return p


@inner
def _comment(text, p, stop, row, comments):
    begin = p + 1
    while p < stop and text[p] != 10:
        p += 1
    end = p
    while begin < end and text[begin] <= 32:
        begin += 1
    while begin < end and text[end - 1] <= 32:
        end -= 1
    comments[row, 0], comments[row, 1] = begin, end
    return p


@once
def _entries(text, p, stop, bits, indices, values, hard, at):
    """All ``index:value`` of a line. Inlined, and one function for all of them: calls would cost up to a fifth."""
    entry, first, before, size, in_turn = at[ENTRY], -1, -1, 0, True
    while True:
        while p < stop and (text[p] == 32 or text[p] == 9 or text[p] == 13):
            p += 1
        if p >= stop or text[p] == 10 or text[p] == 35:
            break
        begin, index = p, 0
        while p < stop and text[p] >= 48 and text[p] <= 57:
            index = min(index * 10 + text[p] - 48, 2**40)
            p += 1
        if p == begin or p >= stop or text[p] != 58:
            return _refuse(at, _BYTE if p < stop and text[p] == 0 else _ENTRY, begin, p)
        if index > _LARGEST_INDEX:
            return _refuse(at, _INDEX, begin, p)
        if index <= before:
            at[FAULT_DETAIL] = before
            return _refuse(at, _ORDER, begin, p)
        p += 1
        start = p
        value, p, status = number_at(text, p, stop, bits)
        values[entry] = value
        if status == FINE:
            if not _is_end(text, p, stop):
                return _refuse(at, _VALUE, begin, p)
            if np.isinf(values[entry]):
                return _refuse(at, _BEYOND, begin, p)
        elif status == HARD and _is_end(text, p, stop):
            values[entry] = 0.0
            _note_hard(hard, at, -1, entry, start, p)
        elif status == MISSING:
            values[entry] = np.nan
            at[MISSING_ONES] += 1
            while not _is_end(text, p, stop):
                p += 1
        else:
            return _refuse(at, _BEYOND if status == TOO_LARGE else _VALUE, begin, p)
        indices[entry] = index
        entry += 1
        size += 1
        if first < 0:
            first = index
        elif index != before + 1:
            in_turn = False
        before = index
    at[ENTRY], at[FIRST], at[LAST], at[SIZE], at[IN_TURN] = entry, first, before, size, in_turn
    return p


@kernel
def parse(text, labels, queries, ends, lines, comments, indices, values, hard, found):
    """Read all lines of a block.

    `ends[row]` is the number of entries up to the end of a row, `comments[row]` the begin and end of its comment, and
    `hard` lists (row or −1, entry, begin, end) of the numbers that Python has to read. Parsing stops at an error.
    """
    stop = text.size
    bits, at = np.zeros(1, np.uint64), np.zeros(N_AT, np.int64)
    p, row, line, least, largest = 0, 0, 1, 2**62, -1
    found[WIDTH] = -1
    while p < stop:
        p = _skip_blanks(text, p, stop)
        if p >= stop:
            break
        if text[p] == 10:
            line += 1
            p += 1
            continue
        if text[p] == 35:
            while p < stop and text[p] != 10:
                p += 1
            continue
        p = _label(text, p, stop, bits, row, labels, hard, at)
        if at[FAULT]:
            break
        lines[row] = line
        comments[row, 0], comments[row, 1] = 0, 0
        p = _skip_blanks(text, p, stop)
        has_query = p < stop and text[p] == 113
        if has_query:
            p = _query(text, p, stop, row, queries, at)
        if not at[FAULT]:
            p = _entries(text, p, stop, bits, indices, values, hard, at)
        if at[FAULT]:
            break
        if p < stop and text[p] == 35:
            p = _comment(text, p, stop, row, comments)
        if at[FIRST] >= 0:
            least, largest = min(least, at[FIRST]), max(largest, at[LAST])
            _note_row(found, at[FIRST], at[SIZE], at[IN_TURN] == 1, line)
        if row == 0:
            found[QUERIES] = has_query
        elif has_query != found[QUERIES]:
            _refuse(at, _LATE_QUERY if has_query else _NO_QUERY, p - 1, p)
            break
        ends[row] = at[ENTRY]
        row += 1
    found[ROWS], found[ENTRIES], found[LINES] = row, at[ENTRY], line - 1
    found[LEAST], found[LARGEST], found[HARDS], found[MISSES] = least, largest, at[HARD_ONES], at[MISSING_ONES]
    found[ERROR], found[PLACE], found[LINE], found[DETAIL] = at[FAULT], at[FAULT_PLACE], line, at[FAULT_DETAIL]


@kernel
def gather(text, comments, content, offsets, start):
    """Append the comments of a block to those of earlier blocks."""
    for row in range(comments.shape[0]):
        for k in range(comments[row, 0], comments[row, 1]):
            content[start] = text[k]
            start += 1
        offsets[row] = start
    return start


@kernel
def fill_dense(X, ends, indices, values, base):
    """Write the entries of a block into a dense matrix."""
    entry = 0
    for row in range(ends.size):
        while entry < ends[row]:
            X[row, indices[entry] - base] = values[entry]
            entry += 1
