"""The arguments of the command, for argparse."""

from __future__ import annotations

import argparse
import math
from typing import Any, NoReturn

from rankhinge import __version__
from rankhinge.cli.outcome import USAGE

__all__ = ["UsageError", "make_parser"]

_EPILOG = """\
Data files: svmlight / LETOR (plain or .gz), .npz, .csv, .parquet. Rows with a qid are ranked within their query.
Exit codes: 0 done, 1 not converged, 2 wrong usage, 3 bad input, 4 missing extra. Each command has its own --help.
"""


class UsageError(Exception):
    """Wrong arguments."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message, self.code = message, USAGE


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and go to `main`."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="rankhinge",
        description="Train models whose ranking counts, evaluate and compare them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rankhinge {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=_Parser)
    for add in (_add_train, _add_predict, _add_evaluate, _add_compare, _add_report, _add_demo, _add_warm):
        add(commands)
    return parser


def _command(commands: Any, name: str, help: str, description: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=help, description=description)
    command.add_argument("--json", action="store_true", help="write the result as JSON to standard output")
    return command


def _at_least(low: float, kind: type, strictly: bool = False) -> Any:
    """A type for argparse that refuses numbers below a limit, and infinity."""

    def parse(text: str) -> Any:
        value = kind(text)
        if math.isinf(value):
            raise argparse.ArgumentTypeError(f"{text} is not finite")
        # Written with `not` to refuse nan, too.
        if not (value > low if strictly else value >= low):
            raise argparse.ArgumentTypeError(f"{text} is not {'above' if strictly else 'at least'} {low:g}")
        return value

    parse.__name__ = kind.__name__
    return parse


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not finite")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 1 << 32:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {(1 << 32) - 1}")
    return value


# The names by which argparse speaks of values that are no numbers.
_number.__name__, _seed.__name__ = "float", "int"


def _file(text: str) -> str:
    """A file's name. Readers go over files more than once, and files appear when they are complete."""
    if not text:
        raise argparse.ArgumentTypeError("the name of the file is empty")
    if text == "-":
        raise argparse.ArgumentTypeError("'-' does not stand for standard input or output here: give a file")
    return text


def _file_or_stdout(text: str) -> str | None:
    return None if text in ("-", "/dev/stdout") else _file(text)


def _word(text: str) -> str:
    if text.split() != [text]:
        raise argparse.ArgumentTypeError(f"{text!r} must be one word: blanks separate the fields of a run")
    return text


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _level_weights(text: str) -> str | list[float]:
    if text == "uniform":
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither uniform nor numbers such as 1,1,2") from None


def _add_data_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("how data files are read")
    group.add_argument(
        "--index-base", choices=("auto", "0", "1"), default="auto", help="svmlight: the number of the first column"
    )
    group.add_argument(
        "--missing-labels",
        choices=("error", "drop"),
        default="error",
        help="svmlight: what to do with unjudged rows (label NULL, or -1 among grades)",
    )
    group.add_argument(
        "--missing-values",
        choices=("error", "zero", "minimum"),
        default="error",
        help="svmlight: what replaces NULL and nan; minimum: the smallest value of the feature in the query",
    )
    group.add_argument("--label", default="label", metavar="COLUMN", help="csv and parquet: the labels; default: label")
    group.add_argument("--qid", default="auto", metavar="COLUMN", help="csv and parquet: the query ids; default: qid")
    group.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="COLUMN",
        help="csv and parquet: a column that is no feature; may be repeated",
    )
    group.add_argument(
        "--no-qid", action="store_true", help="treat all rows as one list, even if the file has query ids"
    )
    group.add_argument(
        "--any-size", action="store_true", help="accept files that take far more memory than their size suggests"
    )
    group.add_argument(
        "--relevant-from",
        type=_number,
        metavar="GRADE",
        help="make grades binary: this grade and higher ones are relevant",
    )


def _add_metric_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--metric",
        action="append",
        metavar="NAME",
        help="ap, auc, ndcg, ndcg@10, precision@5, recall@1%%, bedroc, rr, rbp, …; may be repeated. Default: "
        "ndcg@10, ndcg, ap and rr of queries, ap and auc of one list",
    )
    command.add_argument(
        "--class", dest="positive", type=_number, metavar="LABEL", help="without queries: the class to rank first"
    )
    command.add_argument(
        "--gains", choices=("exponential", "linear"), help="gains of NDCG; default: as in training, else exponential"
    )
    command.add_argument(
        "--confidence", type=_fraction, default=0.95, metavar="FRACTION", help="level of the intervals; default: 0.95"
    )
    command.add_argument("--seed", type=_seed, default=0, help="seed of the resamples; default: 0")


