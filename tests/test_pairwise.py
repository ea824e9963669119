"""Pairwise perceptrons against their plain form: every pair, every counter, every variant."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import rankcore as rc
from rankcore.metrics import ndcg_score
from rankcore.progress import watch
from reference import pairwise as plain
from strategies import examples

# Worked by hand in exact binary fractions; two queries, lexicographic, two passes.
X = np.array([[2, 1], [0, 2], [1, 0], [1, 2], [2, 2], [0, 1], [1, 0]], dtype=np.float64)
Y = np.array([1, 0, 0, 1, 1, 0, 0])
QID = np.array([1, 1, 1, 2, 2, 2, 2])
HYPOTHESES = [[0, 0], [1, -0.5], [1, 0], [1, 0.5]]
SUCCESSES = [0, 2, 5, 2]
SOLVERS = ["gram", "packed", "lazy", "plain"]
FORMS = [np.asarray, sp.csr_array]


def perceptron(variant="last", **params):
    defaults = {"margin": 0.0, "shuffle": False, "max_iter": 2}
    return rc.PairwisePerceptron(variant, **{**defaults, **params})


def as_variant(model, variant, **params):
    """The same fitted model, answering as another variant."""
    return pickle.loads(pickle.dumps(model)).set_params(variant=variant, **params)


def queries_of(qid):
    """Rows of each query, in order of first appearance."""
    return [np.flatnonzero(qid == one) for one in dict.fromkeys(qid.tolist())]


def lexicographic(y, qid, *, balance=True, epochs=1, count="pair", weights=None):
    """Visits for the plain implementation."""
    weights = np.ones(len(y)) if weights is None else weights
    visits = []
    for rows in queries_of(qid) * epochs:
        pairs = [(rows[i], rows[j]) for i, j in plain.pairs_of(y[rows])]
        pairs = [(i, j) for i, j in pairs if weights[i] * weights[j] > 0]
        of_pairs = np.array([weights[i] * weights[j] for i, j in pairs])
        eta = 1 / of_pairs.sum() if balance and pairs else 1.0
        unit = 1 / len(pairs) if count == "query" and pairs else 1.0
        if pairs:
            visits.append((pairs, eta * of_pairs, unit))
    return visits


def shuffled(y, qid, seed, epochs):
    """What the estimator does with a seed: it draws the pairs' seed, then orders of the queries."""
    generator = np.random.default_rng(seed)
    key = int(generator.integers(2**63))
    useful = [rows for rows in queries_of(qid) if len(set(y[rows].tolist())) > 1]
    visits = []
    for _ in range(epochs):
        sequence = np.arange(len(useful))
        generator.shuffle(sequence)
        for k in sequence:
            rows = useful[k]
            pairs = plain.shuffled_pairs(y[rows], key, len(visits))
            step = 1 / len(pairs)
            visits.append(([(rows[i], rows[j]) for i, j in pairs], [step] * len(pairs), 1.0))
    return visits


