"""
Search results: rank each list by itself
========================================

Sixty queries with thirty documents each, graded 0, 1 or 2. Long documents belong to popular queries, and popular
queries have many good documents; but *within* a query, a shorter document is better. A model that pools all documents
learns that long is good. ``SVMRanker`` only ever compares documents of the same query.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from rankhinge import SVMRanker, metrics

rng = np.random.default_rng(0)
n_queries, n_documents = 120, 30
qid = np.repeat(np.arange(n_queries), n_documents)
popularity = rng.normal(size=n_queries)[qid]  # of the query, the same for all of its documents
match, brevity = rng.normal(size=(2, len(qid)))
length = 2 * popularity - brevity
X = np.column_stack([match, length, rng.normal(size=(len(qid), 6))])
quality = match + brevity + popularity + rng.normal(size=len(qid))
y = np.digitize(quality, np.quantile(quality, [0.75, 0.93]))  # 0, 1, 2
train = qid < 60

# %%
# A regression pools all documents. The ranker gets the query of each row.

regression = Ridge().fit(X[train], y[train]).predict(X[~train])
ranker = SVMRanker(loss="ndcg").fit(X[train], y[train], qid=qid[train])
print(f"SVMRanker: {ranker.n_queries_} queries, {ranker.status_}")


def ndcg_at_10(scores):
    _, values = metrics.per_query("ndcg", y[~train], scores, qid=qid[~train], k=10, gains="exponential")
    return np.asarray(values)


by_regression, by_ranker = ndcg_at_10(regression), ndcg_at_10(ranker.predict(X[~train]))
usable = ~np.isnan(by_ranker)  # some queries have no relevant document
by_regression, by_ranker = by_regression[usable], by_ranker[usable]
print(f"NDCG@10: regression {by_regression.mean():.3f}, ranker {by_ranker.mean():.3f}")

# %%
# Query by query, because a mean hides who loses. Points above the line are queries that the ranker ranks better.

fig, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
ax.plot([0, 1], [0, 1], color="k", lw=0.8)
ax.scatter(by_regression, by_ranker, s=22, alpha=0.7)
better = int((by_ranker > by_regression).sum())
ax.set(
    xlabel="NDCG@10, regression",
    ylabel="NDCG@10, SVMRanker",
    xlim=(0, 1.02),
    ylim=(0, 1.02),
    title=f"{better} of {len(by_ranker)} queries are better",
)
plt.show()