def _add_train(commands: Any) -> None:
    command = _command(
        commands,
        "train",
        "train a model on a file",
        "Train a linear model: a ranker if the file has query ids (qid), else a classifier. Cross-validation chooses "
        "the bound and its strength unless you give them. The data may be a LETOR or MSLR fold: a folder with "
        "train.txt, vali.txt and test.txt.",
    )
    command.add_argument("data", type=_file, help="training file, or the folder of a fold")
    command.add_argument(
        "-o", "--output", type=_file, default="model.safetensors", help="the model file; default: %(default)s"
    )
    command.add_argument(
        "--loss", help="ndcg (default with queries), ap (default without), ndcg@10, precision@1%%, rr, auc, …"
    )
    command.add_argument("--bound", choices=("convex", "tight"), help="default: the one that ranks the folds better")
    strength = command.add_mutually_exclusive_group()
    strength.add_argument(
        "--C", type=_at_least(0, float, True), help="weight of the loss in the convex bound; default: chosen"
    )
    strength.add_argument(
        "--reach",
        type=_at_least(0, float, True),
        help="how far the tight bound may move from its start; default: chosen",
    )
    command.add_argument(
        "--level-weights",
        type=_level_weights,
        metavar="WEIGHTS",
        help="weights of the grades 1, 2, … for binary losses: uniform, or numbers such as 1,1,2",
    )
    held = command.add_mutually_exclusive_group()
    held.add_argument(
        "--validation", type=_file, metavar="FILE", help="choose by the metric on this file, then train on both"
    )
    held.add_argument(
        "--validation-split", type=_fraction, metavar="FRACTION", help="choose by a random part of the queries or rows"
    )
    held.add_argument("--folds", type=_at_least(2, int), help="choose by cross-validation; default: 5 folds")
    command.add_argument("--test", type=_file, metavar="FILE", help="evaluate the model on this file")
    command.add_argument(
        "--save-data",
        type=_file,
        metavar="FILE.npz",
        help="also save the parsed training data, which then load at once",
    )
    command.add_argument("--tol", type=_at_least(0, float, True), help="relative gap at which to stop")
    command.add_argument("--max-iter", type=_at_least(1, int), help="iterations at most")
    command.add_argument(
        "--max-time", type=_at_least(0, float, True), help="seconds at most; keeps the best model so far"
    )
    command.add_argument("--seed", type=_seed, default=0, help="seed of folds and solvers; default: 0")
    volume = command.add_mutually_exclusive_group()
    volume.add_argument("-q", "--quiet", action="store_true", help="no progress")
    volume.add_argument("-v", "--verbose", action="store_true", help="show progress even without a terminal")
    _add_data_options(command)


def _add_predict(commands: Any) -> None:
    command = _command(
        commands, "predict", "write the scores of a file's rows", "Write one score per line, in the order of the rows."
    )
    command.add_argument("model", type=_file)
    command.add_argument("data", type=_file)
    command.add_argument("-o", "--output", type=_file_or_stdout, help="default: standard output")
    command.add_argument("--run", type=_word, metavar="TAG", help="write a TREC run of this name instead")
    _add_data_options(command)


def _add_evaluate(commands: Any) -> None:
    command = _command(
        commands,
        "evaluate",
        "metrics with confidence intervals",
        "Evaluate a model on a file: metrics with confidence intervals.",
    )
    command.add_argument(
        "model", type=_file, help="a model file, scores (one number per line), a TREC run, or feature:N"
    )
    command.add_argument("data", type=_file)
    command.add_argument("--per-query", type=_file, metavar="FILE", help="write the metrics of each query as CSV")
    _add_metric_options(command)
    _add_data_options(command)


def _add_compare(commands: Any) -> None:
    command = _command(
        commands,
        "compare",
        "test whether models differ by more than chance",
        "Compare models with a baseline on one file: differences with paired bootstrap intervals and randomisation "
        "tests, and Holm's correction for several models.",
    )
    command.add_argument("data", type=_file)
    command.add_argument(
        "baseline", type=_file, help="a model file, scores (one number per line), a TREC run, or feature:N"
    )
    command.add_argument("models", type=_file, nargs="+", metavar="model", help="one or more, of the same kinds")
    _add_metric_options(command)
    _add_data_options(command)


def _add_report(commands: Any) -> None:
    command = _command(
        commands, "report", "one HTML page about a model", "Write one self-contained HTML page about a model."
    )
    command.add_argument("model", type=_file, help="a model file")
    command.add_argument("data", type=_file)
    command.add_argument("-o", "--output", type=_file, default="report.html", help="default: %(default)s")
    command.add_argument("--title", help="title of the page; default: the names of the files")
    command.add_argument(
        "--images", type=_file, metavar="FILE", help="a text file with the path of an image for each row"
    )
    _add_metric_options(command)
    _add_data_options(command)


def _add_demo(commands: Any) -> None:
    command = _command(
        commands,
        "demo",
        "show the library at work",
        "Train on data that scikit-learn ships, beside other linear models.",
    )
    command.add_argument("--plot", type=_file, metavar="FILE.png", help="draw precision-recall curves (extra: plot)")


def _add_warm(commands: Any) -> None:
    command = _command(
        commands,
        "warm",
        "compile the kernels now",
        "Compile the kernels in advance, for container images and CI. The first fit then starts at once.",
    )
    command.add_argument(
        "folder",
        nargs="?",
        type=_file,
        help="folder of the cache; default: numba's own. Set NUMBA_CACHE_DIR to it later",
    )
