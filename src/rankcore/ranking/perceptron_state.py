"""State of pairwise perceptrons: weights, their sums, and stored hypotheses, which may vote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.model_spec import Field, ModelSpec, read_fields
from rankcore._core.numbers import Floats, check_scores
from rankcore._core.queries import Queries
from rankcore._core.state import LearnerState, are_counts, restored_validation, widened
from rankcore._ext.pairs import PairState
from rankcore._ext.rows import Rows, project
from rankcore.ranking.feature_scale import NONE

# Initial capacity if all hypotheses are kept: hypotheses, and numbers in them (1 MiB).
ROOM, ROOM_VALUES = 1024, 2**17

# Arrays of a model file: of all states, of hypotheses, and of hypotheses that compete.
OWN = {
    "weights": Field(("features",)),
    "sums": Field(("features",)),
    "clock": Field((3,)),
    "counts": Field((6,), "int64"),
    "scale": Field(("scales",)),  # factors of the features
    "log": Field(("passes", 5), "int64"),
}
KEPT = {
    "members": Field(("members", "features")),
    "successes": Field(("members",)),
    "born": Field(("members",), "int64"),
}
JUDGED = {"values": Field(("members",)), "longest": Field(("longest",))}


@dataclass(frozen=True)
class PairwiseParameterCopy:
    """Copies of the fields of a `PairwiseState` that learning changes, by their names there."""

    weights: Floats
    sums: Floats
    clock: Floats
    counts: NDArray[np.int64]
    members: list[tuple[Floats, float, int, float]]
    longest: list[float]
    every: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None


@dataclass
class PairwiseState(LearnerState):
    """Mutable state of a fit, with hypotheses to predict with.

    Its log has, for each pass: pairs, mistakes, hypotheses so far, queries, skipped queries.
    """

    # (n_features,): current hypothesis, and the sums for the average.
    weights: Floats
    sums: Floats
    # (3,): successes of the current hypothesis and of all, without those in the current unit; the
    # unit.
    clock: Floats
    # (6,): hypotheses in ``every``; successes of the current hypothesis and of all, in the current
    # unit; pairs; mistakes; visits of queries.
    counts: NDArray[np.int64]
    seed: int  # of the order of pairs
    # Best hypotheses, as immutable tuples: weights, successes, number, and criterion.
    members: list[tuple[Floats, float, int, float]] = field(default_factory=list)
    # With a criterion other than successes: the largest numbers of successes, one per member.
    longest: list[float] = field(default_factory=list)
    # If all hypotheses are kept: weights, successes and numbers, with free capacity at the end.
    every: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None
    # (n_features,): factors of the features while learning, powers of two; empty for none, None
    # until the first rows. All weights are those of features without factors.
    scale: Floats | None = None

    @classmethod
    def new(cls, n_features: int, seed: int, settings: dict[str, Any]) -> Self:
        """Create the initial state."""
        every = None
        if settings["capacity"] is None:
            room = max(1, min(ROOM, ROOM_VALUES // n_features))
            every = (np.empty((room, n_features)), np.empty(room), np.empty(room, dtype=np.int64))
        return cls(
            weights=np.zeros(n_features),
            sums=np.zeros(n_features),
            clock=np.zeros(3),
            counts=np.zeros(6, dtype=np.int64),
            seed=seed,
            every=every,
            scale=None if settings["feature_scale"] == "auto" else NONE,
            settings=settings,
        )

    # ---------------------------------------------------------------- for the kernel

    def bind(self, margin: float) -> PairState:
        """Return the arrays in the form of the kernel."""
        members, survived, born = self.every or (None, None, None)
        return PairState(
            self.weights, self.sums, members, survived, born, self.clock, self.counts, float(margin)
        )

    @contextmanager
    def scaled(self) -> Iterator[None]:
        """Hold weights of scaled features in the block; a state whose block raised is discarded."""
        if self.scale is None or not self.scale.size:
            yield
            return
        kept = int(self.counts[0])
        self.weights /= self.scale
        self.sums /= self.scale
        yield
        self.weights *= self.scale
        self.sums *= self.scale
        if self.every is not None:
            self.every[0][kept : int(self.counts[0])] *= self.scale

    def bar(self) -> float:
        """Successes that a hypothesis must exceed to become a candidate.

        With any criterion, these are the successes of the weakest of the members that successes
        would choose, so that few candidates are measured.
        """
        capacity = self.settings["capacity"]
        if capacity is None:
            return np.inf
        lives = self.longest if self.settings["judged"] else [m[1] for m in self.members]
        return -1.0 if len(lives) < capacity else min(lives)

    def offer(
        self, weights: Floats, successes: float, quality: Callable[[Any], float] | None
    ) -> None:
        """Add a hypothesis of scaled features, or replace the worst member if it is better.

        Among ties, the latest member is the worst.
        """
        if self.scale is not None and self.scale.size:
            weights = weights * self.scale
        value = successes if quality is None else float(quality(weights.copy()))
        if not np.isfinite(value):
            raise ValueError(f"quality must return finite numbers; {quality!r} returned {value}")
        if quality is not None:
            lives = sorted([*self.longest, successes], reverse=True)
            self.longest = lives[: self.settings["capacity"]]
        member = (weights, successes, int(self.counts[4]), value)
        if len(self.members) < self.settings["capacity"]:
            self.members = [*self.members, member]
            return
        least = min(range(len(self.members)), key=lambda k: _order(self.members[k]))
        if value > self.members[least][3]:
            self.members = [*self.members[:least], *self.members[least + 1 :], member]

    def grow(self, memory_limit: int) -> None:
        """Double the capacity for hypotheses."""
        assert self.every is not None
        old = self.every
        room = 2 * max(len(old[1]), 1)
        size = (room + len(old[1])) * 8 * (self.weights.size + 2)  # old and new, while copied
        if size > memory_limit:
            raise ValueError(
                f"variant='voted' has {len(old[1])} hypotheses, and more require "
                f"{size / 1e9:.3g} GB, above memory_limit ({memory_limit / 1e9:.3g} GB): set "
                "max_hypotheses to keep the best"
            )
        members, successes, born = (widened(array, (room, *array.shape[1:])) for array in old)
        self.every = members, successes, born

    def keep_features(self, n_features: int) -> None:
        """Remove all but the first features from all hypotheses."""
        self.weights, self.sums = (array[:n_features].copy() for array in (self.weights, self.sums))
        self.members = [(w[:n_features].copy(), s, b, v) for w, s, b, v in self.members]
        if self.scale is not None:
            self.scale = self.scale[:n_features].copy()
        if self.every is not None:
            members, successes, born = self.every
            self.every = np.ascontiguousarray(members[:, :n_features]), successes, born

    def tally(self) -> tuple[int, int]:
        """Pairs and mistakes so far."""
        return int(self.counts[3]), int(self.counts[4])

    # ---------------------------------------------------------------- copies

    def working_copy(self) -> Self:
        """Return a writable state to learn in; past hypotheses, which never change, are shared."""
        made = copy(self)
        made.weights, made.sums = self.weights.copy(), self.sums.copy()
        made.clock, made.counts = self.clock.copy(), self.counts.copy()
        made.log = [list(figures) for figures in self.log]
        made.validation = {name: list(values) for name, values in self.validation.items()}
        made.ensure_writable()
        return made

    def parameters(self) -> PairwiseParameterCopy:
        """Copy the mutable state, without the hypotheses, which never change."""
        return PairwiseParameterCopy(
            weights=self.weights.copy(),
            sums=self.sums.copy(),
            clock=self.clock.copy(),
            counts=self.counts.copy(),
            members=self.members,
            longest=self.longest,
            every=self.every,
        )

    def restore(self, saved: PairwiseParameterCopy) -> None:
        """Restore what `parameters` returned."""
        self.weights[:] = saved.weights
        self.sums[:] = saved.sums
        self.clock[:] = saved.clock
        self.counts[:] = saved.counts
        self.members = saved.members
        self.longest = saved.longest
        self.every = saved.every

    # ---------------------------------------------------------------- files

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays for a model file."""
        arrays: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in OWN}
        arrays["scale"] = NONE if self.scale is None else self.scale
        arrays["log"] = np.array(self.log, dtype=np.int64).reshape(-1, 5)
        if self.every is not None:
            kept = int(self.counts[0])
            return arrays | {n: a[:kept] for n, a in zip(KEPT, self.every, strict=True)}
        parts = [*zip(*self.members, strict=True)] or [()] * 4
        for name, part in zip([*KEPT, "values"], parts, strict=True):
            arrays[name] = np.array(part, dtype=(KEPT | JUDGED)[name].dtype)
        arrays["members"] = arrays["members"].reshape(len(self.members), self.weights.size)
        arrays["longest"] = np.array(self.longest, dtype=np.float64)
        return arrays

    @classmethod
    def from_spec(cls, spec: ModelSpec, n_features: int) -> Self:
        """Restore from a model file; ValueError or KeyError if it is invalid."""
        arrays, settings, seed = spec.arrays, spec.facts["settings"], spec.facts["seed"]
        capacity = settings["capacity"]
        if not (capacity is None or (isinstance(capacity, int) and capacity > 0)):
            raise ValueError(f"capacity must be an integer >= 1 or None; found {capacity!r}")
        if not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise ValueError(f"seed must be an integer in 0 .. 2**63 - 1; found {seed!r}")
        own: dict[str, Any] = read_fields(arrays, OWN, features=n_features)
        log = own.pop("log").tolist()
        if own["scale"].size not in (0, n_features):
            raise ValueError("scale must hold a factor for each feature, or nothing")
        state = cls(**own, seed=seed, settings=settings, log=log)
        members, successes, born = read_fields(arrays, KEPT, features=n_features).values()
        n_members = len(members)
        if settings["capacity"] is None:
            state.every = members, successes, born
        else:
            sizes = {"members": n_members, "longest": n_members if settings["judged"] else 0}
            judged = {name: a.tolist() for name, a in read_fields(arrays, JUDGED, **sizes).items()}
            state.longest = judged["longest"]
            parts = zip(members, successes.tolist(), born.tolist(), judged["values"], strict=True)
            state.members = [(np.ascontiguousarray(w), s, b, v) for w, s, b, v in parts]
        expected = n_members if settings["capacity"] is None else 0
        counts = state.counts
        if (
            not are_counts(counts, np.array(state.log, dtype=np.int64))
            or counts[0] != expected
            or n_members > (settings["capacity"] or n_members)
            or (successes < 0).any()
        ):
            raise ValueError("its counts or its number of hypotheses are out of range")
        state.streaming = bool(spec.facts["streaming"])
        state.validation = restored_validation(spec, len(state.log))
        return state

    # ---------------------------------------------------------------- models

    def present(self) -> float:
        """Successes of the current hypothesis."""
        return float(self.clock[0] + self.counts[1] * self.clock[2])

    def total(self) -> float:
        """Successes of all hypotheses so far."""
        return float(self.clock[1] + self.counts[2] * self.clock[2])

    def average(self) -> Floats:
        """Mean of all hypotheses, weighted by successes; the last one if there are none."""
        total = self.total()
        return self.weights - self.sums / total if total > 0 else self.weights.copy()

    def best(self, size: int | None) -> tuple[Floats, Floats]:
        """Weights and successes of the best hypotheses and the current one, best first."""
        now = self.present()
        if self.every is not None:
            kept = int(self.counts[0])
            weights, counts, born = (array[:kept] for array in self.every)
            counts = np.append(counts, now)
            order = np.lexsort((np.append(born, self.counts[4]), -counts))[:size]
            return np.vstack([weights, self.weights])[order], counts[order]
        capacity = self.settings["capacity"]
        members = list(self.members)
        # With ``quality``, only measured hypotheses compete; without a mistake there are none.
        if not self.settings["judged"] or not members:
            members.append((self.weights, now, int(self.counts[4]), now))
        members.sort(key=_order, reverse=True)
        members = members[: min(capacity, size or capacity)]
        return np.array([m[0] for m in members]), np.array([m[1] for m in members])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self.every is not None:  # without free capacity
            state["every"] = tuple(array[: max(int(self.counts[0]), 1)] for array in self.every)
        return state


