"""Judges with errors, and methods that order items by them, for whole_orders.py."""

import warnings
from time import process_time

import numpy as np
from scipy.stats import kendalltau

from rankcore.preference import Indexed, PreferenceRanker


class Judge:
    """Answers whether item i, shown first, comes before item j, and errs.

    With ``errors`` "anew" or "fixed" (the same each time) a fraction ``noise`` of the answers is
    wrong; with "distance" as many as for strengths that are ``noise`` times the standard deviation
    of their places, and with "position" a fifth of them is for the item shown first besides.
    """

    def __init__(self, places, noise, errors, rng):
        self.places, self.noise, self.errors, self.rng = places, noise, errors, rng
        wrong = np.triu(rng.random((places.size,) * 2) < noise, 1)
        self.wrong = wrong | wrong.T if errors == "fixed" else None

    def __call__(self, i, j):
        right = self.places[i] < self.places[j]
        if self.errors == "distance":
            apart = (self.places[j] - self.places[i]) / (self.noise * self.places.size)
            return self.rng.random(np.shape(i)) < 1 / (1 + np.exp(-apart))
        if self.errors == "position":
            right = right ^ (self.rng.random(np.shape(i)) < self.noise)
            return right | (self.rng.random(np.shape(i)) < 0.2)
        if self.wrong is not None:
            return right ^ self.wrong[i, j]
        return right ^ (self.rng.random(np.shape(i)) < self.noise)


def ours(method):
    def order(judge, n, calls, rng):
        ranker = PreferenceRanker(
            Indexed(judge), method=method, max_calls=calls, random_state=int(rng.integers(2**32))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker.rank(np.arange(n))
        return ranker.order_, ranker.n_calls_

    return order


def random_pairs(n, calls, rng):
    i = rng.integers(0, n, calls)
    return i, (i + rng.integers(1, n, calls)) % n


def bradley_terry(n, winners, losers, start=None):
    """Strengths by choix, from a normal prior so that they exist."""
    import choix

    wins = np.zeros((n, n))
    np.add.at(wins, (np.concatenate(winners), np.concatenate(losers)), 1)
    return choix.ilsr_pairwise_dense(wins, alpha=0.01, initial_params=start, max_iter=500, tol=1e-6)


def of_random_pairs(judge, n, calls, rng):
    i, j = random_pairs(n, calls, rng)
    first = judge(i, j)
    strengths = bradley_terry(n, [np.where(first, i, j)], [np.where(first, j, i)])
    return np.argsort(-strengths), calls


def active(judge, n, calls, rng):
    """Bradley-Terry of pairs whose winner is least certain: neighbours in the order so far."""
    i, j = random_pairs(n, min(calls, n), rng)
    winners, losers, strengths = [], [], None
    while True:
        first = np.asarray(judge(i, j))
        winners.append(np.where(first, i, j))
        losers.append(np.where(first, j, i))
        asked = sum(map(len, winners))
        strengths = bradley_terry(n, winners, losers, strengths)
        if asked >= calls:
            return np.argsort(-strengths), calls
        order = np.argsort(-(strengths + 1e-3 * rng.standard_normal(n)))
        distance = rng.integers(1, 4)
        u, v = order[:-distance], order[distance:]
        drawn = rng.permutation(u.size)[: min(n // 4 or 1, calls - asked)]
        i, j = u[drawn], v[drawn]


def swiss(judge, n, calls, rng):
    """Play rounds of neighbours by the number of wins, then fit Bradley-Terry to all games."""
    wins, winners, losers, asked = np.zeros(n), [], [], 0
    while asked < calls:
        order = np.lexsort((rng.random(n), -wins))
        i, j = order[: n // 2 * 2 : 2], order[1 : n // 2 * 2 : 2]
        i, j = i[: calls - asked], j[: calls - asked]
        first = np.asarray(judge(i, j))
        won, lost = np.where(first, i, j), np.where(first, j, i)
        wins[won] += 1
        winners.append(won)
        losers.append(lost)
        asked += i.size
    strengths = bradley_terry(n, winners, losers)
    return np.argsort(-strengths), calls


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
    "choix, random pairs": of_random_pairs,
    "choix, active pairs": active,
    "Swiss, then Bradley-Terry": swiss,
    "Elo, random pairs": elo,
    "TrueSkill, nearest of 8": trueskill,
    "merge sort": merge_sort,
}


def one_list(name, n, calls, noise, errors, seed):
    """Tau of an order, the calls it took, and seconds of processor time."""
    rng = np.random.default_rng([seed, n, errors == "fixed"])
    judge = Judge(rng.permutation(n), noise, errors, rng)
    start = process_time()
    order, asked = METHODS[name](judge, n, calls, rng)
    seconds = process_time() - start
    return float(kendalltau(judge.places[order], np.arange(n)).statistic), asked, seconds


def one_claim(n, calls, noise, errors, seed):
    """Return a list's claimed and true inversions, coverage, width and whether it is complete."""
    rng = np.random.default_rng([seed, n, 17])
    judge = Judge(rng.permutation(n), noise, errors, rng)
    ranker = PreferenceRanker(
        Indexed(judge), method="rating", max_calls=calls, random_state=int(rng.integers(2**32))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of judges whose answers do not depend on the items
        ranker.rank(np.arange(n))
    first, last = ranker.ratings_.place_interval(0.9).T
    places = judge.places + 1
    tau = kendalltau(judge.places[ranker.order_], np.arange(n)).statistic
    inside = np.mean((first <= places) & (places <= last))
    width, claimed = np.mean(last - first), ranker.sampler_.uncertainty().inversions
    return claimed, (1 - tau) / 2, inside, width, float(ranker.complete_)
