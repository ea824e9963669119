"""rankcore.export: every learner in every format that runs here, and what is rejected."""

from contextlib import closing
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

import rankcore as rc
from declared import QID, RNG, SAVED, X, Y, data_for, walk
from rankcore.exporters import checking
from test_export_search import FIVE, fitted, hostile, scores

LEARNERS = [one for one in SAVED if getattr(one, "combine", "score") != "rank"]
SUFFIX = {"c": ".c", "xgboost": ".json"}
LIBRARIES = {"onnx": ["onnx", "onnxruntime"], "xgboost": ["xgboost"]}
KEEP = ColumnTransformer([("kept", "passthrough", [4, 0, 2])])
FRONTS = {
    "nothing": [],
    "StandardScaler": [StandardScaler()],
    "StandardScaler without mean": [StandardScaler(with_mean=False)],
    "MinMaxScaler": [MinMaxScaler()],
    "MinMaxScaler with clip": [MinMaxScaler(clip=True)],
    "MaxAbsScaler": [MaxAbsScaler()],
    "Normalizer": [Normalizer("max")],
    "SimpleImputer": [SimpleImputer(), StandardScaler()],
    "selection": [StandardScaler(), KEEP, MinMaxScaler()],
    "several": [VarianceThreshold(), MaxAbsScaler(), StandardScaler()],
}


def model_of(learner, front="nothing"):
    return fitted(clone(learner), FRONTS[front], 0.1 if front == "SimpleImputer" else 0.0)


def exported(model, folder, target, **options):
    for name in LIBRARIES.get(target, []):
        pytest.importorskip(name, reason=f"no {name}")
    path = folder / f"m{SUFFIX.get(target, '')}"
    return rc.export(model, path, target, **({"feature_names": FIVE} | options))


def holds(target, model):
    """Whether a format can hold a model, by its documentation."""
    scoring = model._spec().scoring
    trees = scoring.form in ("stumps", "trees") or getattr(model, "tasks", "") == "shared"
    if target in ("c", "onnx") or trees:
        return True
    return scoring.form in ("linear", "thresholds", "rounded", "tasks") or of_linear_kernel(model)


def of_linear_kernel(model):
    return getattr(model, "kernel", "") == "linear"


# The other formats, which no engine here checks: tests/contract/test_export_table.py.
@pytest.mark.parametrize("target", checking.CHECKED)
@walk(LEARNERS)
def test_every_learner_scores_alike_in_every_format(tmp_path, capsys, learner, target):
    model = clone(learner).fit(X, **data_for(learner, Y, QID))
    if not holds(target, model):
        with pytest.raises(ValueError, match=f"{target} cannot express"):
            exported(model, tmp_path, target, check=X)
        assert not list(tmp_path.iterdir())
        return
    if missing := checking.missing_engine(target):
        pytest.skip(f"no {missing}")
    found = exported(model, tmp_path, target, check=np.vstack([X, hostile(model, 500)]))
    assert str(found) + "\n" == capsys.readouterr().out
    assert found.n_rows == 590
    # Each support vector of a linear kernel is a term of the score, not of the exported sum.
    roundings = model.support_.size if of_linear_kernel(model) else 4
    assert found.largest_difference == 0 if target == "c" else found.ulps < roundings


PIPED = [rc.PRank(random_state=0), rc.RankBoost(40), rc.RankBoost(20, max_leaf_nodes=5)]


@pytest.mark.parametrize(("front", "learner"), [*zip(FRONTS, cycle(PIPED), strict=False)], ids=str)
@pytest.mark.parametrize("target", checking.CHECKED)
def test_pipelines_are_exported(tmp_path, learner, front, target):
    model = model_of(learner, front)
    rows = RNG.normal(size=(400, 5))
    if front == "SimpleImputer":
        rows[RNG.random(rows.shape) < 0.2] = np.nan
    rejected = {"Normalizer": ("xgboost", "sql")}
    if isinstance(learner, rc.PRank):
        rejected |= {"MinMaxScaler with clip": ("xgboost",), "SimpleImputer": ("xgboost",)}
    if target in rejected.get(front, ()):
        with pytest.raises(ValueError, match=f"{target} cannot express"):
            exported(model, tmp_path, target, check=rows)
        return
    found = exported(model, tmp_path, target, check=rows)
    assert found.largest_difference == 0 if target == "c" and front != "Normalizer" else True
    assert found.ulps < 4


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("target", ["c", "onnx"])
def test_norms_of_rows_are_exported(tmp_path, norm, target):
    model = fitted(rc.RankBoost(40), [Normalizer(norm)])
    rows = np.vstack([X, np.zeros(5), np.full(5, 1e-16), -X])
    assert exported(model, tmp_path, target, check=rows).ulps < 2
    model = fitted(rc.PRank(random_state=0), [Normalizer(norm)])
    assert exported(model, tmp_path, target, check=rows).ulps < 2


