"""Comparisons that the methods need, and their rankings from all or some of the answers."""

from heapq import heapify, heappop
from itertools import permutations
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from rankcore.preference import (
    Batch,
    Indexed,
    PreferenceRanker,
    Retry,
    call_plan,
    from_scores,
    quicksort_rank,
    sort_by_degree,
)
from rankcore.preference.methods import METHODS
from rankcore.preference.sequential import Sliding
from reference import preference as plain
from strategies import NIGHTLY

orders = st.integers(1, 40).flatmap(lambda n: st.permutations(range(n)))


def ranked(items, method, top_k=None, **params):
    ranker = PreferenceRanker(
        lambda u, v: u < v, method=method, top_k=top_k, random_state=0, **params
    )
    return ranker.rank(items), ranker


@pytest.mark.parametrize("method", METHODS)
@given(items=orders)
@settings(max_examples=30, deadline=None)
def test_a_transitive_preference_gives_its_order(method, items):
    found, ranker = ranked(items, method)
    assert found == sorted(items)
    assert ranker.complete_
    assert (ranker.certainty_ >= 0.5).all()
    plan = call_plan(len(items))[method]
    if plan.calls_are == "exact":
        assert ranker.n_calls_ == plan.calls
    if plan.calls_are == "at most":
        assert ranker.n_calls_ <= plan.calls


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"halving"}))  # which only makes it likely
@given(items=orders, k=st.integers(1, 45))
@settings(max_examples=30, deadline=None)
def test_the_first_of_a_transitive_preference(method, items, k):
    found, ranker = ranked(items, method, k)
    assert found == sorted(items)[:k]
    assert sorted(ranker.order_) == list(range(len(items)))
    assert [items[place] for place in ranker.order_[:k]] == found


