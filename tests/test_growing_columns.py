"""Columns and ranks that appear later in a stream: the model is one that had them before."""

import tracemalloc
from copy import copy, deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, ONLINE_RANKERS, as_they_are, first_of_each, walk

CLASSES = [0, 1, 2, 3]
# Columns of the successive chunks of a stream.
WIDTHS = (3, 3, 5, 8)
CHUNK = 30


def has_fixed_columns(learner):
    return hasattr(learner, "kernel") or isinstance(learner, rc.PythonRule | rc.PythonScoreRule)


LINEAR = [one for one in ONLINE if not has_fixed_columns(one)]
FIXED = [one for one in ONLINE if has_fixed_columns(one)]


def chunks(seed=0):
    """Yield chunks with labels and more and more columns."""
    rng = np.random.default_rng(seed)
    for width in WIDTHS:
        X = rng.integers(-4, 5, size=(CHUNK, WIDTHS[-1])).astype(float)
        X[:, width:] = 0
        y = np.digitize(X[:, 0] - X[:, 2] + X[:, 4] + rng.normal(size=CHUNK), [-3, 0, 3])
        yield width, X, y


def both(learner, form=np.asarray):
    """Return a learner whose columns grew, and one that had them all from the first row on."""
    grown, wide = clone(learner), clone(learner)
    for width, X, y in chunks():
        grown.partial_fit(form(X[:, :width]), y, classes=CLASSES, grow=True)
        wide.partial_fit(form(X), y, classes=CLASSES)
    return grown, wide


def assert_same_model(grown, wide):
    """Compare the arrays of two models bit by bit, whose free room may differ."""
    assert grown.n_features_in_ == wide.n_features_in_ == WIDTHS[-1]
    ours, theirs = (one._state.model.saved() for one in (grown, wide))
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.shape == theirs[name].shape, name
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


@walk(LINEAR)
def test_shallow_copy_stays_as_it_is_when_columns_are_added(learner):
    (_, X, y), *later = chunks()
    model = clone(learner).partial_fit(X[:, :3], y, classes=CLASSES)
    copied, alone = copy(model), deepcopy(model)
    for width, rows, labels in later:
        if width > WIDTHS[0]:
            model.partial_fit(rows[:, :width], labels, grow=True)
    assert copied._state.model == alone._state.model
    assert copied._state.log == alone._state.log
    assert copied.n_features_in_ == WIDTHS[0] < model.n_features_in_
    np.testing.assert_array_equal(copied.predict(X[:, :3]), alone.predict(X[:, :3]))


def test_shallow_copy_stays_as_it_is_when_ranks_are_added():
    _, X, y = next(chunks())
    model = rc.OrdinalLogistic().partial_fit(X, y.clip(1, 2), classes=[1, 2])
    copied, expected = copy(model), model.predict_proba(X)
    model.partial_fit(X, y, classes=CLASSES, grow=True)
    np.testing.assert_array_equal(copied.predict_proba(X), expected)
    assert model.predict_proba(X).shape == (len(y), 4)


@walk(ONLINE_RANKERS)
def test_shallow_copy_of_a_ranker_stays_as_it_is_when_columns_are_added(learner):
    (_, X, y), *later = chunks()
    qid = np.arange(CHUNK) // 10
    model = clone(learner).partial_fit(X[:, :3], y, qid=qid)
    copied, expected = copy(model), model.predict(X[:, :3], qid=qid)
    for width, rows, labels in later:
        model.partial_fit(rows[:, :width], labels, qid=qid, grow=True)
    np.testing.assert_array_equal(copied.predict(X[:, :3], qid=qid), expected)


@walk([as_they_are(one) for one in LINEAR])
def test_grown_model_of_sparse_rows_is_that_of_zeros_from_the_start(learner):
    grown, wide = both(learner, sp.csr_array)
    assert_same_model(grown, wide)
    X = np.random.default_rng(1).normal(size=(50, WIDTHS[-1]))
    np.testing.assert_array_equal(grown.predict(X), wide.predict(X))


