"""
A fit that proves how good it is
================================

Each pass over the data gives a lower bound on the best objective that any model could have. The fit stops when its own
objective is within ``tol`` of that bound.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from rankhinge import RankSVC

X, y = load_breast_cancer(return_X_y=True)
X, y = scale(X), y == 0  # malignant first

# %%
# We fit the convex bound twice: by the default solver, and by the plain cutting planes of Joachims, Finley and Yu
# (2009).

fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
for name, color in (("bundle", "C0"), ("cutting-plane", "C1")):
    model = RankSVC(loss="ap", bound="convex", C=100.0, tol=1e-4, solver=name).fit(X, y)
    history = model.history_
    passes, primal, dual = (np.ravel(history[key]) for key in ("passes", "primal", "dual"))
    axes[0].semilogy(passes, np.minimum.accumulate(primal), color=color, label=f"{name}: objective")
    axes[0].semilogy(passes, np.maximum(dual, 1e-2), color=color, ls=":", label=f"{name}: lower bound")
    axes[1].semilogy(passes, np.maximum(np.ravel(history["gap"]), 1e-12), color=color, label=name)
    print(f"{name:14} {model.n_passes_:3} passes, gap {model.gap_:.1e}, {model.status_}")
axes[0].set(xlabel="passes over X", title="objective and lower bound", ylim=(0.1, None))
axes[1].axhline(1e-4, color="k", lw=0.8, ls="--")
axes[1].set(xlabel="passes over X", title="relative gap; tol is dashed")
axes[0].legend(fontsize="small")
plt.show()
