"""Weights of rows on a cluster: what they mean in memory, of all shards together."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import rankcore as rc
from rankcore.datasets import make_letor, make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

import dask.array as da
from dask import delayed

import rankcore.dask as rd

ORDINAL = ["PRank", "CuSumRank", "WidrowHoff", "MulticlassPerceptron"]
RNG = np.random.default_rng(0)
N = 400
WEIGHTS = {
    "integers": RNG.integers(0, 4, N),
    "parts": RNG.uniform(0, 3, N),
    "shares": RNG.uniform(0, 1, N),
    "ones": np.ones(N),
}


@pytest.fixture(scope="module")
def rows():
    X, y = make_ordinal(N, 30, mean_nnz=8, random_state=0)
    return sp.csr_array(X), y


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(40, 15, n_features=90, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y, qid


def parts(*arrays, n):
    """Lists of delayed blocks; of 600 rows in queries of 15, whole queries."""
    n_rows = arrays[0].shape[0]
    edges = np.linspace(0, n_rows // 15 if n_rows == 600 else n_rows, n + 1).astype(int)
    edges = edges * (15 if n_rows == 600 else 1)
    return [[delayed(one[a:b]) for a, b in pairwise(edges)] for one in arrays]


def saved(model, tmp_path):
    rc.save(model, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("integers", {}),
        ("parts", {"shuffle": False}),
        ("shares", {}),
        ("shares", {"class_weight": {1: 0.25, 2: 0.5}}),
        ("ones", {"class_weight": "balanced"}),
    ],
)
@pytest.mark.parametrize("name", ORDINAL)
def test_one_shard_is_the_model_of_memory(name, kind, params, client, rows, tmp_path):
    X, y = rows
    w = WEIGHTS[kind]
    model = getattr(rc, name)(max_iter=3, random_state=5, **params)
    expected = saved(model.fit(X, y, sample_weight=w), tmp_path)
    model = getattr(rd, name)(max_iter=3, random_state=5, **params)
    bX, by, bw = parts(X, y, w, n=3)
    model.fit(bX, by, sample_weight=bw, n_shards=1)
    assert saved(model.to_local(), tmp_path) == expected


def test_weights_of_classes_alone_are_those_of_memory(client, rows, tmp_path):
    X, y = rows
    for class_weight in ["balanced", {1: 0.3, 2: 0.7, 3: 0.1, 4: 0.9, 5: 0.2}]:
        model = rc.PRank(max_iter=3, random_state=5, class_weight=class_weight).fit(X, y)
        expected = saved(model, tmp_path)
        model = rd.PRank(max_iter=3, random_state=5, class_weight=class_weight)
        bX, by = parts(X, y, n=3)
        assert saved(model.fit(bX, by, n_shards=1).to_local(), tmp_path) == expected


def test_integer_weights_are_repeated_rows(client, rows):
    # Of learners that visit rows by weight, in shards cut between the same rows.
    X, y = rows
    w = WEIGHTS["integers"].copy()
    w[100:200] = 0  # a shard without weight
    fit = {"max_iter": 3, "shuffle": False, "threshold_scale": 1.0}
    bX, by, bw = parts(X, y, w, n=4)
    model = rd.PRank(**fit).fit(bX, by, sample_weight=bw, n_shards=4)
    edges = [0, 100, 200, 300, 400]
    each = [np.repeat(np.arange(a, b), w[a:b]) for a, b in pairwise(edges)]
    each = [rows_ for rows_ in each if rows_.size]
    assert len(each) == 3
    repeated = rd.PRank(**fit)
    repeated.fit([delayed(X[r]) for r in each], [delayed(y[r]) for r in each], n_shards=3)
    assert np.array_equal(model.coef_, repeated.coef_)
    assert np.array_equal(model.thresholds_, repeated.thresholds_)
    assert model.t_ == repeated.t_ == 3 * w.sum()


@pytest.mark.parametrize("name", ["PRank", "OAPBPM"])
def test_equal_shares_are_exactly_no_weights(name, client, rows, tmp_path):
    X, y = rows
    model = getattr(rd, name)(max_iter=2, random_state=5)
    bX, by, bw = parts(X, y, np.full(N, 0.1), n=3)
    expected = saved(model.fit(bX, by).to_local(), tmp_path)
    assert saved(model.fit(bX, by, sample_weight=bw).to_local(), tmp_path) == expected


@pytest.mark.parametrize("name", ["PairwisePerceptron", "RankBoost", "RankSVM"])
def test_equal_weights_of_rankers_are_exactly_no_weights(name, client, queries):
    X, y, qid = queries
    model = getattr(rd, name)(random_state=5)
    model.set_params(**({"n_estimators": 5} if name == "RankBoost" else {"max_iter": 2}))
    bX, by, bq = parts(X, y, qid, n=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = model.fit(bX, by, qid=bq).to_local().predict(X)
        for weight in [0.1, 7.3, 1e-300]:
            bw = parts(np.full(len(y), weight), n=3)[0]
            found = model.fit(bX, by, qid=bq, sample_weight=bw).to_local().predict(X)
            assert np.array_equal(found, expected)


def test_numbers_of_visits_below_one_are_relative_to_all_shards(client, rows):
    X, y = rows
    # Multiples of 1/64 add up without rounding; shards have means of their own.
    w = RNG.integers(0, 16, N) / 64
    w[N // 2 :] *= 4
    assert w.max() < 1
    mean = w.mean()
    bX, by, bw = parts(X, y, w, n=4)
    of_shares = rd.PRank(max_iter=2, random_state=0)
    of_shares.fit(bX, by, sample_weight=bw, n_shards=4)
    _, _, bw = parts(X, y, w / mean, n=4)  # up to more than 1: no shares
    found = rd.PRank(max_iter=2, random_state=0)
    found.fit(bX, by, sample_weight=bw, n_shards=4)
    assert np.array_equal(of_shares.coef_, found.coef_)
    plain = rd.PRank(max_iter=2, random_state=0).fit(bX, by, n_shards=4)
    assert not np.array_equal(of_shares.coef_, plain.coef_)


@pytest.mark.parametrize(
    ("name", "kind"), [("OAPBPM", "integers"), ("OAPBagging", "parts"), ("OAPVoting", "shares")]
)
def test_ensembles_are_those_of_memory(name, kind, client, rows, tmp_path):
    X, y = rows
    w = WEIGHTS[kind]
    params = {"n_estimators": 21, "max_iter": 2, "random_state": 5, "class_weight": "balanced"}
    expected = saved(getattr(rc, name)(**params).fit(X, y, sample_weight=w), tmp_path)
    bX, by, bw = parts(X, y, w, n=5)
    model = getattr(rd, name)(**params).fit(bX, by, sample_weight=bw, n_blocks=3)
    assert saved(model.to_local(), tmp_path) == expected


PAIR_WEIGHTS = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.5], size=600)


@pytest.mark.parametrize("params", [{}, {"variant": "last"}, {"shuffle": False}])
def test_one_shard_is_the_pairwise_model_of_memory(params, client, queries, tmp_path):
    X, y, qid = queries
    model = rc.PairwisePerceptron(max_iter=3, random_state=5, **params)
    model.fit(X, y, qid=qid, sample_weight=PAIR_WEIGHTS)
    expected = saved(model, tmp_path)
    bX, by, bq, bw = parts(X, y, qid, PAIR_WEIGHTS, n=3)
    model = rd.PairwisePerceptron(max_iter=3, random_state=5, **params)
    model.fit(bX, by, qid=bq, sample_weight=bw, n_shards=1)
    assert saved(model.to_local(), tmp_path) == expected


def test_pairs_of_no_weight_are_not_there(client, queries):
    X, y, qid = queries
    w = (RNG.random(600) < 0.7).astype(float)
    w[150:300] = 0  # a shard without weight
    bX, by, bq, bw = parts(X, y, qid, w, n=4)
    model = rd.PairwisePerceptron(max_iter=2, shuffle=False)
    model.fit(bX, by, qid=bq, sample_weight=bw, n_shards=4)
    kept = [np.flatnonzero(w[a : a + 150]) + a for a in range(0, 600, 150)]
    blocks = [[delayed(one[rows]) for rows in kept] for one in (X, y, qid)]
    # The second shard still has a part in the mean, as one without a pair has.
    blocks[0][1], blocks[1][1], blocks[2][1] = X[150:165], y[150:165] * 0, qid[150:165]
    expected = rd.PairwisePerceptron(max_iter=2, shuffle=False)
    expected.fit(blocks[0], blocks[1], qid=blocks[2], n_shards=4)
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.history_["pairs"] == expected.history_["pairs"]


@pytest.mark.parametrize(
    ("kind", "params"),
    [("csr", {"C": 0.01, "loss": "hinge"}), ("dense", {"C": 1e-3, "balance": None})],
)
def test_shards_have_no_part_in_a_ranking_svm(kind, params, client, queries):
    X, y, qid = queries
    X = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if kind == "csr" else X
    w = np.random.default_rng(2).uniform(0, 3, 600)
    w[15:60] = 0  # of seven shards, the first has little more
    models = []
    for n in [1, 7]:
        bX, by, bq, bw = parts(X, y, qid, w, n=n)
        model = rd.RankSVM(random_state=1, **params)
        models.append(model.fit(bX, by, qid=bq, sample_weight=bw, n_shards=n))
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)
        assert model.objective_ == models[0].objective_
    expected = rc.RankSVM(random_state=1, **params).fit(X, y, qid=qid, sample_weight=w)
    # Each lies above the one minimum by this share of it at most, as without weights.
    assert abs(models[0].objective_ / expected.objective_ - 1) <= expected.tol
    apart = np.linalg.norm(models[0].coef_ - expected.coef_)
    assert apart <= 2 * np.sqrt(2 * expected.tol * expected.objective_)
    plain = rc.RankSVM(random_state=1, **params).fit(X, y, qid=qid)
    assert abs(plain.objective_ / expected.objective_ - 1) > 10 * expected.tol


def test_the_steps_of_a_ranking_svm_are_those_of_memory(client, queries):
    # The second derivatives that precondition them are weighted, too.
    X, y, qid = queries
    w = np.random.default_rng(2).uniform(0, 3, 600) ** 4
    expected = rc.RankSVM(random_state=3, C=10.0).fit(X, y, qid=qid, sample_weight=w)
    bX, by, bq, bw = parts(X, y, qid, w, n=4)
    model = rd.RankSVM(random_state=3, C=10.0).fit(bX, by, qid=bq, sample_weight=bw, n_shards=4)
    assert model.history_["products"] == expected.history_["products"]
    assert np.allclose(model.history_["objective"], expected.history_["objective"], rtol=1e-9)


def test_close_to_the_minimum_a_ranking_svm_is_that_of_memory(client, queries):
    X, y, qid = queries
    w = np.random.default_rng(2).uniform(0, 3, 600)
    w[:300] = 0  # two shards of four without weight
    expected = rc.RankSVM(tol=1e-13, random_state=0).fit(X, y, qid=qid, sample_weight=w)
    bX, by, bq, bw = parts(X, y, qid, w, n=4)
    model = rd.RankSVM(tol=1e-13, random_state=0)
    model.fit(bX, by, qid=bq, sample_weight=bw, n_shards=4)
    # As without weights: a gap of 1e-13 allows for 2e-7 beside the length of the weights.
    assert np.allclose(model.coef_, expected.coef_, atol=1e-6 * np.linalg.norm(expected.coef_))
    assert abs(model.objective_ / expected.objective_ - 1) < 1e-12


def boosted(params, n, X, y, qid, w):
    bX, by, bq, bw = parts(X, y, qid, w, n=n)
    model = rd.RankBoost(20, **params)
    return model.fit(bX, by, qid=bq, sample_weight=bw, n_shards=n)


def close(found, expected):
    """The same stumps; steps and figures to rounding."""
    for name in ["feature", "threshold", "missing"]:
        assert np.array_equal(found.estimators_[name], expected.estimators_[name])
    # Potentials are rounded to 2**-59 of their sum, in memory each sum to 2**-53.
    assert np.allclose(found.estimators_["alpha"], expected.estimators_["alpha"], rtol=1e-9)
    assert np.allclose(found.history_["normalizer"], expected.history_["normalizer"], rtol=1e-9)


@pytest.mark.parametrize(
    ("exponent", "params"),
    [
        (0, {"balance": None}),
        (300, {"balance": None}),
        (-300, {"balance": "query", "step": "discrete"}),
    ],
)
def test_shards_have_no_part_in_boosting(exponent, params, client, queries, tmp_path):
    X, y, qid = queries
    w = np.ldexp(PAIR_WEIGHTS * np.random.default_rng(4).uniform(0, 1, 600), exponent)
    w[150:300] = 0  # a shard without weight
    models = [boosted(params, n, X, y, qid, w) for n in [1, 4, 7]]
    saves = [saved(model.to_local(), tmp_path) for model in models]
    assert len(set(saves)) == 1
    expected = rc.RankBoost(20, **params).fit(X, y, qid=qid, sample_weight=w)
    close(models[0], expected)
    plain = rc.RankBoost(20, **params).fit(X, y, qid=qid)
    assert not np.array_equal(plain.estimators_["alpha"], expected.estimators_["alpha"])


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *(("RankBoost", step) for step in ["third", "discrete"]),
        *(("BipartiteRankBoost", step) for step in ["third", "exact", "mohri"]),
    ],
)
def test_shards_have_no_part_in_boosting_of_one_query(name, step, client, rows, tmp_path):
    X, y = rows
    y, w = (y > 3).astype(int), WEIGHTS["parts"].copy()
    w[:100], w[200::3] = 0, 0
    params = {"n_estimators": 30, "step": step}
    models = []
    for n in [1, 4]:
        bX, by, bw = parts(X, y, w, n=n)
        models.append(getattr(rd, name)(**params).fit(bX, by, sample_weight=bw, n_shards=n))
    assert len({saved(model.to_local(), tmp_path) for model in models}) == 1
    declared = {"qid": np.zeros(len(y))} if name == "RankBoost" else {}
    expected = getattr(rc, name)(**params).fit(X, y, sample_weight=w, **declared)
    close(models[0], expected)
    plain = getattr(rc, name)(**params).fit(X, y, **declared)
    assert not np.array_equal(plain.estimators_["alpha"], expected.estimators_["alpha"])


def test_boosting_without_weight(client, queries):
    X, y, qid = queries
    w = np.zeros(600)
    w[[0, 100, 200]] = 1  # each alone in its query
    with pytest.raises(ValueError, match=r"nothing to learn from: .* \(and positive weights\)"):
        boosted({}, 4, X, y, qid, w)


def test_boosting_with_weights_of_great_range(client, queries, rows):
    X, y, qid = queries
    w = 1e-152 * np.random.default_rng(4).uniform(1, 2, 600)
    w[-15:] = np.eye(15)[0]  # the largest is of no pair
    expected = rc.RankBoost(20, balance=None).fit(X, y, qid=qid, sample_weight=w)
    close(boosted({"balance": None}, 3, X, y, qid, w), expected)
    X, y = rows
    y, w = (y > 3).astype(int), WEIGHTS["parts"].copy()
    w[y == 0] *= 1e-303
    bX, by, bw = parts(X, y, w, n=3)
    found = rd.RankBoost(20).fit(bX, by, sample_weight=bw, n_shards=3)
    close(found, rc.RankBoost(20).fit(X, y, sample_weight=w, qid=np.zeros(len(y))))


@pytest.mark.parametrize("balance", ["query", None])
def test_boosting_with_pairs_that_vanish(balance, client, queries):
    X, y, qid = queries
    w = np.full(600, 1e-200)  # products of which are 0
    w[-15:] = np.eye(15)[0]  # no pair
    if balance == "query":
        w[:] = 1  # one query alone
        w[1:15] = 5e-324
    with pytest.raises(ValueError, match="the weights of some pairs underflow"):
        rc.RankBoost(2, balance=balance).fit(X, y, qid=qid, sample_weight=w)
    with pytest.raises(ValueError, match="the weights of some pairs underflow"):
        boosted({"balance": balance}, 4, X, y, qid, w)


def test_weights_are_a_column_or_an_array_of_other_chunks(client, queries):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, qid = queries
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(90)])
    whole = dd.from_pandas(frame.assign(y=y, qid=qid, w=PAIR_WEIGHTS), npartitions=4, sort=False)
    fit = {"max_iter": 2, "random_state": 0}
    model = rd.PairwisePerceptron(**fit)
    model.fit(whole.drop(columns="y"), whole["y"], qid="qid", sample_weight="w", n_shards=1)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    dX, dy, dq = (da.from_array(one, chunks=(150, *one.shape[1:])) for one in (X, y, qid))
    dw = da.from_array(PAIR_WEIGHTS, chunks=100)
    of_arrays = rd.PairwisePerceptron(**fit).fit(dX, dy, qid=dq, sample_weight=dw, n_shards=1)
    assert np.array_equal(of_arrays.coef_, model.coef_)
    ordinal = rd.PRank(**fit).fit(whole[["f0", "f1", "w"]], whole["y"], sample_weight="w")
    assert ordinal.feature_names_in_.tolist() == ["f0", "f1"]


def test_weights_move_with_their_rows(client, queries):
    # All pairs weigh as in memory, wherever their queries are moved to.
    X, y, qid = queries
    order = np.random.default_rng(3).permutation(600)
    dX, dy, dq, dw = (
        da.from_array(one[order], chunks=(100, *one.shape[1:])) for one in (X, y, qid, PAIR_WEIGHTS)
    )
    model = rd.RankSVM(tol=1e-13, random_state=0)
    model.fit(dX, dy, qid=dq, sample_weight=dw, n_shards=3, regroup=True)
    expected = rc.RankSVM(tol=1e-13, random_state=0)
    expected.fit(X, y, qid=qid, sample_weight=PAIR_WEIGHTS)
    assert np.allclose(model.coef_, expected.coef_, atol=1e-6 * np.linalg.norm(expected.coef_))


def test_bad_weights_leave_the_estimator(client, rows, queries, tmp_path):
    X, y = rows
    w = np.ones(N)
    bX, by = parts(X, y, n=4)

    def fit(w, model=None):
        blocks = parts(w, n=4)[0] if isinstance(w, np.ndarray) else w
        return (model or rd.PRank(max_iter=1)).fit(bX, by, sample_weight=blocks, n_shards=4)

    model = fit(w)
    before = model.coef_
    for value in [-1.0, np.nan, np.inf]:
        bad = w.copy()
        bad[250] = value
        with pytest.raises(ValueError, match="shard 2: sample_weight must be finite and not neg"):
            fit(bad, model)
    with pytest.raises(ValueError, match="sample_weight must not be all zero"):
        fit(0 * w, model)
    with pytest.raises(ValueError, match=r"shard \d: a block has 100 rows and 99 weights"):
        fit([np.ones(99)] * 4, model)
    with pytest.raises(ValueError, match=r"shard \d: sample_weight must be real numbers"):
        fit([np.full(100, "a")] * 4, model)
    for blocks in [[None] * 2, [None, w[:100]]]:  # of a shard, and of two
        with pytest.raises(ValueError, match="some blocks have weights and others none"):
            rd.PRank().fit(bX, by, sample_weight=[w[:100]] * 2 + blocks, n_shards=2)
    with pytest.raises(ValueError, match="X has 4 blocks and sample_weight 3"):
        fit([w[:100]] * 3, model)
    with pytest.raises(ValueError, match="leaves every row without weight"):
        fit((y == 1).astype(float), rd.PRank(class_weight={1: 0.0, 2: 1.0}))
    with pytest.raises(ValueError, match="update='pa' does not support weights"):
        fit(2 * w, rd.CuSumRank(update="pa"))
    with pytest.raises(ValueError, match=r"shard \d: .*weights must be at most 1000 on average"):
        fit(5000 * w, model)
    with pytest.raises(TypeError, match="rows of files have no weights"):
        model.fit(tmp_path / "rows.txt", sample_weight=w)
    assert np.array_equal(model.coef_, before)
