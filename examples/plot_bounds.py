"""
The metric and its two bounds
=============================

Average precision is a staircase in the scores: it changes only when two samples swap places, and its slope is 0
everywhere else. Nothing can be learnt from that slope. The two bounds lie above the staircase and have a slope.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankhinge import ranking_loss, structured_hinge, tight_hinge

rng = np.random.default_rng(3)
relevant = np.arange(60) < 12
base, direction = rng.normal(size=60), rng.normal(size=60)
base[relevant] += 1.0

# %%
# We move the scores along a line and evaluate all three. ``scale`` makes the scores larger: that makes the tight bound
# tighter, and the convex one looser.


def along_the_line(scale):
    steps = np.linspace(-2, 2, 401)
    lines = [scale * (base + step * direction) for step in steps]
    return steps, (
        np.array([ranking_loss(line, relevant, loss="ap") for line in lines]),
        np.array([tight_hinge(line, relevant, loss="ap").value for line in lines]),
        np.array([structured_hinge(line, relevant, loss="ap") for line in lines]),
    )


fig, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), sharey=True, layout="constrained")
for ax, scale in zip(axes, (0.3, 1.5)):
    steps, (loss, tight, convex) = along_the_line(scale)
    ax.plot(steps, convex, color="C3", label="convex bound J")
    ax.plot(steps, tight, color="C0", label="tight bound T")
    ax.plot(steps, loss, color="k", lw=1, drawstyle="steps-mid", label="1 − average precision")
    ax.set(title=f"scores × {scale:g}", xlabel="step along a line", ylim=(0, 4))
    assert (loss <= tight + 1e-12).all()
    assert (tight <= convex + 1e-12).all()
axes[0].legend()
plt.show()

# %%
# The convex bound has one minimum, and a fit can prove that it is there. Where classes overlap it is far above the
# metric. The tight bound follows the metric, and like the metric it has several minima: its fit needs a good start.
