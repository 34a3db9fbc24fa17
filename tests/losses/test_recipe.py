"""The recipe "How to add a loss" of CONTRIBUTING.md, followed to the letter."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from rankhinge import RankSVC, most_violating_ranking, ranking_loss, tight_hinge
from rankhinge.losses import check_suitable
from tests import brute_force
from tests.inference.cases import ANY_LOSS_METHODS, random_list

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def loss():
    """The class that the page shows."""
    recipe = re.search(r"### How to add a loss\n(.*?)\n### ", PAGE.read_text("utf-8"), flags=re.DOTALL)[1]
    code = re.search(r"```python\n(.*?)```", recipe, flags=re.DOTALL)[1]
    names: dict = {"__name__": "recipe"}
    exec(re.sub(r"(?m)^   ", "", code), names)
    return names["SquaredRanks"]()


JUDGE = brute_force.by_steps(lambda j, i, n_positives, n_negatives: -1.0 / (i + j) ** 2.0 / n_positives)


def test_it_is_suitable(loss):
    assert check_suitable(loss, 5, 7)
    assert loss.step(2, 3, 4, 9) == pytest.approx(-1 / 25 / 4, rel=1e-15)


@pytest.mark.parametrize("method", ANY_LOSS_METHODS)
def test_inference_is_exact(loss, method):
    rng = np.random.default_rng(0)
    for n_positives, n_negatives in ((1, 1), (1, 6), (3, 4), (5, 2)):
        scores, relevant = random_list(rng, n_positives, n_negatives)
        value = most_violating_ranking(scores, relevant, loss, method).value
        assert value == pytest.approx(brute_force.hinge(scores, relevant, JUDGE), rel=1e-13)


def test_everything_else_takes_it(loss):
    torch = pytest.importorskip("torch")
    from rankhinge.torch import direct_loss, rank_hinge

    rng = np.random.default_rng(1)
    scores, relevant = random_list(rng, 20, 50, overlap=0.3)
    value = most_violating_ranking(scores, relevant, loss).value
    assert ranking_loss(scores, relevant, loss) <= tight_hinge(scores, relevant, loss).value <= value
    tensors = torch.tensor(scores), torch.tensor(relevant)
    for backend in ("compiled", "torch"):
        found = rank_hinge(*tensors, loss=loss, backend=backend)
        assert float(found) == pytest.approx(value, rel=1e-12)
        direct_loss(*tensors, 1.0, update="negative", loss=loss, backend=backend)
    model = RankSVC(loss=loss).fit(scores[:, None], relevant)
    assert model.score(scores[:, None], relevant) == pytest.approx(1 - ranking_loss(scores, relevant, loss))
