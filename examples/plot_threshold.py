"""
From a ranking to decisions: threshold and probabilities
========================================================

A ranking answers "which first?". Two other questions come next: "where do I stop?" and "how likely is it?". The first
is a threshold, the second needs calibration, because the scores of a ranking model are no probabilities.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from rankhinge import RankSVC

X, y = make_classification(
    n_samples=12000, n_features=20, n_informative=6, weights=[0.92], class_sep=0.8, flip_y=0.02, random_state=1
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

# %%
# **A budget**: the team can look at 200 cases. Take the 200 best; no threshold is needed.

model = RankSVC().fit(X_train, y_train)
scores = model.decision_function(X_test)
best_first = np.argsort(-scores)
print(f"{y_test[best_first[:200]].mean():.0%} of the first 200 are positive, {y_test.mean():.0%} of all")

# %%
# **A threshold**: ``predict`` uses the one with the best F1 on the training data, ``threshold="f1"``.

predicted = model.predict(X_test)
print(f"predict: {predicted.sum()} called positive, {y_test[predicted == 1].mean():.0%} of them rightly")

# %%
# **Probabilities** come from ``CalibratedClassifierCV``. It fits the model to parts of the data and learns, on the
# rest, what a score is worth. Isotonic regression keeps the order of the scores, up to ties.

calibrated = CalibratedClassifierCV(RankSVC(), method="isotonic", cv=5).fit(X_train, y_train)
probability = calibrated.predict_proba(X_test)[:, 1]

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
found = np.cumsum(y_test[best_first])
looked_at = np.arange(1, len(y_test) + 1)
left.plot(looked_at, found / looked_at, label="precision: right among those looked at")
left.plot(looked_at, found / y_test.sum(), label="recall: found of all positives")
left.axvline(200, color="k", lw=0.8, ls="--")
left.set(xscale="log", xlabel="cases looked at, best first", ylim=(0, 1.05), title="what a budget buys")
left.legend(fontsize="small", loc="lower center")
share, mean = calibration_curve(y_test, probability, n_bins=10, strategy="quantile")
right.plot([0, 1], [0, 1], color="k", lw=0.8)
right.plot(mean, share, "o-")
right.set(xlabel="predicted probability", ylabel="share of positives", title="calibrated probabilities")
plt.show()
