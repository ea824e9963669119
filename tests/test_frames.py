"""Data frames of pandas, polars and Arrow: every reader and learner gives what arrays give."""

import datetime
import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import rankcore as rc
from declared import RANKERS, data_for, instances, labels_for, walk
from rankcore._core.frames import frame_of
from rankcore._core.inputs import as_rows

KINDS = ["pandas", "polars", "pyarrow"]
N, NAMES = 60, ["size", "age", "height"]
RNG = np.random.default_rng(7)
X = np.round(RNG.normal(size=(N, 3)), 2)
Y = np.digitize(X @ [1.0, -0.5, 0.2], [-0.6, 0.6])
QID = np.arange(N) // 10
CITIES = ["oslo", "rome", "bonn", "lima"]
CODES = RNG.integers(0, 4, N)
Y_CITIES = np.digitize(X[:, 0] + np.array([2.0, -2.0, 1.0, -1.0])[CODES], [-1, 1])


def make(kind, columns, chunks=3):
    """Return a frame of columns by name; a table of Arrow has several chunks."""
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(columns)
    size = -(-max(1, table.num_rows) // chunks)
    parts = [table.slice(first, size) for first in range(0, max(1, table.num_rows), size)]
    return arrow.concat_tables(parts)


def frame(kind, **more):
    return make(kind, {name: X[:, j] for j, name in enumerate(NAMES)} | more)


def column(kind, values):
    return make(kind, {"a": values})["a"]


def with_cities(kind, codes=CODES, numbers=X[:, 0], categories=CITIES):
    """Return a column of numbers, and one of categories, in which a code below 0 is missing."""
    words = [None if code < 0 else CITIES[code] for code in codes]
    if kind == "pandas":
        dtype = pytest.importorskip("pandas").CategoricalDtype(categories)
        data = make(kind, {"size": numbers, "city": words})
        return data.astype({"city": dtype})
    if kind == "polars":
        dtype = pytest.importorskip("polars").Enum(categories)
        data = make(kind, {"size": numbers, "city": words})
        return data.with_columns(data["city"].cast(dtype))
    arrow = pytest.importorskip("pyarrow")
    places = arrow.array([None if word is None else categories.index(word) for word in words])
    cities = arrow.DictionaryArray.from_arrays(places.cast("int8"), categories)
    return make(kind, {"size": numbers, "city": cities})


# ------------------------------------------------------------------------ learners

WALKED = instances("labels", "queries", "binary queries", "clicks")


def fitted(learner, rows):
    return clone(learner).fit(rows, **data_for(learner, Y, QID))


def contributions(model, rows):
    """Contributions of features; None for a score that is not a sum over features."""
    output = {"output": 1} if isinstance(model, rc.MulticlassPerceptron) else {}
    try:
        return model.contributions(rows, **output).values
    except TypeError:
        return None


def outputs(model, rows):
    """All that a model says of rows."""
    found = {}
    for name in ("predict", "project", "decision_function", "predict_proba"):
        if hasattr(model, name):
            found[name] = np.asarray(getattr(model, name)(rows))
    assert found, "a learner that predicts nothing"
    return found


@pytest.mark.parametrize("kind", KINDS)
@walk(WALKED)
@pytest.mark.filterwarnings("ignore:.*treats all")
def test_learner_fits_and_predicts_frames_as_arrays(learner, kind, tmp_path):
    data = frame(kind)
    model, plain = fitted(learner, data), fitted(learner, X)
    expected = outputs(plain, X)
    for method, found in outputs(model, data).items():
        np.testing.assert_array_equal(found, expected[method], err_msg=method)
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(plain, "feature_names_in_")
    with pytest.raises(ValueError, match=r"feature names|columns of X"):
        model.predict(make(kind, {name: X[:, j] for j, name in enumerate(NAMES[::-1])}))
    if hasattr(model, "contributions"):
        np.testing.assert_array_equal(contributions(model, data), contributions(plain, X))
    model = getattr(model, "best_estimator_", model)
    rc.save(model, tmp_path / "model.rankcore")
    if getattr(model, "combine", "score") != "score":  # its scores need a whole query
        return
    predictor = rc.Predictor(tmp_path / "model.rankcore")
    assert predictor.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(predictor.predict(data), expected["predict"])
    with pytest.raises(ValueError, match="columns of X must be those of the fit"):
        predictor.predict(make(kind, {name: X[:, j] for j, name in enumerate(NAMES[::-1])}))


@pytest.mark.parametrize("kind", KINDS)
@walk([one for one in WALKED if hasattr(one, "partial_fit")])
@pytest.mark.filterwarnings("ignore:.*treats all")
def test_partial_fit_continues_with_frames_as_arrays(learner, kind):
    given = data_for(learner, Y, QID)
    models = []
    for rows in (X, frame(kind)):
        model = clone(learner)
        for _ in range(2):
            model.partial_fit(rows, **given)
        models.append(outputs(model, rows))
    for method, found in models[1].items():
        np.testing.assert_array_equal(found, models[0][method], err_msg=method)


@pytest.mark.parametrize("kind", KINDS)
@walk(RANKERS)
def test_ranker_takes_queries_from_a_column(learner, kind):
    y = labels_for(learner, Y)
    expected = clone(learner).fit(X, y, qid=QID).predict(X, qid=QID)
    for data, given in [
        (frame(kind, qid=QID), {}),
        (frame(kind, session=QID), {"qid": "session"}),
        (frame(kind), {"qid": column(kind, QID)}),
    ]:
        model = clone(learner).fit(data, column(kind, y), **given)
        assert model.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(model.predict(data, **given), expected)
    with pytest.raises(ValueError, match=r"X has no column named 'there'; it has \['size'"):
        clone(learner).fit(frame(kind), y, qid="there")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "learner",
    [
        rc.OrdinalBoost(5, min_samples_leaf=2),
        rc.RankBoost(5, max_leaf_nodes=6, min_samples_leaf=2),
    ],
    ids=["OrdinalBoost", "RankBoost"],
)
def test_trees_take_categories_of_frames(learner, kind, missing, tmp_path):
    codes = np.where(np.arange(N) % 7 == 0, -1, CODES) if missing else CODES
    given = {"qid": QID} if isinstance(learner, rc.RankBoost) else {}
    numbers = np.column_stack([X[:, 0], codes])
    plain = clone(learner).set_params(categorical_features=[1]).fit(numbers, Y_CITIES, **given)
    expected = plain.predict(numbers)
    assert np.unique(expected).size > 1
    data = with_cities(kind, codes)
    model = clone(learner).fit(data, Y_CITIES, **given)
    assert model.categories_ == {1: CITIES}
    np.testing.assert_array_equal(model.predict(data), expected)
    # Other categories, in another order: codes of a frame are its own.
    other = with_cities(kind, codes, categories=["york", *CITIES[::-1]])
    np.testing.assert_array_equal(model.predict(other), expected)
    # Text, if the column is named.
    words = [None if code < 0 else CITIES[code] for code in codes]
    text = make(kind, {"size": X[:, 0], "city": words})
    np.testing.assert_array_equal(model.predict(text), expected)
    by_name = clone(learner).set_params(categorical_features=["city"])
    assert by_name.fit(text, Y_CITIES, **given).categories_ == {1: sorted(CITIES)}
    rc.save(model, tmp_path / "model.rankcore")
    np.testing.assert_array_equal(rc.Predictor(tmp_path / "model.rankcore").predict(data), expected)
    with pytest.raises(ValueError, match="column 'city' must hold categories such as 'oslo'"):
        model.predict(make(kind, {"size": X[:, 0], "city": X[:, 1]}))
    with pytest.raises(ValueError, match=r"X must be numeric; its column 'city' has dtype"):
        rc.PRank().fit(data, Y)


