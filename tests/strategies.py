"""Hypothesis strategies shared by the tests: problems with ties, empty rows and zero columns."""

import os

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

SHARES = {"quick": 0.2, "default": 0.3, "nightly": 10}
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


def examples(n, profile=None):
    """Return the number of examples that a profile draws: n times its fraction, at least 5."""
    profile = profile or os.environ.get("HYPOTHESIS_PROFILE", "default")
    return max(5, round(n * SHARES[profile]))


DTYPES = st.sampled_from([np.float32, np.float64])


@st.composite
def csr_matrices(draw, max_rows=30, max_features=8, integers=True, dtype=None):
    """CSR matrices; integer values make sums exact, so that ties between scores are real."""
    n = draw(st.integers(1, max_rows))
    d = draw(st.integers(1, max_features))
    seed = draw(st.integers(0, 2**32 - 1))
    density = draw(st.sampled_from([0.1, 0.4, 1.0]))
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, size=(n, d)) if integers else rng.normal(size=(n, d))
    values = values * (rng.random((n, d)) < density)
    return sp.csr_array(values.astype(dtype or draw(DTYPES)))


@st.composite
def ordinal_problems(draw, max_rows=30, max_features=8, integers=True, max_ranks=6):
    """Return a CSR matrix, ranks in 1 .. k and k; some ranks may not occur."""
    X = draw(csr_matrices(max_rows, max_features, integers))
    k = draw(st.integers(2, max_ranks))
    y = draw(st.lists(st.integers(1, k), min_size=X.shape[0], max_size=X.shape[0]))
    return X, np.array(y), k
