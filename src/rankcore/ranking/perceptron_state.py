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
from rankcore._core.state import LearnerState, restored_validation, widened
from rankcore._ext.online_model import are_counts
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


class Hypothesis(NamedTuple):
    """A weight vector between two mistakes; never changed."""

    weights: Floats  # (n_features,)
    successes: float
    number: int  # of earlier hypotheses
    quality: float  # its value by the criterion of the committee, by default the successes

    @property
    def merit(self) -> tuple[float, int]:
        """Sort key, higher for better hypotheses and, among ties, for earlier ones."""
        return self.quality, -self.number


class AllHypotheses(NamedTuple):
    """All hypotheses, with free capacity at the end."""

    weights: Floats  # (capacity, n_features)
    successes: Floats  # (capacity,)
    numbers: NDArray[np.int64]  # (capacity,)

    def first(self, n: int) -> AllHypotheses:
        """Return the first n hypotheses."""
        return AllHypotheses(self.weights[:n], self.successes[:n], self.numbers[:n])


@dataclass(frozen=True)
class PairwiseParameterCopy:
    """Copies of the fields of a `PairwiseState` that learning changes, by their names there."""

    weights: Floats
    sums: Floats
    clock: Floats
    counts: NDArray[np.int64]
    committee: list[Hypothesis]
    longest: list[float]
    all_hypotheses: AllHypotheses | None


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
    # (6,): hypotheses in ``all_hypotheses``; successes of the current hypothesis and of all, in the
    # current unit; pairs; mistakes; visits of queries.
    counts: NDArray[np.int64]
    seed: int  # of the order of pairs
    committee: list[Hypothesis] = field(default_factory=list)  # the best
    # With a criterion other than successes: the largest numbers of successes, as many as members.
    longest: list[float] = field(default_factory=list)
    all_hypotheses: AllHypotheses | None = None  # unless only a committee is kept
    # (n_features,): factors of the features while learning, powers of two; empty for none, None
    # until the first rows. All weights are those of features without factors.
    scale: Floats | None = None

    @classmethod
    def new(cls, n_features: int, seed: int, settings: dict[str, Any]) -> Self:
        """Create the initial state."""
        every = None
        if settings["capacity"] is None:
            room = max(1, min(ROOM, ROOM_VALUES // n_features))
            every = AllHypotheses(
                np.empty((room, n_features)), np.empty(room), np.empty(room, dtype=np.int64)
            )
        return cls(
            weights=np.zeros(n_features),
            sums=np.zeros(n_features),
            clock=np.zeros(3),
            counts=np.zeros(6, dtype=np.int64),
            seed=seed,
            all_hypotheses=every,
            scale=None if settings["feature_scale"] == "auto" else NONE,
            settings=settings,
        )

    # ---------------------------------------------------------------- for the kernel

    def bind(self, margin: float) -> PairState:
        """Return the arrays in the form of the kernel."""
        every = self.all_hypotheses
        return PairState(
            self.weights,
            self.sums,
            None if every is None else every.weights,
            None if every is None else every.successes,
            None if every is None else every.numbers,
            self.clock,
            self.counts,
            float(margin),
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
        if self.all_hypotheses is not None:
            self.all_hypotheses.weights[kept : int(self.counts[0])] *= self.scale

    def bar(self) -> float:
        """Successes that a hypothesis must exceed to become a candidate.

        With any criterion, these are the successes of the weakest of the members that successes
        would choose, so that few candidates are measured.
        """
        capacity = self.settings["capacity"]
        if capacity is None:
            return np.inf
        lives = self.longest
        if not self.settings["judged"]:
            lives = [member.successes for member in self.committee]
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
        member = Hypothesis(weights, successes, int(self.counts[4]), value)
        if len(self.committee) < self.settings["capacity"]:
            self.committee = [*self.committee, member]
            return
        worst = min(self.committee, key=lambda one: one.merit)
        if value > worst.quality:
            self.committee = [*(one for one in self.committee if one is not worst), member]

    def grow(self, memory_limit: int) -> None:
        """Double the capacity for hypotheses."""
        old = self.all_hypotheses
        assert old is not None
        n = len(old.successes)
        room = 2 * max(n, 1)
        size = (room + n) * 8 * (self.weights.size + 2)  # old and new, while copied
        if size > memory_limit:
            raise ValueError(
                f"variant='voted' has {n} hypotheses, and more require "
                f"{size / 1e9:.3g} GB, above memory_limit ({memory_limit / 1e9:.3g} GB): set "
                "max_hypotheses to keep the best"
            )
        self.all_hypotheses = AllHypotheses(
            widened(old.weights, (room, self.weights.size)),
            widened(old.successes, (room,)),
            widened(old.numbers, (room,)),
        )

    def keep_features(self, n_features: int) -> None:
        """Remove all but the first features from all hypotheses."""
        self.weights, self.sums = (array[:n_features].copy() for array in (self.weights, self.sums))
        self.committee = [
            one._replace(weights=one.weights[:n_features].copy()) for one in self.committee
        ]
        if self.scale is not None:
            self.scale = self.scale[:n_features].copy()
        every = self.all_hypotheses
        if every is not None:
            kept = np.ascontiguousarray(every.weights[:, :n_features])
            self.all_hypotheses = every._replace(weights=kept)

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
            committee=self.committee,
            longest=self.longest,
            all_hypotheses=self.all_hypotheses,
        )

    def restore(self, saved: PairwiseParameterCopy) -> None:
        """Restore what `parameters` returned."""
        self.weights[:] = saved.weights
        self.sums[:] = saved.sums
        self.clock[:] = saved.clock
        self.counts[:] = saved.counts
        self.committee = saved.committee
        self.longest = saved.longest
        self.all_hypotheses = saved.all_hypotheses

    # ---------------------------------------------------------------- files

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays for a model file."""
        arrays: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in OWN}
        arrays["scale"] = NONE if self.scale is None else self.scale
        arrays["log"] = np.array(self.log, dtype=np.int64).reshape(-1, 5)
        if self.all_hypotheses is not None:
            every = self.all_hypotheses.first(int(self.counts[0]))
            return arrays | {
                "members": every.weights,
                "successes": every.successes,
                "born": every.numbers,
            }
        best, n = self.committee, len(self.committee)
        weights = np.array([one.weights for one in best], dtype=np.float64)
        return arrays | {
            "members": weights.reshape(n, self.weights.size),
            "successes": np.array([one.successes for one in best], dtype=np.float64),
            "born": np.array([one.number for one in best], dtype=np.int64),
            "values": np.array([one.quality for one in best], dtype=np.float64),
            "longest": np.array(self.longest, dtype=np.float64),
        }

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
        kept = read_fields(arrays, KEPT, features=n_features)
        every = AllHypotheses(kept["members"], kept["successes"], kept["born"])
        n_members = len(every.successes)
        if settings["capacity"] is None:
            state.all_hypotheses = every
        else:
            sizes = {"members": n_members, "longest": n_members if settings["judged"] else 0}
            judged = {name: a.tolist() for name, a in read_fields(arrays, JUDGED, **sizes).items()}
            state.longest = judged["longest"]
            state.committee = [
                Hypothesis(
                    np.ascontiguousarray(every.weights[k]),
                    float(every.successes[k]),
                    int(every.numbers[k]),
                    judged["values"][k],
                )
                for k in range(n_members)
            ]
        expected = n_members if settings["capacity"] is None else 0
        counts = state.counts
        if (
            not are_counts(counts, np.array(state.log, dtype=np.int64))
            or counts[0] != expected
            or n_members > (settings["capacity"] or n_members)
            or (every.successes < 0).any()
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
        number = int(self.counts[4])
        if self.all_hypotheses is not None:
            every = self.all_hypotheses.first(int(self.counts[0]))
            successes = np.append(every.successes, now)
            order = np.lexsort((np.append(every.numbers, number), -successes))[:size]
            return np.vstack([every.weights, self.weights])[order], successes[order]
        capacity = self.settings["capacity"]
        members = list(self.committee)
        # With ``quality``, only measured hypotheses compete; without a mistake there are none.
        if not self.settings["judged"] or not members:
            members.append(Hypothesis(self.weights, now, number, now))
        members.sort(key=lambda one: one.merit, reverse=True)
        members = members[: min(capacity, size or capacity)]
        weights = np.array([one.weights for one in members])
        return weights, np.array([one.successes for one in members])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self.all_hypotheses is not None:  # without free capacity
            state["all_hypotheses"] = self.all_hypotheses.first(max(int(self.counts[0]), 1))
        return state


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
