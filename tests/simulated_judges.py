"""Simulated judges of items whose places, 0 for the best, are known."""

import numpy as np


class Judge:
    """A judge that prefers the item with the lower place, and errs."""

    def __init__(self, places, seed, *, noise=0.0, repeats=False, closeness=None, first=0.0):
        self.places, self.noise, self.first = np.asarray(places), noise, first
        self.rng, n = np.random.default_rng(seed), len(places)
        wrong = np.triu(self.rng.random((n, n)) < noise, 1)
        self.wrong = wrong | wrong.T if repeats else None
        self.closeness, self.calls = closeness, 0

    def __call__(self, u, v):
        """Return whether item u precedes item v; items are positions."""
        self.calls += 1
        if self.rng.random() < self.first:
            return True
        apart = float(self.places[v] - self.places[u])
        if self.closeness is not None:
            return bool(self.rng.random() < 1 / (1 + np.exp(-apart / self.closeness)))
        wrong = self.rng.random() < self.noise if self.wrong is None else self.wrong[u, v]
        return bool((apart > 0) ^ wrong)


def answer_all(sampler, judge, max_answers=None):
    """Answer the questions of a sampler by a judge, up to a number of answers."""
    while (max_answers is None or sampler.n_answers < max_answers) and (asked := sampler.ask()):
        for comparison in asked[: None if max_answers is None else max_answers - sampler.n_answers]:
            sampler.tell(comparison, judge(*comparison.places))
    return sampler
