"""Texts with a word less or more."""

from __future__ import annotations

from typing import Any


def separated_words(vectorizer: Any, text: Any) -> str | None:
    """Return the words of a text between single spaces; None if the vectorizer reads it otherwise.

    So do vectorizers of characters, and some functions that split texts.
    """
    if vectorizer.analyzer != "word":
        return None
    prepared = vectorizer.build_preprocessor()(vectorizer.decode(text))
    words = " ".join(vectorizer.build_tokenizer()(prepared))
    difference = vectorizer.transform([words]) - vectorizer.transform([text])
    return None if abs(difference).sum() > 0 else words


def without_word(words: str, word: str) -> str:
    """Return words between spaces without all occurrences of one, or of several in a row."""
    left, gone = f" {words} ", f" {word} "
    while gone in left:
        left = left.replace(gone, " ")
    return left.strip()
