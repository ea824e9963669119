"""Asking: budgets, repeats, both orders, retries, concurrency, interrupts, and what is kept."""

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from itertools import count

import numpy as np
import pytest
from sklearn.base import clone

from rankcore.preference import (
    Batch,
    Indexed,
    Journal,
    PreferenceError,
    PreferenceRanker,
    Retry,
    from_scores,
)
from rankcore.preference.methods import METHODS

AT_ONCE = Retry(attempts=4, wait=0.0)
STUBBORN = Retry(attempts=20, wait=0.0)
ITEMS = np.random.default_rng(0).permutation(40).tolist()


class Judge:
    """Prefers the smaller of two numbers, and knows what it was asked and how often at a time."""

    def __init__(self, fails=lambda n: False, seconds=0.0):
        self.asked = []
        self.fails, self.seconds = fails, seconds
        self.lock = threading.Lock()
        self.now = self.most = self.failed = 0

    def __call__(self, u, v):
        with self.lock:
            self.asked.append((u, v))
            self.now += 1
            self.most = max(self.most, self.now)
            fail = bool(self.fails(len(self.asked)))
            self.failed += fail
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        if fail:
            raise TimeoutError("no answer")
        return u < v


def in_a_loop(judge):
    async def ask(u, v):
        judge.asked.append((u, v))
        judge.now += 1
        judge.most = max(judge.most, judge.now)
        fail = bool(judge.fails(len(judge.asked)))
        judge.failed += fail
        await asyncio.sleep(judge.seconds)
        judge.now -= 1
        if fail:
            raise TimeoutError("no answer")
        return u < v

    return ask


def in_batches(judge, size):
    return Batch(lambda pairs: [judge(u, v) for u, v in pairs], size)


