"""Counterfactual evaluation: the plain form, unbiasedness by enumeration, coverage of intervals."""

import warnings
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore.clicks import ClickLog, PositionBasedModel, Propensities
from rankcore.clicks.evaluation import evaluate
from reference import counterfactual as plain
from strategies import NIGHTLY, examples

THETA = [1.0, 0.5, 0.25, 0.2]


def log_of(rows):
    """Return a log of (query, document, position, clicked)."""
    names = ["query", "document", "position", "clicked"]
    columns = [*zip(*rows, strict=True)] or [()] * 4
    return SimpleNamespace(**{name: np.array(c) for name, c in zip(names, columns, strict=True)})


def table_of(ranking):
    """Return a ranking of the plain form as columns, in another order than that of the scores."""
    rows = [
        (query, document, -place, relevance)
        for query, documents in ranking.items()
        for place, (document, relevance) in enumerate(documents)
    ][::-1]
    names = ["query", "document", "score", "relevance"]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def quietly(*args, **kwargs):
    """`evaluate` of few clicks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the effective sample size", UserWarning)
        return evaluate(*args, **{"n_resamples": 10} | kwargs)


IMPRESSIONS = st.lists(
    st.tuples(
        st.sampled_from("pqr"), st.integers(1, 5), st.integers(1, 4), st.booleans()
    ),
    min_size=1,
    max_size=40,
)  # fmt: skip


@given(
    IMPRESSIONS,
    st.permutations(range(1, 7)),
    st.sampled_from(["ips", "snips", "dr"]),
    st.sampled_from([None, 1.0, 3.0]),
    st.sampled_from(["dcg@2", "dcg", "precision@3", "mrr", "mrr@2"]),
    st.sampled_from([None, [0.3, 0.1, 0.05, 0.0]]),
)
@settings(max_examples=examples(200))
def test_values_equal_the_plain_form(rows, order, estimator, clip, measure, trust):
    ranking = {
        query: [(document, document / 10) for document in documents]
        for query, documents in [("p", order), ("q", order[::-1]), ("x", order)]
    }
    expected = plain.evaluate(
        rows, ranking, THETA, measure, estimator, float("inf") if clip is None else clip, trust
    )
    arguments = log_of(rows), table_of(ranking)
    options = {"propensity": Propensities(THETA, trust=trust), "metrics": measure}
    options |= {"estimator": estimator, "clip": clip}
    if not expected:
        with pytest.raises(ValueError, match="must have queries in common"):
            evaluate(*arguments, **options)
        return
    found = quietly(*arguments, **options)
    assert {*found.queries} == expected.keys()
    by_query = dict(zip(found.queries, found[measure].per_query.tolist(), strict=True))
    # Another order of the same sums.
    assert by_query == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert found[measure].value == pytest.approx(np.mean([*expected.values()]), abs=1e-12)


# Two lists of three documents, so that each is shown at two positions or at one.
LISTS = [[("a", 1), ("b", 2), ("c", 3)], [("b", 1), ("a", 2), ("c", 3)]]
GAMMA = {"a": Fraction(1, 4), "b": Fraction(2, 3), "c": Fraction(1, 2)}
EXACT_THETA = [Fraction(1), Fraction(1, 2), Fraction(1, 5)]


def expectation(measure, estimator, clip, model, lists=LISTS, trust=(0, 0, 0)):
    """Return the expected value of an estimate, over all possible clicks on the lists."""
    shown = [one for each in lists for one in each]
    total = Fraction(0)
    for clicks in product([0, 1], repeat=len(shown)):
        p = Fraction(1)
        for (document, position), clicked in zip(shown, clicks, strict=True):
            click = EXACT_THETA[position - 1] * GAMMA[document] + trust[position - 1]
            p *= click if clicked else 1 - click
        rows = [("q", d, at, c) for (d, at), c in zip(shown, clicks, strict=True)]
        ranking = {"q": [(d, model[d]) for d in "bca"]}
        values = plain.evaluate(rows, ranking, EXACT_THETA, measure, estimator, clip, trust)
        total += p * values["q"]
    return total


def truth(measure):
    name, _, k = measure.partition("@")
    gammas = [GAMMA[d] for d in "bca"]
    return plain.MEASURES[name](gammas, int(k) if k else 3)


MODEL = {"a": Fraction(1, 2), "b": Fraction(1, 10), "c": Fraction(9, 10)}  # a wrong one
UNCLIPPED = Fraction(10**9)


@pytest.mark.parametrize("measure", ["precision@2", "mrr"])
@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_estimates_without_clipping_are_unbiased(measure, estimator):
    assert expectation(measure, estimator, UNCLIPPED, MODEL) == truth(measure)
    trust = [Fraction(1, 5), Fraction(1, 10), Fraction(1, 50)]
    assert expectation(measure, estimator, UNCLIPPED, MODEL, trust=trust) == truth(measure)


def test_clipping_bounds_weights():
    clip = Fraction(2)
    # Self-normalised: unbiased still. Doubly robust: if the model is right.
    assert expectation("precision@2", "snips", clip, MODEL) == truth("precision@2")
    assert expectation("precision@2", "dr", clip, GAMMA) == truth("precision@2")
    assert expectation("mrr", "dr", clip, GAMMA) == truth("mrr")
    # Document c, only shown at position 3, loses what is clipped: its weight is 2 of 5.
    lost = GAMMA["c"] * Fraction(3, 5) / 2
    assert expectation("precision@2", "ips", clip, MODEL) == truth("precision@2") - lost
    # With a wrong model, its error has the share of what is clipped.
    error = (MODEL["c"] - GAMMA["c"]) * Fraction(3, 5) / 2
    assert expectation("precision@2", "dr", clip, MODEL) == truth("precision@2") + error


def test_fraction_of_documents_never_shown_is_reported():
    lists = [one[:2] for one in LISTS]
    assert expectation("precision@2", "ips", UNCLIPPED, MODEL, lists) == GAMMA["b"] / 2
    assert expectation("precision@2", "dr", UNCLIPPED, GAMMA, lists) == truth("precision@2")
    rows = [("q", d, p, 1) for one in lists for d, p in one]
    found = quietly(
        log_of(rows), table_of({"q": [(d, 0) for d in "bca"]}), propensity=THETA,
        metrics=["precision@1", "precision@2"],
    )  # fmt: skip
    assert found.never_shown == 0.5  # c, of b and c


def simulated(rng, n_queries, n_sessions, gamma, noise):
    """Return a log whose lists change from session to session, and a new ranking with its truth."""
    m, theta = gamma.shape[1], 1 / np.arange(1.0, gamma.shape[1] + 1)
    keys = gamma[:, None, :] + rng.normal(0, 0.5, (n_queries, n_sessions, m))
    document = np.argsort(-keys, axis=2).ravel()
    query = np.repeat(np.arange(n_queries), n_sessions * m)
    position = np.tile(np.arange(1, m + 1), n_queries * n_sessions)
    clicked = rng.random(query.size) < theta[position - 1] * gamma[query, document]
    log = SimpleNamespace(query=query, document=document, position=position, clicked=clicked)
    score = gamma + rng.normal(0, noise, gamma.shape)
    new = {
        "query": np.repeat(np.arange(n_queries), m),
        "document": np.tile(np.arange(m), n_queries),
        "score": score.ravel(),
        "relevance": np.full(gamma.size, 1 / 3),
    }
    return log, new, theta, np.take_along_axis(gamma, np.argsort(-score, axis=1), axis=1)


def relevance(rng, n):
    return rng.beta(1, 2, (n, 5))


def population(measure):
    """Mean of a measure over very many queries."""
    name, _, k = measure.partition("@")
    rng = np.random.default_rng(7)
    gamma = relevance(rng, 40_000)
    order = np.argsort(-(gamma + rng.normal(0, 0.3, gamma.shape)), axis=1)
    gammas = np.take_along_axis(gamma, order, axis=1)[:, :5]
    place = np.arange(1, 6)
    if name == "ndcg":
        best = -np.sort(-gamma, axis=1)
        return np.mean((gammas @ (1 / np.log2(place + 1))) / (best @ (1 / np.log2(place + 1))))
    if name == "precision":
        return gammas[:, : int(k)].mean()
    none_yet = np.cumprod(1 - gammas, axis=1) / (1 - gammas)
    return np.mean((gammas * none_yet) @ (1 / place))


def attraction(log, new):
    """Relevance of a ranking by a click model of the same log."""
    clicks = ClickLog(log.query, log.document, log.position, log.clicked)
    model = PositionBasedModel().fit(clicks)
    ids = zip(model.query_.tolist(), model.document_.tolist(), strict=True)
    known = dict(zip(ids, model.attraction_.tolist(), strict=True))
    asked = zip(new["query"].tolist(), new["document"].tolist(), strict=True)
    return np.minimum([known[one] for one in asked], 1.0)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("estimator", "clip", "fitted"),
    [("ips", None, False), ("snips", 3.0, False), ("dr", None, False), ("dr", 3.0, True)],
)
def test_intervals_cover_the_truth(estimator, clip, fitted):
    runs = 2000 if NIGHTLY else 60
    rng, hits = np.random.default_rng(3), {"ndcg@5": 0, "precision@3": 0, "mrr": 0}
    truths = {measure: population(measure) for measure in hits}
    for _ in range(runs):
        log, new, theta, _ = simulated(rng, 60, 400, relevance(rng, 60), 0.3)
        if fitted:
            new["relevance"] = attraction(log, new)
        found = evaluate(
            log, new, propensity=theta, metrics=[*hits], estimator=estimator, clip=clip,
            n_resamples=400,
        )  # fmt: skip
        for measure in hits:
            hits[measure] += found[measure].low <= truths[measure] <= found[measure].high
    # Of 60 runs with 95%, fewer than 51 have a probability of 0.1%.
    low, high = (0.92, 0.97) if NIGHTLY else (0.85, 1.0)
    for measure, count in hits.items():
        print(f"{measure}: {count / runs:.1%} of {runs} intervals have the truth")
        assert low <= count / runs <= high, measure


def test_estimate_from_many_clicks_is_close_to_the_true_value():
    rng = np.random.default_rng(4)
    log, new, theta, gammas = simulated(rng, 20, 5000, relevance(rng, 20), 0.3)
    for options in [{}, {"estimator": "snips", "clip": 2.0}, {"estimator": "dr"}]:
        found = evaluate(log, new, propensity=theta, metrics=["ndcg@5", "mrr"], **options)
        for measure in found:
            name, _, k = measure.partition("@")
            exact = [plain.MEASURES[name](one.tolist(), int(k or 5)) for one in gammas]
            assert found[measure].value == pytest.approx(np.mean(exact), abs=0.01)


def test_ids_may_be_integers():
    rows = [("q", d, p, d == "b") for one in LISTS for d, p in one]
    plain_log = log_of(rows)
    queries, query = np.unique(plain_log.query, return_inverse=True)
    documents, document = np.unique(plain_log.document, return_inverse=True)
    numbered = SimpleNamespace(
        query=query, document=document, queries=queries, documents=documents,
        position=plain_log.position, clicked=plain_log.clicked,
    )  # fmt: skip
    new = table_of({"q": [("b", 0), ("a", 0)], "other": [("b", 0)]})
    both = [
        quietly(log, new, propensity=SimpleNamespace(theta=THETA), metrics="mrr")["mrr"].value
        for log in (plain_log, numbered)
    ]
    assert both == [1.5, 1.5]  # of one click at weight 1 and one at 2


def test_few_clicks_warn():
    rows = [("q", "a", 1, 1)] * 99
    new = table_of({"q": [("a", 0)]})
    with pytest.warns(UserWarning, match="the effective sample size is 99 clicks, below 100"):
        found = evaluate(log_of(rows), new, propensity=[1.0], metrics="mrr")
    assert found.effective_sample_size == 99
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(log_of([*rows, rows[0]]), new, propensity=[1.0], metrics="mrr")
    assert found["mrr"].low == found["mrr"].high == found["mrr"].value == 1
    # Kish: 90 clicks of weight 1 and 10 of weight 4.
    rows = [("q", "a", 1, 1)] * 90 + [("q", "a", 2, 1)] * 10
    with pytest.warns(UserWarning, match="is 68 clicks"):
        found = evaluate(log_of(rows), new, propensity=[1.0, 0.25], metrics="mrr")
    assert found.effective_sample_size == pytest.approx(130**2 / 250)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics": "map"}, "metrics must be of ndcg, dcg, precision and mrr"),
        ({"metrics": []}, "metrics must name at least one measure"),
        ({"estimator": "best"}, "estimator must be one of 'ips', 'snips', 'dr'"),
        ({"clip": 0.5}, "clip"),
        ({"confidence_level": 1.0}, "confidence_level must be between 0 and 1"),
        ({"propensity": [1.0]}, "one number for each position, 1 to 2; got 1"),
        ({"propensity": [1.0, 0.0]}, "propensity must be finite and above 0"),
        ({"propensity": [1.0, np.nan]}, "propensity must be finite and above 0"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"ranking": {"query": ["q"], "document": ["a"]}}, "score is missing"),
        ({"ranking": {"query": ["q"], "document": ["a"], "score": [1, 2]}}, "same length"),
        ({"ranking": {"query": ["q"], "document": ["a"], "score": [np.nan]}}, "score must be fin"),
        (
            {"ranking": {"query": ["q"] * 2, "document": ["a"] * 2, "score": [1, 2]}},
            "each document of a query once",
        ),
        ({"ranking": {"query": ["x"], "document": ["a"], "score": [1]}}, "queries in common"),
        (
            {"estimator": "dr", "ranking": {"query": ["q"], "document": ["a"], "score": [1]}},
            "relevance is missing",
        ),
        (
            {
                "estimator": "dr",
                "ranking": {"query": ["q"], "document": ["a"], "score": [1], "relevance": [2]},
            },
            r"relevance must be in \[0, 1\]",
        ),
    ],
)
def test_bad_input_is_rejected(change, message):
    arguments = {
        "ranking": {"query": ["q"], "document": ["a"], "score": [1]},
        "propensity": [1.0, 0.5],
        **change,
    }
    with pytest.raises(ValueError, match=message):
        evaluate(log_of([("q", "a", 1, 1), ("q", "b", 2, 0)]), **arguments)
