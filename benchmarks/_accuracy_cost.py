"""Print the seconds that the searches for both bounds take on one set: ``python _accuracy_cost.py SET``.

`RankSVCCV` and `SVMRankerCV` as they are by default, with their refits, on the training part of the first outer fold
and the inner folds of the benchmark; in turns, after one of each that does not count. Long ones run once.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from _accuracy_methods import inner_folds
from _accuracy_sets import LISTS, load

from rankhinge import RankSVCCV, SVMRankerCV

TURNS, LONG = 3, 10.0


def search(part: Any, name: str, bound: str, **options: Any) -> float:
    """Seconds."""
    begin = time.perf_counter()
    if name in LISTS:
        SVMRankerCV(bound=bound, random_state=0, **options).fit(part.X, part.y, qid=part.qid)
    else:
        RankSVCCV(bound=bound, cv=inner_folds(part, 0), random_state=0, **options).fit(part.X, part.y, mask=part.mask)
    return time.perf_counter() - begin


def main(name: str) -> None:
    warnings.simplefilter("ignore")
    part = load("rivals" if name not in LISTS else "lists", name, 0, 0).train
    seconds: dict[str, list[float]] = {"convex": [], "tight": []}
    for bound in seconds:
        search(part, name, bound, Cs=[1.0])
    for _ in range(TURNS):
        for bound, taken in seconds.items():
            taken.append(search(part, name, bound))
        if max(seconds["convex"] + seconds["tight"]) > LONG:
            break
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1])
