"""The reference: every public name has a docstring with an example, and examples are run as doctests."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


def _load():
    spec = importlib.util.spec_from_file_location("public_names", DOCS / "_ext" / "public_names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


public_names = _load()
OBJECTS = {
    f"{module}.{name}": thing
    for module in public_names.public_modules()
    for name, thing in public_names.public_objects(module).items()
    if callable(thing)
}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_public_name_has_an_example(name):
    text = inspect.getdoc(OBJECTS[name]) or ""
    assert len(text.split()) >= 4
    assert ">>> " in text


def test_methods_of_ours_are_told_from_those_of_others():
    members = dict(public_names.own_members("rankhinge.RankSVC"))
    assert members["fit"] == "method"
    assert "get_params" not in members
    assert dict(public_names.own_members("rankhinge.Bags"))["n_candidates"] == "property"
    if "rankhinge.torch" in public_names.public_modules():
        assert "state_dict" not in dict(public_names.own_members("rankhinge.torch.RankHingeLoss"))


def test_names_are_listed_once():
    assert "rankhinge.RankSVC" in OBJECTS
    assert not [name for name in OBJECTS if name.endswith(".RankSVC") and name != "rankhinge.RankSVC"]