@st.composite
def problems(draw, levels=4):
    """Small integers, sums of which are exact; steps are made powers of two by the caller."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 9))
    X = rng.integers(-4, 5, size=(n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.3, 1.0])))
    y = rng.integers(0, draw(st.integers(1, levels)), size=n)
    y[:2] = [0, 1]
    qid = rng.integers(0, draw(st.integers(1, 4)), size=n)
    qid[1] = qid[0]
    return X.astype(draw(st.sampled_from([np.float32, np.float64]))), y, qid


def check(model, run, X, *, exact=True, k=3):
    """All that a fitted model knows against the hypotheses of a plain run."""
    same = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    close = np.testing.assert_allclose
    same(as_variant(model, "last").coef_, plain.last(run))
    if run["counts"].sum():
        close(as_variant(model, "averaged").coef_, plain.averaged(run), rtol=1e-9, atol=1e-12)
    same(as_variant(model, "pocket").coef_, plain.pocket(run))
    members = as_variant(model, "committee", committee_size=k).committee_
    best = plain.best(run, k)
    same(members.weights, run["hypotheses"][best])
    same(members.successes, run["counts"][best])
    committee = as_variant(model, "committee", committee_size=k)
    close(committee.coef_, plain.committee(run, k), rtol=1e-9, atol=1e-12)
    votes = committee.set_params(combine="rank").predict(X)
    close(votes, plain.borda(X, run, k), rtol=1e-12)
    assert model.history_["hypotheses"][-1] == len(run["counts"])


# ---------------------------------------------------------------------------- golden


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_golden(solver, form):
    model = perceptron(solver=solver).fit(form(X), Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, [1, 0.5])
    assert as_variant(model, "pocket").coef_.tolist() == [1, 0]
    assert as_variant(model, "averaged").coef_.tolist() == [1, 0]
    two = as_variant(model, "committee", committee_size=2)
    assert two.committee_.weights.tolist() == [[1, 0], [1, -0.5]]
    assert two.committee_.successes.tolist() == [5, 2]
    np.testing.assert_allclose(two.coef_, [1, -1 / 7], rtol=1e-15)
    assert model.history_ == {
        "pairs": [6, 6],
        "mistakes": [2, 1],
        "hypotheses": [3, 4],
        "queries": [2, 2],
        "skipped": [0, 0],
    }
    voted = perceptron("voted", combine="rank", solver=solver).fit(form(X), Y, qid=QID)
    order = [2, 1, 3, 0]
    np.testing.assert_array_equal(voted.committee_.weights, np.array(HYPOTHESES)[order])
    assert voted.committee_.successes.tolist() == [SUCCESSES[k] for k in order]


def test_the_plain_form_is_the_golden_one():
    run = plain.learn(X, lexicographic(Y, QID, epochs=2))
    np.testing.assert_array_equal(run["hypotheses"], HYPOTHESES)
    np.testing.assert_array_equal(run["counts"], SUCCESSES)


# ---------------------------------------------------------------------------- parity


@given(problems(), st.sampled_from([0.0, 1.0, 3.0]), st.sampled_from(SOLVERS), st.booleans())
@settings(max_examples=examples(150), deadline=None)
def test_lexicographic_runs_equal_the_plain_ones(problem, margin, solver, sparse):
    X, y, qid = problem
    data = sp.csr_array(X) if sparse else X
    model = perceptron(margin=margin, solver=solver, balance=None, committee_size=5)
    run = plain.learn(
        X.astype(np.float64), lexicographic(y, qid, balance=False, epochs=2), margin=margin
    )
    useless = sum(len(set(y[rows].tolist())) < 2 for rows in queries_of(qid))
    model.fit(data, y, qid=qid)
    check(model, run, X) if len(set(qid.tolist())) == 1 else check_state(model, run)
    assert model.history_["skipped"] == [useless] * model.n_iter_


def check_state(model, run):
    np.testing.assert_array_equal(as_variant(model, "last").coef_, plain.last(run))
    members = as_variant(model, "committee", committee_size=3).committee_
    best = plain.best(run, 3)
    np.testing.assert_array_equal(members.weights, run["hypotheses"][best])
    np.testing.assert_array_equal(members.successes, run["counts"][best])


@given(problems(levels=12), st.integers(0, 2**32 - 1), st.sampled_from(SOLVERS))
@settings(max_examples=examples(100), deadline=None)
def test_shuffled_runs_equal_the_plain_ones(problem, seed, solver):
    X, y, qid = problem
    model = perceptron(
        shuffle=True, solver=solver, balance=None, random_state=seed, max_iter=3
    ).fit(X, y, qid=qid)
    visits = [(p, np.ones(len(p)), 1.0) for p, _, _ in shuffled(y, qid, seed, model.n_iter_)]
    check_state(model, plain.learn(X.astype(np.float64), visits))


@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("count", ["pair", "query"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_balanced_runs_on_real_numbers(order, count, solver):
    X, y, qid = real_data()
    model = perceptron(
        shuffle=order == "shuffle",
        count=count,
        solver=solver,
        max_iter=3,
        margin=0.01,
        random_state=5,
    ).fit(X, y, qid=qid)
    visits = lexicographic(y, qid, epochs=3) if order == "lex" else shuffled(y, qid, 5, 3)
    if count == "query":
        visits = [(pairs, steps, 1 / len(pairs)) for pairs, steps, _ in visits]
    run = plain.learn(X, visits, margin=0.01)
    # Rounded sums: no pair of these is within 1e-12 of a decision.
    assert model.history_["mistakes"] == np.reshape(run["mistakes"], (3, -1)).sum(axis=1).tolist()
    np.testing.assert_allclose(model.coef_, plain.last(run), rtol=1e-9, atol=1e-12)
    averaged = as_variant(model, "averaged").coef_
    np.testing.assert_allclose(averaged, plain.averaged(run), rtol=1e-9, atol=1e-12)
    best = plain.best(run, 20)
    members = as_variant(model, "committee").committee_
    np.testing.assert_allclose(members.successes, run["counts"][best], rtol=1e-12)
    np.testing.assert_allclose(members.weights, run["hypotheses"][best], rtol=1e-9, atol=1e-12)


def real_data(n_queries=8, n_docs=17, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, d))
    y = np.digitize(X[:, 0] - X[:, 1] + rng.normal(size=len(X)), [-1, 0.5, 1.5])
    return X, y, np.repeat(np.arange(n_queries), n_docs)


@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("form", FORMS)
def test_solvers_agree(order, form):
    X, y, qid = real_data(20, 40, 30)
    fits = {
        solver: perceptron(
            shuffle=order == "shuffle", solver=solver, margin=1.0, random_state=1, max_iter=4
        ).fit(form(X), y, qid=qid)
        for solver in [*SOLVERS, "auto"]
    }
    for name in ["lazy", "packed", "gram", "auto"]:
        assert fits[name].history_ == fits["plain"].history_
        exact = 0 if name == "lazy" else 1e-10
        np.testing.assert_allclose(fits[name].coef_, fits["plain"].coef_, rtol=exact, atol=exact)
        a, b = (as_variant(fits[k], "committee").committee_ for k in (name, "plain"))
        np.testing.assert_array_equal(a.successes, b.successes)


@pytest.mark.parametrize("order", ["lex", "shuffle"])
def test_memory_limit_changes_nothing_but_time(order):
    X, y, qid = real_data(30, 25)
    fits = [
        perceptron(shuffle=order == "shuffle", memory_limit=limit, random_state=3, max_iter=5).fit(
            X, y, qid=qid
        )
        for limit in [2**31, 0, 40_000]
    ]
    for other in fits[1:]:
        assert other.coef_.tobytes() == fits[0].coef_.tobytes()
        assert other.history_ == fits[0].history_


@pytest.mark.parametrize("n_levels", [1, 2, 4, 5, 8, 9, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_rows_and_long_queries(n_levels, dtype):
    """More features than a block of a Gram matrix holds, more pairs than a batch, any labels."""
    rng = np.random.default_rng(n_levels)
    X = rng.integers(-3, 4, size=(61, 300)).astype(dtype)
    y = rng.integers(0, n_levels + 1, size=61) * 0.37 - 5
    qid = np.zeros(61, dtype=int)
    for order in ["lex", "shuffle"]:
        fits = [
            perceptron(shuffle=order == "shuffle", solver=solver, balance=None, random_state=2).fit(
                X, y
            )
            for solver in SOLVERS
        ]
        visits = (
            lexicographic(y, qid, balance=False, epochs=2)
            if order == "lex"
            else [(p, np.ones(len(p)), 1.0) for p, _, _ in shuffled(y, qid, 2, 2)]
        )
        run = plain.learn(X.astype(np.float64), visits)
        for model in fits:
            check_state(model, run)


# ---------------------------------------------------------------------------- order


@pytest.mark.parametrize("labels", [[1, 0], [0, 0, 1], [2, 0, 1, 1, 0, 5, 2], list(range(30))])
def test_the_walk_meets_every_pair_once(labels):
    pairs = sorted(plain.pairs_of(labels))
    orders = {tuple(plain.shuffled_pairs(labels, 9, visit)) for visit in range(20)}
    for order in orders:
        assert sorted(order) == pairs
    assert len(orders) > min(len(pairs) - 1, 10)


def test_queries_need_not_be_contiguous_nor_numbered():
    X, y, qid = real_data()
    rng = np.random.default_rng(1)
    names = np.array([f"query {k}" for k in range(8)], dtype=object)[qid]
    mixed = np.lexsort((np.arange(len(y)), rng.random(8)[qid]))  # queries moved, rows in order
    interleaved = np.argsort(np.tile(np.arange(17), 8), kind="stable")  # rows of queries in turn
    ordered = perceptron().fit(X, y, qid=qid)
    for qids in (names, qid.astype(float) * 0.5 - 3):
        np.testing.assert_array_equal(perceptron().fit(X, y, qid=qids).coef_, ordered.coef_)
    where = interleaved
    model = perceptron().fit(X[where], y[where], qid=names[where])
    np.testing.assert_array_equal(model.coef_, ordered.coef_)
    np.testing.assert_array_equal(
        model.predict_rank(X[mixed], qid=names[mixed]), ordered.predict_rank(X, qid=qid)[mixed]
    )


def test_group_sizes_are_the_same_as_qid():
    X, y, qid = real_data()
    by_qid = perceptron().fit(X, y, qid=qid)
    by_group = perceptron().fit(X, y, group=[17] * 8)
    np.testing.assert_array_equal(by_qid.coef_, by_group.coef_)
    assert by_group.score(X, y, group=[17] * 8) == by_qid.score(X, y, qid=qid)
    for wrong in [[17] * 7, [8.5] * 16, [[17] * 8], [-17, *[17] * 10]]:
        with pytest.raises(ValueError, match="group"):
            perceptron().fit(X, y, group=wrong)
    with pytest.raises(ValueError, match="both qid and group"):
        perceptron().fit(X, y, qid=qid, group=[17] * 8)


# ---------------------------------------------------------------------------- invariants


@given(problems(), st.integers(0, 1000))
@settings(max_examples=examples(40), deadline=None)
def test_special_committees(problem, seed):
    X, y, qid = problem
    params = {"shuffle": True, "random_state": seed, "balance": None}
    one = perceptron("committee", committee_size=1, **params).fit(X, y, qid=qid)
    np.testing.assert_array_equal(one.coef_, as_variant(one, "pocket").coef_)
    every = perceptron("voted", combine="rank", **params).fit(X, y, qid=qid)
    large = perceptron("committee", committee_size=10_000, **params).fit(X, y, qid=qid)
    np.testing.assert_array_equal(every.committee_.weights, large.committee_.weights)
    if large.committee_.successes.any():
        averaged = as_variant(large, "averaged").coef_
        np.testing.assert_allclose(large.coef_, averaged, rtol=1e-9, atol=1e-12)
        voted = as_variant(every, "voted", combine="score").coef_
        np.testing.assert_allclose(voted, averaged, rtol=1e-9, atol=1e-12)
    by_rank = as_variant(large, "committee", combine="rank")
    np.testing.assert_array_equal(by_rank.predict(X, qid=qid), every.predict(X, qid=qid))
    for size in [1, 2, 5]:
        capped = perceptron("committee", committee_size=size, **params).fit(X, y, qid=qid)
        np.testing.assert_array_equal(capped.committee_.weights, every.committee_.weights[:size])
        few = perceptron("voted", combine="rank", max_hypotheses=size, **params)
        np.testing.assert_array_equal(
            few.fit(X, y, qid=qid).committee_.weights, every.committee_.weights[:size]
        )


def test_one_query_does_not_depend_on_the_step():
    X, y, _ = real_data(1, 60)
    balanced = perceptron(max_iter=3).fit(X, y)
    plainly = perceptron(max_iter=3, balance=None).fit(X, y)
    n_pairs = len(plain.pairs_of(y))
    np.testing.assert_allclose(balanced.coef_ * n_pairs, plainly.coef_, rtol=1e-9)
    assert balanced.history_ == plainly.history_


@given(st.integers(0, 10_000), st.sampled_from(["lex", "shuffle"]))
@settings(max_examples=examples(30), deadline=None)
def test_mistake_bounds(seed, order):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=5)
    direction /= np.linalg.norm(direction)
    X = rng.normal(size=(60, 5))
    qid = np.repeat([0, 1, 2], 20)
    y = np.round(X @ direction)
    gaps, lengths, weighted = [], [], []
    visits = [v for v in lexicographic(y, qid)]
    if not visits:
        return
    for pairs, steps, _ in visits:
        for (i, j), step in zip(pairs, steps, strict=True):
            gaps.append((X[i] - X[j]) @ direction)
            lengths.append(np.sum((X[i] - X[j]) ** 2))
            weighted.append(step * lengths[-1])
    gamma = min(gaps)
    params = {"shuffle": order == "shuffle", "max_iter": 20, "random_state": seed}
    model = perceptron(balance=None, **params).fit(X, y, qid=qid)
    assert sum(model.history_["mistakes"]) <= max(lengths) / gamma**2
    visits = lexicographic(y, qid, epochs=20) if order == "lex" else shuffled(y, qid, seed, 20)
    run = plain.learn(X, visits)
    moved = [n * steps[0] for n, (_, steps, _) in zip(run["mistakes"], visits, strict=True)]
    assert sum(moved) <= max(weighted) / gamma**2


def test_a_pass_without_mistakes_ends_the_fit():
    model = perceptron(max_iter=100).fit([[0.0], [1.0]], [0, 1])
    assert model.history_["mistakes"] == [1, 0]


# ---------------------------------------------------------------------------- weights and pairs


@given(problems(), st.integers(0, 1000), st.sampled_from(SOLVERS))
@settings(max_examples=examples(60), deadline=None)
def test_row_weights_multiply(problem, seed, solver):
    X, y, qid = problem
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], size=len(y))
    weights[:2] = 1
    model = perceptron(solver=solver, balance=None).fit(X, y, qid=qid, sample_weight=weights)
    visits = lexicographic(y, qid, balance=False, epochs=2)
    visits = [
        (
            [(i, j) for i, j in pairs if weights[i] * weights[j]],
            [weights[i] * weights[j] for i, j in pairs if weights[i] * weights[j]],
            unit,
        )
        for pairs, _, unit in visits
    ]
    check_state(model, plain.learn(X.astype(np.float64), visits))


def test_balanced_weights_sum_to_one_a_query():
    X, y, qid = real_data()
    weights = np.random.default_rng(0).uniform(0.1, 2, size=len(y))
    model = perceptron(max_iter=1).fit(X, y, qid=qid, sample_weight=weights)
    run = plain.learn(X, lexicographic(y, qid, weights=weights))
    np.testing.assert_allclose(model.coef_, plain.last(run), rtol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [1e200, 1e-160, 1e-200])
@pytest.mark.parametrize("of", ["rows", "pairs", "queries"])
def test_weights_beyond_the_range_of_steps(weight, of):
    X, y, qid = real_data()
    given = {"sample_weight": np.full(len(y), weight)}
    if of == "pairs":
        given = {"pairs": [[0, 1]], "pairs_weight": [weight], "sample_weight": np.full(136, weight)}
    if of == "queries":
        given = {"sample_weight": np.full(8, 1e308), "pairs": [[0, 1]], "pairs_weight": [1e-30]}
    with pytest.raises(ValueError, match="weights are too large or too small|all pairs weigh 0"):
        perceptron().fit(X, y, qid=qid, **given)


def test_query_weights():
    X, y, qid = real_data()
    weights = np.arange(8.0)
    model = perceptron(max_iter=1).fit(X, y, qid=qid, sample_weight=weights)
    visits = lexicographic(y, qid)
    run = plain.learn(X, [(p, s * w, u) for (p, s, u), w in zip(visits, weights, strict=True) if w])
    np.testing.assert_allclose(model.coef_, plain.last(run), rtol=1e-9)
    assert model.history_["skipped"] == [1]
    assert model.history_["queries"] == [7]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_that_are_given(solver, order, weighted):
    rng = np.random.default_rng(4)
    X = rng.integers(-3, 4, size=(30, 4)).astype(np.float64)
    pairs = np.array([p for p in rng.integers(0, 30, size=(700, 2)) if p[0] != p[1]])
    weights = rng.choice([0.0, 0.5, 2.0], size=len(pairs)) if weighted else np.ones(len(pairs))
    model = perceptron(
        solver=solver, shuffle=order == "shuffle", balance=None, random_state=6, max_iter=2
    )
    model.fit(X, pairs=pairs, pairs_weight=weights if weighted else None)
    used = [tuple(p) for p, w in zip(pairs.tolist(), weights, strict=True) if w]
    steps = dict(enumerate(w for w in weights if w))
    key = int(np.random.default_rng(6).integers(2**63))
    visits = []
    for epoch in range(2):
        places = range(len(used))
        if order == "shuffle":
            places = plain.shuffled_list(list(places), key, epoch)
        visits.append(([used[k] for k in places], [steps[k] for k in places], 1.0))
    check_state(model, plain.learn(X, visits))
    assert model.history_["pairs"] == [len(used)] * 2
    assert model.score(X, rng.integers(0, 2, 30)) >= 0  # no queries were given: none are needed


def test_pairs_of_queries_are_balanced_by_query():
    X, y, qid = real_data(3, 9)
    pairs = [(rows[i], rows[j]) for rows in queries_of(qid) for i, j in plain.pairs_of(y[rows])]
    given_pairs = perceptron().fit(X, pairs=pairs, qid=qid)
    by_label = perceptron().fit(X, y, qid=qid)
    np.testing.assert_allclose(given_pairs.coef_, by_label.coef_, rtol=1e-12)
    reordered = sorted(pairs, key=lambda pair: (pair[0] % 3, pair))  # queries mixed up
    assert perceptron().fit(X, pairs=reordered, qid=qid).history_["queries"] == [3, 3]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"pairs": [[0, 30]]}, r"pairs\[0\] names rows \[0, 30\]; there are rows 0 to 29"),
        ({"pairs": [[1, 2], [-1, 2]]}, r"pairs\[1\] names rows \[-1, 2\]"),
        ({"pairs": [[1, 2], [3, 3]]}, r"pairs\[1\] compares row 3 with itself"),
        ({"pairs": [[1, 29]], "qid": np.repeat([7, 8], 15)}, "rows 1 and 29 of different queries"),
        ({"pairs": [[0.0, 1.0]]}, "pairs must be integers"),
        ({"pairs": [0, 1]}, "pairs must be integers"),
        ({"pairs": np.empty((0, 2), int)}, "pairs is empty"),
        ({"pairs": [[0, 1]], "pairs_weight": [1, 2]}, "pairs_weight must have length 1"),
        ({"pairs": [[0, 1]], "pairs_weight": [-1]}, "finite and not negative"),
        ({"pairs": [[0, 1]], "pairs_weight": [0]}, "not be all zero"),
        ({"y": np.arange(30), "pairs_weight": [1]}, "pairs_weight requires pairs"),
        (
            {"y": np.arange(30), "sample_weight": np.ones(7)},
            r"length 30 \(one per row\) or 1 \(one per query\)",
        ),
        ({"y": np.arange(30), "sample_weight": np.full(30, np.nan)}, "finite"),
        ({"y": np.ones(30)}, "no query has two documents of different label"),
        ({"y": np.arange(30), "qid": np.arange(30)}, "was the right qid given"),
        ({"y": np.arange(30), "qid": np.arange(29)}, "qid must name the query of each of the 30"),
        ({"y": np.r_[np.nan, np.arange(29)]}, "NaN"),
        ({"y": np.array(["a", "b"] * 15)}, "labels that are numbers"),
        ({}, "requires y"),
    ],
)
def test_bad_input(params, message):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = perceptron()
    with pytest.raises(ValueError, match=message):
        model.fit(X, **params)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"variant": "best"}, ValueError, "variant must be one of 'committee'"),
        ({"combine": "vote"}, ValueError, "combine"),
        ({"shuffle": "random"}, TypeError, "shuffle"),
        ({"count": None}, ValueError, "count"),
        ({"solver": "fast"}, ValueError, "solver"),
        ({"balance": "row"}, ValueError, "balance"),
        ({"committee_size": 0}, ValueError, "committee_size"),
        ({"max_iter": 1.5}, TypeError, "max_iter"),
        ({"margin": -1}, ValueError, "margin"),
        ({"margin": np.nan}, ValueError, "margin"),
        ({"max_hypotheses": 0}, ValueError, "max_hypotheses"),
        ({"memory_limit": -1}, ValueError, "memory_limit"),
        ({"early_stopping_rounds": 3}, ValueError, "requires eval_set"),
        ({"quality": "map"}, ValueError, "requires eval_set"),
        ({"quality": "ndcg@"}, ValueError, "ndcg@"),
        ({"eval_metric": "ndcg@ten"}, ValueError, "ndcg@ten"),
        ({"eval_metric": 3}, TypeError, "eval_metric"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        perceptron().set_params(**params).fit(X, Y, qid=QID)


def test_integers_that_float64_does_not_have():
    levels = np.array([0, 0, 1, 2, 0, 1, 2])
    for labels in [levels + 2**62, levels.astype(np.uint64) + np.uint64(2**63)]:
        with pytest.raises(ValueError, match=f"cannot represent {labels[2]} exactly"):
            perceptron().fit(X, labels)
    same = perceptron().fit(X, levels)
    np.testing.assert_array_equal(perceptron().fit(X, levels * 2**60).coef_, same.coef_)


def test_group_sizes_of_any_integer_type():
    expected = perceptron().fit(X, Y, group=[3, 4]).coef_
    for dtype in [np.uint64, np.int8]:
        group = np.array([3, 4], dtype=dtype)
        np.testing.assert_array_equal(perceptron().fit(X, Y, group=group).coef_, expected)
    with pytest.raises(ValueError, match="add up to 18446744073709551623"):
        perceptron().fit(X, Y, group=np.array([2**63, 2**63, 7], dtype=np.uint64))


def test_useless_queries_are_counted():
    X, y, qid = real_data()
    y[qid == 2] = 3
    qid[qid == 5] = np.arange(100, 117)  # one document each
    model = perceptron().fit(X, y, qid=qid)
    assert model.history_["skipped"] == [18, 18]
    assert model.history_["queries"] == [6, 6]


# ---------------------------------------------------------------------------- online


@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("variant", ["committee", "voted"])
@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_queries_may_come_one_at_a_time(order, variant, solver):
    X, y, qid = real_data()
    y[qid == 3] = 0
    params = {"shuffle": order == "shuffle", "solver": solver, "margin": 0.5, "combine": "rank"}
    whole = perceptron(variant, max_iter=1, random_state=8, **params).partial_fit(X, y, qid=qid)
    parts = perceptron(variant, max_iter=1, random_state=8, **params)
    for k in range(8):
        parts.partial_fit(X[qid == k], y[qid == k], qid=qid[qid == k])
    assert as_variant(parts, "last").coef_.tobytes() == as_variant(whole, "last").coef_.tobytes()
    assert parts.history_ == whole.history_
    assert parts.history_["skipped"] == [1]
    np.testing.assert_array_equal(parts.committee_.weights, whole.committee_.weights)
    if order == "lex":
        fit = perceptron(variant, max_iter=1, **params).fit(X, y, qid=qid)
        np.testing.assert_array_equal(fit.committee_.weights, whole.committee_.weights)
        assert fit.history_ == whole.history_


def test_partial_fit_continues_a_fit():
    X, y, qid = real_data()
    model = perceptron("averaged", max_iter=2).fit(X, y, qid=qid)
    model.partial_fit(X, y, qid=qid)
    three = perceptron("averaged", max_iter=3).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, three.coef_)
    assert model.n_iter_ == 3


def test_built_in_parameters_cannot_change():
    X, y, qid = real_data()
    model = perceptron("committee").fit(X, y, qid=qid)
    for name, value in {
        "committee_size": 3,
        "count": "query",
        "shuffle": True,
        "quality": len,
        "variant": "voted",
    }.items():
        with pytest.raises(ValueError, match=f"{name}.*set it back"):
            as_variant(model, "committee").set_params(**{name: value}).partial_fit(X, y, qid=qid)
    as_variant(model, "averaged").set_params(margin=0.5, solver="plain").partial_fit(X, y, qid=qid)


@pytest.mark.parametrize("variant", ["committee", "voted"])
def test_no_trace_of_a_failed_call(variant, monkeypatch):
    X, y, qid = real_data()
    model = perceptron(variant, combine="rank").fit(X, y, qid=qid)
    before = pickle.dumps(model)
    huge = X.copy()
    huge[-20:] *= 1e200
    seen = []

    def interrupt(progress):
        seen.append(progress.done)
        raise KeyboardInterrupt

    for method in [model.fit, model.partial_fit]:
        with watch(interrupt), pytest.raises(KeyboardInterrupt):
            method(X, y, qid=qid)
        with pytest.raises(ValueError, match="overflowed"):
            method(huge, y, qid=qid)
    assert seen
    again = pickle.loads(before)
    np.testing.assert_array_equal(model.committee_.weights, again.committee_.weights)
    assert model.history_ == again.history_
    np.testing.assert_array_equal(
        model.partial_fit(X, y, qid=qid).committee_.weights,
        again.partial_fit(X, y, qid=qid).committee_.weights,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_scores_that_overflow_are_an_error(solver, order, form):
    X, y, qid = real_data()
    with pytest.raises(ValueError, match="the scores overflowed"):
        perceptron(solver=solver, shuffle=order == "shuffle").fit(form(X * 1e160), y, qid=qid)


@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_pauses_change_nothing(order, solver, monkeypatch):
    X, y, qid = real_data()
    model = perceptron(
        "voted", combine="rank", shuffle=order == "shuffle", solver=solver, random_state=0
    )
    whole = clone(model).fit(X, y, qid=qid)
    monkeypatch.setattr("rankcore.ranking._perceptron_pass.BUDGET", 1)
    monkeypatch.setattr("rankcore.ranking._perceptron_state.ROOM", 2)
    steps = []
    with watch(steps.append):
        model.fit(X, y, qid=qid)
    assert len(steps) > 16
    assert [p.measure for p in steps[:1]] == ["share of mistakes"]
    assert model.history_ == whole.history_
    np.testing.assert_array_equal(model.committee_.weights, whole.committee_.weights)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_wide_rows_pause_more_often(solver, form, monkeypatch):
    monkeypatch.setattr("rankcore.ranking._perceptron_pass.BUDGET", 2000)
    X, y, qid = real_data()
    pauses = []
    for n_features in [1, 20_000]:
        steps = []
        wide = np.tile(X, (1, n_features // 6 + 1))
        with watch(steps.append):
            model = perceptron(solver=solver, max_iter=1, committee_size=1)
            model.fit(form(wide), y, qid=qid)
        pauses.append(len(steps))
    assert pauses[0] == 1
    assert pauses[1] >= 4


def test_voters_of_very_many_features_take_room_as_they_come():
    import tracemalloc

    X = sp.csr_array(([1.0, 1.0, 1.0], [0, 999_999, 5], [0, 1, 2, 3]), shape=(3, 10**6))
    model = perceptron("voted", combine="rank", max_iter=1)
    tracemalloc.start()
    model.fit(X, [0, 1, 1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(model.committee_.successes) == 1 + model.history_["mistakes"][0]
    assert peak < 200e6


def test_voted_hypotheses_fit_the_memory_limit(monkeypatch):
    X, y, qid = real_data()
    monkeypatch.setattr("rankcore.ranking._perceptron_state.ROOM", 4)
    for limit in [200, 3 * 4 * 64 - 1]:  # 64 bytes a hypothesis; 4 old ones while 8 new are made
        with pytest.raises(ValueError, match="4 so far.*set max_hypotheses"):
            perceptron("voted", memory_limit=limit).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="8 so far"):
        perceptron("voted", memory_limit=3 * 4 * 64).fit(X, y, qid=qid)


# ---------------------------------------------------------------------------- validation


def test_history_and_early_stopping():
    X, y, qid = real_data(30)
    train, held = qid < 20, qid >= 20
    model = perceptron("averaged", shuffle=True, max_iter=30, random_state=0)
    model.set_params(early_stopping_rounds=4)
    models = []
    model.fit(
        X[train],
        y[train],
        qid=qid[train],
        eval_set=[(X[held], y[held])],
        eval_qid=[qid[held]],
        callbacks=[lambda m: models.append(m.coef_)],
    )
    curve = model.history_["ndcg@10"]
    expected = [ndcg_score(y[held], X[held] @ coef, qid=qid[held], k=10) for coef in models]
    np.testing.assert_allclose(curve, expected, rtol=1e-12)
    assert model.best_iteration_ == int(np.argmax(curve)) + 1
    assert len(curve) == model.n_iter_ in (model.best_iteration_ + 4, 30)
    np.testing.assert_array_equal(model.coef_, models[model.best_iteration_ - 1])
    for eval_set in [(X[held], y[held])]:
        last = clone(model).set_params(early_stopping_rounds=None, max_iter=3)
        last.fit(X[train], y[train], qid=qid[train], eval_set=eval_set, eval_qid=qid[held])
        np.testing.assert_array_equal(last.coef_, models[2])
        assert not hasattr(last, "best_iteration_")


def test_what_was_measured_is_kept_and_saved(tmp_path):
    X, y, qid = real_data()
    held = {"eval_set": (X, y), "eval_qid": qid}
    model = perceptron(eval_metric="map", early_stopping_rounds=1).fit(X, y, qid=qid, **held)
    history = model.history_
    assert model.set_params(eval_metric="mrr").history_ == history
    assert "map" in history
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded.history_ == history
    assert loaded.best_iteration_ == model.best_iteration_

    def pairs(labels, scores, qid):
        return 0.5

    model = perceptron(eval_metric=pairs).fit(X, y, qid=qid, **held)
    assert model.history_["validation"] == [0.5, 0.5]
    assert model.history_["pairs"] == history["pairs"]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"variant": "best"}, ValueError),
        ({"variant": "committee", "combine": "votes"}, ValueError),
        ({"variant": "committee", "committee_size": 0}, ValueError),
        ({"variant": "committee", "committee_size": -1}, ValueError),
        ({"variant": "committee", "committee_size": 1.5}, TypeError),
    ],
)
def test_answers_are_asked_for_by_good_parameters(params, error):
    model = perceptron().fit(X, Y, qid=QID).set_params(**params)
    for ask in [lambda: model.coef_, lambda: model.committee_, lambda: model.predict(X)]:
        with pytest.raises(error, match=list(params)[-1]):
            ask()


def test_metrics_of_ones_own_and_callbacks_that_stop(capsys):
    X, y, qid = real_data()

    def count_pairs(labels, scores, queries):
        return np.sum(np.sign(labels[:, None] - labels) == np.sign(scores[:, None] - scores))

    model = perceptron(eval_metric=count_pairs, verbose=1, max_iter=9)
    model.fit(X, y, qid=qid, eval_set=(X, y), callbacks=[lambda m: m.n_iter_ == 2])
    assert model.n_iter_ == 2
    assert len(model.history_["count_pairs"]) == 2
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("[PairwisePerceptron] epoch 1 of 9: ")
    assert "count_pairs" in out[0]
    with pytest.raises(ValueError, match="gave nan"):
        perceptron(eval_metric=lambda *_: np.nan).fit(X, y, qid=qid, eval_set=(X, y))
    with pytest.raises(ValueError, match="require eval_set"):
        perceptron().fit(X, y, qid=qid, eval_qid=qid)
    with pytest.raises(ValueError, match="3 features"):
        perceptron().fit(X, y, qid=qid, eval_set=(X[:, :3], y))
    with pytest.raises(TypeError, match="eval_set must be a pair"):
        perceptron().fit(X, y, qid=qid, eval_set=X)
    with pytest.raises(ValueError, match="eval_set must be one pair"):
        perceptron().fit(X, y, qid=qid, eval_set=[(X, y), (X, y)])


@pytest.mark.parametrize("solver", SOLVERS)
def test_committees_chosen_by_quality(solver):
    X, y, qid = real_data()
    asked = []

    def quality(weights):
        asked.append(weights)
        return -abs(weights[0])

    model = perceptron("committee", committee_size=3, quality=quality, solver=solver)
    model.fit(X, y, qid=qid)
    # Asked of those that would join by successes; of these the best by quality stay.
    run = plain.learn(X, lexicographic(y, qid, epochs=2))
    members, longest, judged = [], [], []
    for born in range(len(run["counts"]) - 1):
        value, count = -abs(run["hypotheses"][born][0]), run["counts"][born]
        if len(longest) == 3 and count <= min(longest):
            continue
        judged.append(born)
        longest = sorted([*longest, count])[-3:]
        members = sorted([*members, (value, -born)])[-3:]
    np.testing.assert_allclose(asked, run["hypotheses"][judged], rtol=1e-9, atol=1e-12)
    best = [-born for _, born in sorted(members, reverse=True)]
    np.testing.assert_allclose(
        model.committee_.weights, run["hypotheses"][best], rtol=1e-9, atol=1e-12
    )
    named = perceptron("committee", committee_size=3, quality="map", solver=solver)
    named.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    with pytest.raises(ValueError, match="requires the eval_set of fit"):
        named.partial_fit(X, y, qid=qid)


def test_a_quality_cannot_change_what_it_judges():
    def spoil(weights):
        value = -abs(weights[0])
        weights[:] = 7
        return value

    judged = [
        perceptron("committee", quality=quality, committee_size=2).fit(X, Y, qid=QID).committee_
        for quality in [spoil, lambda weights: -abs(weights[0])]
    ]
    np.testing.assert_array_equal(judged[0].weights, judged[1].weights)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_without_order_are_an_error(value):
    with pytest.raises(ValueError, match=f"gave {value}"):
        perceptron("committee", quality=lambda _: value).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=f"gave {value}"):
        perceptron(eval_metric=lambda *_: value).fit(X, Y, qid=QID, eval_set=(X, Y))


# ---------------------------------------------------------------------------- answers


def test_ranks_and_scores():
    X, y, qid = real_data()
    rng = np.random.default_rng(0)
    where = rng.permutation(len(y))
    X, y, qid = X[where].round(1), y[where], qid[where]
    model = perceptron("averaged").fit(X, y, qid=qid)
    scores = model.predict(X)
    np.testing.assert_allclose(scores, X @ model.coef_, rtol=1e-12)
    places = model.predict_rank(X, qid=qid)
    for rows in queries_of(qid):
        expected = sorted(rows, key=lambda row: (-scores[row], row))
        assert places[expected].tolist() == list(range(1, len(rows) + 1))
    assert sorted(model.predict_rank(X)) == list(range(1, len(y) + 1))
    assert model.score(X, y, qid=qid) == ndcg_score(y, scores, qid=qid, k=10)
    with pytest.raises(ValueError, match="score requires qid"):
        model.score(X, y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(X[:, :3])


def test_votes_count_by_query():
    X, y, qid = real_data()
    model = perceptron("voted", combine="rank").fit(X, y, qid=qid)
    run = plain.learn(X, lexicographic(y, qid, epochs=2))
    where = np.random.default_rng(0).permutation(len(y))
    got = model.predict(X[where], qid=qid[where])
    for k in range(8):
        rows = np.flatnonzero(qid == k)
        expected = dict(zip(rows, plain.borda(X[rows], run, None), strict=True))
        mine = qid[where] == k
        np.testing.assert_allclose(got[mine], [expected[row] for row in where[mine]], rtol=1e-9)
    with pytest.raises(AttributeError, match="has no coef_"):
        _ = model.coef_
    assert not hasattr(model, "coef_")


# ---------------------------------------------------------------------------- scikit-learn


def test_searches_slice_the_queries():
    import sklearn

    X, y, qid = real_data(24)
    qid = np.random.default_rng(0).permutation(24)[qid]
    with sklearn.config_context(enable_metadata_routing=True):
        model = perceptron("averaged").set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(model, {"margin": [0.0, 0.1]}, cv=GroupKFold(4))
        search.fit(X, y, qid=qid, groups=qid)
        scores = cross_val_score(
            search.best_estimator_, X, y, params={"qid": qid, "groups": qid}, cv=GroupKFold(4)
        )
    expected = []
    for train, test in GroupKFold(4).split(X, y, groups=qid):
        fitted = clone(search.best_estimator_).fit(X[train], y[train], qid=qid[train])
        expected.append(fitted.score(X[test], y[test], qid=qid[test]))
    np.testing.assert_array_equal(scores, expected)


def test_data_frames():
    pd = pytest.importorskip("pandas")
    X, y, qid = real_data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = perceptron().fit(frame, pd.Series(y), qid=pd.Series(qid), eval_set=(frame, y))
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(model.coef_, perceptron().fit(X, y, qid=qid).coef_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abcdfe")])
    with pytest.raises(ValueError, match="feature names"):
        perceptron().fit(frame, y, eval_set=(frame[list("abcdfe")], y))
    assert not hasattr(model.fit(X, y, qid=qid), "feature_names_in_")


def test_callbacks_from_an_iterator_see_every_epoch():
    X, y, qid = real_data()
    epochs = []
    callbacks = iter([lambda model: epochs.append(model.n_iter_)])
    perceptron(max_iter=3).fit(X, y, qid=qid, callbacks=callbacks)
    assert epochs == [1, 2, 3]


def test_pickles_and_copies_go_on():
    X, y, qid = real_data()
    for variant in ["committee", "voted"]:
        model = perceptron(variant, combine="rank").fit(X, y, qid=qid)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(X, qid=qid), model.predict(X, qid=qid))
        for one in (model, copy):
            one.partial_fit(X[::-1], y[::-1], qid=qid[::-1])
        np.testing.assert_array_equal(copy.committee_.weights, model.committee_.weights)


def test_inputs_are_not_changed():
    X, y, qid = real_data()
    pairs = np.array([[0, 1], [2, 3]])
    arrays = [X, y, qid, pairs]
    for array in arrays:
        array.flags.writeable = False
    before = [array.copy() for array in arrays]
    for order, solver in itertools.product(["lex", "shuffle"], SOLVERS):
        perceptron(shuffle=order == "shuffle", solver=solver).fit(X, y, qid=qid)
        perceptron(shuffle=order == "shuffle", solver=solver).fit(X, pairs=pairs)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_the_guide_runs():
    from pathlib import Path

    page = Path(__file__).parents[1] / "docs" / "pairwise.md"
    if not page.is_file():
        pytest.skip("docs/ is not beside the tests")
    blocks = page.read_text(encoding="utf-8").split("```python\n")[1:]
    names = {}
    for block in blocks:
        exec(block.split("```")[0], names)
    assert len(blocks) > 6
    assert names["search"].best_score_ > 0.5


# ---------------------------------------------------------------------------- data and memory


def test_letor_like_data():
    from rankcore.datasets import make_letor

    X, y, qid = make_letor(50, 30, random_state=1)
    again = make_letor(50, 30, random_state=1)
    for one, other in zip((X, y, qid), again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (X.shape, X.dtype, y.dtype) == ((1500, 136), np.float32, np.int32)
    shares = np.bincount(y) / 1500
    np.testing.assert_allclose(shares, [0.52, 0.23, 0.15, 0.07, 0.03], atol=1 / 1500)
    np.testing.assert_array_equal(qid, np.repeat(np.arange(1, 51), 30))
    whole = (np.round(X) == X).all(axis=0)
    assert whole.sum() == 30
    assert ((X > 0) & (X < 1)).all(axis=0).sum() >= 20
    for wrong in [(0, 1, 136), (1, 0, 136), (1, 1, 89)]:
        with pytest.raises(ValueError, match="make_letor needs"):
            make_letor(*wrong)


def test_working_memory_is_small_without_kept_matrices():
    import tracemalloc

    from rankcore.datasets import make_letor

    X, y, qid = make_letor(200, 40, random_state=1)
    model = perceptron("committee", shuffle=True, solver="gram", memory_limit=0)
    model.fit(X[:400], y[:400], qid=qid[:400])  # imports
    tracemalloc.start()
    model.fit(X, y, qid=qid)
    without = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    model.set_params(memory_limit=10**6).fit(X, y, qid=qid)
    within = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert without < 1.2 * X.nbytes
    assert without < within < without + 1.1 * 10**6
