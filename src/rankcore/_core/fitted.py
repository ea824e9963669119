"""Names and number of features of a fit, which later rows must match."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted, validate_data

from rankcore._core.sources import RowBlocks


def keep_names(estimator: Any, X: Any) -> None:
    """Set ``feature_names_in_`` and ``n_features_in_`` of an estimator from its rows."""
    if not isinstance(X, RowBlocks):
        validate_data(estimator, X, skip_check_array=True, reset=True)
        return
    estimator.__dict__.pop("feature_names_in_", None)
    if X.feature_names is not None:
        estimator.feature_names_in_ = X.feature_names


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError unless a learner is fitted."""
    if "_state" not in vars(model):
        check_is_fitted(model)
