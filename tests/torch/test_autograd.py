"""How the losses live with the rest of PyTorch: dtypes, autocast, graphs, compilation, second derivatives."""

from __future__ import annotations

import shutil

import pytest
import torch

from rankhinge.losses import CustomLoss
from rankhinge.torch import DirectLoss, RankHingeLoss, RetrievalLoss, direct_loss, rank_hinge, retrieval_loss
from tests.torch.cases import gradient_of, hinge_and_gradient, random_batch, tensor_step

SCORES, RELEVANT = torch.randn(6, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3 == 0
INDUCTOR = pytest.param("inductor", marks=pytest.mark.slow)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype, backend):
    """Scores are taken as they are, the rest is float32, and the gradient comes back in the scores' dtype."""
    scores, relevant, mask = random_batch(0, dtype=dtype)
    value, gradient = hinge_and_gradient(scores, relevant, mask=mask, backend=backend)
    expected, wide = hinge_and_gradient(scores.float(), relevant, mask=mask)
    assert value.dtype == torch.float32
    assert gradient.dtype == dtype
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, wide.to(dtype))


def test_small_gradients_survive_a_scaled_half_precision_loss():
    """u is about 1e-9 here, less than float16 can hold: loss scaling must reach it before the rounding."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(300_000, generator=generator).half()
    relevant = torch.arange(300_000) < 5000
    leaf = scores.clone().requires_grad_()
    (rank_hinge(leaf, relevant) * 2.0**20).backward()
    _, wide = hinge_and_gradient(scores.float(), relevant)
    torch.testing.assert_close(leaf.grad.float(), wide * 2.0**20, rtol=2e-3, atol=1e-7)
    assert (leaf.grad != 0).float().mean() > 0.5


def test_autocast():
    layer, inputs, relevant = torch.nn.Linear(4, 1), torch.randn(30, 4), torch.arange(30) < 9
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = layer(inputs).squeeze(1)
        assert scores.dtype == torch.bfloat16
        value = rank_hinge(scores, relevant)
        surrogate = direct_loss(scores, relevant, 0.1, update="negative")
    assert value.dtype == surrogate.dtype == torch.float32
    torch.testing.assert_close(value, rank_hinge(scores.float(), relevant))
    value.backward()
    assert layer.weight.grad.dtype == torch.float32
    assert layer.weight.grad.isfinite().all()


def test_no_graph_where_none_is_wanted():
    with torch.no_grad():
        assert not rank_hinge(torch.randn(5, requires_grad=True), torch.arange(5) > 2).requires_grad
    assert not rank_hinge(torch.randn(5), torch.arange(5) > 2).requires_grad
    with torch.inference_mode():
        rank_hinge(torch.randn(5), torch.arange(5) > 2)


@pytest.mark.parametrize(
    "criterion",
    [
        lambda x, y: rank_hinge(x, y),
        lambda x, y: rank_hinge(x, y, reduction="none").sum(),
        lambda x, y: direct_loss(x, y, 0.5),
        lambda x, y: retrieval_loss(x, y[:, 0]),
    ],
)
def test_the_second_derivative_is_refused(criterion):
    x = torch.randn(6, 5, requires_grad=True)
    y = torch.rand(6, 5) < 0.5
    y[0], y[1] = True, False
    (gradient,) = torch.autograd.grad(criterion(x, y), x, create_graph=True)
    assert gradient.isfinite().all()
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.autograd.grad(gradient.sum(), x, retain_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        gradient.square().sum().backward()
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.autograd.functional.hessian(lambda x: criterion(x, y), x.detach())


def test_a_penalty_on_gradients_is_refused():
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    value = rank_hinge(network(torch.randn(20, 3)).squeeze(1), torch.arange(20) < 5)
    parameters = list(network.parameters())
    gradients = torch.autograd.grad(value, parameters, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.autograd.grad(sum(gradient.square().sum() for gradient in gradients), parameters, retain_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        sum(gradient.square().sum() for gradient in gradients).backward()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_transforms_of_functions(reduction):
    """`torch.func`: gradients, one for each sample of a batch, and Jacobians; second derivatives are refused."""
    scores, relevant, groups = torch.randn(4, 6), torch.rand(4, 6) < 0.5, torch.arange(6) % 2
    relevant[:, 0], relevant[:, 1] = True, False

    def value(s, r):
        return rank_hinge(s, r, groups=groups, reduction=reduction).sum()

    expected = torch.stack([gradient_of(value, s, r)[1] for s, r in zip(scores, relevant)])
    torch.testing.assert_close(torch.func.grad(value)(scores[0], relevant[0]), expected[0])
    torch.testing.assert_close(torch.vmap(torch.func.grad(value))(scores, relevant), expected)
    torch.testing.assert_close(torch.func.jacrev(value)(scores[0], relevant[0]), expected[0])
    torch.testing.assert_close(
        torch.vmap(value)(scores, relevant), torch.stack([value(s, r) for s, r in zip(scores, relevant)])
    )
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.func.jacrev(torch.func.grad(value))(scores[0], relevant[0])


def test_new_tensors_go_where_the_scores_are():
    with torch.device("meta"):
        value, gradient = gradient_of(rank_hinge, SCORES, RELEVANT)
    assert value.device == gradient.device == SCORES.device


def test_scores_that_are_a_negated_view():
    scores = torch.randn(6, dtype=torch.complex64).conj().imag
    assert scores.is_neg()
    torch.testing.assert_close(rank_hinge(scores, RELEVANT), rank_hinge(scores.clone(), RELEVANT))


def test_backward_through_a_kept_graph():
    scores, relevant = torch.randn(9, requires_grad=True), torch.arange(9) < 3
    value = rank_hinge(scores, relevant)
    value.backward(retain_graph=True)
    once = scores.grad.clone()
    value.backward()
    torch.testing.assert_close(scores.grad, 2 * once)


CUSTOM = RankHingeLoss(CustomLoss(tensor_step))
COMPILED = {
    "function": lambda s, r, m, g: rank_hinge(2 * s, r, loss="ndcg"),
    "mask": lambda s, r, m, g: rank_hinge(s.sin(), r, mask=m, reduction="none").square(),
    "label by label": lambda s, r, m, g: rank_hinge(s, r.float() * 2, loss="ndcg", gains=[0.0, 1.0, 3.0], dim=0),
    "groups": lambda s, r, m, g: rank_hinge(s.reshape(-1), r.reshape(-1), groups=g.reshape(-1)),
    "value of each group": lambda s, r, m, g: (
        rank_hinge(s.reshape(-1), r.reshape(-1), groups=g.reshape(-1), reduction="none").exp().sum()
    ),
    "module with a loss of one's own": lambda s, r, m, g: CUSTOM(s * s, r, mask=m),
    "direct": lambda s, r, m, g: direct_loss(s, r, 0.5, update="negative"),
    "retrieval": lambda s, r, m, g: retrieval_loss(s, g[:, 0], scale=2.0),
}


# PyTorch's compiler uses parts of PyTorch that PyTorch warns of.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("compiler", ["aot_eager", INDUCTOR])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_into_one_graph(name, compiler):
    if compiler == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("no compiler for C++")
    function = COMPILED[name]
    compiled = torch.compile(function, fullgraph=True, backend=compiler)
    for seed in range(2):
        scores, relevant, mask = random_batch(seed, n_lists=6, dtype=torch.float32)
        scores = torch.nan_to_num(scores)
        groups = torch.randint(0, 3, scores.shape, generator=torch.Generator().manual_seed(seed))
        expected, gradient = gradient_of(function, scores, relevant, mask, groups)
        value, other = gradient_of(compiled, scores, relevant, mask, groups)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(other, gradient)


def test_compiled_training_step_with_batches_of_any_size():
    model = torch.nn.Linear(3, 1)
    criterion = RankHingeLoss("ap")

    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def step(inputs, relevant):
        return criterion(model(inputs).squeeze(1), relevant)

    for n in (10, 17, 33):
        inputs, relevant = torch.randn(n, 3), torch.arange(n) < 4
        torch.testing.assert_close(step(inputs, relevant), criterion(model(inputs).squeeze(1), relevant))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "function",
    [
        lambda s, r, number: rank_hinge(s, r),
        lambda s, r, number: direct_loss(s, r, number),
        lambda s, r, number: retrieval_loss(s, r.long()[:, 0], scale=number),
    ],
)
def test_functions_compiled_for_sizes_and_numbers_that_change(function):
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=True)
    for n, number in ((5, 0.5), (9, 0.25), (12, 0.125)):
        scores = torch.randn(n, 6, generator=torch.Generator().manual_seed(n))
        relevant = torch.arange(6 * n).reshape(n, 6) % 5 < 2
        torch.testing.assert_close(compiled(scores, relevant, number), function(scores, relevant, number))


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, -0.5])
def test_pytorch_has_no_objection_to_the_operator(epsilon, reduction):
    """Schema, fake implementation, autograd registration and traced graphs, by PyTorch's own checks."""
    from rankhinge.torch.operators import rank_loss_operator
    from rankhinge.torch.settings import encode

    scores = torch.randn(3, 8, requires_grad=True)
    relevant = torch.rand(3, 8) < 0.5
    settings = encode("ap", reduction, "auto", "exponential", None)
    torch.library.opcheck(rank_loss_operator, (scores, relevant, None, None, 1, settings, epsilon))
    torch.library.opcheck(rank_loss_operator, (scores, relevant, torch.rand(3, 8) < 0.9, None, 0, settings, epsilon))
    flat = scores.detach().reshape(-1).requires_grad_()
    groups = torch.arange(24) % 4
    torch.library.opcheck(rank_loss_operator, (flat, relevant.reshape(-1), None, groups, 0, settings, epsilon))