@walk(LINEAR)
def test_grown_model_of_dense_rows_is_that_of_zeros_but_for_rounding(learner):
    grown, wide = both(learner)
    assert grown._state.model.rows_change == bool(getattr(learner, "standardize", False))
    ours, theirs = (one._state.model.saved() for one in (grown, wide))
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=1e-10, atol=1e-10, err_msg=name)


@walk([as_they_are(one) for one in ONLINE_RANKERS if hasattr(one, "variant")])
def test_grown_pairwise_model_is_that_of_zeros_from_the_start(learner):
    grown, wide = clone(learner), clone(learner)
    for width, X, y in chunks():
        qid = np.arange(CHUNK) // 10
        grown.partial_fit(X[:, :width], y, qid=qid, grow=True)
        wide.partial_fit(X, y, qid=qid)
    assert_same_model(grown, wide)


def test_voters_of_pairs_are_as_many_as_at_first_after_many_columns():
    grown = rc.PairwisePerceptron(variant="voted", standardize=False, random_state=0)
    wide = clone(grown).set_params(max_hypotheses=5000)  # "auto" of few columns
    qid = np.arange(CHUNK) // 10
    for n_columns, (_, X, y) in zip((8, 2000, 3000), chunks(), strict=False):
        X = sp.csr_array(X)
        X.resize((CHUNK, n_columns))
        grown.partial_fit(X, y, qid=qid, grow=True)
        X.resize((CHUNK, 3000))
        wide.partial_fit(X, y, qid=qid)
    ours, theirs = (one._state.model.saved() for one in (grown, wide))
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    grown.set_params(max_hypotheses=7)
    with pytest.raises(ValueError, match="max_hypotheses differs from what this model started"):
        grown.partial_fit(X, y, qid=qid)


@walk(ONLINE)
def test_free_room_is_at_most_as_large_as_the_model(learner):
    model = clone(learner)
    _, X, y = next(chunks())
    for n_columns in (8, 8, 8) if learner in FIXED else (8, 3000, 3000):
        rows = sp.csr_array(X)
        rows.resize((CHUNK, n_columns))
        model.partial_fit(rows, y, classes=CLASSES, grow=True)
    learned = model._state.model
    stored = sum(array.nbytes for array in learned.saved().values())
    first = 16 * 8 * n_columns  # of a learner that keeps few hypotheses
    assert sum(array.nbytes for array in learned.arrays.values()) <= 2 * stored + first


