"""What `make demo` shows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from rankhinge import demo


def test_the_whole_demonstration(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(demo, "_SPLITS", 1)
    plain = {name: make for name, make in demo._models().items() if "CV" not in name and "tuned" not in name}
    tuned = {"tuned: RankSVCCV()": plain["RankSVC()"], "tuned: another": plain["LogisticRegression()"]}
    monkeypatch.setattr(demo, "_models", lambda: plain | tuned)
    path = tmp_path / "new folder" / "plot.png"
    demo.main(["--plot", str(path)])
    text = capsys.readouterr().out
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in text
    for name in plain:
        assert text.count(f"\n{name} ") == 2


def test_every_model_is_made_and_judged_by_scikit_learns_metric():
    split = demo._splits(demo._cancer())[0]
    for make in demo._models().values():
        outcome = demo._outcome(make(), split)
        assert outcome.precision == pytest.approx(average_precision_score(split.y_test, outcome.scores), abs=2e-3)
        assert np.isnan(outcome.gap) or outcome.gap <= 1e-3


@pytest.mark.parametrize(("ours", "word"), [(0.9, "ahead"), (0.8, "level"), (0.7, "behind")])
def test_the_verdict_is_what_the_figures_say(ours, word):
    def found(*precisions):
        return [demo._Outcome(np.zeros(1), precision, 0.0, np.nan) for precision in precisions]

    outcomes = {
        "RankSVC()": found(ours, ours),
        "A": found(0.5, 0.5),
        "B": found(0.79, 0.81),
        "tuned: C": found(1.0, 1.0),
    }
    verdict = demo._verdict("As they are", "RankSVC()", outcomes)
    assert f"is {word}" in verdict
    assert "others, B: " in verdict
