"""
Non-linear features in a pipeline, beside boosted trees
=======================================================

``RankSVC`` is linear. On tabular data with many rows, boosted trees are often several points ahead of any linear model.
A map in front of the model can close most of that distance, or little of it: it depends on the shape of the data. We
try five maps on two shapes.
"""

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import FunctionTransformer, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, SplineTransformer, StandardScaler

from rankhinge import RankSVC

rng = np.random.default_rng(0)
n, d = 3000, 8
X = rng.normal(size=(n, d))

# %%
# *Additive*: each feature has its own curve, and the curves add up. *Interacting*: what a feature means depends on
# another one. In both, about one row in twelve is positive.

additive = 2 * np.abs(X[:, 0]) + np.sin(3 * X[:, 1]) + X[:, 2] ** 2 + X[:, 3]
interacting = 2 * X[:, 0] * X[:, 1] + np.maximum(X[:, 2], X[:, 3]) * np.sign(X[:, 4]) + X[:, 5]
tasks = {}
for name, signal in (("additive", additive), ("interacting", interacting)):
    noisy = signal + 0.7 * rng.normal(size=n)
    tasks[name] = noisy > np.quantile(noisy, 1 - 1 / 12)

# %%
# The maps, each in a pipeline with the default ``RankSVC``. The last one takes the leaves of a boosted model as
# categories: which leaf of each tree does a row fall into?


def leaves_of_boosted_trees(X_train, y_train):
    trees = LGBMClassifier(n_estimators=40, num_leaves=8, learning_rate=0.2, verbose=-1, n_jobs=2).fit(X_train, y_train)
    return FunctionTransformer(lambda X: trees.predict(X, pred_leaf=True))


maps = {
    "linear": lambda X, y: [],
    "bins": lambda X, y: [KBinsDiscretizer(n_bins=12, quantile_method="averaged_inverted_cdf")],
    "splines": lambda X, y: [SplineTransformer(n_knots=8, knots="quantile")],
    "Nystroem": lambda X, y: [StandardScaler(), Nystroem(gamma=0.08, n_components=150, random_state=0)],
    "random trees": lambda X, y: [RandomTreesEmbedding(n_estimators=50, max_depth=4, random_state=0)],
    "boosted leaves": lambda X, y: [leaves_of_boosted_trees(X, y), OneHotEncoder(handle_unknown="ignore")],
}
results = {}
for task, y in tasks.items():
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    for name, steps in maps.items():
        model = make_pipeline(*steps(X_train, y_train), RankSVC(loss="ap")).fit(X_train, y_train)
        results[name, task] = average_precision_score(y_test, model.decision_function(X_test))
    trees = LGBMClassifier(n_estimators=200, num_leaves=8, learning_rate=0.05, verbose=-1, n_jobs=2)
    trees.fit(X_train, y_train)
    results["LightGBM", task] = average_precision_score(y_test, trees.predict_proba(X_test)[:, 1])

# %%
# Splines know curves of single features and nothing else. They rank the additive task as well as the trees do, and are
# of little use for the other. Bins are coarser: all of a tail falls into one. Maps that mix features help with
# interactions. Leaves of boosted trees bring the trees' own knowledge along.

names = [*maps, "LightGBM"]
places = np.arange(len(names))
fig, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for shift, task in zip((-0.2, 0.2), tasks):
    bars = ax.bar(places + shift, [results[name, task] for name in names], width=0.38, label=task)
    ax.bar_label(bars, fmt="%.2f", fontsize=8)
ax.set(ylabel="average precision", ylim=(0, 1.1), title="RankSVC behind a map, and LightGBM")
ax.set_xticks(places, names, rotation=20)
ax.legend(ncols=2, loc="upper left")
plt.show()

# %%
# **What to try.** Splines first: they are cheap, and the curve of each feature can still be read. Bins for features
# with jumps. Nystroem if there are few features in common units. Random trees or boosted leaves for interactions.
#
# **When to use the trees instead.** If LightGBM is still ahead after that, and you have thousands of rows and no need
# for coefficients, a certificate or exact lists, use LightGBM.
