"""Base class of boosted learners: a fit's frame, warm start, files and categorical features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankcore._core.inputs import as_rows, check_matrix
from rankcore._core.model_spec import ModelSpec, check_n_features
from rankcore._core.scoring import Scoring
from rankcore._core.state import log_array, restored_log, restored_validation, validation_arrays
from rankcore._ext.rows import Rows
from rankcore.boosting._categories import Categories
from rankcore.boosting._params import monotone_signs
from rankcore.ranking.base import ModelState


@dataclass(frozen=True)
class Splits:
    """Constraints on the splits of trees."""

    signs: NDArray[np.int8] | None  # (n_features,): monotone constraint of each, 1, 0 or -1
    categorical: dict[int, str] | None  # names of the categorical columns by their numbers


class Boosted:
    """Base class of `RankBoost` and `OrdinalBoost`, whose fits add to the model in rounds.

    Not public. ``_figures`` has the names of the figures in the log.

    Parameters
    ----------
    max_leaf_nodes : int or None, default=31
        Maximum number of leaves of a tree; the leaf with the largest gain is split first. None:
        limited by ``max_depth`` only.
    max_depth : int, optional
        Maximum depth of a tree.
    max_bins : int or None, default=255
        Maximum number of bins of a feature, 2 to 255; neighbouring values share a bin where there
        are more. None: every threshold is tried.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Categorical features: columns of a frame of pandas, polars or Arrow with a categorical
        dtype ("from_dtype"), or a mask, numbers or names of columns. Values are integers from 0 to
        65535, with at most ``max_bins`` distinct ones in the training rows; values below 0 are
        missing. Columns of a frame may hold strings. Categories that are not in the training rows
        are missing. Not with ``missing="zero"``.
    early_stopping_rounds : int, optional
        Stop after this many consecutive rounds that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the rounds up to the best one.
    warm_start : bool, default=False
        Whether ``fit`` continues the current model, up to ``n_estimators`` rounds in total.
    n_jobs : int, optional
        Number of threads, which share the features. None: 1, -1: one per processor. The model does
        not depend on it.
    verbose : int, default=0
        Print one line every ``verbose`` rounds; 0 prints none.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    is_categorical_ : ndarray of bool, shape (n_features_in_,), or None
        Mask of categorical features; None if there are none.
    categories_ : dict of int to list
        Categories of each categorical DataFrame column, in the order of their codes from 0.
    n_iter_ : int
        Number of rounds, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the round with the best value of the first ``eval_metric``; only with an
        ``eval_set``. With ``early_stopping_rounds`` the model ends at this round; otherwise it
        keeps all rounds.
    """

    n_features_in_: int
    best_iteration_: int
    missing: Literal["learn", "zero"]
    warm_start: bool
    categorical_features: Any
    monotonic_cst: Any
    _figures: tuple[str, ...]
    _state: ModelState
    _fitted_state: Callable[[], Any]
    _more_rows: Callable[[Any], Rows]
    _categories: Categories | None = None

    # ---------------------------------------------------------------- hooks of a subclass

    @abstractmethod
    def _restored_model(self, spec: ModelSpec, n_features: int, zero_missing: bool) -> Any:
        """Model of a spec; raise ValueError unless its other settings are possible."""

    # ---------------------------------------------------------------- learning

    def _continues(self) -> bool:
        """Whether a fit continues the current model."""
        return self.warm_start and "_state" in self.__dict__

    def _tree_rows(self, X: Any) -> tuple[Rows, Categories | None]:
        """Training rows of trees, with codes of categories."""
        check_matrix(X)
        known = self._categories if self._continues() else None
        categories = Categories.of(X, self.categorical_features, known)
        if categories is None:
            return as_rows(X, nan=True), None
        if self.missing == "zero":
            raise ValueError(
                "missing='zero' is incompatible with categorical features, in which 0 is a category"
            )
        rows = as_rows(categories.encode(X), nan=True)
        categories.check(rows, X)
        return rows, categories

    def _begun(
        self, settings: dict[str, Any], n_features: int, n_estimators: int, new: Callable[[], Any]
    ) -> ModelState:
        """A state without rounds or, with ``warm_start``, a copy of the current one.

        ``n_estimators`` is the maximum number of rounds.
        """
        if not self._continues():
            return ModelState(new(), settings=settings)
        before = self._state
        before.check_settings(settings, {"zero_missing": "missing"})
        if self.n_features_in_ != n_features:
            raise ValueError(
                f"X has {n_features} features, but warm_start continues a model of "
                f"{self.n_features_in_}"
            )
        n = len(before.model)
        if n_estimators < n:
            raise ValueError(
                f"n_estimators must be at least {n}, the rounds of the model that warm_start "
                f"continues; found {n_estimators}"
            )
        validation = {name: values[:n] for name, values in before.validation.items()}
        log = [list(figures) for figures in before.log[:n]]
        return ModelState(before.model.first(n), settings=settings, log=log, validation=validation)

    def _check_columns(self, shadow: Self) -> None:
        """With ``warm_start``, raise unless the columns are those of the previous fit."""
        if not self.warm_start:
            return
        names, known = (getattr(one, "feature_names_in_", None) for one in (shadow, self))
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ValueError(
                "warm_start requires the columns that the model was fitted on, "
                f"{known.tolist()}; found {names.tolist()}"
            )
        if "_state" not in self.__dict__ or not len(self._state.model):
            return
        before, now = (
            None if one is None else (one.numbers, sorted(one.labels))
            for one in (self._categories, shadow._categories)
        )
        if before != now:
            raise ValueError(
                "warm_start requires the categorical features that the model was fitted on, each "
                "of them again as codes or as a column of a data frame"
            )

    def _splits(self, X: Any) -> Splits:
        """Constraints on the splits of trees; of a fitted copy with the names of X."""
        categories, names = self._categories, getattr(self, "feature_names_in_", None)
        columns = None if categories is None else categories.columns
        signs = monotone_signs(self.monotonic_cst, self.n_features_in_, names, columns)
        return Splits(signs, None if categories is None else categories.names(X))

    # ---------------------------------------------------------------- files

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state, categories = self._state, self._categories
        return {
            "settings": state.settings,
            "categories": None if categories is None else categories.facts(),
            "validation": [*state.validation],
            "best_iteration": getattr(self, "best_iteration_", None),
        }, {
            **state.model.to_arrays(),
            "log": log_array(state.log, self._figures),
            **validation_arrays(state.validation),
        }

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        return self._state.model.scoring(arrays)

    def _restore(self, spec: ModelSpec) -> None:
        settings, best = spec.facts["settings"], spec.facts["best_iteration"]
        n_features, zero_missing = check_n_features(spec.n_features), settings.get("zero_missing")
        if not isinstance(zero_missing, bool):
            raise self._not_its(settings)
        model = self._restored_model(spec, n_features, zero_missing)
        log = restored_log(spec, self._figures)
        if not (best is None or 0 <= int(best) <= len(log)):
            raise ValueError(f"its best_iteration must be one of {len(log)} rounds; found {best!r}")
        categories = None
        if spec.facts["categories"] is not None:
            categories = Categories.restored(spec.facts["categories"], n_features)
        validation = restored_validation(spec, len(log))
        self._state = ModelState(model, settings=settings, log=log, validation=validation)
        self.n_features_in_, self._categories = n_features, categories
        if best is not None:
            self.best_iteration_ = int(best)

    def _not_its(self, settings: Any) -> ValueError:
        return ValueError(f"its settings {settings} are not those of {type(self).__name__}")

    # ---------------------------------------------------------------- fitted model

    def _staged(self, X: Any) -> Iterator[tuple[int, Any]]:
        """Number of rounds and scores after each round, which the next round changes."""
        check_is_fitted(self)
        rows, model = self._more_rows(X), self._state.model
        scores = model.first(0).score(rows)
        for i in range(len(model)):
            model.add_member(i, rows, scores)
            yield i + 1, scores

    def _as_rows(self, X: Any) -> Rows:
        return as_rows(X if self._categories is None else self._categories.encode(X), nan=True)

    @property
    def is_categorical_(self) -> NDArray[np.bool_] | None:
        """Mask of categorical features, shape (n_features,); None if there are none."""
        self._fitted_state()
        return None if self._categories is None else self._categories.columns

    @property
    def categories_(self) -> dict[int, list[Any]]:
        """Categories of each data frame column, in the order of their codes."""
        self._fitted_state()
        found = {} if self._categories is None else self._categories.labels
        return {column: list(labels) for column, labels in found.items()}

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the sum of |alpha| (stumps) or gains (trees)."""
        return self._fitted_state().model.importances()

    @property
    def n_iter_(self) -> int:
        """Number of rounds."""
        return len(self._fitted_state().log)
