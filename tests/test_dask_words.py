"""Labels that are words on a cluster: the models and predictions of integers."""

from itertools import cycle, pairwise

import numpy as np
import pandas as pd
import pytest

import rankcore as rc
from rankcore.datasets import make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

import dask.array as da
import dask.dataframe as dd
from dask import delayed

import rankcore.dask as rd

WORDS = ["poor", "fair", "good", "best"]  # neither ascending nor descending
LEARNERS = {
    "PRank": {},
    "CuSumRank": {},
    "WidrowHoff": {},
    "MulticlassPerceptron": {},
    "OAPBPM": {"n_estimators": 8},
    "OAPBagging": {"n_estimators": 8},
    "OAPVoting": {"n_estimators": 8},
}
WATCHED = ["PRank", "CuSumRank", "WidrowHoff", "MulticlassPerceptron"]


@pytest.fixture(scope="module")
def rows():
    X, y = make_ordinal(300, 6, mean_nnz=5, random_state=0)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    ranks = np.minimum(np.unique(y, return_inverse=True)[1], 3)
    assert set(ranks) == {0, 1, 2, 3}
    return X, ranks, np.array(WORDS)[ranks]


def blocks(*arrays, n=3):
    edges = np.linspace(0, arrays[0].shape[0], n + 1).astype(int)
    return [[delayed(one[a:b]) for a, b in pairwise(edges)] for one in arrays]


def learner(name, **params):
    settings = {"max_iter": 3, "random_state": 0, **LEARNERS[name], **params}
    return getattr(rd, name)(**settings)


# One function turns words into ranks, before any learner sees them: learners with ways in turn.
@pytest.mark.parametrize(
    ("name", "way"), [*zip(LEARNERS, cycle(["parameter", "argument", "categorical"]), strict=False)]
)
def test_words_learn_what_integers_learn(name, way, rows, client, recwarn):
    X, ranks, words = rows
    expected = learner(name).fit(*blocks(X, ranks), client=client)
    model = learner(name, classes=WORDS if way == "parameter" else None)
    if way == "categorical":
        y = [
            pd.Series(pd.Categorical(one.compute(), WORDS, ordered=True))
            for one in blocks(words)[0]
        ]
        model.fit(blocks(X)[0], [delayed(one) for one in y], client=client)
        assert any(
            "the order of the ranks is that of y's categories" in str(one.message)
            for one in recwarn
        )
    else:
        given = {"classes": WORDS} if way == "argument" else {}
        model.fit(*blocks(X, words), **given, client=client)
    assert model.ranks_.tolist() == WORDS
    assert model.classes_.tolist() == sorted(WORDS)
    assert model.history_ == expected.history_
    found = np.concatenate([one.compute() for one in model.predict(blocks(X)[0])])
    numbers = np.concatenate([one.compute() for one in expected.predict(blocks(X)[0])])
    np.testing.assert_array_equal(found, np.array(WORDS)[numbers])
    decided = np.concatenate([one.compute() for one in model.decision_function(blocks(X)[0])])
    by_rank = np.concatenate([one.compute() for one in expected.decision_function(blocks(X)[0])])
    np.testing.assert_array_equal(decided, by_rank[:, np.argsort(WORDS)])


@pytest.mark.parametrize("name", ["PRank", "OAPBPM"])
def test_collections_of_words(name, rows, client):
    X, ranks, words = rows
    expected = learner(name).fit(*blocks(X, ranks), client=client).to_local().predict(X)
    arrays = da.from_array(X, chunks=(100, -1)), da.from_array(words, chunks=100)
    model = learner(name, classes=WORDS).fit(*arrays, client=client)
    found = model.predict(arrays[0])
    assert found.dtype == model.classes_.dtype
    np.testing.assert_array_equal(found.compute(), np.array(WORDS)[expected])
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(6)])
    scale = pd.CategoricalDtype(WORDS, ordered=True)
    for y in (words, pd.Series(words, dtype=scale)):
        table = dd.from_pandas(frame.assign(stars=y), npartitions=3)
        one = learner(name, classes=WORDS).fit(
            table.drop(columns="stars"), table["stars"], client=client
        )
        predicted = one.predict(table.drop(columns="stars"))
        assert predicted.compute().tolist() == np.array(WORDS)[expected].tolist()


@pytest.mark.parametrize("name", WATCHED)
def test_held_out_words_and_weights_of_words(name, rows, client):
    X, ranks, words = rows
    settings = {"eval_metric": ["rank_loss", "accuracy"]}
    balanced = learner(name, class_weight={0: 2.0, 1: 1.0, 2: 1.0, 3: 3.0}, **settings)
    expected = balanced.fit(*blocks(X, ranks), eval_set=(X, ranks), client=client)
    of_words = {"poor": 2.0, "fair": 1.0, "good": 1.0, "best": 3.0}
    model = learner(name, class_weight=of_words, classes=WORDS, **settings)
    model.fit(*blocks(X, words), eval_set=(X, words), client=client)
    assert model.history_ == expected.history_


@pytest.mark.parametrize("name", ["PRank", "OAPBPM"])
def test_words_are_kept_by_local_models_and_files(name, rows, client, tmp_path):
    X, _, words = rows
    model = learner(name, classes=WORDS).fit(*blocks(X, words), client=client)
    local = model.to_local()
    assert local.classes == WORDS
    rc.save(local, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded.ranks_.tolist() == WORDS
    np.testing.assert_array_equal(loaded.predict(X), local.predict(X))


@pytest.mark.parametrize("name", ["PRank", "OAPBPM"])
def test_what_memory_refuses(name, rows, client):
    X, ranks, words = rows
    with pytest.raises(ValueError, match=rf"{name}\(classes="):
        learner(name).fit(*blocks(X, words), client=client)
    with pytest.raises(ValueError, match="number words"):
        learner(name, classes=WORDS).fit(*blocks(X, ranks), client=client)
    other = pd.Series(pd.Categorical(words, WORDS[::-1], ordered=True))
    y = [delayed(other[:150]), delayed(other[150:])]
    with pytest.raises(ValueError, match="contradict the order of y's categories"):
        learner(name, classes=WORDS).fit(blocks(X, n=2)[0], y, client=client)
    first = pd.Series(pd.Categorical(words, WORDS, ordered=True))
    y = [delayed(first[:150]), delayed(other[150:])]
    with pytest.raises(ValueError, match="categories of y differ between blocks"):
        learner(name).fit(blocks(X, n=2)[0], y, client=client)
    y = [delayed(ranks[:150]), delayed(words[150:])]
    with pytest.raises(ValueError, match="labels are numbers in some blocks and strings in others"):
        learner(name).fit(blocks(X, n=2)[0], y, client=client)
