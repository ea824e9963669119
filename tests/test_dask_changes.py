"""Transfer of models: only features that have changed, and the same model to the bit."""

import pickle
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import rankcore as rc
from rankcore._core.params import as_generator
from rankcore._core.state import OnlineState
from rankcore.datasets import make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

from dask import delayed

import rankcore.dask as rd
from rankcore.dask._changes import Change
from rankcore.dask._mixing import learn_ordinal, learn_pairs, prepare_pairs
from rankcore.dask._shards import Shard
from rankcore.ranking._feature_scale import NONE

ORDINAL = ["PRank", "CuSumRank", "WidrowHoff", "MulticlassPerceptron"]


@pytest.fixture(scope="module")
def text():
    """Rows as of text: 40 of 30,000 features each, most of which are in few rows or none."""
    X, y = make_ordinal(600, 30_000, mean_nnz=40, random_state=0)
    return sp.csr_array(X), y


def send_whole(monkeypatch):
    """Send every model whole from now on."""
    change_of = Change.of

    def whole(state, base=None):
        change = change_of(state)
        arrays = change.onto()
        rows = arrays.by_feature if hasattr(arrays, "by_feature") else weights_of(arrays)
        return Change(change.rest, change.n_features, None, rows)

    monkeypatch.setattr(Change, "of", whole)


def weights_of(state):
    return {"weights": state.weights, "sums": state.sums}