FORMS = {
    "one": lambda judge: judge,
    "async": in_a_loop,
    "batch": lambda judge: in_batches(judge, 7),
    "whole rounds": lambda judge: in_batches(judge, None),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("concurrency", [1, 5])
def test_every_form_asks_the_same(form, method, concurrency):
    judge = Judge()
    ranker = PreferenceRanker(
        FORMS[form](judge), method=method, top_k=5, concurrency=concurrency, random_state=0
    )
    assert ranker.rank(ITEMS) == [0, 1, 2, 3, 4]
    plain = PreferenceRanker(from_scores(-np.array(ITEMS)), method=method, top_k=5, random_state=0)
    assert plain.rank(ITEMS) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(ranker.order_, plain.order_)
    # Repeated comparisons are remembered.
    assert ranker.n_calls_ == len(judge.asked) == len({frozenset(p) for p in judge.asked})
    assert ranker.n_calls_ <= plain.n_calls_
    assert judge.most <= (concurrency if form in ("one", "async") else 40)


@pytest.mark.parametrize("form", ["one", "async"])
def test_calls_are_made_side_by_side(form):
    judge = Judge(seconds=0.02)
    ranker = PreferenceRanker(FORMS[form](judge), concurrency=6, random_state=0)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert judge.most == 6


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("budget", [0, 1, 17, 60, 100])
@pytest.mark.parametrize("method", ["quicksort", "rating"])
def test_the_budget_holds_with_failures(form, concurrency, budget, method):
    failing = np.random.default_rng(budget).random(200) < 0.2
    judge = Judge(fails=lambda n: failing[n] and form in ("one", "async"))
    ranker = PreferenceRanker(
        FORMS[form](judge),
        max_calls=budget,
        concurrency=concurrency,
        method=method,
        repeats=1,
        retry=STUBBORN,
        random_state=0,
    )
    ranker.rank(ITEMS)
    assert len(judge.asked) == ranker.n_calls_ <= budget
    assert budget - ranker.n_calls_ < 2
    assert not ranker.complete_
    assert sorted(ranker.order_) == list(range(40))
    assert len(ranker.pairs_) == ranker.n_calls_ - judge.failed


def test_pairs_are_paid_for_as_a_whole():
    judge = Judge()
    ranker = PreferenceRanker(
        judge, method="quicksort", max_calls=25, repeats=3, both_orders=True, random_state=0
    )
    ranker.rank(ITEMS)
    assert ranker.n_calls_ == len(judge.asked) == 24
    assert set(Counter(frozenset(pair) for pair in judge.asked).values()) == {6}
    assert set(Counter(judge.asked).values()) == {3}
    assert len(ranker.pairs_) == 4
    computed = PreferenceRanker(
        from_scores(-np.array(ITEMS)), max_calls=25, repeats=3, both_orders=True, random_state=0
    )
    computed.rank(ITEMS)
    assert computed.n_calls_ == 24


def test_both_orders_take_away_what_the_position_adds():
    def biased(u, v):
        return min(1.0, (u < v) * 0.6 + 0.4)  # 0.4 for being first

    one = PreferenceRanker(biased, method="degree")
    one.rank([3, 2, 1])
    both = PreferenceRanker(biased, method="degree", both_orders=True)
    assert both.rank([3, 2, 1]) == [1, 2, 3]
    np.testing.assert_allclose(one.degrees_, 0.4)
    np.testing.assert_allclose(both.degrees_, (0.4 + 1 - 1.0) / 2)
    assert (one.n_calls_, both.n_calls_) == (3, 6)


def test_both_orders_of_computed_degrees_take_it_away_too():
    biased = Indexed(lambda i, j: (i > j) * 0.5 + 0.4)
    one = PreferenceRanker(biased, method="degree")
    one.rank([3, 2, 1])
    both = PreferenceRanker(biased, method="degree", repeats=2, both_orders=True)
    assert both.rank([3, 2, 1]) == [1, 2, 3]
    np.testing.assert_allclose(one.degrees_, 0.4)
    np.testing.assert_allclose(both.degrees_, (0.4 + 1 - 0.9) / 2)
    assert (one.n_calls_, both.n_calls_) == (3, 12)


def test_repeats_are_averaged():
    answers = iter([True, False, True, True])
    ranker = PreferenceRanker(lambda u, v: next(answers), repeats=4)
    assert ranker.rank("ab") == ranker.rank("ab")  # the second time from memory
    np.testing.assert_array_equal(ranker.degrees_, 0.75)
    assert (ranker.n_calls_, ranker.n_reused_, ranker.n_rounds_) == (0, 4, 0)


def test_answers_are_kept_for_other_lists_and_for_one_preference():
    judge = Judge()
    ranker = PreferenceRanker(judge, method="degree")
    ranker.rank([1, 2, 3])
    ranker.rank([3, 4, 1])
    assert (ranker.n_calls_, ranker.n_reused_) == (2, 1)
    other = Judge()
    ranker.set_params(preference=other).rank([1, 2])
    assert len(other.asked) == 1
    forgetful = PreferenceRanker(judge, method="degree", cache=False)
    assert [forgetful.rank([1, 2]) and forgetful.n_calls_ for _ in range(2)] == [1, 1]
    ranker = PreferenceRanker(lambda u, v: u < v, method="degree")
    ranker.rank([1, 2])
    again = clone(ranker)  # with the parameters, and without the memory
    again.rank([1, 2])
    assert again.n_calls_ == 1


def test_items_that_are_one_are_not_compared():
    judge = Judge()
    ranker = PreferenceRanker(judge, method="degree")
    assert ranker.rank([2, 1, 2]) == [1, 2, 2]
    assert ranker.n_calls_ == 1
    rows = [np.array([2.0]), np.array([1.0]), np.array([2.0])]
    ranker = PreferenceRanker(lambda u, v: bool(u < v), method="degree")
    assert [float(row[0]) for row in ranker.rank(rows)] == [1.0, 2.0, 2.0]
    assert ranker.n_calls_ == 1
    named = [{"id": "b"}, {"id": "a"}, {"id": "b"}]
    ranker = PreferenceRanker(lambda u, v: u["id"] < v["id"], key=lambda d: d["id"])
    assert [d["id"] for d in ranker.rank(named)] == ["a", "b", "b"]
    assert ranker.n_calls_ == 1


@pytest.mark.parametrize("form", ["one", "async"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_call_that_keeps_failing_is_raised_with_its_pair_and_nothing_is_lost(form, concurrency):
    judge = Judge(fails=lambda n: n > 30)
    ranker = PreferenceRanker(
        FORMS[form](judge), concurrency=concurrency, retry=AT_ONCE, random_state=0
    )
    with pytest.raises(PreferenceError, match="failed 4 times on the pair") as caught:
        ranker.rank(ITEMS)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert caught.value.attempts == 4
    assert judge.asked.count(caught.value.pair) == 4
    assert len(ranker.pairs_) == 30
    assert not ranker.complete_
    assert sorted(ranker.order_) == list(range(40))
    judge.fails = lambda n: False
    before = len(judge.asked)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert ranker.n_reused_ == 30
    assert ranker.n_calls_ == len(judge.asked) - before
    answered = judge.asked[:30] + judge.asked[before:]
    assert len(answered) == len({frozenset(pair) for pair in answered})


def test_some_errors_are_not_worth_another_try():
    judge = Judge(fails=lambda n: True)
    ranker = PreferenceRanker(judge, retry=Retry(attempts=5, wait=0.0, on=(ConnectionError,)))
    with pytest.raises(PreferenceError, match="failed 1 time on the pair"):
        ranker.rank([1, 2])
    assert len(judge.asked) == 1


def test_a_judge_that_hangs_is_asked_again():
    asked = []

    async def judge(u, v):
        asked.append((u, v))
        if len(asked) % 40 == 3:
            await asyncio.Event().wait()
        return u < v

    patient = Retry(attempts=3, wait=0.0, timeout=0.3)
    ranker = PreferenceRanker(judge, retry=patient, concurrency=4, random_state=0)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert ranker.n_calls_ == len(asked) > len(set(asked))

    async def hangs(u, v):
        await asyncio.Event().wait()

    with pytest.raises(
        PreferenceError, match="failed 3 times .* TimeoutError: no answer within 0.3 s"
    ):
        PreferenceRanker(hangs, retry=patient).rank([1, 2])
    with pytest.raises(ValueError, match="timeout must be positive"):
        Retry(timeout=0)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_judge_that_hangs_and_is_not_async_is_left_behind(concurrency, in_a_loop):
    judge, gone, numbers = Judge(), threading.Event(), count()

    def hangs(u, v):
        answer = judge(u, v)
        if next(numbers) in (3, 43):
            gone.wait()
        return answer

    patient = Retry(attempts=3, wait=0.0, timeout=0.3)
    ranker = PreferenceRanker(hangs, retry=patient, concurrency=concurrency, random_state=0)
    try:
        found = asyncio.run(ranker.arank(ITEMS)) if in_a_loop else ranker.rank(ITEMS)
        assert found == sorted(ITEMS)
        assert ranker.n_calls_ == len(judge.asked) > len(set(judge.asked))
        with pytest.raises(
            PreferenceError, match="failed 2 times .* no answer within 0.05 seconds"
        ):
            PreferenceRanker(lambda u, v: gone.wait(), retry=Retry(2, 0.0, timeout=0.05)).rank("ab")
    finally:
        gone.set()


@pytest.mark.parametrize("answer", [float("nan"), "A", None, 1.5, [0.5, 0.5]])
def test_wrong_answers_stop_a_rating_too(answer):
    ranker = PreferenceRanker(lambda u, v: answer, max_calls=20, random_state=0)
    with pytest.raises(PreferenceError, match="on the pair"):
        ranker.rank(ITEMS)
    assert ranker.n_calls_ == 1
    assert sorted(ranker.order_) == list(range(40))


def test_an_answer_that_is_none_is_raised_with_its_pair():
    ranker = PreferenceRanker(lambda u, v: 7)
    with pytest.raises(PreferenceError, match=r"on the pair .*degrees in \[0, 1\]; found 7"):
        ranker.rank([1, 2])


def test_waits_grow_and_obey_the_server(monkeypatch):
    pauses = []
    monkeypatch.setattr(threading.Event, "wait", lambda stopped, pause: pauses.append(pause))

    class Busy(Exception):
        retry_after = None

    attempts = iter([Busy(), Busy(), Busy(), True])

    def judge(u, v):
        answer = next(attempts)
        if isinstance(answer, Exception):
            raise answer
        return answer

    retry = Retry(attempts=4, wait=1.0, factor=3.0, longest=8.0, jitter=0.0)
    assert PreferenceRanker(judge, method="degree", retry=retry).rank("ab") == ["a", "b"]
    assert pauses == [1.0, 3.0, 8.0]
    Busy.retry_after = "20"
    assert retry.seconds(1, Busy()) == 20.0
    jittered = [Retry(wait=1.0, jitter=0.5).seconds(1, OSError()) for _ in range(200)]
    assert 0.5 <= min(jittered) < 0.6 < 0.9 < max(jittered) <= 1.0
    for wrong in ({"attempts": 0}, {"wait": -1}, {"factor": 0.5}, {"jitter": 2}):
        with pytest.raises(ValueError, match="must"):
            Retry(**wrong)


@pytest.mark.parametrize("form", ["one", "async"])
@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.skipif(os.name == "nt", reason="signals of a terminal")
def test_an_interrupt_keeps_what_was_paid_for(form, concurrency):
    judge = Judge(seconds=0.005)
    judge.fails = lambda n: n == 50 and os.kill(os.getpid(), signal.SIGINT)
    ranker = PreferenceRanker(FORMS[form](judge), concurrency=concurrency, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        ranker.rank(ITEMS)
    assert not ranker.complete_
    # One call at a time is broken off, unless it runs in a loop; others are awaited.
    lost = 1 if (form, concurrency) == ("one", 1) else 0
    assert len(ranker.pairs_) == len(judge.asked) - lost
    assert len(judge.asked) < 60
    assert sorted(ranker.order_) == list(range(40))
    judge.fails = lambda n: False
    before = len(judge.asked)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert len({frozenset(p) for p in judge.asked}) == len(judge.asked) - lost
    assert ranker.n_calls_ == len(judge.asked) - before


def test_inside_of_an_event_loop():
    judge = Judge(seconds=0.002)

    async def main(preference):
        ranker = PreferenceRanker(preference, concurrency=4, random_state=0)
        return await ranker.arank(ITEMS), ranker.n_calls_

    found = [asyncio.run(main(preference)) for preference in (in_a_loop(judge), judge)]
    assert found[0] == found[1] == (sorted(ITEMS), len(judge.asked) // 2)
    assert judge.most == 4
    assert asyncio.run(main(np.triu(np.ones((40, 40)), 1)))[0] == ITEMS

    async def wrong():
        PreferenceRanker(in_a_loop(judge)).rank(ITEMS)

    with pytest.raises(RuntimeError, match="await arank"):
        asyncio.run(wrong())


def test_async_batches():
    sizes = []

    async def judge(pairs):
        sizes.append(len(pairs))
        await asyncio.sleep(0)
        return [u < v for u, v in pairs]

    ranker = PreferenceRanker(Batch(judge, 10), concurrency=3, random_state=0)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert sum(sizes) == ranker.n_calls_
    assert max(sizes) == 10


def test_progress():
    seen = []
    ranker = PreferenceRanker(Judge(seconds=0.001), progress=seen.append, random_state=0)
    ranker.rank(ITEMS)
    assert [now.calls for now in seen] == list(range(1, ranker.n_calls_ + 1))
    assert seen[-1].rounds == ranker.n_rounds_
    assert all(0 < now.round_done <= now.round_total for now in seen)
    assert all(now.remaining_seconds >= 0 for now in seen)
    assert seen[0].expected_calls > 100
    limited = PreferenceRanker(Judge(), progress=seen.append, max_calls=50, random_state=0)
    limited.rank(ITEMS)
    assert seen[-1].calls == seen[-1].expected_calls == 50
    assert seen[-1].remaining_seconds == 0


def test_a_stream_of_items():
    judge = Judge()
    ranker = PreferenceRanker(judge, random_state=0)
    ranker.rank(ITEMS[:20])
    calls = ranker.n_calls_
    for item in ITEMS[20:]:
        found = ranker.extend([item])
        assert ranker.n_calls_ <= 6
        calls += ranker.n_calls_
    assert found == sorted(ITEMS)
    assert len(judge.asked) == calls
    few = PreferenceRanker(Judge(), method="heap", top_k=3)
    few.rank(ITEMS[:20])
    assert few.extend(ITEMS[20:]) == [0, 1, 2]
    with pytest.raises(ValueError, match="call rank first"):
        PreferenceRanker(judge).extend([1])


def test_nothing_and_then_something():
    ranker = PreferenceRanker(lambda u, v: u < v)
    assert ranker.rank([]) == []
    assert ranker.extend([2, 1]) == [1, 2]


def test_errors_of_what_is_computed_are_raised():
    def wrong(i, j):
        raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        PreferenceRanker(Indexed(wrong)).rank(ITEMS)
    with pytest.raises(ValueError, match=r"degrees in \[0, 1\]; found 2"):
        PreferenceRanker(np.full((40, 40), 2.0)).rank(ITEMS)


def test_series_are_taken_by_position():
    pd = pytest.importorskip("pandas")
    series = pd.Series([3, 1, 2], index=[2, 0, 1])
    assert PreferenceRanker(lambda u, v: u < v).rank(series) == [1, 2, 3]
    with pytest.raises(TypeError, match="items must be a sequence"):
        PreferenceRanker(lambda u, v: u < v).rank(series.to_frame())


def test_one_seed_is_one_order():
    noisy = np.random.default_rng(0).random((40, 40))
    orders = {
        tuple(PreferenceRanker(noisy, random_state=seed).rank(ITEMS)) for seed in (1, 1, 2, 2)
    }
    assert len(orders) == 2
    drawn = {tuple(PreferenceRanker(noisy).rank(ITEMS)) for _ in range(5)}
    assert len(drawn) == 5
    same = PreferenceRanker(noisy)
    assert same.rank(ITEMS) == same.rank(ITEMS)


@pytest.mark.parametrize(
    ("params", "error", "what"),
    [
        ({"method": "bubble"}, ValueError, "method must be one of"),
        ({"decide": "coin"}, ValueError, "decide must be"),
        ({"top_k": 0}, ValueError, "top_k must be an integer from 1"),
        ({"max_calls": -1}, ValueError, "max_calls must be an integer from 0"),
        ({"repeats": 1.5}, TypeError, "repeats must be an integer from 1"),
        ({"batch": 0}, ValueError, "batch must be an integer from 1"),
        ({"noise": 0.7}, ValueError, "noise must be a number from 0 to 0.5; found 0.7"),
        ({"noise": "low"}, TypeError, "noise must be a number"),
        ({"confidence": float("nan")}, ValueError, "confidence must be a number"),
        (
            {"confidence": 1.5},
            ValueError,
            "confidence must be a number from 0 to 1; found 1.5",
        ),
        ({"method": "rating", "prior": [1.0]}, ValueError, "one number for each of 40 items"),
        ({"method": "rating", "prior": [np.nan] * 40}, ValueError, "prior must be finite"),
        ({"concurrency": True}, TypeError, "concurrency must be an integer"),
        ({"opponents": 3}, ValueError, "opponents must be even"),
        ({"retry": 3}, TypeError, "retry must be None or a Retry; found 3"),
        ({"progress": 3}, TypeError, "progress must be None or a function"),
        ({"key": "id"}, TypeError, "key must be None or a function"),
        ({"preference": "A"}, TypeError, "preference must be a function"),
        ({"journal": "x", "cache": False}, ValueError, "it requires cache=True"),
        ({"journal": "x", "preference": Indexed(lambda i, j: i < j)}, ValueError, "a journal"),
    ],
)
def test_wrong_parameters_are_refused(params, error, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judge = Judge()
    with pytest.raises(error, match=what):
        PreferenceRanker(**{"preference": judge, **params}).rank(ITEMS)
    assert not judge.asked
    assert not list(tmp_path.iterdir())


def test_a_journal_needs_keys_that_last(tmp_path):
    path = tmp_path / "answers.sqlite"
    with pytest.raises(TypeError, match=r"pass key=.* found an item of type dict"):
        PreferenceRanker(lambda u, v: True, journal=path).rank([{}, {}])
    with pytest.raises(TypeError, match="key= must return strings"):
        PreferenceRanker(lambda u, v: True, journal=path, key=lambda item: 1).rank([1, 2])
    (tmp_path / "text").write_text("not a database, and long enough to be looked at as one" * 9)
    with pytest.raises(OSError, match="cannot be opened"):
        PreferenceRanker(lambda u, v: True, journal=tmp_path / "no" / "folder").rank([1, 2])
    with pytest.raises(OSError, match="cannot be read"):
        PreferenceRanker(lambda u, v: True, journal=Journal(tmp_path / "text")).rank([1, 2])


def test_items_whose_answers_are_missing_stay_at_the_pivot_of_quicksort():
    met = []

    def asked(a, b):
        met.append((a, b))
        return a < b

    ranker = PreferenceRanker(asked, method="quicksort", max_calls=5, random_state=0)
    found = ranker.rank(list(range(10)))
    (pivot,) = set(met[0]).intersection(*met[1:])
    others = {item for pair in met for item in pair} - {pivot}
    before = {item for item in others if item < pivot}
    assert 0 < len(before) < 5
    assert set(found[: len(before)]) == before
    assert set(found[-(5 - len(before)) :]) == others - before


@pytest.mark.parametrize("concurrency", [2, 4])
def test_a_wrong_answer_among_others_loses_none_of_them(concurrency, tmp_path):
    together, wrong = threading.Barrier(concurrency), threading.Event()

    def judge(u, v):
        if not wrong.is_set() and together.wait(timeout=30) == 0:
            wrong.set()
            return 2.0
        wrong.wait()
        time.sleep(0.05)
        return u < v

    path = tmp_path / "answers.sqlite"
    ranker = PreferenceRanker(judge, method="degree", concurrency=concurrency, journal=path)
    with pytest.raises(PreferenceError, match=r"found 2\.0"):
        ranker.rank([1, 2, 3, 4])
    assert ranker.n_calls_ == concurrency
    assert len(ranker.pairs_) == concurrency - 1
    ranker.rank([1, 2, 3, 4])
    assert ranker.n_reused_ == concurrency - 1
    assert ranker.n_calls_ == 6 + 1  # the journal has the call that brought nothing, once


def test_a_progress_that_fails_loses_no_answer():
    def fail(_):
        raise ZeroDivisionError

    together = threading.Barrier(3)

    def judge(u, v):
        together.wait(timeout=30)
        return u < v

    ranker = PreferenceRanker(judge, method="degree", concurrency=3, progress=fail)
    with pytest.raises(ZeroDivisionError):
        ranker.rank([1, 2, 3])
    assert len(ranker.pairs_) == ranker.n_calls_ == 3


@pytest.mark.parametrize("method", METHODS)
def test_a_pair_is_listed_once(method):
    ranker = PreferenceRanker(from_scores(ITEMS), method=method, top_k=4, random_state=0)
    ranker.rank(ITEMS)
    pairs = [frozenset(pair) for pair in ranker.pairs_.tolist()]
    assert len(set(pairs)) == len(pairs) == len(ranker.degrees_)
    np.testing.assert_array_equal(
        np.bincount(ranker.pairs_.ravel(), minlength=40), ranker.n_answers_
    )


def test_halving_knows_whom_the_last_round_compared():
    # The last round is of 9 items and 36 pairs; the budget ends within it.
    scores = np.random.default_rng(3).random(9)
    for budget in [0, 5, 17, 35, 36]:
        ranker = PreferenceRanker(
            from_scores(scores), method="halving", top_k=1, max_calls=budget, random_state=0
        )
        ranker.rank(np.arange(9))
        met = np.bincount(ranker.pairs_.ravel(), minlength=9)
        place = np.empty(9, dtype=int)
        place[ranker.order_] = np.arange(9)
        i, j = ranker.pairs_.T
        right = np.where(place[i] < place[j], ranker.degrees_, 1 - ranker.degrees_)
        agree = (np.bincount(i, right, 9) + np.bincount(j, right, 9) + 0.5) / (met + 1)
        unmet = (8 - met) / 8
        np.testing.assert_allclose(ranker.certainty_, (1 - unmet) * agree + unmet / 2)
