"""Tests of `rankhinge.inference`; `cases.py` has the lists and losses that they share."""
