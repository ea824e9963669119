"""Each of scikit-learn's checks once, on several estimators in turn."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator


def checks_in_turn(estimators, differences):
    """Parametrize a test of ``estimator`` and ``check``: check i runs on estimator i mod n.

    ``differences`` returns the checks that an estimator fails, with reasons.
    """
    tables = [
        list(estimator_checks_generator(one, expected_failed_checks=differences(one), mark="xfail"))
        for one in estimators
    ]
    cases = []
    for i in range(max(map(len, tables))):
        table = tables[i % len(tables)]
        if i < len(table):
            cases.append(table[i])
    return pytest.mark.parametrize(("estimator", "check"), cases, ids=_name)


def _name(value):
    return value.func.__name__ if hasattr(value, "func") else repr(value)
