"""Features as users know them, columns of the input or words, and their encoded columns.

Every column of a learner behind preprocessing steps comes from one column of the model's input, its
`Origin`. All columns of one origin are one feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from rankcore._core.ids import as_names
from rankcore._core.numbers import Floats
from rankcore._core.preprocessing import flat_steps, is_scaler, names_after, numbered, width_of

# Labels of a word of a text.
PRESENCE = ["absent", "present"]


@dataclass(frozen=True, eq=False)
class Origin:
    """The column or word of the input that a preprocessed column is computed from.

    Attributes
    ----------
    source : int
        Column of the input; 0 if each row is a text.
    labels : list or None
        Categories, if an encoder has them; None for numbers.
    exact : bool
        Whether the column is the number itself, imputed or scaled: it can be scaled back.
    word : str or None
        The word that the column counts or weighs, of a text.
    vectorizer : estimator or None
        The step that splits texts into words.
    """

    source: int
    labels: list[Any] | None = None
    exact: bool = True
    word: str | None = None
    vectorizer: Any = None


@dataclass(frozen=True, eq=False)
class Feature(Origin):
    """A feature to explain: a column of the input, or a word of its texts.

    ``columns`` are those of the learner that come from it.
    """

    name: str = ""
    columns: list[int] = field(default_factory=list)

    @property
    def is_categorical(self) -> bool:
        """Whether values are categories, which have no distance."""
        return self.labels is not None


def features_of(
    front: Sequence[Any], learner: Any, feature_names: Sequence[str] | None
) -> list[Feature]:
    """Return the features of a learner behind preprocessing steps.

    Raises TypeError, with the name of the step, if a step mixes columns.
    """
    first = front[0] if front else learner
    n = getattr(first, "n_features_in_", None)
    origins: list[Origin] = [Origin(j) for j in range(1 if n is None else n)]
    for step in front:
        origins = _after(step, origins)
    if len(origins) != learner.n_features_in_:
        steps = " and ".join(type(step).__name__ for step in front)
        raise TypeError(
            f"{steps} must keep columns apart for an explanation; got {len(origins)} columns by "
            f"what they declare, and {learner.n_features_in_} in the learner"
        )
    mask, categories = (
        getattr(learner, "is_categorical_", None),
        getattr(learner, "categories_", None),
    )
    if mask is not None and categories is not None:
        for j in np.flatnonzero(mask).tolist():
            if origins[j].labels is None:
                origins[j] = replace(origins[j], labels=categories.get(j, []), exact=False)
    places: dict[Any, list[int]] = {}
    for j, origin in enumerate(origins):
        key = (
            origin.source
            if origin.word is None
            else (origin.source, origin.word, id(origin.vectorizer))
        )
        places.setdefault(key, []).append(j)
    groups = sorted(places.values(), key=lambda columns: (origins[columns[0]].source, columns))
    firsts = [origins[columns[0]] for columns in groups]
    if feature_names is None:
        names = _names(firsts, getattr(first, "feature_names_in_", None), n)
    else:
        names = [*map(str, as_names(feature_names, "feature_names"))]
        if len(names) != len(groups):
            raise ValueError(
                f"feature_names must have one name for each of {len(groups)} features; "
                f"got {len(names)}"
            )
    counts = Counter(names)
    if feature_names is None and len(counts) < len(names):  # one word of several vectorizers
        longer = names_after(front, learner, None)
        names = [
            longer[columns[0]] if counts[name] > 1 else name
            for name, columns in zip(names, groups, strict=True)
        ]
    return [
        _feature(name, [origins[j] for j in columns], columns)
        for name, columns in zip(names, groups, strict=True)
    ]


def _feature(name: str, origins: Sequence[Origin], columns: list[int]) -> Feature:
    """Make a feature of the encoded columns that have one origin."""
    first = origins[0]
    labels = next((origin.labels for origin in origins if origin.labels is not None), None)
    exact = len(columns) == 1 and first.exact
    return Feature(first.source, labels, exact, first.word, first.vectorizer, name, columns)


def _names(origins: Sequence[Origin], columns: Any, n: int | None) -> list[str]:
    """Return the names of features: words, or columns of the input."""
    if n is None:
        return [str(origin.word) for origin in origins]
    column_names = numbered(n) if columns is None else [*map(str, columns)]
    return [
        column_names[origin.source]
        if origin.word is None
        else f"{column_names[origin.source]}: {origin.word}"
        for origin in origins
    ]


# ------------------------------------------------------------------------ steps


def _after(step: Any, before: Sequence[Origin]) -> list[Origin]:
    """Return the origins of the columns after a step; raise TypeError if it mixes them."""
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.impute import MissingIndicator
    from sklearn.pipeline import FeatureUnion

    if is_scaler(step):
        return list(before)
    if isinstance(step, CountVectorizer):
        if not before[0].exact:
            raise TypeError(
                f"{type(step).__name__} must get a column of the input as it is, for its words to "
                "be explained; a step before it changes the texts"
            )
        text = replace(before[0], labels=PRESENCE, exact=False, vectorizer=step)
        return [replace(text, word=word) for word in step.get_feature_names_out().tolist()]
    if isinstance(step, ColumnTransformer):
        return _after_columns(step, before)
    if isinstance(step, FeatureUnion):
        parts = [part for _, part in step.transformer_list if part != "drop"]
        return [
            replace(origin, exact=False) for part in parts for origin in _after_all(part, before)
        ]
    if isinstance(step, MissingIndicator):
        return [replace(before[j], exact=False) for j in step.features_]
    if hasattr(step, "add_indicator"):
        return _after_imputer(step, before)
    if hasattr(step, "get_support"):
        return [before[j] for j in np.flatnonzero(step.get_support()).tolist()]
    if (widths := _widths(step, len(before))) is not None:
        categories = getattr(step, "categories_", None)
        exact = _has_inverse(step)
        origins = []
        for j, (one, width) in enumerate(zip(before, widths, strict=True)):
            labels = one.labels if categories is None else categories[j].tolist()
            origins += [replace(one, labels=labels, exact=one.exact and exact)] * width
        return origins
    raise TypeError(
        f"{type(step).__name__} makes columns that do not come from one column or word of the "
        "input each, which an explanation requires: explain the learner after it, as in "
        "rankcore.explain.rank(model[-1], model[:-1].transform(x)), or use "
        "sklearn.inspection.permutation_importance"
    )


def _after_all(part: Any, before: Sequence[Origin]) -> list[Origin]:
    """Return the origins of the columns after the steps of a part."""
    origins = list(before)
    for step in [] if isinstance(part, str) else flat_steps([("", part)]):
        origins = _after(step, origins)
    return origins


def _after_columns(step: Any, before: Sequence[Origin]) -> list[Origin]:
    """Return the origins of the columns after a ColumnTransformer."""
    by_start: dict[int, list[Origin]] = {}
    for name, part, columns in step.transformers_:
        where = step.output_indices_[name]
        if width_of(where):
            chosen = [before[j] for j in _chosen(step, columns)]
            by_start[where.start] = _after_all(part, chosen)
    return [origin for start in sorted(by_start) for origin in by_start[start]]


def _after_imputer(step: Any, before: Sequence[Origin]) -> list[Origin]:
    """Return the origins of the columns after an imputer, with those of its indicator."""
    one_by_one = hasattr(step, "statistics_")  # SimpleImputer: other columns do not matter
    kept = _imputed(step, len(before))
    origins = [replace(before[j], exact=before[j].exact and one_by_one) for j in kept]
    indicated = step.indicator_.features_ if step.add_indicator else []
    return origins + [replace(before[j], exact=False) for j in indicated]


def _imputed(step: Any, n: int) -> list[int]:
    """Return the columns that an imputer keeps: those that were not empty."""
    if step.keep_empty_features or getattr(step, "strategy", "") == "constant":
        return [*range(n)]
    if hasattr(step, "statistics_"):
        return [
            j for j, statistic in enumerate(step.statistics_.tolist()) if statistic == statistic
        ]
    indicated = len(step.indicator_.features_) if step.add_indicator else 0
    if len(step.get_feature_names_out()) != n + indicated:
        raise TypeError(
            f"{type(step).__name__} drops columns without values, and does not say which: set "
            "keep_empty_features=True"
        )
    return [*range(n)]


def _chosen(step: Any, columns: Any) -> list[int]:
    """Return the numbers of the columns that a part of a ColumnTransformer reads."""
    names = [*getattr(step, "feature_names_in_", [])]
    if isinstance(columns, str):
        return [names.index(columns)]
    if isinstance(columns, slice):
        if isinstance(columns.start or columns.stop, str):
            first = None if columns.start is None else names.index(columns.start)
            last = None if columns.stop is None else names.index(columns.stop) + 1
            columns = slice(first, last)
    elif not np.isscalar(columns) and all(isinstance(name, str) for name in columns):
        return [names.index(name) for name in columns]
    numbers: NDArray[np.int64] = np.arange(step.n_features_in_)[columns]
    return np.atleast_1d(numbers).tolist()


def _widths(step: Any, n: int) -> list[int] | None:
    """Return the number of columns that a step makes of each column; None if it mixes columns."""
    from sklearn.preprocessing import (
        FunctionTransformer,
        KBinsDiscretizer,
        OneHotEncoder,
        SplineTransformer,
        TargetEncoder,
    )

    if isinstance(step, OneHotEncoder):
        rare = getattr(step, "infrequent_categories_", None)
        sizes = [len(categories) for categories in step.categories_]
        if rare is not None:
            sizes = [
                size if one is None else size - len(one) + 1
                for size, one in zip(sizes, rare, strict=True)
            ]
        dropped = [None] * n if step.drop_idx_ is None else step.drop_idx_
        return [size - (drop is not None) for size, drop in zip(sizes, dropped, strict=True)]
    if isinstance(step, KBinsDiscretizer):
        return [1] * n if step.encode == "ordinal" else step.n_bins_.tolist()
    if isinstance(step, SplineTransformer):
        return [step.n_features_out_ // n] * n
    if isinstance(step, TargetEncoder):
        return [len(step.encodings_) // n] * n
    if isinstance(step, FunctionTransformer):
        elementwise = isinstance(step.func, np.ufunc) and step.func.nin == 1
        return [1] * n if elementwise or step.feature_names_out == "one-to-one" else None
    return [1] * n if isinstance(step, OneToOneFeatureMixin) else None


def _has_inverse(step: Any) -> bool:
    """Return whether a function of each column can be undone."""
    return getattr(step, "inverse_func", None) is not None


def unscaled(front: Sequence[Any], values: Floats, n: int) -> Floats:
    """Undo the steps: convert preprocessed columns to numbers of the input, shape (n_rows, n).

    NaN where an input has no exact column.
    """
    from sklearn.compose import ColumnTransformer

    for place, step in reversed([*enumerate(front)]):
        width = getattr(step, "n_features_in_", n if place == 0 else 1)
        raw = np.full((len(values), width), np.nan)
        if is_scaler(step) or _has_inverse(step):
            raw = np.asarray(step.inverse_transform(values))
        elif hasattr(step, "statistics_"):
            kept = _imputed(step, width)
            raw[:, kept] = values[:, : len(kept)]
        elif hasattr(step, "get_support"):
            # A scaler before it takes no NaN: unselected columns have no feature.
            raw[:] = 0.0
            raw[:, step.get_support()] = values
        elif isinstance(step, ColumnTransformer):
            for name, part, columns in step.transformers_:
                where, chosen = step.output_indices_[name], _chosen(step, columns)
                if width_of(where):
                    steps = [] if isinstance(part, str) else flat_steps([("", part)])
                    own = unscaled(steps, values[:, where], len(chosen))
                    present = ~np.isnan(own).all(axis=0)
                    raw[:, np.array(chosen)[present]] = own[:, present]
        values = raw
    return values
