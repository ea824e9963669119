"""Predictions of fitted pairwise perceptrons by variant, and model files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.concurrency import reads
from rankcore._core.model_spec import ModelSpec, Specified, check_n_features
from rankcore._core.numbers import check_scores
from rankcore._core.params import check_declared, option
from rankcore._core.queries import Queries
from rankcore._core.scoring import Scoring, no_scoring
from rankcore._core.state import validation_arrays
from rankcore._ext.rows import Rows, project
from rankcore.ranking._perceptron_state import PairwiseState

VARIANTS = ("committee", "voted", "averaged", "pocket", "last")


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


def votes(successes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the members' votes: their successes, or equal weights if all are 0."""
    return successes if successes.any() else np.ones_like(successes)


def borda(
    rows: Rows, members: NDArray[np.float64], successes: NDArray[np.float64], queries: Queries
) -> NDArray[np.float64]:
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


class PerceptronModel(Specified):
    """Predictions and model files of `PairwisePerceptron`. Not public."""

    _constraints: ClassVar = {
        "variant": option(*VARIANTS),
        "combine": option("auto", "score", "rank"),
    }
    _state: PairwiseState
    variant: Any
    combine: Any
    committee_size: int
    feature_scale: Any
    best_iteration_: int
    history_: dict[str, list[Any]]
    _largest_query: int

    @abstractmethod
    def _settings(self, n_features: int) -> dict[str, Any]:
        """Parameters that a fitted state depends on."""

    def _check_together(self) -> None:
        """Check the parameters of predictions, which may have changed since the fit."""
        check_declared(self, "variant", "combine", "committee_size")
        if self.variant == "voted" and self.combine == "score":
            raise ValueError(
                "variant='voted' requires combine='rank'; found combine='score', which is equal to "
                "variant='averaged': use that instead"
            )

    def _scores(self, rows: Rows, queries: Queries) -> NDArray[np.float64]:
        if self._by_rank():
            members = self.committee_
            return borda(rows, members.weights, members.successes, queries)
        scores = np.empty(rows.n_rows)
        project(rows, self._weights(), scores)
        return check_scores(scores)

    def _by_rank(self) -> bool:
        self._check_together()
        return self.variant == "voted" or (self.variant == "committee" and self.combine == "rank")

    def _weights(self) -> NDArray[np.float64]:
        state = self._fitted_state()
        self._check_together()
        if self.variant == "last":
            return state.weights
        if self.variant == "averaged":
            return state.average()
        members = self.committee_
        if self.variant == "pocket":
            return members.weights[0]
        return np.asarray(np.average(members.weights, axis=0, weights=votes(members.successes)))

    @property
    @reads
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the score, shape (n_features,)."""
        self._fitted_state()
        if self._by_rank():
            raise AttributeError("combine='rank' has no coef_, as members vote: see committee_")
        return self._weights().copy()

    @property
    @reads
    def committee_(self) -> Committee:
        """Members of the committee, best first."""
        state = self._fitted_state()
        self._check_together()
        size = self.committee_size if self.variant != "voted" else None
        weights, successes = state.best(size)
        return Committee(weights, successes)

    @property
    @reads
    def n_iter_(self) -> int:
        """Number of passes."""
        return len(self._fitted_state().log)

    # ---------------------------------------------------------------- model files

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._state
        return {
            "settings": state.settings,
            "streaming": state.streaming,
            "seed": state.seed,
            "largest_query": self._largest_query,
            "validation": [*state.validation],
            "best_iteration": getattr(self, "best_iteration_", None),
        }, state.to_arrays() | validation_arrays(state.validation)

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        if self._by_rank():
            return no_scoring("combine='rank' scores depend on all documents of a query")
        return Scoring("linear", {"weights": self._weights()})

    def _restore(self, spec: ModelSpec) -> None:
        n_features = check_n_features(spec.n_features)
        settings = spec.facts["settings"]
        if "feature_scale" not in settings:  # of an older file: as given
            settings = {**settings, "feature_scale": None}
            self.feature_scale = None
        if settings.keys() != self._settings(n_features).keys():
            raise ValueError(f"its settings are not those of {type(self).__name__}")
        spec = replace(spec, facts={**spec.facts, "settings": settings})
        state, best = PairwiseState.from_spec(spec, n_features), spec.facts["best_iteration"]
        if not (best is None or 1 <= int(best) <= len(state.log)):
            raise ValueError(f"its best pass is {best!r}")
        self._state, self.n_features_in_ = state, n_features
        self._largest_query = int(spec.facts["largest_query"])
        if best is not None:
            self.best_iteration_ = int(best)

    def _fit_summary(self) -> dict[str, Any]:
        history = self.history_
        return {
            "pairs": history["pairs"][-1],
            "passes": self.n_iter_,
            "mistakes_of_last_pass": history["mistakes"][-1],
        }

    def _summary(self) -> dict[str, Any]:
        return {"pairs_seen": sum(self.history_["pairs"]), "passes": self.n_iter_}
