"""The ranking SVM on a cluster: the same model to the bit for any shards, and that of memory."""

import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._core.numbers import exact_sum
from rankcore._core.queries import group_rows
from rankcore._core.sources import Window
from rankcore._ext.exact_sums import feature_sums
from rankcore.datasets import dump_letor, make_letor
from rankcore.ranking._pairs import make_pairing
from rankcore.ranking.svm._losses import PairLosses, Terms
from rankcore.ranking.svm._shards import PairShard, joined_shard

pytest.importorskip("distributed", reason="needs the dask extra")

import dask.array as da
from dask import delayed

import rankcore.dask as rd


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(40, 15, n_features=90, random_state=0)
    X = X.astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[30:45] = X[31]  # a query of equal documents, whose order is nothing that decides
    return X, y, qid


def parts(X, y, qid, n):
    """Blocks of whole queries."""
    edges = np.linspace(0, len(np.unique(qid)), n + 1).astype(int)
    starts = np.append(np.flatnonzero(np.diff(qid, prepend=-1)), qid.size)[edges]
    slices = [slice(a, b) for a, b in pairwise(starts)]
    return [[delayed(one[part]) for part in slices] for one in (X, y, qid)]


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("dense", {"C": 0.01, "loss": "hinge"}),
        ("float32", {"C": 0.3}),
        ("csr", {"C": 1e-3, "balance": None, "tol": 1e-8}),
    ],
)
def test_shards_have_no_part_in_the_model(kind, params, client, queries):
    X, y, qid = queries
    if kind == "float32":
        X = X.astype(np.float32)
    elif kind == "csr":
        X = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    models = []
    for n in [1, 3, 7]:
        bX, by, bq = parts(X, y, qid, n)
        models.append(rd.RankSVM(random_state=1, **params).fit(bX, by, qid=bq, n_shards=n))
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)
        assert model.objective_ == models[0].objective_
        for name in ("objective", "gap", "gradient_norm", "products"):
            assert model.history_[name] == models[0].history_[name]
    expected = rc.RankSVM(random_state=1, **params).fit(X, y, qid=qid)
    local = models[0].to_local()
    assert type(local) is rc.RankSVM
    assert local.gap_ <= local.tol
    # Both lie above the one minimum by this share of it at most, and |w - w*|^2 / 2 is no more than
    # what w lies above it.
    assert abs(local.objective_ / expected.objective_ - 1) <= local.tol
    apart = np.linalg.norm(local.coef_ - expected.coef_)
    assert apart <= 2 * np.sqrt(2 * local.tol * expected.objective_)


def test_shards_have_no_part_without_a_seed(client, queries):
    X, y, qid = queries
    models = []
    for n in [1, 3]:
        bX, by, bq = parts(X[:, :5], y, qid, n)  # more rows than second derivatives are made of
        models.append(rd.RankSVM(C=10.0).fit(bX, by, qid=bq, n_shards=n))
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)


def test_close_to_the_minimum_both_are_the_same(client, queries):
    X, y, qid = queries
    expected = rc.RankSVM(tol=1e-13, random_state=0).fit(X, y, qid=qid)
    bX, by, bq = parts(X, y, qid, 3)
    model = rd.RankSVM(tol=1e-13, random_state=0).fit(bX, by, qid=bq)
    # A gap of 1e-13 allows for weights that are 2e-7 apart beside their length.
    assert np.allclose(model.coef_, expected.coef_, atol=1e-6 * np.linalg.norm(expected.coef_))
    assert abs(model.objective_ / expected.objective_ - 1) < 1e-12


def test_the_steps_are_those_of_memory(client, queries):
    # The same directions: of the same sample, to rounding.
    X, y, qid = queries
    expected = rc.RankSVM(random_state=3, C=10.0).fit(X, y, qid=qid)
    bX, by, bq = parts(X, y, qid, 4)
    model = rd.RankSVM(random_state=3, C=10.0).fit(bX, by, qid=bq)
    assert model.n_iter_ == expected.n_iter_
    assert model.history_["products"] == expected.history_["products"]
    assert np.allclose(model.history_["objective"], expected.history_["objective"], rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_without_pairs_have_no_part_in_the_model(form, client, queries):
    # Nor in how sums are rounded, in whichever shard they are.
    X, y, qid = queries
    y, large = y.copy(), X.copy()
    y[:150], large[:150] = 1, X[:150] * 1e9
    models = []
    for rows, n in [(X, 1), (X, 4), (large, 1), (large, 4)]:
        bX, by, bq = parts(form(rows), y, qid, n)
        models.append(rd.RankSVM(random_state=0).fit(bX, by, qid=bq, n_shards=n))
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)


