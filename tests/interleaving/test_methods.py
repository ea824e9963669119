"""Lists and credits: those of the plain forms, and of the published cases of mpkato/interleaving.

The cases of that package (https://github.com/mpkato/interleaving, its tests of 2018) are restated
here: which lists are possible, with which probabilities, and who wins by which clicks.
"""

import signal
import time
import tracemalloc
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore._ext import interleave
from rankcore.interleaving import Balanced, Interleaved, Optimized, Probabilistic, TeamDraft
from rankcore.interleaving.rankings import Rankings
from reference import interleaving as plain
from strategies import examples

pytestmark = pytest.mark.kernel

SEEDS = st.integers(0, 2**64 - 1)


@st.composite
def rankings_of(draw, least=2, most=5):
    documents = st.permutations(range(draw(st.integers(1, 8))))
    found = [draw(documents) for _ in range(draw(st.integers(least, most)))]
    # Rankings of unequal length, some of documents that others lack, some empty.
    return [
        [d + 3 * draw(st.integers(0, 1)) * 100 for d in ranking][: draw(st.integers(0, 8))]
        for ranking in found
    ]


def drawn(method, rankings, n, length=None, weights=None):
    """Return lists of the seeds 0 .. n - 1, at once."""
    numbered = Rankings.of(rankings)
    length = min(numbered.length(length), len(numbered.names))
    shown, owners = np.empty((n, length), np.int64), np.empty((n, length), np.int32)
    lengths = np.empty(n, np.int32)
    scratch = np.empty(interleave.n_room(numbered.offsets))
    weights = np.ones(1) if weights is None else weights
    interleave.draw(
        interleave.Method[method.upper()], numbered.documents, numbered.offsets, weights, scratch,
        np.arange(n, dtype=np.uint64), shown, owners, lengths,
    )  # fmt: skip
    return numbered, shown, owners, lengths


def frequencies(method, rankings, n, length=None):
    weights = Probabilistic()._weights(Rankings.of(rankings))
    numbered, shown, _, lengths = drawn(method, rankings, n, length, weights)
    counts = Counter(tuple(row[:k]) for row, k in zip(shown.tolist(), lengths, strict=True))
    return {tuple(numbered.names[code] for code in row): k / n for row, k in counts.items()}


def close(found, expected, n):
    """Whether shares of n draws are within four standard errors of probabilities."""
    assert found.keys() == expected.keys()
    for key, p in expected.items():
        assert abs(found[key] - p) <= 4 * (p * (1 - p) / n) ** 0.5 + 1e-12, key
    return True


# ------------------------------------------------------------------ plain forms


@given(rankings_of(), st.integers(1, 12), SEEDS)
@settings(max_examples=examples(200))
def test_team_draft_equals_the_plain_form(rankings, length, seed):
    found = TeamDraft().interleave(rankings, length=length, seed=seed)
    assert (found.documents, found.owners.tolist()) == plain.team_draft(rankings, length, seed)
    assert [*found.rankings] == rankings


@given(rankings_of(most=2), st.integers(1, 12), SEEDS)
@settings(max_examples=examples(100))
def test_balanced_equals_the_plain_form(rankings, length, seed):
    found = Balanced().interleave(rankings, length=length, seed=seed)
    assert (found.documents, found.owners.tolist()) == plain.balanced(rankings, length, seed)
    clicks = np.random.default_rng(seed).integers(0, 2, len(found.documents))
    credit = Balanced().credit(found, clicks)
    assert credit.tolist() == plain.balanced_credit(rankings, found.documents, clicks.tolist())


@given(rankings_of(), st.integers(1, 12), SEEDS, st.sampled_from([0, 1, 3, 0.5, 2.25]))
@settings(max_examples=examples(200))
def test_probabilistic_equals_the_plain_form(rankings, length, seed, tau):
    found = Probabilistic(tau).interleave(rankings, length=length, seed=seed)
    expected = plain.probabilistic(rankings, length, seed, tau)
    assert (found.documents, found.owners.tolist()) == expected


