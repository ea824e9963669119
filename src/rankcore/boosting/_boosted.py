"""Functions that RankBoost, BipartiteRankBoost and OrdinalBoost share: warm start, files, rows.

``model`` is an estimator with parameters ``missing``, ``warm_start``, ``categorical_features`` and
``monotonic_cst``; once fitted, its ``_state`` has a model with the methods ``first``, ``score``,
``add_member``, ``to_arrays`` and ``scoring``, and ``_categories`` its categorical features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankcore._core.inputs import as_rows, check_matrix
from rankcore._core.model_spec import ModelSpec, check_n_features
from rankcore._core.sources import RowBlocks
from rankcore._core.state import log_array, restored_log, restored_validation, validation_arrays
from rankcore._ext.rows import Rows
from rankcore.boosting._streamed_bins import DiskRows
from rankcore.boosting.categories import Categories
from rankcore.boosting.params import monotone_signs
from rankcore.ranking.base import ModelState


@dataclass(frozen=True)
class SplitConstraints:
    """Constraints on the splits of trees."""

    signs: NDArray[np.int8] | None  # (n_features,): monotone constraint of each, 1, 0 or -1
    categorical: dict[int, str] | None  # names of the categorical columns by their numbers


# ------------------------------------------------------------------------------ learning


def continues(model: Any) -> bool:
    """Return whether a fit continues the current model."""
    return bool(model.warm_start) and "_state" in model.__dict__


def read_blocks(
    model: Any, blocks: RowBlocks
) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
    """Return rows on disk, with their labels and queries.

    A new model needs only the bins of a row cache; otherwise the values are mapped or read.
    """
    numeric = model.categorical_features is None or isinstance(model.categorical_features, str)
    binned = blocks.has_stats and numeric and model.max_bins is not None
    if model.warm_start or not binned:
        return blocks.whole()
    labels, queries = blocks.outline()
    return DiskRows(blocks, labels.size), labels, queries


def tree_rows(model: Any, X: Any) -> tuple[Rows, Categories | None]:
    """Return the training rows of trees, with codes of categories, and the categories."""
    check_matrix(X)
    known = model._categories if continues(model) else None
    categories = Categories.of(X, model.categorical_features, known)
    if categories is None:
        return as_rows(X, nan=True), None
    if model.missing == "zero":
        raise ValueError(
            "missing='zero' is incompatible with categorical features, in which 0 is a category"
        )
    rows = as_rows(categories.encode(X), nan=True)
    categories.check(rows, X)
    return rows, categories


def begin_state(
    model: Any,
    settings: dict[str, Any],
    n_features: int,
    n_estimators: int,
    new: Callable[[], Any],
) -> ModelState:
    """Return a state without rounds or, with ``warm_start``, a copy of the current one.

    ``n_estimators`` is the maximum number of rounds.
    """
    if not continues(model):
        return ModelState(new(), settings=settings)
    before = model._state
    before.check_settings(settings, {"zero_missing": "missing"})
    if model.n_features_in_ != n_features:
        raise ValueError(
            f"X has {n_features} features, but warm_start continues a model of "
            f"{model.n_features_in_}"
        )
    n = len(before.model)
    if n_estimators < n:
        raise ValueError(
            f"n_estimators must be at least {n}, the rounds of the model that warm_start "
            f"continues; got {n_estimators}"
        )
    validation = {name: values[:n] for name, values in before.validation.items()}
    log = [list(statistics) for statistics in before.log[:n]]
    return ModelState(before.model.first(n), settings=settings, log=log, validation=validation)


def check_columns(model: Any, fitted: Any) -> None:
    """Raise, with ``warm_start``, unless the columns are those of the previous fit."""
    if not model.warm_start:
        return
    names, previous = (
        getattr(model_or_fit, "feature_names_in_", None) for model_or_fit in (fitted, model)
    )
    if names is not None and previous is not None and names.tolist() != previous.tolist():
        raise ValueError(
            "warm_start requires the columns that the model was fitted on, "
            f"{previous.tolist()}; got {names.tolist()}"
        )
    if "_state" not in model.__dict__ or not len(model._state.model):
        return
    before, now = (
        None if categories is None else (categories.numbers, sorted(categories.labels))
        for categories in (model._categories, fitted._categories)
    )
    if before != now:
        raise ValueError(
            "warm_start requires the categorical features that the model was fitted on, each "
            "of them again as codes or as a column of a data frame"
        )


def split_constraints(fitted: Any, X: Any) -> SplitConstraints:
    """Return the constraints on splits of a fitted copy with the names of X."""
    categories, names = fitted._categories, getattr(fitted, "feature_names_in_", None)
    columns = None if categories is None else categories.columns
    signs = monotone_signs(fitted.monotonic_cst, fitted.n_features_in_, names, columns)
    return SplitConstraints(signs, None if categories is None else categories.names(X))


# ------------------------------------------------------------------------------ files


def describe(
    model: Any, statistics: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return metadata and arrays of a fitted model; see `ModelSpec`.

    ``statistics`` are the names of the statistics in the log.
    """
    state, categories = model._state, model._categories
    return {
        "settings": state.settings,
        "categories": None if categories is None else categories.facts(),
        "validation": [*state.validation],
        "best_iteration": getattr(model, "best_iteration_", None),
    }, {
        **state.model.to_arrays(),
        "log": log_array(state.log, statistics),
        **validation_arrays(state.validation),
    }


