"""Progressive validation: rows of a stream are predicted before they are learned."""

import io
from collections import deque

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, walk
from rankcore.datasets import dump_letor, iter_letor, make_drift, make_letor
from rankcore.online import Chunk, evaluate

X, Y = make_drift(600, 5, n_ranks=4, random_state=0)
RANKS = [1, 2, 3, 4]
CHUNKS = [(X[i : i + 20], Y[i : i + 20]) for i in range(0, 600, 20)]


@walk(ONLINE)
def test_windows_have_the_loss_of_what_predict_returns_before_learning(learner):
    found = evaluate(clone(learner), CHUNKS, window=70, classes=RANKS, metrics=["rank_loss"])
    model = clone(learner)
    losses = np.full(600, np.nan)
    for i in range(0, 600, 20):
        if i:
            losses[i : i + 20] = np.abs(model.predict(X[i : i + 20]) - Y[i : i + 20])
        model.partial_fit(X[i : i + 20], Y[i : i + 20], classes=RANKS)
    ends = [*range(70, 600, 70), 600]
    assert [one.seen for one in found.windows] == ends
    for start, stop, one in zip([0, *ends], ends, found.windows, strict=False):
        assert one.latest["rank_loss"] == pytest.approx(np.nanmean(losses[start:stop]), abs=1e-12)
        assert one.overall["rank_loss"] == pytest.approx(np.nanmean(losses[:stop]), abs=1e-12)
    seconds = [one.seconds for one in found.windows]
    assert seconds == sorted(seconds)
    assert found.overall == found.windows[-1].overall


@pytest.mark.parametrize("size", [1, 7, 20])
@pytest.mark.parametrize("delay", [0, 1, 13, 40, 10_000])
def test_labels_that_come_later_are_learned_later(size, delay):
    """A plain simulation, with a queue of single rows whose chunks are due."""
    rows = 120
    model = rc.PRank()
    losses, waiting, learned = [], deque(), 0
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        while waiting and start - waiting[0][1] >= delay:
            first, last = waiting.popleft()
            model.partial_fit(X[first:last], Y[first:last], classes=RANKS)
            learned = last
        if learned:
            losses += np.abs(model.predict(X[start:stop]) - Y[start:stop]).tolist()
        waiting.append((start, stop))
    chunks = [
        (X[i : min(i + size, rows)], Y[i : min(i + size, rows)]) for i in range(0, rows, size)
    ]
    stream = rc.PRank()
    found = evaluate(stream, chunks, delay=delay, classes=RANKS)
    mean = np.mean(losses) if losses else np.nan
    assert found.overall["rank_loss"] == pytest.approx(mean, nan_ok=True)
    # Labels left at the end are learned.
    assert (stream.coef_ == rc.PRank().partial_fit(X[:rows], Y[:rows], RANKS).coef_).all()


def test_measures_equal_those_of_predicted_probabilities():
    names = ["rank_loss", "accuracy", "accuracy_within", "rps", "brier_score", "log_loss"]
    model = rc.OrdinalLogistic().partial_fit(X[:300], Y[:300], RANKS)
    found = evaluate(model, [(X[300:], Y[300:])], metrics=names).overall
    again = rc.OrdinalLogistic().partial_fit(X[:300], Y[:300], RANKS)
    labels, table = again.predict(X[300:]), again.predict_proba(X[300:])
    metrics = rc.metrics
    expected = [
        metrics.rank_loss(Y[300:], labels),
        np.mean(labels == Y[300:]),
        np.mean(np.abs(labels - Y[300:]) <= 1),
        metrics.ranked_probability_score(Y[300:], table, labels=RANKS),
        metrics.brier_score(Y[300:], table, labels=RANKS),
        metrics.log_loss(Y[300:], table, labels=RANKS),
    ]
    assert [*found] == names
    np.testing.assert_allclose([*found.values()], expected, rtol=1e-12)


def test_labels_may_be_words_in_another_order_than_the_alphabet():
    words = np.array(["poor", "fair", "good", "best"])
    chunks = [(X, words[y - 1]) for X, y in CHUNKS]
    names = ["rank_loss", "rps"]
    found = evaluate(rc.OrdinalLogistic(), chunks, classes=words, metrics=names)
    numbers = evaluate(rc.OrdinalLogistic(), CHUNKS, classes=RANKS, metrics=names)
    assert found.overall == numbers.overall


def test_evaluation_learns_with_the_weights_of_chunks():
    weights = np.random.default_rng(0).random(20)
    model = rc.OrdinalLogistic()
    evaluate(model, [Chunk(X, y, sample_weight=weights) for X, y in CHUNKS], classes=RANKS)
    same = rc.OrdinalLogistic()
    for rows, labels in CHUNKS:
        same.partial_fit(rows, labels, RANKS, sample_weight=weights)
    assert (model.coef_ == same.coef_).all()


