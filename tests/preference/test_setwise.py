"""A heap by judges that see several items."""

import numpy as np
import pytest

from rankcore.preference import Choice, Order, PreferenceRanker, Retry

FORMS = {
    "order": (Order, lambda items: sorted(range(len(items)), key=items.__getitem__)),
    "choice": (Choice, lambda items: items.index(min(items))),
}


def ranker_of(form, k, asked=None, **params):
    make, answer = FORMS[form]

    def judge(items):
        if asked is not None:
            asked.append(list(items))
        return answer(items)

    return PreferenceRanker(make(judge, k), method="heap", random_state=0, **params)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("k", [3, 8, 50])
@pytest.mark.parametrize("top_k", [None, 1, 4])
def test_an_exact_judge(form, k, top_k):
    items = np.random.default_rng(k).permutation(40).tolist()
    asked = []
    ranker = ranker_of(form, k, asked, top_k=top_k)
    assert ranker.rank(items) == list(range(40))[:top_k]
    assert ranker.complete_
    assert ranker.n_calls_ == len(asked)
    assert max(map(len, asked)) == min(k, 40)
    assert sorted(ranker.order_) == list(range(40))


def test_calls_for_the_top_of_a_thousand():
    items = np.random.default_rng(0).permutation(1000).tolist()
    ranker = ranker_of("choice", 8, top_k=10)
    assert ranker.rank(items) == list(range(10))
    # A root, 7, 49 and 86 parents, with 4 to 1 levels below them; nine times a new root sinks.
    assert 143 <= ranker.n_calls_ <= 4 + 7 * 3 + 49 * 2 + 86 + 9 * 4
    assert ranker.n_rounds_ < 50  # the parents of a level side by side


def test_parents_of_a_level_are_in_one_round():
    batches = []
    ranker = ranker_of(
        "choice", 3, top_k=1, progress=lambda p: batches.append((p.rounds, p.round_total))
    )
    ranker.rank(list(range(15)))  # in order already: no parent sinks
    assert sorted(set(batches)) == [(1, 4), (2, 2), (3, 1)]


@pytest.mark.parametrize("budget", [0, 1, 7])
def test_a_budget_that_is_spent(budget):
    ranker = ranker_of("choice", 4, top_k=3, max_calls=budget)
    found = ranker.rank([5, 2, 8, 1, 9, 3, 7, 4, 6, 0, 12, 11])
    assert len(found) == 3
    assert (ranker.n_calls_, ranker.complete_) == (budget, False)


@pytest.mark.parametrize("items", [[], [4], [4, 4], [2, 1], [2, 1, 2], [3, 1, 2, 1, 3, 0]])
def test_few_and_equal_items(items):
    assert ranker_of("choice", 4).rank(items) == sorted(items)
    assert ranker_of("order", 3, top_k=2).rank(items) == sorted(items)[:2]


def test_malformed_answers():
    asked = []

    def mumbling(items):
        asked.append(items)
        return None if len(asked) % 3 == 0 else items.index(min(items))

    patient = Retry(attempts=2, wait=0.0)
    ranker = PreferenceRanker(
        Choice(mumbling, 4), method="heap", top_k=2, retry=patient, random_state=0
    )
    assert ranker.rank(list(range(20))[::-1]) == [0, 1]
    assert ranker.n_calls_ == len(asked)
    silent = PreferenceRanker(Choice(lambda items: None, 4), method="heap", retry=patient)
    assert sorted(silent.rank(list(range(8)))) == list(range(8))


def test_a_run_that_is_broken_off_goes_on(tmp_path):
    items = [f"item {k:02d}" for k in np.random.default_rng(1).permutation(30)]
    whole = ranker_of("choice", 4, top_k=5)
    whole.rank(items)
    left = [9]

    def limited(shown):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return shown.index(min(shown))

    params = {"method": "heap", "top_k": 5, "journal": tmp_path / "a.sqlite", "random_state": 0}
    with pytest.raises(KeyboardInterrupt):
        PreferenceRanker(Choice(limited, 4), **params).rank(items)
    left[0] = 1000
    again = PreferenceRanker(Choice(limited, 4), **params)
    assert again.rank(items) == sorted(items)[:5]
    assert (again.n_reused_, again.n_calls_) == (9, whole.n_calls_)
