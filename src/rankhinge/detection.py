"""Detection: overlaps of boxes, non-maxima suppression, and average precision as in PASCAL VOC.

Boxes are ``(x_min, y_min, x_max, y_max)``. By default areas are ``(x_max - x_min) · (y_max - y_min)``. VOC counts
pixels and adds 1 to each side; ``pixels=True`` does the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._jit import inner, kernel
from rankhinge._validation import check_relevant, encode_queries, refuse_masked

__all__ = ["DetectionCurve", "detection_average_precision", "detection_curve", "iou", "non_maxima_suppression"]


def check_boxes(boxes: ArrayLike, name: str) -> NDArray[np.float64]:
    """Boxes as an array of shape (n, 4). A ValueError names the first invalid one."""
    refuse_masked(boxes, name)
    array = np.asarray(boxes, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 4:
        if array.size == 0:
            return np.zeros((0, 4))
        raise ValueError(f"{name} must have shape (n, 4), got {array.shape}")
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if wrong.size:
        raise ValueError(f"{name}[{wrong[0]}] is not finite: {array[wrong[0]].tolist()}")
    wrong = np.flatnonzero((array[:, 2] < array[:, 0]) | (array[:, 3] < array[:, 1]))
    if wrong.size:
        raise ValueError(f"{name}[{wrong[0]}] ends before it begins: {array[wrong[0]].tolist()}")
    return array


def _scores(scores: ArrayLike, n: int) -> NDArray[np.float64]:
    refuse_masked(scores, "scores")
    array = np.asarray(scores, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"scores have shape {array.shape}, but there are {n} boxes")
    wrong = np.flatnonzero(np.isnan(array))
    if wrong.size:
        raise ValueError(f"scores[{wrong[0]}] is nan")
    return array


def _threshold(value: float, name: str) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    return float(value)


def iou(first: ArrayLike, second: ArrayLike, *, pixels: bool = False) -> NDArray[np.float64]:
    """Intersection over union of each pair of boxes, in [0, 1]. 0 where both areas are 0.

    Parameters
    ----------
    first : array of shape (m, 4)
    second : array of shape (n, 4)
    pixels : bool, default False
        Count pixels, as VOC does: a box from 1 to 1 is one pixel wide.

    Returns
    -------
    ndarray of shape (m, n)

    Examples
    --------
    >>> iou([[0, 0, 2, 2]], [[1, 0, 3, 2], [0, 0, 2, 2]])
    array([[0.33333333, 1.        ]])
    """
    a, b = check_boxes(first, "first"), check_boxes(second, "second")
    more = 1.0 if pixels else 0.0
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.prod(np.maximum(high - low + more, 0.0), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2] + more, axis=1) for boxes in (a, b)]
    union = areas[0][:, None] + areas[1][None, :] - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


@inner
def _overlap(first, i, second, j, more):
    """Areas of intersection and union of two boxes."""
    width = min(first[i, 2], second[j, 2]) - max(first[i, 0], second[j, 0]) + more
    height = min(first[i, 3], second[j, 3]) - max(first[i, 1], second[j, 1]) + more
    common = max(width, 0.0) * max(height, 0.0)
    one = (first[i, 2] - first[i, 0] + more) * (first[i, 3] - first[i, 1] + more)
    other = (second[j, 2] - second[j, 0] + more) * (second[j, 3] - second[j, 1] + more)
    return common, one + other - common


@kernel
def _suppress(boxes, order, threshold, more, keep):
    """Mark boxes in the order of their scores unless one marked before overlaps by more than the threshold."""
    kept = np.empty(order.size, np.int64)
    n_kept = 0
    for place in range(order.size):
        i = order[place]
        good = True
        for r in range(n_kept):
            common, union = _overlap(boxes, i, boxes, kept[r], more)
            # Divided as `iou` does it: a product might be rounded to the other side of the threshold.
            if union > 0.0 and common / union > threshold:
                good = False
                break
        if good:
            kept[n_kept] = i
            n_kept += 1
            keep[i] = True


def non_maxima_suppression(
    boxes: ArrayLike,
    scores: ArrayLike,
    *,
    threshold: float = 0.3,
    groups: Sequence[Hashable] | ArrayLike | None = None,
    pixels: bool = False,
) -> NDArray[np.int64]:
    """Keep only the best of boxes that overlap strongly.

    Boxes are visited by descending score, equal scores in the given order. A box is dropped if its IoU with a kept box
    exceeds the threshold.

    Parameters
    ----------
    boxes : array of shape (n, 4)
    scores : array of shape (n,)
    threshold : float, default 0.3
    groups : sequence of shape (n,), optional
        The image (or image and class) of each box. Only boxes of the same group suppress each other.
    pixels : bool, default False
        As for `iou`.

    Returns
    -------
    ndarray of int
        The indices of the kept boxes, best first.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10]]
    >>> non_maxima_suppression(boxes, [0.5, 0.9, 0.1])
    array([1, 2])
    """
    array = check_boxes(boxes, "boxes")
    values = _scores(scores, len(array))
    threshold = _threshold(threshold, "threshold")
    keep = np.zeros(len(array), np.bool_)
    order = np.argsort(-values, kind="stable")
    codes = np.zeros(len(array), np.intp)
    if groups is not None:
        codes = _codes(groups, len(array))
    by_group = order[np.argsort(codes[order], kind="stable")]
    bounds = np.flatnonzero(np.diff(codes[by_group])) + 1
    for part in np.split(by_group, bounds):
        _suppress(array, part, threshold, 1.0 if pixels else 0.0, keep)
    return order[keep[order]]


def _codes(groups: Any, n: int) -> NDArray[np.intp]:
    try:
        return encode_queries(groups, n, counted="boxes")[1]
    except ValueError as error:
        raise ValueError(str(error).replace("qid", "groups", 1)) from None


class DetectionCurve(NamedTuple):
    """Precision and recall down the list of detections.

    Attributes
    ----------
    precision, recall : ndarray of shape (n_counted,)
        After each detection that counts, best first.
    is_true : ndarray of shape (n,)
        For each detection, in the given order: 1 if it found an object, 0 if not, -1 if it does not count (a difficult
        object).
    n_objects : int
        Objects that are not difficult.

    Examples
    --------
    >>> from rankhinge.detection import detection_curve
    >>> curve = detection_curve([0, 0], [[0, 0, 9, 9], [20, 20, 29, 29]], [0.9, 0.1], [0], [[0, 0, 9, 8]])
    >>> curve.precision.tolist()
    [1.0, 0.5]
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    is_true: NDArray[np.int8]
    n_objects: int


