"""What trains nothing says so."""

from __future__ import annotations

import pytest
import torch

from rankhinge.torch import DirectLoss, RankHingeLoss, RetrievalLoss, direct_loss, rank_hinge, retrieval_loss

RELEVANT = torch.tensor([1, 0, 0, 1, 0, 0])


@pytest.mark.parametrize("criterion", [RankHingeLoss(), DirectLoss()])
def test_a_head_with_one_output_is_no_set_of_lists(criterion):
    scores = torch.linspace(0.3, 0.2, 6)[:, None].requires_grad_(True)
    with pytest.raises(ValueError, match=r"shape \(6, 1\), .* 6 lists of one sample, which rank nothing: squeeze"):
        criterion(scores, RELEVANT[:, None])
    criterion(scores.squeeze(1), RELEVANT).backward()
    assert scores.grad.any()
    assert rank_hinge(scores, RELEVANT[:, None], dim=0) == rank_hinge(scores[:, 0], RELEVANT)


def test_the_last_sample_of_an_epoch_may_be_alone():
    with pytest.warns(UserWarning, match="the list has no samples of different relevance: the loss is 0"):
        assert rank_hinge(torch.randn(1), torch.ones(1)) == 0


def test_a_call_without_a_usable_list_warns():
    with pytest.warns(UserWarning, match="none of the 3 lists has samples of different relevance"):
        rank_hinge(torch.randn(3, 4), torch.ones(3, 4))
    with pytest.warns(UserWarning, match="none of the 4 lists has samples of different relevance"):
        retrieval_loss(torch.randn(4, 2), torch.arange(4))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.float32])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_labels_of_both_signs(dtype, shape):
    scores, relevant = torch.randn(shape), RELEVANT.reshape(shape)
    signs = (2 * relevant - 1).to(dtype)
    for loss in ("ap", "ndcg", "rr"):
        assert rank_hinge(scores, signs, loss=loss) == rank_hinge(scores, relevant, loss=loss)
    with pytest.raises(ValueError, match="relevance must be finite and not negative"):
        rank_hinge(scores, torch.where(torch.arange(6).reshape(shape) == 1, 0, signs), loss="ndcg")


def test_direct_loss_has_a_default():
    scores = torch.randn(6)
    assert direct_loss(scores, RELEVANT) == direct_loss(scores, RELEVANT, 1.0)
    assert DirectLoss().epsilon == 1.0


@pytest.mark.parametrize("chunk_size", [None, 2])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_queries_rank_a_gallery(similarity, chunk_size):
    """The slow twin: each query's similarities to the gallery, as lists."""
    generator = torch.Generator().manual_seed(0)
    queries, gallery = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (5, 7))
    queries.requires_grad_(True), gallery.requires_grad_(True)
    labels, of_gallery = torch.arange(5) % 3, torch.arange(7) % 4
    options = {"similarity": similarity, "scale": 2.0}
    found = RetrievalLoss(chunk_size=chunk_size, **options)(queries, labels, gallery, of_gallery)
    slopes = torch.autograd.grad(found, (queries, gallery))
    rows = [torch.nn.functional.normalize(x, dim=1) if similarity == "cosine" else x for x in (queries, gallery)]
    expected = rank_hinge(2.0 * rows[0] @ rows[1].T, labels[:, None] == of_gallery, dim=1)
    torch.testing.assert_close(found, expected)
    for slope, other in zip(slopes, torch.autograd.grad(expected, (queries, gallery)), strict=True):
        torch.testing.assert_close(slope, other)


def test_a_gallery_without_labels():
    queries, labels = torch.randn(4, 3), torch.arange(4) % 2
    with pytest.raises(ValueError, match="gallery and gallery_labels go together"):
        retrieval_loss(queries, labels, queries)
    with pytest.raises(ValueError, match="embeddings have 3 columns on cpu, the gallery has 2"):
        retrieval_loss(queries, labels, queries[:, :2], labels)
    with pytest.raises(ValueError, match=r"gallery_labels have shape \(3,\), but there are 4 gallery"):
        retrieval_loss(queries, labels, queries, labels[:3])
