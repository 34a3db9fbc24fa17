"""Losses by their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from rankhinge.losses.auc import AUC, PartialAUC
from rankhinge.losses.average_precision import APAt, AveragePrecision
from rankhinge.losses.base import RankingLoss
from rankhinge.losses.bedroc import BEDROC
from rankhinge.losses.counted import F1At, HitAt, PrecisionAt, RecallAt, RPrecision
from rankhinge.losses.dcg import NDCG, RBP, SoftNDCG
from rankhinge.losses.dcg_at import NDCGAt
from rankhinge.losses.push import PNormPush, TopPush
from rankhinge.losses.reciprocal_rank import ReciprocalRank
from rankhinge.losses.zero_one import ZeroOne

__all__ = ["get_loss"]

_BUILT_IN: dict[str, Callable[[], RankingLoss]] = {
    "ap": AveragePrecision,
    "ndcg": NDCG,
    "rr": ReciprocalRank,
    "auc": AUC,
    "rbp": RBP,
    "zero-one": ZeroOne,
    "r-precision": RPrecision,
    "partial-auc": PartialAUC,
    "top-push": TopPush,
    "p-norm-push": PNormPush,
    "bedroc": BEDROC,
}
# Names followed by @ and a number.
_AT: dict[str, Callable[[Any], RankingLoss]] = {
    "ndcg": NDCGAt,
    "ap": APAt,
    "precision": PrecisionAt,
    "recall": RecallAt,
    "f1": F1At,
    "hit": HitAt,
    "soft-ndcg": lambda k: SoftNDCG(int(k) if k.isdecimal() else k),
    "rbp": lambda number: RBP(_float(number)),
    "partial-auc": lambda number: PartialAUC(_float(number)),
    "p-norm-push": lambda number: PNormPush(_float(number)),
    "bedroc": lambda number: BEDROC(_float(number)),
}
# What other libraries call them.
_HABITS = {
    "map": "ap",
    "average-precision": "ap",
    "mrr": "rr",
    "reciprocal-rank": "rr",
    "roc-auc": "auc",
    "p": "precision",
    "success": "hit",
    "rprec": "r-precision",
    "0-1": "zero-one",
    "hinge": "zero-one",
}
_INSTANCES: dict[str, RankingLoss] = {}
_MOST_INSTANCES = 256


def get_loss(loss: str | RankingLoss) -> RankingLoss:
    """Return the loss object for a name. A loss object is returned as it is.

    Parameters
    ----------
    loss : str or RankingLoss
        A loss object or one of the names ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, ``"zero-one"``,
        ``"r-precision"``, ``"partial-auc"``, ``"top-push"``, ``"p-norm-push"``, ``"bedroc"``. With a number of places
        or a share of the list: ``"ndcg@10"``, ``"ap@10"``, ``"precision@100"`` (``"p@100"``), ``"recall@1%"``,
        ``"hit@1"``, ``"f1@50"``, ``"soft-ndcg@10"``. Case does not matter. The names of other libraries work too:
        ``"map"``, ``"mrr"``, ``"roc_auc"``, ``"average_precision"``.

    Examples
    --------
    >>> from rankhinge.losses import get_loss
    >>> get_loss("ndcg"), get_loss("NDCG@10"), get_loss("recall@1%")
    (NDCG(), NDCGAt(10), RecallAt(0.01))
    """
    if isinstance(loss, RankingLoss):
        return loss
    if isinstance(loss, str) and loss in _INSTANCES:
        return _INSTANCES[loss]
    made = _make(loss) if isinstance(loss, str) else None
    if made is None:
        raise ValueError(f"unknown loss {loss!r}{_suggestion(loss)}: choose one of {_choices()} or give a loss object")
    # One instance per name, so that its table of discounts is built only once.
    if len(_INSTANCES) < _MOST_INSTANCES:
        _INSTANCES[loss] = made
    return made


def _make(name: str) -> RankingLoss | None:
    """The loss of this name, or None if there is none. Raises a ValueError if the number after the @ is wrong."""
    word, at, number = name.lower().partition("@")
    plain = re.sub(r"[\s_]+", "-", word.strip())
    plain, number = _HABITS.get(plain, plain), number.strip()
    if not at:
        return _BUILT_IN[plain]() if plain in _BUILT_IN else None
    if plain not in _AT:
        return None
    try:
        return _AT[plain](number)
    except ValueError as error:
        raise ValueError(f"loss {name!r}: {error}") from None


def _float(number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise ValueError(f"{number!r} is not a number") from None


def _choices() -> list[str]:
    return [*_BUILT_IN, *(f"{name}@k" for name in ("ndcg", "ap", "precision", "recall", "f1", "hit", "soft-ndcg"))]


def _suggestion(name: object) -> str:
    """The most similar valid names, if any."""
    if not isinstance(name, str):
        return ""
    plain, at, number = name.strip().lower().replace("_", "-").partition("@")
    known = [*(_AT if at else [*_BUILT_IN, *(f"{word}@10" for word in _AT if word not in _BUILT_IN)])]
    known += [habit for habit, word in _HABITS.items() if word in known]
    near = get_close_matches(plain, [word.partition("@")[0] for word in known], n=3)
    full = {word.partition("@")[0]: word for word in known}
    words = dict.fromkeys(f"{word}@{number}" if at else full[word] for word in near)
    return f" (did you mean {' or '.join(map(repr, words))}?)" if words else ""
