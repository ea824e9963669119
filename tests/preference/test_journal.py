"""Runs that are killed go on where they stopped."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest

from rankcore.preference import Journal, PreferenceError, PreferenceRanker, Retry


def judge(u, v):
    return (u * 7919 + v * 104729) % 10 < 3 if u % 3 == v % 3 else u < v  # not transitive


ITEMS = list(range(150))
# A process that forks one for each ranking: importing takes longer than ranking.
RUN = """
import os, sys, time
from rankcore.preference import Journal, PreferenceRanker
sys.path.insert(0, sys.argv[4])
from test_journal import ITEMS, judge

def slow(u, v):
    with open(sys.argv[2], "a") as log:
        log.write(f"{u} {v}\\n")
    time.sleep(0.004)
    return judge(u, v)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        journal = Journal(sys.argv[1], run="r")
        ranker = PreferenceRanker(slow, journal=journal, concurrency=int(sys.argv[3]))
        print(*ranker.rank(ITEMS), ranker.n_calls_, ranker.complete_, flush=True)
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


def answers(path):
    with closing(sqlite3.connect(path)) as file:
        found = file.execute("select first, second from answers").fetchall()
    return {f"{u} {v}" for u, v in found}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("concurrency", [1, 4])
def test_fifty_kills_ask_no_answer_twice(tmp_path, concurrency):
    path, log = tmp_path / "answers.sqlite", tmp_path / "asked.log"
    log.touch()
    command = [sys.executable, "-c", RUN, str(path), str(log), str(concurrency)]
    command.append(str(Path(__file__).parent))
    moments = random.Random(concurrency)
    kept, under_way = set(), 0
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True, bufsize=1) as process:
        for _ in range(50):
            asked = log.read_text().count("\n")
            process.stdin.write("\n")
            child = int(process.stdout.readline())
            # At a random moment after its first call, so that there are 50 of them.
            while log.read_text().count("\n") == asked:
                time.sleep(0.001)
            time.sleep(moments.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == "ended\n"
            fresh = set(log.read_text().splitlines()[asked:])
            # What it asked was not answered before it began, and it lost but what was under way.
            assert not fresh & kept
            kept = answers(path)
            assert len(fresh - kept) <= concurrency
            under_way += len(fresh - kept)
        process.stdin.write("\n")
        process.stdout.readline()
        found = process.stdout.readline().split()
        process.stdin.close()
    lines = log.read_text().splitlines()
    assert len(lines) - len(set(lines)) <= under_way

    # The same run without kills, by the seed that the journal has.
    with closing(sqlite3.connect(path)) as file:
        (seed,) = file.execute("select seed from runs").fetchone()
    whole = PreferenceRanker(judge, random_state=int(seed))
    order = whole.rank(ITEMS)
    assert found == [*map(str, order), str(whole.n_calls_), "True"]
    assert len(set(lines)) == whole.n_calls_


def test_a_budget_is_that_of_the_run(tmp_path):
    path = tmp_path / "answers.sqlite"
    asked = []

    def judge(u, v):
        asked.append((u, v))
        if len(asked) == 25:
            raise TimeoutError
        return u > v

    once = Retry(attempts=1)
    ranker = PreferenceRanker(judge, journal=path, max_calls=60, retry=once, random_state=0)
    with pytest.raises(PreferenceError):
        ranker.rank(list(range(40)))
    again = PreferenceRanker(judge, journal=path, max_calls=60, retry=once, random_state=0)
    again.rank(list(range(40)))
    assert len(asked) == again.n_calls_ == 60
    assert again.n_reused_ == 24
    assert not again.complete_
    spent = PreferenceRanker(judge, journal=path, max_calls=60, random_state=0)
    assert spent.rank(list(range(40))) == again.rank(list(range(40)))
    assert len(asked) == 60


def test_runs_in_one_file_and_other_keys(tmp_path):
    path = tmp_path / "answers.sqlite"
    items = [{"id": name} for name in "cab"]
    orders = {}
    for run, sign in (("up", 1), ("down", -1)):
        ranker = PreferenceRanker(
            lambda u, v, s=sign: s * ord(u["id"]) < s * ord(v["id"]),
            method="degree",
            journal=Journal(path, run=run),
            key=lambda item: item["id"],
        )
        orders[run] = "".join(item["id"] for item in ranker.rank(items))
    assert orders == {"up": "abc", "down": "cba"}

    def never(u, v):
        raise AssertionError("the journal knows")

    ranker = PreferenceRanker(
        never, method="degree", journal=Journal(path, run="down"), key=lambda item: item["id"]
    )
    assert [item["id"] for item in ranker.rank(items)] == ["c", "b", "a"]
    assert ranker.rank(items[::-1])[0] == {"id": "c"}


def test_repeats_and_orders_are_kept_apart(tmp_path):
    path = Path(tmp_path) / "answers.sqlite"
    answers_ = iter([1.0, 0.5, 0.25, 0.0])
    first = PreferenceRanker(lambda u, v: next(answers_), journal=path, repeats=2, both_orders=True)
    first.rank(["a", ("b", 1)])
    again = PreferenceRanker(lambda u, v: 1 / 0, journal=path, repeats=2, both_orders=True)
    again.rank(["a", ("b", 1)])
    assert first.degrees_.tolist() == again.degrees_.tolist() == [(1 + 0.5 + 0.75 + 1) / 4]


def test_one_ranker_and_several_runs(tmp_path):
    path = tmp_path / "answers.sqlite"
    answer = [True]
    ranker = PreferenceRanker(
        lambda u, v: answer[0], journal=Journal(path, run="a"), random_state=1
    )
    first = ranker.rank([1, 2])
    answer[0] = False
    assert ranker.rank([1, 2]) == first  # the journal knows
    other = ranker.set_params(journal=Journal(path, run="b"))
    assert other.rank([1, 2]) == first[::-1]
    assert other.n_reused_ == 0
    # A seed that was given is not in the journal: another ranker draws the one that is.
    unseeded = PreferenceRanker(lambda u, v: 1 / 0, journal=Journal(path, run="a"))
    assert unseeded.rank([1, 2]) == first


def test_a_journal_that_another_process_writes_to_is_named(tmp_path, monkeypatch):
    path = tmp_path / "answers.sqlite"
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kw: connect(*args, timeout=0.01, **kw))
    other = connect(path, isolation_level=None)
    asked = []

    def judge(u, v):
        asked.append((u, v))
        if len(asked) == 2:
            other.execute("begin immediate")
        return u < v

    ranker = PreferenceRanker(judge, method="degree", journal=path)
    with pytest.raises(OSError, match="cannot be written: database is locked; one process"):
        ranker.rank([3, 1, 2])
    assert len(ranker.pairs_) == 2  # the answer that could not be written is known all the same
    with pytest.raises(OSError, match="cannot be written"):
        PreferenceRanker(judge, journal=path).rank([3, 1, 2])
    other.execute("rollback")
    other.close()
    assert ranker.rank([3, 1, 2]) == [1, 2, 3]
    assert len(asked) == 3


def test_items_of_arrays_have_the_keys_of_those_of_lists(tmp_path):
    words = ["fig", "date", "apple"]
    first = PreferenceRanker(lambda u, v: u < v, journal=tmp_path / "answers.sqlite")
    assert first.rank(np.array(words)).tolist() == sorted(words)
    again = PreferenceRanker(lambda u, v: 1 / 0, journal=tmp_path / "answers.sqlite")
    assert again.rank(words) == sorted(words)
    assert again.n_reused_ == first.n_calls_
