"""Bad input is refused with a message that names what is wrong."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, rank_svm_path
from tests.svm.helpers import binary, graded, multilabel

X, y = binary()
XG, YG, QID = graded()
XL, YL = multilabel()


@pytest.mark.parametrize("estimator", [RankSVC(bound="convex"), RankSVCCV(cv=2, bound="convex"), ApproximateRankSVC()])
@pytest.mark.parametrize("label", [0, "ham"])
def test_one_class(estimator, label):
    with pytest.raises(ValueError, match=f"y has one class only, .*{label}"):
        estimator.fit(X, [label] * len(y))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "estimator",
    [
        RankSVC(bound="convex"),
        SVMRanker(bound="convex"),
        RankSVCCV(bound="convex"),
        SVMRankerCV(bound="convex"),
        ApproximateRankSVC(),
    ],
)
def test_features_that_are_not_finite(estimator, bad):
    wrong = X.copy()
    wrong[7, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        estimator.fit(wrong, y)


@pytest.mark.parametrize(
    "estimator",
    [RankSVC(bound="convex"), SVMRanker(bound="convex"), RankSVCCV(bound="convex"), SVMRankerCV(bound="convex")],
)
def test_no_features(estimator):
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        estimator.fit(np.empty((60, 0)), y)


def test_another_number_of_features():
    with pytest.raises(ValueError, match="3 features, but RankSVC is expecting 4"):
        RankSVC(bound="convex").fit(X, y).predict(X[:, :3])


def test_labels_of_another_length():
    for estimator in (RankSVC(bound="convex"), SVMRanker(bound="convex")):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            estimator.fit(X, y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        rank_svm_path(X, y[:-1], [1.0])


@pytest.mark.parametrize("estimator", [SVMRanker(bound="convex"), SVMRankerCV(cv=2, bound="convex")])
def test_qid_of_another_length(estimator):
    with pytest.raises(ValueError, match="qid has 47 entries, y 48"):
        estimator.fit(XG, YG, qid=QID[:-1])


def test_qid_of_another_shape_or_missing():
    with pytest.raises(ValueError, match="qid must be one-dimensional"):
        SVMRanker(bound="convex").fit(XG, YG, qid=QID[:, None])
    with pytest.raises(ValueError, match=r"qid\[3\] is nan"):
        SVMRanker(bound="convex").fit(XG, YG, qid=np.where(np.arange(48) == 3, np.nan, QID))
    with pytest.raises(ValueError, match=r"qid\[0\] is \[1\], which is not hashable"):
        SVMRanker(bound="convex").fit(XG, YG, qid=[[1]] * 48)


def test_all_lists_degenerate():
    with pytest.raises(ValueError, match="none of the 6 queries has both a relevant and a less relevant sample"):
        SVMRanker(bound="convex").fit(XG, QID % 3, qid=QID)
    with pytest.raises(ValueError, match="none of the 6 queries"):
        SVMRankerCV(cv=2, bound="convex").fit(XG, QID % 3, qid=QID)
    with pytest.raises(ValueError, match="none of the 1 queries"):
        SVMRanker(bound="convex").fit(XG, np.zeros(48))


def test_C_that_is_hardly_a_number():
    for estimator in (RankSVC(C=1e-320, bound="convex"), RankSVCCV(Cs=[1e-320, 1.0], cv=2, bound="convex")):
        with pytest.raises(ValueError, match=r"Cs? must be positive and finite, got 1e-320"):
            estimator.fit(X, y)
    with pytest.warns(UserWarning, match="the coefficients are all 0"):
        assert RankSVC(C=1e-300, bound="convex").fit(X, y).status_ == "converged"


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, None, "large"])
def test_C_that_is_not_positive(C):
    for estimator in (RankSVC(C=C, bound="convex"), SVMRanker(C=C, bound="convex"), ApproximateRankSVC(C=C)):
        with pytest.raises(ValueError, match="The 'C' parameter of"):
            estimator.fit(X, y)


@pytest.mark.parametrize(
    ("C", "message"),
    [
        ([1.0, -2.0, 1.0], "C must be positive and finite, got -2"),
        ([1.0, np.nan, 1.0], "C must be positive and finite, got nan"),
        ([1.0, 2.0], r"C has shape \(2,\), but there are 3 problems"),
        ([1.0, 1e90, 1.0], "C is 1e.90: .* overflow"),
    ],
)
def test_one_C_a_label(C, message):
    with pytest.raises(ValueError, match=message):
        RankSVC(C=C, bound="convex").fit(XL, YL)


def test_a_scale_that_is_too_large():
    with pytest.raises(ValueError, match=r"scale is 1e.150: .* overflow"):
        RankSVC(bound="tight", scale=1e150).fit(X, y)


@pytest.mark.parametrize("Cs", [[], [1.0, -1.0], [0.0], [np.nan], [[1.0]]])
def test_grid_of_C(Cs):
    message = "positive and finite" if np.ndim(Cs) == 1 and np.size(Cs) else r"not empty, got an array of shape \("
    with pytest.raises(ValueError, match=f"Cs must be .*{message}"):
        RankSVCCV(Cs=Cs, bound="convex").fit(X, y)
    with pytest.raises(ValueError, match=f"Cs must be .*{message}"):
        SVMRankerCV(Cs=Cs, bound="convex").fit(XG, YG, qid=QID)
    message = "positive and finite" if np.ndim(Cs) == 1 and np.size(Cs) else "a vector of one value or more, got "
    with pytest.raises(ValueError, match=f"Cs must be {message}"):
        rank_svm_path(X, y, Cs)


def test_a_path_has_a_vector_of_C_where_a_search_may_have_a_number_of_them():
    with pytest.raises(ValueError, match="Cs must be a vector of one value or more, got 5"):
        rank_svm_path(X, y, 5)


def test_a_ranker_is_one_problem():
    for name in ("C", "scale", "init_C"):
        with pytest.raises(ValueError, match=rf"The '{name}' parameter .* must be a float in .* or a str among"):
            SVMRanker(bound="tight", **{name: [1.0, 2.0]}).fit(XG, YG, qid=QID)


@pytest.mark.parametrize(
    "fit", [RankSVC(bound="convex").fit, RankSVCCV(bound="convex").fit, lambda X, Y: rank_svm_path(X, Y, [1.0])]
)
def test_missing_labels_without_a_mask(fit):
    Y = np.column_stack([y, 1 - y]).astype(np.float64)
    Y[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"y\[3, 1\] is nan: mask= tells which entries are labelled"):
        fit(X, Y)
    frame = pd.DataFrame(Y).astype("Int64")
    with pytest.raises(ValueError, match=r"y\[3, 1\] is <NA>: mask= tells which entries are labelled .* y\.notna\(\)"):
        fit(X, frame)
    assert RankSVC(bound="convex").fit(X, frame, mask=frame.notna()).coef_.any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tol", 0.0),
        ("tol", -1.0),
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("solver", "newton"),
        ("threshold", "f2"),
        ("threshold", np.nan),
        ("verbose", -1),
        ("warm_start", "yes"),
    ],
)
def test_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of RankSVC"):
        RankSVC(**{name: value}).fit(X, y)


def test_unknown_loss():
    for estimator in (
        RankSVC(loss="kendall", bound="convex"),
        SVMRanker(loss="kendall", bound="convex"),
        RankSVCCV(loss="kendall", bound="convex"),
        ApproximateRankSVC(loss="kendall"),
    ):
        with pytest.raises(ValueError, match=r"unknown loss 'kendall'.*: choose one of .*'ap'"):
            estimator.fit(X, y)


@pytest.mark.parametrize("loss", ["ap", "rr", "auc"])
def test_grades_for_a_binary_loss(loss):
    with pytest.raises(ValueError, match=rf"y has 3 grades, but the loss '{loss}' .* level_weights='uniform'"):
        SVMRanker(loss=loss, bound="convex").fit(XG, YG, qid=QID)


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], [1.0, np.nan], [1.0, np.inf], [[1.0, 1.0]]])
def test_weights_of_levels(weights):
    with pytest.raises(ValueError, match="level_weights must be finite numbers ≥ 0, not all 0"):
        SVMRanker(loss="ap", level_weights=weights, bound="convex").fit(XG, YG, qid=QID)


def test_too_few_weights_of_levels():
    message = (
        r"level_weights has 1 entries, but y has the grades 1, 2: give a weight for each of these 2, .* from 1 to 2"
    )
    with pytest.raises(ValueError, match=message):
        SVMRanker(loss="ap", level_weights=[1.0], bound="convex").fit(XG, YG, qid=QID)
    with pytest.raises(ValueError, match=r"3 entries, but y has the grades 0\.5, 1:"):
        SVMRanker(loss="ap", level_weights=[1.0, 2.0, 3.0], bound="convex").fit(XG, YG / 2, qid=QID)


@pytest.mark.parametrize("gains", [[1, 2, 3], [0, 2, 1], [0, 1, 1], [0, np.nan, 2], [0, 1, np.inf], [[0, 1]], [0]])
def test_gains_that_do_not_ascend(gains):
    with pytest.raises(ValueError, match="gains must ascend from 0"):
        SVMRanker(gains=gains, bound="convex").fit(XG, YG, qid=QID)


def test_gains_that_do_not_fit_the_labels():
    with pytest.raises(ValueError, match=r"y\[\d+\] is 2: gains has entries for the labels 0 to 1"):
        SVMRanker(gains=[0, 1], bound="convex").fit(XG, YG, qid=QID)
    with pytest.raises(ValueError, match=r"y\[\d+\] is 0\.5: gains has entries"):
        SVMRanker(gains=[0, 1, 2], bound="convex").fit(XG, YG / 2, qid=QID)
    with pytest.raises(ValueError, match=r"y\[\d+\] is 2000: its gain is not finite"):
        SVMRanker(bound="convex").fit(XG, 1000 * YG, qid=QID)
    with pytest.raises(ValueError, match="The 'gains' parameter of SVMRanker"):
        SVMRanker(gains="cubic", bound="convex").fit(XG, YG, qid=QID)


def test_relevance_below_zero_or_missing():
    with pytest.raises(ValueError, match=r"y\[0\] is -1: relevance must be finite and not negative"):
        SVMRanker(bound="convex").fit(XG, np.where(np.arange(48) == 0, -1, YG), qid=QID)
    with pytest.raises(ValueError, match="y contains NaN"):
        SVMRanker(bound="convex").fit(XG, np.where(np.arange(48) == 0, np.nan, YG), qid=QID)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(47), r"query_weight has shape \(47,\), but there are 48 rows"),
        (np.arange(48.0), r"query_weight\[\d+\] differs from that of other rows of query"),
        ({2: -1.0}, "the weight of query .*2.* is -1.0: it must be finite and ≥ 0"),
        (dict.fromkeys(range(6), np.nan), "the weight of query .* is nan"),
        (np.zeros(48), "none of the 6 queries has .* a positive weight"),
    ],
)
def test_weights_of_queries(weight, message):
    with pytest.raises(ValueError, match=message):
        SVMRanker(bound="convex").fit(XG, YG, qid=QID, query_weight=weight)


def test_strings_are_classes_but_not_relevance():
    names = np.array(["ham", "spam"])[y]
    model = RankSVC(C=10.0, bound="convex").fit(X, names)
    np.testing.assert_array_equal(model.coef_, RankSVC(C=10.0, bound="convex").fit(X, y).coef_)
    assert model.classes_.tolist() == ["ham", "spam"]
    assert set(model.predict(X)) <= {"ham", "spam"}
    assert model.score(X, names) == RankSVC(C=10.0, bound="convex").fit(X, y).score(X, y)
    for labels in (names, names.tolist(), names.astype(object)):
        with pytest.raises(ValueError, match=r"y\[0\] is .*'(ham|spam)'\)?: it must be a number"):
            SVMRanker(bound="convex").fit(X, labels)
        with pytest.raises(ValueError, match=r"y\[0\] is .*'(ham|spam)'\)?: it must be a number"):
            SVMRanker(bound="convex").fit(X, y).score(X, labels)
    np.testing.assert_array_equal(
        SVMRanker(bound="convex").fit(X, y.astype(str)).coef_, SVMRanker(bound="convex").fit(X, y).coef_
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gains": {0: 0, 1: 1, 2: 3}}, "gains must be made of numbers, got {0: 0"),
        ({"gains": [0, "one", 3]}, r"gains\[1\] is 'one': it must be a number"),
        ({"loss": "ap", "level_weights": ["a", "b"]}, r"level_weights\[0\] is 'a': it must be a number"),
        ({"bound": "tight", "init": [1.0, 2.0, "x"]}, r"init\[2\] is 'x': it must be a number"),
    ],
)
def test_words_for_numbers(options, message):
    with pytest.raises(ValueError, match=message):
        SVMRanker(**options).fit(XG, YG, qid=QID)


def test_words_for_weights():
    with pytest.raises(ValueError, match=r"query_weight\[0\] is 'a': it must be a number"):
        SVMRanker(bound="convex").fit(XG, YG, qid=QID, query_weight=["a"] * 48)
    with pytest.raises(ValueError, match=r"a mask goes with a multilabel y .*: a ranking has none"):
        RankSVC(bound="convex").fit(X, y, np.ones(60))


def test_a_frame_of_queries():
    pl = pytest.importorskip("polars")
    for frame in (pd.DataFrame({"q": QID}), pl.DataFrame({"q": QID})):
        with pytest.raises(ValueError, match=r"qid must be one-dimensional, its shape is \(48, 1\)"):
            SVMRanker(bound="convex").fit(XG, YG, qid=frame)


def test_a_sparse_mask():
    mask = np.random.default_rng(0).random(YL.shape) < 0.8
    sparse_fit = RankSVC(bound="convex").fit(XL, sparse.csr_array(YL), mask=sparse.csr_array(mask))
    np.testing.assert_array_equal(sparse_fit.coef_, RankSVC(bound="convex").fit(XL, YL, mask=mask).coef_)


def test_targets_that_are_no_classes():
    with pytest.raises(ValueError, match="continuous"):
        RankSVC(bound="convex").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="multiclass-multioutput"):
        RankSVC(bound="convex").fit(XL, YL + np.arange(3))
    with pytest.raises(ValueError, match=r"labelled entries of y must be 0/1 or -1/1, got \[1 2\]"):
        RankSVC(bound="convex").fit(XL, YL + 1)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((60, 2), bool), r"mask must be bool or 0/1 of shape \(60, 3\), got bool of shape \(60, 2\)"),
        (np.ones(60, bool), r"mask must be bool or 0/1 of shape \(60, 3\), got bool of shape \(60,\)"),
        (np.full((60, 3), 2), r"mask must be bool or 0/1 of shape \(60, 3\), got int"),
    ],
)
def test_mask_of_another_shape_or_dtype(mask, message):
    for estimator in (RankSVC(bound="convex"), RankSVCCV(cv=2, bound="convex")):
        with pytest.raises(ValueError, match=message):
            estimator.fit(XL, YL, mask=mask)


def test_mask_without_labels():
    with pytest.raises(ValueError, match=r"a mask goes with a multilabel y of shape \(n, K\), got shape \(60,\)"):
        RankSVC(bound="convex").fit(X, y, mask=np.ones(60, bool))
    with pytest.raises(ValueError, match="labelled entries of y must be 0/1 or -1/1"):
        RankSVC(bound="convex").fit(XL, 2 * YL, mask=np.ones((60, 3), bool))
    with pytest.raises(ValueError, match=r"mask is False everywhere.*True means labelled"):
        RankSVC(bound="convex").fit(XL, YL, mask=np.zeros((60, 3), bool))


@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize(
    "estimator", [RankSVC(bound="convex"), ApproximateRankSVC(), RankSVCCV(Cs=[1.0], cv=2, bound="convex")]
)
def test_label_without_positives_or_negatives(estimator, constant):
    labels = YL.copy()
    labels[:, 1] = constant
    with pytest.warns(UserWarning, match=r"labels \[1\] have no positive or no negative sample"):
        model = estimator.fit(XL, labels)
    assert (model.predict(XL)[:, 1] == constant).all()
    np.testing.assert_array_equal(model.coef_[1], 0.0)
    # The others are not affected, and every attribute has an entry for each label.
    assert model.status_.tolist() == ["converged", "constant", "converged"]
    for values in (model.objective_, model.dual_objective_, model.gap_, model.n_iter_):
        assert values.shape == (3,)
        assert values[1] == 0
    assert model.history_["primal"].shape[0] == 3
    assert model.score(XL, labels) > 0.5


def test_path_refuses_a_label_without_positives():
    with pytest.raises(ValueError, match=r"label .*1.* has no positive or no negative sample"):
        rank_svm_path(XL, YL * [1, 0, 1], [1.0])


def test_sample_weight_of_score():
    for model in (RankSVC(bound="convex").fit(X, y), SVMRanker(bound="convex").fit(X, y)):
        with pytest.raises(ValueError, match="sample_weight is not supported"):
            model.score(X, y, sample_weight=np.ones(60))


def test_cross_validation_says_what_is_wrong_with_all_data():
    with pytest.raises(ValueError, match="gains must ascend from 0"):
        SVMRankerCV(gains=[1, 2, 3], cv=2, bound="convex").fit(XG, YG, qid=QID)
    with pytest.raises(ValueError, match="y has 3 grades"):
        SVMRankerCV(loss="ap", cv=2, bound="convex").fit(XG, YG, qid=QID)
    with pytest.raises(ValueError, match="no fold has both a positive and a negative"):
        SVMRankerCV(cv=2, bound="convex").fit(X, np.arange(60) == 0, qid=np.arange(60) // 30)


def test_more_folds_than_queries():
    with pytest.raises(ValueError, match="7 folds need at least as many queries, got 6: choose fewer folds"):
        SVMRankerCV(cv=7, bound="convex").fit(XG, YG, qid=QID)


def test_failed_fit_of_another_shape_leaves_no_half_model():
    model = RankSVC(bound="convex").fit(X, y)
    scores = model.decision_function(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_a_mapping_that_knows_none_of_the_queries():
    """As in a fold without them; or words stand for numbers, which is worth a warning."""
    model = SVMRanker(bound="convex")
    with pytest.warns(UserWarning, match="knows none of the queries, but '0'; a query is .*: all weigh 1"):
        model.fit(XG, YG, qid=QID, query_weight={"0": 2.0})
    np.testing.assert_array_equal(model.coef_, SVMRanker(bound="convex").fit(XG, YG, qid=QID).coef_)


def test_too_many_grades():
    with pytest.raises(ValueError, match="y has 1500 different grades in one list"):
        SVMRanker(gains="linear", bound="convex").fit(np.zeros((1500, 1)), np.arange(1, 1501), qid=np.zeros(1500))


@pytest.mark.parametrize("missing", [np.float32("nan"), pd.NA, pd.NaT, Decimal("nan")], ids=str)
def test_missing_queries_are_not_pooled(missing):
    qid = np.array(QID.tolist(), dtype=object)
    qid[3] = missing
    with pytest.raises(ValueError, match=r"qid\[3\] is"):
        SVMRanker(bound="convex").fit(XG, YG, qid=qid)
    with pytest.raises(ValueError, match=r"qid\[3\] is"):
        SVMRanker(bound="convex").fit(XG, YG, qid=qid.tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gains": "exp"}, "'gains' parameter"),
        ({"level_weights": "foo"}, "'level_weights' parameter"),
        ({"tol": -1.0}, "'tol' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"mask": np.ones((36, 1), bool)}, "mask belongs to multilabel targets"),
    ],
)
def test_paths_check_their_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        rank_svm_path(XG, YG, [1.0], qid=QID, loss="ndcg", **options)


def test_paths_take_what_the_machines_take():
    with pytest.warns(DataConversionWarning):
        column = rank_svm_path(X, y[:, None], [1.0])
    np.testing.assert_array_equal(column.coefs, rank_svm_path(X, y, [1.0]).coefs)
    Y = np.column_stack([y, 1 - y])
    np.testing.assert_array_equal(rank_svm_path(X, sparse.csr_array(Y), [1.0]).coefs, rank_svm_path(X, Y, [1.0]).coefs)
    with pytest.raises(ValueError, match="NaN"):
        rank_svm_path(X, np.where(y, 1.0, np.nan), [1.0])


def test_grids_are_checked_before_the_search():
    for call in (RankSVCCV(Cs=[1.0, 1e61], bound="convex").fit, lambda X, y: rank_svm_path(X, y, [1e61])):
        with pytest.raises(ValueError, match=r"Cs is 1e.61: .* overflow"):
            call(X, y)
    with pytest.raises(ValueError, match=r"scales is 1e.61: .* overflow"):
        RankSVCCV(bound="tight", scales=[1e61]).fit(X, y)
    with pytest.raises(ValueError, match=r"Cs\[0\] is 'a': it must be a number"):
        RankSVCCV(Cs=["a"], bound="convex").fit(X, y)
    with pytest.raises(ValueError, match=r"C\[0\] is 'a': it must be a number"):
        RankSVC(C=["a"], bound="convex").fit(X, y)


def test_only_the_direction_of_a_start_counts():
    start = np.arange(1.0, X.shape[1] + 1)
    coefs = [RankSVC(bound="tight", init=scale * start).fit(X, y).coef_ for scale in (1.0, 2.0**600, 2.0**-600)]
    np.testing.assert_array_equal(coefs[1:], [coefs[0]] * 2)
    with pytest.raises(ValueError, match="init has complex numbers"):
        RankSVC(bound="tight", init=1j * start).fit(X, y)