def test_halving_finds_the_first_of_an_exact_preference():
    """Seeded: an item that beats 99% of the others would have to lose to half of eight."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        items = rng.permutation(1000)
        ranker = PreferenceRanker(from_scores(-items), top_k=10, random_state=seed)
        assert ranker.rank(items).tolist() == list(range(10))
        plan = call_plan(1000, 10)["halving"]
        assert (ranker.n_calls_, ranker.n_rounds_) == (plan.calls, plan.rounds)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_sliding_passes_side_by_side_are_passes_one_after_the_other(n):
    rng = np.random.default_rng(n)
    for _ in range(40):
        h = np.triu(rng.integers(0, 2, (n, n)), 1)
        h = h + np.tril(1 - h.T, -1)
        for passes in range(1, n):
            method, asked, steps = Sliding(n, top_k=passes), [], 0
            rounds = method.rounds()
            try:
                i, j = next(rounds)
                while True:
                    steps += 1
                    asked += zip(i.tolist(), j.tolist(), strict=True)
                    i, j = rounds.send(h[i, j].astype(float))
            except StopIteration:
                pass
            order, pairs = plain.bubble(range(n), passes, lambda u, v, h=h: h[u, v])
            assert method.order().tolist() == order
            assert sorted(asked) == sorted(pairs)
            plan = call_plan(n, passes)["sliding"]
            assert (len(asked), steps) == (plan.calls, plan.rounds)


def test_no_item_of_sliding_is_in_place_before_a_pass_ends():
    sliding = Sliding(5)
    assert sliding.together().tolist() == [5] * 5
    rounds = sliding.rounds()
    upper, _ = next(rounds)
    with pytest.raises(StopIteration):  # an answer that is missing ends it
        rounds.send(np.full(upper.size, np.nan))
    assert sliding.together().tolist() == [5] * 5


def test_insertion_asks_as_a_binary_search():
    for n in range(1, 7):
        counts = []
        for items in permutations(range(n)):
            _, ranker = ranked(items, "insertion")
            assert ranker.n_calls_ <= n * ceil(log2(n)) if n > 1 else ranker.n_calls_ == 0
            counts.append(ranker.n_calls_)
        assert np.mean(counts) == pytest.approx(call_plan(n)["insertion"].calls)


@pytest.mark.sampled
def test_insertion_of_the_first_k_asks_as_planned():
    for n in range(2, 7 if NIGHTLY else 6):
        for k in range(1, n):
            counts = [ranked(p, "insertion", k)[1].n_calls_ for p in permutations(range(n))]
            assert np.mean(counts) == pytest.approx(call_plan(n, k)["insertion"].calls)


@pytest.mark.sampled
def test_heap_asks_at_most_as_planned():
    for n in range(1, 7 if NIGHTLY else 6):
        for k in range(1, n + 1):
            counts = [ranked(p, "heap", k)[1].n_calls_ for p in permutations(range(n))]
            assert np.mean(counts) <= call_plan(n, k)["heap"].calls


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_heap_sort_is_that_of_the_standard_library_whatever_the_answers(n):
    for seed in range(20):
        worse = np.triu(np.random.default_rng(seed).random((n, n)) < 0.5, 1)
        worse |= np.tril(~worse.T, -1)

        class Item:
            def __init__(self, number):
                self.number = number

            def __lt__(self, other, worse=worse):  # the worst item is on top
                return worse[self.number, other.number]

        heap = [Item(number) for number in range(n)]
        heapify(heap)
        expected = [heappop(heap).number for _ in range(n)][::-1]
        assert PreferenceRanker(worse.T, method="heap").rank(list(range(n))) == expected


def test_degree_leaves_ties_as_they_came():
    assert sort_by_degree(list("dbca"), lambda u, v: 0.5) == list("dbca")
    rock = {("rock", "scissors"), ("scissors", "paper"), ("paper", "rock")}
    items = ["paper", "rock", "scissors"]
    assert sort_by_degree(items, lambda u, v: (u, v) in rock) == items


@pytest.mark.parametrize("dtype", [bool, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_all_forms_give_the_same_order(dtype, n):
    rng = np.random.default_rng(n)
    h = np.triu(rng.random((n, n)) < 0.5, 1)
    h = (h | np.tril(~h.T, -1)).astype(dtype)
    asked = []

    def one(u, v):
        asked.append((u, v))
        return h[u, v]

    items = list(range(n))
    forms = [h, Indexed(lambda i, j: h[i, j])]
    forms += [Batch(lambda pairs: [h[u, v] for u, v in pairs], size) for size in (None, 7)]
    degree = sort_by_degree(items, one)
    assert len(asked) == n * (n - 1) // 2
    asked.clear()
    quick = quicksort_rank(items, one, random_state=1)
    assert len(asked) == len({frozenset(pair) for pair in asked})  # each pair once at most
    for form in forms:
        assert sort_by_degree(items, form) == degree
        assert quicksort_rank(items, form, random_state=1) == quick
        ranker = PreferenceRanker(form, method="degree")
        assert ranker.rank(items) == degree
        ranker.set_params(method="quicksort", random_state=1)
        assert ranker.rank(items) == quick
    assert degree == sorted(range(n), key=lambda u: -float(h[u].sum(dtype=float)))


@pytest.mark.parametrize("dtype", [bool, np.float32, np.float64, np.int64])
def test_degrees_of_a_matrix_of_several_blocks(dtype):
    n = 700
    rng = np.random.default_rng(n)
    h = np.triu(rng.random((n, n)) < 0.5, 1)
    h = (h | np.tril(~h.T, -1)).astype(dtype)
    order = np.argsort(-h.sum(axis=1, dtype=float), kind="stable")
    assert sort_by_degree(list(range(n)), h) == order.tolist()
    assert sort_by_degree(list(range(n)), Indexed(lambda i, j: h[i, j])) == order.tolist()
    # Only one of the two degrees of a pair is looked up.
    assert sort_by_degree(list(range(n)), np.triu(h, 1)) == order.tolist()
    for place in ((0, 699), (3, 7), (698, 699)):
        wrong = h.astype(float)
        wrong[place] = 2.0
        with pytest.raises(ValueError, match=r"degrees in \[0, 1\]; found 2.0"):
            sort_by_degree(range(n), wrong)


def test_items_may_be_anything():
    items = [{"name": "b"}, {"name": "a"}, {"name": "c"}]
    by_name = [items[1], items[0], items[2]]

    def earlier(u, v):
        return u["name"] < v["name"]

    assert sort_by_degree(items, earlier) == by_name
    assert quicksort_rank(items, earlier, random_state=0) == by_name
    assert PreferenceRanker(earlier).rank(items) == by_name
    rows = np.array([[2.0, 1.0], [1.0, 5.0]])
    found = quicksort_rank(rows, lambda u, v: u[0] < v[0], random_state=0)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [[1.0, 5.0], [2.0, 1.0]]
    assert quicksort_rank([], earlier) == []
    assert sort_by_degree([], earlier) == []
    assert PreferenceRanker(earlier).rank([]) == []


def test_scores_with_ties():
    items = np.arange(6)
    order = quicksort_rank(items, from_scores([1, 3, 3, 2, 3, 0]), random_state=3)
    assert sorted(order[:3]) == [1, 2, 4]
    assert order[3:].tolist() == [3, 0, 5]
    firsts = {
        quicksort_rank(items, from_scores([1, 3, 3, 2, 3, 0]), random_state=seed)[0]
        for seed in range(40)
    }
    assert firsts == {1, 2, 4}  # equal items by a coin, not as they came


def test_a_million_items_and_the_first_hundred_of_them():
    scores = np.random.default_rng(0).random(1_000_000)
    best = np.argsort(-scores)
    calls = []
    table = from_scores(scores)

    def counted(i, j):
        calls.append(i.size)
        return table.function(i, j)

    items = np.arange(scores.size)
    first = quicksort_rank(items, Indexed(counted), top_k=100, random_state=0)
    np.testing.assert_array_equal(first, best[:100])
    assert sum(calls) < 8 * scores.size  # some 2 n, in few rounds
    assert len(calls) < 100


@pytest.mark.sampled
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("top_k", [None, 5])
def test_every_budget_gives_an_order(method, top_k):
    items = np.random.default_rng(0).permutation(30)
    full = PreferenceRanker(from_scores(-items), method=method, top_k=top_k, random_state=0)
    best = full.rank(items)
    losses = []
    step = 1 if NIGHTLY else max(1, full.n_calls_ // 40)
    for budget in sorted({0, 1, full.n_calls_, *range(2, full.n_calls_ + 2, step)}):
        ranker = PreferenceRanker(
            from_scores(-items), method=method, top_k=top_k, max_calls=budget, random_state=0
        )
        found = ranker.rank(items)
        assert ranker.n_calls_ == min(budget, full.n_calls_)
        assert ranker.complete_ == (budget >= full.n_calls_)
        assert sorted(ranker.order_) == list(range(30))
        pairs = {frozenset(pair) for pair in ranker.pairs_.tolist()}
        assert len(ranker.pairs_) == len(pairs) <= ranker.n_calls_
        if method in ("quicksort", "degree", "insertion"):  # ask no pair twice
            assert len(pairs) == ranker.n_calls_
        assert ((ranker.certainty_ >= 0) & (ranker.certainty_ <= 1)).all()
        if budget == 0:
            np.testing.assert_array_equal(ranker.certainty_, 0.5)
        rank = np.argsort(np.argsort(items[ranker.order_]))
        losses.append(np.count_nonzero(np.triu(rank[:, None] > rank[None, :])))
    np.testing.assert_array_equal(found, best)
    # Not at each step, but from quarter to quarter more calls make a better order.
    quarters = [np.mean(part) for part in np.array_split(losses, 4)]
    assert quarters == sorted(quarters, reverse=True)
    assert quarters[0] > quarters[3]


def test_degree_under_a_budget_ranks_by_shares_of_wins_in_random_pairs():
    """Seeded: an item with few comparisons would be last by their sum, whatever its answers."""
    n, budget, taus = 50, 500, []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        places = rng.permutation(n)
        judge = Indexed(lambda i, j, p=places, r=rng: (p[i] < p[j]) ^ (r.random(i.size) < 0.1))
        ranker = PreferenceRanker(judge, method="degree", max_calls=budget, random_state=seed)
        ranker.rank(np.arange(n))
        (i, j), wins = ranker.pairs_.T, ranker.degrees_
        shares = [
            np.mean(np.concatenate([wins[i == item], 1 - wins[j == item]])) for item in range(n)
        ]
        assert ranker.order_.tolist() == sorted(range(n), key=lambda u, s=shares: -s[u])
        # In the order of the input the first 10 items would have nearly all of the comparisons.
        assert 8 <= ranker.n_answers_.min() < ranker.n_answers_.max() <= 34
        taus.append(kendalltau(places[ranker.order_], np.arange(n)).statistic)
    assert np.mean(taus) > 0.75
    unmet = PreferenceRanker(np.triu(np.ones((4, 4)), 1), method="degree", max_calls=1)
    unmet.rank(list("abcd"))
    winner, loser = unmet.pairs_[0]
    assert [unmet.order_[0], unmet.order_[3]] == [winner, loser]  # 1/2 for items that met no other


@pytest.mark.parametrize("method", METHODS)
def test_certainty_is_by_the_answers_and_what_is_in_order(method):
    items = np.random.default_rng(1).permutation(40)
    ranker = PreferenceRanker(from_scores(-items), method=method, random_state=0)
    ranker.rank(items)
    np.testing.assert_array_equal(
        ranker.n_answers_, np.bincount(ranker.pairs_.ravel(), minlength=40)
    )
    # All answers agree with the order, and all is in order.
    np.testing.assert_allclose(ranker.certainty_, 1 - 0.5 / (ranker.n_answers_ + 1))
    half = PreferenceRanker(np.full((40, 40), 0.5), method=method, random_state=0)
    half.rank(items)
    np.testing.assert_array_equal(half.certainty_, 0.5)


def test_a_draw_and_a_majority():
    items = list(range(2))
    h = np.array([[0.5, 0.75], [0.25, 0.5]])
    majority = PreferenceRanker(h, method="quicksort")
    assert [majority.set_params(random_state=seed).rank(items) for seed in range(40)] == [
        [0, 1]
    ] * 40
    sample = PreferenceRanker(h, method="quicksort", decide="sample")
    first = [sample.set_params(random_state=seed).rank(items)[0] for seed in range(2000)]
    assert abs(np.mean(first) - 0.25) < 4 * (0.25 * 0.75 / 2000) ** 0.5


@pytest.mark.parametrize(
    ("preference", "error", "what"),
    [
        (lambda u, v: 1.5, ValueError, r"degrees in \[0, 1\]; found 1.5"),
        (lambda u, v: float("nan"), ValueError, "found nan"),
        (lambda u, v: "yes", TypeError, "numbers in"),
        (np.ones((2, 2)), ValueError, r"shape \(3, 3\); found \(2, 2\)"),
        (np.full((3, 3), -1.0), ValueError, "found -1"),
        ([1, 2, 3], TypeError, "a matrix of degrees; found list"),
        (Batch(lambda pairs: [True]), ValueError, r"one degree; found shape \(1,\)"),
        (Indexed(lambda i, j: j + 1), ValueError, r"degrees in \[0, 1\]"),
    ],
)
@pytest.mark.parametrize("rank", [sort_by_degree, quicksort_rank])
def test_wrong_answers_are_refused(rank, preference, error, what):
    with pytest.raises(error, match=what):
        rank([10, 20, 30], preference)


def test_wrong_arguments_are_refused():
    async def later(u, v):
        return True

    with pytest.raises(TypeError, match="PreferenceRanker"):
        quicksort_rank([1, 2], later)
    for items in ({1, 2}, {1: 2}, iter([1, 2]), 3):
        with pytest.raises(TypeError, match="items must be a sequence"):
            quicksort_rank(items, lambda u, v: True)
    for top_k in (0, 1.5):
        with pytest.raises((ValueError, TypeError), match="top_k must be an integer from 1 on"):
            quicksort_rank([1, 2], lambda u, v: True, top_k=top_k)
    of_two = from_scores([1.0, 2.0])
    for rank in (sort_by_degree, quicksort_rank, lambda items, h: PreferenceRanker(h).rank(items)):
        with pytest.raises(ValueError, match="the preference has 2 items; found 3 items"):
            rank("abc", of_two)
    for wrong in ({"attempts": 0}, {"attempts": 1.5}, {"wait": np.nan}, {"jitter": 2.0}):
        with pytest.raises(
            (ValueError, TypeError), match="attempts must be an integer|in \\[0, 1\\]; found"
        ):
            Retry(**wrong)
    with pytest.raises(ValueError, match="n and k of at least 1"):
        call_plan(0)
    with pytest.raises(ValueError, match="list of finite numbers"):
        from_scores([np.nan])
    with pytest.raises(ValueError, match="size must be at least 1"):
        Batch(len, size=0)