@pytest.mark.parametrize("tau", [0, 1, 3])
def test_long_probabilistic_lists_equal_the_plain_form(tau):
    """Of the same documents, of others, and of some of each."""
    rng = np.random.default_rng(tau)
    rankings = [rng.permutation(160)[:n].tolist() for n in (150, 97, 128)]
    found = Probabilistic(tau).interleave(rankings, length=160, seed=7)
    expected = plain.probabilistic(rankings, 160, 7, tau)
    assert (found.documents, found.owners.tolist()) == expected
    # The credits of the documents, by the definition.
    credit, gone = np.zeros(3), []
    for document in found.documents:
        p = [plain.draw_probability(ranking, gone, document, tau) for ranking in rankings]
        credit += [float(one / sum(p)) for one in p]
        gone.append(document)
    given = Probabilistic(tau).credit(found, np.ones(len(found.documents)))
    np.testing.assert_allclose(given, credit, rtol=1e-12)


def test_probabilistic_lists_of_many_documents_take_seconds():
    n = 60_000
    rankings = [range(n), [*range(n - 1, -1, -1)]]
    start = time.process_time()
    found = Probabilistic().interleave(rankings, seed=1)
    credit = Probabilistic().credit(found, np.ones(n))
    assert time.process_time() - start < 5  # a quadratic form takes minutes
    assert sorted(found.documents) == [*range(n)]
    assert credit.sum() == pytest.approx(n)


@given(rankings_of(most=3), st.integers(1, 5), SEEDS, st.sampled_from([1, 3]))
@settings(max_examples=examples(60))
def test_credit_is_the_expectation_over_assignments(rankings, length, seed, tau):
    method = Probabilistic(tau)
    found = method.interleave(rankings, length=length, seed=seed)
    clicks = np.random.default_rng(seed).integers(0, 3, len(found.documents))
    exact = plain.probabilistic_credit(rankings, found.documents, clicks.tolist(), tau)
    # Sums and quotients of at most eight positive numbers: a few units in the last place.
    np.testing.assert_allclose(
        method.credit(found, clicks), [float(c) for c in exact], rtol=1e-14, atol=0
    )


def biases(plan, rankings, length, kind):
    """Differences of the expected credits of neighbours, at each length."""
    found = []
    for upto in range(1, length + 1):
        expected = [
            sum(
                p * float(plain.place_credit(ranking, d, kind))
                for shown, p in zip(plan.lists, plan.probabilities, strict=True)
                for d in shown[:upto]
            )
            for ranking in rankings
        ]
        found += np.diff(expected).tolist()
    return found


@st.composite
def of_equal_length(draw):
    n = draw(st.integers(1, 6))
    documents = st.permutations(range(draw(st.integers(n, 10))))
    return [draw(documents)[:n], draw(documents)[:n]]


@given(of_equal_length(), st.integers(1, 6), st.sampled_from(["inverse", "negative"]))
@settings(max_examples=examples(60))
def test_plans_of_two_rankings_are_unbiased(rankings, length, kind):
    length = min(length, len({*rankings[0], *rankings[1]}))
    plan = Optimized(credit_by=kind).plan(rankings, length=length)
    assert {tuple(one) for one in plan.lists} <= plain.prefix_lists(rankings, length)
    assert plan.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert plan.bias == 0
    # The linear program keeps its equations to 1e-7.
    np.testing.assert_allclose(biases(plan, rankings, length, kind), 0, atol=1e-6)


@given(rankings_of(most=3), st.integers(1, 4), st.sampled_from(["inverse", "negative"]))
@settings(max_examples=examples(60))
@pytest.mark.filterwarnings("ignore:no distribution over lists")
def test_plans_report_their_bias(rankings, length, kind):
    plan = Optimized(credit_by=kind).plan(rankings, length=length)
    length = min(length, len({d for ranking in rankings for d in ranking}))
    assert {tuple(one) for one in plan.lists} <= plain.prefix_lists(rankings, length)
    assert plan.probabilities.sum() == pytest.approx(1, abs=1e-12)
    found = np.abs(biases(plan, rankings, length, kind)).max(initial=0)
    assert plan.bias == pytest.approx(found, abs=2e-6)


