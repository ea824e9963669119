"""State of pairwise perceptrons, and predictions of committees."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.model_spec import Field, ModelSpec, read_fields
from rankcore._core.numbers import Floats, check_scores
from rankcore._core.params import HALF_LIFE
from rankcore._core.queries import Queries
from rankcore._core.state import LearnerState, restored_validation, validation_arrays
from rankcore._ext.online_model import are_counts
from rankcore._ext.pair_model import PairModel
from rankcore._ext.rows import Rows, project


@dataclass(kw_only=True)
class PairwiseState(LearnerState):
    """Passes of a pairwise perceptron, and its model.

    The log has, for each pass: pairs, mistakes, hypotheses so far, queries, skipped queries.
    """

    model: PairModel
    seed: int  # of the order of pairs

    def parameters(self) -> PairModel:
        """Copy the learned parameters, for `restore`."""
        return self.model.copy()

    def restore(self, parameters: PairModel) -> None:
        """Restore a copy; the log is unchanged."""
        self.model = parameters

    def working_copy(self) -> Self:
        """Return a copy to learn in."""
        made = copy(self)
        made.model = self.model.copy()
        made.log = [list(statistics) for statistics in self.log]
        made.validation = {name: list(values) for name, values in self.validation.items()}
        return made

    def described(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the metadata and arrays of a spec for `restored`."""
        arrays: dict[str, NDArray[Any]] = self.model.saved()
        arrays["log"] = np.array(self.log, dtype=np.int64).reshape(-1, 5)
        return {
            "settings": self.settings,
            "streaming": self.streaming,
            "seed": self.seed,
            "validation": [*self.validation],
        }, arrays | validation_arrays(self.validation)

    @classmethod
    def restored(cls, spec: ModelSpec, n_features: int) -> Self:
        """Restore from a model file; raise ValueError or KeyError if it is invalid."""
        settings, seed = spec.facts["settings"], spec.facts["seed"]
        capacity = settings["capacity"]
        if not (capacity is None or (isinstance(capacity, int) and capacity > 0)):
            raise ValueError(f"capacity must be an integer >= 1 or None; got {capacity!r}")
        if not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise ValueError(f"seed must be an integer in 0 .. 2**63 - 1; got {seed!r}")
        HALF_LIFE.check(settings["half_life"], "half_life")
        model = PairModel(n_features, 2, settings, spec.arrays)
        if not getattr(spec.arrays, "mapped", False):  # values are read when they are needed
            for name, array in model.saved().items():
                if array.dtype.kind == "f" and not np.isfinite(array).all():
                    raise ValueError(f"the array {name} must be finite; got NaN or infinity")
        model.check()
        model.check_past()
        log = read_fields(spec.arrays, {"log": Field(("passes", 5), "int64")})["log"]
        if not are_counts(log):
            raise ValueError("the counts of the passes must be >= 0")
        return cls(
            model=model,
            seed=seed,
            settings=settings,
            log=log.tolist(),
            streaming=bool(spec.facts["streaming"]),
            validation=restored_validation(spec, len(log)),
        )


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
    """Return the weights of the members' votes: their successes, or 1 if all are 0."""
    return successes if successes.any() else np.ones_like(successes)


def borda(rows: Rows, members: Floats, successes: Floats, queries: Queries) -> Floats:
    """Return the negative weighted mean of the members' ranks of each document in its query.

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