@pytest.mark.parametrize("missing", ["learn", "zero"])
@pytest.mark.parametrize("nodes", [2, 6])
@pytest.mark.parametrize("target", checking.CHECKED)
def test_missing_values_score_as_in_python(tmp_path, missing, nodes, target):
    rows = X.copy()
    rows[RNG.random(X.shape) < 0.2] = np.nan if missing == "learn" else 0.0
    model = rc.RankBoost(40, max_leaf_nodes=nodes, missing=missing).fit(rows, Y, qid=QID)
    others = hostile(model).astype(np.float64)
    others[RNG.random(others.shape) < 0.2] = np.nan
    if target == "xgboost" and missing == "zero" and nodes > 2:
        with pytest.raises(ValueError, match="cannot express missing=.zero."):
            exported(model, tmp_path, target, check=others)
        return
    assert exported(model, tmp_path, target, check=others).ulps < 4


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("target", checking.CHECKED)
def test_stump_may_separate_only_missing_values(tmp_path, nodes, target):
    rows = X.copy()
    rows[Y > 2, 0] = np.nan
    model = rc.RankBoost(10, max_leaf_nodes=nodes).fit(rows, Y, qid=QID)
    assert -np.inf in model._spec().scoring.arrays["thresholds"]
    assert exported(model, tmp_path, target, check=rows).ulps < 4


@pytest.mark.parametrize("target", ["onnx", "sql"])
@pytest.mark.parametrize("front", ["nothing", "StandardScaler", "MinMaxScaler"])
def test_double_precision_values_take_the_same_side_as_in_python(tmp_path, target, front):
    model = model_of(rc.RankBoost(40), front)
    rows = RNG.normal(size=(3000, 5))
    near = (model[-1] if front != "nothing" else model)._spec().scoring.arrays["thresholds"]
    if front != "nothing":
        near = model[0].inverse_transform(np.tile(near[:, None], 5)).ravel()
    for _ in range(3):
        near = np.concatenate([near, np.nextafter(near, 1e9), np.nextafter(near, -1e9)])
        near = np.unique(near)
    rows[:] = RNG.choice(near, size=rows.shape)
    options = {"dtype": "float64"} if target == "onnx" else {}
    assert exported(model, tmp_path, target, check=rows, **options).ulps < 2


def test_duckdb_reads_the_expression(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="no duckdb")
    for learner in [rc.PRank(random_state=0), rc.RankBoost(60), rc.RankBoost(30, max_leaf_nodes=6)]:
        model = fitted(clone(learner), [StandardScaler()])
        names = ['a"b', "select", "c d", "e", "f"]
        rc.export(model, tmp_path / "m.sql", "sql", feature_names=names)
        rows = hostile(model)
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        with duckdb.connect() as connection:
            for kind in ["FLOAT", "DOUBLE"]:
                table = ", ".join(f"{name} {kind}" for name in quoted)
                connection.execute(f"CREATE OR REPLACE TABLE t (n INT, {table})")
                values = [(n, *row) for n, row in enumerate(rows[:300].tolist())]
                connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", values)
                text = (tmp_path / "m.sql").read_text()
                found = connection.execute(f"SELECT {text} FROM t ORDER BY n").fetchall()
                expected = scores(model, rows[:300])
                np.testing.assert_allclose(np.ravel(found), expected, rtol=0, atol=1e-13)


def test_null_is_missing_in_sql(tmp_path):
    import sqlite3

    rc.export(rc.PRank(random_state=0).fit(X, Y), tmp_path / "m", "sql", feature_names=FIVE)
    text = (tmp_path / "m").read_text()
    columns = ", ".join(f'1.0 AS "{name}"' for name in FIVE[1:])
    select = f'SELECT {text} FROM (SELECT NULL AS "{FIVE[0]}", {columns})'
    with closing(sqlite3.connect(":memory:")) as database:
        assert database.execute(select).fetchone() == (None,)


@pytest.mark.parametrize("learner", [rc.RankBoost(40), rc.RankBoost(20, max_leaf_nodes=5)], ids=str)
def test_dump_equals_that_of_xgboost(tmp_path, learner):
    import json

    xgboost = pytest.importorskip("xgboost", reason="no xgboost")
    model = fitted(clone(learner), [], 0.2)
    exported(model, tmp_path, "xgboost")
    exported(model, tmp_path, "xgboost_dump")
    booster = xgboost.Booster(model_file=str(tmp_path / "m.json"))
    theirs = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]

    def rounded(node):
        node = {k: np.float32(v) if isinstance(v, float) else v for k, v in node.items()}
        return node | {"children": [rounded(child) for child in node.get("children", [])]}

    ours = json.loads((tmp_path / "m").read_text())
    assert [*map(rounded, ours)] == [*map(rounded, theirs)]


