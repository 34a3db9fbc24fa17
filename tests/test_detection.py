"""Detection: overlaps and suppression against loops, average precision against the book."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankhinge.detection import detection_average_precision, detection_curve, iou, non_maxima_suppression


def random_boxes(n, seed, size=20):
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, size, size=(n, 2))
    return np.concatenate([corner, corner + rng.integers(1, size, size=(n, 2))], axis=1).astype(float)


def overlap(a, b, more=0.0):
    width = min(a[2], b[2]) - max(a[0], b[0]) + more
    height = min(a[3], b[3]) - max(a[1], b[1]) + more
    common = max(width, 0) * max(height, 0)
    areas = [(c[2] - c[0] + more) * (c[3] - c[1] + more) for c in (a, b)]
    return common / (sum(areas) - common)


@pytest.mark.parametrize("pixels", [False, True])
def test_iou(pixels):
    a, b = random_boxes(20, 0), random_boxes(30, 1)
    expected = [[overlap(x, y, float(pixels)) for y in b] for x in a]
    np.testing.assert_allclose(iou(a, b, pixels=pixels), expected)
    np.testing.assert_allclose(np.diag(iou(a, a)), 1)
    assert iou([[1, 1, 1, 1]], [[1, 1, 1, 1]])[0, 0] == 0
    assert iou([[1, 1, 1, 1]], [[1, 1, 1, 1]], pixels=True)[0, 0] == 1
    assert iou(np.zeros((0, 4)), b).shape == (0, 30)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_suppression(seed, threshold, pixels):
    boxes = random_boxes(25, seed)
    rng = np.random.default_rng(seed)
    scores, groups = rng.integers(0, 8, size=25).astype(float), rng.integers(0, 3, size=25)
    kept: list[int] = []
    for i in sorted(range(25), key=lambda i: (-scores[i], i)):
        if all(groups[i] != groups[j] or overlap(boxes[i], boxes[j], float(pixels)) <= threshold for j in kept):
            kept.append(i)
    found = non_maxima_suppression(boxes, scores, threshold=threshold, groups=groups, pixels=pixels)
    assert found.tolist() == kept


def test_suppression_of_nothing():
    assert non_maxima_suppression(np.zeros((0, 4)), []).size == 0
    assert non_maxima_suppression([], []).size == 0


def literal_voc(images, boxes, scores, object_images, object_boxes, difficult, min_iou, method):
    """The development kit's algorithm, step by step."""
    order = sorted(range(len(boxes)), key=lambda i: (-scores[i], i))
    taken, hits, false = set(), [], []
    for i in order:
        best, which = -np.inf, None
        for o in range(len(object_boxes)):
            if object_images[o] == images[i] and overlap(boxes[i], object_boxes[o]) > best:
                best, which = overlap(boxes[i], object_boxes[o]), o
        if best >= min_iou:
            if difficult[which]:
                continue
            hits.append(which not in taken)
            false.append(which in taken)
            taken.add(which)
        else:
            hits.append(False)
            false.append(True)
    tp, fp = np.cumsum(hits), np.cumsum(false)
    n_objects = sum(not d for d in difficult)
    if n_objects == 0:
        return float("nan")
    recall, precision = tp / n_objects, tp / np.maximum(tp + fp, 1)
    if method == "11-point":
        at = [k * n_objects for k in range(11)]
        return sum(max([p for p, t in zip(precision, tp) if 10 * t >= level], default=0.0) for level in at) / 11
    mrec = np.concatenate([[0], recall, [1]])
    mpre = np.concatenate([[0], precision, [0]])
    for k in range(len(mpre) - 2, -1, -1):
        mpre[k] = max(mpre[k], mpre[k + 1])
    steps = np.flatnonzero(mrec[1:] != mrec[:-1])
    return float(np.sum((mrec[steps + 1] - mrec[steps]) * mpre[steps + 1]))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["area", "11-point"]), st.sampled_from([0.2, 0.5]), st.integers(0, 9))
