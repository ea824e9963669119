"""Rows of the studies without repeats, and the ranks that minimise the mean absolute error."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "reproduce").is_dir():
    pytest.skip("reproduce/ is not beside the tests", allow_module_level=True)
sys.path.insert(0, str(ROOT))  # not there under a bare `pytest`

from reproduce.data import DATA  # noqa: E402
from reproduce.ordinal_boost import SETS  # noqa: E402
from reproduce.probabilities import chu  # noqa: E402
from reproduce.sets import distinct, median_ranks  # noqa: E402


def test_distinct_keeps_the_first_of_equal_rows_and_labels():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (200, 2)).astype(float), rng.integers(0, 2, 200)
    seen, expected = set(), []
    for i, row in enumerate(zip(*X.T, y, strict=True)):
        if row not in seen:
            expected.append(i)
        seen.add(row)
    assert distinct(X, y).tolist() == expected


def test_median_ranks_minimise_the_expected_distance():
    table = np.random.default_rng(1).dirichlet(np.full(5, 0.3), 500)
    distances = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    np.testing.assert_array_equal(median_ranks(table), (table @ distances).argmin(axis=1))


@pytest.mark.parametrize("name", SETS)
def test_partitions_repeat_no_row_and_have_100_or_more(name):
    if not (DATA / f"chu-{name}").is_dir():
        pytest.skip(f"no data in {DATA}")
    X, y, X_test, y_test = next(chu(name, 5))
    rows = np.column_stack([np.vstack([X, X_test]), np.concatenate([y, y_test])])
    assert len(rows) >= 100
    assert len(np.unique(rows, axis=0)) == len(rows)
