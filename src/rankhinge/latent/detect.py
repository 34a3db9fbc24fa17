"""From a latent machine to detections, and pictures of where it looks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge.detection import check_boxes, detection_average_precision, non_maxima_suppression
from rankhinge.latent.bags import Bags, as_bags

__all__ = ["Detections", "detect", "plot_localisations"]


class Detections(NamedTuple):
    """Ranked windows of one class, best first.

    Attributes
    ----------
    images : ndarray of shape (n,)
        The id of the bag of each window.
    boxes : ndarray of shape (n, 4)
    scores : ndarray of shape (n,)
    candidates : ndarray of shape (n,)
        The number of the candidate within its bag.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge import Bags, LatentRankSVC
    >>> from rankhinge.latent import detect
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(12, 2, 3)), np.arange(12) % 2 == 0
    >>> X[y, 0] += 3.0
    >>> bags = Bags(list(X))
    >>> windows = np.tile([[0, 0, 9, 9], [20, 0, 29, 9]], (12, 1))
    >>> found = detect(LatentRankSVC(C=10.0).fit(bags, y), bags, windows)
    >>> found.boxes.shape
    (24, 4)
    """

    images: NDArray[Any]
    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    candidates: NDArray[np.int64]

    def average_precision(
        self, object_images: Sequence[Hashable] | ArrayLike, object_boxes: ArrayLike, **options: Any
    ) -> float:
        """`detection_average_precision` with these objects."""
        return detection_average_precision(self.images, self.boxes, self.scores, object_images, object_boxes, **options)


def detect(
    model: Any, bags: Any, windows: ArrayLike, *, threshold: float = 0.3, most_per_image: int | None = None
) -> Any:
    """Rank the windows of all images by score, without those that a better window of their image overlaps strongly.

    Candidates are windows of an image. A model trained on labels of whole images, ``LatentRankSVC().fit(bags, y)``, has
    never seen a box.

    Parameters
    ----------
    model : fitted latent machine
    bags : Bags, or sequence of 2-D arrays
        One bag an image.
    windows : array of shape (n_candidates, 4)
        The box of each candidate, bag by bag, in the order of ``bags.candidates()``.
    threshold : float, default 0.3
        Of `non_maxima_suppression`.
    most_per_image : int, optional
        The largest number of windows to keep for each image. Default: all.

    Returns
    -------
    Detections, or a list of K of them for a model of K labels

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.latent import Bags, LatentRankSVC, detect
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(30) % 3 == 0
    >>> X = rng.normal(size=(30, 4, 3))
    >>> X[y, 1] += 4.0
    >>> windows = np.tile([[0, 0, 9, 9], [10, 0, 19, 9], [0, 10, 9, 19], [10, 10, 19, 19]], (30, 1))
    >>> model = LatentRankSVC(C=10.0).fit(list(X), y)
    >>> found = detect(model, list(X), windows)
    >>> found.candidates[:3].tolist(), found.scores.shape
    ([1, 1, 1], (120,))
    >>> objects = np.flatnonzero(y)
    >>> found.average_precision(objects, np.tile([[10, 0, 19, 9]], (objects.size, 1))) > 0.9
    True
    """
    bags = as_bags(bags)
    boxes = check_boxes(windows, "windows")
    if boxes.shape != (bags.n_candidates, 4):
        raise ValueError(f"windows have shape {boxes.shape}, but there are {bags.n_candidates} candidates")
    if most_per_image is not None and most_per_image < 1:
        raise ValueError(f"most_per_image must be at least 1, got {most_per_image}")
    scores = model.score_candidates(bags)
    bag_of = np.repeat(np.arange(len(bags)), bags.sizes)
    columns = scores[:, None] if scores.ndim == 1 else scores
    found = [_of_one_class(bags, boxes, bag_of, column, threshold, most_per_image) for column in columns.T]
    return found[0] if scores.ndim == 1 else found


def _of_one_class(
    bags: Bags,
    boxes: NDArray[np.float64],
    bag_of: NDArray[np.int64],
    scores: NDArray[np.float64],
    threshold: float,
    most_per_image: int | None,
) -> Detections:
    kept = non_maxima_suppression(boxes, scores, threshold=threshold, groups=bag_of)
    if most_per_image is not None:
        by_image = np.argsort(bag_of[kept], kind="stable")
        sizes = np.bincount(bag_of[kept], minlength=len(bags))
        before = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        place = np.empty(kept.size, np.int64)
        place[by_image] = np.arange(kept.size) - before[bag_of[kept][by_image]]
        kept = kept[place < most_per_image]
    own = bag_of[kept]
    return Detections(bags.ids[own], boxes[kept], scores[kept], kept - bags.offsets[:-1][own])


def plot_localisations(
    windows: ArrayLike,
    bags: Bags,
    choices: ArrayLike,
    shown: Sequence[int],
    *,
    images: Sequence[Any] | None = None,
    truth: Sequence[ArrayLike] | None = None,
    labels: Sequence[str] | None = None,
) -> Any:
    """Plot where a model looks during training: a row for each round, a column for each image.

    Parameters
    ----------
    windows : array of shape (n_candidates, 4)
        As for `detect`.
    bags : Bags
        The training bags.
    choices : array of int of shape (n_rows, n_bags)
        Candidates, counted within their bags: ``model.chosen_history_``, or rows of several models; -1: none.
    shown : sequence of int
        Which bags.
    images : sequence of arrays, optional
        The pictures of the shown bags. Without them, all windows are drawn in grey.
    truth : sequence of arrays of shape (m, 4), optional
        True boxes of the shown bags, drawn dashed.
    labels : sequence of str, optional
        A name for each row; by default the rows are the rounds of training, and the last one is its end.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge import Bags
    >>> from rankhinge.latent import plot_localisations
    >>> windows = [[0, 0, 9, 9], [10, 0, 19, 9]] * 2
    >>> figure = plot_localisations(windows, Bags([np.eye(2), np.eye(2)]), choices=[[0, 1], [1, 1]], shown=[0, 1])
    >>> len(figure.axes)
    4
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle
    except ImportError:
        raise ImportError("plot_localisations needs matplotlib: pip install 'rankhinge[plot]'") from None
    boxes, table = np.asarray(windows, dtype=np.float64), np.atleast_2d(np.asarray(choices))
    if boxes.shape != (bags.n_candidates, 4):
        raise ValueError(f"windows have shape {boxes.shape}, but there are {bags.n_candidates} candidates")
    if table.shape[1] != len(bags):
        raise ValueError(f"choices have {table.shape[1]} columns, but there are {len(bags)} bags")
    if np.any(table >= bags.sizes):
        row, b = np.argwhere(table >= bags.sizes)[0]
        raise ValueError(f"choices[{row}, {b}] is {table[row, b]}, but bag {b} has {bags.sizes[b]} candidates")
    strange = [b for b in shown if not 0 <= b < len(bags)]
    if strange:
        raise ValueError(f"shown has {strange[0]}, but there are {len(bags)} bags")
    figure = Figure(figsize=(2.0 * len(shown), 2.0 * len(table)), layout="constrained")
    axes = figure.subplots(len(table), len(shown), squeeze=False)

    def outline(axis: Any, box: NDArray[np.float64], **style: Any) -> None:
        axis.add_patch(Rectangle((box[0], box[1]), box[2] - box[0], box[3] - box[1], fill=False, **style))

    for column, b in enumerate(shown):
        own = boxes[bags.offsets[b] : bags.offsets[b + 1]]
        for row, chosen in enumerate(table[:, b]):
            axis = axes[row, column]
            if images is None:
                for box in own:
                    outline(axis, box, edgecolor="0.85", linewidth=0.5)
            else:
                axis.imshow(images[column])
            for box in [] if truth is None else np.reshape(np.asarray(truth[column], dtype=np.float64), (-1, 4)):
                outline(axis, box, edgecolor="tab:green", linestyle="--", linewidth=1.2)
            if chosen >= 0:
                outline(axis, own[chosen], edgecolor="tab:red", linewidth=1.8)
            axis.set(xlim=(own[:, 0].min(), own[:, 2].max()), ylim=(own[:, 3].max(), own[:, 1].min()), aspect="equal")
            axis.set(xticks=[], yticks=[])
    if labels is None:
        labels = [*(f"round {row}" for row in range(1, len(table))), "end"]
    for row, label in enumerate(labels):
        axes[row, 0].set_ylabel(label)
    return figure
