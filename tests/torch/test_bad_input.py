"""What cannot be ranked is refused, with the offending value and place."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from rankhinge.losses import DCG
from rankhinge.torch import DirectLoss, RankHingeLoss, direct_loss, rank_hinge, retrieval_loss

SCORES = torch.arange(6.0).reshape(2, 3)
RELEVANT = torch.tensor([[True, False, False], [False, True, False]])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"scores": torch.arange(6).reshape(2, 3)}, "floating-point dtype, got torch.int64"),
        ({"scores": SCORES > 1}, "floating-point dtype, got torch.bool"),
        ({"scores": SCORES.tolist()}, "scores must be a tensor, got list"),
        ({"relevance": RELEVANT.tolist()}, "relevance must be a tensor, got list"),
        ({"scores": torch.tensor(1.0)}, r"their shape is \(\)"),
        ({"scores": torch.empty(0), "relevance": torch.empty(0)}, r"their shape is \(0,\)"),
        ({"scores": torch.empty(0, 4), "relevance": torch.empty(0, 4)}, r"their shape is \(0, 4\)"),
        ({"relevance": RELEVANT.T}, r"relevance has shape \(3, 2\), scores \(2, 3\)"),
        ({"relevance": RELEVANT + 0j}, "relevance must be real"),
        ({"mask": RELEVANT[0]}, r"of the scores' shape \(2, 3\), got torch.bool of shape \(3,\)"),
        ({"mask": RELEVANT.int()}, "mask must be bool .* got torch.int32"),
        ({"mask": RELEVANT, "groups": RELEVANT.long()}, "mask .* or groups .*, not both"),
        ({"groups": RELEVANT.long()}, r"with groups, scores must be one-dimensional, got shape \(2, 3\)"),
        ({"dim": 2}, "dim is 2, but scores have 2 dimensions"),
        ({"loss": "mapp"}, "unknown loss 'mapp'"),
        ({"loss": 3}, "got 3"),
        ({"loss": "zero-one"}, "decomposes over samples"),
        ({"reduction": "max"}, "reduction is 'max'"),
        ({"backend": "cuda"}, "backend is 'cuda'"),
        ({"gains": "log"}, "gains is 'log'"),
        ({"gains": [0.0, 2.0, 1.0]}, "gains must ascend from 0"),
        ({"level_weights": "equal"}, "level_weights is 'equal'"),
        ({"level_weights": [0.0, -1.0]}, "finite numbers ≥ 0"),
        ({"gains": None}, "gains must be a name or a sequence of numbers, got None"),
        ({"level_weights": 3}, "level_weights must be a name or a sequence of numbers, got 3"),
        ({"dim": None}, "dim is None"),
        ({"loss": "ap|x"}, "unknown loss 'ap|x'"),
        ({"loss": "#1"}, "unknown loss '#1'"),
        ({"scores": SCORES.to_sparse()}, "scores must be a dense tensor"),
        (
            {"scores": torch.nested.nested_tensor([SCORES[0], SCORES[1, :2]], layout=torch.jagged)},
            "scores must be a dense tensor: .* groups",
        ),
    ],
)
def test_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        rank_hinge(**{"scores": SCORES, "relevance": RELEVANT, **arguments})


@pytest.mark.parametrize("groups", [torch.zeros(5), torch.zeros(4, dtype=torch.int64)])
def test_groups_that_are_none(groups):
    with pytest.raises(ValueError, match="groups must be integers of the scores' shape"):
        rank_hinge(torch.randn(5), torch.arange(5) > 2, groups=groups)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize(
    ("dtype", "value", "problem"),
    [
        (torch.float64, torch.nan, "nan: scores must be finite"),
        (torch.float64, torch.inf, "inf: .* finite"),
        (torch.float64, 1e305, "1e\\+305: .* overflow"),
        (torch.float32, torch.nan, "nan: .* finite"),
        (torch.float32, -torch.inf, "-inf: .* finite"),
        (torch.bfloat16, torch.inf, "inf: .* finite"),
    ],
)
def test_bad_scores_are_named_by_their_place(backend, dtype, value, problem):
    scores = SCORES.to(dtype)
    scores[1, 2] = value
    with pytest.raises(ValueError, match=r"scores\[1, 2\] is " + problem):
        rank_hinge(scores, RELEVANT, backend=backend)
    with pytest.raises(ValueError, match=r"scores\[1, 2\] is " + problem):
        rank_hinge(scores, RELEVANT, dim=0, backend=backend)
    mask = torch.ones_like(RELEVANT)
    mask[0, 0] = False
    with pytest.raises(ValueError, match=r"scores\[1, 2\] is " + problem):
        rank_hinge(scores, RELEVANT, mask=mask, backend=backend)
    with pytest.raises(ValueError, match=r"scores\[5\] is " + problem):
        rank_hinge(scores.ravel(), RELEVANT.ravel(), groups=torch.tensor([3, 1, 0, 3, 1, 0]), backend=backend)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_scores_that_are_too_large_for_epsilon(backend):
    scores = torch.tensor([0.0, 1e10, 5.0], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"scores\[1\] is 10000000000.0: its differences .* overflow"):
        direct_loss(scores, torch.tensor([0, 1, 0]), 1e-300, backend=backend)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, torch.inf, "a", None])
def test_epsilon_that_is_none(epsilon):
    with pytest.raises(ValueError, match=f"epsilon is {epsilon!r}"):
        direct_loss(SCORES, RELEVANT, epsilon)


def test_more_grades_than_can_be_ranked():
    with pytest.raises(ValueError, match="a list has 1500 different grades"):
        rank_hinge(torch.randn(1501), torch.linspace(0, 4, 1501), loss="ndcg")


@pytest.mark.parametrize(
    ("loss", "options", "label", "complaint"),
    [
        ("ap", {}, 2.0, r"relevance\[1, 2\] is 2: the loss 'ap' takes relevant \(1\) and not relevant \(0\) only"),
        ("rr", {}, 0.5, r"relevance\[1, 2\] is 0.5: the loss 'rr'"),
        ("ap", {}, -1.0, r"relevance\[1, 2\] is -1: .* not negative"),
        ("ndcg", {}, torch.nan, r"relevance\[1, 2\] is nan: .* finite"),
        ("ndcg", {}, 5000.0, r"relevance\[1, 2\] is 5000: its gain is not finite"),
        ("ndcg", {"gains": [0, 1, 3]}, 3.0, r"relevance\[1, 2\] is 3: gains has entries for the labels 0 to 2"),
        ("ap", {"level_weights": [1, 1]}, 3.0, r"relevance\[1, 2\] is 3: level_weights has .* labels 1 to 2"),
        ("ap", {"level_weights": "uniform"}, 1.5, r"relevance\[1, 2\] is 1.5: .* whole numbers"),
    ],
)
def test_relevance_that_the_loss_does_not_know(loss, options, label, complaint):
    relevance = RELEVANT.double()
    relevance[1, 2] = label
    with pytest.raises(ValueError, match=complaint):
        rank_hinge(SCORES, relevance, loss=loss, **options)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_a_loss_that_is_not_suitable(backend):
    hard_cut = DCG(lambda rank: 1.0 * (rank <= 3))
    with pytest.raises(ValueError, match="not suitable"):
        rank_hinge(torch.randn(8), torch.arange(8) < 2, loss=hard_cut, backend=backend)


def test_modules_complain_when_they_are_made():
    for arguments, complaint in (
        ({"loss": "mapp"}, "unknown loss"),
        ({"reduction": "max"}, "reduction is"),
        ({"loss": "zero-one"}, "decomposes"),
    ):
        with pytest.raises(ValueError, match=complaint):
            RankHingeLoss(**arguments)


@pytest.mark.parametrize(
    ("embeddings", "labels", "options", "complaint"),
    [
        (torch.randn(4), torch.arange(4), {}, r"shape \(n, d\)"),
        (torch.randn(0, 3), torch.arange(0), {}, r"of shape \(0, 3\)"),
        (torch.arange(6).reshape(3, 2), torch.arange(3), {}, "got torch.int64"),
        (torch.randn(4, 2), torch.arange(3), {}, r"labels have shape \(3,\), but there are 4"),
        (torch.randn(4, 2), torch.arange(4), {"similarity": "l2"}, "similarity is 'l2'"),
        (torch.randn(4, 2), torch.arange(4), {"scale": 0.0}, "scale is 0.0"),
        (torch.randn(4, 2), torch.arange(4), {"reduction": "none"}, "reduction is 'none'"),
        (torch.randn(4, 2), torch.arange(4), {"chunk_size": 0}, "chunk_size is 0"),
        (torch.randn(4, 2), torch.arange(4), {"chunk_size": 2.5}, "chunk_size is 2.5"),
        (torch.randn(4, 2), torch.arange(4), {"scale": "2"}, "scale is '2'"),
        (torch.randn(4, 2), torch.arange(4), {"scale": torch.tensor(-2.0)}, "scale is -2.0"),
        (torch.randn(4, 2), torch.arange(4), {"scale": torch.ones(4)}, "single floating-point number"),
        (torch.randn(4, 2), [0, 0, 1, 1], {}, "labels must be a dense tensor, got list"),
        (torch.randn(4, 2).numpy(), torch.arange(4), {}, "embeddings must be a dense tensor, got ndarray"),
        (torch.tensor([[1.0, 0], [0, 1], [-1e30, 1]]), torch.arange(3), {}, r"embeddings\[2, 0\] is -1.* overflow"),
        (torch.tensor([[1.0, 2.0], [torch.nan, 0.0]]), torch.arange(2), {}, r"embeddings\[1, 0\] is nan"),
    ],
)
def test_bad_embeddings(embeddings, labels, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        retrieval_loss(embeddings, labels, **{"similarity": "dot", **options})


def test_without_torch_the_extra_is_named():
    program = "import sys; sys.modules['torch'] = None; import rankhinge.torch"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("rankhinge.torch needs PyTorch: pip install 'rankhinge[torch]'")


def test_scores_whose_loss_overflows():
    with pytest.raises(ValueError, match=r"scores\[0\] is .*e\+38: its differences to other scores would overflow"):
        rank_hinge(torch.tensor([3e38, -3e38]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"scores\[1, 0\] is .*e\+38: its differences"):
        rank_hinge(torch.tensor([[1.0, 2.0], [3e38, -3e38]]), torch.tensor([[0, 1], [0, 1]]))


def test_an_epsilon_that_is_a_parameter():
    criterion = DirectLoss(1.0)
    with pytest.raises(ValueError, match="epsilon is Parameter"):
        criterion.epsilon = torch.nn.Parameter(torch.tensor(1.0))
    assert (criterion.epsilon, list(criterion.parameters())) == (1.0, [])


def test_a_dim_that_is_none():
    criterion = RankHingeLoss()
    with pytest.raises(ValueError, match="dim is 'x': it must be an integer"):
        criterion.dim = "x"
    assert criterion.dim == -1
