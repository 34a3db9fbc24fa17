"""Tests of the linear ranking machines."""
