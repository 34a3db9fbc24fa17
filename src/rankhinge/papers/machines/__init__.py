"""The papers' own machines: AP-SVM-APPX, latent SVM, latent structural SVM.

Users import them from `rankhinge`, `rankhinge.svm` and `rankhinge.latent`, which load them when they are asked for.
"""

from rankhinge._public import publish
from rankhinge.papers.machines.approximate import ApproximateRankSVC
from rankhinge.papers.machines.latent_svc import LatentSVC
from rankhinge.papers.machines.structural import LatentStructuralSVC

__all__ = ["ApproximateRankSVC", "LatentSVC", "LatentStructuralSVC"]

publish(__name__, "rankhinge")
