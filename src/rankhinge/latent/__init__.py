"""Weak supervision: samples are bags of candidates, and which candidate is meant is not known."""

from rankhinge._public import publish
from rankhinge.latent.bags import Bags
from rankhinge.latent.cv import LatentRankSVCCV
from rankhinge.latent.detect import Detections, detect, plot_localisations
from rankhinge.latent.rank_svc import LatentRankSVC
from rankhinge.latent.structural import LatentStructuralSVC
from rankhinge.latent.svc import LatentSVC
from rankhinge.latent.transformer import BagTransformer

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