@pytest.mark.parametrize("model", [rc.PRank(random_state=0), rc.OrdinalBoost(2, tasks="shared")])
def test_sql_rejects_names_that_differ_by_case_only(model, tmp_path):
    model = clone(model).fit(X, Y)
    names = ["price", "Age", "size", "age", "Price"]
    with pytest.raises(ValueError, match="differ by more than case; got 'Age' and 'age'"):
        rc.export(model, tmp_path / "m.sql", "sql", feature_names=names)
    assert not (tmp_path / "m.sql").exists()


@pytest.mark.parametrize("target", ["xgboost", "elasticsearch", "sql", "vespa", "ranklib", "onnx"])
def test_categories_are_rejected(tmp_path, target):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=FIVE)
    table["age"] = pandas.Categorical.from_codes(Y - 1, list("abcd"))
    model = rc.RankBoost(10, max_leaf_nodes=4).fit(table, Y, qid=QID)
    with pytest.raises(ValueError, match=f"{target} cannot express splits by category.* for age"):
        exported(model, tmp_path, target)


def test_other_objects_are_rejected(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    model, path = rc.PRank(random_state=0).fit(X, Y), tmp_path / "m"
    with pytest.raises(ValueError, match="format must be one of c, onnx, .*; got 'pdf'"):
        rc.export(model, path, "pdf")
    with pytest.raises(ValueError, match="got 'pmml': the libraries that write PMML"):
        rc.export(model, path, "pmml")
    with pytest.raises(TypeError, match="format 'sql' has the options none; got 'name'"):
        rc.export(model, path, "sql", name="x")
    with pytest.raises(TypeError, match="takes a rankcore learner, .* got LogisticRegression"):
        rc.export(LogisticRegression().fit(X, Y), path, "c")
    search = GridSearchCV(rc.PRank(random_state=0), {"max_iter": [1, 2]}, cv=2).fit(X, Y)
    with pytest.raises(TypeError, match="got GridSearchCV: export its best_estimator_"):
        rc.export(search, path, "c")
    with pytest.raises(NotFittedError):
        rc.export(rc.PRank(), path, "c")
    voted = rc.PairwisePerceptron("voted", combine="rank", max_iter=1).fit(X, Y, qid=QID)
    with pytest.raises(
        ValueError, match="combine='rank' scores depend on all documents of a query"
    ):
        rc.export(voted, path, "c")
    votes = rc.CalibratedOrdinal(rc.MulticlassPerceptron(random_state=0)).fit(X, Y)
    with pytest.raises(ValueError, match="this CalibratedOrdinal cannot be exported: .* each rank"):
        rc.export(votes, path, "c")
    foreign = rc.CalibratedOrdinal(FrozenEstimator(LogisticRegression().fit(X, Y))).fit(X, Y)
    with pytest.raises(TypeError, match="its estimator is a LogisticRegression"):
        rc.export(foreign, path, "c")
    with pytest.raises(TypeError, match="got PolynomialFeatures in the pipeline"):
        rc.export(make_pipeline(PolynomialFeatures(2), rc.PRank()).fit(X, Y), path, "c")
    imputer = SimpleImputer(missing_values=-1)
    with pytest.raises(TypeError, match="SimpleImputer of missing_values=nan"):
        rc.export(make_pipeline(imputer, rc.PRank()).fit(X, Y), path, "c")
    columns = ColumnTransformer([("scaled", StandardScaler(), [0, 1])])
    with pytest.raises(TypeError, match="got StandardScaler as 'scaled'"):
        rc.export(make_pipeline(columns, rc.PRank()).fit(X, Y), path, "c")
    with pytest.raises(ValueError, match="feature_names has 2 names; the model takes 5"):
        rc.export(model, path, "sql", feature_names=["a", "b"])
    with pytest.raises(ValueError, match="feature_names must be unique; got 'a' more than once"):
        rc.export(model, path, "sql", feature_names=list("aabcd"))
    with pytest.raises(ValueError, match=r"path must end in \.c; got 'm'"):
        rc.export(model, path, "c")
    with pytest.raises(ValueError, match="path must end in .json"):
        rc.export(model, path, "xgboost")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        rc.export(model, tmp_path / "none" / "m", "sql", feature_names=FIVE)
    with pytest.raises(ValueError, match=r"check must be rows of 5 features; got shape \(90, 4\)"):
        rc.export(model, path, "sql", feature_names=FIVE, check=X[:, :4])
    assert not list(tmp_path.iterdir())


def test_failed_check_keeps_the_older_file(tmp_path, monkeypatch):
    model, path = rc.PRank(random_state=0).fit(X, Y), tmp_path / "m"
    path.write_text("older")
    from rankcore.exporters import expressions

    literal = expressions._literal
    monkeypatch.setattr(expressions, "_literal", lambda value: literal(value * (1 + 1e-9)))
    with pytest.raises(ValueError, match="sql changes scores: row .* a difference above rounding"):
        rc.export(model, path, "sql", feature_names=FIVE, check=sp.csr_array(X))
    assert path.read_text() == "older"
    assert [*tmp_path.iterdir()] == [path]
    monkeypatch.undo()
    from rankcore.exporters import c_source

    fields = c_source._Source.fields

    def other_thresholds(source):
        weights, _, *sizes = fields(source)["prank"]
        return {"prank": [weights, weights, *sizes]}

    monkeypatch.setattr(c_source._Source, "fields", other_thresholds)
    with pytest.raises(ValueError, match="c changes ranks: .* of 90 rows"):
        rc.export(model, tmp_path / "m.c", "c", check=X)


def test_formats_without_an_engine_warn_that_no_check_is_made(tmp_path):
    model = rc.PRank(random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="solr was not checked: its engine is not available here"):
        assert rc.export(model, tmp_path / "m", "solr", feature_names=FIVE, check=X) is None


@pytest.mark.parametrize(("target", "engine"), [("xgboost", "xgboost"), ("onnx", "onnxruntime")])
def test_a_file_is_written_without_the_package_that_would_check_it(
    tmp_path, monkeypatch, target, engine
):
    if target == "onnx":
        pytest.importorskip("onnx", reason="no onnx")
    from rankcore.exporters import checking

    installed = checking.find_spec
    found = lambda name: None if name == engine else installed(name)  # noqa: E731
    monkeypatch.setattr(checking, "find_spec", found)
    model, path = rc.PRank(random_state=0).fit(X, Y), tmp_path / "m.json"
    match = f"{target} was not checked: the check requires {engine}: pip install {engine}"
    with pytest.warns(UserWarning, match=match):
        assert rc.export(model, path, target, check=X) is None
    content = path.read_bytes()
    rc.export(model, path, target)
    assert path.read_bytes() == content


def test_a_library_that_is_missing_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match="requires onnx: pip install onnx"):
        rc.export(rc.PRank(random_state=0).fit(X, Y), tmp_path / "m", "onnx")


