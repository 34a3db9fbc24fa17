"""Frames on workers whose columns are of several types, as in memory; what is missing, and what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import RankSVC
from tests.dask import clusters

pytest.importorskip("distributed")
pandas = pytest.importorskip("pandas")
frames = pytest.importorskip("dask.dataframe")
pytestmark = [*clusters.MARKS, pytest.mark.filterwarnings("ignore:the lengths of the")]

N, D = 1000, 4
OPTIONS = {"bound": "convex", "C": 10.0, "tol": 1e-6}


def data():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(N, D)), columns=list("abcd"))
    return frame, (frame["a"] + rng.normal(size=N) > 1.5).astype(int).to_numpy()


KINDS = {
    "several": lambda frame: frame.astype({"a": np.float32}).assign(b=frame["b"] > 0, e=np.arange(N) % 3),
    "nullable": lambda frame: frame.assign(c=frame["c"].round().astype(int), d=frame["d"] > 0).convert_dtypes(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_several_types(client, kind):
    frame, y = data()
    frame = KINDS[kind](frame)
    rows = frames.from_pandas(frame, npartitions=3)
    expected, found = RankSVC(**OPTIONS).fit(frame, y), RankSVC(**OPTIONS).fit(rows, y)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    assert found.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_allclose(found.decision_function(rows).compute(), found.decision_function(frame), rtol=1e-12)
    assert found.score(rows, y) == pytest.approx(found.score(frame, y), rel=1e-12)


def test_what_is_missing_is_named(client):
    frame, y = data()
    frame = frame.convert_dtypes()
    frame.iloc[600, 2] = pandas.NA
    with pytest.raises(ValueError, match="chunk 1 of X has nan in its row 100, column 2: all entries must be finite"):
        RankSVC(**OPTIONS).fit(frames.from_pandas(frame, npartitions=2), y)


@pytest.mark.parametrize("kind", ["words", "categories", "dates"])
def test_columns_that_are_no_numbers_are_named(client, kind):
    frame, y = data()
    words = np.where(frame["b"] > 0, "u", "v")
    other = {"words": words, "categories": pandas.Categorical(words), "dates": pandas.Timestamp("2020-01-01")}[kind]
    rows = frames.from_pandas(frame.assign(e=other), npartitions=2)
    with pytest.raises(
        ValueError, match=r"X has columns that are not numbers: 'e' \(\S.*\): encode them, or drop them"
    ):
        RankSVC(**OPTIONS).fit(rows, y)
