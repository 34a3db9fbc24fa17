"""Tests of `rankhinge.torch`."""