def restore(
    model: Any,
    spec: ModelSpec,
    statistics: tuple[str, ...],
    restored_model: Callable[[ModelSpec, int, bool], Any],
) -> None:
    """Restore a fitted model from the metadata and arrays of `describe`.

    ``restored_model`` restores the sum of weak learners from a spec, the number of features and
    whether 0 is missing; it raises ValueError unless other settings are possible.
    """
    settings, best = spec.facts["settings"], spec.facts["best_iteration"]
    n_features, zero_missing = check_n_features(spec.n_features), settings.get("zero_missing")
    if not isinstance(zero_missing, bool):
        raise wrong_settings(model, settings)
    weak = restored_model(spec, n_features, zero_missing)
    log = restored_log(spec, statistics)
    if not (best is None or 0 <= int(best) <= len(log)):
        raise ValueError(f"best_iteration must be one of {len(log)} rounds; got {best!r}")
    categories = None
    if spec.facts["categories"] is not None:
        categories = Categories.restored(spec.facts["categories"], n_features)
    validation = restored_validation(spec, len(log))
    model._state = ModelState(weak, settings=settings, log=log, validation=validation)
    model.n_features_in_, model._categories = n_features, categories
    if best is not None:
        model.best_iteration_ = int(best)


def wrong_settings(model: Any, settings: Any) -> ValueError:
    """Return the error for settings of another learner."""
    return ValueError(f"the settings {settings} are not those of {type(model).__name__}")


# ------------------------------------------------------------------------------ fitted models


def staged_scores(model: Any, X: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number of rounds and the scores after each, which the next round overwrites."""
    check_is_fitted(model)
    rows, weak = model._more_rows(X), model._state.model
    scores = weak.zeros(rows.n_rows)
    for i in range(len(weak)):
        weak.add_member(i, rows, scores)
        yield i + 1, scores


def encoded_rows(model: Any, X: Any) -> Rows:
    """Return rows to predict, with codes of categories."""
    return as_rows(X if model._categories is None else model._categories.encode(X), nan=True)


def categorical_mask(model: Any) -> NDArray[np.bool_] | None:
    """Return the mask of categorical features, shape (n_features,); None if there are none."""
    model._fitted_state()
    return None if model._categories is None else model._categories.columns


def category_labels(model: Any) -> dict[int, list[Any]]:
    """Return the categories of each column of a frame, in the order of their codes."""
    model._fitted_state()
    own_labels = {} if model._categories is None else model._categories.labels
    return {column: list(labels) for column, labels in own_labels.items()}
