"""Pairwise perceptrons: worked numbers, parity with the plain loops, order, weights and pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from pairwise_problems import (
    FORMS,
    QID,
    SOLVERS,
    X,
    Y,
    as_variant,
    lexicographic,
    perceptron,
    queries_of,
    real_data,
)
from reference import pairwise as plain
from strategies import examples

pytestmark = pytest.mark.kernel

HYPOTHESES = [[0, 0], [1, -0.5], [1, 0], [1, 0.5]]


SUCCESSES = [0, 2, 5, 2]


def shuffled(y, qid, seed, epochs):
    """Draws of the estimator from a seed: the seed of the pairs, then orders of the queries."""
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
def test_runs_have_the_golden_values(solver, form):
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


def test_the_plain_form_has_the_golden_values():
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


@pytest.mark.parametrize("n_labels", [2, 4, 8, 300])
def test_pairs_too_many_to_list_are_visited_in_the_same_order(n_labels):
    rng = np.random.default_rng(n_labels)
    X = rng.integers(-4, 5, size=(400, 3)).astype(np.float64)
    y, qid = np.arange(400) % n_labels, np.zeros(400, dtype=int)
    assert len(plain.pairs_of(y)) > 2**15
    model = perceptron(shuffle=True, balance=None, random_state=3, max_iter=1).fit(X, y, qid=qid)
    visits = [(p, np.ones(len(p)), 1.0) for p, _, _ in shuffled(y, qid, 3, 1)]
    check_state(model, plain.learn(X, visits))


def seed_of(draw):
    """Return a seed below 2^63 of whose visit 0 the first draw has these upper 32 bits."""

    def unmixed(z):
        for shift, factor in [(31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)]:
            whole = z
            for _ in range(64 // shift):
                z = whole ^ (z >> shift)
            z = z * pow(factor, -1, 2**64) % 2**64
        return z

    step = 0x9E3779B97F4A7C15
    for low in range(99):
        seed = (unmixed((unmixed(draw << 32 | low) - step) % 2**64) - step) % 2**64
        if seed < 2**63:
            assert next(plain.draws(seed, 0)) >> 32 == draw
            return seed
    raise AssertionError


@pytest.mark.parametrize("draw", [0, pow(3, -1, 2**32), pow(3, -1, 2**32) + 1])
def test_biased_random_draws_are_rejected(draw, monkeypatch):
    # Of 2^32 draws times 3, the one whose lower half is 0 is one too many; 1 is the next.
    labels, seed = np.array([1, 1, 1, 0]), seed_of(draw)
    new_state = rc.PairwisePerceptron._new_state

    def seeded(self, n_features, generator):
        state = new_state(self, n_features, generator)
        state.seed = seed
        return state

    monkeypatch.setattr(rc.PairwisePerceptron, "_new_state", seeded)
    # Every pair is a mistake, so that the hypotheses show the order.
    model = perceptron(shuffle=True, max_iter=1, balance=None, margin=9.0).fit(
        np.eye(4), labels, qid=np.zeros(len(labels))
    )
    visits = [(plain.shuffled_pairs(labels, seed, 0), np.ones(3), 1.0)]
    check_state(model, plain.learn(np.eye(4), visits, margin=9.0))


@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("count", ["pair", "query"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_balanced_runs_on_real_numbers_equal_the_plain_form(order, count, solver):
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
def test_wide_rows_and_long_queries_equal_the_plain_form(n_levels, dtype):
    """More features than a block of a Gram matrix holds, more pairs than a batch, any labels."""
    rng = np.random.default_rng(n_levels)
    X = rng.integers(-3, 4, size=(61, 300)).astype(dtype)
    y = rng.integers(0, n_levels + 1, size=61) * 0.37 - 5
    qid = np.zeros(61, dtype=int)
    for order in ["lex", "shuffle"]:
        fits = [
            perceptron(shuffle=order == "shuffle", solver=solver, balance=None, random_state=2).fit(
                X, y, qid=np.zeros(len(y))
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
def test_the_walk_visits_every_pair_once(labels):
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
    with pytest.raises(ValueError, match="qid and group have the same meaning"):
        perceptron().fit(X, y, qid=qid, group=[17] * 8)


# ---------------------------------------------------------------------------- invariants


@given(problems(), st.integers(0, 1000))
@settings(max_examples=examples(40), deadline=None)
def test_committee_of_one_equals_last_and_of_all_equals_voted(problem, seed):
    X, y, qid = problem
    params = {"shuffle": True, "random_state": seed, "balance": None}
    one = perceptron("committee", committee_size=1, **params).fit(X, y, qid=qid)
    np.testing.assert_array_equal(one.coef_, as_variant(one, "pocket").coef_)
    every = perceptron("voted", **params).fit(X, y, qid=qid)
    large = perceptron("committee", committee_size=10_000, **params).fit(X, y, qid=qid)
    np.testing.assert_array_equal(every.committee_.weights, large.committee_.weights)
    if large.committee_.successes.any():
        averaged = as_variant(large, "averaged").coef_
        np.testing.assert_allclose(large.coef_, averaged, rtol=1e-9, atol=1e-12)
        # The mean of all voters is the average, which is why "voted" requires ranks.
        voters = every.committee_
        mean = np.average(voters.weights, axis=0, weights=voters.successes)
        np.testing.assert_allclose(mean, averaged, rtol=1e-9, atol=1e-12)
        with pytest.raises(ValueError, match="use that instead"):
            as_variant(every, "voted", combine="score").predict(X)
    by_rank = as_variant(large, "committee", combine="rank")
    np.testing.assert_array_equal(by_rank.predict(X, qid=qid), every.predict(X, qid=qid))
    named = as_variant(every, "voted", combine="rank")
    np.testing.assert_array_equal(named.predict(X, qid=qid), every.predict(X, qid=qid))
    for size in [1, 2, 5]:
        capped = perceptron("committee", committee_size=size, **params).fit(X, y, qid=qid)
        np.testing.assert_array_equal(capped.committee_.weights, every.committee_.weights[:size])
        few = perceptron("voted", combine="rank", max_hypotheses=size, **params)
        np.testing.assert_array_equal(
            few.fit(X, y, qid=qid).committee_.weights, every.committee_.weights[:size]
        )


def test_one_query_does_not_depend_on_the_step():
    X, y, _ = real_data(1, 60)
    balanced = perceptron(max_iter=3).fit(X, y, qid=np.zeros(len(y)))
    plainly = perceptron(max_iter=3, balance=None).fit(X, y, qid=np.zeros(len(y)))
    n_pairs = len(plain.pairs_of(y))
    np.testing.assert_allclose(balanced.coef_ * n_pairs, plainly.coef_, rtol=1e-9)
    assert balanced.history_ == plainly.history_


@given(st.integers(0, 10_000), st.sampled_from(["lex", "shuffle"]))
@settings(max_examples=examples(30), deadline=None)
def test_mistakes_stay_below_their_bound(seed, order):
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
    model = perceptron(max_iter=100).fit([[0.0], [1.0]], [0, 1], qid=[0] * 2)
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
@pytest.mark.parametrize("of", ["rows", "pairs", "queries"])
def test_weights_beyond_the_range_of_steps_are_rejected(of):
    X, y, qid = real_data()
    pairs = {"pairs": [[0, 1], [0, 2]]}
    given = {"sample_weight": np.full(len(y), 1e200)}
    if of == "pairs":
        given |= {"pairs_weight": [1e200, 1.0], **pairs}
    model = perceptron(balance=None)
    fit = model.fit
    if of == "queries":  # steps of 1e308 / (0.5 + 1e-30); fit would divide by the mean
        given = {"sample_weight": np.full(8, 1e308), "pairs_weight": [0.5, 1e-30], **pairs}
        fit = model.set_params(balance="query").partial_fit
    with pytest.raises(ValueError, match="weights are too large or too small"):
        fit(X, y, qid=qid, **given)


def test_query_weights_multiply_steps():
    X, y, qid = real_data()
    weights = np.arange(8.0)
    model = perceptron(max_iter=1).fit(X, y, qid=qid, sample_weight=weights)
    visits = [
        (pairs, steps * weight / weights[1:].mean(), unit)
        for (pairs, steps, unit), weight in zip(lexicographic(y, qid), weights, strict=True)
        if weight
    ]
    np.testing.assert_allclose(model.coef_, plain.last(plain.learn(X, visits)), rtol=1e-9)
    assert model.history_["skipped"] == [1]
    assert model.history_["queries"] == [7]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("weighted", [False, True])
def test_listed_pairs_are_visited(solver, order, weighted):
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
        ({"pairs": [[0, 30]]}, r"row numbers from 0 to 29; got pairs\[0\] = \[0, 30\]"),
        ({"pairs": [[1, 2], [-1, 2]]}, r"got pairs\[1\] = \[-1, 2\]"),
        ({"pairs": [[1, 2], [3, 3]]}, r"pairs\[1\] compares row 3 with itself"),
        ({"pairs": [[1, 29]], "qid": np.repeat([7, 8], 15)}, "rows 1 and 29 of different queries"),
        ({"pairs": [[0.0, 1.0]]}, "pairs must be integers"),
        ({"pairs": [0, 1]}, "pairs must be integers"),
        ({"pairs": np.empty((0, 2), int)}, "pairs must not be empty"),
        ({"pairs": [[0, 1]], "pairs_weight": [1, 2]}, "pairs_weight must have length 1"),
        ({"pairs": [[0, 1]], "pairs_weight": [-1]}, "finite and not negative"),
        ({"pairs": [[0, 1]], "pairs_weight": [0]}, "not be all zero"),
        ({"y": np.arange(30), "pairs_weight": [1]}, "pairs_weight requires pairs"),
        (
            {"y": np.arange(30), "sample_weight": np.ones(7)},
            r"length 30 \(one per row\) or 1 \(one per query\)",
        ),
        ({"y": np.arange(30), "sample_weight": np.full(30, np.nan)}, "finite"),
        ({"y": np.ones(30)}, "no query has two documents of different labels"),
        ({"y": np.arange(30), "qid": np.arange(30)}, "check qid"),
        ({"y": np.arange(30), "qid": np.arange(29)}, "qid must name the query of each of the 30"),
        ({"y": np.r_[np.nan, np.arange(29)]}, "NaN"),
        ({"y": np.array(["a", "b"] * 15)}, "string labels have no order"),
        ({}, "requires y"),
    ],
)
def test_bad_input_is_rejected(params, message):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = perceptron()
    declared = {} if "group" in params else {"qid": np.zeros(30)}
    with pytest.raises(ValueError, match=message):
        model.fit(X, **declared | params)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"variant": "best"}, ValueError, "variant must be one of 'averaged'"),
        ({"combine": "vote"}, ValueError, "combine"),
        ({"shuffle": "random"}, TypeError, "shuffle"),
        ({"count": None}, TypeError, "count"),
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
def test_bad_parameters_are_rejected(params, error, message):
    with pytest.raises(error, match=message):
        perceptron().set_params(**params).fit(X, Y, qid=QID)


def test_integers_beyond_float64_are_rejected():
    levels = np.array([0, 0, 1, 2, 0, 1, 2])
    for labels in [levels + 2**62, levels.astype(np.uint64) + np.uint64(2**63)]:
        with pytest.raises(ValueError, match=f"cannot represent {labels[2]} exactly"):
            perceptron().fit(X, labels, qid=np.zeros(len(labels)))
    same = perceptron().fit(X, levels, qid=np.zeros(len(levels)))
    large = perceptron().fit(X, levels * 2**60, qid=np.zeros(len(levels)))
    np.testing.assert_array_equal(large.coef_, same.coef_)


def test_group_sizes_may_have_any_integer_type():
    expected = perceptron().fit(X, Y, group=[3, 4]).coef_
    for dtype in [np.uint64, np.int8]:
        group = np.array([3, 4], dtype=dtype)
        np.testing.assert_array_equal(perceptron().fit(X, Y, group=group).coef_, expected)
    with pytest.raises(ValueError, match="got 18446744073709551623"):
        perceptron().fit(X, Y, group=np.array([2**63, 2**63, 7], dtype=np.uint64))


def test_queries_without_pairs_are_counted():
    X, y, qid = real_data()
    y[qid == 2] = 3
    qid[qid == 5] = np.arange(100, 117)  # one document each
    model = perceptron().fit(X, y, qid=qid)
    assert model.history_["skipped"] == [18, 18]
    assert model.history_["queries"] == [6, 6]
