"""Each snippet of docs/interoperability.md runs by itself, with the package that it is about."""

from __future__ import annotations

import re

import pytest

from tests.test_pages import APART, promised, snippets

DATA, *SNIPPETS = snippets(APART)
# What comes with the tests in any case.
AT_HAND = {"sklearn", "skops"}


def neighbour(snippet: str) -> str:
    """The package that a snippet is about: the first that is not ours, scikit-learn's or PyTorch's; else that."""
    packages = re.findall(r"^(?:import|from) (\w+)", snippet, flags=re.MULTILINE)
    return next((name for name in packages if name not in ("rankhinge", "sklearn", "torch")), "sklearn")


CASES = [
    pytest.param(
        snippet,
        id=f"{neighbour(snippet)}-{number}",
        marks=[] if neighbour(snippet) in AT_HAND else pytest.mark.slow,
    )
    for number, snippet in enumerate(SNIPPETS)
]


@pytest.mark.parametrize("snippet", CASES)
# Whatever the neighbours warn of among themselves is theirs.
@pytest.mark.filterwarnings("ignore")
def test_snippet(snippet, tmp_path, monkeypatch, capsys):
    pytest.importorskip(neighbour(snippet))
    if "rankhinge.torch" in snippet:
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    exec(compile(DATA, "the data", "exec"), namespace)
    capsys.readouterr()
    exec(compile(snippet, neighbour(snippet), "exec"), namespace)
    printed = capsys.readouterr().out.splitlines()
    assert promised(snippet)
    assert [line for line in printed if line in promised(snippet)] == promised(snippet)


def test_every_neighbour_has_a_snippet():
    expected = {"imblearn", "lightning", "mlflow", "optuna", "shap", "sklearn", "skops", "transformers"}
    assert {neighbour(snippet) for snippet in SNIPPETS} == expected
