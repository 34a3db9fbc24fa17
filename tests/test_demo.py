"""What `make demo` shows."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split

from rankhinge import demo

N_TRAIN = 60


def columns(text, name):
    """The cells of each row of this name."""
    return [re.split(r"\s{2,}", line)[1:] for line in text.splitlines() if line.startswith(name + "  ")]


def loss_of_untrained_scores():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y == 8, train_size=N_TRAIN, stratify=y, random_state=0)
    return 1 - average_precision_score(y_test, X_test @ (X[y].mean(axis=0) - X[~y].mean(axis=0)))


def test_the_whole_demonstration(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo, "_SPLITS", 2)
    monkeypatch.setattr(demo, "_N_TRAIN", N_TRAIN)
    path = tmp_path / "new folder" / "plot.png"
    demo.main(["--plot", str(path)])
    text = capsys.readouterr().out
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in text

    by_score = float(re.search(r"Ranked by untrained scores .*, AP loss (\d\.\d+):", text)[1])
    assert by_score == pytest.approx(loss_of_untrained_scores(), abs=1e-4)
    delta, rest, value = map(float, re.search(r"J = Δ \+ u·s = (\S+) \+ \((\S+)\) = (\S+) bounds", text).groups())
    assert delta + rest == pytest.approx(value, abs=2e-4)
    assert by_score <= value

    found = {name: columns(text, name) for name in ("RankSVC(ap)", "RankSVC(ndcg)", "LinearSVC")}
    assert [len(rows) for rows in found.values()] == [2, 1, 2]
    for name, (row, *_) in found.items():
        precision, gain, seconds, gap = row
        for quality in (precision, gain):
            assert re.fullmatch(r"0\.\d{3} ± 0\.\d{3}", quality)
            assert 0.4 < float(quality.split()[0]) < 1
        assert seconds.endswith(" ms")
        assert gap == "not reported" if name == "LinearSVC" else 0 <= float(gap) <= 1e-3

    ours, theirs = (np.array(found[name][1], dtype=float) for name in ("RankSVC(ap)", "LinearSVC"))
    for values in (ours, theirs):
        assert values.size == 11
        assert values[:10].mean() == pytest.approx(values[10], abs=1e-3)
    better, worse = map(
        int, re.search(r"ranks (\d+) of the 10 digits better than LinearSVC, and (\d+) worse", text).groups()
    )
    assert (ours > theirs)[:10].sum() <= better <= (ours >= theirs)[:10].sum()
    assert (ours < theirs)[:10].sum() <= worse <= (ours <= theirs)[:10].sum()
