"""IIIT 5K-Word as bags: a word is a bag of character boxes, each described by its histogram of oriented gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from _datasets import data_file
from numpy.typing import NDArray
from skimage.feature import hog
from skimage.transform import resize

from rankhinge.latent import Bags

SIDE = 48
LEAST_WORDS = 150


@dataclass(frozen=True)
class Words:
    """Words of one split, the characters in each, and the characters of all boxes."""

    bags: Bags
    characters: tuple[frozenset[str], ...]

    def contain(self, character: str) -> NDArray[np.int64]:
        return np.array([character in word for word in self.characters], dtype=np.int64)


def words_of(split: str) -> Words:
    """All words of ``"train"`` or ``"test"``; upper and lower case are different characters."""
    with np.load(data_file("iiit5k", "compact_gray48.npz")) as file:
        pixels, shapes = file[f"{split}_pixels"], file[f"{split}_shape"].astype(np.int64)
        boxes, owners, characters = (file[f"{split}_box_{what}"] for what in ("xywh", "word", "char"))
    starts = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))])
    images = [pixels[a:b].reshape(shape) for a, b, shape in zip(starts, starts[1:], shapes, strict=False)]
    rows = np.stack([_gradients(images[word], box) for word, box in zip(owners, boxes, strict=True)])
    bags = Bags(rows, bag_ids=owners)
    inside: dict[int, set[str]] = {}
    for word, character in zip(owners.tolist(), characters.tolist(), strict=True):
        inside.setdefault(word, set()).add(character)
    return Words(bags, tuple(frozenset(inside[word]) for word in bags.ids.tolist()))


def _gradients(image: NDArray[np.uint8], box: NDArray[Any]) -> NDArray[np.float32]:
    """The box, resized to 48 × 48 pixels as in the paper: 900 features."""
    left, top, width, height = box
    x, y = max(int(left), 0), max(int(top), 0)
    patch = image[y : max(int(np.ceil(top + height)), y + 2), x : max(int(np.ceil(left + width)), x + 2)]
    square = resize(patch, (SIDE, SIDE), anti_aliasing=False)
    return hog(square, orientations=9, pixels_per_cell=(8, 8), cells_per_block=(2, 2)).astype(np.float32)


def frequent_characters(words: Words) -> list[str]:
    """The characters that at least 150 words contain."""
    every = sorted({character for word in words.characters for character in word})
    return [character for character in every if words.contain(character).sum() >= LEAST_WORDS]
