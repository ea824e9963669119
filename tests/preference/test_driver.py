"""The ranker as a driver: calls, budgets, retries, concurrency and the journal."""

import asyncio
import contextvars
import functools
import json
import operator
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from rankcore.preference import (
    Batch,
    Choice,
    Indexed,
    Journal,
    Judges,
    Order,
    PreferenceError,
    PreferenceRanker,
)

METHODS = ["rating", "quicksort", "degree", "halving"]
ITEMS = np.random.default_rng(3).permutation(20).tolist()


def smaller(u, v):
    return u < v


async def smaller_later(u, v):
    await asyncio.sleep(0.001)
    return u < v


def slow_smaller(u, v):
    time.sleep(0.002 * random.random())
    return u < v


async def smaller_batch(pairs):
    await asyncio.sleep(0.001)
    return [u < v for u, v in pairs]


class SmallerLater:
    async def __call__(self, u, v):
        return u < v


FORMS = {
    "function": smaller,
    "async": smaller_later,
    "async object": SmallerLater(),
    "async batch": Batch(smaller_batch, size=6),
    "batch": Batch(lambda pairs: [u < v for u, v in pairs], size=6),
    "whole rounds": Batch(lambda pairs: [u < v for u, v in pairs]),
    "indexed": Indexed(lambda i, j: np.array(ITEMS)[i] < np.array(ITEMS)[j], 20),
    "matrix": np.subtract.outer(ITEMS, ITEMS) < 0,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_all_forms_give_the_order(form, method):
    ranker = PreferenceRanker(FORMS[form], method=method, max_calls=400, random_state=0)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert [ITEMS[place] for place in ranker.order_] == sorted(ITEMS)
    if method != "rating":
        assert ranker.complete_


async def best_later(items):
    return int(np.argmin(items))


@pytest.mark.parametrize(
    "judge", [Order(np.argsort, 4), Choice(np.argmin, 4), Choice(best_later, 4)]
)
def test_judges_of_several_items_find_the_top(judge):
    ranker = PreferenceRanker(judge, top_k=3, max_calls=300, random_state=0)
    assert ranker.rank(ITEMS) == [0, 1, 2]


@pytest.mark.parametrize("judge", [slow_smaller, smaller_later])
@pytest.mark.parametrize("method", METHODS)
def test_concurrency_does_not_change_the_result(judge, method):
    found = []
    for concurrency in (1, 8):
        noise = random.Random(0)
        wrong = {frozenset(noise.sample(range(20), 2)) for _ in range(30)}

        def errs(u, v, wrong=wrong):
            return (u < v) ^ (frozenset((u, v)) in wrong)

        async def errs_later(u, v, errs=errs):
            await asyncio.sleep(0.001 * random.random())
            return errs(u, v)

        ranker = PreferenceRanker(
            errs if judge is slow_smaller else errs_later,
            method=method,
            max_calls=100,
            concurrency=concurrency,
            random_state=0,
        )
        found.append((ranker.rank(ITEMS), ranker.n_calls_))
    assert found[0] == found[1]


def test_several_async_judges_give_the_order():
    judges = Judges({"ann": smaller_later, "bob": SmallerLater()})
    ranker = PreferenceRanker(judges, max_calls=300, concurrency=3, random_state=0)
    assert ranker.rank(ITEMS) == sorted(ITEMS)


def test_calls_run_in_parallel_up_to_the_concurrency():
    lock, now, most = threading.Lock(), [0], [0]

    def judge(u, v):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.005)
        with lock:
            now[0] -= 1
        return u < v

    PreferenceRanker(judge, method="degree", concurrency=5, random_state=0).rank(list(range(8)))
    assert most[0] == 5


def test_many_aranks_share_a_loop_and_one_can_be_cancelled():
    """More rankings than threads of the loop's executor, whose judges use it themselves."""
    calls = [0]

    async def judge(u, v):
        calls[0] += 1
        return await asyncio.to_thread(smaller, u, v)

    async def main():
        rankers = [PreferenceRanker(judge, concurrency=2, random_state=k) for k in range(40)]
        found = await asyncio.gather(*(ranker.arank(ITEMS[:5]) for ranker in rankers))
        slow = PreferenceRanker(smaller_later, concurrency=3, random_state=0)
        task = asyncio.create_task(slow.arank(ITEMS))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert 0 < slow.n_calls_ == slow.sampler_.n_answers
        assert not slow.complete_
        return found, await slow.arank(ITEMS)

    found, whole = asyncio.run(main())
    assert found == [sorted(ITEMS[:5])] * 40
    assert whole == sorted(ITEMS)


