"""
Which loss? What a mistake costs at each rank
=============================================

Every loss here is one minus a metric. They differ in where on the list a mistake is expensive. We take a perfect list
of 20 positives and 180 negatives, move one negative up among the positives, and watch each loss.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankhinge import ranking_loss

n_positives, n = 20, 200
relevant = np.arange(n) < n_positives
scores = -np.arange(n, dtype=float)


def cost(loss, rank):
    """The loss of a list that is perfect except for one negative at `rank`."""
    moved = scores.copy()
    moved[-1] = -(rank - 1.5)
    return ranking_loss(moved, relevant, loss=loss)


# %%
# One negative intrudes at a rank among the positives. AUC hardly cares where; reciprocal rank cares about the first
# place only.

ranks = np.arange(1, n_positives + 2)
losses = {"ap": "C0", "ndcg": "C2", "rbp": "C1", "rr": "C3", "auc": "C7"}
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for loss, color in losses.items():
    ax.semilogy(ranks, np.maximum([cost(loss, rank) for rank in ranks], 1e-5), "o-", ms=3, color=color, label=loss)
ax.set(
    xlabel="rank at which one negative intrudes",
    ylabel="loss",
    xticks=[1, 5, 10, 15, 20],
    ylim=(1e-4, 1),
    title="20 positives, 180 negatives",
)
ax.legend(title="loss=")
plt.show()

# %%
# * ``"ap"``: the whole list counts, its top most. The usual choice for rare positives.
# * ``"ndcg"``: like AP, a little flatter, and it knows graded labels. The usual choice for search results.
# * ``"rbp"``, ``"rr"``: someone reads from the top and stops soon.
# * ``"auc"``: all pairs count equally, wherever they stand.
