"""Base class of RankBoost and BipartiteRankBoost: fitting, models and model files.

``fit`` of the estimators forms pairs and calls ``_boost``, which picks the rounds, with stumps or
trees, and runs them. What `rankcore.OrdinalBoost` has as well is in `_boosted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import RowsLike
from rankcore._core.inputs import as_rows
from rankcore._core.model_spec import ModelSpec
from rankcore._core.monitor import Callback, Monitor
from rankcore._core.numbers import Floats, check_scores
from rankcore._core.params import Constraints, Real, check_count, check_integer
from rankcore._core.queries import Queries
from rankcore._core.scoring import Scoring
from rankcore._ext.rows import Rows
from rankcore.boosting._boosted import (
    begin_state,
    categorical_mask,
    category_labels,
    check_columns,
    continues,
    describe,
    encoded_rows,
    read_blocks,
    restore,
    split_constraints,
    staged_scores,
    tree_rows,
    wrong_settings,
)
from rankcore.boosting._streamed_bins import DiskRows
from rankcore.boosting._stump_rounds import MemoryStumps
from rankcore.boosting._training import BOUND, STATISTICS, RoundLearner, train_rounds
from rankcore.boosting._tree_model import TreeSum
from rankcore.boosting._tree_rounds import MemoryPairTrees
from rankcore.boosting.categories import Categories
from rankcore.boosting.params import PAIR_CONSTRAINTS, Schedule, check_weak, grows_trees
from rankcore.boosting.stump_model import Contribution, StumpSum
from rankcore.ranking.base import ModelState, Ranker
from rankcore.ranking.data import HeldOut, RankingData, ranking_source
from rankcore.ranking.pairs import Pairing, check_useful


class PairBoosting(Ranker):
    """Base class of RankBoost and BipartiteRankBoost, which have its constructor. Not public."""

    _constraints: ClassVar[Constraints] = PAIR_CONSTRAINTS
    max_bins: int | None
    missing: Literal["learn", "zero"]
    warm_start: bool
    categorical_features: Any
    n_estimators_: int
    learning_rate_: float
    best_iteration_: int
    _state: ModelState
    _categories: Categories | None = None
    _statistics: tuple[str, ...] = STATISTICS
    _allows_nan = True

    def _check_together(self) -> None:
        check_weak(self)

    # ---------------------------------------------------------------- learning

    def _source(
        self, data: RankingData, *, one_query: bool = False
    ) -> tuple[Any, Categories | None]:
        """Return the rows of a fit, and their categorical features."""
        categories: list[Categories | None] = [None]

        def read(X: Any) -> Rows | DiskRows:
            rows, categories[0] = self._begin_fit(X)
            return rows

        whole = partial(read_blocks, self)
        source = ranking_source(data, as_rows=read, whole=whole, one_query=one_query)
        return source, categories[0]

    def _begin_fit(self, X: Any) -> tuple[Rows | DiskRows, Categories | None]:
        """Check the training rows, and encode their categories."""
        if isinstance(X, DiskRows):
            return X, None
        if grows_trees(self):
            return tree_rows(self, X)
        categories = Categories.of(X, self.categorical_features, None)
        if categories is not None:
            column, name = next(iter(categories.names(X).items()))
            what = (
                f"has dtype {list(X.dtypes)[column]}" if name != str(column) else "is categorical"
            )
            raise ValueError(
                f"column {name} {what}, but stumps have no categorical features: encode it, or set "
                "max_leaf_nodes above 2 or weak='tree'"
            )
        return as_rows(X, nan=True), None

    def _boost(
        self,
        source: Any,
        categories: Categories | None,
        pairing: Pairing,
        held_out: Sequence[HeldOut],
        callbacks: Iterable[Callback] | None,
    ) -> None:
        given, window = source.given, source.window
        rows, in_queries = window.rows, window.queries is not None
        check_useful(pairing, rows.n_rows)
        learner = copy(self)
        learner._categories = categories
        validation = learner._validation(given, rows.n_features, in_queries, held_out)
        fitted = learner._begin(given, rows.n_features, window.queries.largest if in_queries else 0)
        check_columns(self, fitted)
        rounds: MemoryStumps | MemoryPairTrees
        model = fitted._state.model
        if isinstance(model, StumpSum):
            rounds = MemoryStumps(self, rows, pairing, model)
        else:
            splits = split_constraints(fitted, given)
            rounds = MemoryPairTrees(self, rows, pairing, model, splits.signs, splits.categorical)
        monitor = Monitor(fitted, validation, callbacks)
        try:
            round_learner = RoundLearner(fitted, rounds, fitted.n_estimators_)
            train_rounds(round_learner, source, monitor)
        finally:
            rounds.close()
        self._replace_with(fitted)

    def _begin(self, X: Any, n_features: int, largest_query: int) -> Self:
        """Return a fitted copy without rounds or, with ``warm_start``, with the current ones."""
        zero_missing = self.missing == "zero"
        settings: dict[str, Any] = {"zero_missing": zero_missing}
        kind: type[StumpSum | TreeSum] = StumpSum
        if grows_trees(self):
            kind, settings["weak"] = TreeSum, "tree"
        if continues(self) and not isinstance(self._state.model, kind):
            raise ValueError("warm_start requires weak rankers of the same kind: stumps or trees")
        schedule = Schedule.of(self)
        state = begin_state(
            self,
            settings,
            n_features,
            schedule.n_estimators,
            lambda: kind(n_features, zero_missing),
        )
        return self._fitted_copy(
            X,
            n_features,
            state,
            _largest_query=largest_query,
            n_estimators_=schedule.n_estimators,
            learning_rate_=schedule.learning_rate,
        )

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        facts, arrays = describe(self, STATISTICS)
        facts |= {
            "largest_query": self._largest_query,
            "n_estimators": self.n_estimators_,
            "learning_rate": self.learning_rate_,
        }
        return facts, arrays

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        return self._state.model.scoring(arrays)

    def _restore(self, spec: ModelSpec) -> None:
        restore(self, spec, STATISTICS, self._restored_model)

    def _restored_model(self, spec: ModelSpec, n_features: int, zero_missing: bool) -> Any:
        settings = spec.facts["settings"]
        trees = settings.get("weak") == "tree"
        if len(settings) != 1 + trees:
            raise wrong_settings(self, settings)
        if trees != grows_trees(self):
            raise ValueError("the weak rankers must be those of the parameters: stumps or trees")
        self._largest_query = int(spec.facts["largest_query"])
        self.n_estimators_ = spec.facts["n_estimators"]
        self.learning_rate_ = spec.facts["learning_rate"]
        check_count(self.n_estimators_, "n_estimators")
        Real(0, 1, closed="right").check(self.learning_rate_, "learning_rate")
        kind: type[StumpSum | TreeSum] = TreeSum if trees else StumpSum
        return kind.from_arrays(spec.arrays, n_features, zero_missing)

    def _fit_summary(self) -> dict[str, Any]:
        log = self._state.log
        return {
            self._kind(): len(self._state.model),
            "training_error_at_most": log[-1][BOUND] if log else 1.0,
        }

    def _summary(self) -> dict[str, Any]:
        return {self._kind(): len(self._state.model), "rounds": self.n_iter_}

    def _kind(self) -> str:
        return "trees" if isinstance(self._state.model, TreeSum) else "stumps"

    # ---------------------------------------------------------------- fitted model

    def _scores(self, rows: Rows, queries: Queries) -> Floats:
        return check_scores(self._fitted_state().model.score(rows))

    def staged_predict(self, X: RowsLike) -> Iterator[NDArray[np.float64]]:
        """Yield the scores after each round.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Yields
        ------
        ndarray of float64, shape (n_samples,)
            The last equals `predict` to rounding.
        """
        for _, scores in staged_scores(self, X):
            yield scores.copy()

    def contribution(self, feature: int | str) -> Contribution:
        """Return the contribution of a feature to the score, as a function of its value.

        Parameters
        ----------
        feature : int or str
            Number of the column, from 0, or its name.

        Returns
        -------
        Contribution
            Thresholds, the values between them, and the value where the feature is missing; for
            example for ``matplotlib.pyplot.stairs``.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        check_is_fitted(self)
        if isinstance(feature, str):
            names = [str(name) for name in getattr(self, "feature_names_in_", [])]
            if feature not in names:
                listed = ", ".join(names) if names else "none: X had no named columns"
                raise ValueError(f"there is no feature {feature!r}; names are {listed}")
            feature = names.index(feature)
        check_integer(feature, "feature", 0, self.n_features_in_ - 1)
        return self._state.model.contribution(int(feature))

    def _as_rows(self, X: Any) -> Rows:
        return encoded_rows(self, X)

    @property
    def is_categorical_(self) -> NDArray[np.bool_] | None:
        """Mask of categorical features, shape (n_features,); None if there are none."""
        return categorical_mask(self)

    @property
    def categories_(self) -> dict[int, list[Any]]:
        """Categories of each data frame column, in the order of their codes."""
        return category_labels(self)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Fraction of each feature in the sum of |alpha| (stumps) or gains (trees)."""
        return self._fitted_state().model.importances()

    @property
    def n_iter_(self) -> int:
        """Number of rounds."""
        return len(self._fitted_state().log)

    @property
    def estimators_(self) -> NDArray[np.void]:
        """The stumps, or all nodes of the trees, one record each."""
        return self._fitted_state().model.records()
