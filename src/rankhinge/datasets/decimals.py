"""Decimal text to correctly rounded float64, for kernels.

A mantissa up to 2⁵³ with a power of ten up to 10²² is one exact product or quotient (Clinger 1990). Otherwise 128 bits
of the power of five decide, for up to 18 digits and normal results (Lemire, "Number parsing at a gigabyte per second",
2021). Longer numbers and those at the ends of the range are reported as *hard*, and Python's own `float` reads them.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner

__all__ = ["FINE", "HARD", "MISSING", "NO_NUMBER", "TOO_LARGE", "number_at"]

FINE, HARD, NO_NUMBER, MISSING, TOO_LARGE = range(5)

_LEAST_POWER, _LARGEST_POWER = -342, 308
_MOST_DIGITS = 18


def _powers_of_five() -> np.ndarray:
    """128 bits of 5^q, normalised: truncated, but rounded up for −27 ≤ q < 0, where ties can occur."""
    rows = []
    for q in range(_LEAST_POWER, _LARGEST_POWER + 1):
        power = 5 ** abs(q)
        if q >= 0:
            value = power << 128 >> power.bit_length()
        else:
            value = (1 << (power.bit_length() + 127)) // power + (q >= -27)
        rows.append((value >> 64, value & (2**64 - 1)))
    return np.array(rows, dtype=np.uint64)


_FIVES = _powers_of_five()
_TENS = np.array([10.0**k for k in range(23)])
_HALF = np.uint64(0xFFFFFFFF)
_32, _63, _64 = np.uint64(32), np.uint64(63), np.uint64(64)
_ONE, _THREE, _NINE = np.uint64(1), np.uint64(3), np.uint64(9)
_TOP_BIT = np.uint64(1 << 63)
_HIDDEN_BIT, _FULL = np.uint64(1 << 52), np.uint64(1 << 53)
_LOW_NINE = np.uint64(0x1FF)
_52 = np.uint64(52)
_EXPONENTS = np.uint64(0x7FF)


@inner
def _product(a, b):
    """The 128 bits of a product, high and low."""
    a0, a1, b0, b1 = a & _HALF, a >> _32, b & _HALF, b >> _32
    low, middle, other, high = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    carry = (low >> _32) + (middle & _HALF) + (other & _HALF)
    return high + (middle >> _32) + (other >> _32) + (carry >> _32), (low & _HALF) | (carry << _32)


@inner
def _by_fives(mantissa, power, bits):
    """``mantissa · 10^power`` rounded to nearest, ties to even; False if it is not normal. `bits` is for the cast."""
    if power < _LEAST_POWER or power > _LARGEST_POWER:
        return 0.0, False
    w, shift = np.uint64(mantissa), 0
    while w & _TOP_BIT == 0:
        w = w << _ONE
        shift += 1
    high, low = _product(w, _FIVES[power - _LEAST_POWER, 0])
    if high & _LOW_NINE == _LOW_NINE:
        # The first 64 bits of the power do not decide.
        more, _ = _product(w, _FIVES[power - _LEAST_POWER, 1])
        low = low + more
        if more > low:
            high = high + _ONE
    upper = high >> _63
    cut = upper + _NINE
    m = high >> cut
    exponent = ((217706 * power) >> 16) + 63 + np.int64(upper) - shift + 1023
    if exponent <= 0:
        return 0.0, False
    if low <= _ONE and power >= -4 and power <= 23 and m & _THREE == _ONE and m << cut == high:
        # Exactly between two numbers: down to the even one.
        m = m - _ONE
    m = (m + (m & _ONE)) >> _ONE
    if m >= _FULL:
        m = _HIDDEN_BIT
        exponent += 1
    if exponent >= 2047:
        return 0.0, False
    bits[0] = (m & (_HIDDEN_BIT - _ONE)) | (np.uint64(exponent) << _52)
    return bits.view(np.float64)[0], True


@inner
def _word_at(text, position, stop):
    """Classify a word in the place of a number: NULL and nan are missing values, inf is too large."""
    length = 0
    while position + length < stop and text[position + length] > 32 and text[position + length] != 35:
        length += 1
    sign = 1 if length and (text[position] == 43 or text[position] == 45) else 0
    first = text[position + sign] | 32 if length > sign else 0
    second = text[position + sign + 1] | 32 if length > sign + 1 else 0
    third = text[position + sign + 2] | 32 if length > sign + 2 else 0
    if length == sign + 3 and first == 110 and second == 97 and third == 110:
        return MISSING
    if length == 4 and first == 110 and second == 117 and third == 108 and text[position + 3] | 32 == 108:
        return MISSING
    if length >= sign + 3 and first == 105 and second == 110 and third == 102:
        return TOO_LARGE
    return NO_NUMBER


@inner
def number_at(text, position, stop, bits):
    """Read the number at a position: its value, where it ends, and a status (`FINE`, `HARD`, …)."""
    begin = position
    negative = False
    if position < stop and (text[position] == 45 or text[position] == 43):
        negative = text[position] == 45
        position += 1
    mantissa, power = 0, 0
    first = position
    while position < stop and text[position] >= 48 and text[position] <= 57:
        mantissa = mantissa * 10 + text[position] - 48
        position += 1
    digits = position - first
    if position < stop and text[position] == 46:
        position += 1
        dot = position
        while position < stop and text[position] >= 48 and text[position] <= 57:
            mantissa = mantissa * 10 + text[position] - 48
            position += 1
        power = dot - position
        digits += position - dot
    if digits == 0:
        return 0.0, begin, _word_at(text, begin, stop)
    if digits > _MOST_DIGITS:
        while text[first] == 48 or text[first] == 46:
            digits -= text[first] == 48
            first += 1
            if first == position:
                break
    if position < stop and text[position] | 32 == 101:
        position += 1
        falls = False
        if position < stop and (text[position] == 45 or text[position] == 43):
            falls = text[position] == 45
            position += 1
        given, any_digit = 0, False
        while position < stop and text[position] >= 48 and text[position] <= 57:
            given = min(given * 10 + text[position] - 48, 100_000)
            any_digit = True
            position += 1
        if not any_digit:
            return 0.0, begin, NO_NUMBER
        power += -given if falls else given
    if digits > _MOST_DIGITS:
        return 0.0, position, HARD
    if mantissa == 0:
        value = 0.0
    elif mantissa <= 9007199254740992 and power >= -22 and power <= 22:
        value = mantissa / _TENS[-power] if power < 0 else mantissa * _TENS[power]
    else:
        value, is_fine = _by_fives(mantissa, power, bits)
        if not is_fine:
            return 0.0, position, HARD
    return -value if negative else value, position, FINE
