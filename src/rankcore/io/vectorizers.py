"""Text steps in model files: words in the order of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
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
            f"a vocabulary= of type {kind} cannot be written to a model file: give a list, a set "
            "or a dict of words"
        )
    return kind, [str(one) for one in vocabulary]


def as_given(kind: Any, terms: list[str]) -> Any:
    """The parameter ``vocabulary`` from the result of `given_terms`."""
    if not all(isinstance(one, str) for one in terms):
        raise ValueError("its vocabulary has what is no word")
    make: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
    make["dict"] = lambda words: {word: i for i, word in enumerate(words)}
    make["array"] = lambda words: np.array(words, dtype=object)
    return make[kind](terms)


def describe_vectorizer(step: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of a CountVectorizer or TfidfVectorizer."""
    name, vocabulary = type(step).__name__, step.vocabulary_
    terms = sorted(vocabulary, key=vocabulary.__getitem__)
    if [vocabulary[one] for one in terms] != [*range(len(terms))]:
        raise TypeError(f"the vocabulary_ of this {name} was edited: its columns are not 0, 1, ...")
    for one in terms:
        if not isinstance(one, str):
            raise TypeError(f"the vocabulary of this {name} has {one!r}, which is no word")
        if any("\ud800" <= character <= "\udfff" for character in one):
            raise TypeError(
                f"the vocabulary of this {name} has {one!r}, half of a character: decode texts "
                "without surrogates"
            )
    arrays = {prefix + TERMS: np.array(terms, dtype=object)}
    if name == "TfidfVectorizer":
        changed = [one for one in _SHARED if getattr(step, one) != getattr(step._tfidf, one)]
        if changed:
            raise TypeError(
                f"{name}({changed[0]}=) was changed after fit, which has no effect: fit again"
            )
        arrays |= _idf(step._tfidf, prefix)
    return {"fixed_vocabulary": bool(step.fixed_vocabulary_)}, arrays


def restore_vectorizer(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    """Restore the state from the result of `describe_vectorizer`; return the number of columns."""
    name = type(step).__name__
    terms = arrays[prefix + TERMS]
    if terms.ndim != 1 or terms.dtype != object:
        raise ValueError(f"the vocabulary of its {name} is no list of words")
    words = {word: i for i, word in enumerate(terms.tolist())}
    if len(words) != terms.size or not terms.size:
        raise ValueError(f"the vocabulary of its {name} has a word twice, or none")
    step.vocabulary_, step.fixed_vocabulary_ = words, facts["fixed_vocabulary"] is True
    if "vocabulary" in facts:
        step.vocabulary = as_given(facts["vocabulary"], terms.tolist())
    if name == "TfidfVectorizer":
        from sklearn.feature_extraction.text import TfidfTransformer

        step._tfidf = TfidfTransformer(**{one: getattr(step, one) for one in _SHARED})
        step._tfidf.n_features_in_ = len(words)
        _restore_idf(step._tfidf, arrays, prefix)
    return len(words)


def describe_tfidf(step: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of a TfidfTransformer."""
    return {}, _idf(step, prefix)


def restore_tfidf(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    """Restore the state from the result of `describe_tfidf`; return the number of columns."""
    _restore_idf(step, arrays, prefix)
    return int(step.n_features_in_)


def _idf(step: Any, prefix: str) -> dict[str, Any]:
    return {prefix + IDF: step.idf_} if hasattr(step, "idf_") else {}


def _restore_idf(step: Any, arrays: Arrays, prefix: str) -> None:
    if prefix + IDF not in arrays:
        return
    weights = arrays[prefix + IDF]
    if weights.shape != (step.n_features_in_,) or weights.dtype.kind != "f":
        raise ValueError(f"its array {prefix + IDF} is not one weight for each word")
    if np.isnan(weights).any():
        raise ValueError(f"its array {prefix + IDF} holds NaN")
    step.idf_ = weights
