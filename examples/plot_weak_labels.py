"""
Weak labels: which window holds the 3?
======================================

Each strip shows five digits. We know whether there is a 3 in it, not where. ``LatentRankSVC`` scores a strip by its
best window, and learns which window that is along with the ranking.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from rankhinge import Bags, LatentRankSVC

images, digit = load_digits(return_X_y=True)
images = images / 16
rng = np.random.default_rng(0)


def strips(n, pool):
    """n strips of five digits; one in four has a 3, at a place that is returned but not used for training."""
    others, threes = pool[digit[pool] != 3], pool[digit[pool] == 3]
    chosen = rng.choice(others, size=(n, 5))
    y = np.arange(n) % 4 == 0
    place = rng.integers(5, size=n)
    chosen[y, place[y]] = rng.choice(threes, size=int(y.sum()))
    return images[chosen], y, place


pool = rng.permutation(len(images))
windows, y, place = strips(200, pool[:900])
windows_test, y_test, place_test = strips(200, pool[900:])

# %%
# A list of candidates for each strip, and a label for each strip:

model = LatentRankSVC(loss="ap", C=100.0).fit(Bags(list(windows)), y)
bags = Bags(list(windows_test))
scores, found = model.decision_function(bags), model.predict_candidates(bags)
right = (found == place_test)[y_test].mean()
print(
    f"average precision of the strips {model.score(bags, y_test):.3f}; the 3 is found in {right:.0%} of those with one"
)

# %%
# The best eight strips, each with the window that it was ranked by:

best = np.argsort(-scores)[:8]
fig, axes = plt.subplots(4, 2, figsize=(7, 3.4), layout="constrained")
for ax, b in zip(axes.T.flat, best):
    strip = np.hstack([np.pad(w.reshape(8, 8), 1) for w in windows_test[b]])
    ax.imshow(strip, cmap="gray_r")
    ax.add_patch(plt.Rectangle((10 * found[b] - 0.5, -0.5), 10, 10, fill=False, ec="C0" if y_test[b] else "C3", lw=2.5))
    ax.axis("off")
fig.suptitle("the best-ranked strips and their best windows (red: no 3 in it)", fontsize=10)
plt.show()
