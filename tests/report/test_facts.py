"""What the page shows is what slow code computes, and text stays text."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest

from rankhinge.metrics import interval, per_query
from rankhinge.report import gather, render
from rankhinge.report.curve import confusion, thresholds

pytest.importorskip("jinja2")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def some_facts(n=400, n_queries=20, seed=0, **given):
    rng = np.random.default_rng(seed)
    relevance = rng.integers(0, 3, n)
    scores = np.round(relevance + rng.normal(size=n), 2)
    qid = np.array([f"q{k}" for k in rng.integers(0, n_queries, n)]) if n_queries else None
    headline = {"ap": interval("ap", relevance, scores, qid=qid)}
    facts = gather(relevance, scores, **{"title": "a title", "headline": headline, "qid": qid} | given)
    return facts, relevance, scores, qid


@pytest.mark.parametrize("n", [1, 50, 5000])
@pytest.mark.parametrize("own", [None, 0.5, 100.0])
def test_counts_at_each_threshold(n, own):
    rng = np.random.default_rng(n)
    relevant, scores = rng.random(n) < 0.3, np.round(rng.normal(size=n), 3)
    curve = thresholds(relevant, scores, own)
    assert 0 <= curve["begin"] < len(curve["threshold"]) <= 1002
    assert np.all(np.diff(curve["threshold"]) < 0)
    for k in {0, curve["begin"], len(curve["threshold"]) // 2, len(curve["threshold"]) - 1}:
        counts = confusion(relevant, scores, curve["threshold"][k])
        assert (curve["tp"][k], curve["fp"][k]) == (counts["tp"], counts["fp"])
    # The last takes all.
    assert curve["tp"][-1] + curve["fp"][-1] == n
    if own == 0.5 and np.any(scores >= own):
        taken = curve["tp"][curve["begin"]] + curve["fp"][curve["begin"]]
        assert taken == np.count_nonzero(scores >= own)


@pytest.mark.parametrize("n_queries", [0, 20])
def test_extremes_by_brute_force(n_queries):
    facts, relevance, scores, qid = some_facts(n_queries=n_queries)
    qid = np.zeros(scores.size) if qid is None else qid

    def misplaced(row):
        mine = np.flatnonzero(qid == qid[row])
        # Equal scores: the order of the rows.
        above = mine[(scores[mine] > scores[row]) | ((scores[mine] == scores[row]) & (mine < row))]
        below = np.setdiff1d(mine, [*above, row])
        wrong = relevance[above] == 0 if relevance[row] > 0 else relevance[below] > 0
        return int(np.count_nonzero(wrong)), above.size + 1, mine.size

    for rows, is_relevant in ((facts.lost, True), (facts.intruders, False)):
        for extreme in rows:
            assert (extreme.misplaced, extreme.rank, extreme.n_ranked) == misplaced(extreme.row)
            assert (relevance[extreme.row] > 0) is np.bool_(is_relevant) or (relevance[extreme.row] > 0) == is_relevant
        worst = sorted((misplaced(row)[0] for row in np.flatnonzero((relevance > 0) == is_relevant)), reverse=True)
        assert [extreme.misplaced for extreme in rows] == worst[:12]


def test_the_table_of_queries():
    facts, relevance, scores, qid = some_facts()
    queries, values = per_query("ap", relevance, scores, qid)
    assert facts.queries["names"] == queries.tolist()
    assert facts.queries["columns"]["ap"] == pytest.approx(values.tolist(), abs=5e-5)
    for name, rows, relevant in zip(
        facts.queries["names"], facts.queries["columns"]["rows"], facts.queries["columns"]["relevant"], strict=True
    ):
        assert rows == np.count_nonzero(qid == name)
        assert relevant == np.count_nonzero((qid == name) & (relevance > 0))


def test_text_is_escaped():
    qid = np.array([HOSTILE] * 4)
    relevance, scores = np.array([1, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 0.0])
    headline = {HOSTILE: interval("ap", relevance, scores, qid=qid)}
    facts = gather(relevance, scores, title=HOSTILE, headline={"ap": headline[HOSTILE]}, qid=qid, names=[HOSTILE] * 4)
    page = render(facts)
    assert "<img" not in page
    assert page.count("</script>") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])
    assert data["queries"]["names"] == [HOSTILE]


def test_the_policy_names_what_is_inline():
    import base64
    import hashlib

    page = render(some_facts()[0])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ")
    for kind in ("style", "script"):
        inside = re.search(rf"<{kind}>(.*?)</{kind}>", page, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert " style=" not in page
    assert not re.search(r"\son\w+=", page)


def test_missing_extra(monkeypatch):
    facts = some_facts()[0]
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ModuleNotFoundError, match=r"the report needs jinja2: pip install 'rankhinge\[report\]'"):
        render(facts)


def test_a_perfect_ranking_has_no_extremes():
    facts = gather(np.array([1, 0]), np.array([2.0, 1.0]), title="x", headline={"ap": interval("ap", [1, 0], [2, 1])})
    assert facts.lost == facts.intruders == []
    assert "There are none" in render(facts)
