"""Guards of a fit: it never leaves half a model, and says what is wrong or missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import get_annotations, signature
from threading import get_ident
from typing import Any, NamedTuple, TypeVar

from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning

from rankhinge._validation import warn_user
from rankhinge.solvers import SolverResult
from rankhinge.solvers.base import LEFT_OUT

__all__ = [
    "OF_CLASSES",
    "OF_LISTS",
    "Unfinished",
    "earlier_model",
    "explaining",
    "fitted_names",
    "fitting",
    "interrupts",
    "of_problems",
    "warn_of_zeros",
    "warn_user",
]

Fit = TypeVar("Fit", bound=Callable[..., Any])

_PACKAGE = "rankhinge"
# Arguments that users of other libraries try, and what to use instead.
_ONE_LIST = "all rows are one list here; SVMRanker ranks many, given the query of each row as qid="
OF_CLASSES = {
    "sample_weight": "a ranking has no sample weights. mask= leaves entries of a multilabel y out; SVMRanker weighs "
    "whole lists, with query_weight=",
    "class_weight": "the loss compares positives with negatives, however many there are of each. Where predict draws "
    "the line is threshold=",
    "group": _ONE_LIST,
    "groups": _ONE_LIST,
    "qid": _ONE_LIST,
}
OF_LISTS = {
    "sample_weight": "a ranking has no sample weights. query_weight= weighs whole queries",
    "class_weight": "labels are grades, weighed by gains= and level_weights=. query_weight= weighs whole queries",
    "group": "sizes of groups become the query of each row by qid=np.repeat(np.arange(len(group)), group)",
    "groups": "the query of each row is qid=",
}


def fitting(fit: Fit) -> Fit:
    """A `fit` that checks the parameters first, and leaves no half of a model; to type checkers what it was."""
    checked: Fit = _fit_context(prefer_skip_nested_validation=True)(_all_or_nothing(fit))
    return checked


def _all_or_nothing(fit: Fit) -> Fit:
    """A `fit` that ends with a model (after an interrupt, the best so far) or leaves the machine as it was.

    This is the one policy for interrupts and errors: the loop of a fit keeps the best point and becomes it; whatever
    else is interrupted, or fails, puts back what was there before. An earlier model is hidden during the fit
    (`earlier_model`), so that nothing of it mixes with the new one. Attributes set by a user's subclass stay.
    """

    @wraps(fit)
    def whole(self: Any, *arguments: Any, **options: Any) -> Any:
        mine, names = vars(self), fitted_names(type(self))
        earlier = {name: mine[name] for name in names & mine.keys()}
        with _by_one_thread(self, earlier):
            try:
                _remove(mine, names)
                with interrupts():
                    return fit(self, *arguments, **options)
            except BaseException:
                if "coef_" not in mine or mine["coef_"] is earlier.get("coef_"):
                    _remove(mine, names)
                    mine.update(earlier)
                raise

    # To a type checker it is another function; `wraps` gives it the signature of the first.
    return whole  # type: ignore[return-value]


class _UnderWay(NamedTuple):
    """The mark of a machine that is being fitted: which one, by which thread, and what it was before."""

    machine: int
    thread: int
    earlier: dict[str, Any]


def earlier_model(machine: Any) -> dict[str, Any]:
    """The fitted attributes that a machine had before the fit that is under way."""
    mark: _UnderWay | None = vars(machine).get("_under_way")
    return {} if mark is None else mark.earlier


@contextmanager
def _by_one_thread(machine: Any, earlier: dict[str, Any]) -> Iterator[None]:
    """Inside, no other thread can fit the machine: it would mix its model with this one.

    The mark names its machine, so that copies that are made meanwhile, by callbacks say, are free.
    """
    mark = _UnderWay(id(machine), get_ident(), earlier)
    # In one step: two threads cannot both find it missing.
    found = vars(machine).setdefault("_under_way", mark)
    if found.machine != mark.machine:
        found = vars(machine)["_under_way"] = mark
    if found.thread != mark.thread:
        raise RuntimeError(
            f"this {type(machine).__name__} is being fitted by another thread: give each thread a machine of its own, "
            "made by sklearn.base.clone"
        )
    try:
        yield
    finally:
        if found is mark:
            vars(machine).pop("_under_way", None)


def fitted_names(machine: type) -> frozenset[str]:
    """The attributes that our fits set: declared by classes of this package, with a trailing underscore."""
    ours = [base for base in machine.__mro__ if base.__module__.partition(".")[0] == _PACKAGE]
    return frozenset(name for base in ours for name in get_annotations(base) if name.endswith("_"))


def _remove(attributes: dict[str, Any], names: frozenset[str]) -> None:
    """Remove the attributes of these names."""
    for name in names & attributes.keys():
        del attributes[name]


@contextmanager
def interrupts() -> Iterator[None]:
    """Inside, Ctrl-C is always a `KeyboardInterrupt`.

    Where it falls into the moment at which a compiled function hands over its results, Python makes a `SystemError` of
    it, with the interrupt as its cause.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def of_problems(n_some: int, n_problems: int) -> str:
    """How many of the problems a message refers to; empty if there is only one."""
    return "" if n_problems == 1 else f" of {n_some} of the {n_problems} problems"


def warn_of_zeros(n_flat: int, n_problems: int, ways_out: str) -> None:
    """Warn if some models rank nothing."""
    if n_flat:
        warn_user(
            f"the coefficients{of_problems(n_flat, n_problems)} are all 0, and so all scores are equal: within tol "
            f"this is the minimum for these features and this C. {ways_out}"
        )


class Unfinished:
    """What the fits of an earlier stage have left open: how many there were, and the gaps that are above tol."""

    def __init__(self) -> None:
        self.n_fits, self.gaps = 0, list[float]()

    def note(self, result: SolverResult, tol: float) -> Unfinished:
        """Count the problems of a result that were to be solved."""
        gaps = result.gap[result.status != LEFT_OUT]
        self.n_fits += gaps.size
        self.gaps += gaps[gaps > tol].tolist()
        return self

    def warn(self, stage: str) -> None:
        """Warn if there is something."""
        if self.gaps:
            which = stage if self.n_fits == 1 else f"of the {self.n_fits} fits of {stage} {len(self.gaps)}"
            warn_user(
                f"{which} ended with a relative gap above tol, up to {max(self.gaps):.3g}: the results may change "
                "with a larger max_iter, or with scaled features",
                ConvergenceWarning,
            )


def explaining(remedies: Mapping[str, str]) -> Callable[[Fit], Fit]:
    """A method that explains why it does not take some arguments; its signature stays what it is.

    Were they in the signature, scikit-learn's tools would find that weights are supported, and pass them.
    """

    def decorate(method: Fit) -> Fit:
        strange = remedies.keys() - signature(method).parameters.keys()

        @wraps(method)
        def explained(self: Any, *arguments: Any, **options: Any) -> Any:
            for name in sorted(strange & options.keys()):
                raise TypeError(f"{type(self).__name__} takes no {name}: {remedies[name]}")
            return method(self, *arguments, **options)

        # To a type checker it is another function; `wraps` gives it the signature of the first.
        return explained  # type: ignore[return-value]

    return decorate