def test_a_biased_plan_warns():
    with pytest.warns(UserWarning, match="no distribution over lists of these 2 rankings"):
        plan = Optimized().plan([[], [0, 1]], length=2)
    assert plan.lists == [[0, 1]]
    # Behind the last place of no documents is place 1: credits 1 and 1 against 1 and 1/2.
    assert plan.bias == 0.5


@given(rankings_of(), SEEDS)
@settings(max_examples=examples(60))
def test_credit_is_the_sum_over_clicks(rankings, seed):
    found = TeamDraft().interleave(rankings, length=4, seed=seed)
    clicks = np.random.default_rng(seed).integers(0, 2, len(found.documents))
    for kind in ["inverse", "negative"]:
        pairs = [*zip(found.documents, clicks.tolist(), strict=True)]
        expected = [sum(plain.place_credit(r, d, kind) * c for d, c in pairs) for r in rankings]
        np.testing.assert_allclose(
            Optimized(kind).credit(found, clicks), [float(c) for c in expected], rtol=1e-14
        )


def test_many_lists_are_sampled():
    rankings = [[*range(12)], [*range(11, -1, -1)]]
    assert len(plain.prefix_lists(rankings, 8)) == 2**8
    method = Optimized(max_lists=100)
    plan = method.plan(rankings, length=8)
    assert {tuple(one) for one in plan.lists} <= plain.prefix_lists(rankings, 8)
    again = method.plan(rankings, length=8)
    assert again.lists == plan.lists
    assert again.probabilities.tolist() == plan.probabilities.tolist()