def test_columns_of_a_table_are_selected_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=FIVE)
    columns = ColumnTransformer([("some", "passthrough", ["age", "title"])])
    model = make_pipeline(columns, rc.PRank(random_state=0)).fit(table, Y)
    rc.export(model, tmp_path / "m", "sql")
    text = (tmp_path / "m").read_text()
    assert '"age"' in text.splitlines()[0]
    assert '"title"' in text.splitlines()[1]


def test_fitted_searches_are_exported(tmp_path):
    model = rc.RankSVMCV(Cs=[0.1, 1.0], cv=2).fit(X, Y, qid=QID)
    with pytest.raises(TypeError, match="got RankSVMCV: export its best_estimator_"):
        rc.export(model, tmp_path / "m", "sql", feature_names=FIVE)
    chosen = model.best_estimator_
    assert rc.export(chosen, tmp_path / "m", "sql", feature_names=FIVE, check=X).ulps < 2


def test_tables_too_wide_for_sqlite_cannot_be_checked(tmp_path):
    names = [f"f{j}" for j in range(2001)]
    model = rc.PRank(random_state=0).fit(np.eye(4, 2001), [1, 2, 1, 2])
    with pytest.raises(RuntimeError, match="at most 2000 features; the model takes 2001"):
        rc.export(model, tmp_path / "m", "sql", feature_names=names, check=np.eye(4, 2001))
    rc.export(model, tmp_path / "m", "sql", feature_names=names)


@pytest.mark.parametrize(
    ("name", "beginning"), [("m.c", "/*"), ("M.SQL", '"title" * '), ("m.sql", '"title" * ')]
)
def test_format_is_that_of_the_ending(tmp_path, name, beginning):
    model = rc.PRank(random_state=0).fit(X, Y)
    names = {} if name.endswith(".c") else {"feature_names": FIVE}
    rc.export(model, tmp_path / name, **names)
    assert (tmp_path / name).read_text().lstrip().startswith(beginning)


def test_format_must_be_named_if_the_ending_has_several(tmp_path):
    model = rc.PRank(random_state=0).fit(X, Y)
    for name in ("m.json", "m"):
        with pytest.raises(
            ValueError, match=r"got .*m.*: name the format, one of c, onnx, xgboost"
        ):
            rc.export(model, tmp_path / name)
