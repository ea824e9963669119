"""Judges that see several items, and several judges of pairs."""

import asyncio
from collections import Counter

import numpy as np
import pytest
from scipy.stats import kendalltau

from rankcore.metrics import ndcg_score
from rankcore.preference import Choice, Judges, Order, PreferenceError, PreferenceRanker, Retry
from rankcore.preference.ratings import Ratings
from strategies import NIGHTLY

AT_ONCE = Retry(attempts=3, wait=0.0)


def order_of(items):
    return sorted(range(len(items)), key=items.__getitem__)


def best_of(items):
    return items.index(min(items))


def noisy(places, seed, noise=0.1):
    rng = np.random.default_rng(seed)

    def order(items):
        if rng.random() < noise:
            return rng.permutation(len(items)).tolist()
        return np.argsort(places[items]).tolist()

    return order


FORMS = {"order": (Order, order_of), "choice": (Choice, best_of)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [3, 8, 50])
def test_the_top_of_an_exact_judge(form, k):
    make, judge = FORMS[form]
    sizes = set()

    def counted(items):
        sizes.add(len(items))
        assert len(set(items)) == len(items)
        return judge(items)

    items = np.random.default_rng(k).permutation(40).tolist()
    ranker = PreferenceRanker(make(counted, k), top_k=2, random_state=0)
    assert ranker.rank(items) == [0, 1]
    assert ranker.complete_
    assert max(sizes) <= k
    assert sorted(ranker.order_) == list(range(40))


def test_each_item_meets_sixteen_others_before_the_worse_half_is_dropped():
    calls = []

    def recorded(items):
        calls.append(items)
        return order_of(items)

    ranker = PreferenceRanker(Order(recorded, 5), top_k=1, random_state=0)
    assert ranker.rank(list(range(20))) == [0]
    # Four others in each of four groups.
    met = Counter(item for call in calls[:16] for item in call)
    assert [met[item] for item in range(20)] == [4] * 20
    assert len({item for call in calls[16:] for item in call}) == 10


def test_groups_are_full_where_k_divides_no_pool():
    sizes = []

    def recorded(items):
        sizes.append(len(items))
        return order_of(items)

    PreferenceRanker(Order(recorded, 5), max_calls=30, random_state=0).rank(list(range(23)))
    assert sizes == [5] * 30


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMS)
def test_the_top_in_a_quarter_of_the_calls_of_pairs(form, monkeypatch):
    """Lists of 1,000 of which halving by pairs finds .9575 with 8,532 calls, 10% of them wrong."""
    # The curve of doubt, which is most of the time, has no part in what is called and found.
    monkeypatch.setattr(Ratings, "expected_inversions", lambda self: 0.0)
    found = []
    for seed in range(20 if NIGHTLY else 2):
        rng = np.random.default_rng(seed)
        grades = rng.permutation(np.repeat([4.0, 3.0, 2.0, 1.0, 0.0], [10, 20, 50, 120, 800]))
        order = noisy(np.lexsort((rng.random(1000), -grades)).argsort(), seed)
        judge = Order(order, 8) if form == "order" else Choice(lambda xs, o=order: o(xs)[0], 8)
        ranker = PreferenceRanker(judge, top_k=10, random_state=seed)
        ranker.rank(list(range(1000)))
        assert ranker.n_calls_ <= 8532 // 4
        scores = np.empty(1000)
        scores[ranker.order_] = np.arange(1000, 0, -1)
        found.append(ndcg_score(grades, scores, k=10))
    assert np.mean(found) > 0.9575


@pytest.mark.parametrize(("form", "tau"), [("order", 0.9), ("choice", 0.65)])
def test_whole_orders_within_a_budget(form, tau):
    places = np.random.default_rng(0).permutation(60)
    order = noisy(places, 1)
    judge = Order(order, 8) if form == "order" else Choice(lambda xs: order(xs)[0], 8)
    ranker = PreferenceRanker(judge, max_calls=100, random_state=0)
    ranker.rank(list(range(60)))
    assert (ranker.n_calls_, ranker.complete_) == (100, False)
    assert kendalltau(places[ranker.order_], np.arange(60)).statistic > tau
    assert ranker.place_interval_.shape == (60, 2)
    assert ((ranker.degrees_ >= 0) & (ranker.degrees_ <= 1)).all()


