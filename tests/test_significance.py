"""Comparing rankings: every sign pattern, Holm by hand, seeds, coverage, and what is shown."""

import itertools

import numpy as np
import pytest
from scipy.stats import permutation_test

from rankcore.metrics import (
    Convention,
    brier_score,
    compare,
    compare_evaluations,
    evaluate,
    log_loss,
    rank_loss,
    ranked_probability_score,
)
from rankcore.metrics.significance import MANY, bootstrap_interval, holm, randomisation_test
from rankcore.metrics.tables import p_text

RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(40), 15)
Y = RNG.integers(0, 3, QID.size)
SYSTEMS = {
    name: Y + spread * RNG.normal(size=QID.size)
    for name, spread in [("good", 0.5), ("fair", 2.0), ("same", 2.0)]
}


@pytest.mark.parametrize(
    "d",
    [
        [0.5],
        [0.1, 0.2, -0.3],
        [0.25, 0.25, 0.25, 0.25],
        [0.5, -0.25, 0.125, 1.0, -0.5, 0.75],
        [0.1, 0.0, 0.3, 0.0, 0.2, -0.1, 0.4, 0.1],
    ],
)
def test_exact_test_tries_every_sign_pattern(d):
    means = [sum(s * x for s, x in zip(signs, d, strict=True)) for signs in patterns(len(d))]
    expected = np.mean([abs(mean) >= abs(sum(d)) - 1e-12 for mean in means])
    assert randomisation_test(np.array(d), 1000, None) == pytest.approx(expected)
    if len(d) > 1:  # SciPy wants two
        found = permutation_test(
            (np.array(d),), np.sum, permutation_type="samples", n_resamples=np.inf
        )
        assert randomisation_test(np.array(d), 1000, None) == pytest.approx(found.pvalue)


def patterns(n):
    return itertools.product([-1, 1], repeat=n)


def test_random_test_estimates_the_exact_one():
    d = np.random.default_rng(1).normal(0.35, 1, 14)
    exact = randomisation_test(d, 2**14, None)
    assert 0.01 < exact < 0.5
    for seed in range(5):
        found = randomisation_test(d, 9999, np.random.default_rng(seed))
        # Five standard deviations of a share of 9999 draws.
        assert abs(found - exact) < 5 * np.sqrt(exact * (1 - exact) / 9999) + 1e-4


def test_equal_systems_are_not_significantly_different():
    found = compare({"a": Y, "b": Y}, Y, qid=QID)
    for contrast in found:
        assert (contrast.difference, contrast.low, contrast.high) == (0, 0, 0)
        assert contrast.p_value == contrast.p_holm == 1
        assert (contrast.wins, contrast.ties, contrast.losses) == (0, 40, 0)


def test_constant_differences_and_single_queries_have_p_values():
    y = np.tile([1, 0], 30)
    qid = np.repeat(np.arange(30), 2)
    found = compare({"a": -y, "b": y}, y, qid=qid, metrics="mrr")[0]
    assert (found.low, found.difference, found.high) == (0.5, 0.5, 0.5)
    assert found.p_value == 1 / 10_000
    alone = compare({"a": -y, "b": y}, y, qid=np.zeros(60), metrics="mrr")[0]
    assert alone.n == 1
    assert alone.p_value == 1


def test_holm_corrections_equal_those_by_hand():
    # Four p-values, ascending .01, .02, .03, .04, times 4, 3, 2, 1, never descending.
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([0.5]) == [0.5]


def test_contrasts_equal_results_of_evaluate():
    found = compare(SYSTEMS, Y, qid=QID, metrics=["map", "ndcg@5"])
    assert [(c.measure, c.a, c.b) for c in found] == [
        (measure, a, b)
        for measure in ("map", "ndcg@5")
        for a, b in [("good", "fair"), ("good", "same"), ("fair", "same")]
    ]
    for c in found:
        a = evaluate(Y, SYSTEMS[c.a], qid=QID, metrics=c.measure)
        b = evaluate(Y, SYSTEMS[c.b], qid=QID, metrics=c.measure)
        d = b.per_query[c.measure] - a.per_query[c.measure]
        assert (c.mean_a, c.mean_b) == (a[c.measure], b[c.measure])
        assert c.difference == pytest.approx(d.mean())
        assert (c.wins, c.ties, c.losses) == ((d > 0).sum(), (d == 0).sum(), (d < 0).sum())
        assert c.low <= c.difference <= c.high
    corrected = holm([c.p_value for c in found])
    assert [c.p_holm for c in found] == corrected
    assert found[0].p_holm < 0.01 < found[2].p_value