def test_judges_see_the_context_of_the_caller():
    caller = contextvars.ContextVar("caller", default="nobody")
    seen = set()

    def judge(u, v):
        seen.add(caller.get())
        return u < v

    async def later(u, v):
        return judge(u, v)

    caller.set("me")
    for one in (judge, later):
        PreferenceRanker(one, concurrency=2).rank(ITEMS)
    assert seen == {"me"}


def test_arank_awaits_in_a_running_loop_and_runs_functions_in_threads():
    async def main():
        found = []
        for judge in (smaller, smaller_later):
            ranker = PreferenceRanker(judge, concurrency=4, random_state=0)
            found.append(await ranker.arank(ITEMS))
        with pytest.raises(RuntimeError, match=r"await arank\(\)"):
            PreferenceRanker(smaller_later).rank(ITEMS)
        return found

    assert asyncio.run(main()) == [sorted(ITEMS)] * 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [0, 1, 17, 60])
def test_budgets_are_kept_and_count_requests(method, budget):
    calls = []

    def judge(pairs):
        calls.append(len(pairs))
        return [u < v for u, v in pairs]

    ranker = PreferenceRanker(Batch(judge, size=5), method=method, max_calls=budget, random_state=0)
    ranker.rank(ITEMS)
    assert len(calls) == ranker.n_calls_ <= budget
    assert sorted(ranker.order_) == list(range(20))
    if budget == 17:
        assert not ranker.complete_
        if method in ("rating", "degree"):
            assert calls == [5] * 17  # filled to their size


def test_second_rank_continues_from_the_answers_of_the_first():
    calls = []

    def judge(u, v):
        calls.append((u, v))
        return u < v

    ranker = PreferenceRanker(judge, method="quicksort", max_calls=20, random_state=0)
    ranker.rank(ITEMS)
    assert (len(calls), ranker.complete_) == (20, False)
    ranker.set_params(max_calls=None)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert ranker.n_reused_ == 20
    assert ranker.n_calls_ == len(calls) == len({frozenset(pair) for pair in calls})


def test_equal_items_are_one_item():
    calls = []

    def judge(u, v):
        calls.append((u, v))
        return u < v

    items = [3, 1, 3, 2, 1]
    ranker = PreferenceRanker(judge, random_state=0)
    assert ranker.rank(items) == [1, 1, 2, 3, 3]
    assert all(u != v for u, v in calls)
    assert ranker.ratings_.scores.size == 5
    assert PreferenceRanker(judge, key=str, top_k=2).rank(np.array(items)).tolist() == [1, 1]


# ---------------------------------------------------------------- failures


AWAY = ConnectionError("away")


class Flaky:
    """Fails so many times before each answer."""

    def __init__(self, failures, error=AWAY):
        self.failures, self.error, self.calls, self.left = failures, error, 0, {}

    def __call__(self, u, v):
        self.calls += 1
        left = self.left.setdefault((u, v), self.failures)
        if left:
            self.left[u, v] -= 1
            if isinstance(self.error, Exception):
                raise self.error
            return self.error
        return u < v


def no_wait(attempts):
    tenacity = pytest.importorskip("tenacity")
    return tenacity.Retrying(stop=tenacity.stop_after_attempt(attempts), reraise=True)