def test_position_of_what_is_shown_first():
    rng = np.random.default_rng(0)

    def lazy(items):
        return 0 if rng.random() < 0.5 else best_of(items)

    ranker = PreferenceRanker(Choice(lazy, 4), max_calls=400, random_state=0)
    ranker.rank(list(range(30)))
    assert ranker.ratings_.position_bias > 0.5
    assert kendalltau(ranker.order_, np.arange(30)).statistic > 0.75


MALFORMED = [None, "A", [], [0, 0, 1], [7, 8, 9], [1], [True, False], [0.5], -1, 99, {"a": 1}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("concurrency", [1, 3])
def test_malformed_answers_are_asked_again(form, concurrency):
    make, judge = FORMS[form]
    bad, asked = iter(MALFORMED), []

    def mumbling(items):
        asked.append(tuple(items))
        return next(bad, None) if len(asked) % 4 == 0 and len(asked) <= 44 else judge(items)

    ranker = PreferenceRanker(
        make(mumbling, 5), top_k=2, retry=AT_ONCE, concurrency=concurrency, random_state=0
    )
    assert ranker.rank(list(range(30))) == [0, 1]
    assert ranker.n_calls_ == len(asked)
    assert ranker.complete_


def test_malformed_answers_count_as_far_as_they_go():
    asked = []

    def partly(items):
        asked.append(items)
        return [place for place in order_of(items) if items[place] != 3] + [17, 0]

    ranker = PreferenceRanker(Order(partly, 4), max_calls=30, retry=AT_ONCE, random_state=0)
    found = ranker.rank(list(range(8)))
    assert len(asked) == ranker.n_calls_ == 30  # each of ten calls three times
    assert len({tuple(items) for items in asked}) == 10
    assert [item for item in found if item != 3] == [0, 1, 2, 4, 5, 6, 7]
    silent = PreferenceRanker(Choice(lambda items: None, 4), max_calls=9, retry=AT_ONCE)
    assert sorted(silent.rank(list(range(8)))) == list(range(8))
    assert silent.n_calls_ == 9
    assert silent.pairs_.shape == (0, 2)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_judge_that_raises_is_named_with_its_items(concurrency):
    def broken(items):
        raise TimeoutError("no answer")

    ranker = PreferenceRanker(Order(broken, 3), retry=AT_ONCE, concurrency=concurrency)
    with pytest.raises(PreferenceError, match="failed 3 times") as caught:
        ranker.rank(list("abcdef"))
    assert len(caught.value.pair) == 3


@pytest.mark.parametrize("form", FORMS)
def test_a_journal_resumes_a_run_that_was_broken_off(form, tmp_path):
    make, judge = FORMS[form]
    items = [f"item {k:02d}" for k in range(25)]
    whole = PreferenceRanker(make(judge, 4), max_calls=60, random_state=3)
    whole.rank(items)
    path, left = tmp_path / "answers.sqlite", [20]

    def limited(shown):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return judge(shown)

    first = PreferenceRanker(make(limited, 4), max_calls=60, journal=path, random_state=3)
    with pytest.raises(KeyboardInterrupt):
        first.rank(items)
    left[0] = 40
    again = PreferenceRanker(make(limited, 4), max_calls=60, journal=path, random_state=3)
    again.rank(items)
    assert (again.n_reused_, again.n_calls_, left[0]) == (20, 60, 0)
    np.testing.assert_array_equal(again.order_, whole.order_)


@pytest.mark.parametrize("places", ["[0, 0]", "[9]", "[[0]]", "{}", "x", "[true]", "[" * 100_000])
def test_orders_in_a_damaged_journal_are_refused(places, tmp_path):
    import sqlite3
    from contextlib import closing

    path = tmp_path / "answers.sqlite"
    PreferenceRanker(Order(order_of, 3), max_calls=4, journal=path, random_state=0).rank(
        [1, 2, 3, 4]
    )
    with closing(sqlite3.connect(path)) as file:
        file.execute("update orders set places = ?", (places,))
        file.commit()
    with pytest.raises(ValueError, match="is damaged or not of this package"):
        PreferenceRanker(Order(order_of, 3), journal=path, max_calls=9).rank([1, 2, 3, 4])


def test_async_judges_of_several():
    async def judge(items):
        await asyncio.sleep(0)
        return order_of(items)

    ranker = PreferenceRanker(Order(judge, 5), top_k=3, concurrency=4, random_state=0)
    plain = PreferenceRanker(Order(order_of, 5), top_k=3, random_state=0)
    items = np.random.default_rng(0).permutation(50).tolist()
    assert ranker.rank(items) == plain.rank(items) == [0, 1, 2]
    assert ranker.n_calls_ == plain.n_calls_


@pytest.mark.parametrize("items", [[], [4], [4, 4], [2, 1], [2, 1, 2]])
def test_few_items(items):
    for judge in (Order(order_of, 4), Choice(best_of, 4)):
        ranker = PreferenceRanker(judge, max_calls=6, random_state=0)
        assert ranker.rank(items) == sorted(items)
        assert ranker.n_calls_ == (6 if len(set(items)) == 2 else 0)


@pytest.mark.slow
def test_the_reliability_of_judges_is_learned():
    rng = np.random.default_rng(0)

    def erring(noise):
        return lambda u, v: (u < v) ^ (rng.random() < noise)

    judges = Judges([erring(0.05), erring(0.5), erring(0.1)])
    ranker = PreferenceRanker(judges, method="rating", max_calls=600, random_state=0)
    ranker.rank(np.random.default_rng(1).permutation(30).tolist())
    good, coin, fair = ranker.ratings_.reliability
    assert good > 1.5 * coin
    assert fair > 1.5 * coin
    weighed = kendalltau(np.array(ranker.items_)[ranker.order_], np.arange(30)).statistic
    assert weighed > 0.85


def test_repeats_ask_each_judge():
    asked = [0, 0, 0]

    def counting(number):
        def judge(u, v):
            asked[number] += 1
            return u < v

        return judge

    judges = Judges([counting(k) for k in range(3)])
    ranker = PreferenceRanker(judges, method="quicksort", repeats=3, random_state=0)
    assert ranker.rank([3, 1, 2, 5, 4]) == [1, 2, 3, 4, 5]
    assert asked == [ranker.n_calls_ // 3] * 3


@pytest.mark.parametrize(
    ("make", "error", "what"),
    [
        (lambda: Order(3, 4), TypeError, "Order needs a function"),
        (lambda: Choice(best_of, 1), ValueError, "k must be an integer from 2 on; found 1"),
        (lambda: Judges([]), TypeError, "Judges requires functions"),
        (
            lambda: PreferenceRanker(Order(order_of, 3), method="sliding").rank([1, 2]),
            ValueError,
            'requires method "auto", "halving", "rating" or "heap"; found',
        ),
        (
            lambda: PreferenceRanker(Choice(best_of, 2), method="heap").rank([1, 2]),
            ValueError,
            "a heap of groups requires k of at least 3; found 2",
        ),
        (
            lambda: PreferenceRanker(Order(order_of, 3), repeats=2).rank([1, 2]),
            ValueError,
            "repeats and both_orders require a judge of pairs",
        ),
    ],
)
def test_wrong_arguments_are_refused(make, error, what):
    with pytest.raises(error, match=what):
        make()


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_judge_whose_answers_name_nothing_is_stopped(attempts):
    calls = []

    def best(words):
        calls.append(words)
        return min(words)  # instead of its position

    ranker = PreferenceRanker(
        Choice(best, 4), max_calls=100, retry=Retry(attempts, wait=0.0), random_state=0
    )
    with pytest.raises(PreferenceError, match=r"first 20 answers name no position.*found '"):
        ranker.rank(list("hdbecagf"))
    assert ranker.n_calls_ == len(calls) == 20
    # One answer that names something is enough.
    calls.clear()
    now_and_then = Choice(lambda words: 0 if calls.append(words) or len(calls) == 3 else None, 4)
    ranker = PreferenceRanker(now_and_then, max_calls=60, retry=Retry(attempts, wait=0.0))
    ranker.rank(list("hdbecagf"))
    assert ranker.n_calls_ == 60
