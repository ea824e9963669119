"""RankBoost on a cluster: the same model to the bit for any shards, and the stumps of memory."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from fractions import Fraction
from itertools import pairwise
from math import ldexp

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._ext.exact_sums import bin_sums, to_fixed
from rankcore.boosting._given_bins import GivenBins, ValueGroups
from rankcore.boosting._shared_rounds import BITS, exponent_of
from rankcore.boosting._stump_shard import CENTRE, Move, PairedLabels, StumpShard
from rankcore.datasets import dump_letor, load_letor, make_bipartite, make_letor

pytest.importorskip("distributed", reason="needs the dask extra")

import dask
from dask import delayed
from distributed import Client, LocalCluster
from distributed.security import Security

import rankcore.dask as rd
from rankcore.dask import _engine, _rounds
from rankcore.dask._rounds import BELOW, Question, WorkerLost, tree_of

STUMP = ["feature", "threshold", "missing"]


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(84, 12, n_features=90, random_state=0)
    rng = np.random.default_rng(0)
    X = np.round(X[:, ::4], 2)
    X[rng.random(X.shape) < 0.3] = 0
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, y, qid


@pytest.fixture(scope="module")
def labels():
    X, y = make_bipartite(4200, 300, random_state=0)
    return sp.csr_matrix(X), y


def blocks(n, *arrays):
    """Lists of delayed blocks of equal length."""
    size = arrays[0].shape[0] // n
    return [[delayed(array[size * k : size * (k + 1)]) for k in range(n)] for array in arrays]


def same(found, expected):
    """Whether two models are equal to the bit, and so is all that is known of their rounds."""
    return (
        found.estimators_.tolist() == expected.estimators_.tolist()
        and found.history_ == expected.history_
    )


def close(found, expected):
    """Sums of other order: the stumps are equal, figures to rounding."""
    assert found.estimators_[STUMP].tolist() == expected.estimators_[STUMP].tolist()
    assert np.allclose(found.estimators_["alpha"], expected.estimators_["alpha"], rtol=1e-9)
    for name, values in expected.history_.items():
        assert np.allclose(found.history_[name], values, rtol=1e-9), name


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"step": "discrete", "smoothing": 0.01},
        {"missing": "zero", "balance": None, "learning_rate": 0.5, "max_bins": 9},
    ],
)
def test_shards_of_queries_change_nothing(params, client, queries):
    X, y, qid = queries
    expected = rc.RankBoost(12, **params).fit(X, y, qid=qid)
    models = []
    for kind, n in [(np.asarray, 1), (np.asarray, 4), (sp.csr_matrix, 2), (sp.csr_matrix, 7)]:
        bX, by, bq = blocks(n, kind(X), y, qid)
        model = rd.RankBoost(12, **params).fit(bX, by, qid=bq, n_shards=n)
        models.append(model.to_local())
    assert all(same(model, models[0]) for model in models)
    close(models[0], expected)
    assert type(models[0]) is rc.RankBoost
    assert models[0]._largest_query == expected._largest_query


@pytest.mark.parametrize("name", ["RankBoost", "BipartiteRankBoost"])
def test_auto_rounds_and_rate_are_those_of_stumps(name, client, queries):
    X, y, qid = queries
    bX, by, bq = blocks(2, X, y, qid)
    model = getattr(rd, name)()
    model.fit(bX, by, qid=bq, n_shards=2, callbacks=[lambda now: now.number == 2])
    assert (model.n_estimators_, model.learning_rate_) == (300, 1.0)
    local = model.to_local()
    assert (local.n_iter_, local.n_estimators_, local.learning_rate_) == (2, 300, 1.0)
    close(local, getattr(rc, name)(2, learning_rate=1).fit(X, y, qid=qid))


@pytest.mark.parametrize("step", ["third", "exact", "mohri"])
def test_shards_of_one_query_change_nothing(step, client, labels):
    X, y = labels
    expected = rc.BipartiteRankBoost(25, step=step).fit(X, y)
    # A shard may lack a label.
    order = np.argsort(y, kind="stable")
    models = [
        rd.BipartiteRankBoost(25, step=step)
        .fit(*blocks(n, X[rows], y[rows]), n_shards=n)
        .to_local()
        for n, rows in [(1, order), (4, np.arange(4200)), (7, order)]
    ]
    assert all(same(model, models[0]) for model in models)
    close(models[0], expected)


def test_bipartite_queries(client, queries):
    X, y, qid = queries
    expected = rc.BipartiteRankBoost(10, rel=2).fit(X, y, qid=qid)
    models = []
    for n in [1, 3]:
        bX, by, bq = blocks(n, X, y, qid)
        model = rd.BipartiteRankBoost(10, rel=2).fit(bX, by, qid=bq, n_shards=n)
        models.append(model.to_local())
    assert same(*models)
    close(models[0], expected)


def test_many_values_have_the_same_bins_in_any_shards(client):
    X, y, qid = make_letor(140, 120, n_features=90, random_state=0)
    many = [f for f in range(90) if np.unique(X[:, f]).size > 8192]
    X = np.ascontiguousarray(X[:, many[:4]])
    assert X.shape[1] == 4
    models = []
    for n in [1, 7]:
        bX, by, bq = blocks(n, X, y, qid)
        models.append(rd.RankBoost(5).fit(bX, by, qid=bq, n_shards=n).to_local())
    assert same(*models)
    memory = rc.RankBoost(5).fit(X, y, qid=qid)
    assert np.allclose(models[0].history_["bound"], memory.history_["bound"], rtol=1e-2)


def test_workers_read_files(client, queries, tmp_path):
    X, y, qid = queries
    X = np.nan_to_num(X)
    dump_letor(X, y, tmp_path / "rows.txt", qid=qid)
    models = [rd.RankBoost(6).fit(tmp_path / "rows.txt", n_shards=n).to_local() for n in [1, 5]]
    assert same(*models)
    data = load_letor(tmp_path / "rows.txt")
    close(models[0], rc.RankBoost(6).fit(data.X, data.y, qid=data.qid))


@pytest.mark.parametrize(("n_workers", "n_threads"), [(7, 1), (2, 3), (1, 1)])
def test_workers_and_their_threads_change_nothing(n_workers, n_threads, client, queries):
    bX, by, bq = blocks(7, *queries)
    expected = rd.RankBoost(8, step="discrete").fit(bX, by, qid=bq, n_shards=7, client=client)
    with Client(
        n_workers=n_workers, threads_per_worker=n_threads, processes=False, dashboard_address=":0"
    ) as other:
        found = rd.RankBoost(8, step="discrete").fit(bX, by, qid=bq, n_shards=7, client=other)
    assert same(found, expected)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 22])
def test_a_tree_asks_every_worker_once(n):
    def reached(tree):
        assert len(tree.below) <= BELOW
        return [tree[:2], *(one for branch in tree.below for one in reached(branch))]

    actors = [(f"tcp://host:{k}", f"actor-{k}") for k in range(n)]
    assert sorted(reached(tree_of(actors))) == sorted(actors)


def test_workers_speak_by_the_security_of_the_cluster(queries):
    pytest.importorskip("cryptography", reason="makes certificates")
    bX, by, bq = blocks(2, *queries)
    plain = rc.RankBoost(4).fit(queries[0], queries[1], qid=queries[2])
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tls",
            security=Security.temporary(),
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        assert all(address.startswith("tls:") for address in client.nthreads())
        close(rd.RankBoost(4).fit(bX, by, qid=bq, n_shards=2, client=client), plain)


def test_workers_that_are_lost_again_and_again(client, queries, monkeypatch):
    def lose(*_):
        raise WorkerLost("tcp://gone is gone")

    monkeypatch.setattr(_rounds, "make_rounds", lose)
    bX, by, bq = blocks(2, *queries)
    model = rd.RankBoost(4)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 2}),
        pytest.raises(RuntimeError, match=r"lost with 3 workers, .* \(tcp://gone is gone\)"),
    ):
        model.fit(bX, by, qid=bq, n_shards=2, client=client)
    assert not hasattr(model, "_state")


def test_an_error_of_any_worker_is_raised(queries, monkeypatch):
    """Of seven workers, one asks others by way of another."""
    n_rows = 24
    original = StumpShard.look

    def fail(self, *args):
        if self.bins.n_rows == n_rows:
            raise ZeroDivisionError("of one shard")
        return original(self, *args)

    monkeypatch.setattr(StumpShard, "look", fail)
    X, y, qid = queries
    with Client(
        n_workers=7, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as client:
        for odd in range(7):
            starts = np.cumsum([0, *(n_rows if k == odd else 48 for k in range(7))])
            shards = [[delayed(one[a:b]) for a, b in pairwise(starts)] for one in (X, y, qid)]
            with pytest.raises(ZeroDivisionError, match="of one shard"):
                rd.RankBoost(4).fit(*shards[:2], qid=shards[2], n_shards=7, client=client)


def test_workers_that_cannot_reach_each_other(client, queries, monkeypatch):
    monkeypatch.setattr(_rounds, "CONNECTED", 0)
    bX, by, bq = blocks(2, *queries)
    with pytest.raises(RuntimeError, match=r"does not answer.*check that workers can connect"):
        rd.RankBoost(4).fit(bX, by, qid=bq, n_shards=2, client=client)


def test_a_question_is_one_frame_however_many_moves():
    from distributed.protocol import serialize

    moves = [Move(1, k, 0, 0.5) for k in range(100)]
    for question in (Question("look", 0, [], ()), Question("look", 0, moves, ((3,), True))):
        header, frames = serialize(_engine.to_serialize(question))
        assert len(frames) == 1
        assert "sub-headers" not in header


def test_actors_that_do_not_have_their_shards(client, queries, monkeypatch):
    """The root is not there, another actor is not, or it is new and lacks moves."""
    bX, by, bq = blocks(2, *queries)
    original = _rounds.make_rounds

    def of_no_root(root, *args):
        return original(root._replace(key="none"), *args)

    monkeypatch.setattr(_rounds, "make_rounds", of_no_root)
    with pytest.raises(RuntimeError, match="has lost its shards"):
        rd.RankBoost(4).fit(bX, by, qid=bq, n_shards=2, client=client)
    monkeypatch.undo()

    async def answer(self, *args):
        (below,) = self._below or (None,)
        if below is not None:
            self._below = (below._replace(key="none"),)
        return await ask(self, *args)

    ask = _rounds.ShardActor.answer
    monkeypatch.setattr(_rounds.ShardActor, "answer", answer)
    with pytest.raises(RuntimeError, match="has lost its shards"):
        rd.RankBoost(4).fit(bX, by, qid=bq, n_shards=2, client=client)

    async def late(self, question):
        return await ask(self, question._replace(start=question.start + (not self._below)))

    monkeypatch.setattr(_rounds.ShardActor, "answer", late)
    with pytest.raises(RuntimeError, match="does not have the first 1 moves"):
        rd.RankBoost(4).fit(bX, by, qid=bq, n_shards=2, client=client)


def test_an_actor_that_cannot_begin(client, queries, monkeypatch):
    def refuse(*_):
        raise ValueError("no such worker")

    monkeypatch.setattr(_rounds.ShardActor, "__init__", refuse)
    bX, by, bq = blocks(2, *queries)
    with pytest.raises(ValueError, match="no such worker"):
        rd.RankBoost(4).fit(bX, by, qid=bq, n_shards=2, client=client)


def test_fits_at_once_do_not_wait_for_each_other(queries):
    """Each of two workers is the root of one fit and below in others."""
    bX, by, bq = blocks(2, *queries)
    with Client(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as client:
        expected = rd.RankBoost(60).fit(bX, by, qid=bq, n_shards=2, client=client)

        def fit(_):
            return rd.RankBoost(60).fit(bX, by, qid=bq, n_shards=2, client=client)

        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(fit, range(6), timeout=120))
    assert all(same(one, expected) for one in found)


def test_who_held_a_shard_before_does_not_disturb():
    shard, _, _ = shard_of()
    old, new = (copy(shard) for _ in range(2))
    sums = new.look((), (50, 50), True)
    expected = [one.copy() for one in sums.bins]
    old.look([Move(0, 3, 0, 0.4)], (50, 50), True)
    assert all(map(np.array_equal, sums.bins, expected))
    assert old.bins is new.bins


def test_what_shards_cannot_share(client, queries):
    X, y, qid = queries
    bX, by, bq = blocks(3, X, y, qid)
    for params, message in [
        ({"max_leaf_nodes": 4}, "requires max_leaf_nodes=2"),
        ({"max_bins": None}, "requires max_bins"),
        ({"select": "normalizer"}, "requires select='edge'"),
        ({"early_stopping_rounds": 3}, "early_stopping_rounds requires eval_set"),
    ]:
        model = rd.RankBoost(3, **params)
        with pytest.raises(ValueError, match=message):
            model.fit(bX, by, qid=bq, n_shards=3)
        assert not hasattr(model, "_state")
    with pytest.raises(ValueError, match="all rows belong to one query, divided among 3 shards"):
        rd.RankBoost(3).fit(bX, by, n_shards=3)
    with pytest.raises(ValueError, match="nothing to learn from"):
        rd.RankBoost(3).fit(bX, blocks(3, y * 0)[0], qid=bq, n_shards=3)
    with pytest.raises(ValueError, match="labels of rankers must be numbers"):
        rd.RankBoost(3).fit(bX, blocks(3, np.where(y > 1, "b", "a"))[0], qid=bq, n_shards=3)
    bX, by, bq = blocks(4, X, y, np.arange(y.size) // 100)
    with pytest.raises(ValueError, match="has rows in shards 0 and 1"):
        rd.RankBoost(3).fit(bX, by, qid=bq, n_shards=4)


def test_nothing_is_left_on_the_workers(client, queries):
    import time

    bX, by, bq = blocks(2, *queries)
    rd.RankBoost(3).fit(bX, by, qid=bq, n_shards=2)

    def tasks(dask_scheduler):
        return [key for key in dask_scheduler.tasks if "rank" in str(key)]

    for _ in range(50):  # they are dropped a moment later
        if not (left := client.run_on_scheduler(tasks)):
            break
        time.sleep(0.1)
    assert left == []


# ------------------------------------------------------------------------------ sums


def shard_of(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(n, 3)).astype(float)
    rows, docs = as_rows(X), np.arange(n)
    cuts = ValueGroups.of(rows, docs).cuts(255, False)
    bins = GivenBins([(rows, docs, docs.astype(np.int32))], n, None, cuts)
    return StumpShard(bins, None, False, n // 3, np.ones(n)), X, cuts


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.integers(-20, 30))
@settings(deadline=None)
def test_words_are_rounded_multiples(values, exponent):
    words = np.empty(len(values), dtype=np.int64)
    total = to_fixed(np.array(values), exponent, words)
    expected = [round(Fraction(value) * Fraction(2) ** exponent) for value in values]
    assert words.tolist() == expected
    assert total == sum(expected)


def test_words_that_are_too_large_are_refused():
    words = np.empty(3, dtype=np.int64)
    with pytest.raises(ValueError, match="too large"):
        to_fixed(np.array([1.0, -1.0, 2.0]), 60, words)
    with pytest.raises(ValueError, match="too large"):
        to_fixed(np.array([1.0, np.nan, 2.0]), 6, words)
    with pytest.raises(ValueError, match="out of range"):
        to_fixed(np.ones(3), 1023, words)


@pytest.mark.parametrize("bound", [1.0, 0.999, 3e-200, 7e100, 2.0**-30])
def test_exponents_use_all_bits(bound):
    assert ldexp(1, BITS - 1) <= ldexp(2 * bound, exponent_of(bound)) < ldexp(1, BITS) + 1


def test_sums_by_bin_are_exact():
    shard, X, cuts = shard_of()
    n = len(X)
    words = np.random.default_rng(1).integers(-(2**56), 2**56, n)
    bounds = np.concatenate([[0], np.cumsum(cuts.n_bins + 1)]).astype(np.int64)
    found = np.empty(bounds[-1], dtype=np.int64)
    bin_sums(shard.bins.columns, words, bounds, found)
    for f in range(3):
        codes = np.searchsorted([cuts.threshold(f, b) for b in range(1, cuts.n_bins[f])], X[:, f])
        for b in range(cuts.n_bins[f]):
            assert found[bounds[f] + b] == sum(words[codes == b].tolist())
    with pytest.raises(ValueError, match="do not fit the columns"):
        bin_sums(shard.bins.columns, words[1:], bounds, found)


def test_a_shard_that_was_moved_follows_from_the_first_move():
    shard, _, _ = shard_of()
    moves = [Move(0, 3, 0, 0.4), CENTRE._replace(powers=(1, -2)), Move(2, 5, 0, -0.7)]
    first = shard.look(moves[:1], (50, 50), True)
    answers = [shard.look(moves[:k], (50, 50), True) for k in (2, 3)]
    moved = pickle.loads(pickle.dumps(shard))
    for again in [moved.look(moves, (50, 50), True), shard.look(moves, (50, 50), True)]:
        assert again.totals == answers[1].totals
        assert all(map(np.array_equal, again.bins, answers[1].bins))
    assert shard.look(moves[:1], (50, 50), False).totals == first.totals


def test_weights_of_two_labels_are_products():
    weights = PairedLabels(np.ones(5), 2)
    weights.advance(np.array([1, 0, 1, 1, 0], dtype=np.uint8), 0.5)
    totals, words = weights.words((40, 41))
    u, v = np.exp([-0.5, 0]), np.exp([0.5, 0.5, 0])
    assert totals == (np.rint(u * 2.0**40).sum(), np.rint(v * 2.0**41).sum())
    assert (words[0][2:] == 0).all()
    assert (words[1][:2] == 0).all()
