"""The plain RankBoost itself, against worked numbers."""

import numpy as np
import pytest

from reference import boosting as plain

# One round by hand: three rows to rank above two.
F = np.array([2.5, 1, 2, 3, 1.5])[:, None]
ALL = np.array([(i, j) for i in range(3) for j in (3, 4)])
EVEN = np.full(6, 1 / 6)


def test_a_single_step_equals_the_reference():
    h = plain.fires(F[:, 0], 1.75, 0)
    plus, minus = plain.epsilons(EVEN, ALL, h)
    assert (plus, minus) == pytest.approx((1 / 3, 1 / 6))
    alpha = plain.step_size("discrete", plus, minus, 0.0)
    assert alpha == pytest.approx(np.log(2) / 2)
    assert plain.step_size("least", plus, minus, 0.0) == pytest.approx(alpha)
    D, Z = plain.reweigh(EVEN, ALL, h, alpha)
    assert pytest.approx(0.971405, abs=1e-6) == Z
    expected = [0.171573, 0.121320, 0.242641, 0.171573, 0.171573, 0.121320]
    np.testing.assert_allclose(D, expected, atol=1e-6)
    plus, minus = plain.epsilons(D, ALL, h)
    assert plus - minus == pytest.approx(0, abs=1e-15)


def test_three_rounds_equal_the_reference():
    X = np.array([3, 1, 2, 2.5, 0])[:, None]
    thresholds = [plain.midpoints(X[:, 0])]
    rounds, scores = plain.boost(X, ALL, EVEN, 3, thresholds, "discrete", smoothing=1 / 12)
    assert [one["stump"] for one in rounds] == [(0, 0.5, 0), (0, 2.25, 0), (0, 2.75, 0)]
    np.testing.assert_allclose(
        [one["alpha"] for one in rounds], [0.972955, -0.588584, 0.950052], atol=1e-6
    )
    np.testing.assert_allclose(
        [one["Z"] for one in rounds], [0.688982, 0.858037, 0.709377], atol=1e-6
    )
    np.testing.assert_allclose(scores, [1.334424, 0.972955, 0.972955, 0.384371, 0], atol=1e-6)
    partial = np.cumsum([one["alpha"] * one["h"] for one in rounds], axis=0)
    errors = [plain.training_error(s, ALL, EVEN) for s in partial]
    np.testing.assert_allclose(errors, [0.5, 1 / 6, 0], atol=1e-12)
    assert np.prod([one["Z"] for one in rounds]) == pytest.approx(0.419364, abs=1e-6)


def test_missing_values_go_to_the_side_of_greater_gain():
    x, pi = [5, np.nan, 2, np.nan, 1], np.array([0.3, 0.2, -0.1, -0.25, -0.15])
    for threshold, edges in [(4, (0.30, 0.25)), (1.5, (0.20, 0.15))]:
        found = [pi @ plain.fires(x, threshold, default) for default in (0, 1)]
        np.testing.assert_allclose(np.abs(found), edges, atol=1e-12)


def test_potentials_of_graded_labels_equal_the_reference():
    pairs, D = plain.label_pairs([2, 1, 0])
    scores = np.array([0.5, 0, 1])
    D, Z = plain.reweigh(D, pairs, scores, 1.0)
    np.testing.assert_allclose(D, [0.121952, 0.331499, 0.546549], atol=1e-6)
    assert pytest.approx(4.973534, abs=1e-6) == 3 * Z  # of pairs that weigh 1 each
    np.testing.assert_allclose(
        plain.potentials(D, pairs, 3), [0.453451, 0.424598, -0.878048], atol=1e-6
    )
