"""Regrouping of rows between workers, so that each query is in one shard."""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import Any
from zlib import crc32

import numpy as np

from rankcore.dask._engine import delayed, n_threads_of
from rankcore.dask._shards import (
    Piece,
    Shard,
    as_shard,
    joined_shard,
    key_of,
    naming,
    parts_of,
    shards_of,
)

# Groups of shards per thread, whose rows move together.
GROUPS = 4


def shards_on(
    client: Any, pieces: Sequence[Piece], n_shards: int, token: str, regroup: bool
) -> list[Any]:
    """Delayed shards of neighbouring pieces or, with ``regroup``, of whole queries."""
    if regroup:
        return regrouped(pieces, n_shards, token, n_threads_of(client))
    return shards_of(pieces, n_shards, token)


def regrouped(pieces: Sequence[Piece], n_shards: int, token: str, n_threads: int) -> list[Any]:
    """Delayed shards of whole queries.

    Each part of a piece is a task, one per group of shards; another task joins the parts of a group
    and creates its shards.
    """
    groups = parts_of(n_shards, min(n_shards, GROUPS * n_threads))
    given = isinstance(pieces[0], tuple)
    split = delayed(_split_by_query, nout=len(groups))
    scattered = [split(piece, groups, number) for number, piece in enumerate(pieces)]
    shards = []
    for at, (first, stop) in enumerate(groups):
        key = f"rankcore-shards-{first}-to-{stop - 1}-{token}"
        parts = [piece[at] for piece in scattered]
        joined = delayed(_joined_group)(parts, first, given, dask_key_name=key)
        shards += [
            delayed(getitem)(joined, number - first, dask_key_name=key_of(number, token))
            for number in range(first, stop)
        ]
    return shards


def _joined_group(pieces: Sequence[Sequence[Any]], first: int, given: bool) -> list[Shard | None]:
    """Neighbouring shards, joined from the parts of each piece."""
    parts = enumerate(zip(*pieces, strict=True), first)
    return [joined_shard(own, number, given) for number, own in parts]


def _split_by_query(
    piece: Any, groups: Sequence[tuple[int, int]], number: int
) -> list[list[Shard | None]]:
    """Rows of a piece by group and shard, determined by query ids; errors name the piece."""
    with naming(f"block {number}"):
        shard = as_shard(piece)
    n_shards = groups[-1][1]
    if shard is None:
        return [[None] * (stop - first) for first, stop in groups]
    if shard.qid is None:
        raise ValueError("regroup=True requires query ids; found none")
    ids, queries = np.unique(shard.qid, return_inverse=True)
    # Not Python's hash of strings, which differs between processes.
    places = np.array([crc32(str(one).encode()) % n_shards for one in ids.tolist()])[queries]
    found: list[Shard | None] = []
    for place in range(n_shards):
        rows = np.flatnonzero(places == place)
        X = shard.X.iloc[rows] if hasattr(shard.X, "iloc") else shard.X[rows]
        weights = None if shard.weights is None else shard.weights[rows]
        found.append(
            Shard(X, shard.y[rows], shard.qid[rows], weights, shard.order) if rows.size else None
        )
    return [found[first:stop] for first, stop in groups]