def test_sampling_in_blocks_equals_one_draw():
    """Lists are drawn in blocks, which must not change them, in memory beside their own."""
    generator = np.random.default_rng(0)
    rankings = [generator.permutation(1000).tolist() for _ in range(2)]
    method = Optimized(max_lists=64)
    numbered = Rankings.of(rankings)
    seeds = np.arange(20 * 64, dtype=np.uint64)
    shown, _, n = numbered.draw("prefixes", seeds, 1000, np.ones(1))
    assert (n == 1000).all()
    expected = [*dict.fromkeys(map(tuple, shown.tolist()))][:64]
    assert len(expected) == 64
    tracemalloc.start()
    found = method._lists(numbered, 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == sorted(expected)
    assert peak < 6 * 2**20, peak  # 20 MiB if all are drawn at once


@pytest.mark.parametrize("method", [Balanced(), TeamDraft(), Probabilistic(), Optimized()])
@pytest.mark.parametrize("missing", [np.nan, None, pd.NA, pd.NaT, np.datetime64("NaT")])
def test_missing_documents_are_rejected(method, missing):
    with pytest.raises(ValueError, match="ranking 1 contains .* at position 2: drop missing items"):
        method.interleave([["a", "b", "c"], ["b", "c", missing]], seed=0)


def test_picks_have_the_probabilities_of_a_plan():
    n = 100_000
    found = np.empty(n, np.int32)
    p = np.array([0.1, 0.0, 0.25, 0.5, 0.15])
    interleave.pick(np.cumsum(p), np.arange(n, dtype=np.uint64), found)
    shares = {i: float(np.mean(found == i)) for i in np.unique(found).tolist()}
    assert close(shares, {0: 0.1, 2: 0.25, 3: 0.5, 4: 0.15}, n)


# ------------------------------------------------------------------ cases of mpkato/interleaving

TWO = [[1, 2], [2, 3]]  # one document in common
APART = [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("method", "rankings", "length", "possible"),
    [
        ("balanced", TWO, 2, {(1, 2), (2, 1)}),
        ("balanced", APART, 2, {(1, 3), (3, 1)}),
        ("balanced", TWO, 3, {(1, 2), (2, 1, 3)}),
        ("balanced", APART, 3, {(1, 3, 2), (3, 1, 4)}),
        ("team_draft", TWO, 2, {(1, 2), (2, 1)}),
        ("team_draft", TWO, 3, {(1, 2, 3), (2, 1, 3)}),
        ("team_draft", TWO, 4, {(1, 2, 3), (2, 1, 3)}),
        ("team_draft", APART, 2, {(1, 3), (3, 1)}),
        ("team_draft", APART, 3, {(1, 3, 2), (1, 3, 4), (3, 1, 2), (3, 1, 4)}),
        (
            "team_draft", [[1, 2], [2, 3], [3, 4]], 2,
            {(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)},
        ),
        (
            "team_draft", [[1, 2], [3, 4], [5, 6]], 2,
            {(1, 3), (1, 5), (3, 1), (3, 5), (5, 1), (5, 3)},
        ),
        ("prefixes", TWO, 2, {(1, 2), (2, 1), (2, 3)}),
    ],
)  # fmt: skip
def test_sampled_lists_are_the_possible_ones(method, rankings, length, possible):
    assert frequencies(method, rankings, 1000, length).keys() == possible


def test_team_draft_assigns_the_first_documents():
    for rankings in (TWO, APART):
        for seed in range(20):
            found = TeamDraft().interleave(rankings, seed=seed)
            of = dict(zip(found.documents, found.owners.tolist(), strict=True))
            assert of == {rankings[0][0]: 0, rankings[1][0]: 1}


def test_team_draft_has_four_outcomes():
    found = set()
    for seed in range(200):
        one = TeamDraft().interleave([[1, 2, 3], [2, 3, 1]], seed=seed)
        found.add((*one.documents, *one.owners.tolist()))
    assert len(found) == 4


def test_balanced_lists_begin_with_either_ranking_equally_often():
    assert close(frequencies("balanced", TWO, 10_000), {(1, 2): 0.5, (2, 1): 0.5}, 10_000)


@pytest.mark.parametrize(
    ("rankings", "expected"),
    [
        ([[0], [1]], {0: 1 / 2, 1: 1 / 2}),
        ([[0], [1], [2]], {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}),
        ([[0, 1, 2], [0, 1, 2]], {0: 0.8605578, 1: 0.1075697, 2: 0.0318725}),
        ([[0, 1], [1, 2]], {0: 0.4444444, 1: 0.5, 2: 0.0555556}),
    ],
)
def test_probabilistic_lists_start_with_the_published_probabilities(rankings, expected):
    n = 200_000
    found = Counter()
    for documents, share in frequencies("probabilistic", rankings, n, 1).items():
        found[documents[0]] += share
    assert close(found, expected, n)


def test_probabilistic_lists_have_no_document_twice():
    n = 5000
    for rankings in ([[0, 1, 2], [1, 2, 0]], [[0, 1, 2], [1, 2, 0], [2, 0, 1]]):
        found = frequencies("probabilistic", rankings, n)
        assert all(len({*documents}) == len(documents) == 3 for documents in found)
        assert len(found) == 6
    assert {len(d) for d in frequencies("probabilistic", [[0], [0, 1], [0, 1, 2]], n)} == {1}
    far = frequencies("probabilistic", [[0, 1], [2, 3]], n)
    assert {d for documents in far for d in documents} == {0, 1, 2, 3}


def test_each_ranker_is_drawn_as_often():
    n = 90_000
    _, _, owners, _ = drawn(
        "probabilistic", [[0, 3, 6], [1, 4, 7], [2, 5, 8]], n, 1, np.array([1, 1 / 8, 1 / 27])
    )
    shares = {r: float(np.mean(owners[:, 0] == r)) for r in range(3)}
    assert close(shares, dict.fromkeys(range(3), 1 / 3), n)


def test_assignments_have_the_published_probabilities():
    # Of the list 1 2 from 1 2 and 2 3: only the first ranker has document 1.
    first = 1 / (1 + 1 / 8)
    exact = {(0, 0): first, (0, 1): first * first, (1, 0): 0, (1, 1): 0}
    found = plain.assignments(TWO, [1, 2], 3)
    assert {key: float(p) for key, p in found.items()} == pytest.approx(exact)


@pytest.mark.parametrize(
    ("rankings", "shown", "clicks", "order"),
    [
        ([[1, 2, 3, 4], [2, 3, 4, 1]], [1, 2, 3, 4], [0, 1, 1, 0], [1, 0]),
        ([[1, 2], [2, 1], [2, 3]], [1, 2], [1, 1], [0, 1, 2]),
    ],
)
def test_probabilistic_lists_have_the_published_winners(rankings, shown, clicks, order):
    one = Interleaved(shown, np.full(len(shown), -1, np.int32), tuple(rankings))
    credit = Probabilistic().credit(one, clicks)
    assert np.argsort(-credit).tolist() == order
    assert len({*credit.tolist()}) == len(rankings)


def winner(credit):
    return None if credit[0] == credit[1] else int(credit[1] > credit[0])


@pytest.mark.parametrize(
    ("method", "shown", "owners", "winners"),
    [
        (Balanced(), [1, 2], [0, 1], {(1, 1): None, (1, 0): 0, (0, 1): 1, (0, 0): None}),
        (
            Balanced(), [2, 1, 3], [1, 0, 1],
            {
                (1, 1, 1): None, (1, 1, 0): None, (1, 0, 1): 1, (0, 1, 1): None,
                (1, 0, 0): 1, (0, 1, 0): 0, (0, 0, 1): 1, (0, 0, 0): None,
            },
        ),
        (TeamDraft(), [1, 2], [0, 1], {(1, 1): None, (1, 0): 0, (0, 1): 1, (0, 0): None}),
        (
            TeamDraft(), [1, 3, 4], [0, 1, 1],
            {
                (1, 1, 1): 1, (1, 1, 0): None, (1, 0, 1): None, (0, 1, 1): 1,
                (1, 0, 0): 0, (0, 1, 0): 1, (0, 0, 1): 1, (0, 0, 0): None,
            },
        ),
        (Optimized(), [1, 2], [-1, -1], {(1, 1): 0, (1, 0): 0, (0, 1): 1, (0, 0): None}),
        (Optimized(), [2, 1], [-1, -1], {(1, 1): 0, (1, 0): 1, (0, 1): 0, (0, 0): None}),
        (Optimized(), [2, 3], [-1, -1], {(1, 1): 1, (1, 0): 1, (0, 1): 1, (0, 0): None}),
    ],
)  # fmt: skip
def test_credits_name_the_winner(method, shown, owners, winners):
    rankings = APART if shown == [1, 3, 4] else TWO
    one = Interleaved(shown, np.array(owners, np.int32), tuple(rankings))
    assert {clicks: winner(method.credit(one, clicks)) for clicks in winners} == winners


def test_optimised_lists_have_the_published_probabilities():
    plan = Optimized().plan(TWO)
    found = {tuple(one): p for one, p in zip(plan.lists, plan.probabilities, strict=True)}
    # The only solution of three equations: 3/7, 13/35 and 1/5.
    assert found == pytest.approx({(1, 2): 3 / 7, (2, 1): 13 / 35, (2, 3): 1 / 5}, abs=1e-9)
    counts = Counter(tuple(plan.draw(seed).documents) for seed in range(20_000))
    assert close({d: k / 20_000 for d, k in counts.items()}, found, 20_000)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("rankings", "error", "message"),
    [
        ([[1, 2]], ValueError, "rankings must have 2 to 64 rankings; got 1"),
        ([[1]] * 65, ValueError, "rankings must have 2 to 64 rankings; got 65"),
        ([[1, 2, 1], [2]], ValueError, "ranking 0 must have each document once; got 1 twice"),
        ([[1], [[2], [3]]], TypeError, "documents of ranking 1 must be hashable"),
        ([[1], 2], TypeError, "ranking 1 must be a sequence of documents; got int"),
        ([[1], "ab"], TypeError, "ranking 1 must be a sequence of documents; got str"),
        ("ab", TypeError, "rankings must be sequences of documents; got str"),
        (3, TypeError, "rankings must be sequences of documents; got int"),
    ],
)
@pytest.mark.parametrize("method", [TeamDraft(), Probabilistic(), Optimized()])
def test_bad_rankings_are_rejected(method, rankings, error, message):
    with pytest.raises(error, match=message):
        method.interleave(rankings, seed=0)