def test_smaller_losses_win():
    y, qid = [1, 0, 1, 0, 1, 0], [1, 1, 2, 2, 3, 3]
    a, b = [1, 2, 1, 2, 1, 1], [2, 1, 2, 1, 1, 2]
    found = compare({"a": a, "b": b}, y, qid=qid, metrics=["misranking", "auc"])
    assert [(c.wins, c.ties, c.losses) for c in found] == [(2, 1, 0), (2, 0, 1)]
    assert [c.difference for c in found] == [pytest.approx(-2 / 3), pytest.approx(0.5)]


def test_baseline_and_seeds_are_used():
    every = compare(SYSTEMS, Y, qid=QID, metrics="map")
    some = compare(SYSTEMS, Y, qid=QID, metrics="map", baseline="fair")
    assert [(c.a, c.b) for c in some] == [("fair", "good"), ("fair", "same")]
    # A contrast is the same whatever else is compared.
    assert (some[1].p_value, some[1].low) == (every[2].p_value, every[2].low)
    again = compare(SYSTEMS, Y, qid=QID, metrics="map", random_state=0)
    assert again.contrasts == every.contrasts
    other = compare(SYSTEMS, Y, qid=QID, metrics="map", random_state=1)
    assert other[2].low != every[2].low


def test_queries_omitted_by_one_system_are_omitted_from_the_pair():
    y, qid = [1, 0, 0, 0, 0, 1], [1, 1, 2, 2, 3, 3]
    found = compare(
        {"a": [2, 1, 2, 1, 2, 1], "b": [2, 1, 1, 2, 1, 2]},
        y,
        qid=qid,
        metrics="mrr",
        convention=Convention(empty="skip"),
    )[0]
    assert found.n == 2
    assert found.difference == 0.25


def test_evaluations_are_compared_on_common_queries():
    a = evaluate([1, 0, 1, 0], [2, 1, 1, 2], qid=["p", "p", "q", "q"], metrics="mrr")
    b = evaluate([1, 0, 0, 1], [2, 1, 1, 2], qid=["r", "r", "q", "q"], metrics="mrr")
    found = compare_evaluations({"a": a, "b": b})
    assert (found[0].n, found[0].difference) == (1, 0.5)
    assert str(found).splitlines()[-1] == "only 1 of 3 queries are in all systems"
    assert "in all systems" not in str(compare_evaluations({"a": a, "again": a}))
    assert found.differences().tolist() == [0.5]
    c = evaluate([1, 0], [1, 2], qid=["s", "s"], metrics="mrr")
    with pytest.raises(ValueError, match="no query in common"):
        compare_evaluations({"a": a, "c": c})
    with pytest.raises(ValueError, match="must be measured by mrr; got map for b"):
        compare_evaluations({"a": a, "b": evaluate([1, 0], [1, 2], metrics="map")})


def test_different_evaluations_are_not_compared():
    arguments = {"y_true": Y, "y_score": SYSTEMS["good"], "qid": QID, "metrics": "ndcg"}
    table = np.array([0.0, 1.0, 3.0])
    plain = evaluate(**arguments, convention=Convention(gain=table))
    same = evaluate(**arguments, convention=Convention(gain=table.copy()))
    assert compare_evaluations({"a": plain, "b": same})[0].ties == 40
    linear = evaluate(**arguments, convention="trec_eval")
    with pytest.raises(ValueError, match="b was measured with linear gain"):
        compare_evaluations({"a": plain, "b": linear})
    weighted = evaluate(**arguments, convention=same.convention, query_weight=np.arange(40))
    with pytest.raises(ValueError, match="got those of b"):
        compare_evaluations({"a": plain, "b": weighted})


