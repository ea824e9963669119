"""The order in which a shuffled pass visits the rows."""

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore.ordinal.weights as weights
from rankcore._core.inputs import as_rows
from rankcore.ordinal.weights import Visits, rows_together


def orders(n, n_together, seed=0, n_passes=40):
    visits = Visits(n, None, True, np.random.default_rng(seed), n_together=n_together)
    return [visits.next().copy() for _ in range(n_passes)]


@pytest.mark.parametrize("n_together", [1, 2, 32])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1000])
def test_every_pass_visits_every_row_once(n, n_together):
    found = orders(n, n_together)
    for order in found:
        np.testing.assert_array_equal(np.sort(order), np.arange(n))
    assert n < 3 or len({tuple(order) for order in found}) > 1


def test_blocks_of_neighbours_change_between_passes():
    n, size = 4096, 32
    found = orders(n, size)
    for order in found:
        near = np.abs(np.diff(order)) < size
        assert near.mean() > 1 - 2 / size
    # Blocks begin anywhere, and their rows are in any order.
    cuts = {
        tuple(sorted(set(order[np.flatnonzero(np.abs(np.diff(order)) >= size)] % size)))
        for order in found
    }
    assert len(cuts) > 20
    # Each row is as likely early as late.
    places = np.mean([np.argsort(order) for order in orders(n, size, n_passes=400)], axis=0) / n
    assert abs(places - 0.5).max() < 0.1


def test_sorted_rows_are_visited_in_mixed_order(monkeypatch):
    rng = np.random.default_rng(0)
    rows = as_rows(sp.random_array((500, 20), density=0.3, random_state=rng, format="csr"))
    ranks = rng.integers(0, 4, 500).astype(np.int32)
    assert rows_together(rows, ranks) == 1  # they are in the cache
    monkeypatch.setattr(weights, "CACHED_BYTES", 1000)
    assert rows_together(rows, ranks) == weights.TOGETHER
    assert rows_together(rows, np.sort(ranks)) == 1
    assert rows_together(rows, np.repeat(np.arange(4), 125).astype(np.int32)) == 1
