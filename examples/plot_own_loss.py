"""
A loss of your own
==================

A loss is one function: its *step*. It says by how much the loss changes when the j-th best negative moves from just
before to just behind the i-th best positive. The library compiles it, checks it, and uses it wherever a loss goes.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankhinge import RankSVC, most_violating_ranking
from rankhinge.losses import CustomLoss, check_suitable

# %%
# Suppose that a visitor reads on from one result to the next with a probability that falls with the square root of the
# rank. The worth of rank r is then ``r ** -0.5``, and one minus the share of the possible worth is a loss:


def step(j, i, n_positives, n_negatives):
    best = 0.0
    for rank in range(1, n_positives + 1):
        best += rank**-0.5
    return ((i + j) ** -0.5 - (i + j - 1) ** -0.5) / best


square_root = CustomLoss(step, name="square root")

# %%
# Fast inference is exact if the step does not fall with j. ``check_suitable`` looks for a counterexample:

print(check_suitable(square_root, n_positives=10, n_negatives=50).suitable)

# %%
# What does it ask of a model? The coefficients of the most violating ranking say how hard each sample is pushed. Random
# scores of 12 positives and 60 negatives, for three losses:

rng = np.random.default_rng(0)
relevant = np.arange(72) < 12
scores = rng.normal(size=72) + relevant
order = np.argsort(-scores)
fig, axes = plt.subplots(3, 1, figsize=(7, 5), sharex=True, layout="constrained")
for ax, loss in zip(axes, ("ap", "auc", square_root)):
    push = -most_violating_ranking(scores, relevant, loss=loss).coefficients[order]
    colors = np.where(relevant[order], "C0", "C3")
    ax.bar(np.arange(1, 73), push, color=colors)
    ax.axhline(0, color="k", lw=0.6)
    ax.set_ylabel(loss if isinstance(loss, str) else loss.name)
axes[0].set_title("where the model pushes: positives (blue) up, negatives (red) down")
axes[-1].set_xlabel("rank by the present scores")
plt.show()

# %%
# It trains like any other loss:

X = rng.normal(size=(400, 10))
y = X[:, 0] + X[:, 1] + rng.normal(size=400) > 2
model = RankSVC(loss=square_root, bound="convex", C=10.0).fit(X, y)
print(f"{model.status_}, gap {model.gap_:.1e}, score {model.score(X, y):.3f}")
