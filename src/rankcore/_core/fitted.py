"""Facts about the rows of a fit that later rows must match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.validation import check_is_fitted, validate_data

from rankcore._core.sources import RowBlocks
from rankcore._ext.rows import Rows


def keep_names(estimator: Any, X: Any) -> None:
    """Set ``feature_names_in_`` and ``n_features_in_`` of an estimator from its rows."""
    if not isinstance(X, RowBlocks):
        validate_data(estimator, X, skip_check_array=True, reset=True)
        return
    estimator.__dict__.pop("feature_names_in_", None)
    if X.feature_names is not None:
        estimator.feature_names_in_ = X.feature_names


def check_fitted(model: Any) -> None:
    """Raise NotFittedError unless a learner has a state: as scikit-learn's check."""
    if "_state" not in vars(model):
        check_is_fitted(model)


def as_more_rows(model: Any, X: Any, as_rows: Callable[[Any], Rows]) -> Rows:
    """Rows for a fitted model; ValueError if they have other features, by number or by name."""
    if hasattr(X, "columns") or hasattr(model, "feature_names_in_"):
        validate_data(model, X, skip_check_array=True, reset=False)
    rows = as_rows(X)
    if rows.n_features != model.n_features_in_:
        raise ValueError(
            f"X has {rows.n_features} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )
    return rows