@pytest.mark.parametrize("error", [ConnectionError("away"), "garbage", 7.0, float("nan")])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_failures_and_garbage_are_repeated(error, concurrency):
    judge = Flaky(2, error)
    ranker = PreferenceRanker(judge, retry=no_wait(3), concurrency=concurrency, random_state=0)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert ranker.n_calls_ == judge.calls
    assert judge.calls % 3 == 0


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: Batch(lambda pairs: [f(*pairs[0])], 1)])
def test_last_failure_is_an_error_that_keeps_the_answers(wrap):
    judge = Flaky(0)

    def fails_later(u, v):
        if judge.calls == 30:
            raise ConnectionError("away")
        return judge(u, v)

    ranker = PreferenceRanker(wrap(fails_later), retry=no_wait(2), random_state=0)
    with pytest.raises(PreferenceError, match=r"failed 2 times .*: ConnectionError: away"):
        ranker.rank(ITEMS)
    assert ranker.sampler_.n_answers == 30
    assert not ranker.complete_
    copy = pickle.loads(pickle.dumps(PreferenceError((1, 2), 3, "away")))
    assert (copy.pair, copy.attempts, str(copy)) == (
        (1, 2),
        3,
        str(PreferenceError((1, 2), 3, "away")),
    )


def test_errors_of_the_code_of_a_judge_are_not_repeated():
    calls = []

    def judge(u, v):
        calls.append(1)
        return u.name < v.name

    with pytest.raises(PreferenceError, match="failed 1 time on .* AttributeError") as caught:
        PreferenceRanker(judge, retry=5).rank(ITEMS)
    assert len(calls) == 1
    assert isinstance(caught.value.__cause__, AttributeError)


def test_without_tenacity_there_is_one_attempt(monkeypatch):
    monkeypatch.setitem(sys.modules, "tenacity", None)
    judge = Flaky(1)
    with pytest.raises(PreferenceError, match="failed 1 time"):
        PreferenceRanker(judge, random_state=0).rank(ITEMS)
    with pytest.raises(ImportError, match=r"retry=3 requires tenacity: pip install"):
        PreferenceRanker(judge, retry=3).rank(ITEMS)


def test_policies_of_async_retries_are_rejected():
    tenacity = pytest.importorskip("tenacity")
    for judge in (smaller, smaller_later):
        with pytest.raises(TypeError, match=r"a tenacity.Retrying\(...\), which serves async"):
            PreferenceRanker(judge, retry=tenacity.AsyncRetrying()).rank(ITEMS)


@pytest.mark.parametrize("policy", [0, True, "often"])
def test_wrong_retries_are_rejected(policy):
    with pytest.raises((ValueError, TypeError), match="retry must be"):
        PreferenceRanker(smaller, retry=policy).rank(ITEMS)


def test_good_answers_of_a_batch_are_kept():
    asked = []

    def judge(pairs):
        asked.append(list(pairs))
        answers = [u < v for u, v in pairs]
        if len(asked) == 1:
            answers[2], answers[4] = "garbage", None
        return answers

    ranker = PreferenceRanker(
        Batch(judge, size=8), method="degree", retry=no_wait(2), random_state=0
    )
    ranker.rank(ITEMS)
    assert asked[1] == [asked[0][2]]  # the garbage alone is asked again
    assert sum(map(len, asked)) == 190 + 1
    assert ranker.sampler_.n_answers == 189  # and an abstention


def test_too_short_batches_are_repeated():
    sizes = []

    def judge(pairs):
        sizes.append(len(pairs))
        return [u < v for u, v in pairs][: len(pairs) - (len(sizes) == 1)]

    ranker = PreferenceRanker(Batch(judge, size=8), retry=no_wait(2), random_state=0)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert sizes[:2] == [8, 8]


@pytest.mark.parametrize("method", METHODS)
def test_pair_without_an_answer_does_not_stop_a_run(method):
    def judge(u, v):
        return None if {u, v} == {4, 5} else u < v

    ranker = PreferenceRanker(judge, method=method, max_calls=2000, random_state=0)
    order = ranker.rank(ITEMS)
    assert ranker.complete_
    assert sorted(order, key=lambda item: 4 if item == 5 else item) == order
    willing = PreferenceRanker(operator.lt, method=method, random_state=0)
    willing.rank(ITEMS)
    assert ranker.n_calls_ <= 2.5 * willing.n_calls_


def test_pair_without_an_answer_at_the_edge_of_the_top_does_not_cost_more():
    def judge(u, v):
        return None if {u, v} == {4, 5} else u < v

    ranker = PreferenceRanker(judge, top_k=5, max_calls=2000, random_state=0)
    top = ranker.rank(ITEMS)[:5]
    assert ranker.complete_
    assert set(top) in ({0, 1, 2, 3, 4}, {0, 1, 2, 3, 5})
    willing = PreferenceRanker(operator.lt, top_k=5, random_state=0)
    willing.rank(ITEMS)
    assert ranker.n_calls_ <= 2.5 * willing.n_calls_