def test_modules_have_no_parameters():
    for module in (RankHingeLoss(), DirectLoss(1.0), RetrievalLoss()):
        assert not list(module.parameters())
        assert module.state_dict() == {}


@pytest.mark.parametrize("with_gradient", [True, False])
def test_pytorch_has_no_objection_to_the_operator_for_embeddings(with_gradient):
    from rankhinge.torch.retrieval import _retrieval
    from rankhinge.torch.settings import encode

    embeddings = torch.randn(9, 3, requires_grad=with_gradient)
    settings = encode("ap", "mean", "auto", "exponential", None)
    torch.library.opcheck(_retrieval, (embeddings, torch.arange(9) % 3, 0, 2.0, 4, with_gradient, settings))
    torch.library.opcheck(_retrieval, (embeddings, torch.arange(9) % 3, 4, 2.0, 4, with_gradient, settings))


def test_settings_of_modules_can_be_changed():
    scores, relevant = torch.tensor([2.0, 1.5, 1.0, 0.5]), torch.tensor([0, 1, 0, 1])
    criterion = DirectLoss(epsilon=0.5)
    criterion.epsilon = 4.0
    for made, changed in zip(
        gradient_of(DirectLoss(4.0), scores, relevant), gradient_of(criterion, scores, relevant), strict=True
    ):
        torch.testing.assert_close(made, changed)
    with pytest.raises(ValueError, match="epsilon is -1"):
        criterion.epsilon = -1
    assert criterion.epsilon == 4.0
    torch.testing.assert_close(gradient_of(criterion, scores, relevant)[1], changed)
    hinge = RankHingeLoss()
    hinge.reduction = "none"
    assert hinge(torch.randn(3, 6), torch.rand(3, 6) < 0.5).shape == (3,)
    with pytest.raises(ValueError, match="unknown loss"):
        hinge.loss = "mapp"
    assert hinge.loss == "ap"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("criterion", [rank_hinge, lambda x, y: retrieval_loss(x[:, None], y)])
