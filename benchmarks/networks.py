"""Do ranking losses pay in a network? Cross-entropy, then a bound on AP: three seeds, settings chosen on a part apart.

    make bench ONLY=networks
    make bench ONLY=networks ARGS="--tasks mammography"
    make bench ONLY=networks ARGS=--redraw

Each recipe chooses its settings (learning rate, batch size, scale of the scores, weight of the blend) by the metric on
a validation part, the best epoch included, and is judged once on the test part. What is done is written at once.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from _accuracy_sets import BINARY
from _datasets import VOC_UNIT, data_file
from _harness import ROOT, machine_facts
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from rankhinge.metrics import average_precision
from rankhinge.torch import rank_hinge, retrieval_loss

SEEDS = (0, 1, 2)
# The validation part is looked at after every third epoch.
EPOCHS, WARM_UP, EVERY = 30, 15, 3
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "networks.json", ROOT / "docs" / "benchmarks" / "networks.md"
# Recipes by name: the bound, and what is chosen on the validation part. A blend of 0 is cross-entropy alone.
RATES, BATCHES, SCALES = (3e-3,), (256, 1024), (1.0, 4.0)
RECIPES: dict[str, dict[str, Any]] = {
    "cross-entropy": {"bound": ["none"], "blend": [0.0], "scale": [1.0]},
    "cross-entropy, then convex": {"bound": ["convex"], "blend": [1.0], "scale": SCALES},
    "cross-entropy, then tight": {"bound": ["tight"], "blend": [1.0], "scale": SCALES},
    "cross-entropy, then both, tight": {"bound": ["tight"], "blend": [0.5], "scale": SCALES},
    "tight from the start": {"bound": ["tight"], "blend": [1.0], "scale": SCALES, "warm_up": [0]},
}
RETRIEVAL_RECIPES: dict[str, dict[str, Any]] = {
    "cross-entropy": {"bound": ["none"], "blend": [0.0], "scale": [16.0]},
    "convex": {"bound": ["convex"], "blend": [1.0], "scale": (4.0, 16.0), "warm_up": [0]},
    "tight": {"bound": ["tight"], "blend": [1.0], "scale": (4.0, 16.0), "warm_up": [0]},
    "cross-entropy, then tight": {"bound": ["tight"], "blend": [1.0], "scale": (4.0, 16.0)},
}


class Data(NamedTuple):
    """Features and targets, (n, K) with 1, 0, and nan where a label is unknown; for retrieval the classes, (n,)."""

    train: tuple[Tensor, Tensor]
    valid: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def _split(X: Any, y: Any, seed: int, strata: Any) -> Data:
    """Half for training, a quarter each for choices and for the test; standardised on the first."""
    rows = np.arange(len(X))
    rest, test = train_test_split(rows, test_size=0.25, random_state=seed, stratify=strata)
    some = None if strata is None else strata[rest]
    train, valid = train_test_split(rest, test_size=1 / 3, random_state=seed, stratify=some)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0)
    parts = [(torch.tensor(X[r], dtype=torch.float32), torch.tensor(y[r])) for r in (train, valid, test)]
    return Data(*parts)


def binary(name: str) -> Callable[[int], Data]:
    def load(seed: int) -> Data:
        raw = BINARY[name]()
        return _split(raw.X, raw.y[:, None].astype(np.float32), seed, raw.y)

    return load


def actions(seed: int) -> Data:
    with np.load(data_file("voc2012_action", "action_mobilenetv2.npz")) as file:
        X, Y = np.sqrt(VOC_UNIT * file["X_box"].astype(np.float64)), file["Y"].astype(np.float32)
    return _split(X, np.where(Y == 0, np.nan, Y > 0).astype(np.float32), seed, None)


def digits(seed: int) -> Data:
    X, y = load_digits(return_X_y=True)
    return _split(X, y, seed, y)


TASKS: dict[str, Callable[[int], Data]] = {
    "mammography": binary("mammography"),
    "CIFAR10_0": binary("CIFAR10_0"),
    "VOC action": actions,
    "digits, retrieval": digits,
}


def is_retrieval(task: str) -> bool:
    return task.endswith("retrieval")


def score(task: str, model: nn.Module, part: tuple[Tensor, Tensor]) -> float:
    """Mean average precision: over the labels, or over the queries."""
    X, y = part
    with torch.no_grad():
        out = model(X)
    if is_retrieval(task):
        rows = normalize(out[0], dim=1)
        others = ~torch.eye(len(y), dtype=torch.bool)
        similarity, same = (rows @ rows.T)[others], (y[:, None] == y)[others]
        query = torch.arange(len(y)).repeat_interleave(len(y) - 1)
        return float(average_precision(same.numpy(), similarity.numpy(), qid=query.numpy(), no_positives="skip"))
    values = []
    for column, labels in zip(out.T, y.T, strict=True):
        known = ~torch.isnan(labels)
        values.append(average_precision(labels[known].numpy(), column[known].numpy()))
    return float(np.mean(values))


class Embedding(nn.Module):
    """An embedding, and a classifier on top of it for cross-entropy."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, 16))
        self.head = nn.Linear(16, n_classes)

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        inside = self.body(X)
        return inside, self.head(inside)


def make_model(task: str, data: Data) -> nn.Module:
    n_features = data.train[0].shape[1]
    if is_retrieval(task):
        return Embedding(n_features, int(data.train[1].max()) + 1)
    return nn.Sequential(nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, data.train[1].shape[1]))


