"""A file of queries, in blocks of few values, for tests of rows on disk."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankcore.datasets import (
    dump_letor,
    file_rows,
    row_cache_writer,
)


@pytest.fixture
def small(monkeypatch):
    """Blocks of few values, so that small data have many."""
    for module in (file_rows, row_cache_writer):
        monkeypatch.setattr(module, "BLOCK_VALUES", 100)


@pytest.fixture
def queries(tmp_path):
    """Write a LETOR file of 40 queries; return its path and its rows."""
    rng = np.random.default_rng(0)
    qid = np.repeat(rng.permutation(40), rng.integers(1, 9, 40))
    X = sp.random(qid.size, 12, 0.4, format="csr", random_state=1)
    path = tmp_path / "queries.txt"
    dump_letor(X, rng.integers(0, 4, qid.size), path, qid=qid)
    return path


def collected(rows, order=None, n_features=12):
    """All windows of a pass as one, with the numbers of their rows and how many there were."""
    parts = []
    for window in rows.windows(n_features, order):
        data, indices, indptr = window.rows.arrays
        X = sp.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=(len(indptr) - 1, 12))
        queries = None if window.queries is None else window.queries.copy()
        parts.append((X, window.labels.copy(), queries, window.number, window.done))
    return parts
