"""Edits of texts, by one word."""

from __future__ import annotations

from typing import Any


def separated_words(vectorizer: Any, text: Any) -> str | None:
    """Separate the words of a text by single spaces; None if the vectorizer reads it otherwise.

    So do vectorizers of characters, and some functions that split texts.
    """
    if vectorizer.analyzer != "word":
        return None
    prepared = vectorizer.build_preprocessor()(vectorizer.decode(text))
    words = " ".join(vectorizer.build_tokenizer()(prepared))
    difference = vectorizer.transform([words]) - vectorizer.transform([text])
    return None if abs(difference).sum() > 0 else words


def without_word(words: str, word: str) -> str:
    """Return words without all occurrences of a word, or of several words in a row."""
    left, gone = f" {words} ", f" {word} "
    while gone in left:
        left = left.replace(gone, " ")
    return left.strip()
