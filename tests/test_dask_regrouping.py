"""Regrouped rows: which shard has which, and how many tasks that takes."""

from zlib import crc32

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs the dask extra")

import dask

from rankcore.dask._regrouping import regrouped

RNG = np.random.default_rng(0)
N_BLOCKS, N = 6, 50
X = RNG.normal(size=(N_BLOCKS * N, 3))
Y = RNG.integers(3, size=N_BLOCKS * N)
QID = RNG.integers(40, size=N_BLOCKS * N)


def blocks():
    """Delayed pieces."""
    columns = [[dask.delayed(part) for part in np.split(one, N_BLOCKS)] for one in (X, Y, QID)]
    return list(zip(*columns, [None] * N_BLOCKS, strict=True))


@pytest.mark.parametrize(("n_shards", "n_threads"), [(1, 1), (3, 1), (5, 1), (50, 2), (7, 3)])
def test_rows_are_those_of_the_queries_in_the_order_of_the_blocks(n_shards, n_threads):
    shards = dask.compute(*regrouped(blocks(), n_shards, "t", n_threads), scheduler="sync")
    assert len(shards) == n_shards
    places = np.array([crc32(str(one).encode()) % n_shards for one in QID.tolist()])
    for number, shard in enumerate(shards):
        rows = np.flatnonzero(places == number)
        if not rows.size:
            assert shard is None
            continue
        for found, expected in [(shard.X, X), (shard.y, Y), (shard.qid, QID)]:
            np.testing.assert_array_equal(found, expected[rows])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_tasks_do_not_multiply_with_blocks_and_shards(n_threads):
    n_shards, n_groups = 300, 4 * n_threads
    tasks = {key for shard in regrouped(blocks(), n_shards, "t", n_threads) for key in shard.dask}
    # Of each block its columns, its parts, and one for each group; then groups and shards.
    assert len(tasks) == N_BLOCKS * (3 + 1 + n_groups) + n_groups + n_shards
