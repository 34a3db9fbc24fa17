"""Labels by their names, their figures one by one, and masks that mean something else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rankhinge import RankSVC, RankSVCCV
from tests.svm.helpers import binary, multiclass, multilabel

X, Y = multilabel()
NAMES = ["cat", "dog", "bird"]
FRAME = pd.DataFrame(Y, columns=NAMES)


@pytest.mark.parametrize("frame", [FRAME, pl.DataFrame(FRAME.to_dict("list"))], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    "machine", [RankSVC(bound="convex"), RankSVCCV(Cs=[1.0, 10.0], bound="convex", cv=2, random_state=0)]
)
def test_columns_name_the_labels(machine, frame):
    plain = machine.fit(X, Y)
    coef, score = plain.coef_, plain.score(X, Y)
    assert plain.classes_.tolist() == [0, 1, 2]
    model = machine.fit(X, frame)
    assert model.classes_.tolist() == NAMES
    np.testing.assert_array_equal(model.coef_, coef)
    assert model.score(X, frame) == model.score(X, Y) == score
    if isinstance(machine, RankSVCCV):
        assert model.cv_results_["label"].tolist() == np.repeat(NAMES, 2).tolist()


def test_numbers_may_be_names():
    assert RankSVC(bound="convex").fit(X, FRAME.set_axis([2019, 2021, 2020], axis=1)).classes_.tolist() == [
        2019,
        2021,
        2020,
    ]
    # These are no labels of a multilabel y, but a column.
    X2, y = binary()
    with pytest.warns(Warning, match="column-vector"):
        assert RankSVC(bound="convex").fit(X2, pd.DataFrame({"fraud": y})).classes_.tolist() == [0, 1]


def test_columns_in_another_order():
    model = RankSVC(bound="convex").fit(X, FRAME)
    with pytest.raises(ValueError, match="column 0 of y is 'dog', but label 0 of training is 'cat'"):
        model.score(X, FRAME[["dog", "cat", "bird"]])
    assert model.score(X, FRAME[["dog", "cat", "bird"]][model.classes_]) == model.score(X, FRAME)


def test_labels_without_samples_are_named():
    with pytest.warns(UserWarning, match=r"labels \['dog'\] have no positive or no negative sample"):
        RankSVC(bound="convex").fit(X, FRAME.assign(dog=0))


@pytest.mark.parametrize(("data", "n_problems"), [(binary, 1), (multiclass, 3), (multilabel, 3)])
def test_one_figure_a_label(data, n_problems):
    features, y = data()
    model = RankSVC(bound="convex").fit(features, y)
    each = model.score(features, y, average=None)
    assert each.shape == (n_problems,)
    assert each.mean() == pytest.approx(model.score(features, y), abs=1e-15)
    columns = [y == 1] if data is binary else y.T == 1 if data is multilabel else [y == k for k in range(3)]
    for k, (relevant, figure) in enumerate(zip(columns, each, strict=True)):
        scores = features @ model.coef_[k]
        order = np.argsort(-scores)
        hits = relevant[order]
        assert figure == pytest.approx(np.mean((np.cumsum(hits) / np.arange(1, hits.size + 1))[hits]), abs=1e-12)
    with pytest.raises(ValueError, match="average must be 'macro' or None, got 'micro'"):
        model.score(features, y, average="micro")


def test_a_label_that_cannot_be_judged_is_nan():
    model = RankSVC(bound="convex").fit(X, Y)
    other = Y.copy()
    other[:, 1] = 0
    each = model.score(X, other, average=None)
    assert np.isnan(each).tolist() == [False, True, False]
    assert model.score(X, other) == pytest.approx(np.nanmean(each))


def test_masks_of_integers():
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    labels = np.where(mask, Y, np.nan)
    expected = RankSVC(bound="convex").fit(X, labels, mask=mask)
    for dtype in (np.int64, np.uint8):
        model = RankSVC(bound="convex").fit(X, labels, mask=mask.astype(dtype))
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.score(X, labels, mask=mask.astype(dtype)) == expected.score(X, labels, mask=mask)


def test_a_mask_whose_columns_are_in_another_order():
    mask = pd.DataFrame(np.random.default_rng(0).random(Y.shape) < 0.8, columns=NAMES)
    model = RankSVC(bound="convex").fit(X, FRAME, mask=mask)
    turned = mask[["cat", "bird", "dog"]]
    for call in (RankSVC(bound="convex").fit, model.score):
        with pytest.raises(ValueError, match=r"column 1 of mask is 'bird', but that of y is 'dog': mask\[y.columns\]"):
            call(X, FRAME, mask=turned)
        # Without names on both sides there is nothing to compare.
        call(X, FRAME, mask=turned.to_numpy())
        call(X, FRAME, mask=turned.set_axis(range(3), axis=1))


def test_an_inverted_mask_is_recognised():
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    labels = np.where(mask, Y, np.nan)
    model = RankSVC(bound="convex").fit(X, labels, mask=mask)
    for call in (RankSVC(bound="convex").fit, model.score):
        with pytest.raises(ValueError, match=r"The mask seems to be inverted, True means labelled: pass ~mask"):
            call(X, labels, mask=np.isnan(labels))
        with pytest.raises(ValueError, match=r"y\[\d+, \d\] is nan, where mask says that it is labelled$"):
            call(X, labels, mask=mask | (np.arange(60) % 2 == 0)[:, None])
    with pytest.raises(ValueError, match=r"mask is False everywhere, .* True means labelled"):
        RankSVC(bound="convex").fit(X, Y, mask=np.isnan(Y))
