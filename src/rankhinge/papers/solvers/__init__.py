"""The papers' own solvers: plain cutting planes, block-coordinate Frank-Wolfe, stochastic subgradients."""

from rankhinge.papers.solvers.cutting_plane import CuttingPlane
from rankhinge.papers.solvers.frank_wolfe import FrankWolfe
from rankhinge.papers.solvers.subgradient import Subgradient

__all__ = ["SOLVERS", "CuttingPlane", "FrankWolfe", "Subgradient"]

SOLVERS = {"cutting-plane": CuttingPlane, "frank-wolfe": FrankWolfe, "subgradient": Subgradient}