def loss_of(task: str, out: Any, y: Tensor, how: dict[str, Any]) -> Tensor:
    """A blend of cross-entropy and of the bound on AP."""
    blend, total = how["blend"], torch.zeros(())
    if is_retrieval(task):
        if blend < 1:
            total = total + (1 - blend) * nn.functional.cross_entropy(out[1], y)
        if blend > 0:
            total = total + blend * retrieval_loss(out[0], y, scale=how["scale"], bound=how["bound"])
        return total
    known = ~torch.isnan(y)
    if blend < 1:
        total = total + (1 - blend) * binary_cross_entropy_with_logits(out[known], y[known])
    if blend > 0:
        relevant = torch.nan_to_num(y) > 0
        total = total + blend * rank_hinge(how["scale"] * out, relevant, dim=0, mask=known, bound=how["bound"])
    return total


def train(task: str, data: Data, how: dict[str, Any], seed: int) -> tuple[float, float]:
    """Validation and test metric at the epoch that is best on the validation part."""
    torch.manual_seed(seed)
    model = make_model(task, data)
    optimiser = torch.optim.AdamW(model.parameters(), lr=how["rate"], weight_decay=1e-2)
    X, y = data.train
    best, kept = -1.0, copy.deepcopy(model.state_dict())
    for epoch in range(EPOCHS):
        here = how if epoch >= how.get("warm_up", WARM_UP) else {**how, "blend": 0.0}
        for rows in torch.randperm(len(X)).split(how["batch"]):
            optimiser.zero_grad()
            loss_of(task, model(X[rows]), y[rows], here).backward()
            optimiser.step()
        if (epoch + 1) % EVERY:
            continue
        found = score(task, model, data.valid)
        if found > best:
            best, kept = found, copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    return best, score(task, model, data.test)


def settings(recipe: dict[str, Any]) -> Iterator[dict[str, Any]]:
    choices = {"rate": RATES, "batch": BATCHES, **recipe}
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def run(tasks: list[str], path: Path) -> None:
    records: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["records"] if path.exists() else []
    done = {(r["task"], r["seed"], r["recipe"]) for r in records}
    warnings.simplefilter("ignore")
    for seed, task in itertools.product(SEEDS, tasks):
        data = TASKS[task](seed)
        for name, recipe in (RETRIEVAL_RECIPES if is_retrieval(task) else RECIPES).items():
            if (task, seed, name) in done:
                continue
            found = [(*train(task, data, how, seed), how) for how in settings(recipe)]
            valid, test, chosen = max(found, key=lambda one: one[0])
            place = {"task": task, "seed": seed, "recipe": name}
            records.append({**place, "valid": valid, "test": test, "chosen": chosen})
            facts = machine_facts("torch", "numpy")
            lines = ",\n".join(json.dumps(record) for record in records)
            path.write_text(f'{{"machine": {json.dumps(facts)}, "records": [\n{lines}\n]}}\n', encoding="utf-8")
            print(f"{task}, seed {seed}, {name}: {test:.4f} ({chosen})", flush=True)


def _choices(values: tuple[float, ...]) -> str:
    return " or ".join(f"{value:g}" for value in values)


def page(results: dict[str, Any]) -> str:
    """A table a task: mean over the seeds, and the difference to cross-entropy with its standard error."""
    parts = [
        "# Benchmark: ranking losses in networks",
        "Generated by `make bench ONLY=networks` (`benchmarks/networks.py`); do not edit by hand.",
        f"A network with one hidden layer of 64 units, AdamW, {EPOCHS} epochs, {WARM_UP} of them warm-up by "
        "cross-entropy where the recipe says *then*. Half of the rows for training, a quarter for all choices "
        f"(learning rate: {_choices(RATES)}; batch size: {_choices(BATCHES)}; scale of the scores; epoch), "
        "a quarter for the test. Mean average precision in "
        "percent over the seeds that were run, and the difference to cross-entropy on the same seeds, ± one standard "
        "error. One seed tells large differences only.",
    ]
    records = results["records"]
    for task in dict.fromkeys(record["task"] for record in records):
        values: dict[str, dict[int, float]] = {}
        for record in records:
            if record["task"] == task:
                values.setdefault(record["recipe"], {})[record["seed"]] = 100 * record["test"]
        base = values["cross-entropy"]
        lines = ["| recipe | seeds | percent | to cross-entropy |", "|---|---|---|---|"]
        for recipe, by_seed in values.items():
            both = [by_seed[seed] - base[seed] for seed in by_seed if seed in base]
            error = np.std(both, ddof=1) / np.sqrt(len(both)) if len(both) > 1 else float("nan")
            change = (
                "–"
                if recipe == "cross-entropy"
                else f"{np.mean(both):+.2f}" + (f" ± {error:.2f}" if len(both) > 1 else "")
            )
            lines.append(f"| {recipe} | {len(by_seed)} | {np.mean(list(by_seed.values())):.2f} | {change} |")
        parts += [f"## {task}", "\n".join(lines)]
    parts.append(", ".join(f"{name} {fact}" for name, fact in results["machine"].items()))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--redraw", action="store_true")
    arguments = parser.parse_args()
    if not arguments.redraw:
        run(arguments.tasks, RESULTS)
    text = page(json.loads(RESULTS.read_text("utf-8")))
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
