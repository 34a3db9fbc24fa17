"""Weak supervision: samples are bags of candidates, and which candidate is meant is not known."""

from typing import TYPE_CHECKING

from rankhinge._public import publish, shown_from
from rankhinge.latent.bags import Bags
from rankhinge.latent.cv import LatentRankSVCCV
from rankhinge.latent.detect import Detections, detect, plot_localisations
from rankhinge.latent.rank_svc import LatentRankSVC
from rankhinge.latent.transformer import BagTransformer

if TYPE_CHECKING:
    from rankhinge.papers.machines import LatentStructuralSVC as LatentStructuralSVC
    from rankhinge.papers.machines import LatentSVC as LatentSVC
else:
    __getattr__ = shown_from(__name__, "rankhinge.papers.machines", "LatentSVC", "LatentStructuralSVC")

__all__ = [
    "BagTransformer",
    "Bags",
    "Detections",
    "LatentRankSVC",
    "LatentRankSVCCV",
    "LatentSVC",
    "LatentStructuralSVC",
    "detect",
    "plot_localisations",
]

publish(__name__)