def test_shards_without_pairs_and_files(client, queries, tmp_path):
    X, y, qid = queries
    y = y.copy()
    y[:300] = 1  # the first two of four shards have no pair
    bX, by, bq = parts(X, y, qid, 4)
    model = rd.RankSVM(random_state=0).fit(bX, by, qid=bq, n_shards=4)
    dump_letor(X, y, tmp_path / "rows.txt", qid=qid)
    again = rd.RankSVM(random_state=0).fit(tmp_path / "rows.txt", n_shards=3)
    assert np.allclose(model.coef_, again.coef_, rtol=1e-6, atol=1e-9)  # of numbers as text
    dX = da.from_array(X, chunks=(150, 90))
    assert np.array_equal(model.predict(dX).compute(), model.to_local().predict(X))
    rc.save(model.to_local(), tmp_path / "model")
    assert np.array_equal(rc.load(tmp_path / "model").coef_, model.coef_)


def test_bad_arguments_leave_the_estimator(client, queries):
    X, y, qid = queries
    bX, by, bq = parts(X, y, qid, 2)
    model = rd.RankSVM().fit(bX, by, qid=bq)
    before = model.coef_
    with pytest.raises(ValueError, match="requires kernel=None; found 'rbf'"):
        rd.RankSVM(kernel="rbf").fit(bX, by, qid=bq)
    with pytest.raises(ValueError, match="requires warm_start=False"):
        rd.RankSVM(warm_start=True).fit(bX, by, qid=bq)
    with pytest.raises(ValueError, match="divided among 2 shards: pass qid, or n_shards=1"):
        model.fit(bX, by)
    with pytest.raises(ValueError, match="nothing to learn from"):
        model.fit(bX, [one * 0 for one in by], qid=bq)
    with pytest.raises(ValueError, match="overflow"):
        model.fit([one * 1e200 for one in bX], by, qid=bq)
    with pytest.warns(ConvergenceWarning, match="did not converge: after 1 steps"):
        rd.RankSVM(max_iter=1, C=100.0, tol=1e-12).fit(bX, by, qid=bq)
    assert np.array_equal(model.coef_, before)
    expected = rc.RankSVM(random_state=0).fit(X, y, qid=np.zeros(len(y)))
    with pytest.warns(UserWarning, match="fit found no qid"):
        one = rd.RankSVM(random_state=0).fit(bX, by, n_shards=1)
    assert np.allclose(one.coef_, expected.coef_, rtol=1e-3, atol=1e-4)


# --------------------------------------------------------------------------- sums


@given(st.lists(st.floats(-1e300, 1e300), max_size=40))
def test_exact_sums_are_exact(values):
    assert exact_sum(np.array(values)) == sum(map(Fraction, values), Fraction())


@pytest.mark.parametrize("kind", ["float64", "float32", "csr", "csr32"])
def test_sums_by_feature_are_those_of_integers(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7)) * np.exp2(np.arange(-3, 4))
    X[rng.random(X.shape) < 0.4] = 0
    given = {
        "float64": X,
        "float32": X.astype(np.float32),
        "csr": sp.csr_array(X),
        "csr32": sp.csr_array(X.astype(np.float32)),
    }[kind]
    values = X.astype(np.float32).astype(float) if "32" in kind else X
    docs, by = rng.permutation(50)[:30].astype(np.int64), rng.normal(size=30)
    by[3] = 0
    scales = np.exp2(rng.integers(30, 50, 7))
    sums = np.empty(7, dtype=np.int64)
    feature_sums(as_rows(given), docs, by, scales, sums)
    expected = [
        sum(round(Fraction(float(by[k] * values[docs[k], f])) * int(scales[f])) for k in range(30))
        for f in range(7)
    ]
    assert sums.tolist() == expected
    with pytest.raises(ValueError, match="there is no row 50"):
        feature_sums(as_rows(given), docs + 50 - docs.max(), by, scales, sums)
    with pytest.raises(ValueError, match="do not fit the rows"):
        feature_sums(as_rows(given), docs, by, scales[:6], sums)


