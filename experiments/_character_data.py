"""IIIT 5K-Word as bags: a word is a bag of boxes, each described by its histogram of oriented gradients.

Boxes are those of the annotation, without their characters, or proposals that know nothing of it: connected parts of
dark and of bright ink, and windows that slide along the word. The papers take theirs from a character detector.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from _run import data_file
from numpy.typing import NDArray
from scipy import ndimage

from rankhinge.detection import iou, non_maxima_suppression
from rankhinge.latent import Bags

SIDE, CELL, N_BINS = 48, 8, 9
N_CELLS = SIDE // CELL
LEAST_BOXES = 150
N_PROPOSALS = 20
# Patches that are described together.
BATCH = 2000


@dataclass(frozen=True)
class Words:
    """Words of one split: bags, the box of each candidate (x0, y0, x1, y1), and the characters in each word."""

    bags: Bags
    boxes: NDArray[np.float64]
    characters: tuple[tuple[str, ...], ...]
    # Share of the annotated boxes that some candidate of the word overlaps by half.
    recall: float

    def contain(self, character: str) -> NDArray[np.int64]:
        return np.array([character in word for word in self.characters], dtype=np.int64)


def words_of(split: str, candidates: str, step: int = 1) -> Words:
    """Every `step`-th word of ``"train"`` or ``"test"``; upper and lower case are different characters.

    `candidates` is ``"annotated"`` or ``"proposed"``.
    """
    with np.load(data_file("iiit5k", "compact_gray48.npz")) as file:
        pixels, shapes = file[f"{split}_pixels"], file[f"{split}_shape"].astype(np.int64)
        xywh, owners, characters = (file[f"{split}_box_{what}"] for what in ("xywh", "word", "char"))
    starts = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
    annotated = np.column_stack([xywh[:, :2], xywh[:, :2] + xywh[:, 2:]]).astype(np.float64)
    boxes, patches, inside, hits = [], [], [], []
    for word in range(0, len(shapes), step):
        own = np.flatnonzero(owners == word)
        if not own.size:
            continue
        image = pixels[starts[word] : starts[word + 1]].reshape(shapes[word])
        mine = annotated[own] if candidates == "annotated" else proposals(image)
        boxes.append(mine)
        patches += [patch_of(image, box) for box in mine]
        inside.append(tuple(characters[own].tolist()))
        hits += (iou(annotated[own], mine).max(axis=1) >= 0.5).tolist()
    rows = np.concatenate([gradients(np.stack(patches[a : a + BATCH])) for a in range(0, len(patches), BATCH)])
    offsets = np.concatenate([[0], np.cumsum([len(mine) for mine in boxes])])
    return Words(Bags(rows, offsets=offsets), np.concatenate(boxes), tuple(inside), float(np.mean(hits)))


def frequent_characters() -> list[str]:
    """The characters with at least 150 boxes in the training words: 22, as in the paper."""
    with np.load(data_file("iiit5k", "compact_gray48.npz")) as file:
        counts = Counter(file["train_box_char"].tolist())
    return sorted(character for character, count in counts.items() if count >= LEAST_BOXES)


def proposals(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """At most 20 boxes: connected parts first, the largest first, then sliding windows, evenly."""
    height, width = image.shape
    level = otsu(image)
    parts = [box for ink in (image <= level, image > level) for box in connected(ink)]
    parts.sort(key=lambda box: -(box[2] - box[0]) * (box[3] - box[1]))
    slid = []
    for share in (0.5, 0.8):
        side = min(share * height, width)
        n = max(1, round(3 * (width - side) / side) + 1)
        slid += [(x, 0.0, x + side, float(height)) for x in np.linspace(0, width - side, n)]
    # Every second of the slid windows first, so that what is left out is left out evenly.
    slid = slid[::2] + slid[1::2]
    every = np.array([*parts, *slid], dtype=np.float64).reshape(-1, 4)
    kept = non_maxima_suppression(every, -np.arange(len(every), dtype=float), threshold=0.75)
    return every[kept[:N_PROPOSALS]]


def connected(ink: NDArray[np.bool_]) -> list[tuple[float, float, float, float]]:
    """Boxes of connected parts that are neither specks nor most of the word."""
    height, _ = ink.shape
    found = []
    for rows, columns in ndimage.find_objects(ndimage.label(ink, structure=np.ones((3, 3)))[0]):
        tall, wide = rows.stop - rows.start, columns.stop - columns.start
        if tall >= 0.35 * height and 2 <= wide <= 1.6 * height:
            found.append((float(columns.start), float(rows.start), float(columns.stop), float(rows.stop)))
    return found


def otsu(image: NDArray[np.uint8]) -> int:
    """The grey value that parts dark from bright with the least variance within."""
    counts = np.bincount(image.ravel(), minlength=256).astype(np.float64)
    below, mass = np.cumsum(counts), np.cumsum(counts * np.arange(256))
    above = below[-1] - below
    with np.errstate(invalid="ignore", divide="ignore"):
        between = below * above * (mass / below - (mass[-1] - mass) / above) ** 2
    return int(np.argmax(np.nan_to_num(between)))


def patch_of(image: NDArray[np.uint8], box: NDArray[Any]) -> NDArray[np.float32]:
    """The box, resized to 48 × 48 pixels as in the paper, bilinearly."""
    x, y = (
        np.clip(low + (np.arange(SIDE) + 0.5) * (high - low) / SIDE - 0.5, 0, most - 1)
        for low, high, most in ((box[0], box[2], image.shape[1]), (box[1], box[3], image.shape[0]))
    )
    x0, y0 = x.astype(np.int64), y.astype(np.int64)
    x1, y1 = np.minimum(x0 + 1, image.shape[1] - 1), np.minimum(y0 + 1, image.shape[0] - 1)
    fx, fy = x - x0, (y - y0)[:, None]
    upper, lower = (image[at][:, x0] * (1 - fx) + image[at][:, x1] * fx for at in (y0, y1))
    return ((1 - fy) * upper + fy * lower).astype(np.float32) / 255


def gradients(patches: NDArray[np.float32]) -> NDArray[np.float32]:
    """Histograms of oriented gradients (Dalal and Triggs 2005): nine bins, cells of 8 × 8, blocks of 2 × 2; 900."""
    n = len(patches)
    across, down = np.zeros_like(patches), np.zeros_like(patches)
    across[:, :, 1:-1] = patches[:, :, 2:] - patches[:, :, :-2]
    down[:, 1:-1] = patches[:, 2:] - patches[:, :-2]
    angle = np.arctan2(down, across) % np.pi
    which = np.minimum((angle * (N_BINS / np.pi)).astype(np.int64), N_BINS - 1)
    cell = np.arange(SIDE) // CELL
    where = (np.arange(n)[:, None, None] * N_CELLS + cell[:, None]) * N_CELLS + cell
    total = np.bincount((where * N_BINS + which).ravel(), np.hypot(across, down).ravel(), n * N_CELLS**2 * N_BINS)
    cells = total.reshape(n, N_CELLS, N_CELLS, N_BINS) / CELL**2
    last = N_CELLS - 1
    blocks = np.stack([cells[:, a : a + last, b : b + last] for a in (0, 1) for b in (0, 1)], axis=3)
    flat = blocks.reshape(n, last, last, 4 * N_BINS)
    flat = np.minimum(flat / np.sqrt((flat**2).sum(axis=-1, keepdims=True) + 1e-10), 0.2)
    flat /= np.sqrt((flat**2).sum(axis=-1, keepdims=True) + 1e-10)
    return flat.reshape(n, -1).astype(np.float32)
