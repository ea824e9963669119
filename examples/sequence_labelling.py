"""Tag the words of sentences: a structured perceptron with a Viterbi search, on made-up English.

    python sequence_labelling.py

Half of the words have several tags ("fish", "light", "round"): the words beside them tell which is
meant. A tagger that looks at one word at a time cannot know; one that scores whole sentences can.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from rankcore.structured import StructuredPerceptron, Task


@dataclass(frozen=True)
class Tagging(Task):
    """Sentences (sequences of words) and their tags (as many), scored by neighbours.

    A parameter scores a word with its tag, or a tag with the next tag. The parameters are a table
    with one column per tag. It has a row for each word, a row for all words that are not listed, a
    row for each tag, and a row for the start of a sentence.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def n_parameters(self, X):
        return (len(self.words) + 1 + len(self.tags) + 1) * len(self.tags)

    def candidates(self, x):
        return product(self.tags, repeat=len(x))

    def features(self, x, y):
        tags = self.tag_columns(y)
        before = np.append(len(self.tags), tags)[:-1]
        rows = np.append(self.word_rows(x), len(self.words) + 1 + before)
        return rows * len(self.tags) + np.append(tags, tags), np.ones(rows.size)

    def argmax(self, weights, x, y=None, margin=0.0):
        if len(x) == 0:
            return ()
        table = weights.reshape(-1, len(self.tags))
        local = table[self.word_rows(x)]  # word by tag
        moves, start = table[len(self.words) + 1 : -1], table[-1]  # tag by next tag
        if margin > 0:  # the loss is a sum over words, too: a wrong tag earns the margin
            local = local + margin * (np.array(self.tags) != np.array(y)[:, np.newaxis])
        best = start + local[0]  # for each tag of a word: the score of the best way to it
        origins = []
        for scores in local[1:]:
            ways = best[:, np.newaxis] + moves
            origins.append(ways.argmax(axis=0))
            best = ways.max(axis=0) + scores
        if margin > 0:  # the true tags win ties, which are exact: the same sums in the same order
            path = self.tag_columns(y)
            truth = start[path[0]] + local[0, path[0]]
            for i in range(1, len(x)):
                truth = truth + moves[path[i - 1], path[i]] + local[i, path[i]]
            if truth == best.max():
                return tuple(y)
        path = [best.argmax()]
        for origin in reversed(origins):
            path.append(origin[path[-1]])
        return tuple(self.tags[tag] for tag in reversed(path))

    def loss(self, y, z):
        return sum(a != b for a, b in zip(y, z, strict=True))

    @cached_property
    def row_of(self):
        return {word: row for row, word in enumerate(self.words)}

    def word_rows(self, x):
        return np.array([self.row_of.get(word, len(self.words)) for word in x], dtype=np.intp)

    def tag_columns(self, y):
        return np.array([self.tags.index(tag) for tag in y], dtype=np.intp)


# How often a tag follows another, in tenths, and the words of each.
NEXT = {
    "start": "DET DET DET DET DET NOUN NOUN ADJ ADJ VERB",
    "DET": "ADJ ADJ ADJ NOUN NOUN NOUN NOUN NOUN NOUN NOUN",
    "ADJ": "ADJ NOUN NOUN NOUN NOUN NOUN NOUN NOUN NOUN NOUN",
    "NOUN": "VERB VERB VERB VERB VERB VERB PREP PREP PREP NOUN",
    "VERB": "DET DET DET DET PREP PREP PREP ADJ ADJ NOUN",
    "PREP": "DET DET DET DET DET DET ADJ ADJ NOUN NOUN",
}
WORDS = {
    "DET": "the a this that every",
    "ADJ": "light round cold plain clear past old green kind quiet",
    "NOUN": "light round cold plain fish run watch saw play kind past ship water dog tree",
    "VERB": "light round clear fish run watch saw play ship water like is",
    "PREP": "round past like with under",
}
TAGS = tuple(WORDS)


def make_sentences(n, seed):
    """Sentences of 3 to 12 words, and their tags."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        tags = ["start"]
        for _ in range(rng.integers(3, 13)):
            tags.append(str(rng.choice(NEXT[tags[-1]].split())))
        X.append(tuple(str(rng.choice(WORDS[tag].split())) for tag in tags[1:]))
        Y.append(tuple(tags[1:]))
    return X, Y


def majority(X, Y):
    """Return the most frequent tag of each word, by itself."""
    counts = {}
    for x, y in zip(X, Y, strict=True):
        for word, tag in zip(x, y, strict=True):
            counts.setdefault(word, Counter())[tag] += 1
    return {word: max(tags, key=tags.get) for word, tags in counts.items()}


def accuracy(Y, predictions):
    """Share of the words that are tagged rightly."""
    pairs = [pair for y, z in zip(Y, predictions, strict=True) for pair in zip(y, z, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def main():
    X, Y = make_sentences(400, seed=1)
    X_test, Y_test = make_sentences(200, seed=2)
    task = Tagging(tuple(sorted({word for x in X for word in x})), TAGS)
    model = StructuredPerceptron(
        task, average=True, margin=0.5, max_iter=5, shuffle=True, random_state=0
    ).fit(X, Y)

    untrained = np.zeros(task.n_parameters(X))
    alone = majority(X, Y)
    for name, predictions in [
        ("before training", [task.argmax(untrained, x) for x in X_test]),
        ("majority tag of each word", [[alone.get(word, "NOUN") for word in x] for x in X_test]),
        ("structured perceptron", model.predict(X_test)),
    ]:
        print(f"{name:26} {100 * accuracy(Y_test, predictions):5.1f} % of words right")
    sentence = ("the", "old", "fish", "like", "the", "light", "round", "the", "ship")
    (tags,) = model.predict([sentence])
    print(" ".join(f"{word}/{tag}" for word, tag in zip(sentence, tags, strict=True)))


if __name__ == "__main__":
    main()