def test_intervals_cover_the_truth():
    # 200 samples of 60 differences around 0.2: the 90 % interval holds it in about 90 %.
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        from rankcore.metrics.significance import bootstrap_interval

        low, high = bootstrap_interval(rng.normal(0.2, 1, 60), 999, 0.9, rng)
        covered += low <= 0.2 <= high
    # The percentile interval is a little narrow; four standard deviations of 200 trials.
    assert abs(covered / 200 - 0.89) < 4 * np.sqrt(0.9 * 0.1 / 200)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scores": {"a": Y}}, ValueError, "at least two systems are required; got 1"),
        ({"baseline": "none"}, ValueError, "'none' is not among the systems good, fair, same"),
        ({"n_resamples": 0}, ValueError, "n_resamples must be an integer >= 1"),
        ({"n_resamples": 10.5}, TypeError, "n_resamples must be an integer"),
        ({"confidence_level": 95}, ValueError, "confidence_level must be between 0 and 1"),
        ({"metrics": "ndgc"}, ValueError, "did you mean 'ndcg'"),
        ({"convention": "trek"}, ValueError, "trec"),
        ({"scores": [Y, Y]}, TypeError, "scores must be a mapping from names to scores"),
        ({"scores": {1: Y, 2: Y}}, TypeError, "systems must have str for names; got 1"),
    ],
)
def test_bad_arguments_are_rejected(options, error, message):
    with pytest.raises(error, match=message):
        compare(**({"scores": SYSTEMS, "y_true": Y, "qid": QID} | options))


def test_comparison_prints_tables():
    pytest.importorskip("pandas")
    console = pytest.importorskip("rich.console").Console(width=160)
    found = compare(SYSTEMS, Y, qid=QID, metrics="map")
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["measure", "a", "b"]
    assert lines[1].split()[:3] == ["map", "good", "fair"]
    assert f"{found[0].difference:+.4f}" in lines[1]
    assert "3 contrasts" in repr(found)
    assert "<th>good</th>" in found._repr_html_()
    with console.capture() as capture:
        console.print(found)
    assert "good" in capture.get()
    assert p_text(0.00004) == "<0.0001"
    assert p_text(0.00005) == "0.0001"
    frame = found.to_frame()
    assert frame.shape == (3, 14)
    assert frame["p_holm"].tolist() == [c.p_holm for c in found]


STARS = RNG.integers(1, 6, 12)
GUESSES = {name: np.clip(STARS + RNG.integers(-2, 3, 12), 1, 5) for name in ("a", "b")}


def test_predicted_labels_are_compared_over_rows():
    (found,) = compare(GUESSES, STARS)
    losses = {name: np.abs(guess - STARS) for name, guess in GUESSES.items()}
    d = (losses["b"] - losses["a"]).astype(float)
    exact = permutation_test((d,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert (found.measure, found.n) == ("rank_loss", 12)
    assert (found.mean_a, found.mean_b) == (losses["a"].mean(), losses["b"].mean())
    assert found.p_value == pytest.approx(exact.pvalue)
    assert (found.wins, found.losses) == ((d < 0).sum(), (d > 0).sum())


def test_words_are_compared_by_their_ranks():
    words = np.array(["worst", "bad", "fair", "good", "best"])
    (expected,) = compare(GUESSES, STARS)
    named = {name: words[guess - 1] for name, guess in GUESSES.items()}
    (found,) = compare(named, words[STARS - 1], labels=words)
    assert found == expected


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("rps", ranked_probability_score),
        ("ranked_probability_score", ranked_probability_score),
        ("brier_score", brier_score),
        ("log_loss", log_loss),
    ],
)
def test_probabilities_are_compared_over_rows(metric, score):
    tables = {name: RNG.dirichlet(np.ones(5), 12) for name in ("a", "b")}
    labels = np.arange(1, 6)
    (found,) = compare(tables, STARS, metrics=metric, labels=labels)
    means = [score(STARS, table, labels=labels) for table in tables.values()]
    assert [found.mean_a, found.mean_b] == pytest.approx(means, abs=1e-12)