def test_orders_counted_from_one_are_an_error_that_shows_the_answer():
    judge = Order(lambda items: [1 + k for k in np.argsort(items).tolist()], k=5)
    with pytest.raises(PreferenceError, match=r"integers from 0 to 4; got \["):
        PreferenceRanker(judge, max_calls=50, retry=1, random_state=0).rank(ITEMS)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("is_async", [False, True])
def test_interrupt_keeps_the_answers(concurrency, is_async):
    calls = []

    def judge(u, v):
        calls.append(1)
        if len(calls) == 25:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return u < v

    async def later(u, v):
        await asyncio.sleep(0.01)
        return judge(u, v)

    ranker = PreferenceRanker(later if is_async else judge, concurrency=concurrency, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        ranker.rank(ITEMS)
    assert 20 <= ranker.sampler_.n_answers <= 25 + 12 * concurrency
    before = len(calls)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert ranker.n_reused_ >= 20
    assert before <= len(calls) <= 190


def test_progress_counts_answered_and_running_apart():
    seen = []
    judges = Judges({"a": slow_smaller, "b": slow_smaller}, prices={"a": 1.0, "b": 2.0})
    ranker = PreferenceRanker(
        judges, max_calls=30, concurrency=3, progress=seen.append, random_state=0
    )
    ranker.rank(ITEMS)
    assert [one.answered for one in seen] == list(range(1, 31))
    assert seen[-1].calls == seen[-1].max_calls == 30
    assert max(one.running for one in seen) >= 1
    assert seen[-1].running == seen[-1].failed == 0
    assert seen[-1].cost == ranker.cost_ >= 30


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"method": "bubble"}, "method must be"),
        ({"top_k": 0}, "top_k must be"),
        ({"max_calls": -1}, "max_calls must be"),
        ({"noise": 0.7}, "noise must be"),
        ({"confidence": 1.5}, "confidence must be"),
        ({"concurrency": 0}, "concurrency must be"),
        ({"repeats": 0}, "repeats must be"),
        ({"key": 3}, "key must be a function or None"),
        (
            {"preference": Order(np.argsort, 3), "method": "degree"},
            "method must be 'rating' for judges",
        ),
        (
            {"preference": Judges({"a": smaller}), "method": "quicksort"},
            "method must be 'rating' for judges",
        ),
        ({"preference": np.eye(20), "journal": "x.sqlite"}, "must be called, not computed"),
    ],
)
def test_wrong_parameters_are_rejected(params, what):
    with pytest.raises((ValueError, TypeError), match=what):
        PreferenceRanker(**{"preference": smaller, **params}).rank(ITEMS)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (({},), "requires functions"),
        (([smaller],), "requires functions of two items by name"),
        (({"a": smaller, "b": 3},), "requires functions"),
        (({"a": smaller, "b": smaller_later},), "all be async, or none"),
        (({"a": smaller}, [1.0]), "prices must be given for each"),
        (({"a": smaller}, {"b": 1.0}), "prices must be given for each"),
        (({"a": smaller}, {"a": -1.0}), "price of a judge must be"),
        (({1: smaller, "1": smaller},), "names of Judges must differ"),
    ],
)
def test_wrong_judges_are_rejected(arguments, what):
    with pytest.raises((ValueError, TypeError), match=what):
        Judges(*arguments)


# ---------------------------------------------------------------- the journal


def rows_of(path, columns="*"):
    with closing(sqlite3.connect(path)) as file:
        return file.execute(f"select {columns} from comparisons order by id").fetchall()