def test_average_precision(seed, method, min_iou, n_objects):
    rng = np.random.default_rng(seed)
    boxes, objects = random_boxes(15, seed, 8), random_boxes(n_objects, seed + 1, 8)
    images, object_images = rng.integers(0, 3, size=15), rng.integers(0, 3, size=n_objects)
    difficult, scores = rng.random(n_objects) < 0.3, rng.integers(0, 9, size=15).astype(float)
    arguments = images, boxes, scores, object_images, objects
    found = detection_average_precision(*arguments, difficult=difficult, min_iou=min_iou, method=method)
    expected = literal_voc(*arguments, difficult, min_iou, method)
    assert found == pytest.approx(expected, nan_ok=True)


def test_each_object_is_found_once():
    box = [0, 0, 10, 10]
    curve = detection_curve(["a"] * 3, [box] * 3, [3, 2, 1], ["a", "a"], [box, [50, 50, 60, 60]])
    assert curve.is_true.tolist() == [1, 0, 0]
    assert curve.recall.tolist() == [0.5, 0.5, 0.5]
    np.testing.assert_allclose(curve.precision, [1, 1 / 2, 1 / 3])


def test_difficult_objects_do_not_count():
    box, other = [0, 0, 10, 10], [50, 50, 60, 60]
    curve = detection_curve(
        ["a", "a", "b"], [box, other, box], [3, 2, 1], ["a", "a"], [box, other], difficult=[True, False]
    )
    assert curve.is_true.tolist() == [-1, 1, 0]
    assert curve.n_objects == 1
    np.testing.assert_allclose(curve.precision, [1, 0.5])


def test_no_detections():
    nothing = np.zeros((0, 4))
    assert detection_average_precision([], nothing, [], ["a"], [[0, 0, 1, 1]]) == 0
    assert np.isnan(detection_average_precision(["a"], [[0, 0, 1, 1]], [1.0], [], nothing))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: iou([[0, 0, 1]], [[0, 0, 1, 1]]), r"first must have shape \(n, 4\)"),
        (lambda: iou([[0, 0, 1, np.nan]], [[0, 0, 1, 1]]), r"first\[0\] is not finite"),
        (lambda: iou([[0, 0, 1, 1]], [[2, 0, 1, 1]]), r"second\[0\] ends before"),
        (lambda: non_maxima_suppression([[0, 0, 1, 1]], [1, 2]), "scores have shape"),
        (lambda: non_maxima_suppression([[0, 0, 1, 1]], [np.nan]), r"scores\[0\] is nan"),
        (lambda: non_maxima_suppression([[0, 0, 1, 1]], [1], threshold=2), "between 0 and 1"),
        (lambda: non_maxima_suppression([[0, 0, 1, 1]], [1], groups=[1, 2]), "groups has 2 entries"),
        (lambda: detection_average_precision(["a"], [[0, 0, 1, 1]], [1], [], [], method="voc"), "method"),
        (lambda: detection_average_precision([], [[0, 0, 1, 1]], [1], [], []), "images has 0"),
        (lambda: detection_average_precision([], [], [], ["a"], []), "object_images has 1"),
        (lambda: detection_average_precision([], [], [], [], [], difficult=[1]), "difficult has shape"),
        (lambda: detection_curve([], [], [], ["a"], [[0, 0, 1, 1]], difficult=["0"]), "difficult must be bool or 0/1"),
        (lambda: detection_curve([], [], [], ["a"], [[0, 0, 1, 1]], difficult=[np.nan]), r"difficult\[0\] is nan"),
        (lambda: detection_average_precision([], [], [], [], [], min_iou=-1), "min_iou"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_overlap_at_the_threshold_does_not_suppress():
    """0.57 · 100 is rounded to less than 57."""
    boxes = [[0, 0, 100, 1], [0, 0, 57, 1]]
    assert iou(boxes, boxes)[0, 1] == 0.57
    assert non_maxima_suppression(boxes, [2, 1], threshold=0.57).tolist() == [0, 1]


def test_masked_arrays_are_refused():
    boxes, scores = np.array([[0, 0, 2, 2], [5, 5, 8, 8]]), np.array([0.5, 0.3])
    with pytest.raises(ValueError, match="masked"):
        non_maxima_suppression(np.ma.masked_array(boxes, mask=[[0] * 4, [1] * 4]), scores)
    with pytest.raises(ValueError, match="masked"):
        non_maxima_suppression(boxes, np.ma.masked_array(scores, mask=[False, True]))