def test_rank_loss_of_probabilities_uses_the_median():
    tables = {name: RNG.dirichlet(np.ones(5), 12) for name in ("a", "b")}
    found = compare(tables, STARS, labels=np.arange(1, 6))
    medians = [1 + (table.cumsum(axis=1) < 0.5).sum(axis=1) for table in tables.values()]
    losses = [rank_loss(STARS, median) for median in medians]
    assert [one.measure for one in found] == ["rank_loss", "ranked_probability_score"]
    assert [found[0].mean_a, found[0].mean_b] == losses


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": "ndcg@10"}, "'ndcg@10'; rankings of queries require qid"),
        ({"metrics": "rank_los"}, "did you mean 'rank_loss'"),
        ({"metrics": "quadratic_weighted_kappa"}, "have a value in each row"),
        ({"metrics": []}, "name at least one"),
        ({"metrics": "rps"}, "requires probabilities of all ranks"),
        ({"convention": "trec_eval"}, "pass qid, too"),
        ({"qid": np.zeros(12), "labels": [1, 2]}, "labels must be words, lowest grade first"),
    ],
)
def test_errors_of_row_comparisons_name_the_mismatch(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare(GUESSES, STARS, **arguments)


UNIFORM = np.full((12, 5), 0.2)
IMPOSSIBLE = np.where(np.arange(5) == STARS[:, None] - 1, 0.0, 0.25)


@pytest.mark.parametrize("tables", [(IMPOSSIBLE, IMPOSSIBLE), (IMPOSSIBLE, UNIFORM)])
def test_an_infinite_log_loss_is_an_error_that_names_the_system(tables):
    labels = np.arange(1, 6)
    with pytest.raises(ValueError, match=r"scores of 'a': log_loss must be finite.*12 of 12 rows"):
        compare(dict(zip("ab", tables, strict=True)), STARS, metrics="log_loss", labels=labels)


def test_suggested_remedy_makes_an_infinite_log_loss_finite():
    mixed = 0.99 * IMPOSSIBLE + 0.01 / 5
    tables = {"a": mixed, "b": UNIFORM}
    (found,) = compare(tables, STARS, metrics="log_loss", labels=np.arange(1, 6))
    assert found.mean_a == pytest.approx(-np.log(0.002))


@pytest.mark.parametrize("options", [{}, {"qid": np.zeros(12)}])
def test_errors_name_the_system(options):
    with pytest.raises(ValueError, match="scores of 'b': "):
        compare({"a": STARS, "b": STARS[:-1]}, STARS, **options)


def test_distances_are_in_ranks_with_labels_and_in_units_without():
    wide = 10 * STARS
    guesses = {"near": np.clip(STARS + 1, 1, 5) * 10, "same": wide}
    of_units = compare(guesses, wide, metrics="accuracy_within")[0]
    of_ranks = compare(guesses, wide, metrics="accuracy_within", labels=10 * np.arange(1, 6))[0]
    assert of_units.mean_a == np.mean(STARS == 5)
    assert of_ranks.mean_a == 1.0


def test_many_differences_are_tested_by_the_normal_distribution():
    d = np.random.default_rng(2).normal(0.005, 1, MANY)
    p_value = randomisation_test(d, 3999, np.random.default_rng(0))
    interval = bootstrap_interval(d, 3999, 0.9, np.random.default_rng(0))
    # Two more small differences change less than five standard deviations of random samples.
    more = np.append(d, [0.01, 0.01])
    assert abs(randomisation_test(more, 3999, None) - p_value) < 0.04
    assert bootstrap_interval(more, 3999, 0.9, None) == pytest.approx(interval, abs=1.7e-3)


def test_frames_of_queries_show_the_greatest_losses_first():
    pytest.importorskip("pandas")
    found = compare({"good": SYSTEMS["good"], "fair": SYSTEMS["fair"]}, Y, qid=QID, metrics="map")
    frame = found.query_frame()
    assert list(frame.columns) == ["n_rows", "good", "fair", "difference"]
    assert frame["n_rows"].tolist() == [15] * 40
    assert frame["difference"].is_monotonic_increasing
    assert frame["difference"].mean() == pytest.approx(found[0].difference)
    rows = compare(GUESSES, STARS).query_frame()  # a loss: higher is worse
    assert rows.index.name == "row"
    assert rows["difference"].is_monotonic_decreasing
