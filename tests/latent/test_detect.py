"""From image labels to ranked windows."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge.detection import iou
from rankhinge.latent import Bags, LatentRankSVC, detect, plot_localisations
from tests.latent.helpers import multilabel_bags

GRID = np.array([[x, y, x + 10, y + 10] for x in (0, 6, 12) for y in (0, 6, 12)], dtype=float)


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3 == 0
    X = rng.normal(size=(45, 9, 5))
    where = rng.integers(9, size=45)
    X[np.flatnonzero(y), where[y], 0] += 6.0
    bags = Bags(X.reshape(-1, 5), bag_ids=np.repeat([f"im{b}" for b in range(45)], 9))
    return LatentRankSVC(C=30.0).fit(bags, y), bags, y, where, np.tile(GRID, (45, 1))


def test_finds_what_was_planted(trained):
    model, bags, y, where, windows = trained
    found = detect(model, bags, windows)
    objects = np.flatnonzero(y)
    AP = found.average_precision([f"im{b}" for b in objects], GRID[where[objects]])
    assert AP > 0.8
    assert found.average_precision([f"im{b}" for b in objects], GRID[where[objects]], method="11-point") > 0.8
    assert np.all(np.diff(found.scores) <= 0)
    np.testing.assert_array_equal(found.boxes, GRID[found.candidates])


def test_windows_of_an_image_do_not_overlap_much(trained):
    model, bags, _, _, windows = trained
    found = detect(model, bags, windows, threshold=0.2, most_per_image=3)
    scores = model.score_candidates(bags).reshape(45, 9)
    for b in range(45):
        own = found.images == f"im{b}"
        assert 1 <= own.sum() <= 3
        overlaps = iou(found.boxes[own], found.boxes[own])
        assert np.all(overlaps - np.eye(len(overlaps)) <= 0.2)
        # The best window of each image is always there.
        assert found.scores[own].max() == pytest.approx(scores[b].max())
    many = detect(model, bags, windows, threshold=0.2)
    assert len(many.scores) >= len(found.scores)


def test_classes():
    bags, Y = multilabel_bags()
    model = LatentRankSVC(C=5.0).fit(bags, Y)
    windows = np.tile([[0, 0, 5, 5]], (bags.n_candidates, 1))
    found = detect(model, bags, windows)
    assert len(found) == 3
    # All windows are the same: one an image is left, the best candidate.
    for k, one in enumerate(found):
        order = np.argsort(one.images)
        np.testing.assert_array_equal(one.candidates[order], model.predict_candidates(bags)[:, k])


def test_refuses(trained):
    model, bags, _, _, windows = trained
    with pytest.raises(ValueError, match="windows have shape"):
        detect(model, bags, windows[1:])
    with pytest.raises(ValueError, match="most_per_image"):
        detect(model, bags, windows, most_per_image=0)
    with pytest.raises(ValueError, match="windows have shape"):
        plot_localisations(windows[1:], bags, model.chosen_history_, [0])
    with pytest.raises(ValueError, match="choices have 3 columns"):
        plot_localisations(windows, bags, np.zeros((1, 3), int), [0])
    with pytest.raises(ValueError, match=f"shown has 300, but there are {len(bags)} bags"):
        plot_localisations(windows, bags, model.chosen_history_, [0, 300])


def test_history_of_the_choices(trained):
    model, _, y, _, _ = trained
    table = model.chosen_history_
    assert table.shape == (model.n_outer_ + 1, 45)
    assert np.all(table[:, ~y] == -1)
    assert np.all((table[:, y] >= 0) & (table[:, y] < 9))
    np.testing.assert_array_equal(table[-1, y], model.chosen_[y])
    changed = (np.diff(table, axis=0) != 0).sum(axis=1)
    np.testing.assert_array_equal(changed, model.outer_history_["n_changed"])


def test_picture(trained):
    pytest.importorskip("matplotlib")
    model, bags, y, where, windows = trained
    shown = np.flatnonzero(y)[:3]
    truth = [GRID[where[b]] for b in shown]
    figure = plot_localisations(windows, bags, model.chosen_history_, shown, truth=truth)
    assert len(figure.axes) == 3 * (model.n_outer_ + 1)
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert labels == [*(f"round {k + 1}" for k in range(model.n_outer_)), "end"]
    # Nine windows, the truth and the choice.
    assert len(figure.axes[0].patches) == 11
    pictures = [np.zeros((22, 22))] * 3
    figure = plot_localisations(windows, bags, model.chosen_, shown, images=pictures, labels=["last"])
    assert len(figure.axes[0].patches) == 1
    assert figure.axes[0].get_ylabel() == "last"


def test_windows_that_are_none(trained):
    model, bags, _, _, windows = trained
    wrong = np.array(windows, dtype=float)
    wrong[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"windows\[3\] is not finite"):
        detect(model, bags, wrong)
