"""Data shared by the tests of kernel learners."""

import pickle
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from rankcore.ordinal.kernel import dual
from reference.kernel import linear, poly, rbf

FORMS = {
    "dense64": lambda X: np.asarray(X, dtype=np.float64),
    "dense32": lambda X: np.asarray(X, dtype=np.float32),
    "csr64": lambda X: sp.csr_array(np.asarray(X, dtype=np.float64)),
    "csr32": lambda X: sp.csr_array(np.asarray(X, dtype=np.float32)),
}


form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


KERNELS = {
    "rbf": (rbf(0.3), {"kernel": "rbf", "gamma": 0.3}),
    "poly": (poly(0.5, 1.0, 3), {"kernel": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 3}),
    "linear": (linear, {"kernel": "linear"}),
}


POLICIES = dual.POLICIES


def problem(n=300, d=4, k=4, seed=0, repeat=False):
    """Rows on a grid of eighths, whose products are exact, and curved noisy ranks."""
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.normal(size=(n, d))) / 8
    if repeat:
        X[n // 2 :] = X[: n - n // 2]
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.3 * rng.normal(size=n)
    return X, 1 + np.digitize(score, np.quantile(score, np.arange(1, k) / k))


LEARNERS = [
    rc.KernelPRank.published(average=True),
    rc.KernelCuSumRank.published(margin=0.5, update="pa1", C=0.5, average=True),
    rc.KernelOAPBPM.published(8, random_state=0),
    *[
        rc.KernelPRank.published(budget=30, budget_policy=policy, average=True, random_state=1)
        for policy in POLICIES
    ],
    *[
        rc.KernelOAPBPM.published(8, budget=30, budget_policy=policy, random_state=1)
        for policy in POLICIES
    ],
]


every = pytest.mark.parametrize("learner", LEARNERS, ids=str)
# Each learner with rows of one form, in turn.
in_turn = pytest.mark.parametrize(
    ("learner", "form"),
    [
        pytest.param(one, FORMS[name], id=f"{one}-{name}")
        for one, name in zip(LEARNERS, cycle(FORMS), strict=False)
    ],
)


def known(model):
    """Everything a model has learned, without free room."""
    return pickle.loads(pickle.dumps((model._describe(), model._state.t)))
