"""The trainer as a user sees it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from rankhinge.losses import ReciprocalRank
from rankhinge.torch import rank_hinge
from rankhinge.torch.layerwise import LayerwiseTrainer
from rankhinge.torch.layerwise.frank_wolfe import FrankWolfe
from tests.torch.layerwise.helpers import LOSSES, blobs, convolutional, dense, images, scores_of, squares
from tests.torch.layerwise.test_criteria import by_the_book


def weights_of(network):
    return [p.detach().clone() for p in network.parameters()]


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("make", "data"), [(dense, blobs), (convolutional, images)])
def test_objective_is_that_of_the_network_returned(make, data, loss):
    X, y = data()
    network = make()
    before = by_the_book(loss, scores_of(network, X), y) + 0.5e-2 * squares(network)
    trainer = LayerwiseTrainer(network, loss, lam=1e-2, block_size=1000, max_passes=2, random_state=0).fit(X, y)
    assert trainer.history_[0]["objective"] == pytest.approx(before, rel=1e-5)
    after = by_the_book(loss, scores_of(network, X), y) + 0.5e-2 * squares(network)
    assert trainer.best_["objective"] == pytest.approx(after, rel=1e-5)
    assert trainer.best_ is min(trainer.history_, key=lambda entry: entry["objective"])


@pytest.mark.parametrize("loss", LOSSES)
def test_best_weights_by_validation(loss):
    X, y = blobs(150)
    network = dense()
    trainer = LayerwiseTrainer(network, loss, lam=1e-4, block_size=50, max_passes=6, random_state=0)
    trainer.fit(X[:90], y[:90], validation=(X[90:], y[90:]))
    validation = [entry["validation"] for entry in trainer.history_]
    assert trainer.best_["validation"] == max(validation)
    targets = trainer._criterion.prepare(y[90:], 60, 3)
    assert trainer._criterion.metric(scores_of(network, X[90:]), targets) == pytest.approx(max(validation), abs=1e-6)
    if trainer.status_ == "validation fell":
        ends = [entry["validation"] for entry in trainer.history_[:: len(trainer._chain.trainable)]]
        assert ends[-1] < ends[-2]


def test_stops_when_validation_falls_and_goes_back():
    """The validation part's labels are turned round: what helps the training part harms it."""
    X, y = blobs(150, n_classes=2)
    network = dense(n_classes=2, seed=1)
    start = weights_of(network)
    trainer = LayerwiseTrainer(network, "ap", lam=1e-4, block_size=50, random_state=0)
    trainer.fit(X, y, validation=(X, 1 - y))
    assert trainer.history_[-1]["objective"] < trainer.history_[0]["objective"]
    assert trainer.status_ == "validation fell"
    assert trainer.n_passes_ == 1
    assert trainer.best_ is trainer.history_[0]
    assert equal(start, weights_of(network))


def test_history():
    X, y = images()
    trainer = LayerwiseTrainer(convolutional(), "ap", block_size=20, max_passes=2, random_state=0)
    trainer.fit(X, y, validation=0.25)
    start, *turns = trainer.history_
    assert (start["pass"], start["layer"], start["dual"]) == (0, None, None)
    assert [entry["layer"] for entry in turns[:4]] == ["10", "6", "2", "0.0"]
    assert [entry["surrogate"] for entry in turns[:4]] == ["exact", "exact", "frozen", "frozen"]
    assert [entry["pass"] for entry in turns] == [1] * 4 + [2] * (len(turns) - 4)
    assert trainer.n_passes_ == turns[-1]["pass"]
    for entry in turns:
        # Less what rounding may have added to the last: more in float32, where choices are frozen, than in float64.
        assert 0 <= entry["dual"] <= entry["duals"][-1]
        assert entry["dual"] >= entry["duals"][-1] - (1e-9 if entry["surrogate"] == "exact" else 0.1)
        assert entry["gap"] == pytest.approx((entry["primal"] - entry["dual"]) / entry["primal"])
        assert 0 < entry["inference_seconds"] < entry["seconds"]
        assert 0 <= entry["validation"] <= 1
        assert 1 <= len(entry["duals"]) <= 20


def test_the_rest_of_the_network_stays_as_it_was():
    X, y = images()
    network = convolutional()
    network[6].weight.requires_grad_(False)
    before = copy.deepcopy(network.state_dict())
    network.train()
    LayerwiseTrainer(network, "ap", block_size=20, max_passes=1, random_state=0).fit(X, y)
    assert network.training
    changed = {name for name, value in network.state_dict().items() if not torch.equal(value, before[name])}
    assert changed <= {"0.0.weight", "0.0.bias", "2.weight", "10.weight", "10.bias"}
    assert "10.weight" in changed
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.parametrize("loss", LOSSES)
def test_same_seed_same_weights(loss):
    X, y = images()
    found = []
    for seed in (0, 0, 1):
        network = convolutional()
        LayerwiseTrainer(network, loss, block_size=20, max_passes=1, random_state=seed).fit(X, y, validation=0.3)
        found.append(weights_of(network))
    assert equal(found[0], found[1])
    assert not equal(found[0], found[2])


