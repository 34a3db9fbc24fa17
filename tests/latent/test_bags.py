"""Bags: what they are made of, how they are indexed, and what they refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from rankhinge.latent import Bags, BagTransformer, LatentRankSVC
from rankhinge.latent import transformer as transformer_module
from rankhinge.latent.segments import segment_best, segment_maxima


def parts(sizes=(2, 1, 3), d=4, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, d)) for size in sizes]


def test_from_a_list():
    arrays = parts()
    bags = Bags(arrays)
    assert bags.shape == (3,)
    assert len(bags) == 3
    assert bags.sizes.tolist() == [2, 1, 3]
    assert (bags.n_candidates, bags.n_features, bags.ndim) == (6, 4, 1)
    for bag, array in zip(bags, arrays, strict=True):
        np.testing.assert_array_equal(bag, array)


def test_rows_in_any_order():
    arrays = parts()
    X, ids = np.concatenate(arrays), np.repeat(["a", "b", "c"], [2, 1, 3])
    order = np.random.default_rng(1).permutation(6)
    bags = Bags(X[order], bag_ids=ids[order])
    for name, bag in zip(bags.ids, bags, strict=True):
        rows = np.flatnonzero(ids[order] == name)
        np.testing.assert_array_equal(bag, X[order][rows])
    np.testing.assert_array_equal(bags.candidates(), np.concatenate(list(bags)))


def test_an_array_has_one_candidate_a_bag():
    X = np.arange(6.0).reshape(3, 2)
    bags = Bags(X)
    assert bags.sizes.tolist() == [1, 1, 1]
    assert bags.matrix is X
    assert bags.candidates() is X


@pytest.mark.parametrize(
    "key", [slice(1, None), slice(None, None, -1), np.array([2, 0]), [0, 0, 1], [True, False, True, False]]
)
def test_some_of_the_bags_share_the_candidates(key):
    arrays = parts([2, 1, 3, 1])
    bags = Bags(arrays)
    chosen = np.arange(4)[key]
    some = bags[key]
    assert some.matrix is bags.matrix
    assert some.ids.tolist() == chosen.tolist()
    assert some.sizes.tolist() == bags.sizes[chosen].tolist()
    for bag, b in zip(some, chosen, strict=True):
        np.testing.assert_array_equal(bag, arrays[b])
    np.testing.assert_array_equal(some.candidates(), np.concatenate([arrays[b] for b in chosen]))
    np.testing.assert_array_equal(some[::-1].candidates(), np.concatenate([arrays[b] for b in chosen[::-1]]))


def test_views_of_shuffled_rows():
    X, ids = np.arange(12.0).reshape(6, 2), [0, 1, 0, 2, 1, 2]
    some = Bags(X, bag_ids=ids)[[2, 0]]
    assert some.ids.tolist() == [2, 0]
    np.testing.assert_array_equal(some.candidates(), X[[3, 5, 0, 2]])
    np.testing.assert_array_equal(some.rows(), [3, 5, 0, 2])


def test_indices():
    bags = Bags(parts())
    np.testing.assert_array_equal(bags[-1], bags[2])
    assert len(bags[np.zeros(0, int)]) == 0
    assert len(bags[np.array([1, 2]), ...]) == 2
    for wrong in (3, -4):
        with pytest.raises(IndexError):
            bags[wrong]
    for wrong in ("a", [1.5], [[0]], [True], (1, 2)):
        with pytest.raises(IndexError):
            bags[wrong]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int32])
def test_keeps_the_dtype(dtype):
    X = np.ones((4, 2), dtype)
    assert Bags(X, offsets=[0, 3, 4]).matrix is X
    assert Bags([X, X]).dtype == dtype


def test_bools_become_numbers():
    assert Bags(np.ones((2, 2), bool)).dtype == np.uint8


def test_sparse():
    X = sparse.random_array((6, 5), density=0.5, rng=0, format="csc")
    bags = Bags(X, offsets=[0, 2, 6])
    assert bags.matrix.format == "csr"
    np.testing.assert_array_equal(bags[1].toarray(), X.toarray()[2:])
    again = Bags([X.tocsr()[:2], X.tocsr()[2:]])
    np.testing.assert_array_equal(again.matrix.toarray(), X.toarray())
    assert "sparse" in repr(again)


def test_memory_mapped(tmp_path):
    X = np.arange(24, dtype=np.float32).reshape(8, 3)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    bags = Bags(mapped, bag_ids=[0, 1] * 4)
    assert bags[:1].matrix is mapped
    np.testing.assert_array_equal(bags[1], X[1::2])


def test_splitters():
    bags, y = Bags(parts([2] * 10)), np.arange(10) % 2
    train, test, y_train, _ = train_test_split(bags, y, test_size=0.3, random_state=0)
    assert (len(train), len(test), len(y_train)) == (7, 3, 7)
    assert train.matrix is bags.matrix
    for fold, _ in KFold(5).split(bags):
        assert len(bags[fold]) == 8


def test_pickle():
    bags = Bags(parts())[[2, 0]]
    again = pickle.loads(pickle.dumps(bags))
    np.testing.assert_array_equal(again.candidates(), bags.candidates())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bags([np.ones((2, 3)), np.ones((0, 3))]), "bag 1 is empty"),
        (lambda: Bags([]), "there are no bags"),
        (lambda: Bags(np.zeros((0, 5, 4))), "there are no bags"),
        (lambda: Bags([np.ones((2, 2)), [[1.0, 2.0], [3.0]]]), "bag 1 must be a matrix of numbers"),
        (lambda: Bags([None, np.ones((2, 2))]), "bag 0 must"),
        (lambda: Bags(bag for bag in parts()), "candidates must be a matrix of numbers"),
        (lambda: Bags([np.ones((2, 3)), []]), "bag 1 is empty"),
        (lambda: Bags(np.ones((2, 3)), offsets=[0, 2, 2]), "bag 1 is empty"),
        (lambda: Bags([np.ones((2, 3)), np.ones((2, 4))]), "bag 1 has 4 features, bag 0 has 3"),
        (lambda: Bags([np.ones((2, 3)), [[1.0, np.nan, 0.0]]]), "bag 1 contains NaN, in candidate 0"),
        (lambda: Bags([[[1.0], [np.inf]]]), "bag 0 contains infinity, in candidate 1"),
        (lambda: Bags([[1.0], [np.nan], [1.0]], bag_ids=["a", "b", "a"]), "bag 'b' contains NaN, in candidate 0"),
        (lambda: Bags([[1.0], [1.0], [np.nan]], bag_ids=["a", "b", "a"]), "bag 'a' contains NaN, in candidate 1"),
        (lambda: Bags(sparse.csr_array([[0.0, 1.0], [np.nan, 0.0]])), "bag 1 contains NaN"),
        (lambda: Bags(np.ones((2, 3)), bag_ids=[1]), "bag_ids has 1 entries, candidates 2"),
        (lambda: Bags(np.ones((2, 3)), bag_ids=[1, np.nan]), "bag_ids\\[1\\] is nan"),
        (lambda: Bags(np.ones((2, 3)), bag_ids=[0, 1], offsets=[0, 2]), "not both"),
        (lambda: Bags(np.ones((2, 3)), offsets=[0, 3]), "must run from 0 to 2"),
        (lambda: Bags(np.ones((2, 3)), offsets=[0, 2, 1, 2]), "is less than"),
        (lambda: Bags(np.ones((2, 3)), offsets=[0.0, 2.0]), "vector of integers"),
        (lambda: Bags(np.ones(3)), "two dimensions"),
        (lambda: Bags(np.ones((2, 0))), "0 feature"),
        (lambda: Bags(np.array([["a"], ["b"]])), "real numbers"),
        (lambda: Bags(np.ones((2, 2), complex)), "real numbers"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_large_numbers_are_not_infinite():
    assert len(Bags(np.full((4, 3), 1e308))) == 4


def test_transformer():
    bags = Bags(parts([2, 5, 3]))
    model = make_pipeline(BagTransformer(StandardScaler()), BagTransformer(PCA(2))).fit(bags)
    result = model.transform(bags[[2, 0]])
    expected = make_pipeline(StandardScaler(), PCA(2)).fit(bags.candidates())
    assert result.sizes.tolist() == [3, 2]
    np.testing.assert_allclose(result.candidates(), expected.transform(bags[[2, 0]].candidates()))
    names = BagTransformer(StandardScaler()).fit(bags).get_feature_names_out()
    assert names.tolist() == ["x0", "x1", "x2", "x3"]


def test_transformer_of_arrays_lists_and_sparse_bags():
    arrays = parts()
    X = np.concatenate(arrays)
    scaler = BagTransformer(StandardScaler()).fit(X)
    np.testing.assert_allclose(scaler.transform(X), StandardScaler().fit_transform(X))
    np.testing.assert_allclose(scaler.transform(arrays).candidates(), scaler.transform(X))
    sparse_bags = Bags(sparse.csr_array(X), bag_ids=["u", "u", "v", "w", "w", "w"])
    scaled = BagTransformer(MaxAbsScaler()).fit_transform(sparse_bags)
    assert scaled.ids.tolist() == ["u", "v", "w"]
    np.testing.assert_allclose(scaled.candidates().toarray(), X / np.abs(X).max(axis=0))


@pytest.mark.parametrize("threads", ["1", "3"])
def test_segment_maxima(monkeypatch, threads):
    monkeypatch.setenv("RANKHINGE_NUM_THREADS", threads)
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 40, size=60_000)
    stop = np.cumsum(sizes)
    start = stop - sizes
    scores = rng.integers(0, 9, size=stop[-1]).astype(np.float64)
    value, place = segment_maxima(scores, start, stop)
    np.testing.assert_array_equal(value, np.maximum.reduceat(scores, start))
    for b in range(0, sizes.size, 997):
        assert place[b] == start[b] + np.argmax(scores[start[b] : stop[b]])


def test_best_of_segments_on_many_threads():
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 40, size=30_000)
    stop = np.cumsum(sizes)
    start = stop - sizes
    scores = rng.integers(0, 9, size=stop[-1]).astype(np.float64)
    places, values = np.empty((sizes.size, 3), np.int64), np.empty((sizes.size, 3))
    segment_best(scores, start, stop, places, values)
    for b in range(0, sizes.size, 499):
        order = start[b] + np.argsort(-scores[start[b] : stop[b]], kind="stable")[:3]
        missing = 3 - order.size
        assert places[b].tolist() == order.tolist() + [-1] * missing
        assert values[b].tolist() == scores[order].tolist() + [-np.inf] * missing


def test_segment_maxima_of_few_and_many():
    value, place = segment_maxima(np.zeros(0), np.zeros(0, int), np.zeros(0, int))
    assert value.size == place.size == 0
    scores = np.arange(1e6)
    value, place = segment_maxima(scores, np.array([0, 5]), np.array([1_000_000, 6]))
    assert (value.tolist(), place.tolist()) == ([999_999.0, 5.0], [999_999, 5])


def test_no_bags_of_some():
    bags = Bags(parts())
    assert bags[:0].candidates().shape == (0, bags.n_features)
    assert bags[:0].rows().size == 0


def frames(names):
    pandas = pytest.importorskip("pandas")
    return [pandas.DataFrame(part, columns=list(names)[: part.shape[1]]) for part in parts()]


def test_names_of_features():
    named = frames("abcd")
    bags = Bags(named)
    assert bags.feature_names.tolist() == list(named[0].columns)
    assert bags[1:].feature_names is bags.feature_names
    assert Bags(named[0], offsets=[0, len(named[0])]).feature_names.tolist() == list(named[0].columns)
    assert Bags(parts()).feature_names is None
    named[1] = named[1][named[1].columns[::-1]]
    with pytest.raises(ValueError, match="bag 1 has other feature names than bag 0, or another order"):
        Bags(named)


def test_frames_of_polars():
    polars = pytest.importorskip("polars")
    bags = Bags([polars.DataFrame(part, schema=[f"x{c}" for c in range(part.shape[1])]) for part in parts()])
    assert bags.feature_names[0] == "x0"
    np.testing.assert_array_equal(bags.candidates(), Bags(parts()).candidates())


@pytest.mark.parametrize("equal", [True, False])
def test_transformer_whatever_the_output_is_set_to(equal):
    pytest.importorskip("pandas")
    bags, y = Bags(parts([3] * 12 if equal else [2, 3] * 6)), np.arange(12) % 3 == 0
    expected = BagTransformer(StandardScaler()).fit(bags).transform(bags).candidates()
    with config_context(transform_output="pandas"):
        scaled = BagTransformer(StandardScaler()).fit(bags).transform(bags)
        assert isinstance(scaled, Bags)
        np.testing.assert_allclose(scaled.candidates(), expected)
        make_pipeline(BagTransformer(StandardScaler()), LatentRankSVC()).fit(bags, y)


def named(names, sizes=(2, 3, 4, 3)):
    pandas = pytest.importorskip("pandas")
    return [pandas.DataFrame(part[:, : len(names)], columns=names) for part in parts(list(sizes))]


def test_transformer_checks_names_and_passes_them_on():
    frames = named(["u", "v"])
    transformer = BagTransformer(StandardScaler()).fit(frames)
    assert transformer.feature_names_in_.tolist() == ["u", "v"]
    assert transformer.transform(frames).feature_names.tolist() == ["u", "v"]
    assert transformer.get_feature_names_out().tolist() == ["u", "v"]
    with pytest.raises(ValueError, match=r"feature names should match .* got \['v', 'u'\], fitted with \['u', 'v'\]"):
        transformer.transform([frame[["v", "u"]] for frame in frames])
    with pytest.warns(UserWarning, match="BagTransformer was fitted with feature names") as caught:
        unnamed = transformer.transform([frame.to_numpy() for frame in frames])
    assert len(caught) == 1
    np.testing.assert_array_equal(unnamed.candidates(), transformer.transform(frames).candidates())
    with pytest.warns(UserWarning, match="BagTransformer was fitted without feature names"):
        BagTransformer(StandardScaler()).fit([frame.to_numpy() for frame in frames]).transform(frames)
    assert not hasattr(transformer.fit([frame.to_numpy() for frame in frames]), "feature_names_in_")


def test_transformer_of_columns_by_name():
    frames = named(["u", "v", "w"])
    transformer = BagTransformer(make_column_transformer((StandardScaler(), ["w"]), ("passthrough", ["u"])))
    result = transformer.fit_transform(frames)
    assert result.feature_names.tolist() == ["standardscaler__w", "passthrough__u"]
    np.testing.assert_array_equal(result[1][:, 1], frames[1]["u"])
    y = np.array([1, 0, 1, 0])
    pipeline = make_pipeline(transformer, LatentRankSVC()).fit(frames, y)
    np.testing.assert_array_equal(pipeline[-1].coef_, LatentRankSVC().fit(result, y).coef_)
    assert pipeline[-1].feature_names_in_.tolist() == ["standardscaler__w", "passthrough__u"]


def test_transformer_of_frames_without_pandas(monkeypatch):
    frames = named(["u", "v"])

    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(transformer_module, "import_module", refuse)
    result = BagTransformer(StandardScaler()).fit(Bags(frames)).transform(Bags(frames))
    assert result.feature_names.tolist() == ["u", "v"]


def test_no_such_bag():
    bags = Bags(parts())
    np.testing.assert_array_equal(bags[-1], bags[len(bags) - 1])
    for key in (len(bags), -len(bags) - 1):
        with pytest.raises(IndexError, match=f"there is no bag {key}: there are {len(bags)} bags"):
            bags[key]


def test_transformer_and_features():
    bags = Bags(parts())
    transformer = BagTransformer(StandardScaler())
    with pytest.raises(NotFittedError):
        transformer.get_feature_names_out()
    assert not hasattr(transformer, "n_features_in_")
    transformer.fit(bags)
    assert transformer.n_features_in_ == bags.n_features
    assert make_pipeline(transformer).n_features_in_ == bags.n_features
    assert transformer.transform(bags[[2, 0]]).ids.tolist() == [2, 0]
    with pytest.raises(ValueError, match="0 sample"):
        transformer.transform(bags[:0])


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_masked_arrays_and_matrices():
    X = parts([6])[0]
    masked = np.ma.masked_array(X, mask=np.zeros_like(X, bool))
    np.testing.assert_array_equal(Bags(masked).candidates(), X)
    assert type(Bags(np.asmatrix(X)).candidates()) is np.ndarray
    masked[2, 1] = np.ma.masked
    for given in (masked, [masked, X]):
        with pytest.raises(ValueError, match="masked"):
            Bags(given)


def test_a_transformer_of_rows_is_told_what_to_use():
    bags = Bags(parts())
    for transformer in (StandardScaler(), PCA(1)):
        with pytest.raises(TypeError, match=r"BagTransformer\(StandardScaler\(\)\)"):
            transformer.fit(bags)


def test_labels_of_candidates_are_no_labels_of_bags():
    bags = Bags(parts())
    with pytest.raises(ValueError, match="there are 3 bags, but y has 6 labels: one label for each bag, not for each"):
        LatentRankSVC().fit(bags, np.arange(6) % 2)
    with pytest.warns(UserWarning, match=r"each of its 6 rows is a bag of one candidate.*Bags\(X, bag_ids=\.\.\.\)"):
        LatentRankSVC().fit(np.concatenate(parts()), np.arange(6) % 2)