def saved(model, tmp_path):
    rc.save(model, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def in_shards(X, y, n, **more):
    cuts = np.linspace(0, X.shape[0], n + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    return [[delayed(one[part]) for part in parts] for one in (X, y, *more.values())]


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("name", ORDINAL)
def test_the_model_is_that_of_whole_models(name, average, client, text, tmp_path, monkeypatch):
    params = {} if name == "WidrowHoff" else {"average": average}
    X, y = in_shards(*text, 3)
    fits = []
    for _ in range(2):
        model = getattr(rd, name)(max_iter=4, random_state=1, **params)
        fits.append(saved(model.fit(X, y, n_shards=3).to_local(), tmp_path))
        send_whole(monkeypatch)
    assert fits[0] == fits[1]


@pytest.mark.parametrize("params", [{}, {"variant": "last"}])
@pytest.mark.parametrize("mixing", ["uniform", "mistakes"])
def test_the_pairwise_model_is_that_of_whole_models(
    mixing, params, client, text, tmp_path, monkeypatch
):
    X, y = text
    bX, by, bq = in_shards(X, y, 3, qid=np.arange(600) // 20)
    fits = []
    for _ in range(2):
        model = rd.PairwisePerceptron(max_iter=3, random_state=1, **params)
        model.fit(bX, by, qid=bq, n_shards=3, mixing=mixing)
        fits.append(saved(model.to_local(), tmp_path))
        send_whole(monkeypatch)
    assert fits[0] == fits[1]


def held(model, state):
    """A model as a worker has it before a pass."""
    sent = deepcopy(model)
    sent._state = Change.of(state)
    return sent


def sizes(change, state):
    """Bytes of what is sent, and of the whole state."""
    return len(pickle.dumps(change, protocol=5)), len(pickle.dumps(state, protocol=5))


@pytest.mark.parametrize("name", ORDINAL)
def test_a_shard_sends_no_feature_that_it_has_not(name, text):
    X, y = text
    model = getattr(rc, name)(max_iter=1, random_state=0).fit(X, y)
    begun = held(model, model._state)
    shard = Shard(X[:50], y[:50], None)
    change = learn_ordinal(shard, None, begun, None, 0)
    there = np.unique(shard.X.indices)
    touched = change.changed()
    assert touched.size > 0
    assert np.isin(touched, there).all()
    after = change.onto(begun._state)
    vector = sum(array[0].nbytes for array in after.by_feature.values())
    sent, dense = sizes(change, after)
    assert sent < there.size * (4 + vector) + 5000
    assert sent < dense / 5
    # It is what a pass in one process learns.
    expected = deepcopy(model).partial_fit(shard.X, shard.y)
    for array, one in after.by_feature.items():
        assert one.tobytes() == expected._state.by_feature[array].tobytes()


def test_a_model_goes_out_without_the_features_that_no_shard_has_touched(text):
    X, y = text
    model = rc.PRank(max_iter=3, random_state=0).fit(X, y)
    there = np.unique(X.indices).size
    sent, dense = sizes(Change.of(model._state), model._state)
    assert sent < there * 16 + 30_000 / 8 + 5000 < dense / 2
    assert sizes(Change.of(model._new_state(30_000, 5)), model._state)[0] < 5000


def test_nothing_learned_is_nothing_sent(text):
    X, y = text
    model = rc.PRank(max_iter=50, random_state=0).fit(X[:5], y[:5], classes=np.unique(y))
    assert model.history_["mistakes"][-1] == 0
    change = learn_ordinal(Shard(X[:5], y[:5], None), None, held(model, model._state), None, 0)
    assert sizes(change, model._state)[0] < 5000
    assert change.rest.t == model.t_ + 5


def test_a_shard_of_pairs_sends_neither_other_features_nor_its_committee(text):
    X, y = text
    model = rc.PairwisePerceptron(max_iter=1, random_state=0)
    qid = np.arange(600) // 20
    model.fit(X, y, qid=qid)
    shard = Shard(X[:100], y[:100], qid[:100])
    begun = held(model, model._state)
    change, _ = learn_pairs(
        prepare_pairs(shard, model, None, NONE, 0), begun, as_generator(0), False, 0
    )
    assert np.isin(change.changed(), np.unique(shard.X.indices)).all()
    assert change.rest.members == []
    sent, _ = sizes(change, model._state)
    assert sent < np.unique(shard.X.indices).size * (4 + 16) + 5000
    alone, _ = learn_pairs(
        prepare_pairs(shard, model, None, NONE, 0), begun, as_generator(0), True, 0
    )
    assert len(alone.rest.members) > 1
    assert alone.onto(begun._state).weights.tobytes() == change.onto(begun._state).weights.tobytes()


def test_dense_models_are_sent_whole(text):
    X, y = make_ordinal(300, 40, mean_nnz=20, random_state=0)
    model = rc.PRank(max_iter=1, random_state=0).fit(X, y)
    assert Change.of(model._state).places is None
    change = learn_ordinal(Shard(X, y, None), None, held(model, model._state), None, 0)
    assert change.places is None


NUMBERS = st.sampled_from([0.0, -0.0, 1.5, -2.0, np.nan, np.inf, 5e-324])


@given(data=st.data(), n=st.integers(1, 60), width=st.integers(0, 3))
def test_any_state_is_the_same_to_the_bit(data, n, width):
    shape = (n, width) if width else (n,)

    def values(like, share):
        """The same numbers, but for some."""
        array = like.copy()
        for place in data.draw(st.sets(st.integers(0, array.size - 1), max_size=share)):
            array.flat[place] = data.draw(NUMBERS)
        return array

    def state(weights, sums):
        arrays = {"weights": weights, "weights_sums": sums}
        return OnlineState(arrays, {"steps": np.arange(3)}, settings={"average": True})

    zeros = np.zeros(shape), np.zeros(n)
    begun = [values(one, data.draw(st.sampled_from([0, 2, 60]))) for one in zeros]
    ended = [values(one, data.draw(st.sampled_from([0, 2, 60]))) for one in begun]
    sent = Change.of(state(*begun))
    change = pickle.loads(pickle.dumps(Change.of(state(*ended), sent)))
    found = change.onto(sent)
    for (_, one), expected in zip(found.by_feature.items(), ended, strict=True):
        assert one.tobytes() == expected.tobytes()
        assert one.shape == expected.shape
    assert found.settings == {"average": True}
    # No more than a whole model, and its own memory.
    assert change.__sizeof__() <= sum(one.nbytes for one in ended)
    found.by_feature["weights"][...] = 7
    assert change.onto(sent).by_feature["weights"].tobytes() == ended[0].tobytes()
    assert sent.onto().by_feature["weights"].tobytes() == begun[0].tobytes()