# ------------------------------------------------------------------------ readers


SCORES = X[:, 0] + 0.1 * X[:, 1]
HALF = np.random.default_rng(0).random(N) / 2
PROBABILITIES = np.column_stack([HALF, HALF, 1 - 2 * HALF])


def trees_of(rows, of):
    trees = rc.RankBoost(5, max_leaf_nodes=4, min_samples_leaf=2)
    return trees.fit(rows(), of(Y), qid=of(QID))


def ranker_of(rows, of):
    return rc.RankSVM().fit(rows(), of(Y), qid=of(QID))


def some(rows, places):
    return rows[places] if isinstance(rows, np.ndarray) else frame_of(rows).take(places)


def drawn(axes):
    """Return the range of the drawn data."""
    return np.array([*axes.get_xlim(), *axes.get_ylim()])


def exported(model, rows):
    """Export to a file that scores rows as the model does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.sql"
        check = rc.export(model, path, "sql", feature_names=NAMES, check=rows)
        assert check is not None
        return path.read_text(encoding="utf-8")


def letor_text(rows, y, qid):
    stream = io.BytesIO()
    rc.datasets.dump_letor(rows, y, stream, qid=qid)
    return stream.getvalue().decode()


# Name -> a call with ``rows()``, which makes X, and ``of(values)``, which makes a column.
READERS = {
    "metrics.evaluate": lambda rows, of: rc.metrics.evaluate(
        of(Y), of(SCORES), qid=of(QID), query_weight=of(np.arange(1.0, 7.0))
    ),
    "metrics.evaluate, groups of words": lambda rows, of: (
        rc.metrics.evaluate(of(Y), of(SCORES), qid=of([f"q{one}" for one in QID])).per_query
    ),
    "metrics.ndcg_score": lambda rows, of: rc.metrics.ndcg_score(of(Y), of(SCORES), qid=of(QID)),
    "metrics.auc_score": lambda rows, of: rc.metrics.auc_score(of(Y), of(SCORES), qid=of(QID)),
    "metrics.kendall_tau": lambda rows, of: rc.metrics.kendall_tau(of(Y), of(SCORES)),
    "metrics.rank_loss": lambda rows, of: rc.metrics.rank_loss(of(Y), of(np.roll(Y, 1))),
    "metrics.confusion_by_rank": lambda rows, of: rc.metrics.confusion_by_rank(
        of(["low", "high", "low"]), of(["high", "high", "low"]), labels=["low", "high"]
    ),
    "metrics.log_loss": lambda rows, of: rc.metrics.log_loss(of(Y), PROBABILITIES),
    "model_selection.cross_validate_queries": lambda rows, of: (
        rc.model_selection.cross_validate_queries(
            rc.RankSVM(), rows(), of(Y), qid=of(QID), cv=3
        ).values
    ),
    "model_selection.cross_val_predict": lambda rows, of: rc.model_selection.cross_val_predict(
        rc.PRank(random_state=0), rows(), of(Y), cv=3
    ),
    "model_selection.QueryKFold": lambda rows, of: np.concatenate(
        [test for _, test in rc.model_selection.QueryKFold(3).split(rows(), of(Y), of(QID))]
    ),
    "CalibratedOrdinal": lambda rows, of: (
        rc.CalibratedOrdinal(rc.PRank(random_state=0), cv=3)
        .fit(rows(), of(Y))
        .predict_proba(rows())
    ),
    "early stopping on held-out rows": lambda rows, of: (
        rc.RankBoost(20, early_stopping_rounds=2)
        .fit(rows(), of(Y), qid=of(QID), eval_set=[(rows(), of(Y))], eval_qid=[of(QID)])
        .predict(rows(), qid=of(QID))
    ),
    "sample_weight": lambda rows, of: (
        rc.PRank(random_state=0).fit(rows(), of(Y), sample_weight=of(1.0 + QID)).project(rows())
    ),
    "contributions with a background": lambda rows, of: (
        trees_of(rows, of).contributions(rows(), background=rows()).values
    ),
    "explain.global_importance": lambda rows, of: (
        rc.explain.global_importance(ranker_of(rows, of), rows(), qid=of(QID)).importances
    ),
    "explain.permutation_importance": lambda rows, of: (
        rc.explain.permutation_importance(
            ranker_of(rows, of), rows(), of(Y), qid=of(QID), n_repeats=2
        ).changes
    ),
    "explain.query": lambda rows, of: (
        rc.explain.query(ranker_of(rows, of), rows(), qid=of(QID), which=2).contributions
    ),
    "explain.rank": lambda rows, of: (
        rc.explain.rank(
            rc.PRank(random_state=0).fit(rows(), of(Y)), some(rows(), [3])
        ).contributions
    ),
    "explain.pair": lambda rows, of: (
        rc.explain.pair(ranker_of(rows, of), some(rows(), [3]), some(rows(), [4])).contributions
    ),
    "explain.global_importance of a pipeline": lambda rows, of: (
        rc.explain.global_importance(
            make_pipeline(MaxAbsScaler(), rc.PRank(random_state=0)).fit(rows(), of(Y)), rows()
        ).importances
    ),
    "a search": lambda rows, of: (
        GridSearchCV(rc.PRank(random_state=0), {"max_iter": [1, 2]}, cv=3)
        .fit(rows(), of(Y))
        .predict(rows())
    ),
    "plotting.plot_scores_by_rank": lambda rows, of: drawn(
        rc.plotting.plot_scores_by_rank(rc.PRank(random_state=0).fit(rows(), of(Y)), rows(), of(Y))
    ),
    "export checked on rows": lambda rows, of: exported(
        rc.PRank(random_state=0).fit(rows(), of(Y)), rows()
    ),
    "metrics.rbo": lambda rows, of: rc.metrics.rbo(of(SCORES), of(X[:, 1]), qid=of(QID)),
    "datasets.dump_letor": lambda rows, of: letor_text(rows(), of(Y), of(QID)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.filterwarnings("ignore:Mean of empty")
def test_reader_gives_the_result_of_arrays(reader, kind):
    expected = READERS[reader](lambda: X, lambda values: values)
    found = READERS[reader](lambda: frame(kind), lambda values: column(kind, values))
    assert type(found) is type(expected)
    if isinstance(expected, Mapping):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(found[key], value, err_msg=key)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_judgments_runs_and_games_are_read(kind):
    ids = {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d1"]}
    expected = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}}
    qrels = rc.datasets.Qrels.from_frame(make(kind, ids | {"relevance": [1, 0, 2]}))
    assert qrels.to_dict() == expected
    run = rc.datasets.Run.from_frame(make(kind, ids | {"score": [1.0, 0.0, 2.0]}))
    assert run.to_dict() == expected
    with pytest.raises(ValueError, match="must have the columns query_id, doc_id, score; got"):
        rc.datasets.Run.from_frame(make(kind, ids))
    games = make(kind, {"model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["model_a", "tie"]})
    found = rc.preference.read_games(games).rate()
    assert sorted(found.items) == ["x", "y", "z"]


def test_from_frame_rejects_other_objects():
    with pytest.raises(TypeError, match="frame must be a data frame of pandas, polars or Arrow"):
        rc.datasets.Run.from_frame([1, 2])


# ------------------------------------------------------------------------ labels with an order


def ordered(kind, words, order, in_order=True):
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        return pandas.Series(pandas.Categorical(words, categories=order, ordered=in_order))
    if kind == "polars":
        polars = pytest.importorskip("polars")
        return polars.Series(words, dtype=polars.Enum(order) if in_order else polars.Categorical)
    arrow = pytest.importorskip("pyarrow")
    parts = []
    for some in (words[:7], words[7:]):  # the second chunk has its own dictionary
        known = order if not parts else order[::-1]
        places = arrow.array([known.index(word) for word in some], arrow.int8())
        parts.append(arrow.DictionaryArray.from_arrays(places, known, ordered=in_order))
    return arrow.chunked_array(parts[:1] if in_order else parts)


@pytest.mark.parametrize("kind", KINDS)
def test_ordered_labels_define_the_ranks(kind):
    order = ["bad", "good", "great"]  # also alphabetical, so that nothing warns
    words = [order[rank] for rank in Y]
    plain = rc.PRank(classes=order, random_state=0).fit(X, words).predict(X)
    expected = [order[rank] for rank in rc.PRank(random_state=0).fit(X, Y).predict(X)]
    assert plain.tolist() == expected
    if kind == "pyarrow":
        words = words[:7]
        y = ordered(kind, words, order)
        assert rc.PRank(random_state=0).fit(X[:7], y).ranks_.tolist() == order
        return
    model = rc.PRank(random_state=0).fit(frame(kind), ordered(kind, words, order))
    assert model.predict(frame(kind)).tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_unordered_categories_are_no_order_of_ranks(kind):
    order = ["bad", "good", "great"]
    y = ordered(kind, [order[rank] for rank in Y], order, in_order=False)
    with pytest.raises(ValueError, match="string labels have no order of their own"):
        rc.PRank().fit(frame(kind), y)
    model = rc.PRank(classes=order, random_state=0).fit(frame(kind), y)
    expected = rc.PRank(random_state=0).fit(X, Y).predict(X)
    assert model.predict(frame(kind)).tolist() == [order[rank] for rank in expected]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", [["a", None, "b"], [1.5, None, 2.0], [1, None, 2]], ids=str)
def test_missing_labels_are_rejected(kind, values):
    labels = [column(kind, values)]
    if kind == "pyarrow":
        labels.append(labels[0].dictionary_encode())
    for y in labels:
        with pytest.raises(ValueError, match=r"y contains (None|NaN|nan) in row 1"):
            rc.PRank(classes=["a", "b"] if "a" in values else None).fit(X[:3], y)


# ------------------------------------------------------------------------ hostile frames


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])  # polars has no such frames
def test_duplicate_column_names_are_rejected(kind):
    if kind == "pandas":
        data = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "a"])
    else:
        arrow = pytest.importorskip("pyarrow")
        data = arrow.Table.from_arrays([arrow.array(one) for one in X.T], names=["a", "b", "a"])
    for learner in WALKED:
        with pytest.raises(ValueError, match="X must have columns with different names; got 2 n"):
            fitted(learner, data)
    with pytest.raises(ValueError, match="X must have columns with different names"):
        rc.PRank().fit(X, Y).predict(data)


@pytest.mark.filterwarnings("ignore:.*treats all")
@pytest.mark.parametrize("names", [[0, 1, 2], [("a", 1), ("a", 2), ("b", 1)]], ids=str)
def test_column_names_other_than_strings_are_not_stored(names):
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame(X, columns=pandas.Index(names, tupleize_cols=False))
    for learner in WALKED:
        model = fitted(learner, data)
        assert not hasattr(model, "feature_names_in_"), learner
        np.testing.assert_array_equal(model.predict(data), fitted(learner, X).predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_numbers_are_nan(kind):
    """As in arrays: rejected, or for trees a value that is missing."""
    values = [None if one < 5 else int(one) for one in range(N)]
    flags = [None if one < 5 else one % 2 == 0 for one in range(N)]
    data = make(kind, {"whole": values, "flag": flags, "size": X[:, 0]})
    if kind == "pandas":
        data = data.astype({"whole": "Int64", "flag": "boolean"})
    plain = np.column_stack([np.arange(N), np.arange(N) % 2 == 0, X[:, 0]])
    plain[:5, :2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 0 in column 'whole'"):
        rc.PRank().fit(data, Y)
    trees = rc.OrdinalBoost(5, min_samples_leaf=2)
    expected = clone(trees).fit(plain, Y)
    model = clone(trees).fit(data, Y)
    np.testing.assert_array_equal(model.predict_proba(data), expected.predict_proba(plain))


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_several_types_are_converted_as_arrays_are(kind):
    columns = {
        "small": np.arange(N, dtype=np.int8),
        "flag": np.arange(N) % 3 == 0,
        "single": X[:, 0].astype(np.float32),
        "money": [Decimal(f"{one}.25") for one in range(N)],
    }
    expected = np.column_stack([np.asarray(one, dtype=np.float64) for one in columns.values()])
    plain = rc.PRank(random_state=0).fit(expected, Y).project(expected)
    found = rc.PRank(random_state=0).fit(make(kind, columns), Y).project(make(kind, columns))
    np.testing.assert_array_equal(found, plain)
    del columns["money"]  # float32 holds all others, and stays float32
    assert as_rows(make(kind, columns)).arrays[0].dtype == np.float32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x"] * N, r"X must be numeric; its column 'b' has dtype|column 'b' of X must be real"),
        (
            [datetime.date(2020, 1, 1)] * N,
            r"X must be numeric; its column 'b' has dtype|column 'b' of X must be real",
        ),
        ([[1.0, 2.0]] * N, r"X must be numeric; its column 'b' has dtype|column 'b' of X"),
    ],
    ids=["text", "dates", "lists"],
)
def test_columns_without_numbers_are_rejected_by_name(kind, values, message):
    data = make(kind, {"a": X[:, 0], "b": values})
    with pytest.raises(ValueError, match=message):
        rc.PRank().fit(data, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_without_rows_or_columns_are_rejected(kind):
    with pytest.raises(ValueError, match=r"Found 0 sample\(s\) \(shape=\(0, 3\)\)"):
        rc.PRank().fit(make(kind, {name: np.empty(0) for name in NAMES}), [])
    empty = make(kind, {name: np.empty(0) for name in NAMES})
    with pytest.raises(ValueError, match=r"Found 0 sample\(s\)"):
        rc.PRank(random_state=0).fit(frame(kind), Y).predict(empty)
    with pytest.raises(ValueError, match=r"Found 0 (sample|feature)\(s\)"):
        rc.PRank().fit(make(kind, {}), [])
    with pytest.raises(ValueError, match=r"Found 0 sample\(s\)"):
        rc.OrdinalBoost(3).fit(with_cities(kind, CODES[:0], X[:0, 0]), [])


def test_series_and_lazy_frames_are_rejected_with_a_remedy():
    arrow = pytest.importorskip("pyarrow")
    table = make("pyarrow", {name: X[:, j] for j, name in enumerate(NAMES)})
    batch = table.to_batches()[0]
    with pytest.raises(ValueError, match=r"pass pyarrow\.Table\.from_batches\(\[X\]\)"):
        rc.PRank().fit(batch, Y)
    rc.PRank().fit(arrow.Table.from_batches([batch]), Y[: batch.num_rows])
    with pytest.raises(ValueError, match=r'pass pyarrow\.table\(\{"name": X\}\)'):
        rc.PRank().fit(table["age"], Y)


def test_chunks_with_different_dictionaries_are_one_category():
    arrow = pytest.importorskip("pyarrow")
    words = [CITIES[code] for code in CODES]
    parts = [arrow.array(words[:9]), arrow.array(words[9:][::-1])]
    words = [*words[:9], *words[9:][::-1]]
    cities = arrow.chunked_array([part.dictionary_encode() for part in parts])
    table = arrow.table({"size": X[:, 0], "city": cities})
    model = rc.OrdinalBoost(5, min_samples_leaf=2).fit(table, Y_CITIES)
    known = model.categories_[1]
    assert sorted(known) == sorted(CITIES)
    coded = np.column_stack([X[:, 0], [known.index(word) for word in words]])
    plain = rc.OrdinalBoost(5, min_samples_leaf=2, categorical_features=[1]).fit(coded, Y_CITIES)
    np.testing.assert_array_equal(model.predict_proba(table), plain.predict_proba(coded))


def test_a_null_among_the_values_of_a_dictionary_is_missing():
    arrow = pytest.importorskip("pyarrow")
    words = [None if row % 7 == 0 else CITIES[code] for row, code in enumerate(CODES)]
    values = [*dict.fromkeys(words)]
    assert None in values
    places = arrow.array([values.index(word) for word in words], arrow.int32())
    columns = {
        "values": arrow.DictionaryArray.from_arrays(places, arrow.array(values)),
        "codes": arrow.array(words).dictionary_encode(),
    }
    assert columns["values"].null_count == 0
    models = {}
    for name, column in columns.items():
        table = arrow.table({"size": X[:, 0], "city": column})
        models[name] = rc.OrdinalBoost(5, min_samples_leaf=2).fit(table, Y_CITIES)
        assert None not in models[name].categories_[1]
        for model in models.values():
            np.testing.assert_array_equal(
                model.predict_proba(table), models["values"].predict_proba(table)
            )


# ------------------------------------------------------------------------ libraries


@pytest.mark.parametrize("kind", KINDS)
def test_take_and_permute_keep_the_library_and_the_given_frame(kind):
    data = with_cities(kind)
    known = frame_of(data)
    before = [known.to_list(j) for j in range(2)]
    taken = frame_of(known.take(np.array([3, 1])))
    assert type(taken.native) is type(data)
    assert taken.to_list(1) == [before[1][3], before[1][1]]
    moved = frame_of(known.permuted([1], np.arange(N)[::-1]))
    assert moved.to_list(0) == before[0]
    assert moved.to_list(1) == before[1][::-1]
    assert moved.names == ["size", "city"]
    assert frame_of(known.without("size")).names == ["city"]
    assert [known.to_list(j) for j in range(2)] == before


def test_no_library_of_frames_is_imported_for_arrays():
    """What scikit-learn imports itself is not ours."""
    code = (
        "import sys; import numpy as np; import sklearn.model_selection, sklearn.utils;"
        "import rankcore as rc;"
        "before = set(sys.modules);"
        "X = np.random.default_rng(0).normal(size=(30, 2)); y = np.arange(30) % 3;"
        "rc.PRank().fit(X, y).predict(X); rc.OrdinalBoost(2).fit(X, y).predict(X);"
        "rc.RankBoost(2).fit(X, y, qid=np.arange(30) // 10).predict(X, qid=np.arange(30) // 10);"
        "rc.metrics.evaluate(y, X[:, 0], qid=y);"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new & {'pandas', 'polars', 'pyarrow', 'narwhals'}))"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True
    )
    assert run.stdout == "[]\n", run.stderr


def test_only_one_module_distinguishes_frame_libraries():
    sources = Path(rc.__file__).parent
    asks = re.compile(r'hasattr\([^()]*"(iloc|columns|dtypes|to_frame|with_columns|to_series)"\)')
    found = {
        str(file.relative_to(sources))
        for file in sources.rglob("*.py")
        if asks.search(file.read_text(encoding="utf-8"))
    }
    # The collections of Dask are not in memory: `dask/` has rules of its own.
    assert {name for name in found if not name.startswith("dask")} == {"_core/frames.py"}
