"""Reviews of made-up words in several scripts, with ranks that follow from them."""

import numpy as np

WORDS = [
    "good",
    "bad",
    "plot",
    "actor",
    "boring",
    "fine",
    "superb",
    "café",
    "naïve",
    "Straße",
    "映画",
    "кино",
    "slow",
    "music",
    "end",
    "film",
    "don't",
    "3d",
    "well-made",
    "ÉCRAN",
    "finale",
    "ﬁn",
    "the",
    "and",
    "of",
    "a",
]


def reviews(n=120, seed=0):
    """Texts and ranks from 0 to 3."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(size=len(WORDS))
    texts, scores = [], []
    for _ in range(n):
        chosen = rng.integers(0, len(WORDS), size=rng.integers(3, 25))
        marks = rng.choice([" ", " ", ", ", "! ", "\n", " — "], size=chosen.size)
        texts.append("".join(WORDS[i] + mark for i, mark in zip(chosen, marks, strict=True)))
        scores.append(worth[chosen].mean())
    edges = np.quantile(scores, [0.25, 0.5, 0.75])
    return texts, np.digitize(scores, edges)


TEXTS, Y = reviews()


def table():
    """Return a frame of texts, numbers and categories."""
    import pytest

    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "text": TEXTS,
            "age": 40 + 10 * rng.normal(size=len(TEXTS)) + 5 * Y,
            "length": [len(one) for one in TEXTS],
            "kind": rng.choice(["drama", "comedy", "doc"], len(TEXTS)),
        }
    )
