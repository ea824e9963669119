"""Fitted encoders and text steps in model files: categories, and words in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
# Python's types of numbers in columns of objects, and how an array of each is written.
_NUMBERS: dict[str, type] = {"int64": int, "float64": float, "bool": bool}


def describe_encoder(step: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of a OneHotEncoder."""
    arrays, kinds = {}, []
    for j, categories in enumerate(step.categories_):
        kind, found = _as_array(categories, j)
        kinds.append(kind)
        arrays[f"{prefix}categories.{j}"] = found
    facts: dict[str, Any] = {"categories": kinds}
    if step._infrequent_enabled:
        rare = step._infrequent_indices
        facts["infrequent"] = [j for j, one in enumerate(rare) if one is not None]
        for j in facts["infrequent"]:
            arrays[f"{prefix}infrequent.{j}"] = np.asarray(rare[j], dtype=np.int64)
    return facts, arrays


def restore_encoder(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    """Restore the state from the result of `describe_encoder`; return the number of columns."""
    kinds, n = facts["categories"], step.n_features_in_
    if len(kinds) != n or not n:
        raise ValueError(f"its OneHotEncoder has categories of {len(kinds)} columns, not {n}")
    step.categories_ = [
        _as_categories(kind, arrays[f"{prefix}categories.{j}"]) for j, kind in enumerate(kinds)
    ]
    step._check_infrequent_enabled()
    if step._infrequent_enabled:
        step._infrequent_indices = [None] * n
        step._default_to_infrequent_mappings = [None] * n
        for j in facts["infrequent"]:
            rare, size = arrays[f"{prefix}infrequent.{j}"], step.categories_[j].size
            if (
                rare.ndim != 1
                or rare.dtype != np.int64
                or not rare.size
                or rare[0] < 0
                or rare[-1] >= size
                or (np.diff(rare) <= 0).any()
            ):
                raise ValueError(f"the rare categories of column {j} are not among its categories")
            step._infrequent_indices[j] = rare
            step._default_to_infrequent_mappings[j] = _grouped(rare, size)
    # The categories dropped from each column follow from the parameter `drop`.
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()
    return int(sum(step._n_features_outs))


def _grouped(rare: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Numbers of categories; rare categories are merged into the last one."""
    found = np.full(size, size - rare.size, dtype=np.int64)
    frequent = np.ones(size, dtype=bool)
    frequent[rare] = False
    found[frequent] = np.arange(size - rare.size)
    return found


def _as_array(categories: NDArray[Any], j: int) -> tuple[str, NDArray[Any]]:
    """Kind of the categories of a column, and an array that files hold.

    The kind is "" for an unchanged array, "int64", "float64" or "bool" for Python numbers, "str"
    for strings, with "+None" and "+nan" if these follow.
    """
    if categories.dtype != object:
        return "", categories
    values, after = categories.tolist(), ""
    if values and isinstance(values[-1], float) and values[-1] != values[-1]:
        values, after = values[:-1], "+nan"
    if values and values[-1] is None:
        values, after = values[:-1], "+None" + after
    types = {type(one) for one in values}
    if types <= {str}:
        return "str" + after, np.array(values, dtype=object)
    for kind, of in _NUMBERS.items():
        if types == {of}:
            try:
                return kind + after, np.array(values, dtype=kind)
            except OverflowError:
                break
    raise TypeError(
        f"the categories of column {j} of this OneHotEncoder are of "
        f"{' and '.join(sorted(one.__name__ for one in types))}: model files hold texts or numbers"
    )


def _as_categories(kind: Any, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1 or not (array.size or "+" in kind):
        raise ValueError("the categories of its OneHotEncoder are not a list")
    if kind == "":
        if array.dtype == object:
            raise ValueError("the categories of its OneHotEncoder have no kind")
        return array
    name, *after = kind.split("+")
    known = name in ("str", *_NUMBERS) and after in ([], ["nan"], ["None"], ["None", "nan"])
    if not known or array.dtype != (object if name == "str" else name):
        raise ValueError(f"its categories are not of the kind {kind!r}")
    missing = {"None": None, "nan": float("nan")}
    found = np.empty(array.size + len(after), dtype=object)
    found[: array.size] = array.tolist()
    found[array.size :] = [missing[one] for one in after]
    return found


TERMS, IDF = "vocabulary", "idf"
# Parameters that TfidfVectorizer shares with TfidfTransformer.
_SHARED = ("norm", "use_idf", "smooth_idf", "sublinear_tf")


def given_terms(vocabulary: Any) -> tuple[str, list[str]]:
    """Kind and words, in the order of their columns, of the parameter ``vocabulary``."""
    if isinstance(vocabulary, Mapping):
        return "dict", [str(one) for one in sorted(vocabulary, key=vocabulary.__getitem__)]
    if isinstance(vocabulary, set | frozenset):
        return type(vocabulary).__name__, sorted(map(str, vocabulary))
    kind = "array" if isinstance(vocabulary, np.ndarray) else type(vocabulary).__name__
    if kind not in ("list", "tuple", "array"):
        raise TypeError(
            f"a vocabulary= of type {kind} cannot be written to a model file: pass a list, a set "
            "or a dict of words"
        )
    return kind, [str(one) for one in vocabulary]


def as_given(kind: Any, terms: list[str]) -> Any:
    """The parameter ``vocabulary`` from the result of `given_terms`."""
    if not all(isinstance(one, str) for one in terms):
        raise ValueError("its vocabulary has entries that are not strings")
    if kind == "dict":
        return {word: i for i, word in enumerate(terms)}
    if kind == "array":
        return np.array(terms, dtype=object)
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](terms)


def describe_vectorizer(step: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of a CountVectorizer or TfidfVectorizer."""
    name, vocabulary = type(step).__name__, step.vocabulary_
    terms = sorted(vocabulary, key=vocabulary.__getitem__)
    if [vocabulary[one] for one in terms] != [*range(len(terms))]:
        raise TypeError(f"the vocabulary_ of this {name} was edited: its columns are not 0, 1, ...")
    for one in terms:
        if not isinstance(one, str):
            raise TypeError(f"the vocabulary of this {name} has {one!r}, which is not a string")
        if any("\ud800" <= character <= "\udfff" for character in one):
            raise TypeError(
                f"the vocabulary of this {name} has {one!r}, an unpaired surrogate: decode texts "
                "without surrogates"
            )
    arrays = {prefix + TERMS: np.array(terms, dtype=object)}
    if name == "TfidfVectorizer":
        changed = [one for one in _SHARED if getattr(step, one) != getattr(step._tfidf, one)]
        if changed:
            raise TypeError(
                f"{name}({changed[0]}=) was changed after fit, which has no effect: fit again"
            )
        arrays |= describe_tfidf(step._tfidf, prefix)[1]
    return {"fixed_vocabulary": bool(step.fixed_vocabulary_)}, arrays


def restore_vectorizer(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    """Restore the state from the result of `describe_vectorizer`; return the number of columns."""
    name = type(step).__name__
    terms = arrays[prefix + TERMS]
    if terms.ndim != 1 or terms.dtype != object:
        raise ValueError(f"the vocabulary of its {name} is not a list of words")
    words = {word: i for i, word in enumerate(terms.tolist())}
    if len(words) != terms.size or not terms.size:
        raise ValueError(f"the vocabulary of its {name} has a repeated word, or none")
    step.vocabulary_, step.fixed_vocabulary_ = words, facts["fixed_vocabulary"] is True
    if "vocabulary" in facts:
        step.vocabulary = as_given(facts["vocabulary"], terms.tolist())
    if name == "TfidfVectorizer":
        from sklearn.feature_extraction.text import TfidfTransformer

        step._tfidf = TfidfTransformer(**{one: getattr(step, one) for one in _SHARED})
        step._tfidf.n_features_in_ = len(words)
        restore_tfidf(step._tfidf, facts, arrays, prefix)
    return len(words)


def describe_tfidf(step: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of a TfidfTransformer."""
    return {}, {prefix + IDF: step.idf_} if hasattr(step, "idf_") else {}


def restore_tfidf(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    """Restore the state from the result of `describe_tfidf`; return the number of columns."""
    if prefix + IDF in arrays:
        weights = arrays[prefix + IDF]
        if weights.shape != (step.n_features_in_,) or weights.dtype.kind != "f":
            raise ValueError(f"its array {prefix + IDF} is not one weight for each word")
        if np.isnan(weights).any():
            raise ValueError(f"its array {prefix + IDF} holds NaN")
        step.idf_ = weights
    return int(step.n_features_in_)
