"""Characters in words (002 Figures 3–8): which words contain a character whose box is not known? IIIT 5K-Word.

``make experiments ONLY=characters`` computes what is missing in ``results/characters.json`` and writes
``docs/experiments/characters.md``. Words are bags of proposed boxes, and beside them of the annotated ones. Parameters
are chosen by five folds of the training words; then all of them are fitted from three starts. Proposed boxes are for
all characters; what stands beside them (latent SSVM, trimming, annotated boxes) is for every fifth.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import _characters_page
import numpy as np
from _character_data import Words, frequent_characters, words_of
from _latent_choice import FEW, MACHINES, N_FOLDS, PAIR, Search, average_precision, chosen, subsample, trimmed
from _run import Run, main

N_STARTS = 3
SEARCH = Search(powers=(1, 2), per_decade=1, width=1, most_values=5)
QUICK = Search(powers=(1,), n_folds=1, per_decade=1, width=1, most_values=1)
# With the latent SSVM: all three machines see few words.
FEW_SEARCH = Search(powers=(0, 1, 2), per_decade=1, width=1, most_values=5)
QUICK_STEP, QUICK_FEW = 20, (5, 10)
# Of the trial of trimming: percent of the negatives' candidates.
TRIMS = (0.0, 1.0, 5.0)
# Every so-manieth character takes part in what stands beside the main comparison.
BESIDE = 5
SETTINGS = {
    "choice/": SEARCH,
    "test/": [SEARCH, N_STARTS],
    "few/": [FEW_SEARCH, N_STARTS, FEW],
    "trimmed/": [SEARCH, N_FOLDS],
}


@cache
def split(name: str, candidates: str, step: int) -> Words:
    return words_of(name, candidates, step)


def tested(kind: str, options: dict[str, Any], train: Words, test: Words, y: np.ndarray, character: str) -> Any:
    """Fitted to these words from several starts, judged on the test words."""
    model = MACHINES[kind](n_starts=N_STARTS, random_state=0, **dict(SEARCH.options), **options).fit(train.bags, y)
    scores = model.decision_function(test.bags)
    return {"AP": average_precision(test.contain(character), scores), "objective": float(model.objective_)}


def compare(run: Run, candidates: str, characters: list[str]) -> None:
    """Latent AP-SVM and latent SVM on all words."""
    step = QUICK_STEP if run.quick else 1
    for character in characters:
        for kind in PAIR:
            key = f"{candidates}/{kind}/{character}"

            def choice(kind: str = kind, character: str = character) -> Any:
                words = split("train", candidates, step)
                return chosen(kind, words.bags, words.contain(character), QUICK if run.quick else SEARCH)

            def test(kind: str = kind, character: str = character, key: str = key) -> Any:
                words, found = split("train", candidates, step), run[f"choice/{key}"]
                options = {"C": found["C"], **found["options"]}
                return tested(
                    kind, options, words, split("test", candidates, step), words.contain(character), character
                )

            run.cell(f"choice/{key}", choice)
            run.cell(f"test/{key}", test)


def compare_few(run: Run, characters: list[str]) -> None:
    """All three machines on one subsample of each class."""
    step = QUICK_STEP if run.quick else 1
    for character in characters:
        for kind in MACHINES:

            def compute(kind: str = kind, character: str = character) -> Any:
                words = split("train", "proposed", step)
                y = words.contain(character)
                index = subsample(y, QUICK_FEW if run.quick else FEW)
                few, y = Words(words.bags[index], words.boxes, words.characters, words.recall), y[index]
                found = chosen(kind, few.bags, y, QUICK if run.quick else FEW_SEARCH)
                options = {"C": found["C"], **found["options"]}
                return {**found, **tested(kind, options, few, split("test", "proposed", step), y, character)}

            run.cell(f"few/{kind}/{character}", compute)


def compare_trimmed(run: Run, characters: list[str]) -> None:
    """Does latent AP-SVM gain where the most confusing candidates of negatives are left out?"""
    step = QUICK_STEP if run.quick else 1
    for percent in TRIMS:
        for character in characters:

            def compute(percent: float = percent, character: str = character) -> Any:
                words, C = split("train", "proposed", step), run[f"choice/proposed/{PAIR[0]}/{character}"]["C"]
                return trimmed(percent, C, words.bags, words.contain(character), 1 if run.quick else N_FOLDS)

            run.cell(f"trimmed/{percent:g}/{character}", compute)


def work(run: Run) -> None:
    characters = frequent_characters()
    mine = characters[:1] if run.quick else characters
    some = mine[::BESIDE]
    run.facts = {
        "characters": characters,
        "beside": some,
        "n_starts": N_STARTS,
        "coarse_step": SEARCH.coarse_step,
        "few": list(QUICK_FEW if run.quick else FEW),
    }
    run.expect(len(mine) * 2 * len(PAIR) + len(some) * (2 * len(PAIR) + len(MACHINES) + len(TRIMS)) + 2)
    step = QUICK_STEP if run.quick else 1
    for candidates in ("proposed", "annotated"):

        def facts(candidates: str = candidates) -> Any:
            parts = {name: split(name, candidates, step) for name in ("train", "test")}
            counts = {character: int(parts["train"].contain(character).sum()) for character in characters}
            return {
                "n_words": {name: len(words.bags) for name, words in parts.items()},
                "recall": {name: words.recall for name, words in parts.items()},
                "mean_size": parts["train"].bags.n_candidates / len(parts["train"].bags),
                "n_positives": counts,
            }

        run.cell(f"facts/{candidates}", facts)
    compare(run, "proposed", mine)
    compare_few(run, some)
    compare_trimmed(run, some)
    compare(run, "annotated", some)


if __name__ == "__main__":
    main("characters", __doc__ or "", work, _characters_page.page, SETTINGS)