def test_fit_goes_on_from_the_weights_there_are():
    X, y = blobs()
    trainer = LayerwiseTrainer(dense(), "ap", max_passes=1, random_state=0).fit(X, y)
    reached = trainer.best_["objective"]
    again = trainer.fit(X, y).history_
    assert again[0]["objective"] == pytest.approx(reached, rel=1e-6)
    assert again[0]["pass"] == 0


def test_converged():
    X, y = blobs(30, d=4)
    network = nn.Sequential(nn.Linear(4, 3)).double()
    trainer = LayerwiseTrainer(network, "ap", lam=1.0, tol=1e-4, max_passes=200, max_epochs=200, random_state=0)
    trainer.fit(X, y)
    assert trainer.status_ == "converged"
    assert trainer.history_[-1]["taken"] is None


def test_greedy_inference_gives_the_same_duals():
    X, y = blobs()
    histories = [
        LayerwiseTrainer(
            dense(dtype=torch.float64), "ndcg", block_size=45, max_passes=1, max_epochs=3, method=method, random_state=0
        ).fit(X, y).history_
        for method in ("auto", "greedy")
    ]  # fmt: skip
    for one, other in zip(*histories, strict=True):
        np.testing.assert_allclose(one["duals"], other["duals"], rtol=1e-9)
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-9)


def test_multilabel_and_single_outputs_and_other_losses():
    X, y = blobs()
    labels = np.stack([y == 0, y > 0, X[:, 0].numpy() > 0], axis=1).astype(int)
    trainer = LayerwiseTrainer(dense(), ReciprocalRank(), max_passes=1, random_state=0).fit(X, labels)
    assert trainer.best_["objective"] < trainer.history_[0]["objective"]
    single = LayerwiseTrainer(dense(n_classes=1), "auc", max_passes=1, random_state=0)
    single.fit(X.numpy(), torch.as_tensor(y == 1).int())
    assert single.best_["objective"] < single.history_[0]["objective"]


def test_images_of_bytes():
    X, y = images()
    X = (40 * X).clamp(-100, 100).round()
    one, other = convolutional(), convolutional()
    LayerwiseTrainer(one, max_passes=1, random_state=0).fit(X, y)
    LayerwiseTrainer(other, max_passes=1, random_state=0).fit(X.to(torch.int8).numpy(), y.tolist())
    assert equal(weights_of(one), weights_of(other))


def test_blocks_without_anything_to_rank_do_not_count():
    X, y = blobs(40)
    y[:] = 0
    y[:2] = 1
    trainer = LayerwiseTrainer(dense(n_classes=2), "ap", block_size=10, max_passes=1, random_state=0)
    with pytest.warns(UserWarning, match="2 of 4 blocks have no class .* their 20 of 40 samples are not used") as seen:
        trainer.fit(X, y)
    assert seen[0].filename == __file__
    assert trainer.history_[0]["loss"] > 0
    with pytest.raises(ValueError, match="none of the 4 blocks"):
        trainer.fit(X, np.zeros(40, int))


@pytest.mark.parametrize("k", [1, 2, 5, 9, 14])
def test_interrupt_leaves_the_best_weights(monkeypatch, k):
    X, y = blobs(150)
    network = dense()
    trainer = LayerwiseTrainer(network, "ap", lam=1e-3, block_size=50, max_epochs=2, random_state=0)
    original, n_calls = FrankWolfe.visit, iter(range(1, 10**6))

    def visit(self, *arguments):
        if next(n_calls) == k:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(FrankWolfe, "visit", visit)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(X[:100], y[:100], validation=(X[100:], y[100:]))
    assert trainer.status_ == "interrupted"
    targets = trainer._criterion.prepare(y[100:], 50, 3)
    found = trainer._criterion.metric(scores_of(network, X[100:]), targets)
    assert found == pytest.approx(max(entry["validation"] for entry in trainer.history_), abs=1e-6)
    assert found == pytest.approx(trainer.best_["validation"], abs=1e-6)


def test_progress(capsys):
    X, y = blobs()
    LayerwiseTrainer(dense(), max_passes=1, verbose=2, random_state=0).fit(X, y, validation=0.2)
    shown = capsys.readouterr().err
    assert "pass 1  layer 2  epoch 1  dual" in shown
    assert "pass 1  layer 1  epoch 1  dual" in shown
    assert "validation" in shown


