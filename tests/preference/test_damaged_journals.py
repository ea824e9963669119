"""Journals that are damaged, not ours, of other items, or on a disk that is full."""

import random
import re
import signal
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from children import run
from rankcore.preference import Journal, PreferenceRanker

ITEMS = np.random.default_rng(3).permutation(30).tolist()


def judge(u, v):
    return u < v


def journal_with_answers(path):
    PreferenceRanker(judge, journal=path, random_state=0).rank(ITEMS)
    return path


def never(u, v):
    raise AssertionError("a journal is checked before any comparison")


@pytest.mark.parametrize(
    ("change", "value", "required"),
    [
        ("answers set degree", 7.0, r"a degree must be a number in \[0, 1\]; found 7.0"),
        ("answers set degree", -0.1, r"found -0.1"),
        ("answers set degree", float("inf"), r"found inf"),
        ("answers set degree", "yes", r"found 'yes'"),
        ("answers set degree", b"\x01", r"found b'\\x01'"),
        ("answers set first", b"1", "the key of an item must be a string; found"),
        ("answers set repeat", "x", "a repeat must be an integer from 0 on; found 'x'"),
        ("answers set repeat", -1, "found -1"),
        ("runs set calls", -5, "the number of calls must be an integer from 0 on; found -5"),
        ("runs set calls", "many", "found 'many'"),
        ("runs set calls", 2.5, "found 2.5"),
        ("runs set seed", "pears", "a seed must be a number of at most 39 digits; found 'pears'"),
        ("runs set seed", "-1", "found '-1'"),
        ("runs set seed", "1" * 5000, "found '1111"),
        ("runs set seed", b"1", "found b'1'"),
    ],
)
def test_what_no_ranker_has_written_is_refused(tmp_path, change, value, required):
    path = journal_with_answers(tmp_path / "answers.sqlite")
    with closing(sqlite3.connect(path)) as file:
        table, _, column = change.partition(" set ")
        key = "first, second" if table == "answers" else "run"
        one = f"({key}) = (select {key} from {table} limit 1)"
        file.execute(f"update {table} set {column} = ? where {one}", (value,))
        file.commit()
    for seed in (None, 0):
        ranker = PreferenceRanker(never, journal=Journal(path), random_state=seed, max_calls=100)
        with pytest.raises(ValueError, match=required) as caught:
            ranker.rank(ITEMS)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "table",
    ["create table answers (x)", "create table runs (x)", "create view answers as select 1"],
)
def test_tables_of_another_program_are_refused(tmp_path, table):
    path = tmp_path / "answers.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.execute(table)
    with pytest.raises(OSError, match=rf"the journal {str(path)!r} cannot be (read|written): "):
        PreferenceRanker(never, journal=path).rank(ITEMS)


def test_damaged_bytes_never_give_an_error_of_sqlite(tmp_path):
    """Refused by name, or the damage is where nothing is kept: then it gives an order."""
    whole = journal_with_answers(tmp_path / "answers.sqlite").read_bytes()
    damages, refused = random.Random(0), 0
    for number in range(120):
        data = bytearray(whole)
        if number % 3 == 2:
            del data[damages.randrange(len(data)) :]
        elif number % 3 == 1:
            start = damages.randrange(len(data))
            data[start : start + 64] = damages.randbytes(len(data[start : start + 64]))
        else:
            for _ in range(4):
                data[damages.randrange(len(data))] = damages.randrange(256)
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(data)
        ranker = PreferenceRanker(judge, journal=path, random_state=0)
        try:
            found = sorted(ranker.rank(ITEMS))
        except (OSError, ValueError) as error:
            found = str(error)
            refused += 1
        assert found == list(range(30)) or str(path) in found
    assert refused > 40


def test_a_journal_of_other_items_is_refused(tmp_path):
    path = journal_with_answers(tmp_path / "answers.sqlite")
    with pytest.raises(ValueError, match="answers about other items, none about these 3"):
        PreferenceRanker(never, journal=path).rank(["a", "b", "c"])
    assert PreferenceRanker(judge, journal=Journal(path, "words")).rank(["b", "a"]) == ["a", "b"]
    assert PreferenceRanker(judge, journal=path).rank([99, *ITEMS])[-1] == 99
    assert PreferenceRanker(never, journal=path).rank([]) == []


def test_keys_that_a_file_cannot_hold_are_refused_before_anyone_is_asked(tmp_path):
    ranker = PreferenceRanker(
        never, journal=tmp_path / "a.sqlite", key=lambda item: "\udc80" * item
    )
    with pytest.raises(ValueError, match="keys must be valid UTF-8"):
        ranker.rank([1, 2])


def small_disk(monkeypatch, pages):
    """Let files of SQLite grow to so many pages of 4 KB, as if the disk were full then."""
    connect = sqlite3.connect

    def limited(*args, **params):
        file = connect(*args, **params)
        file.execute(f"pragma max_page_count={pages[0]}")
        return file

    monkeypatch.setattr(sqlite3, "connect", limited)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_full_disk_is_named_and_loses_no_answer(tmp_path, monkeypatch, concurrency):
    items = [f"{k:04d} " + 400 * "x" for k in range(40)]
    path, pages, asked = tmp_path / "answers.sqlite", [12], []
    small_disk(monkeypatch, pages)

    def judge(u, v):
        asked.append((u, v))
        return u < v

    ranker = PreferenceRanker(judge, journal=path, concurrency=concurrency, random_state=0)
    with pytest.raises(OSError, match=rf"journal {str(path)!r} cannot be written: .*disk is full"):
        ranker.rank(items)
    assert len(ranker.pairs_) == len(asked) == ranker.n_calls_ > 5
    # Another process has what was committed before; this one also has what was under way.
    pages[0] = 100_000
    with closing(sqlite3.connect(path)) as file:
        (written,) = file.execute("select count(*) from answers").fetchone()
        assert file.execute("select calls from runs").fetchone() == (written,)
    assert len(asked) - concurrency <= written < len(asked)
    before = len(asked)
    assert ranker.rank(items) == sorted(items)
    assert ranker.n_reused_ == before
    assert len(asked) == len(set(asked)) == ranker.n_calls_
    other = PreferenceRanker(never, journal=path)
    assert other.set_params(random_state=0).rank(items) == sorted(items)
    assert other.n_calls_ == len(asked)  # what the full disk refused was paid for, too


LIMITED = """
import resource, signal, sys
from rankcore.preference import PreferenceRanker
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
ranker = PreferenceRanker(lambda u, v: u < v, journal=sys.argv[1], random_state=0)
try:
    ranker.rank(list(range(300)))
except OSError as error:
    print(len(getattr(ranker, "pairs_", [])), error)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs limits on files")
def test_files_that_may_not_grow(tmp_path):
    """The system's own refusal, at each of several sizes."""
    answered = []
    for size in (0, 2000, 40_000, 80_000):
        path = tmp_path / f"{size}.sqlite"
        status, output = run(LIMITED, path, size)
        assert status == 0, output
        found = re.fullmatch(r"(\d+) the journal '.*' cannot be (opened|read|written): .*\n",
                             output.decode())  # fmt: skip
        assert found, output
        answered.append(int(found[1]))
        ranker = PreferenceRanker(judge, journal=path, random_state=0)
        assert ranker.rank(list(range(300))) == list(range(300))
        assert ranker.n_reused_ >= answered[-1] - 1  # the last one was not written
    assert answered == sorted(answered)
    assert answered[-1] > 5
