"""scikit-learn's checks: of ordered labels, and each once on several estimators in turn."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

# Checks that what is learned online fails; docs/scikit_learn.md says why.
ORDER = (
    "weights against repeated rows in another order: what is learned online depends on the order; "
    "test_weights compares with rows repeated in place"
)
EQUIVALENCE = [
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
]


def run_check(estimator, check):
    """Run a check of scikit-learn."""
    name = check.func.__name__
    if name == "check_class_weight_classifiers" and hasattr(estimator, "tol"):
        # Fewer than its 1000 passes over 24,000 repeated rows. Other checks have the same object.
        estimator = clone(estimator).set_params(tol=1e-3)
    if name == "check_classifiers_classes":
        estimator = given_classes(estimator)
    check(estimator)


def given_classes(learner):
    """Give strings an order, without which they are rejected, and enough passes to see each."""

    def fit(self, X, y, classes=None):
        return super(plain, self).fit(X, y, np.unique(y) if classes is None else classes)

    kind = type(learner)
    plain = type(kind.__name__, (kind,), {"__init__": kind.__init__, "fit": fit})
    learner = plain(**learner.get_params(deep=False))
    if hasattr(learner, "max_iter"):
        learner.set_params(max_iter=50)
    if hasattr(learner, "eta0"):
        learner.set_params(eta0=0.3)
    return learner


def checks_in_turn(estimators, differences=lambda estimator: {}, skipped=()):
    """Parametrize a test of ``estimator`` and ``check``: check i runs on estimator i mod n.

    ``differences`` returns the checks that an estimator fails, with reasons; those whose names
    begin with one of ``skipped`` are left out.
    """
    tables = [
        list(estimator_checks_generator(one, expected_failed_checks=differences(one), mark="xfail"))
        for one in estimators
    ]
    cases = []
    for i in range(max(map(len, tables))):
        table = tables[i % len(tables)]
        if i < len(table):
            _, check = getattr(table[i], "values", table[i])
            if not check.func.__name__.startswith(tuple(skipped)):
                cases.append(table[i])
    return pytest.mark.parametrize(("estimator", "check"), cases, ids=name_of_case)


def name_of_case(value):
    """Return the name of a check, or an estimator in one line: the id of a test."""
    return value.func.__name__ if hasattr(value, "func") else re.sub(r"\n *", "", repr(value))
