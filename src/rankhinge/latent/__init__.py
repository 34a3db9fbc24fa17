"""Weak supervision: samples are bags of candidates, and which candidate is meant is not known."""

from rankhinge.latent.bags import Bags
from rankhinge.latent.rank_svc import LatentRankSVC
from rankhinge.latent.transformer import BagTransformer

__all__ = ["BagTransformer", "Bags", "LatentRankSVC"]
