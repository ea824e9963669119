"""Samplers by themselves: asking, telling, and what they know."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy.stats import kendalltau

from rankcore.preference import (
    Comparison,
    Judges,
    PreferenceRanker,
    RoundSampler,
    Sampler,
    call_plan,
    quicksort_rank,
)
from simulated_judges import Judge, answer_all

SAMPLERS = {
    "rating": Sampler,
    **{
        method: partial(RoundSampler, method=method)
        for method in ("quicksort", "degree", "halving")
    },
}


def tau(places, ranking):
    return kendalltau(np.asarray(places)[ranking], np.arange(len(places))).statistic


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("step", [None, 1, 7])
def test_exact_judge_gives_the_order(name, step):
    places = np.random.default_rng(0).permutation(15)
    sampler = SAMPLERS[name](list(range(15)), seed=1)
    assert not sampler.done()
    while asked := sampler.ask(step):
        for comparison in asked:
            u, v = comparison.items
            sampler.tell(comparison, places[u] < places[v])
    assert sampler.done()
    assert places[sampler.ranking()].tolist() == list(range(15))
    assert sampler.ratings().n_answers.sum() == 2 * sampler.n_answers


@pytest.mark.parametrize("name", SAMPLERS)
def test_same_answers_lead_to_the_same_questions(name):
    places = np.random.default_rng(1).permutation(20)
    one, other = (SAMPLERS[name](list(range(20)), seed=3) for _ in range(2))
    judge = Judge(places, 0, noise=0.1)
    for turn in range(40):
        asked, again = one.ask(3), other.ask(3)
        assert asked == again
        if turn % 4 == 0:
            one.ratings()  # neither this nor done changes the next questions
        if turn % 7 == 3:
            other = pickle.loads(pickle.dumps(other))
        for comparison in asked:
            answer = judge(*comparison.places)
            one.tell(comparison, answer)
            one.done()
            other.tell(comparison, answer)
    np.testing.assert_array_equal(one.ranking(), other.ranking())


@pytest.mark.parametrize("name", SAMPLERS)
def test_answers_may_come_in_any_order_and_late(name):
    places, rng = np.random.default_rng(2).permutation(20), np.random.default_rng(0)
    sampler, waiting = SAMPLERS[name](list(range(20)), seed=0), []
    while True:
        waiting += sampler.ask(10)
        if not waiting:
            break
        for _ in range(int(rng.integers(1, len(waiting) + 1))):
            comparison = waiting.pop(int(rng.integers(len(waiting))))
            u, v = comparison.places
            sampler.tell(comparison, places[u] < places[v])
    assert places[sampler.ranking()].tolist() == list(range(20))


def test_outstanding_comparisons_are_not_asked_again():
    sampler = Sampler(list(range(12)), seed=0)
    asked = [frozenset(comparison.places) for comparison in sampler.ask(40)]
    assert len(asked) == len(set(asked)) == 40


@pytest.mark.parametrize("name", SAMPLERS)
def test_abstentions_skip_a_pair(name):
    places = np.random.default_rng(4).permutation(15)
    sampler = SAMPLERS[name](list(range(15)), seed=0)
    never, n_asked = {0, 1}, 0
    while (asked := sampler.ask()) and sampler.n_answers < 1000:
        for comparison in asked:
            u, v = comparison.places
            n_asked += {u, v} == never
            sampler.tell(comparison, None if {u, v} == never else places[u] < places[v])
    assert n_asked <= 1
    assert tau(places, sampler.ranking()) > 0.8


@pytest.mark.parametrize(
    ("answers", "answer", "error", "what"),
    [
        ("degree", 1.5, ValueError, r"a degree in \[0, 1\]; got 1.5"),
        ("degree", float("nan"), ValueError, "got nan"),
        ("degree", "yes", TypeError, "a number in .* or a boolean; got 'yes'"),
        ("best", 4, ValueError, "about 4 items must be integers from 0 to 3; got 4"),
        ("best", True, ValueError, "integers from 0 to 3; got True"),
        ("order", [1, 2, 3, 4], ValueError, r"integers from 0 to 3; got \[1, 2, 3, 4\]"),
        ("order", [0, 0, 1], ValueError, r"none twice; got \[0, 0, 1\]"),
        ("order", [], ValueError, "at least one position"),
        ("order", "0123", TypeError, "a list of positions; got '0123'"),
        ("order", 2, TypeError, "a list of positions; got 2"),
    ],
)
def test_wrong_answers_are_rejected_and_change_nothing(answers, answer, error, what):
    size = 2 if answers == "degree" else 4
    sampler = Sampler(list(range(8)), size=size, answers=answers, seed=0)
    comparison = Comparison(tuple(range(size)))
    with pytest.raises(error, match=what):
        sampler.tell(comparison, answer)
    assert sampler.n_answers == 0
    sampler.tell(comparison, {"degree": 0.5, "best": 2, "order": [3, 1]}[answers])
    assert sampler.n_answers == 1


@pytest.mark.parametrize(
    ("comparison", "what"),
    [
        (Comparison((0,)), "two or more different positions, from 0, of 5"),
        (Comparison((0.5, 1)), "two or more different positions, from 0, of 5"),
        (Comparison(3), "a tuple of two or more different positions"),
        (Comparison((0, 0)), r"got \(0, 0\)"),
        (Comparison((0, 5)), r"got \(0, 5\)"),
        (Comparison((0, 1), "eve"), "judge must be one of .*; got 'eve'"),
    ],
)
def test_wrong_comparisons_are_rejected(comparison, what):
    with pytest.raises(ValueError, match=what):
        Sampler(list(range(5))).tell(comparison, True)
    with pytest.raises(TypeError, match=r"must be a Comparison.*got \(0, 1\)"):
        Sampler(list(range(5))).tell((0, 1), True)


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"top_k": 0}, "top_k must be"),
        ({"size": 1}, "size must be"),
        ({"size": 3}, 'requires answers="best" or "order"'),
        ({"answers": "rank"}, "answers must be"),
        ({"noise": 0.6}, "noise must be"),
        ({"prior": [1.0]}, "one number for each of 3 items"),
        ({"prior": [1.0, np.nan, 2.0]}, "prior must be finite"),
        ({"judges": []}, "different names, at least one"),
        ({"judges": {"a": -1.0}}, "price of a judge must be"),
    ],
)
def test_wrong_parameters_are_rejected(params, what):
    with pytest.raises(ValueError, match=what):
        Sampler([1, 2, 3], **params)


@pytest.mark.parametrize("answers", ["order", "best"])
def test_orders_of_several_items_find_the_first(answers):
    calls = []
    for seed in range(2):
        places = np.random.default_rng(seed).permutation(60)
        sampler = Sampler(list(range(60)), top_k=5, size=8, answers=answers, seed=seed)
        while asked := sampler.ask():
            for comparison in asked:
                of = places[list(comparison.places)]
                answer = np.argsort(of) if answers == "order" else int(np.argmin(of))
                sampler.tell(comparison, answer)
            if sampler.n_answers > 150:
                break
        assert set(places[sampler.ranking()[:5]]) == set(range(5))
        calls.append(sampler.n_answers)
    if answers == "order":
        assert np.mean(calls) < 75


def test_incomplete_orders_carry_no_information_about_missing_items():
    whole, part = (Sampler(list("abcd"), size=4, answers="order", seed=0) for _ in range(2))
    whole.tell(Comparison((0, 1, 2, 3)), [0, 1, 2, 3])
    part.tell(Comparison((0, 1, 2, 3)), [0, 1])
    beats = part.ratings().beats()
    assert beats[0, 1] > 0.55
    assert abs(beats[2, 3] - 0.5) < 0.2
    assert whole.ratings().beats()[0, 3] > beats[0, 3]


def test_top_k_needs_fewer_questions_than_a_whole_order():
    places = np.random.default_rng(5).permutation(60)
    whole = answer_all(Sampler(list(range(60)), seed=0), Judge(places, 0))
    top = answer_all(Sampler(list(range(60)), top_k=5, seed=0), Judge(places, 0))
    assert set(places[top.ranking()[:5]]) == set(range(5))
    assert top.n_answers < whole.n_answers
    assert top.uncertainty().top > 0.9


def test_good_prior_scores_help_and_bad_ones_are_outvoted():
    places = np.random.default_rng(6).permutation(40)
    found = {
        name: np.mean(
            [
                tau(
                    places,
                    answer_all(
                        Sampler(list(range(40)), prior=prior, seed=seed),
                        Judge(places, seed, noise=0.2),
                        calls,
                    ).ranking(),
                )
                for seed in range(3)
            ]
        )
        for name, prior, calls in (
            ("none", None, 100),
            ("good", -places, 100),
            ("bad", places, 500),
        )
    }
    assert found["good"] > found["none"] + 0.1
    assert found["bad"] > 0.5


def test_quicksort_asks_as_planned():
    n, calls = 200, []
    for seed in range(8):
        places = np.random.default_rng(seed).permutation(n)
        sampler = answer_all(RoundSampler(list(range(n)), seed=seed), Judge(places, 0))
        calls.append(sampler.n_answers)
    # The standard deviation is 0.648 n (Knuth, volume 3, section 5.2.2).
    assert abs(np.mean(calls) - call_plan(n)["quicksort"].calls) < 4 * 0.648 * n / 8**0.5


def test_halving_and_degree_ask_as_planned():
    places = np.random.default_rng(0).permutation(100)
    halving = answer_all(
        RoundSampler(list(range(100)), method="halving", top_k=5, seed=0), Judge(places, 0)
    )
    # Pairs of two rounds are asked once.
    planned = call_plan(100, 5)["halving"].calls
    assert 0.8 * planned < halving.n_answers <= planned
    assert set(places[halving.ranking()[:5]]) == set(range(5))
    degree = answer_all(
        RoundSampler(list(range(30)), method="degree", seed=0), Judge(places[:30], 0)
    )
    assert degree.n_answers == call_plan(30)["degree"].calls


def test_repeats_in_both_orders_average_out_the_position():
    places = np.random.default_rng(8).permutation(20)

    def leaning(u, v):  # towards the first item shown
        return 0.9 if places[u] < places[v] else 0.6

    sampler = RoundSampler(list(range(20)), method="degree", repeats=2, both_orders=True, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer_all(sampler, leaning)
    assert sampler.n_answers == 4 * 190
    assert places[sampler.ranking()].tolist() == list(range(20))


def test_decisions_are_by_majority_or_drawn():
    def first(decide, seed):
        degrees = [[0.5, 0.25], [0.75, 0.5]]
        return quicksort_rank([0, 1], degrees, decide=decide, random_state=seed)[0]

    assert {first("majority", seed) for seed in range(40)} == {1}
    drawn = np.mean([first("draw", seed) for seed in range(2000)])
    assert abs(drawn - 0.75) < 4 * (0.25 * 0.75 / 2000) ** 0.5


def test_unfinished_rounds_use_their_answers():
    places = np.random.default_rng(3).permutation(40)
    for name in ("quicksort", "degree", "halving"):
        sampler = SAMPLERS[name](list(range(40)), seed=0)
        taus = []
        for _ in range(4):
            for comparison in sampler.ask(40):
                u, v = comparison.places
                sampler.tell(comparison, places[u] < places[v])
            taus.append(tau(places, sampler.ranking()))
        assert taus[-1] > 0.2
        assert sorted(sampler.ranking()) == list(range(40))


def test_no_or_one_item_needs_no_question():
    sampler = Sampler([], seed=0)
    assert sampler.ask() == []
    assert sampler.done()
    assert sampler.ranking().tolist() == []
    ratings = sampler.ratings()
    assert ratings.leaderboard() == []
    assert ratings.standard_errors.shape == (0,)
    assert Sampler(["one"]).ask(3) == []


def test_ratings_print_the_number_of_items_and_the_best():
    sampler = Sampler(["b" * 1000, "a", "c", "d"], prior=[2, 3, 1, 0], seed=0)
    for first, second in [(1, 0), (0, 2), (2, 3)] * 20:
        sampler.tell(Comparison((first, second)), True)
    cut = "'" + "b" * 56 + "..."
    assert repr(sampler.ratings()) == f"Ratings(4 items, best first: 'a', {cut}, 'c', ...)"
    assert repr(Sampler([]).ratings()) == "Ratings(0 items, best first: none)"


@pytest.mark.parametrize(
    "items", [["b", "a"], [3, 1.5], [{"n": 2}, {"n": 1}], np.array([4, 2]), np.eye(2)], ids=repr
)
def test_ratings_and_leaderboards_have_the_items(items):
    sampler = Sampler(items, seed=0)
    for _ in range(5):
        sampler.tell(Comparison((1, 0)), True)
    ratings = sampler.ratings()
    np.testing.assert_array_equal(ratings.items[ratings.ranking[0]], items[1])
    np.testing.assert_array_equal(ratings.leaderboard()[0].item, items[1])
    assert ratings.items.shape == (2,)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"size": 2, "answers": "best"},
        {"size": 2, "answers": "order"},
        {"size": 3, "answers": "best"},
        {"size": 4, "answers": "order"},
        {"size": 3, "answers": "best", "top_k": 2},
        {"size": 7, "answers": "order"},
    ],
    ids=str,
)
@pytest.mark.parametrize("abstained", ["all", "item 0"])
@pytest.mark.parametrize("step", [None, 1])
def test_asking_ends_although_a_judge_abstains(form, abstained, step):
    places = np.random.default_rng(0).permutation(7)
    sampler = Sampler(list(range(7)), seed=0, **form)
    n_asked = 0
    while asked := sampler.ask(step):
        for comparison in asked:
            n_asked += 1
            order = np.argsort(places[list(comparison.places)]).tolist()
            answer = {"degree": order[0] == 0, "best": order[0], "order": order}[sampler.answers]
            abstains = abstained == "all" or 0 in comparison.places
            sampler.tell(comparison, None if abstains else answer)
        assert n_asked < 1000  # from 30 to 400, by the seed, for the best of three
    assert sampler.done()
    if abstained == "item 0" and form.get("size") != 7:
        # Without item 0, the best of three does not tell the order of the last two.
        k = 4 if form.get("size") == 3 else 6
        k = form.get("top_k", k)
        found = [place for place in sampler.ranking().tolist() if place]
        assert found[:k] == [place for place in np.argsort(places).tolist() if place][:k]


TIES = {
    **SAMPLERS,
    "top of rating": partial(Sampler, top_k=2),
    "two judges": partial(Sampler, judges=["ann", "bob"]),
}


@pytest.mark.parametrize("degree", [0.5, 0.7])
@pytest.mark.parametrize("name", TIES)
def test_asking_ends_if_a_judge_gives_the_same_answer_to_each_pair(name, degree):
    sampler, n_asked = TIES[name](list(range(6)), seed=0), 0
    while asked := sampler.ask():
        for comparison in asked:
            n_asked += 1
            sampler.tell(comparison, degree)
        assert n_asked < 500
    assert sampler.done()
    if name not in ("quicksort", "degree", "halving"):
        # Both orders of 15 pairs, from each of the judges.
        assert n_asked >= 15 * len(sampler.judges)
        assert sampler.uncertainty().inversions > 0.3


@pytest.mark.parametrize("n", [3, 4, 5, 14])
@pytest.mark.parametrize("answers", ["order", "best"])
def test_judges_of_several_items_find_the_whole_order(answers, n):
    places = np.random.default_rng(n).permutation(n)
    sampler = Sampler(list(range(n)), size=4, answers=answers, seed=0)
    while asked := sampler.ask():
        for comparison in asked:
            order = np.argsort(places[list(comparison.places)])
            sampler.tell(comparison, order if answers == "order" else int(order[0]))
        assert sampler.n_answers < 30 * n
    assert sampler.done()
    assert places[sampler.ranking()].tolist() == list(range(n))


@pytest.mark.parametrize("n", [2, 3])
def test_order_of_few_items_takes_more_than_one_answer(n):
    sampler = Sampler(list(range(n)), seed=0)
    judge = Judge(np.arange(n), 1, noise=0.2)
    while (asked := sampler.ask()) and sampler.n_answers < 100:
        for comparison in asked:
            sampler.tell(comparison, judge(*comparison.items))
    assert sampler.done()
    assert sampler.uncertainty().inversions <= 0.05
    assert sampler.ranking().tolist() == list(range(n))


@pytest.mark.parametrize("top_k", [None, 1])
def test_asking_goes_on_to_a_high_confidence(top_k):
    numbers = []
    for confidence in (0.8, 0.99):
        sampler = Sampler(list(range(5)), top_k=top_k, seed=0)
        judge = Judge(np.arange(5), 1, noise=0.1)
        while (asked := sampler.ask(confidence=confidence)) and sampler.n_answers < 200:
            for comparison in asked:
                sampler.tell(comparison, judge(*comparison.items))
        assert sampler.done(confidence)
        numbers.append(sampler.n_answers)
    assert numbers[0] < numbers[1]


def test_order_of_one_item_is_an_abstention():
    one, other = (Sampler(list(range(6)), size=3, answers="order", seed=0) for _ in range(2))
    for _ in range(40):
        asked = one.ask()
        assert asked == other.ask()
        for comparison in asked:
            one.tell(comparison, [1])
            other.tell(comparison, None)
    assert not asked
    assert one.done()
    assert one.n_answers == 0


def abstaining(share, seed=0):
    """Return a perfect judge of numbers that abstains from a share of its questions."""
    rng = np.random.default_rng(seed)
    return lambda u, v: None if rng.random() < share else u < v


@pytest.mark.parametrize("share", [0.8, 1.0])
@pytest.mark.parametrize(
    "params",
    [{}, {"confidence": 0.9}, {"top_k": 3, "confidence": 0.9}, {"method": "quicksort"}],
    ids=str,
)
def test_order_left_open_by_abstentions_is_not_complete(params, share):
    if not params:
        params = {"max_calls": 500}
    ranker = PreferenceRanker(abstaining(share), random_state=0, **params)
    with pytest.warns(UserWarning, match=r"No judge answers about \d+ of the pairs"):
        ranker.rank(list(range(12)))
    assert not ranker.complete_
    assert ranker.n_calls_ < 150


def test_few_abstentions_leave_an_order_complete():
    def judge(u, v):
        return None if (u, v) in ((0, 9), (9, 0)) else u < v

    ranker = PreferenceRanker(judge, confidence=0.95, random_state=0)
    assert ranker.rank(list(range(10))) == list(range(10))
    assert ranker.complete_


@pytest.mark.parametrize("order", [["none", "good"], ["good", "none"]])
def test_another_judge_is_asked_about_pairs_that_one_abstains_from(order):
    judges = {"none": lambda u, v: None, "good": lambda u, v: u < v}
    ranker = PreferenceRanker(
        Judges({name: judges[name] for name in order}), confidence=0.95, random_state=0
    )
    items = [3, 1, 7, 2, 5, 4, 0, 6]
    assert ranker.rank(items) == sorted(items)
    assert ranker.complete_


def test_confidence_is_not_reached_by_abstentions():
    sampler = Sampler(list(range(8)), seed=0)
    while asked := sampler.ask():
        for comparison in asked:
            sampler.tell(comparison, None)
    assert sampler.done()
    assert not sampler.done(0.9)
    assert sampler.uncertainty().inversions > 0.3


def test_several_judges_compare_two_items():
    with pytest.raises(ValueError, match="several judges require size=2; got size=3"):
        Sampler([1, 2, 3], size=3, answers="order", judges=["ann", "bob"])


def test_judges_in_one_string_are_an_error():
    with pytest.raises(TypeError, match=r"a list of names; got 'anna': pass \['anna'\]"):
        Sampler([1, 2, 3], judges="anna")


@pytest.mark.parametrize(
    ("n", "k", "what"), [(5.5, 1, "n must"), (0, 1, "n must"), (5, 0, "k must")]
)
def test_plans_of_calls_require_whole_numbers(n, k, what):
    with pytest.raises((TypeError, ValueError), match=what):
        call_plan(n, k)


def test_warnings_are_not_logged_as_well(caplog):
    ranker = PreferenceRanker(lambda u, v: True, max_calls=40, random_state=0)
    with pytest.warns(UserWarning, match="prefers the item shown first") as caught:
        ranker.rank(list(range(6)))
    assert len(caught) == 1
    assert not caplog.records
