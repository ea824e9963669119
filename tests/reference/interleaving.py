"""Interleaving, plainly: lists of Python objects, whole numbers, fractions and enumeration."""

from fractions import Fraction
from itertools import product

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WORD
    return z ^ (z >> 31)


class SplitMix64:
    """The stream of a seed."""

    def __init__(self, seed):
        self.state = mix((seed + GOLDEN) & WORD)

    def draw(self):
        self.state = (self.state + GOLDEN) & WORD
        return mix(self.state)

    def below(self, n):
        while True:
            high, low = divmod((self.draw() >> 32) * n, 2**32)
            if low >= (2**32 - n) % n:
                return high

    def one_of(self, choices):
        return choices[self.below(len(choices))] if len(choices) > 1 else choices[0]

    def unit(self):
        return (self.draw() >> 11) / 2**53


def team_draft(rankings, length, seed):
    rng, shown, owners = SplitMix64(seed), [], []
    sizes = {r: 0 for r in range(len(rankings))}  # of the teams that are not out of documents
    while len(shown) < length and sizes:
        team = rng.one_of([r for r in sizes if sizes[r] == min(sizes.values())])
        left = [d for d in rankings[team] if d not in shown]
        if left:
            shown.append(left[0])
            owners.append(team)
            sizes[team] += 1
        else:
            del sizes[team]
    return shown, owners


def balanced(rankings, length, seed):
    first = SplitMix64(seed).below(2)
    shown, owners, at = [], [], [0, 0]
    while len(shown) < length and at[0] < len(rankings[0]) and at[1] < len(rankings[1]):
        r = first if at[0] == at[1] else at.index(min(at))
        document = rankings[r][at[r]]
        at[r] += 1
        if document not in shown:
            shown.append(document)
            owners.append(r)
    return shown, owners


def probabilistic(rankings, length, seed, tau):
    rng, shown, owners = SplitMix64(seed), [], []
    alive = list(range(len(rankings)))
    while len(shown) < length and alive:
        r = rng.one_of(alive)
        left = [(d, 1 / (i + 1) ** tau) for i, d in enumerate(rankings[r]) if d not in shown]
        if not left:
            alive.remove(r)
            continue
        rest = rng.unit() * sum(w for _, w in left)
        at = 0
        while at < len(left) - 1 and rest >= left[at][1]:
            rest -= left[at][1]
            at += 1
        shown.append(left[at][0])
        owners.append(r)
    return shown, owners


def draw_probability(ranking, gone, document, tau):
    """Return the probability, a fraction, of the next document; ``tau`` is whole."""
    weights = {d: Fraction(1, (i + 1) ** tau) for i, d in enumerate(ranking) if d not in gone}
    return weights[document] / sum(weights.values()) if document in weights else Fraction(0)


def assignments(rankings, shown, tau):
    """Rankers of all documents of a list, with what is proportional to their probability."""
    found = {}
    for owners in product(range(len(rankings)), repeat=len(shown)):
        p = Fraction(1)
        for i, (r, document) in enumerate(zip(owners, shown, strict=True)):
            p *= draw_probability(rankings[r], shown[:i], document, tau)
        found[owners] = p
    return found


def probabilistic_credit(rankings, shown, clicks, tau):
    """Compute the expectation over all assignments, one by one."""
    found = assignments(rankings, shown, tau)
    total = sum(found.values())
    credit = [Fraction(0)] * len(rankings)
    for owners, p in found.items():
        for r, click in zip(owners, clicks, strict=True):
            credit[r] += p / total * click
    return credit


def balanced_credit(rankings, shown, clicks):
    clicked = [d for d, click in zip(shown, clicks, strict=True) if click]
    if not clicked:
        return [0, 0]
    depth = min(r.index(clicked[-1]) + 1 for r in rankings if clicked[-1] in r)
    return [
        sum(click for d, click in zip(shown, clicks, strict=True) if d in ranking[:depth])
        for ranking in rankings
    ]


def prefix_lists(rankings, length):
    """All lists whose every document is the best remaining one of a ranking."""
    if length == 0:
        return {()}
    found = set()
    for shorter in prefix_lists(rankings, length - 1):
        for ranking in rankings:
            left = [d for d in ranking if d not in shorter]
            if left:
                found.add((*shorter, left[0]))
    return found


def place_credit(ranking, document, kind):
    place = ranking.index(document) + 1 if document in ranking else len(ranking) + 1
    return Fraction(1, place) if kind == "inverse" else Fraction(-place)
