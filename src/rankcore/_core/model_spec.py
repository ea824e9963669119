"""Uniform description of fitted learners for files and exporters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import consistent_read, replace_state
from rankcore._core.contributions import Contributions, contributions_of
from rankcore._core.declaration import hide_private_bases
from rankcore._core.doc_links import guide_link
from rankcore._core.fitted import keep_names
from rankcore._core.frames import is_frame
from rankcore._core.inputs import as_rows, check_matrix
from rankcore._core.params import Constraints, check_params, unknown_parameter
from rankcore._core.scoring import Scoring
from rankcore._ext.rows import Rows


@dataclass(frozen=True)
class ModelSpec:
    """A fitted model as arrays and JSON values."""

    # JSON values, read by the learner's own `_restore`: parameters that are built into the arrays,
    # whether a stream continues, histories.
    facts: dict[str, Any]
    # Learned arrays and those required to continue learning, by name. Do not modify.
    arrays: Mapping[str, NDArray[Any]]
    n_features: int
    feature_names: list[str] | None
    scoring: Scoring | None = None  # scoring form; None in a spec for restoring
    # Fitted models of ``_PARTS``, each with its own spec; None in a spec for restoring.
    parts: Mapping[str, tuple[Any, ModelSpec | None]] = field(default_factory=dict)


class SerializableMixin:
    """A learner that can be converted to a `ModelSpec` and restored from one. Not public.

    A subclass provides `_describe`, `_scoring`, `_restore`, `_fit_summary` and `_summary`; code
    that saves, lists or exports models is independent of particular learners.
    """

    # Names of fitted models that models of this class contain.
    _PARTS: tuple[str, ...] = ()
    # Reason why model files cannot hold models of this class; empty if they can.
    _no_file: str = ""

    _constraints: ClassVar[Constraints] = {}
    _doc_link_module, _doc_link_template = "rankcore", guide_link

    n_features_in_: int
    _state: Any

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """Raise for unknown parameters, with a hint for names in other libraries."""
        unknown = unknown_parameter(cls, params)
        if unknown:
            raise TypeError(unknown)
        return super().__new__(cls)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hide_private_bases(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, or with ``name__parameter`` of one that it contains.

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        self
        """
        unknown = unknown_parameter(type(self), (name for name in params if "__" not in name))
        if unknown:
            raise ValueError(unknown)
        return super().set_params(**params)  # type: ignore[misc]

    @abstractmethod
    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the metadata and arrays of a fitted model; see `ModelSpec`."""

    @abstractmethod
    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        """Return the scoring form of this model, from the arrays of `_describe` if possible."""

    @abstractmethod
    def _restore(self, spec: ModelSpec) -> None:
        """Restore the model of a spec, after the parameters are set.

        Raises ValueError, KeyError or TypeError if an array or fact is missing, or of another form
        or range than a reader or a kernel relies on.
        """

    @abstractmethod
    def _fit_summary(self) -> dict[str, Any]:
        """Summarise a finished fit."""

    @abstractmethod
    def _summary(self) -> dict[str, Any]:
        """Summarise the model."""

    def _check_params(self) -> None:
        """Raise if a parameter is invalid, or parameters exclude each other."""
        check_params(self)

    def _as_rows(self, X: Any) -> Rows:
        """Check a feature matrix."""
        return as_rows(X)

    def _more_rows(self, X: Any) -> Rows:
        """Validate rows for a fitted model; raise ValueError if their features differ."""
        check_matrix(X)
        named = is_frame(X)
        if named:  # before categories are encoded by column
            validate_data(self, X, skip_check_array=True, reset=False)
        rows = self._as_rows(X)
        if not named and hasattr(self, "feature_names_in_"):
            validate_data(self, X, skip_check_array=True, reset=False)
        if rows.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return rows

    def _wider_rows(self, X: Any) -> Rows:
        """Validate rows that may have further features, after those of the model."""
        rows = self._as_rows(X)
        if rows.n_features <= self.n_features_in_:
            return self._more_rows(X)
        model_names = getattr(self, "feature_names_in_", None)
        if model_names is not None:
            named = BaseEstimator()
            keep_names(named, X)
            row_names = getattr(named, "feature_names_in_", None)
            if row_names is None or not np.array_equal(row_names[: model_names.size], model_names):
                first = "no names" if row_names is None else row_names[: model_names.size].tolist()
                raise ValueError(
                    f"{type(self).__name__}: with grow=True, X must have the columns of the model "
                    "first, in their order, and new ones after them; expected "
                    f"{model_names.tolist()}, "
                    f"got {first}"
                )
        return rows

    def _keep_wider(self, X: Any, n_features: int) -> None:
        """Keep the number of features of `_wider_rows`, and their names."""
        if hasattr(self, "feature_names_in_"):
            keep_names(self, X)
        self.n_features_in_ = n_features

    def _fitted_copy(self, X: Any, n_features: int, state: Any, **fitted: Any) -> Self:
        """Copy this estimator, fitted with a state and other attributes."""
        shadow = copy(self)
        for name in ("best_iteration_", "conformal_scores_", "feature_names_in_"):
            shadow.__dict__.pop(name, None)  # of an earlier fit
        # Names are determined on a plain estimator, so that no attribute of a user's class is set
        # alone.
        named = BaseEstimator()
        keep_names(named, X)
        fitted |= {"n_features_in_": n_features, "_state": state}
        shadow.__dict__ |= vars(named) | fitted
        return shadow

    def _replace_with(self, fitted: Any) -> None:
        """Replace the state by that of a fitted copy, at once even under Ctrl-C."""
        replace_state(self, dict(vars(fitted)))

    @consistent_read
    def contributions(
        self, X: RowsLike, background: RowsLike | None = None, *, output: Hashable | None = None
    ) -> Contributions:
        """Compute exact contributions of features to the score of each row.

        A feature's contribution is its Shapley value: the mean change of the score when the
        feature's value of a background row is replaced by that of the row, over all orders in which
        features are replaced and over the background. For linear scores this is ``w * (x - mean)``,
        for stumps the value of a step function minus its mean. Base and contributions add up to the
        score, up to rounding.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        background : array-like or scipy sparse, shape (n_background, n_features), optional
            Rows to compare with, such as other documents of the query, or a sample of the training
            data. None: a row of zeros, so that zeros contribute nothing.
        output : label, optional
            Rank to explain, for learners with a score for each rank. Required for
            `MulticlassPerceptron`. For `CuSumRank` the default is the score of ``project``. For
            `OrdinalBoost` with a score for each task, the score is the log-odds of this rank (by
            default the highest) against the lowest. None: the score of ``predict`` or ``project``.

        Returns
        -------
        Contributions
            ``values``, shape (n_samples, n_features), and ``base``, the mean score of the
            background. The values are sparse if X is and there is no background.

        Raises
        ------
        TypeError
            If the score is not a sum over features: for kernels that are not linear, votes and
            combined ranks.
        ValueError
            If input is invalid, or ``output`` is unknown, missing or not supported.

        Notes
        -----
        O(values) for weights, O(values * log thresholds) for stumps; for trees O(n_samples *
        n_background * nodes), O(depth) for a tree in which both rows take the same path.
        """
        check_is_fitted(self)
        rows = self._more_rows(X)
        behind = None if background is None else self._more_rows(background)
        values, base = self._contributed(rows, behind, output)
        return Contributions(values, base, self._feature_names())

    def _contributed(
        self,
        rows: Rows,
        background: Rows | None,
        output: Any,
        features: NDArray[np.int64] | None = None,
    ) -> tuple[Any, float]:
        """Return contributions and base of checked rows; see `contributions_of`."""
        rank = None if output is None else self._rank_of(output)
        scoring, name = self._spec().scoring, type(self).__name__
        if scoring is None:
            raise TypeError(f"{name} has no score of a row, which contributions require")
        return contributions_of(scoring.of_score, rows, background, rank, name, features)

    def _rank_of(self, label: Any) -> int:
        """Return the index of a label, from 0."""
        labels: list[Any] = self.ranks_.tolist() if hasattr(self, "ranks_") else []
        if not labels:
            raise ValueError(f"{type(self).__name__} has one score per row: output must be None")
        if label not in labels:
            raise ValueError(
                f"output must be one of the labels {', '.join(map(repr, labels))}; got {label!r}"
            )
        return labels.index(label)

    def _fitted_state(self) -> Any:
        # AttributeError, as for other attributes before a fit.
        if "_state" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._state

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def _spec(self) -> ModelSpec:
        """Describe this fitted model."""
        facts, arrays = self._describe()
        names, scoring = self._feature_names(), self._scoring(arrays)
        return ModelSpec(facts, arrays, self.n_features_in_, names, scoring)

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [*map(str, names)]


def has_description(kind: Any) -> bool:
    """Return whether models of a class describe themselves, so that files and exports have them."""
    return (
        isinstance(kind, type)
        and issubclass(kind, SerializableMixin)
        and kind._describe
        is not SerializableMixin._describe  # `RankSVMCV` has a `RankSVM` that has one
    )


def check_n_features(n_features: Any) -> int:
    """Validate the number of features of a spec."""
    if type(n_features) is not int or not 1 <= n_features < 2**31:  # as column indices
        raise ValueError(
            f"the number of features of a model must be an integer >= 1; got {n_features!r}"
        )
    return n_features


def outline(shape: int | tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Return a placeholder for an array of this shape, which takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


class Field(NamedTuple):
    """Form of an array: size or name of each axis, dtype, and whether it may hold infinity."""

    axes: tuple[int | str, ...]
    dtype: str = "float64"
    infinite: bool = False


def read_fields(
    arrays: Mapping[str, NDArray[Any]], fields: Mapping[str, Field], **sizes: int
) -> dict[str, NDArray[Any]]:
    """Read contiguous arrays of a spec; raise ValueError unless they have the declared forms.

    The size of an axis that is not in ``sizes`` is that of the first array with this axis.
    """
    checked = {}
    for name, (axes, dtype, infinite) in fields.items():
        for axis, size in zip(axes, arrays[name].shape, strict=False):
            sizes.setdefault(str(axis), size)
        shape = tuple(sizes.get(axis, 0) if isinstance(axis, str) else axis for axis in axes)
        checked[name] = array_like(arrays, name, outline(shape, dtype), infinite)
    return checked


def array_like(
    arrays: Mapping[str, NDArray[Any]], name: str, expected: NDArray[Any], infinite: bool = False
) -> NDArray[Any]:
    """Read an array of a spec; raise ValueError unless it has the shape and dtype of another."""
    array = arrays[name]
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise ValueError(
            f"the array {name} has shape {array.shape} and dtype {array.dtype}; expected "
            f"{expected.shape} and {expected.dtype}"
        )
    # A large file is mapped, and values are not read before they are needed.
    if array.dtype.kind == "f" and not getattr(arrays, "mapped", False):
        valid = ~np.isnan(array) if infinite else np.isfinite(array)
        if not valid.all():
            raise ValueError(f"the array {name} must be finite; got NaN or infinity")
    return np.ascontiguousarray(array)
