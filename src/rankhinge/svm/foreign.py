"""Arguments that users of other libraries try: an error says what there is instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

__all__ = ["OF_CLASSES", "OF_LISTS", "explaining"]

Method = TypeVar("Method", bound=Callable[..., Any])

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


def explaining(remedies: Mapping[str, str]) -> Callable[[Method], Method]:
    """A method that explains why it does not take some arguments; its signature stays what it is.

    Were they in the signature, scikit-learn's tools would find that weights are supported, and pass them.
    """

    def decorate(method: Method) -> Method:
        strange = remedies.keys() - inspect.signature(method).parameters.keys()

        @wraps(method)
        def explained(self: Any, *arguments: Any, **options: Any) -> Any:
            for name in sorted(strange & options.keys()):
                raise TypeError(f"{type(self).__name__} takes no {name}: {remedies[name]}")
            return method(self, *arguments, **options)

        # To a type checker it is another function; `wraps` gives it the signature of the first.
        return explained  # type: ignore[return-value]

    return decorate