def _order(member: tuple[Any, float, int, float]) -> tuple[float, int]:
    """Sort key, higher for better members and, among ties, for earlier ones."""
    return member[3], -member[2]


class Committee(NamedTuple):
    """Hypotheses of a committee.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_members, n_features)
        Weight vectors, best member first.
    successes : ndarray of float64, shape (n_members,)
        Number of pairs that each member ranked correctly before its first mistake, the weight of
        its vote.
    """

    weights: NDArray[np.float64]
    successes: NDArray[np.float64]


def votes(successes: Floats) -> Floats:
    """Weights of the members' votes: their successes, or equal weights if all are 0."""
    return successes if successes.any() else np.ones_like(successes)


def borda(rows: Rows, members: Floats, successes: Floats, queries: Queries) -> Floats:
    """Negative weighted mean of the members' ranks of each document within its query.

    Ties have the mean of their ranks. O(n_members * (n_values + n_rows log n_rows)).
    """
    n = rows.n_rows
    of = np.repeat(np.arange(queries.ids.size), np.diff(queries.bounds))
    starts = np.repeat(queries.bounds[:-1], np.diff(queries.bounds))
    scores, total = np.empty(n), np.zeros(n)
    weights = votes(successes)
    for member, weight in zip(members, weights, strict=True):
        project(rows, np.ascontiguousarray(member), scores)
        check_scores(scores)
        placed = scores if queries.rows is None else scores[queries.rows]
        order = np.lexsort((-placed, of))
        new = np.ones(n + 1, dtype=bool)
        new[1:-1] = (of[1:] != of[:-1]) | (placed[order][1:] != placed[order][:-1])
        edges = np.flatnonzero(new)
        middle = np.repeat((edges[:-1] + edges[1:] + 1) / 2, np.diff(edges))
        total[order] += weight * (middle - starts)
    total /= weights.sum()
    if queries.rows is not None:
        total[queries.rows] = total.copy()
    return -total