def test_memory_of_voters_is_that_of_those_kept_when_a_million_columns_appear():
    model = rc.VotedPRank(random_state=0)
    _, X, y = next(chunks())
    model.partial_fit(sp.csr_array(X), y, classes=CLASSES)
    rows = sp.csr_array(X[:10])
    rows.resize((10, 1_000_000))
    tracemalloc.start()
    model.partial_fit(rows, y[:10], grow=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.votes_.size <= CHUNK + 10
    assert peak < 4 * 8e6 * model.votes_.size


@walk(first_of_each(LINEAR))
def test_grown_model_is_saved_and_continues(learner, tmp_path):
    grown, wide = both(as_they_are(learner), sp.csr_array)
    rc.save(grown, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    X, y = sp.csr_array(np.ones((1, WIDTHS[-1]))), [3]
    for one in (loaded, wide):
        one.partial_fit(X, y)
    assert_same_model(loaded, wide)


@walk(first_of_each(FIXED))
def test_learners_with_fixed_columns_reject_further_ones(learner):
    model = clone(learner)
    if getattr(model, "kernel", None) == "precomputed":
        model.set_params(kernel="linear")
    _, X, y = next(chunks())
    model.partial_fit(X, y, classes=CLASSES, grow=True)
    before = model.t_
    with pytest.raises(TypeError, match="grow=True requires a .*: pass all columns from the first"):
        model.partial_fit(np.c_[X, X[:, 0]], y, grow=True)
    assert (model.t_, model.n_features_in_) == (before, 8)


@walk(first_of_each(LINEAR))
def test_columns_grow_only_on_request_and_never_shrink(learner):
    model = clone(learner)
    _, X, y = next(chunks())
    model.partial_fit(X, y, classes=CLASSES)
    with pytest.raises(ValueError, match="X has 9 features, but .* is expecting 8"):
        model.partial_fit(np.c_[X, X[:, 0]], y)
    with pytest.raises(ValueError, match="X has 7 features, but .* is expecting 8"):
        model.partial_fit(X[:, :7], y, grow=True)
    with pytest.raises(ValueError, match="y"):
        model.partial_fit(np.c_[X, X[:, 0]], np.full_like(y, 9), grow=True)
    assert model.n_features_in_ == 8


def test_new_columns_of_a_frame_follow_the_known_ones():
    _, X, y = next(chunks())
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    model = rc.PRank().partial_fit(frame, y, classes=CLASSES)
    wider = frame.assign(d=1.0)
    with pytest.raises(ValueError, match=r"expected \['a', 'b', 'c'\], got \['d', 'a', 'b'\]"):
        model.partial_fit(wider[["d", "a", "b", "c"]], y, grow=True)
    with pytest.raises(ValueError, match=r"expected \['a', 'b', 'c'\], got no names"):
        model.partial_fit(wider.to_numpy(), y, grow=True)
    model.partial_fit(wider, y, grow=True)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert model.predict(wider).shape == y.shape


def test_first_call_with_grow_begins_with_its_columns():
    _, X, y = next(chunks())
    model = rc.PRank().partial_fit(X, y, classes=CLASSES, grow=True)
    assert model.n_features_in_ == 8
    assert model._state.model == rc.PRank().partial_fit(X, y, classes=CLASSES)._state.model


# Chunks of a stream: the ranks declared with each.
DECLARED = ([2, 3], [1, 2, 3], [1, 2, 3, 4, 5])


@walk(
    [
        rc.OrdinalLogistic(),
        rc.OrdinalLogistic(average=False),
        rc.OrdinalLogistic(half_life=20),
        rc.OrdinalLogistic(half_life="auto"),
    ]
)
def test_grown_ranks_equal_declared_ranks(learner):
    grown, wide = clone(learner), clone(learner)
    for (width, X, _), classes in zip(chunks(), DECLARED, strict=False):
        y = np.clip(np.round(X[:, 0] - X[:, 2] + 3), classes[0], classes[-1]).astype(int)
        grown.partial_fit(X[:, :width], y, classes=classes, grow=True)
        wide.partial_fit(X[:, :5], y, classes=DECLARED[-1])
    assert grown.classes_.tolist() == DECLARED[-1]
    ours, theirs = (one._state.model.saved() for one in (grown, wide))
    if "choice" in ours:  # the first row costs all candidates alike, its distance from rank 0
        for arrays in (ours, theirs):
            arrays["choice"] = arrays["choice"] - [*[arrays["choice"][:5].min()] * 5, 0]
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=1e-12, atol=1e-12, err_msg=name)


def test_words_of_new_ranks_are_declared_around_the_known_ones():
    _, X, y = next(chunks())
    known = np.array(["bad", "fair", "good", "best"])
    model = rc.OrdinalLogistic().partial_fit(X, known[y], classes=known)
    before = model.predict(X)
    more = ["awful", *known, "unbeaten"]
    for wrong in (["bad", "fair", "ok", "good", "best"], known[::-1], known[:-1]):
        with pytest.raises(ValueError, match="classes must have those of the model in a row"):
            model.partial_fit(X, known[y], classes=wrong, grow=True)
    model.partial_fit(X[:1], ["unbeaten"], classes=more, grow=True)
    assert model.ranks_.tolist() == more
    assert (model.predict(X) == before).mean() > 0.5
    assert model.predict_proba(X).shape == (CHUNK, 6)


@walk([one for one in first_of_each(LINEAR) if not isinstance(one, rc.OrdinalLogistic)])
def test_learners_that_move_absent_ranks_reject_new_ones(learner):
    _, X, y = next(chunks())
    model = clone(learner).partial_fit(X, y, classes=CLASSES)
    with pytest.raises(TypeError, match="only OrdinalLogistic takes further ranks"):
        model.partial_fit(X, y, classes=[*CLASSES, 4], grow=True)
    assert model.classes_.tolist() == CLASSES