@given(
    st.lists(
        st.one_of(
            st.floats(-(2.0**60), 2.0**60),
            st.integers(-(2**53), 2**53).map(lambda n: n / 2),  # ties
            st.integers(-(2**60), 2**60).map(float),
            st.floats(-3, 3),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_numbers_are_rounded_to_the_nearest_integer(values):
    X = np.array([values])
    sums = np.empty(len(values), dtype=np.int64)
    feature_sums(as_rows(X), np.zeros(1, dtype=np.int64), np.ones(1), np.ones(len(values)), sums)
    assert sums.tolist() == [round(value) for value in values]


def pairing_of(X, y, qid):
    return make_pairing(Window(as_rows(X), y, group_rows(qid, len(y)), 0, 0))


def pair_shard(X, y, qid, n_in_query=0):
    return PairShard(X, pairing_of(X, y, qid), True, n_in_query)


@pytest.mark.parametrize("terms", [Terms.squared_hinge(2.0), Terms.smooth_hinge(2.0, 0.25)])
def test_a_shard_answers_with_the_sums_of_memory(terms, queries):
    X, y, qid = queries
    shard = pair_shard(X, y, qid)
    rng = np.random.default_rng(0)
    w, p = rng.normal(size=(2, 90)) * 0.1
    exponents = np.full(90, 40, dtype=np.intc)
    losses = PairLosses(pairing_of(X, y, qid), True)
    at = losses.evaluate(terms, rows=as_rows(X), weights=w)
    found = shard.slopes(w, terms, exponents)
    assert np.allclose([float(one) for one in found.sums], at.sums.ravel(), rtol=1e-12)
    assert np.allclose(found.pulled * 2.0**-40, at.pulled, rtol=0, atol=600 * 2.0**-41)
    _, _, curved = losses.curve(at, rows=as_rows(X), weights=p)
    words = shard.curve(w, terms, p, exponents)
    assert np.allclose(words * 2.0**-40, curved, rtol=0, atol=600 * 2.0**-41)
    matrix, weight = shard.matrix(w, terms)
    assert np.allclose(matrix @ p, curved, rtol=1e-9, atol=1e-9)
    assert weight == pytest.approx(losses.weights.sum())


def test_a_shard_that_was_moved_answers_the_same(queries):
    X, y, qid = queries
    shard = pair_shard(X, y, qid)
    rng = np.random.default_rng(0)
    ws, p = rng.normal(size=(3, 90)), rng.normal(size=90)
    terms, exponents = Terms.squared_hinge(1.0), np.full(90, 40, dtype=np.intc)
    for w in ws:  # the order of scores is that of the last evaluation
        shard.slopes(w, terms, exponents)
    moved = pickle.loads(pickle.dumps(shard))
    for w in [ws[2], ws[0]]:
        assert np.array_equal(
            moved.curve(w, terms, p, exponents), shard.curve(w, terms, p, exponents)
        )
        one, other = moved.slopes(w, terms, exponents), shard.slopes(w, terms, exponents)
        assert one.sums == other.sums
        assert np.array_equal(one.pulled, other.pulled)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_sample_is_the_same_from_any_shards(form, queries):
    X, y, qid = queries
    whole = pair_shard(form(X), y, qid)
    halves = [pair_shard(form(X[part]), y[part], qid[part]) for part in np.s_[:300, 300:]]
    n = halves[0].facts().sizes.size
    wanted = np.array([1, 4, n - 1, n, n + 3])
    one = joined_shard([whole.take(wanted)], True)
    other = joined_shard([halves[0].take(wanted[:3]), halves[1].take(wanted[3:] - n)], True)
    w, terms = np.random.default_rng(0).normal(size=90), Terms.squared_hinge(1.0)
    found, expected = one.matrix(w, terms), other.matrix(w, terms)
    assert np.array_equal(found[0], expected[0])
    assert found[1] == expected[1]
