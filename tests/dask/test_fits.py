"""`RankSVC` on workers in processes of their own: against memory, and with bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankhinge import RankSVC
from tests.dask import clusters

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = clusters.MARKS
N, D = 3000, 8


def data(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    scores = X @ rng.normal(size=(D, 3)) + 2 * rng.normal(size=(n, 3))
    return X, scores


CHUNKS = {"uneven": ((1, 999, 0, 1500, 500), D), "one": ((N,), D), "even": ((500,) * 6, D)}


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("options", [{"bound": "convex", "C": 10.0}, {"bound": "tight"}], ids=["convex", "tight"])
def test_as_in_memory(client, chunks, options):
    X, scores = data()
    y = (scores[:, 0] > 4).astype(int)
    tol = 1e-8 if options["bound"] == "convex" else 1e-3
    expected = RankSVC(tol=tol, **options).fit(X, y)
    found = RankSVC(tol=tol, **options).fit(da.from_array(X, chunks=CHUNKS[chunks]), da.from_array(y, chunks=700))
    assert found.gap_ <= tol
    if options["bound"] == "convex":
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
        assert found.dual_objective_ <= expected.objective_
        assert expected.dual_objective_ <= found.objective_
    else:
        # Local minima: what both reach is about the same.
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-2)
    assert set(vars(expected)) == set(vars(found))
    assert not clusters.shards_left(client)


BOUNDS = [{"bound": "convex", "C": 10.0}, {"bound": "tight"}]


@pytest.mark.slow
def test_four_processes():
    X, scores = data()
    y = (scores[:, 0] > 4).astype(int)
    with clusters.started(4) as four:
        rows = da.from_array(X, chunks=(250, D)).persist()
        distributed.wait(rows)
        # All four have some.
        assert len({where for held in four.who_has(rows).values() for where in held}) == 4
        for options, tol, rel in ((BOUNDS[0], 1e-8, 1e-6), (BOUNDS[1], 1e-3, 1e-2)):
            expected = RankSVC(tol=tol, **options).fit(X, y)
            found = RankSVC(tol=tol, **options).fit(rows, y)
            assert found.status_ == "converged"
            assert found.objective_ == pytest.approx(expected.objective_, rel=rel)


def test_chunks_of_one_row(client):
    """A shard for each sample: most have no positive, some no negative."""
    X, scores = data(40)
    y = (scores[:, 0] > 2).astype(int)
    options = {"bound": "convex", "C": 10.0, "tol": 1e-8}
    expected = RankSVC(**options).fit(X, y)
    found = RankSVC(**options).fit(da.from_array(X, chunks=(1, D)), da.from_array(y, chunks=1))
    assert found.gap_ <= options["tol"]
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_bounds_at_the_tolerance_that_is_the_default(client, C):
    """Each has proved its own: neither dual bound is above the other's objective."""
    X, scores = data()
    y = (scores[:, 0] > 4).astype(int)
    here = RankSVC(bound="convex", C=C).fit(X, y)
    there = RankSVC(bound="convex", C=C).fit(da.from_array(X, chunks=(700, D)), y)
    for model in (here, there):
        assert 0 < model.dual_objective_ <= model.objective_
        assert model.gap_ <= model.tol
    assert there.dual_objective_ <= here.objective_
    assert here.dual_objective_ <= there.objective_


@pytest.mark.filterwarnings("ignore:the lengths of the")
@pytest.mark.parametrize("labels", ["series", "array"])
def test_a_frame(client, labels):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    X, scores = data()
    frame = pandas.DataFrame(X, columns=[f"feature {k}" for k in range(D)])
    y = pandas.Series((scores[:, 0] > 4).astype(int))
    options = {"bound": "convex", "C": 10.0, "tol": 1e-7}
    expected = RankSVC(**options).fit(frame, y)
    rows = frames.from_pandas(frame, npartitions=5)
    found = RankSVC(**options).fit(rows, frames.from_pandas(y, npartitions=3) if labels == "series" else y.to_numpy())
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert found.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_allclose(found.decision_function(rows).compute(), found.decision_function(frame))
    assert found.score(rows, frames.from_pandas(y, npartitions=3)) == pytest.approx(found.score(frame, y), rel=1e-9)
    with pytest.raises(ValueError, match="are not those of the fit"):
        found.predict(rows.rename(columns={"feature 0": "another"}))


CUTS = {"ap@200": "convex", "recall@20%": "convex", "ap@10": "tight"}


@pytest.mark.parametrize("loss", CUTS)
def test_losses_with_a_cut(client, loss):
    X, scores = data()
    y = (scores[:, 0] > 7).astype(int)
    tol = 1e-8 if CUTS[loss] == "convex" else 1e-3
    options = {"loss": loss, "tol": tol} | ({"bound": "convex", "C": 10.0} if CUTS[loss] == "convex" else {})
    expected = RankSVC(**options).fit(X, y)
    found = RankSVC(**options).fit(da.from_array(X, chunks=(700, D)), y)
    assert found.gap_ <= tol
    # Of the tight bound both are local minima.
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6 if tol == 1e-8 else 1e-2)


@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_many_problems(client, kind):
    X, scores = data()
    y = np.argmax(scores, axis=1) if kind == "multiclass" else (scores > 2).astype(int)
    options = {"bound": "convex", "C": 10.0, "tol": 1e-6}
    expected = RankSVC(**options).fit(X, y)
    found = RankSVC(**options).fit(da.from_array(X, chunks=(800, D)), da.from_array(y, chunks=900))
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-5)
    np.testing.assert_allclose(found.slope_, expected.slope_, rtol=1e-2)
    lazy = found.predict(da.from_array(X, chunks=(800, D)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), found.predict(X))
    np.testing.assert_allclose(found.decision_function(da.from_array(X)).compute(), found.decision_function(X))


@pytest.mark.parametrize("kind", ["float32", "integers", "sparse"])
def test_containers(client, kind):
    X, scores = data()
    y = (scores[:, 0] > 4).astype(int)
    if kind == "sparse":
        whole = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
        blocks = da.from_array(whole.toarray(), chunks=(700, D)).map_blocks(sparse.csr_matrix)
    else:
        whole = X.astype(np.float32) if kind == "float32" else np.round(3 * X).astype(np.int16)
        blocks = da.from_array(whole, chunks=(700, D))
    options = {"bound": "convex", "C": 10.0, "tol": 1e-7}
    expected, found = RankSVC(**options).fit(whole, y), RankSVC(**options).fit(blocks, y)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)


def test_workers_that_cannot_be_reached_are_called_through_the_scheduler(monkeypatch, client):
    from rankhinge.dask.calls import Messenger

    X, scores = data()
    rows, y = da.from_array(X, chunks=(800, D)), (scores[:, 0] > 4).astype(int)
    options = {"bound": "convex", "C": 10.0}
    expected = RankSVC(**options).fit(rows, y)

    async def unreachable(self, where):
        return False

    monkeypatch.setattr(Messenger, "_reaches", unreachable)
    found = RankSVC(**options).fit(rows, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