def detection_curve(
    images: Sequence[Hashable] | ArrayLike,
    boxes: ArrayLike,
    scores: ArrayLike,
    object_images: Sequence[Hashable] | ArrayLike,
    object_boxes: ArrayLike,
    *,
    difficult: ArrayLike | None = None,
    min_iou: float = 0.5,
    pixels: bool = False,
) -> DetectionCurve:
    """Match detections with objects as PASCAL VOC does.

    Detections are visited by descending score, equal scores in the given order. Each is compared with the object of its
    image that it overlaps most. If the IoU is at least `min_iou`, the detection is true when the object has not been
    found before, false when it has, and does not count when the object is difficult. Otherwise it is false.

    Parameters
    ----------
    images : sequence of shape (n,)
        The image of each detection, any hashable.
    boxes : array of shape (n, 4)
    scores : array of shape (n,)
    object_images : sequence of shape (m,)
    object_boxes : array of shape (m, 4)
    difficult : array of bool of shape (m,), optional
    min_iou : float, default 0.5
    pixels : bool, default False
        As for `iou`.

    Returns
    -------
    DetectionCurve

    Examples
    --------
    >>> from rankhinge.detection import detection_curve
    >>> curve = detection_curve([0, 0], [[0, 0, 9, 9], [20, 20, 29, 29]], [0.9, 0.1], [0], [[0, 0, 9, 8]])
    >>> curve.recall.tolist()
    [1.0, 1.0]
    """
    found, objects = check_boxes(boxes, "boxes"), check_boxes(object_boxes, "object_boxes")
    values, min_iou = _scores(scores, len(found)), _threshold(min_iou, "min_iou")
    flags = np.zeros(len(objects), np.bool_) if difficult is None else difficult
    hard = check_relevant(flags, len(objects), "difficult", "object_boxes")
    numbers: dict[Hashable, int] = {}
    object_image = np.array(
        [numbers.setdefault(name, len(numbers)) for name in _names(object_images, len(objects), "object_images")],
        dtype=np.int64,
    )
    # -1: an image without objects.
    image = np.array([numbers.get(name, -1) for name in _names(images, len(found), "images")], dtype=np.int64)
    by_image = np.argsort(object_image, kind="stable")
    bounds = np.searchsorted(object_image[by_image], np.arange(len(numbers) + 1))
    is_true = np.zeros(len(found), np.int8)
    order = np.argsort(-values, kind="stable")
    _match(found, image, order, objects, by_image, bounds, hard, min_iou, 1.0 if pixels else 0.0, is_true)
    ranked = is_true[order]
    ranked = ranked[ranked >= 0]
    hits = np.cumsum(ranked)
    n_objects = int((~hard).sum())
    precision = hits / np.arange(1, ranked.size + 1)
    recall = hits / n_objects if n_objects else np.zeros(ranked.size)
    return DetectionCurve(precision, recall, is_true, n_objects)


