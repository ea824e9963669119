"""Cases that tests marked `sampled(n)` keep, where the nightly profile runs all."""

from itertools import combinations, product

import pytest

from strategies import covering


@pytest.mark.parametrize("n", [1, 2, 3])
def test_all_values_of_any_n_parameters_stay_together(n):
    cases = [case for case in product(range(3), range(4), range(5)) if sum(case) % 7]
    kept = [cases[i] for i in covering(cases, n)]
    for places in combinations(range(3), n):
        together = {tuple(case[at] for at in places) for case in cases}
        assert {tuple(case[at] for at in places) for case in kept} == together
    assert len(kept) < len(cases) / 2 if n < 3 else len(kept) == len(cases)


def test_rare_values_come_first():
    kept = covering(list(product(range(11), range(15))), 1)
    assert len(kept) == 15
    uses = [sum(i // 15 == row for i in kept) for row in range(11)]
    assert sorted(uses) == [1] * 7 + [2] * 4


def test_one_parameter_keeps_all_its_values():
    assert covering([(0,), (1,), (2,)], 2) == {0, 1, 2}
