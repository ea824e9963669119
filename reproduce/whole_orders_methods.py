"""Judges with errors, and methods that order items by them, for whole_orders.py."""

from time import process_time

import numpy as np
from scipy.stats import kendalltau

from rankcore.preference import Indexed, PreferenceRanker


class Judge:
    """Answers whether item i comes before item j, wrong with a probability."""

    def __init__(self, places, noise, fixed, rng):
        self.places, self.noise, self.rng = places, noise, rng
        wrong = np.triu(rng.random((places.size,) * 2) < noise, 1)
        self.wrong = wrong | wrong.T if fixed else None

    def __call__(self, i, j):
        right = self.places[i] < self.places[j]
        if self.wrong is not None:
            return right ^ self.wrong[i, j]
        return right ^ (self.rng.random(np.shape(i)) < self.noise)


def ours(method):
    def order(judge, n, calls, rng):
        ranker = PreferenceRanker(
            Indexed(judge), method=method, max_calls=calls, random_state=int(rng.integers(2**32))
        )
        ranker.rank(np.arange(n))
        return ranker.order_, ranker.n_calls_

    return order


def random_pairs(n, calls, rng):
    i = rng.integers(0, n, calls)
    return i, (i + rng.integers(1, n, calls)) % n


def choix_of(name, **params):
    def order(judge, n, calls, rng):
        import choix

        i, j = random_pairs(n, calls, rng)
        first = judge(i, j)
        data = np.column_stack([np.where(first, i, j), np.where(first, j, i)])
        strengths = getattr(choix, name)(n, data.tolist(), alpha=0.01, **params)
        return np.argsort(-strengths), calls

    return order


def elo(judge, n, calls, rng):
    ratings = np.zeros(n)
    for i, j in zip(*random_pairs(n, calls, rng), strict=True):
        expected = 1 / (1 + 10 ** ((ratings[j] - ratings[i]) / 400))
        change = 32 * (bool(judge(i, j)) - expected)
        ratings[i] += change
        ratings[j] -= change
    return np.argsort(-ratings), calls


def trueskill(judge, n, calls, rng):
    from trueskill import TrueSkill

    game = TrueSkill(draw_probability=0.0)
    ratings = [game.create_rating() for _ in range(n)]
    mu = np.full(n, game.mu)
    for _ in range(calls):
        i = int(rng.integers(n))
        others = rng.choice(n - 1, min(8, n - 1), replace=False)
        others += others >= i
        j = int(others[np.argmin(np.abs(mu[others] - mu[i]))])
        winner, loser = (i, j) if judge(i, j) else (j, i)
        ratings[winner], ratings[loser] = game.rate_1vs1(ratings[winner], ratings[loser])
        mu[[i, j]] = ratings[i].mu, ratings[j].mu
    return np.argsort(-mu), calls


def merge_sort(judge, n, calls, rng):
    asked = 0

    def sort(items):
        nonlocal asked
        if len(items) < 2:
            return items
        left, right = sort(items[: len(items) // 2]), sort(items[len(items) // 2 :])
        merged = []
        while left and right:
            asked += 1
            merged.append((left if judge(left[0], right[0]) else right).pop(0))
        return merged + left + right

    return np.array(sort(rng.permutation(n).tolist())), asked


METHODS = {
    "rating": ours("rating"),
    "degree": ours("degree"),
    "QuickSort": ours("quicksort"),
    "ilsr_pairwise, random pairs": choix_of("ilsr_pairwise", max_iter=500, tol=1e-6),
    "opt_pairwise, random pairs": choix_of("opt_pairwise", method="BFGS"),
    "Elo, random pairs": elo,
    "TrueSkill, nearest of 8": trueskill,
    "merge sort": merge_sort,
}


def one_list(name, n, calls, noise, fixed, seed):
    """Tau of an order, the calls it took, and seconds of processor time."""
    rng = np.random.default_rng([seed, n, fixed])
    judge = Judge(rng.permutation(n), noise, fixed, rng)
    start = process_time()
    order, asked = METHODS[name](judge, n, calls, rng)
    seconds = process_time() - start
    return float(kendalltau(judge.places[order], np.arange(n)).statistic), asked, seconds