def test_a_frozen_bias_stays_as_it_was():
    X, y = blobs()
    network = dense()
    network[0].bias.requires_grad_(False)
    bias, weight = network[0].bias.clone(), network[0].weight.clone()
    trainer = LayerwiseTrainer(network, "ap", block_size=45, max_passes=2, random_state=0).fit(X, y)
    assert torch.equal(network[0].bias, bias)
    assert not torch.equal(network[0].weight, weight)
    trained = [p for p in network.parameters() if p.requires_grad]
    squares = sum(p.detach().double().square().sum().item() for p in trained)
    assert trainer.best_["objective"] == pytest.approx(trainer.best_["loss"] + 0.5e-3 * squares, rel=1e-9)


def test_the_network_is_read_anew_at_each_fit():
    X, y = blobs()
    network = dense()
    trainer = LayerwiseTrainer(network, "ap", block_size=45, max_passes=1, random_state=0)
    network[0].requires_grad_(False)
    first = network[0].weight.clone()
    network[2] = nn.Linear(7, 3)
    last = network[2].weight.clone()
    trainer.fit(X, y)
    assert torch.equal(network[0].weight, first)
    assert not torch.equal(network[2].weight, last)
    trainer.loss, trainer.lam = "multiclass-hinge", 0.5
    other = LayerwiseTrainer(network, "multiclass-hinge", lam=0.5, block_size=45, max_passes=1, random_state=0)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    trainer.fit(X, y)
    network.load_state_dict(state)
    assert other.fit(X, y).history_[-1]["objective"] == trainer.history_[-1]["objective"]


@pytest.mark.parametrize("options", [{"bias": False}, {"affine": False}, {}])
def test_batch_norm_with_and_without_factors(options):
    X, y = blobs()
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8, **options)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    network = nn.Sequential(nn.Linear(6, 8), norm, nn.ReLU(), nn.Linear(8, 3))
    trainer = LayerwiseTrainer(network, "ap", lam=1e-3, block_size=90, max_passes=1).fit(X, y)
    scores, targets = network.eval()(X), torch.as_tensor(y)[:, None] == torch.arange(3)
    assert trainer.best_["loss"] == pytest.approx(rank_hinge(scores, targets, dim=0).item(), rel=1e-5)


def test_autocast_changes_nothing():
    X, y = blobs()

    def objective():
        trainer = LayerwiseTrainer(dense(), "ap", block_size=45, max_passes=1, random_state=0)
        return trainer.fit(X, y).best_["objective"]

    expected = objective()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert objective() == expected


def test_a_fit_that_fails_leaves_nothing_of_an_earlier_one():
    X, y = blobs()
    network = dense()
    trainer = LayerwiseTrainer(network, "ap", block_size=45, max_passes=1, random_state=0).fit(X, y)
    with torch.no_grad():
        network[0].weight.mul_(1e38)
    weight = network[0].weight.clone()
    with pytest.raises(ValueError, match="score of sample"):
        # The samples that the network is tried on are fine.
        trainer.fit(torch.cat([0 * X[:2], 1e5 * X[2:]]), y)
    assert (trainer.status_, trainer.history_, trainer.best_, trainer.n_passes_) == ("failed", [], {}, 0)
    assert torch.equal(network[0].weight, weight)
    assert not hasattr(trainer, "_blocks")


@pytest.mark.filterwarnings("error")
def test_arrays_of_any_kind(tmp_path):
    X, y = blobs()
    array = X.numpy()
    path = tmp_path / "X.npy"
    np.save(path, array)
    flipped = array[:, ::-1].copy()

    def objective(X):
        trainer = LayerwiseTrainer(dense(), "ap", block_size=45, max_passes=1, random_state=0)
        return trainer.fit(X, y).best_["objective"]

    expected = objective(X)
    for same in (flipped[:, ::-1], array.astype(">f4"), np.load(path, mmap_mode="r"), np.asfortranarray(array)):
        assert objective(same) == expected


def test_labels_in_bfloat16_and_inference_mode():
    X, y = blobs()
    torch.manual_seed(0)
    first, second = dense(), dense()
    second.load_state_dict(first.state_dict())
    expected = LayerwiseTrainer(first, "multiclass-hinge", max_passes=1, random_state=0).fit(X, y).best_["objective"]
    trainer = LayerwiseTrainer(second, "multiclass-hinge", max_passes=1, random_state=0)
    with torch.inference_mode():
        found = trainer.fit(X, torch.as_tensor(y).bfloat16()).best_["objective"]
    assert found == expected
