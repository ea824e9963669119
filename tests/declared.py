"""The public learners and their declared instances, for the tests that walk them."""

import re
from functools import cache
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone

from rankcore._core.declaration import declaration_of, public_learners
from rankcore._core.model_spec import has_description

LEARNERS = [*public_learners()]
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(90, 5)), RNG.integers(1, 5, size=90)
QID = np.repeat(np.arange(9), 10)


def learns_from(learner):
    """Return what a learner, or its class, declares to learn from."""
    return declaration_of(learner if isinstance(learner, type) else type(learner)).learns_from


def instances(*kinds_of_data):
    """Return the declared instances of the learners from some kinds of data; clone them to fit."""
    return [
        one
        for kind in LEARNERS
        if learns_from(kind) in kinds_of_data
        for one in declaration_of(kind).instances()
    ]


# All learners of labels and of queries, and those whose models have files and exports.
ORDINAL = instances("labels")
RANKERS = instances("queries", "binary queries")
SAVED_RANKERS = [one for one in RANKERS if has_description(type(one))]
SAVED = [*(one for one in ORDINAL if has_description(type(one))), *SAVED_RANKERS]


def as_they_are(learner):
    """Return a copy that learns from rows as they are, if it standardises them by default."""
    given = {"standardize": False} if "standardize" in learner.get_params() else {}
    return clone(learner).set_params(**given)


def first_of_each(learners):
    """Return the first of the instances of each class, for tests that take long."""
    return [*{type(one): one for one in reversed([*learners])}.values()][::-1]


def with_defaults(learners):
    """Return one learner of each class with its defaults, for tests of quality."""
    return [type(one)(random_state=0) for one in first_of_each(learners)]


# Those that learn streams.
ONLINE = [one for one in ORDINAL if hasattr(one, "partial_fit")]
ONLINE_RANKERS = [one for one in SAVED_RANKERS if hasattr(one, "partial_fit")]


def name_of(learner):
    """Return a representation in one line, without addresses: the name of a test."""
    return re.sub(r" at 0x\w+|\n *", "", repr(learner))


def walk(learners):
    """Parametrize a test of ``learner``."""
    return pytest.mark.parametrize("learner", learners, ids=name_of)


def ranks_queries(learner):
    """Return whether a learner learns from queries."""
    return learns_from(learner) in ("queries", "binary queries")


def labels_for(learner, y):
    """Return labels that a learner takes: two of them if it takes no more."""
    return (y > np.mean(y)).astype(int) if learns_from(learner) == "binary queries" else y


def data_for(learner, y, qid):
    """Return what `fit` takes beside X; the first two rows are a list with a click."""
    if learns_from(learner) == "clicks":
        return {"shown": [0, 1], "clicked": [0, 1]}
    queries = {"qid": qid} if ranks_queries(learner) else {}
    return {"y": labels_for(learner, y), **queries}


def fitted(learner, form=np.asarray):
    """Return a copy that is fitted to the rows above, which are also held out if it takes some."""
    given = data_for(learner, Y, QID)
    if "eval_set" in signature(learner.fit).parameters:
        held_out = {"eval_qid": QID} if ranks_queries(learner) else {}
        given |= {"eval_set": (X, given["y"]), **held_out}
    return clone(learner).fit(form(X), **given)


@cache
def adds_up(learner):
    """Return whether the score is a weighted sum of the features."""
    form = fitted(learner)._spec().scoring.form
    sums = ("linear", "thresholds", "rounded", "tasks")
    return form in sums or getattr(learner, "kernel", None) == "linear"


def answer(model, rows):
    """Return predictions of a model from `fitted` for its first rows."""
    by_rank = getattr(model, "combine", "score") != "score"
    return model.predict(rows, **({"qid": QID[: rows.shape[0]]} if by_rank else {}))
