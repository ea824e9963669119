"""Base class of RankBoost and BipartiteRankBoost: fitting, models and model files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from numbers import Integral
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, check_scalar

from rankcore._core.arguments import RowsLike
from rankcore._core.inputs import as_rows
from rankcore._core.model_spec import ModelSpec, Specified, check_n_features
from rankcore._core.monitor import Callback, Monitor
from rankcore._core.numbers import check_scores
from rankcore._core.queries import Queries
from rankcore._core.scoring import Scoring
from rankcore._core.sources import RowBlocks
from rankcore._core.state import log_array, restored_log, restored_validation, validation_arrays
from rankcore._ext.rows import Rows
from rankcore.boosting._booster import Rounds
from rankcore.boosting._categories import Categories, SplitsCategories, tree_rows
from rankcore.boosting._given_bins import BlockRows
from rankcore.boosting._params import BoostingParams, grows_trees, monotone_signs
from rankcore.boosting._stump_booster import StumpRounds
from rankcore.boosting._stump_sum import Contribution, StumpSum
from rankcore.boosting._training import BOUND, FIGURES, RoundLearner, train_rounds
from rankcore.boosting._tree_booster import TreeRounds
from rankcore.boosting._tree_sum import TreeSum
from rankcore.ranking._base import ModelState
from rankcore.ranking._pairs import Pairing, check_useful
from rankcore.ranking._queries import Given, ranking_source


class PairBoosting(BoostingParams, SplitsCategories, Specified):
    """Base class of RankBoost and BipartiteRankBoost. Not public.

    Subclasses provide ``fit``.
    """

    _state: ModelState
    _figures: tuple[str, ...] = FIGURES
    _allows_nan = True
    _RETIRED = ("search",)
    # Of `Ranker`.
    _validation: Any
    _shadow: Any
    _largest_query: int

    # ---------------------------------------------------------------- learning

    def _source(self, given: Given, **more: Any) -> tuple[Any, Categories | None]:
        """Rows of a fit, and their categorical features."""
        categories: list[Categories | None] = [None]

        def read(X: Any) -> Rows | BlockRows:
            rows, categories[0] = self._begin_fit(X)
            return rows

        # A new model of stumps needs only the bins of a row cache.
        bins_do = not grows_trees(self) and not self.warm_start and self.max_bins is not None
        whole = outlined if bins_do else methodcaller("whole")
        source = ranking_source(given, as_rows=read, whole=whole, **more)
        return source, categories[0]

    def _begin_fit(self, X: Any) -> tuple[Rows | BlockRows, Categories | None]:
        """Check the training rows, and encode their categories."""
        if isinstance(X, BlockRows):
            return X, None
        goes_on = self.warm_start and "_state" in self.__dict__
        known = self._categories if goes_on else None
        given = self.categorical_features
        if grows_trees(self):
            return tree_rows(X, given, known, self.missing)
        categories = Categories.of(X, given, known)
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
        held_out: tuple[Any, ...],
        callbacks: Iterable[Callback] | None,
    ) -> None:
        given, window = source.given, source.window
        rows, in_queries = window.rows, window.queries is not None
        check_useful(pairing, rows.n_rows)
        learner = copy(self)
        learner._categories = categories
        validation = learner._validation(given, rows.n_features, in_queries, held_out)
        state = self._begin(rows.n_features)
        largest = window.queries.largest if in_queries else 0
        fitted = learner._shadow(given, rows.n_features, largest, state)
        self._check_columns(fitted)
        rounds: Rounds
        if isinstance(state.model, StumpSum):
            rounds = StumpRounds(self, rows, pairing, state.model)
        else:
            columns = None if categories is None else categories.columns
            names = getattr(fitted, "feature_names_in_", None)
            signs = monotone_signs(self.monotonic_cst, rows.n_features, names, columns)
            called = None if categories is None else categories.names(given)
            rounds = TreeRounds(self, rows, pairing, state.model, signs, called)
        monitor = Monitor(fitted, validation, callbacks)
        try:
            train_rounds(RoundLearner(fitted, iter(rounds)), source, monitor)
        finally:
            rounds.close()
        self._replace_with(fitted)

    def _begin(self, n_features: int) -> ModelState:
        """An empty state, or with ``warm_start`` a copy of the current one."""
        settings: dict[str, Any] = {"zero_missing": self.missing == "zero"}
        kind: type[StumpSum | TreeSum] = StumpSum
        if grows_trees(self):
            kind, settings["weak"] = TreeSum, "tree"
        if not self.warm_start or "_state" not in self.__dict__:
            model = kind(n_features, settings["zero_missing"])
            return ModelState(model, settings=settings)
        known = self._state
        n = len(known.model)
        if self.n_features_in_ != n_features:
            raise ValueError(
                f"X has {n_features} features, but warm_start continues a model of "
                f"{self.n_features_in_}"
            )
        if not isinstance(known.model, kind):
            raise ValueError("warm_start requires weak rankers of the same kind: stumps or trees")
        if known.settings != settings:
            raise ValueError("warm_start requires the missing= that the model was fitted with")
        if self.n_estimators < n:
            raise ValueError(
                f"n_estimators={self.n_estimators} is below the {n} {self._kind()} of the "
                "model that warm_start continues"
            )
        validation = {name: values[:n] for name, values in known.validation.items()}
        log = [list(figures) for figures in known.log[:n]]
        return ModelState(known.model.first(n), settings=settings, log=log, validation=validation)

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state, categories = self._state, self._categories
        return {
            "settings": state.settings,
            "categories": None if categories is None else categories.facts(),
            "largest_query": self._largest_query,
            "validation": [*state.validation],
            "best_iteration": getattr(self, "best_iteration_", None),
        }, {
            **state.model.to_arrays(),
            "log": log_array(state.log, FIGURES),
            **validation_arrays(state.validation),
        }

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        return self._state.model.scoring(arrays)

    def _restore(self, spec: ModelSpec) -> None:
        settings, figures = spec.facts["settings"], spec.arrays["log"]
        n_features, best = check_n_features(spec.n_features), spec.facts["best_iteration"]
        zero_missing, trees = settings.get("zero_missing"), settings.get("weak") == "tree"
        if not isinstance(zero_missing, bool) or len(settings) != 1 + trees:
            raise ValueError(f"its settings {settings} are not those of {type(self).__name__}")
        if trees != grows_trees(self):
            raise ValueError("its weak rankers are not of the kind of its parameters")
        kind: type[StumpSum | TreeSum] = TreeSum if trees else StumpSum
        n_members = spec.arrays["offsets"].size - 1 if trees else spec.arrays["alphas"].size
        if n_members > len(figures) or not (best is None or 0 <= int(best) <= len(figures)):
            raise ValueError("its weak rankers or its best_iteration exceed its rounds")
        model = kind.from_arrays(spec.arrays, n_features, zero_missing)
        categories = None
        if spec.facts["categories"] is not None:
            categories = Categories.restored(spec.facts["categories"], n_features)
        if isinstance(model, TreeSum):
            model.check_categories([] if categories is None else categories.numbers)
        elif categories is not None:
            raise ValueError("it has stumps, which cannot split categorical features")
        log: list[list[float]] = restored_log(spec, FIGURES)
        validation = restored_validation(spec, len(log))
        self._state = ModelState(model, settings=settings, log=log, validation=validation)
        self.n_features_in_, self._largest_query = n_features, int(spec.facts["largest_query"])
        self._categories = categories
        if best is not None:
            self.best_iteration_ = int(best)

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

    def _scores(self, rows: Rows, queries: Queries) -> NDArray[np.float64]:
        return check_scores(self._fitted_state().model.score(rows))

    def staged_predict(self, X: RowsLike) -> Iterator[NDArray[np.float64]]:
        """Scores after each round.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Yields
        ------
        ndarray of float64, shape (n_samples,)
            The last equals `predict` to rounding.
        """
        check_is_fitted(self)
        rows, model = self._more_rows(X), self._state.model
        scores = np.zeros(rows.n_rows)
        for i in range(len(model)):
            model.add_member(i, rows, scores)
            yield scores.copy()

    def contribution(self, feature: int | str) -> Contribution:
        """Contribution of a feature to the score, as a function of its value.

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
            names = [str(known) for known in getattr(self, "feature_names_in_", [])]
            if feature not in names:
                known = ", ".join(names) if names else "none: X had no named columns"
                raise ValueError(f"there is no feature {feature!r}; names are {known}")
            feature = names.index(feature)
        check_scalar(feature, "feature", Integral, min_val=0, max_val=self.n_features_in_ - 1)
        return self._state.model.contribution(int(feature))

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the sum of |alpha| (stumps) or gains (trees)."""
        return self._fitted_state().model.importances()

    @property
    def estimators_(self) -> NDArray[np.void]:
        """The stumps, or all nodes of the trees, one record each."""
        records: NDArray[np.void] = self._fitted_state().model.records()
        return records

    @property
    def n_iter_(self) -> int:
        """Number of rounds."""
        return len(self._fitted_state().log)


def outlined(blocks: RowBlocks) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
    """Rows on disk of which a fit keeps only bins, with their labels and queries."""
    labels, queries = blocks.outline()
    return BlockRows(blocks, labels.size), labels, queries