def test_bad_numbers_are_rejected():
    with pytest.raises(ValueError, match="rankings must have 2 rankings; got 3"):
        Balanced().interleave([[1], [2], [3]], seed=0)
    with pytest.raises(ValueError, match=r"seed must be from 0 to 2\*\*64 - 1; got -1"):
        TeamDraft().interleave(TWO, seed=-1)
    with pytest.raises(TypeError, match="seed must be an integer; got 0.5"):
        TeamDraft().interleave(TWO, seed=0.5)
    with pytest.raises(ValueError, match="length"):
        TeamDraft().interleave(TWO, length=0, seed=0)
    with pytest.raises(ValueError, match="tau"):
        Probabilistic(tau=-1.0)
    with pytest.raises(ValueError, match="credit_by must be one of 'inverse', 'negative'"):
        Optimized(credit_by="rank")
    shown = TeamDraft().interleave(TWO, seed=0)
    with pytest.raises(ValueError, match="one number for each of the 2 documents shown; got 1"):
        TeamDraft().credit(shown, [1])
    with pytest.raises(ValueError, match="clicked must be finite and not negative"):
        TeamDraft().credit(shown, [1, -1])


@pytest.mark.parametrize("method", [TeamDraft(), Balanced(), Probabilistic(), Optimized()])
@pytest.mark.parametrize("owners", [[], [0], [0, 1, 0]])
def test_credit_rejects_owners_of_another_length(method, owners):
    shown = replace(TeamDraft().interleave(TWO, seed=0), owners=np.array(owners, dtype=np.int32))
    with pytest.raises(ValueError, match="owners must have one number for each of the 2 documents"):
        method.credit(shown, [1, 0])


