"""Rankings of one query: conversion for the kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.ids import check_present
from rankcore._core.numbers import Floats, as_vector
from rankcore._core.params import check_count

# As in rankcore_interleave.h.
MAX_RANKINGS = 64


@dataclass(frozen=True)
class Rankings:
    """Rankings with documents numbered in order of first appearance."""

    names: list[Any]
    codes: dict[Any, int]
    documents: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, rankings: Iterable[Sequence[Hashable]], n: int | None = None) -> Rankings:
        """Assign numbers to the documents of rankings; ``n`` rankings are required, if given."""
        if isinstance(rankings, str) or not isinstance(rankings, Iterable):
            raise TypeError(
                f"rankings must be sequences of documents; got {type(rankings).__name__}"
            )
        codes: dict[Any, int] = {}
        numbers: list[int] = []
        offsets = [0]
        for r, ranking in enumerate(rankings):
            items = _items(ranking, r)
            numbers += [codes.setdefault(item, len(codes)) for item in items]
            offsets.append(len(numbers))
        n_rankings = len(offsets) - 1
        if n is not None and n_rankings != n:
            raise ValueError(f"rankings must have {n} rankings; got {n_rankings}")
        if not 2 <= n_rankings <= MAX_RANKINGS:
            raise ValueError(f"rankings must have 2 to {MAX_RANKINGS} rankings; got {n_rankings}")
        documents = np.array(numbers or [0], dtype=np.int64)  # the kernel requires an address
        return cls([*codes], codes, documents, np.array(offsets, dtype=np.int64))

    def __len__(self) -> int:
        """Return the number of rankings."""
        return len(self.offsets) - 1

    def each(self) -> list[NDArray[np.int64]]:
        """Return the numbers of the documents of each ranking."""
        return [self.documents[a:b] for a, b in pairwise(self.offsets)]

    def named(self, codes: Iterable[int]) -> list[Any]:
        """Return the documents with these numbers."""
        return [self.names[code] for code in codes]

    def lists(self) -> tuple[list[Any], ...]:
        """Return the documents of each ranking."""
        return tuple(map(self.named, self.each()))

    def length(self, length: int | None) -> int:
        """Return the length of a list, by default that of the shortest ranking; at most all."""
        if length is None:
            length = int(np.diff(self.offsets).min())
        else:
            check_count(length, "length")
        return min(int(length), len(self.names))

    def draw(
        self, method: str, seeds: NDArray[np.uint64], length: int, weights: Floats
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """Draw documents and owners of a list for each seed; return also the lists' lengths."""
        from rankcore._ext import interleave

        shown = np.empty((seeds.size, max(1, length)), dtype=np.int64)
        owners = np.empty(shown.shape, dtype=np.int32)
        n = np.zeros(seeds.size, dtype=np.int32)
        if length:
            interleave.draw(
                interleave.Method[method.upper()],
                self.documents,
                self.offsets,
                weights,
                np.empty(interleave.n_room(self.offsets)),  # working memory
                seeds,
                shown,
                owners,
                n,
            )
        return shown, owners, n


def _items(ranking: Any, r: int) -> list[Any]:
    if isinstance(ranking, str | bytes) or not isinstance(ranking, Iterable):
        raise TypeError(
            f"ranking {r} must be a sequence of documents; got {type(ranking).__name__}"
        )
    items = ranking.tolist() if isinstance(ranking, np.ndarray) else list(ranking)
    check_present(items, f"ranking {r}")
    try:
        distinct = set(items)
    except TypeError as error:
        raise TypeError(f"documents of ranking {r} must be hashable: {error}") from None
    if len(distinct) != len(items):
        twice = next(item for item, n in Counter(items).items() if n > 1)
        raise ValueError(f"ranking {r} must have each document once; got {twice!r:.60} twice")
    return items


def as_clicks(clicked: ArrayLike, n: int) -> Floats:
    """Validate clicks: a non-negative number for each document of a list."""
    clicks = as_vector(clicked, "clicked")
    if clicks.size != n:
        raise ValueError(
            f"clicked must have one number for each of the {n} documents shown; got {clicks.size}"
        )
    if not np.isfinite(clicks).all() or (clicks < 0).any():
        raise ValueError("clicked must be finite and not negative")
    return clicks


def check_seed(seed: Any) -> int:
    """Validate a seed of the generator."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"seed must be an integer; got {seed!r:.60}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be from 0 to 2**64 - 1; got {seed}")
    return int(seed)
