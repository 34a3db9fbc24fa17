"""`RankSVCCV` and `SVMRankerCV` of data that enter by the door for containers: a search, then a fit of all."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any

from sklearn.utils import check_random_state

from rankhinge.losses import get_loss
from rankhinge.problems.door import Opened
from rankhinge.svm.fit import Fitted, Given
from rankhinge.svm.judging import labels_quality_elsewhere, lists_quality_elsewhere
from rankhinge.svm.rank_svc import RankSVC
from rankhinge.svm.ranker import SVMRanker
from rankhinge.svm.search_elsewhere import Trial, search_elsewhere
from rankhinge.svm.threshold import Cut
from rankhinge.svm.tuning import Tuning, refuse_strangers
from rankhinge.svm.units import exponent_of

__all__ = ["fit_classes_elsewhere", "fit_lists_elsewhere"]


def fit_classes_elsewhere(machine: Any, container: Any, X: Any, y: Any, mask: Any, groups: Any) -> Fitted:
    """Choose C fold by fold, then fit, where the data lie."""
    if mask is not None or groups is not None:
        raise ValueError("mask and groups need arrays in memory")
    refuse_strangers(machine, machine._bound)

    def trial(train: Any, test: Any) -> Trial:
        def judge(model: RankSVC) -> dict[Any, float]:
            values = labels_quality_elsewhere(container, test[0], test[1], model, None, scoring)
            return dict(zip(model.classes_.tolist()[-values.size :], values.tolist(), strict=True))

        return Trial(container.classes(train[0], train[1], mask=None, pos_label=machine.pos_label), judge)

    scoring = _named_scoring(machine.scoring)
    parts = container.folds(X, y, n_folds=_n_folds(machine.cv), seed=_seed(machine.random_state))
    whole: list[Opened] = []

    def labels() -> list[Any]:
        whole.append(container.classes(X, y, mask=None, pos_label=machine.pos_label))
        found: list[Any] = whole[0].attributes["classes_"].tolist()
        return found[-whole[0].usable.size :]

    make = partial(_simple, RankSVC, machine)
    try:
        tuning = search_elsewhere(machine, make, [partial(trial, *part) for part in parts], labels)
    except BaseException:
        for opened in whole:
            getattr(opened, "close", lambda: None)()
        raise
    tuning = _in_unit(tuning, machine, whole[0])
    rule = Cut(whole[0].attributes["_kind"], machine.threshold)
    return machine._fit_opened(whole[0], Given(X, y, {}), rule, tuning)


def fit_lists_elsewhere(machine: Any, container: Any, X: Any, y: Any, qid: Any, query_weight: Any) -> Fitted:
    """Choose C fold by fold, then fit, where the data lie."""
    if query_weight is not None:
        raise ValueError("query_weight in cross-validation works for arrays in memory only")
    if qid is None and machine.qid_column is None:
        raise ValueError("there is no qid: folds are made of whole queries")
    refuse_strangers(machine, machine._bound)
    scoring, loss = _named_scoring(machine.scoring), get_loss(machine.loss)
    options: dict[str, Any] = {"loss": loss, "gains": machine.gains, "level_weights": machine.level_weights}

    def trial(train: Any, test: Any) -> Trial:
        def judge(model: SVMRanker) -> dict[Any, float]:
            return {"": lists_quality_elsewhere(container, test[0], test[1], test[2], model, scoring)}

        X, y, qid = train
        return Trial(container.queries(X, y, qid=qid, qid_column=None, query_weight=None, **options), judge)

    n_folds, seed = _n_folds(machine.cv), _seed(machine.random_state)
    parts = container.folds(X, y, n_folds=n_folds, seed=seed, qid=qid, qid_column=machine.qid_column)
    make = partial(_simple, SVMRanker, machine, qid_column=None)
    tuning = search_elsewhere(machine, make, [partial(trial, *part) for part in parts], lambda: [""])
    data = container.queries(X, y, qid=qid, qid_column=machine.qid_column, query_weight=None, **options)
    return machine._fit_opened(data, Given(X, y, {}), None, _in_unit(tuning, machine, data))


def _in_unit(tuning: Tuning, machine: Any, data: Opened) -> Tuning:
    """With the unit of the features among what tells of the search."""
    return tuning._replace(found={**(tuning.found or {}), "standardize_": _exponent(machine, data)})


def _exponent(machine: Any, data: Opened) -> float:
    """The unit that features will count in; a pass over X, unless they are taken as they are."""
    if machine._bound == "convex" and (isinstance(machine.standardize, str) or not float(machine.standardize) > 0):
        return 0.0
    return float(exponent_of(machine.standardize, data.variances()))


def _simple(kind: type[Any], machine: Any, **parameters: Any) -> Any:
    """A machine without cross-validation, with the parameters that it shares with this one, and others."""
    own, tuned = kind._get_param_names(), ("init", "verbose", "max_time", "random_state")
    shared = {name: getattr(machine, name) for name in own if hasattr(machine, name) and name not in tuned}
    if machine._bound == "tight" and not (isinstance(machine.init, str) and machine.init == "auto"):
        shared["init"] = machine.init
    return kind(**{**shared, **parameters})


def _named_scoring(scoring: Any) -> str | None:
    """A metric that goes by a name, or the loss's own."""
    if scoring is not None and not isinstance(scoring, str):
        raise ValueError(f"scoring={scoring!r} takes scores in memory: on shards give a name, 'ap', 'ndcg' or 'auc'")
    return scoring


def _n_folds(cv: Any) -> int:
    """How many folds; splitters want rows in memory."""
    if cv is not None and not (isinstance(cv, Integral) and int(cv) >= 2):
        raise ValueError(f"cv={cv!r}: on shards give a number of folds, 2 or more, which a hash of the rows draws")
    return 5 if cv is None else int(cv)


def _seed(random_state: Any) -> int:
    """A seed for the hash."""
    return int(check_random_state(random_state).randint(2**31 - 1))
