"""Layer-wise training of piecewise-linear networks (LW-SVM): each layer in turn is a structured SVM.

The way through the files: `chain` reads the network, `links` says what each of its modules does, `criteria` what a
block of samples loses, `surrogate` bounds that by convex functions of one layer's weights, `frank_wolfe` minimises
the bound, and `trainer` goes from layer to layer.
"""

from rankhinge.torch.layerwise.trainer import LayerwiseTrainer

__all__ = ["LayerwiseTrainer"]
