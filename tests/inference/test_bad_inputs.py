"""What is refused, with a message that names the value and the place."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking, most_violating_rankings, ranking_loss, structured_hinge
from tests.inference.cases import AP_METHODS, large_list

# The place of the bad score, and a list that is short, counted in buckets, or long.
SIZES = pytest.mark.parametrize("n_negatives", [6, 500, 270_000])
BAD_SCORES = pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.nan, "is nan: scores must be finite"),
        (np.inf, "is inf: scores must be finite"),
        (-np.inf, "is -inf: scores must be finite"),
        (1.7e308, r"is 1.7e\+308: its differences to other scores would overflow"),
        (-2e300, r"is -2e\+300: its differences to other scores would overflow"),
    ],
)


def spoilt(n_negatives, place, bad, kind="overlapping"):
    """A list with one bad score, and the index of that."""
    scores, relevant = large_list(kind, 4, n_negatives)
    place = {"first": 0, "last": scores.size - 1, "positive": int(np.flatnonzero(relevant)[2])}[place]
    scores[place] = bad
    return scores, relevant, place


@BAD_SCORES
@SIZES
@pytest.mark.parametrize("place", ["first", "last", "positive"])
@pytest.mark.parametrize("kind", ["overlapping", "trained"])
@pytest.mark.parametrize("loss", ["ap", "rr", "zero-one"])
def test_bad_scores(bad, message, n_negatives, place, kind, loss):
    scores, relevant, index = spoilt(n_negatives, place, bad, kind)
    with pytest.raises(ValueError, match=rf"scores\[{index}\] {message}"):
        most_violating_ranking(scores, relevant, loss)
    with pytest.raises(ValueError, match=rf"scores\[{index}\] {message}"):
        structured_hinge(scores, relevant, loss)


@BAD_SCORES
@pytest.mark.parametrize("method", AP_METHODS)
def test_bad_scores_by_every_method(bad, message, method):
    scores, relevant, index = spoilt(20, "last", bad)
    with pytest.raises(ValueError, match=rf"scores\[{index}\] {message}"):
        most_violating_ranking(scores, relevant, "ap", method)


@pytest.mark.parametrize("n_negatives", [6, 270_000])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_float32_scores(n_negatives, bad):
    scores, relevant, index = spoilt(n_negatives, "last", bad)
    with pytest.raises(ValueError, match=rf"scores\[{index}\] is {bad}: scores must be finite"):
        most_violating_ranking(scores.astype(np.float32), relevant)


@BAD_SCORES
@SIZES
@pytest.mark.parametrize("place", ["first", "positive"])
@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_bad_scores_in_a_batch(bad, message, n_negatives, place, loss):
    """The place is told in the whole batch, not in its list."""
    scores, relevant, index = spoilt(n_negatives, place, bad)
    before, before_relevant = large_list("overlapping", 3, 14)
    with pytest.raises(ValueError, match=rf"scores\[{index + 17}\] {message}"):
        most_violating_rankings(
            np.concatenate([before, scores]),
            np.concatenate([before_relevant, relevant]),
            [0, 17, 17 + scores.size],
            loss,
        )


@SIZES
@pytest.mark.parametrize("relevance", [True, False])
def test_bad_scores_in_a_list_that_is_not_usable(n_negatives, relevance):
    """A NaN is told also where the list would not have counted."""
    scores, _, index = spoilt(n_negatives, "last", np.nan)
    with pytest.raises(ValueError, match=rf"scores\[{index}\] is nan"):
        most_violating_rankings(scores, np.full(scores.size, relevance), [0, scores.size])


@SIZES
@pytest.mark.parametrize("method", ["auto", "histogram", "quicksort", "greedy", "search", "select"])
def test_one_class_only(n_negatives, method):
    scores = np.arange(n_negatives, dtype=float)
    with pytest.raises(ValueError, match="no sample is relevant"):
        most_violating_ranking(scores, np.zeros(n_negatives, bool), method=method)
    with pytest.raises(ValueError, match="all samples are relevant"):
        most_violating_ranking(scores, np.ones(n_negatives, bool), method=method)


def test_no_samples():
    with pytest.raises(ValueError, match="no sample is relevant"):
        most_violating_ranking([], [])


@pytest.mark.parametrize(
    ("scores", "relevant", "message"),
    [
        ([1.0, 2.0, 3.0], [1, 0], r"relevant has shape \(2,\), scores have shape \(3,\)"),
        ([1.0], [1, 0], r"relevant has shape \(2,\), scores have shape \(1,\)"),
        ([1.0, 2.0], [[1, 0]], r"relevant has shape \(1, 2\), scores have shape \(2,\)"),
        ([[1.0, 2.0]], [[1, 0]], r"scores must be one-dimensional, got shape \(1, 2\)"),
        (1.0, True, r"scores must be one-dimensional, got shape \(\)"),
        (["a", "b"], [1, 0], "scores must be numbers, got dtype <U1"),
        ([1j, 2j], [1, 0], "scores must be numbers, got dtype complex128"),
        ([None, 1.0], [1, 0], "scores must be numbers, got dtype object"),
        ([1.0, 2.0, 3.0], [1, 0, 2], r"relevant\[2\] is 2: it must be 0 or 1"),
        ([1.0, 2.0, 3.0], [1, -1, 0], r"relevant\[1\] is -1: it must be 0 or 1"),
        ([1.0, 2.0, 3.0], [1, 0.5, 0], r"relevant\[1\] is 0.5: it must be 0 or 1"),
        ([1.0, 2.0, 3.0], [np.nan, 0, 1], r"relevant\[0\] is nan: it must be 0 or 1"),
        ([1.0, 2.0], ["yes", "no"], "relevant must be bool or 0/1, got dtype <U3"),
    ],
)
def test_bad_shapes_and_relevance(scores, relevant, message):
    with pytest.raises(ValueError, match=message):
        most_violating_ranking(scores, relevant)
    with pytest.raises(ValueError, match=message):
        most_violating_rankings(scores, relevant, [0, np.size(scores)])


@pytest.mark.parametrize("loss", ["aap", "", "mapp", None, 3])
def test_unknown_loss(loss):
    with pytest.raises(ValueError, match=f"unknown loss {loss!r}.*: choose one of .*'ap'.*'zero-one'"):
        most_violating_ranking([1.0, 0.0], [1, 0], loss)
    with pytest.raises(ValueError, match=f"unknown loss {loss!r}"):
        most_violating_rankings([1.0, 0.0], [1, 0], [0, 2], loss)


@pytest.mark.parametrize("method", ["Auto", "", "sort", None])
def test_unknown_method(method):
    with pytest.raises(ValueError, match=f"unknown method {method!r}: choose one of .*'auto'"):
        most_violating_ranking([1.0, 0.0], [1, 0], "ap", method)


@pytest.mark.parametrize("method", ["search", "select", "quicksort-search"])
@pytest.mark.parametrize("loss", ["ndcg", "rr", "auc", "rbp"])
def test_methods_for_ap_only(method, loss):
    with pytest.raises(ValueError, match=f"method '{method}' serves the loss 'ap' only"):
        most_violating_ranking([1.0, 0.0], [1, 0], loss, method)


@pytest.mark.parametrize("which", ["scores", "relevant"])
def test_masked_entries(which):
    arguments = {"scores": np.array([9.0, 1.0, 2.0]), "relevant": np.array([0, 1, 0])}
    arguments[which] = np.ma.array(arguments[which], mask=[True, False, False])
    with pytest.raises(ValueError, match=rf"{which}\[0\] is masked"):
        structured_hinge(**arguments)
    arguments[which] = np.ma.array(arguments[which].data)
    assert structured_hinge(**arguments) > 0


def test_no_samples_for_the_zero_one_loss():
    for function in (structured_hinge, ranking_loss):
        with pytest.raises(ValueError, match="there are no samples"):
            function([], [], "zero-one")