def test_forward_mode_is_refused(criterion):
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward mode"):
        criterion(torch.autograd.forward_ad.make_dual(SCORES, torch.ones_like(SCORES)), RELEVANT)


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_tensors_without_data(shape):
    scores, relevant = torch.empty(shape, device="meta"), torch.empty(shape, dtype=torch.bool, device="meta")
    assert rank_hinge(scores, relevant).shape == ()
    assert rank_hinge(scores, relevant, reduction="none").shape == shape[:-1]


def test_another_device_by_default():
    graded = torch.tensor([0, 2, 1, 0, 0, 1])
    expected = rank_hinge(SCORES, graded, loss="ndcg")
    with torch.device("meta"):
        assert rank_hinge(SCORES, graded, loss="ndcg") == expected


def test_tensors_that_are_minus_what_lies_in_memory():
    scores, relevant = torch.randn(3, 6), RELEVANT.expand(3, 6)
    negative = torch._neg_view(scores)
    assert negative.is_neg()
    torch.testing.assert_close(rank_hinge(negative, relevant), rank_hinge(-scores, relevant))
    torch.testing.assert_close(direct_loss(negative, relevant, 0.5), direct_loss(-scores, relevant, 0.5))


def test_lists_that_vmap_cannot_stack():
    groups = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    with pytest.raises(ValueError, match="under vmap, all samples must have the same number of lists"):
        torch.vmap(lambda g: rank_hinge(SCORES, RELEVANT, groups=g, reduction="none"))(groups)