@pytest.mark.parametrize("method", METHODS)
def test_resume_with_items_in_another_order_asks_nothing_twice(method, tmp_path):
    calls = []

    def judge(u, v):
        calls.append((u, v))
        return u < v

    journal = Journal(tmp_path / "answers.sqlite", judge="j")
    params = {"method": method, "max_calls": 40, "journal": journal}
    PreferenceRanker(judge, **params).rank(ITEMS)
    assert len(calls) == 40
    shuffled = random.Random(1).sample(ITEMS, 20)
    ranker = PreferenceRanker(judge, **{**params, "max_calls": 400})
    assert ranker.rank(shuffled) == sorted(ITEMS)
    assert ranker.n_reused_ >= (40 if method == "rating" else 35)
    if method != "rating":  # which repeats pairs
        assert len({frozenset(pair) for pair in calls}) == len(calls)
    asked = list(calls)
    # A subset reuses what is about its items, with another seed and batches too.
    half = [item for item in shuffled if item < 10]
    again = PreferenceRanker(
        Batch(lambda pairs: [judge(*pair) for pair in pairs], 4),
        method="rating",
        max_calls=1000,
        random_state=7,
        journal=journal,
    )
    again.rank(half)
    known = sum(u < 10 and v < 10 for u, v in asked)
    assert again.n_reused_ == known > 0


def test_answers_of_another_judge_or_run_are_not_reused_or_counted(tmp_path):
    path = tmp_path / "answers.sqlite"
    PreferenceRanker(smaller, journal=Journal(path, run="a")).rank(ITEMS)
    larger = lambda u, v: u > v  # noqa: E731
    for journal, judge in (
        (Journal(path, run="a"), slow_smaller),
        (Journal(path, run="a", judge="other"), larger),
        (Journal(path, run="b"), smaller),
        (Journal(path, run="a"), Judges({"ann": larger})),
    ):
        ranker = PreferenceRanker(judge, journal=journal, max_calls=30, method="rating")
        ranker.rank(ITEMS)
        assert (ranker.n_reused_, ranker.n_calls_) == (0, 30)
    same = PreferenceRanker(smaller, journal=Journal(path, run="a"))
    same.rank(ITEMS)
    assert same.n_reused_ > 50


class Prompted:
    def __init__(self, prompt):
        self.prompt = prompt

    def __call__(self, u, v):
        return u < v

    def judge(self, u, v):
        return u < v


def made(prompt):
    def judge(u, v):
        return bool(prompt) and u < v

    return judge


@pytest.mark.parametrize(
    "judge",
    [
        lambda u, v: u < v,
        made("which is smaller?"),
        functools.partial(smaller),
        Prompted("which is smaller?"),
        Prompted("which is smaller?").judge,
        Batch(lambda pairs: [u < v for u, v in pairs]),
        Choice(np.argmin, 2),
        operator.lt,
    ],
)
def test_judges_without_a_name_of_their_own_need_one_for_a_journal(tmp_path, judge):
    path = tmp_path / "answers.sqlite"
    params = {"method": "rating", "max_calls": 30}
    with pytest.raises(ValueError, match="a journal requires a name of the judge"):
        PreferenceRanker(judge, journal=path, **params).rank(ITEMS)
    assert not path.exists()
    PreferenceRanker(judge, journal=Journal(path, judge="j"), **params).rank(ITEMS)
    assert {name for (name,) in rows_of(path, "judge")} == {"j"}


def test_names_of_runs_and_judges_may_be_numbers(tmp_path):
    for reused in (0, 50):
        ranker = PreferenceRanker(
            smaller, journal=Journal(tmp_path / "a.sqlite", run=3, judge=4), random_state=0
        )
        assert ranker.rank(ITEMS) == sorted(ITEMS)
        assert ranker.n_reused_ >= reused
    assert ranker.n_reused_ == ranker.n_calls_


def test_answers_of_another_form_are_not_reused(tmp_path):
    """The second of two items as the best is position 1, not the degree 1 of the first."""
    journal = Journal(tmp_path / "answers.sqlite", judge="j")
    params = {"journal": journal, "max_calls": 120, "random_state": 0}
    judges = [Choice(np.argmin, 2), Order(np.argsort, 2), smaller]
    for k, judge in enumerate(judges):
        ranker = PreferenceRanker(judge, **{**params, "max_calls": 120 * (k + 1)})
        assert ranker.rank(ITEMS) == sorted(ITEMS)
        assert ranker.n_reused_ == 0