@kernel
def _match(boxes, image, order, objects, by_image, bounds, hard, min_iou, more, is_true):
    """Compare each detection, best first, with the object of its image that it overlaps most."""
    taken = np.zeros(objects.shape[0], np.bool_)
    for i in order:
        if image[i] < 0:
            continue
        highest, which = -1.0, -1
        for place in range(bounds[image[i]], bounds[image[i] + 1]):
            common, union = _overlap(boxes, i, objects, by_image[place], more)
            share = common / union if union > 0.0 else 0.0
            if share > highest:
                highest, which = share, by_image[place]
        if highest >= min_iou:
            if hard[which]:
                is_true[i] = -1
            elif not taken[which]:
                is_true[i] = 1
                taken[which] = True


def _names(images: Any, n: int, what: str) -> list[Hashable]:
    """The image of each box, anything hashable; NumPy's numbers and Python's are the same image."""
    names = [name.item() if isinstance(name, np.generic) else name for name in images]
    if len(names) != n:
        raise ValueError(f"{what} has {len(names)} entries, but there are {n} boxes")
    return names


def detection_average_precision(
    images: Sequence[Hashable] | ArrayLike,
    boxes: ArrayLike,
    scores: ArrayLike,
    object_images: Sequence[Hashable] | ArrayLike,
    object_boxes: ArrayLike,
    *,
    difficult: ArrayLike | None = None,
    min_iou: float = 0.5,
    method: str = "area",
    pixels: bool = False,
) -> float:
    r"""Average precision of detections as in PASCAL VOC (Everingham et al. 2010).

    With :math:`p(r)` the largest precision at any recall of at least r:

    .. math:: \mathrm{AP} = \int_0^1 p(r) \, dr \quad (\text{"area"}), \qquad
              \mathrm{AP} = \tfrac1{11} \sum_{r \in \{0, 0.1, …, 1\}} p(r) \quad (\text{"11-point"}).

    Parameters
    ----------
    images, boxes, scores, object_images, object_boxes, difficult, min_iou, pixels
        As for `detection_curve`, for the objects and detections of one class.
    method : {"area", "11-point"}, default "area"
        ``"area"`` is VOC since 2010, ``"11-point"`` is VOC 2007.

    Returns
    -------
    float
        nan if no object counts.

    Examples
    --------
    One object, found by the second of two detections:

    >>> images, objects = ["a", "a"], ["a"]
    >>> boxes = [[20, 20, 30, 30], [0, 0, 10, 10]]
    >>> detection_average_precision(images, boxes, [0.9, 0.8], objects, [[0, 0, 10, 9]])
    0.5
    """
    if method not in ("area", "11-point"):
        raise ValueError(f"method must be 'area' or '11-point', got {method!r}")
    curve = detection_curve(
        images, boxes, scores, object_images, object_boxes, difficult=difficult, min_iou=min_iou, pixels=pixels
    )
    if curve.n_objects == 0:
        return float("nan")
    if curve.precision.size == 0:
        return 0.0
    envelope = np.maximum.accumulate(curve.precision[::-1])[::-1]
    if method == "area":
        return float(envelope @ np.diff(curve.recall, prepend=0.0))
    # The k-th of eleven recalls is reached where 10 · hits ≥ k · objects: in integers, without rounding.
    hits = np.rint(curve.recall * curve.n_objects).astype(np.int64)
    first = np.searchsorted(10 * hits, np.arange(11) * curve.n_objects)
    return float(sum(envelope[place] for place in first if place < envelope.size) / 11)
