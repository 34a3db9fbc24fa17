"""
A report that you can hand on
=============================

``rankhinge report`` writes one HTML file about a model: metrics with intervals, precision over recall with a slider for
the threshold, the rows that are placed worst, a table of the queries, and what all of it was made of. Here we train on
made-up search lists and look at the page.
"""

import tempfile
from contextlib import chdir
from html import escape
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from rankhinge import datasets, load
from rankhinge.cli import main
from rankhinge.plotting import PerQueryDisplay

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
signal = np.array([1.0, -0.5, 0.25, 0.0, 0.0])


def write_lists(name, n_queries, n_documents=20):
    X = rng.normal(size=(n_queries * n_documents, signal.size)).round(4)
    grades = np.clip(np.round(X @ signal + rng.normal(size=len(X)) - 0.8), 0, 2)
    qid = np.repeat(np.arange(n_queries), n_documents)
    datasets.dump_letor(folder / name, X, grades, qid=qid, comments=[f"docid = D{row}" for row in range(len(X))])


write_lists("train.txt", 60)
write_lists("test.txt", 40)

# %%
# The command line is a function as well. In a shell, the same is ``rankhinge train train.txt --reach 1`` and
# ``rankhinge report model.safetensors test.txt``.

with chdir(folder):
    main(["train", "train.txt", "--reach", "1", "--quiet"])
    main(["report", "model.safetensors", "test.txt", "--title", "Search lists"])

# %%
# This is the page. Move the slider, sort the table, search for a query: all of it is in the file.


class Shown:
    """A page within this page."""

    def __init__(self, text):
        self.text = text

    def _repr_html_(self):
        return (
            '<iframe title="The report" style="width: 100%; height: 40em; border: 1px solid #8888" '
            f'srcdoc="{escape(self.text)}"></iframe>'
        )


Shown((folder / "report.html").read_text("utf-8"))

# %%
# The table of the queries as a picture: where is the model better than its best single feature?

test = datasets.load(folder / "test.txt")
PerQueryDisplay.from_scores(
    test.y,
    test.X[:, 0],
    load(folder / "model.safetensors").predict(test.X),
    qid=test.qid,
    metric="ndcg@10",
    names=("feature 1", "model"),
)
plt.show()