def test_journal_is_one_table_that_a_person_can_read(tmp_path):
    path = tmp_path / "answers.sqlite"
    judge = Flaky(1)
    ranker = PreferenceRanker(
        judge, journal=Journal(path, judge="j"), retry=no_wait(2), random_state=0
    )
    ranker.rank(["b", "a"])
    columns = "run, comparison, shown, judge, degree, failure"
    failed, answered = rows_of(path, columns)
    pair = answered[2]
    assert failed == ("", "[\"'a'\", \"'b'\"]", pair, answered[3], None, "ConnectionError: away")
    assert answered[4] == float(pair == "[\"'a'\", \"'b'\"]")
    assert answered[5] is None
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute("select name from sqlite_master where type = 'table'").fetchall()
    assert tables == [("comparisons",)]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("params", [{"confidence": 0.9}, {"max_calls": 70}, {"top_k": 3}])
def test_repeated_run_asks_nothing_and_gives_the_same_order(tmp_path, params, concurrency):
    noise, calls = random.Random(1), []

    def judge(u, v):
        calls.append((u, v))
        return None if {u, v} == {4, 5} else (u < v) ^ (noise.random() < 0.1)

    order, n_calls = None, None
    for repetition in range(2):
        ranker = PreferenceRanker(
            judge,
            method="rating",
            concurrency=concurrency,
            journal=Journal(tmp_path / "answers.sqlite", judge="j"),
            **params,
        )
        ranking = ranker.rank(random.Random(repetition).sample(ITEMS, 20))
        assert ranking == (order := order or ranking)
        assert len(calls) == (n_calls := n_calls or len(calls))
        assert ranker.complete_ == ("max_calls" not in params)
    assert ranker.n_calls_ == ranker.n_reused_ == n_calls


@pytest.mark.parametrize("stop", [3, 20, 39])
def test_interrupted_run_goes_on_as_if_it_had_not_stopped(tmp_path, stop):
    def judge(u, v):
        return (u < v) ^ (hash((u, v)) % 10 == 0)

    asked = []
    for name, stops in (("whole", []), ("parts", [stop, 2 * stop])):
        calls = []
        for max_calls in (*stops, 80):

            def counted(u, v, calls=calls):
                calls.append((u, v))
                return judge(u, v)

            journal = Journal(tmp_path / f"{name}.sqlite", judge="j")
            ranker = PreferenceRanker(
                counted, method="rating", max_calls=max_calls, journal=journal
            )
            found = ranker.rank(random.Random(max_calls).sample(ITEMS, 20))
        asked.append((calls, found))
    assert asked[0] == asked[1]


def test_orders_and_abstentions_are_journaled(tmp_path):
    path = tmp_path / "answers.sqlite"
    judge = Order(lambda items: None if 4 in items else np.argsort(items), k=4)
    params = {"max_calls": 30, "journal": Journal(path, judge="j"), "random_state": 0}
    first = PreferenceRanker(judge, **params)
    first.rank(ITEMS)
    never = Order(lambda items: 1 / 0, k=4)
    again = PreferenceRanker(never, **params)
    assert again.rank(ITEMS) == first.rank(ITEMS)
    assert again.n_reused_ == 30


