"""Whether a loss is suitable."""

from __future__ import annotations

from rankhinge.losses.base import RankingLoss
from rankhinge.losses.names import get_loss
from rankhinge.losses.suitability import SuitabilityReport, judge_loss

__all__ = ["check_suitable"]


def check_suitable(loss: str | RankingLoss, n_positives: int, n_negatives: int) -> SuitabilityReport:
    """Check that fast inference is exact for a loss on lists of one size.

    Of the papers' four conditions this checks C3: ``t(j + 1, i) ≥ t(j, i)`` for all j, i, up to rounding. C1 (the loss
    depends on the ± pattern only) and C2 (it decomposes over the negatives) hold for every loss given by a step. C4
    (the step takes constant time) is not checked: it affects speed only. Steps must also be finite, with
    ``t(j, i) ≤ 0`` and ``Σ -t ≤ 1``, so that the loss lies in [0, 1]. The check evaluates the step O(P N) times.

    Parameters
    ----------
    loss : str or RankingLoss
    n_positives, n_negatives : int

    Returns
    -------
    SuitabilityReport

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.losses import DCG, check_suitable
    >>> hard_cut = DCG(lambda rank: np.where(rank <= 3, 1 / np.log2(1.0 + rank), 0.0))
    >>> report = check_suitable(hard_cut, n_positives=2, n_negatives=4)
    >>> report.suitable, report.witness["j"], report.witness["i"]
    (False, 1, 2)
    """
    loss = get_loss(loss)
    if n_positives < 1 or n_negatives < 1:
        raise ValueError(f"n_positives={n_positives} and n_negatives={n_negatives} must both be at least 1")
    return judge_loss(loss, n_positives, n_negatives)
