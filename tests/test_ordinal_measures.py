"""Measures of predicted ranks: by hand, by plain loops, as scikit-learn has them, and bad input."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore.metrics import (
    accuracy_within,
    brier_score,
    compare,
    confusion_by_rank,
    log_loss,
    macro_rank_loss,
    max_rank_loss,
    quadratic_weighted_kappa,
    rank_loss,
    ranked_probability_score,
)
from rankcore.metrics.ordinal import ORDINAL
from rankcore.metrics.probabilities import PROBABILITIES
from reference import ordinal_measures as reference
from strategies import examples

# Sums of a few dozen rounded numbers, in another order than the plain ones.
ROUNDING = 1e-13


@st.composite
def predictions(draw):
    """Return true and predicted ranks with gaps, and weights of which some are 0."""
    n = draw(st.integers(1, 30))
    ranks = st.sampled_from([1, 2, 4, 5])
    y = draw(st.lists(ranks, min_size=n, max_size=n))
    predicted = draw(st.lists(ranks, min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.0, 1.0, 0.3, 2.5]), min_size=n, max_size=n))
    if not any(weights):
        weights[0] = 1.0
    return y, predicted, weights


def test_measures_equal_those_by_hand():
    y, predicted = [1, 1, 1, 2, 3], [1, 2, 1, 2, 1]
    assert rank_loss(y, predicted) == 3 / 5
    assert macro_rank_loss(y, predicted) == (1 / 3 + 0 + 2) / 3
    assert max_rank_loss(y, predicted) == 2
    assert accuracy_within(y, predicted) == 4 / 5
    assert accuracy_within(y, predicted, 0) == 3 / 5
    # Squares seen: 1 + 4; expected of rows 3, 1, 1 and columns 3, 2, 0: (6 + 3 + 12 + 2) / 5.
    assert quadratic_weighted_kappa(y, predicted) == pytest.approx(1 - 5 / (23 / 5), abs=1e-15)
    assert confusion_by_rank(y, predicted).tolist() == [[2, 1, 0], [0, 1, 0], [1, 0, 0]]


@given(data=predictions())
@settings(deadline=None)
def test_losses_equal_plain_loops(data):
    y, predicted, weights = data
    for w in (None, weights):
        losses = reference.losses_by_rank(y, predicted, w or [1] * len(y)).values()
        found = macro_rank_loss(y, predicted, sample_weight=w)
        assert found == pytest.approx(sum(losses) / len(losses), rel=ROUNDING)
        found = max_rank_loss(y, predicted, sample_weight=w)
        assert found == pytest.approx(max(losses), rel=ROUNDING)
        total = sum(w or [1] * len(y))
        rows = list(zip(y, predicted, w or [1] * len(y), strict=True))
        assert rank_loss(y, predicted, sample_weight=w) == pytest.approx(
            sum(c * abs(a - b) for a, b, c in rows) / total, rel=ROUNDING
        )
        assert accuracy_within(y, predicted, 2, sample_weight=w) == pytest.approx(
            sum(c for a, b, c in rows if abs(a - b) <= 2) / total, rel=ROUNDING
        )


@given(data=predictions())
@settings(deadline=None)
def test_kappa_and_confusion_equal_plain_loops(data):
    y, predicted, weights = data
    for labels in (None, [1, 2, 4, 5], [0, 1, 2, 3, 4, 5]):
        for w in (None, weights):
            options = {"labels": labels, "sample_weight": w}
            known = labels or sorted({*y, *predicted})
            plain = w or [1] * len(y)
            expected = reference.kappa(y, predicted, known, plain)
            found = quadratic_weighted_kappa(y, predicted, **options)
            if expected is None:
                assert math.isnan(found)
            else:
                # Down to -1 and below it differences of numbers of the size of 1 are rounded.
                assert found == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)
            table = reference.confusion(y, predicted, known, plain)
            found = confusion_by_rank(y, predicted, **options)
            np.testing.assert_allclose(found, table, rtol=ROUNDING)
            for normalize in ("true", "pred", "all"):
                found = confusion_by_rank(y, predicted, normalize=normalize, **options)
                np.testing.assert_allclose(
                    found, reference.normalized(table, normalize), rtol=ROUNDING
                )


@given(data=predictions())
@settings(max_examples=examples(40), deadline=None)
def test_measures_equal_scikit_learn(data):
    metrics = pytest.importorskip("sklearn.metrics")
    y, predicted, w = data
    for labels in (None, [1, 2, 4, 5]):
        options = {"labels": labels, "sample_weight": w}
        kappa = quadratic_weighted_kappa(y, predicted, **options)
        if not math.isnan(kappa):  # of which scikit-learn warns
            expected = metrics.cohen_kappa_score(y, predicted, weights="quadratic", **options)
            assert kappa == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)
        found = confusion_by_rank(y, predicted, **options)
        if len({*y, *predicted}) > 1:  # else it warns
            expected = metrics.confusion_matrix(y, predicted, **options)
            np.testing.assert_allclose(found, expected, rtol=ROUNDING)
    assert rank_loss(y, predicted, sample_weight=w) == pytest.approx(
        metrics.mean_absolute_error(y, predicted, sample_weight=w), rel=ROUNDING
    )
    assert accuracy_within(y, predicted, 0, sample_weight=w) == pytest.approx(
        metrics.accuracy_score(y, predicted, sample_weight=w), rel=ROUNDING
    )


@given(data=predictions(), seed=st.integers(0, 99))
@settings(deadline=None)
def test_ranked_probability_score_equals_plain_loops(data, seed):
    y, _, w = data
    labels = [1, 2, 3, 4, 5]
    proba = np.random.default_rng(seed).dirichlet(np.ones(5), len(y))
    scores = reference.ranked_probability_scores(y, proba.tolist(), labels)
    found = ranked_probability_score(y, proba, labels=labels)
    assert found == pytest.approx(sum(scores) / len(y), rel=ROUNDING)
    found = ranked_probability_score(y, proba, labels=labels, normalize=True, sample_weight=w)
    expected = sum(a * b for a, b in zip(scores, w, strict=True)) / sum(w) / 4
    assert found == pytest.approx(expected, rel=ROUNDING)


def test_ranked_probability_score_of_certainty_is_the_rank_loss():
    y, labels = [3, 1, 2], [1, 2, 3, 4]
    proba = np.eye(4)[[2, 0, 1]]
    assert ranked_probability_score(y, proba, labels=labels) == 0
    # A certain prediction pays one for each rank it is off, as the rank loss does.
    wrong = np.eye(4)[[0, 3, 1]]
    assert ranked_probability_score(y, wrong, labels=labels) == rank_loss(y, [1, 4, 2])
    assert ranked_probability_score([1], [[0, 0, 1]], labels=[1, 2, 3], normalize=True) == 1
    assert ranked_probability_score([1, 2], np.float32([[0.1, 0.9], [0.3, 0.7]])) == pytest.approx(
        (0.81 + 0.09) / 2,
        rel=1e-7,  # of float32
    )


def test_labels_define_the_order_of_strings():
    labels = ["low", "mid", "high"]
    y, predicted = ["low", "mid", "high", "high"], ["mid", "mid", "high", "low"]
    numbers = [labels.index(a) for a in y], [labels.index(a) for a in predicted]
    for measure, _ in ORDINAL.values():
        assert measure(y, predicted, labels=labels) == measure(*numbers)
        objects = np.array(y, object), np.array(predicted, object)
        assert measure(*objects, labels=labels) == measure(*numbers)
        # An order of numbers that is not their own.
        turned = [9, 5, 7]
        odd = [turned[i] for i in numbers[0]], [turned[i] for i in numbers[1]]
        assert measure(*odd, labels=turned) == measure(*numbers)
    table = confusion_by_rank(y, predicted, labels=labels)
    assert table.tolist() == confusion_by_rank(*numbers, labels=[0, 1, 2]).tolist()
    # Columns as of predict_proba: high, low, mid.
    proba = [[0, 1, 0]] * 4
    assert ranked_probability_score(y, proba, labels=labels) == np.mean(numbers[0])
    turned = [9, 5, 7]
    odd = [turned[i] for i in numbers[0]]
    lowest = [[0, 0, 1]] * 4  # columns 5, 7 and 9, of which 9 is the lowest rank
    assert ranked_probability_score(odd, lowest, labels=turned) == np.mean(numbers[0])
    half = [[0.0, 0.5, 0.5]] * 4
    expected = brier_score(numbers[0], [[0.5, 0.5, 0.0]] * 4)
    assert brier_score(y, half, labels=labels) == expected
    assert brier_score(y, half, labels=sorted(labels)) == expected  # whatever the order
    assert log_loss(y[:2], half[:2], labels=labels) == pytest.approx(np.log(2), rel=ROUNDING)


def test_an_ordered_categorical_defines_the_order():
    pl = pytest.importorskip("polars")
    labels = ["low", "mid", "high"]
    y, predicted = ["low", "mid", "high", "high"], ["mid", "mid", "high", "low"]
    categorical = pd.Series(pd.Categorical(y, labels, ordered=True))
    enum = pl.Series(y, dtype=pl.Enum(labels))
    proba = np.eye(3)[[0, 1, 2, 2]]
    for measure, _ in ORDINAL.values():
        expected = measure(y, predicted, labels=labels)
        assert measure(categorical, predicted) == measure(enum, predicted) == expected
        assert measure(pd.Categorical(y, labels, ordered=True), predicted) == expected
    expected = ranked_probability_score(y, proba, labels=labels)
    assert ranked_probability_score(categorical, proba) == expected
    assert confusion_by_rank(categorical, predicted)[2].tolist() == [1, 0, 1]


def test_orders_of_words_that_are_missing_or_contradict_are_rejected():
    labels = ["low", "mid", "high"]
    y, proba = ["low", "mid", "high"], np.eye(3)
    categorical = pd.Series(pd.Categorical(y, labels, ordered=True))
    measures = [(function, y) for function, _ in ORDINAL.values()]
    measures += [(function, proba) for function in PROBABILITIES.values()]
    for measure, predicted in [*measures, (confusion_by_rank, y)]:
        with pytest.raises(TypeError, match="lowest rank first \\(ranks_ of a model\\)"):
            measure(y, predicted)
        with pytest.raises(ValueError, match="lowest rank first, as ranks_ of a model does"):
            measure(categorical, predicted, labels=sorted(labels))
        with pytest.raises(ValueError, match="not among the labels"):
            measure(y, predicted, labels=["a", "b", "c"])


def test_all_measures_of_ranks_take_labels_lowest_first():
    """The measure of words is that of their numbers, in every measure and in both orders."""
    rng = np.random.default_rng(0)
    ranks, guess = rng.integers(0, 4, (2, 200))
    words = np.array(["poor", "fair", "good", "best"])
    for order in (words, words[::-1]):
        by_rank = rng.dirichlet(np.ones(4), 200)
        columns = by_rank[:, np.argsort(order)]  # alphabetical, as of predict_proba
        for measure, _ in ORDINAL.values():
            assert measure(order[ranks], order[guess], labels=order) == measure(ranks, guess)
        for measure in PROBABILITIES.values():
            expected = measure(ranks, by_rank, labels=range(4))
            assert measure(order[ranks], columns, labels=order) == pytest.approx(
                expected, rel=1e-14
            )
        table = confusion_by_rank(order[ranks], order[guess], labels=order)
        np.testing.assert_array_equal(table, confusion_by_rank(ranks, guess, labels=range(4)))


def test_table_of_measures_has_their_directions():
    y = [1, 2, 3, 4]
    for name, (measure, greater_is_better) in ORDINAL.items():
        assert measure.__name__ == name
        perfect, wrong = measure(y, y), measure(y, [4, 1, 1, 1])
        assert (perfect > wrong) == greater_is_better


def test_kappa_of_a_single_label_is_undefined():
    assert math.isnan(quadratic_weighted_kappa([2, 2], [2, 2]))
    assert math.isnan(quadratic_weighted_kappa([2, 2], [2, 2], labels=[1, 2, 3]))
    assert math.isnan(quadratic_weighted_kappa([2, 2, 1], [2, 2, 1], sample_weight=[0.1, 0.7, 0]))
    assert quadratic_weighted_kappa([1, 2], [2, 2]) == 0


MEASURES = [measure for measure, _ in ORDINAL.values()] + [confusion_by_rank]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("y", "predicted", "options", "error", "message"),
    [
        ([], [], {}, ValueError, "y_true is empty"),
        ([1, 2], [1], {}, ValueError, "y_true and y_pred must have the same length; got 2 and 1"),
        ([[1, 2]], [1, 2], {}, ValueError, r"y_true must have one dimension; got shape \(1, 2\)"),
        ([1, 2], 1, {}, ValueError, "y_pred must have one dimension"),
        ([1, np.nan], [1, 2], {}, ValueError, "y_true contains NaN in row 1"),
        ([1, 2], [1, np.inf], {}, ValueError, "y_pred must be finite"),
        (["a", "b"], ["a", "b"], {}, TypeError, "y_true must be real numbers.* name other labels"),
        ([1, 2], [1, None], {}, ValueError, "y_pred contains None in row 1"),
        ([1, 2], [1, 3], {"labels": [1, 2]}, ValueError, "y_pred has 3, which is not among"),
        ([1, np.nan], [1, 2], {"labels": [1, 2]}, ValueError, "y_true contains NaN in row 1"),
        (["a"], ["b"], {"labels": ["a"]}, ValueError, "y_pred has 'b', which is not among"),
        (
            ["a"],
            ["b"],
            {"labels": [1, 2]},
            TypeError,
            "y_true must have labels of the type of labels, int64; got <U1",
        ),
        ([1, 2], [1, 2], {"labels": [1, 2, 1]}, ValueError, "labels must list each label once"),
        ([1, 2], [1, 2], {"labels": []}, ValueError, "labels must list the labels"),
        ([1, 2], [1, 2], {"sample_weight": [1]}, ValueError, "sample_weight must have length"),
        ([1, 2], [1, 2], {"sample_weight": [1, -1]}, ValueError, "sample_weight must be finite"),
        ([1, 2], [1, 2], {"sample_weight": [0, 0]}, ValueError, "not be all zero"),
    ],
)
def test_bad_input_is_named(measure, y, predicted, options, error, message):
    with pytest.raises(error, match=message):
        measure(y, predicted, **options)


@pytest.mark.parametrize(
    ("y", "proba", "options", "error", "message"),
    [
        ([1, 2], [0.5, 0.5], {}, ValueError, "a row for each of the 2 labels"),
        ([1, 2], [[0.5, 0.5]], {}, ValueError, "a row for each of the 2 labels"),
        ([1, 1], [[1.0], [1.0]], {}, ValueError, "a column for each of two or more ranks"),
        ([1, 2], [["a", "b"]] * 2, {}, TypeError, "y_proba must be real numbers"),
        ([1, 1], [[0.5, 0.5]] * 2, {}, ValueError, "2 columns for 1 labels in y_true; name all"),
        ([1, 1], [[0.5, 0.5]] * 2, {"labels": [1, 2, 3]}, ValueError, "2 columns for 3 labels"),
        (
            [1, 4],
            [[0.5, 0.5]] * 2,
            {"labels": [1, 2]},
            ValueError,
            "y_true has 4, which is not among",
        ),
        ([1, 2], [[0.5, 0.4]] * 2, {}, ValueError, "each row must add up to 1"),
        ([1, 2], [[1.5, -0.5]] * 2, {}, ValueError, "y_proba must not be negative"),
        ([1, 2], [[np.nan, 0.5]] * 2, {}, ValueError, "y_proba must not be negative"),
        (["a", "b"], [[0.5, 0.5]] * 2, {}, TypeError, "y_true must be real numbers"),
        ([1, 2], [[0.5, 0.5]] * 2, {"sample_weight": [1, 2, 3]}, ValueError, "sample_weight"),
    ],
)
def test_bad_probabilities_are_named(y, proba, options, error, message):
    with pytest.raises(error, match=message):
        ranked_probability_score(y, proba, **options)


def test_options_are_checked():
    with pytest.raises(ValueError, match="d must be at least 0; got -1"):
        accuracy_within([1], [1], -1)
    with pytest.raises(ValueError, match="normalize must be 'true', 'pred', 'all' or None"):
        confusion_by_rank([1], [1], normalize="rows")


def test_a_table_of_confusion_that_would_fill_the_memory_is_rejected():
    with pytest.raises(ValueError, match="at most 4096 labels"):
        confusion_by_rank([1], [1], labels=range(10**6))
    assert confusion_by_rank([1], [2], labels=range(4096))[1, 2] == 1


def test_named_columns_of_probabilities_may_have_any_order():
    ranks = ["poor", "fair", "good"]  # not alphabetical
    rng = np.random.default_rng(0)
    by_rank = rng.dirichlet(np.ones(3), 50)
    y = rng.choice(ranks, 50)
    as_predicted = by_rank[:, np.argsort(ranks)]
    other = pd.DataFrame(rng.dirichlet(np.ones(3), 50), columns=sorted(ranks))
    expected = [measure(y, as_predicted, labels=ranks) for measure in PROBABILITIES.values()]
    compared = compare({"a": as_predicted, "b": other}, y, metrics="rps", labels=ranks)
    for order in itertools.permutations(range(3)):
        names = [ranks[j] for j in order]
        frame = pd.DataFrame(by_rank[:, order], columns=names)
        found = [measure(y, frame, labels=ranks) for measure in PROBABILITIES.values()]
        assert found == expected
        systems = {"a": frame, "b": other}
        assert compare(systems, y, metrics="rps", labels=ranks)[0] == compared[0]
    numbered = pd.DataFrame(as_predicted)  # columns without names are in ascending order
    assert [m(y, numbered, labels=ranks) for m in PROBABILITIES.values()] == expected
    stars = pd.DataFrame(by_rank, columns=[1, 2, 3])
    truth = [ranks.index(word) + 1 for word in y]
    for frame in (stars, stars[[3, 1, 2]], stars.rename(columns=str)[["2", "1", "3"]]):
        found = [m(truth, frame, labels=[1, 2, 3]) for m in PROBABILITIES.values()]
        assert found == expected
    with pytest.raises(ValueError, match="must be named by the labels .*'poor', 'fair', 'good'"):
        brier_score(y, frame.set_axis(["poor", "fair", "top"], axis=1), labels=ranks)


@pytest.mark.parametrize(
    "names", [[2, 0, 1], ["2", "0", "1"], [2.0, 0.0, 1.0], ["2.0", "0.0", "1"]]
)
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_columns_named_by_numbers_are_found_for_labels_of_any_numeric_type(names, dtype):
    rng = np.random.default_rng(0)
    by_rank = rng.dirichlet(np.ones(3), 20)
    y = rng.integers(0, 3, 20).astype(dtype)
    frame = pd.DataFrame(by_rank[:, [2, 0, 1]], columns=names)
    for measure in PROBABILITIES.values():
        assert measure(y, frame) == measure(y, frame, labels=y.dtype.type([0, 1, 2]))
        assert measure(y, frame) == measure(y, by_rank)


def test_columns_named_by_booleans_are_found():
    by_rank = np.array([[0.9, 0.1], [0.3, 0.7]])
    for names in ([True, False], ["True", "False"], [1, 0]):
        frame = pd.DataFrame(by_rank[:, ::-1], columns=names)
        assert log_loss([False, True], frame) == pytest.approx(-math.log(0.9 * 0.7) / 2)


def test_columns_without_names_are_in_order_of_labels_that_are_digits():
    words = [str(number) for number in range(11)]  # "10" is before "2" in predict_proba
    table = np.random.default_rng(0).dirichlet(np.ones(11), 30)
    y = np.resize(words, 30)
    for measure in PROBABILITIES.values():
        assert measure(y, pd.DataFrame(table), labels=words) == measure(y, table, labels=words)