def test_rankers_are_measured_by_query():
    rows, labels, qid = make_letor(30, 8, 90, random_state=0)
    rows = rows.astype(np.float64)
    text = io.BytesIO()
    dump_letor(rows, labels, text, qid=qid)
    text.seek(0)
    batches = iter_letor(text, n_features=90, dense=True, queries_per_batch=3)
    ranker = rc.PairwisePerceptron(random_state=0)
    found = evaluate(ranker, batches, window=12, metrics=["ndcg@5", "mrr"])
    assert (found.unit, [one.seen for one in found.windows]) == ("queries", [12, 24, 30])
    model = rc.PairwisePerceptron(random_state=0)
    values = {"ndcg@5": np.full(30, np.nan), "mrr": np.full(30, np.nan)}
    numbers = np.unique(qid)
    for i in range(0, 30, 3):
        part = np.isin(qid, numbers[i : i + 3])
        if i:
            scores = model.predict(rows[part])
            one = rc.metrics.evaluate(labels[part], scores, qid=qid[part], metrics=[*values])
            for name in values:
                values[name][i : i + 3] = one.per_query[name]
        model.partial_fit(rows[part], labels[part], qid=qid[part])
    for start, stop, one in zip([0, 12, 24], [12, 24, 30], found.windows, strict=True):
        for name in values:
            assert one.latest[name] == pytest.approx(np.nanmean(values[name][start:stop]))
            assert one.overall[name] == pytest.approx(np.nanmean(values[name][:stop]))


def test_frame_has_a_row_for_each_window():
    found = evaluate(rc.PRank(), CHUNKS, window=200, classes=RANKS)
    frame = found.to_frame()
    assert [*frame] == ["seconds", "rank_loss", "rank_loss (overall)"]
    assert frame.index.name == "rows"
    assert frame.index.tolist() == [200, 400, 600]
    assert frame["rank_loss"].tolist() == [one.latest["rank_loss"] for one in found.windows]
    pd.testing.assert_series_equal(
        frame["rank_loss (overall)"],
        pd.Series([one.overall["rank_loss"] for one in found.windows], frame.index, name=None),
        check_names=False,
    )


def test_callbacks_see_each_window_and_end_the_evaluation():
    seen = []
    found = evaluate(
        rc.PRank(),
        CHUNKS,
        window=100,
        classes=RANKS,
        callbacks=[lambda window: seen.append(window.seen), lambda window: window.seen >= 300],
    )
    assert seen == [100, 200, 300]
    assert [one.seen for one in found.windows] == seen


def test_chunks_larger_than_the_window_span_several():
    model = rc.PRank().partial_fit(X[:300], Y[:300], RANKS)
    losses = np.abs(model.predict(X[300:]) - Y[300:])
    found = evaluate(model, [(X[300:], Y[300:])], window=100)
    means = [one.latest["rank_loss"] for one in found.windows]
    np.testing.assert_allclose(means, losses.reshape(3, 100).mean(axis=1))


def test_memory_does_not_grow_with_the_stream():
    import tracemalloc

    def stream(n):
        for i in range(n):
            yield CHUNKS[i % 30]

    peaks = []
    for n in (200, 2000):
        model = rc.PRank(standardize=False).partial_fit(X, Y, RANKS)
        tracemalloc.start()
        evaluate(model, stream(n), window=10_000, delay=100)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 30_000  # a chunk has 1 kB; the loss curve has 90 points a decade


@pytest.mark.parametrize("delay", [0, 70])
def test_chunks_without_rows_are_left_out(delay):
    empty = (X[:0], Y[:0])
    expected, found = (
        evaluate(rc.PRank(), stream, window=100, delay=delay, classes=RANKS)
        for stream in (CHUNKS, [one for chunk in CHUNKS for one in (empty, chunk, empty)])
    )
    assert [one.latest for one in found.windows[1:]] == [one.latest for one in expected.windows[1:]]
    assert [one.seen for one in found.windows] == [one.seen for one in expected.windows]
    assert found.overall == expected.overall


def test_empty_stream_has_no_windows():
    found = evaluate(rc.PRank(), [])
    assert found.windows == []
    assert found.overall == {}
    assert found.to_frame().empty


@pytest.mark.parametrize(
    ("model", "stream", "options", "error", "message"),
    [
        (rc.OrdinalBoost(), CHUNKS, {}, TypeError, "must have partial_fit.*got OrdinalBoost"),
        (rc.PRank(), [X], {}, TypeError, r"pairs \(X, y\).*got array"),
        (rc.PRank(), CHUNKS, {"window": 0}, ValueError, "window must be an integer >= 1"),
        (rc.PRank(), CHUNKS, {"delay": -1}, ValueError, "delay must be an integer >= 0"),
        (rc.PRank(), CHUNKS, {"metrics": "ndcg@10"}, ValueError, "got 'ndcg@10'"),
        (rc.PRank(), CHUNKS, {"metrics": "rps"}, TypeError, "predict_proba, which PRank lacks"),
        (rc.PairwisePerceptron(), CHUNKS, {"metrics": "ndgc"}, ValueError, "no measure 'ndgc'"),
    ],
)
def test_invalid_arguments_are_named(model, stream, options, error, message):
    more = {} if isinstance(model, rc.PairwisePerceptron) else {"classes": RANKS}
    with pytest.raises(error, match=message):
        evaluate(model, stream, **options, **more)
