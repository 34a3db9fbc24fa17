"""
Many labels at once, some of them unknown
=========================================

Ten labels over the same images: ten ranking problems. They run *in lockstep*: each pass over the data serves all ten.
A mask says which labels are known. Here nine in ten are hidden.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from rankhinge import RankSVC
from rankhinge.metrics import average_precision

X, digit = load_digits(return_X_y=True)
Y = digit[:, None] == np.arange(10)
X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=0.5, random_state=0)
known = np.random.default_rng(0).random(Y_train.shape) < 0.1

# %%
# One call for all labels. Each is ranked over its own labelled rows.

model = RankSVC().fit(X_train, Y_train.astype(int), mask=known)
ours = model.decision_function(X_test)
print(f"{len(model.classes_)} labels, {model.n_passes_} passes over X for all of them together")

# %%
# The usual way is a loop over the labels.

theirs = np.empty_like(ours)
for k in range(10):
    rows = known[:, k]
    rival = LogisticRegression(max_iter=1000).fit(X_train[rows] / 16, Y_train[rows, k])
    theirs[:, k] = rival.decision_function(X_test / 16)

# %%
# Average precision per label. The two rank about equally well here. One call saves the loop, and most passes over the
# data.

places = np.arange(10)
values = {
    name: np.array([average_precision(Y_test[:, k], scores[:, k]) for k in range(10)])
    for name, scores in (("RankSVC()", ours), ("LogisticRegression()", theirs))
}
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for shift, (name, value) in zip((-0.2, 0.2), values.items()):
    ax.bar(places + shift, value, width=0.38, label=f"{name}, mean {value.mean():.3f}")
ax.set(xticks=places, xlabel="digit", ylabel="average precision", ylim=(0, 1.25))
ax.legend(loc="upper center", ncols=2)
plt.show()
