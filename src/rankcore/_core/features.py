"""Features of a model in the columns of its input: names, groups of columns, and categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankcore._core.ids import as_names
from rankcore._core.numbers import Floats
from rankcore._core.preprocessing import (
    flat_steps,
    is_scaler,
    names_after,
    numbered,
    width_of,
)


@dataclass(frozen=True, eq=False)
class Feature:
    """A feature that is explained: one column of the learner, or all columns of a category.

    A categorical feature has ``labels``, and ``codes``, shape (n_labels, n_columns), their values
    in the columns before scaling. Without ``codes`` the values are labels themselves.
    """

    name: str
    columns: list[int]
    labels: list[Any] | None = None
    codes: Floats | None = None

    @property
    def is_categorical(self) -> bool:
        """Whether values are categories, which have no distance."""
        return self.labels is not None

    def shown(self, block: Floats) -> list[Any]:
        """Return values for display from columns before scaling, shape (n, n_columns)."""
        if self.labels is None:
            return block[:, 0].tolist()
        if len(self.columns) == 1:
            known = (
                {}
                if self.codes is None
                else dict(zip(self.codes[:, 0].tolist(), self.labels, strict=True))
            )
            return [known.get(value, _code(value)) for value in block[:, 0].tolist()]
        assert self.codes is not None
        place = (block @ self.codes.T).argmax(axis=1)
        zero = np.flatnonzero(~self.codes.any(axis=1))
        if zero.size:
            place[~block.any(axis=1)] = zero[0]
        whole = (self.codes[place] == block).all(axis=1).tolist()
        return [self.labels[i] if known else "other" for i, known in zip(place, whole, strict=True)]


def _code(value: float) -> Any:
    """Convert a code without a label; negative or NaN codes are missing."""
    return int(value) if value >= 0 else float("nan")


def features_of(front: Sequence[Any], learner: Any, given: Sequence[str] | None) -> list[Feature]:
    """Return the features of a learner behind preprocessing steps.

    Steps that keep columns apart lead to the columns of the input: scaling, selection, imputation,
    and encoders of categories, whose columns are one feature. Behind other steps, such as those of
    texts, each column of the learner is a feature.
    """
    d = learner.n_features_in_
    names = names_after(front, learner, None)
    found = _traced(front, _names_in(front, learner))
    if found is None or sum(len(one.columns) for one in found) != d:
        found = [Feature("", [j]) for j in range(d)]
    found = [replace(one, name=one.name or names[one.columns[0]]) for one in found]
    called = [one.name for one in found]
    if len(set(called)) < len(called):  # two features of one column of the input
        found = [
            replace(one, name=names[one.columns[0]]) if called.count(one.name) > 1 else one
            for one in found
        ]
    mask = getattr(learner, "is_categorical_", None)
    if mask is not None:
        labels = learner.categories_
        found = [
            _coded(one, labels.get(one.columns[0]))
            if one.labels is None and mask[one.columns[0]]
            else one
            for one in found
        ]
    if given is None:
        return found
    names = as_names(given, "feature_names")
    if len(names) != len(found):
        raise ValueError(
            f"feature_names must have one name for each of {len(found)} features; "
            f"found {len(names)}"
        )
    return [replace(one, name=str(name)) for one, name in zip(found, names, strict=True)]


def _coded(feature: Feature, labels: list[Any] | None) -> Feature:
    """Return a feature of one column, whose values are the numbers of labels."""
    if labels is None:
        return replace(feature, labels=[])
    return replace(feature, labels=labels, codes=np.arange(len(labels), dtype=np.float64)[:, None])


def _names_in(front: Sequence[Any], learner: Any) -> list[str]:
    """Return the names of the columns of the input; empty for texts."""
    first = front[0] if front else learner
    if hasattr(first, "feature_names_in_"):
        return [*map(str, first.feature_names_in_)]
    return numbered(getattr(first, "n_features_in_", 0))


def _traced(steps: Sequence[Any], names: list[str]) -> list[Feature] | None:
    """Follow features through steps; None if a step mixes columns."""
    found: list[Feature] | None = [Feature(name, [j]) for j, name in enumerate(names)]
    for step in steps:
        if found is None:
            return None
        kind = type(step).__name__
        plain = all(one.labels is None for one in found)
        called = [one.name for one in found]
        if is_scaler(step) or _imputes(step):
            continue
        if hasattr(step, "get_support"):
            found = _selected(found, step.get_support())
        elif kind == "ColumnTransformer" and plain:
            found = _of_parts(step, called)
        elif kind == "OneHotEncoder" and plain:
            found = _one_hot(step, called)
        elif kind == "OrdinalEncoder" and plain:
            parts = zip(found, step.categories_, strict=True)
            found = [_coded(one, categories.tolist()) for one, categories in parts]
        else:
            return None
    return found


def _imputes(step: Any) -> bool:
    """Return whether a step keeps all columns and only fills missing values."""
    if type(step).__name__ != "SimpleImputer" or step.add_indicator:
        return False
    return bool(step.get_feature_names_out().size == step.n_features_in_)


def _selected(found: list[Feature], support: Any) -> list[Feature]:
    """Keep the selected columns of features."""
    place = np.cumsum(support) - 1
    kept = []
    for one in found:
        which = [i for i, j in enumerate(one.columns) if support[j]]
        if not which:
            continue
        labels, codes = one.labels, one.codes
        if codes is not None and labels is not None:
            codes = codes[:, which]
            # Categories that the selected columns do not tell apart have no name.
            counts = Counter(map(tuple, codes.tolist()))
            alone = [i for i, code in enumerate(codes.tolist()) if counts[tuple(code)] == 1]
            labels, codes = [labels[i] for i in alone], codes[alone]
        kept.append(Feature(one.name, [int(place[one.columns[i]]) for i in which], labels, codes))
    return kept


def _of_parts(step: Any, names: list[str]) -> list[Feature] | None:
    """Return the features after a ColumnTransformer; unnamed where a part mixes columns."""
    found = []
    for name, part, columns in step.transformers_:
        where = step.output_indices_[name]
        if not width_of(where) or part == "drop":
            continue
        steps = [] if isinstance(part, str) else flat_steps([("", part)])
        inside = _traced(steps, _chosen(step, columns, names))
        if inside is None or sum(len(one.columns) for one in inside) != width_of(where):
            inside = [Feature("", [j]) for j in range(width_of(where))]
        for one in inside:
            found.append(replace(one, columns=[where.start + j for j in one.columns]))
    return sorted(found, key=lambda one: one.columns[0])


def _chosen(step: Any, columns: Any, names: list[str]) -> list[str]:
    """Return the names of the columns of a part; empty for a column of texts."""
    if isinstance(columns, str | int | np.integer):
        return []
    if isinstance(columns, slice) and isinstance(columns.start or columns.stop, str):
        first = 0 if columns.start is None else names.index(columns.start)
        last = len(names) if columns.stop is None else names.index(columns.stop) + 1
        return names[first:last]
    if not isinstance(columns, slice) and all(isinstance(one, str) for one in columns):
        return [*map(str, columns)]
    return np.array(names, dtype=object)[columns].tolist()


def _one_hot(step: Any, names: list[str]) -> list[Feature]:
    """Return the categories of a OneHotEncoder, without infrequent and dropped ones."""
    found, start = [], 0
    rare = getattr(step, "infrequent_categories_", None) or [None] * len(names)
    for i, (name, categories) in enumerate(zip(names, step.categories_, strict=True)):
        together = [] if rare[i] is None else list(rare[i])
        labels = [one for one in categories.tolist() if one not in together]
        labels += ["infrequent"] if together else []
        drop = None if step.drop_idx_ is None else step.drop_idx_[i]
        codes = np.eye(len(labels))
        if drop is not None:
            left = categories.tolist()[drop]
            codes = np.delete(codes, labels.index("infrequent" if left in together else left), 1)
        width = codes.shape[1]
        if width:
            found.append(Feature(name, [*range(start, start + width)], labels, codes))
        start += width
    return found
