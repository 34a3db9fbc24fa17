"""
Choosing C for the convex bound
===============================

``RankSVCCV`` fits all folds along a path over C in one go: they share every pass over the data. ``bound="convex"`` has
one parameter, the C of the papers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from rankhinge import RankSVC, rank_svm_path
from rankhinge.metrics import average_precision

X, y = load_digits(return_X_y=True)
X, y = X / 16, y == 8
rng = np.random.default_rng(0)
fold = rng.permutation(len(X)) % 5

# %%
# ``rank_svm_path`` returns the coefficients for each C. It keeps what it has learnt at one C for the next.

Cs = np.logspace(0, 4.5, 8)
train, test = np.empty((5, len(Cs))), np.empty((5, len(Cs)))
for k in range(5):
    path = rank_svm_path(X[fold != k], y[fold != k], Cs=Cs, loss="ap")
    for i, coef in enumerate(path.coefs[:, 0]):
        train[k, i] = average_precision(y[fold != k], X[fold != k] @ coef)
        test[k, i] = average_precision(y[fold == k], X[fold == k] @ coef)

# %%
# Small C: the model is too stiff. Large C: it ranks the training part better and better, and the test part no longer.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for values, label, color in ((train, "training part", "C7"), (test, "test part", "C0")):
    mean, spread = values.mean(axis=0), values.std(axis=0)
    ax.fill_between(Cs, mean - spread, mean + spread, color=color, alpha=0.2, lw=0)
    ax.semilogx(Cs, mean, "o-", color=color, label=label)
best = Cs[test.mean(axis=0).argmax()]
ax.axvline(best, color="k", lw=0.8, ls="--")
ax.set(xlabel="C", ylabel="average precision", title=f"five folds; the best C is about {best:.0f}")
ax.legend()
plt.show()

# %%
# The model for that C, fitted to all data:

print(RankSVC(bound="convex", C=best).fit(X, y).status_)
