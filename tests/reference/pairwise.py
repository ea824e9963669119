"""Pairwise perceptrons as the papers state them: every pair visited, every hypothesis kept."""

from math import gcd

import numpy as np

MASK = 2**64 - 1


def pairs_of(labels):
    """All (winner, loser) of one query by label, the winner ascending, then the loser."""
    n = len(labels)
    return [(i, j) for i in range(n) for j in range(n) if labels[i] > labels[j]]


def learn(X, visits, *, margin=0.0):
    """Every hypothesis of a run.

    ``visits`` lists (pairs, steps, unit): what one visit of a query sees in order, the length of
    the step that a mistake on each pair makes, and what a pair ranked right counts.
    """
    w = np.zeros(X.shape[1])
    hypotheses, counts, mistakes = [w], [0.0], []
    for pairs, steps, unit in visits:
        wrong = 0
        for (i, j), step in zip(pairs, steps, strict=True):
            if X[i] @ w - X[j] @ w <= margin:
                w = w + step * (X[i] - X[j])
                hypotheses.append(w)
                counts.append(0.0)
                wrong += 1
            else:
                counts[-1] += unit
        mistakes.append(wrong)
    return {"hypotheses": np.array(hypotheses), "counts": np.array(counts), "mistakes": mistakes}


def last(run):
    return run["hypotheses"][-1]


def averaged(run):
    return np.average(run["hypotheses"], axis=0, weights=run["counts"])


def best(run, k):
    """Return the k hypotheses of most successes; of equal ones the earlier."""
    counts = run["counts"]
    return sorted(range(len(counts)), key=lambda born: (-counts[born], born))[:k]


def pocket(run):
    return run["hypotheses"][best(run, 1)[0]]


def committee(run, k):
    members = best(run, k)
    counts = run["counts"][members]
    weights = counts if counts.sum() else np.ones(len(members))
    return np.average(run["hypotheses"][members], axis=0, weights=weights)


def ranks(scores):
    """1 for the best; documents of equal score share the mean of their places."""
    return np.array([1 + (scores > s).sum() + ((scores == s).sum() - 1) / 2 for s in scores])


def borda(X, run, k):
    """Minus the mean rank of each document of one query, by votes of the k best."""
    members = best(run, k)
    counts = run["counts"][members]
    weights = counts if counts.sum() else np.ones(len(members))
    places = np.array([ranks(X @ run["hypotheses"][m]) for m in members])
    return -np.average(places, axis=0, weights=weights)


# ---------------------------------------------------------------------------- shuffled order


def draws(seed, visit):
    """SplitMix64, one stream for each visit of a query."""

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    state = mix((seed + 0x9E3779B97F4A7C15 * (visit + 1)) & MASK)
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        yield mix(state)


def below(stream, n):
    """Return a uniform integer 0 .. n - 1 for n < 2^32: Lemire's multiplication, with rejection."""
    while True:
        product = (next(stream) >> 32) * n
        if product % 2**32 >= (2**32 - n) % n:
            return product >> 32


def walk(stream, n):
    """All of 0 .. n - 1 in steps of about n divided by the golden ratio."""
    a = int((0.6180339887498949 + (next(stream) >> 11) * 2.0**-53 / 16) * n) % n
    while gcd(a, n) != 1:
        a = (a + 1) % n
    k = int((next(stream) >> 11) * 2.0**-53 * n) % n
    for _ in range(n):
        yield k
        k = (k + a) % n


def shuffled_pairs(labels, seed, visit):
    """Return the pairs of a query in the order of visit number ``visit``, counted over the run.

    The documents of each label are renumbered at random, then all pairs are numbered: winners of
    the highest label first, each with all documents of lower labels. The walk goes over these
    numbers.
    """
    labels = np.asarray(labels)
    order = np.argsort(-labels, kind="stable")
    levels = [order[labels[order] == label].tolist() for label in sorted(set(labels))[::-1]]
    stream = draws(seed, visit)
    for level in levels:
        for i in range(len(level) - 1, 0, -1):
            j = below(stream, i + 1)
            level[i], level[j] = level[j], level[i]
    numbered = [
        (winner, loser)
        for at, level in enumerate(levels)
        for winner in level
        for lower in levels[at + 1 :]
        for loser in lower
    ]
    return [numbered[k] for k in walk(stream, len(numbered))]


def shuffled_list(pairs, seed, visit):
    """Return the same for a query whose pairs are given."""
    return [pairs[k] for k in walk(draws(seed, visit), len(pairs))]