CHILD = """
import random, sys, time
from rankcore.preference import PreferenceRanker

def judge(u, v):
    with open(sys.argv[2], "a") as log:
        log.write(f"{u} {v}\\n")
    time.sleep(0.002)
    return u < v

items = random.Random(int(sys.argv[3])).sample(range(30), 30)
params = {"method": sys.argv[4], "journal": sys.argv[1]}
ranker = PreferenceRanker(judge, concurrency=4, max_calls=250, **params)
print(ranker.rank(items) == list(range(30)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["quicksort", "rating"])
def test_killed_runs_repeat_at_most_the_calls_in_progress(method, tmp_path):
    journal, log = tmp_path / "answers.sqlite", tmp_path / "log.txt"
    command = [sys.executable, "-c", CHILD, str(journal), str(log)]
    for kill in range(4):
        child = subprocess.Popen([*command, str(kill), method], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (
            not log.exists() or len(log.read_text().splitlines()) < 20 * (kill + 1)
        ):
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.wait()
    done = subprocess.run([*command, "9", method], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    calls, rows = log.read_text().splitlines(), rows_of(journal, "shown")
    assert len(calls) - len(rows) <= 4 * 4
    if method == "quicksort":
        assert done.stdout.strip() == "True"
        pairs = [frozenset(json.loads(shown)) for (shown,) in rows]
        assert len(set(pairs)) == len(pairs)  # what the journal has was not asked again
        assert len({frozenset(call.split()) for call in calls}) >= len(pairs)


@pytest.mark.parametrize("change", ["degree = 7.0", "degree = 'yes'", "request = 'x'"])
def test_journals_accept_no_values_out_of_range(tmp_path, change):
    path = tmp_path / "answers.sqlite"
    PreferenceRanker(smaller, journal=path).rank(ITEMS)
    with closing(sqlite3.connect(path)) as file, pytest.raises(sqlite3.IntegrityError):
        file.execute(f"update comparisons set {change} where id = 3")


@pytest.mark.parametrize(
    ("change", "required"),
    [
        ("shown = 'x'", "Expecting value"),
        ("shown = '1'", "not iterable"),
        ("degree = null, answer = 'x'", "Expecting value"),
    ],
)
def test_damaged_rows_are_an_error_with_the_path(tmp_path, change, required):
    path = tmp_path / "answers.sqlite"
    PreferenceRanker(smaller, journal=path).rank(ITEMS)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"update comparisons set {change} where id = 3")
        file.commit()
    calls = []
    with pytest.raises(OSError, match=f"cannot be read: .*{required}") as caught:
        PreferenceRanker(
            lambda u, v: calls.append(1), journal=Journal(path, judge=f"{__name__}.smaller")
        ).rank(ITEMS)
    assert str(path) in str(caught.value)
    assert calls == []


def test_files_that_are_not_journals_are_rejected_by_name(tmp_path):
    path = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.execute("create table comparisons (x)")
    with pytest.raises(OSError, match="cannot be (read|written)"):
        PreferenceRanker(smaller, journal=path).rank(ITEMS)
    path.write_bytes(b"not a database, of some length" * 40)
    with pytest.raises(OSError, match=r"answers.sqlite' cannot be"):
        PreferenceRanker(smaller, journal=path).rank(ITEMS)
    with pytest.raises(OSError, match="cannot be opened"):
        PreferenceRanker(smaller, journal=tmp_path / "none" / "x.sqlite").rank(ITEMS)


def test_damaged_bytes_are_an_error_with_the_path_or_an_order(tmp_path):
    whole = tmp_path / "answers.sqlite"
    PreferenceRanker(smaller, journal=whole, random_state=0).rank(ITEMS)
    data, damages, rejected = whole.read_bytes(), random.Random(0), 0
    for number in range(60):
        damaged = bytearray(data)
        if number % 2:
            del damaged[damages.randrange(len(damaged)) :]
        else:
            start = damages.randrange(len(damaged))
            damaged[start : start + 64] = damages.randbytes(len(damaged[start : start + 64]))
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(damaged)
        try:
            found = sorted(PreferenceRanker(smaller, journal=path).rank(ITEMS))
        except (OSError, ValueError) as error:
            found = str(error)
            rejected += 1
        assert found == sorted(ITEMS) or str(path) in found
    assert rejected > 10


def test_items_without_lasting_keys_need_a_key(tmp_path):
    items = [{"n": 2}, {"n": 1}]
    params = {"journal": Journal(tmp_path / "a.sqlite", judge="j"), "random_state": 0}
    with pytest.raises(TypeError, match="pass key="):
        PreferenceRanker(lambda u, v: u["n"] < v["n"], **params).rank(items)
    with pytest.raises(TypeError, match="keys that are strings: pass key="):
        PreferenceRanker(smaller, key=lambda item: item["n"], **params).rank(items)
    ranker = PreferenceRanker(
        lambda u, v: u["n"] < v["n"], key=lambda item: str(item["n"]), **params
    )
    assert ranker.rank(items) == items[::-1]


POLICIES = {
    "one attempt": lambda tenacity: 1,
    "default": lambda tenacity: None,
    "all errors": lambda tenacity: tenacity.Retrying(
        stop=tenacity.stop_after_attempt(4), retry=tenacity.retry_if_exception(lambda error: True)
    ),
    "handled": lambda tenacity: tenacity.Retrying(
        stop=tenacity.stop_after_attempt(4), retry_error_callback=lambda state: None
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("judge", [smaller, smaller_later])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_full_disk_is_raised_and_loses_only_calls_in_progress(
    tmp_path, monkeypatch, policy, judge, concurrency
):
    tenacity = pytest.importorskip("tenacity")
    from rankcore.preference.journal import OpenJournal

    write, written = OpenJournal.write, []

    def full(self, records):
        if len(written) > 10:
            raise OSError(28, "No space left on device")
        written.extend(records)
        write(self, records)

    journal = Journal(tmp_path / "a.sqlite", judge="j")
    ranker = PreferenceRanker(
        judge, journal=journal, retry=POLICIES[policy](tenacity), concurrency=concurrency
    )
    monkeypatch.setattr(OpenJournal, "write", full)
    with pytest.raises(OSError, match="No space left"):
        ranker.rank(ITEMS)
    before = ranker.n_calls_
    assert 11 < before <= 11 + concurrency
    assert ranker.sampler_.n_answers == before
    monkeypatch.setattr(OpenJournal, "write", write)
    assert ranker.rank(ITEMS) == sorted(ITEMS)
    assert ranker.n_reused_ == 11  # calls that could not be written are made again
    rows = rows_of(tmp_path / "a.sqlite", "failure")
    assert len(rows) == ranker.n_calls_ > before
    assert set(rows) == {(None,)}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("judge", [smaller, smaller_later])
@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("mine"), IndexError("mine")])
def test_errors_in_progress_callbacks_propagate(policy, judge, error):
    tenacity = pytest.importorskip("tenacity")
    seen = []

    def progress(state):
        seen.append(state)
        if len(seen) == 5:
            raise error

    ranker = PreferenceRanker(
        judge, progress=progress, retry=POLICIES[policy](tenacity), random_state=0
    )
    with pytest.raises(type(error)) as caught:
        ranker.rank(ITEMS)
    assert caught.value is error
    assert (ranker.n_calls_, ranker.sampler_.n_answers, seen[-1].failed) == (5, 5, 0)
    ranker.progress = None
    assert ranker.rank(ITEMS) == sorted(ITEMS)


@pytest.mark.parametrize("make", [lambda f: f, lambda f: Batch(lambda pairs: [f(*pairs[0])], 1)])
@pytest.mark.parametrize("is_async", [False, True])
def test_callbacks_of_a_retry_policy_are_called(make, is_async):
    tenacity = pytest.importorskip("tenacity")
    called = []
    policy = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(2),
        before=lambda state: called.append("before"),
        after=lambda state: called.append("after"),
        before_sleep=lambda state: called.append("before_sleep"),
        retry_error_callback=lambda state: called.append("error"),
    )
    never = {(4, 5), (5, 4)}

    def judge(u, v):
        if (u, v) in never:
            raise ConnectionError("away")
        return u < v

    async def later(u, v):
        return judge(u, v)

    one = make(later if is_async and make(judge) is judge else judge)
    ranker = PreferenceRanker(one, method="degree", retry=policy, random_state=0)
    ranker.rank(list(range(8)))
    assert called.count("before") == ranker.n_calls_ == 28 + 1
    assert [name for name in called if name != "before"] == [
        "after", "before_sleep", "after", "error"
    ]  # fmt: skip
    assert ranker.complete_  # the pair that failed counts as an abstention
    assert ranker.sampler_.n_answers == 27


def test_errors_in_callbacks_of_a_retry_policy_propagate():
    tenacity = pytest.importorskip("tenacity")

    def broken(state):
        raise LookupError("mine")

    policy = tenacity.Retrying(stop=tenacity.stop_after_attempt(3), before_sleep=broken)
    with pytest.raises(LookupError, match="mine"):
        PreferenceRanker(Flaky(1), retry=policy).rank(ITEMS)


def test_batch_without_a_size_takes_all_comparisons_in_one_call():
    batch = Batch(lambda pairs: [first < second for first, second in pairs])
    ranker = PreferenceRanker(batch, method="degree", max_calls=1, random_state=0)
    assert ranker.rank([3, 1, 4, 0, 2]) == [0, 1, 2, 3, 4]
    assert ranker.n_calls_ == 1
    assert ranker.complete_