def test_balanced_credit_rejects_more_than_two_rankings():
    shown = TeamDraft().interleave([*TWO, ["a"]], seed=0)
    with pytest.raises(ValueError, match="rankings must have 2 rankings; got 3"):
        Balanced().credit(shown, np.ones(len(shown.documents)))


def test_documents_are_any_hashable_values():
    found = TeamDraft().interleave([["a", ("b", 1)], np.array(["c", "a"])], length=9, seed=3)
    assert {*found.documents} == {"a", ("b", 1), "c"}
    empty = TeamDraft().interleave([[], []], length=3, seed=0)
    assert (empty.documents, empty.owners.tolist()) == ([], [])
    assert TeamDraft().credit(empty, []).tolist() == [0, 0]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="requires timers")
@pytest.mark.parametrize("name", ["balanced", "places"])
def test_long_rankings_can_be_interrupted(name):
    """These credits are quadratic in the number of documents."""
    n = 100_000
    rankings = [range(n), range(n, 2 * n)]
    shown = Interleaved([*range(n - 1, -1, -1)], np.zeros(n, np.int32), tuple(map(list, rankings)))
    calls = {
        "balanced": lambda: Balanced().credit(shown, np.ones(n)),
        "places": lambda: Optimized().credit(shown, np.ones(n)),
    }

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    start = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            calls[name]()
        assert time.perf_counter() - start < 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
