"""``rankcore export``."""

import shutil

import pytest

import rankcore as rc
from declared import QID, X, Y
from rankcore.exporters.exporting import ENDINGS
from test_cli import fail, succeed


@pytest.fixture
def files(tmp_path):
    """Return a model, the rows that it was trained on, and names of its features."""
    data = tmp_path / "train.svm"
    lines = [
        f"{y} qid:{q} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(x, start=1))
        for x, y, q in zip(X.tolist(), Y, QID, strict=True)
    ]
    data.write_text("\n".join(lines) + "\n")
    model = tmp_path / "m.rankcore"
    rc.save(rc.RankBoost(20).fit(X, Y, qid=QID), model)
    names = tmp_path / "names.txt"
    names.write_text("a\nb\nc\nd\ne\n")
    return model, data, names


def test_rows_of_a_file_are_compared(files, tmp_path):
    model, data, names = files
    command = ["export", model, tmp_path / "m.sql", data, "--format", "sql", "--names", names]
    out = succeed(*command)
    assert out.startswith("sql: 90 rows in SQLite")
    assert out.endswith("no order changed\n")
    assert '"a" <= ' in (tmp_path / "m.sql").read_text()


@pytest.mark.parametrize("ending", sorted(ENDINGS))
def test_endings_in_capitals_name_the_same_format(files, tmp_path, ending):
    if ending == ".onnx":
        pytest.importorskip("onnx")
    model = rc.load(files[0])
    written = []
    for name in ("lower", "upper"):
        folder = tmp_path / name
        folder.mkdir()
        path = folder / f"m{ending if name == 'lower' else ending.upper()}"
        rc.export(model, path, feature_names=list("abcde"))
        written.append(path.read_bytes())
        assert (folder / "m.h").exists() == (ending == ".c")
    assert written[0] == written[1]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_source_with_capital_ending_compiles_as_c(files, tmp_path):
    model, data, _ = files
    assert "largest difference 0" in succeed("export", model, tmp_path / "m.C", data)
    assert (tmp_path / "m.h").exists()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_c_is_the_default_and_has_a_name(files, tmp_path):
    model, data, _ = files
    out = succeed("export", model, tmp_path / "m.c", data, "--name", "stars")
    assert "largest difference 0 (0 ulp of the sum)" in out
    assert "double stars_score(const double *x);" in (tmp_path / "m.h").read_text()


def test_a_scaled_model_is_exported(files, tmp_path):
    _, data, names = files
    succeed("train", data, "-o", tmp_path / "s.rankcore", "--scale", "auto", "--quiet")
    out = succeed(
        "export", tmp_path / "s.rankcore", tmp_path / "s.sql", data, "-f", "sql", "--names", names
    )
    assert "90 rows in SQLite" in out


def test_unexportable_models_raise_a_one_line_error(files, tmp_path):
    model = files[0]
    out = tmp_path / "out"
    assert "format must be one of c, onnx" in fail("export", model, out, "--format", "pdf")
    assert "pass 5 feature_names (on the command line --names FILE)" in fail(
        "export", model, out, "--format", "solr"
    )
    short = tmp_path / "short.txt"
    short.write_text("a\n")
    command = ["export", model, out, "--format", "sql", "--names", short]
    assert "feature_names has 1 names; the model takes 5" in fail(*command)
    assert "path must end in .c" in fail("export", model, out, "--format", "c")
    assert "path has no ending of one format, .c, .onnx, .sql; got" in fail("export", model, out)
    assert "has the options none; got 'name'" in fail(*command[:5], "--name", "x")
    assert not out.exists()


def test_xgboost_is_not_needed_to_write_for_it(files, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from rankcore.cli.app import app
    from rankcore.exporters import checking

    monkeypatch.setattr(checking, "find_spec", lambda name: None)
    command = ["export", files[0], tmp_path / "m.json", files[1], "-f", "xgboost"]
    done = CliRunner().invoke(app, [*map(str, command)])
    assert done.exit_code == 0
    assert "not checked: the check requires xgboost: pip install xgboost" in done.stderr
    assert (tmp_path / "m.json").exists()


def test_models_of_texts_are_rejected_by_name(files, tmp_path):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    texts, labels = ["ab bc", "bc", "de"] * 4, [1, 2, 3] * 4
    model = make_pipeline(TfidfVectorizer(), rc.PRank()).fit(texts, labels)
    rc.save(model, tmp_path / "t")
    assert "TfidfVectorizer" in succeed("info", tmp_path / "t")
    for command in (["predict", tmp_path / "t", files[1]], ["explain", tmp_path / "t", files[1]]):
        assert "got TfidfVectorizer: use rankcore.load" in fail(*command)
    assert "got TfidfVectorizer in the pipeline" in fail("export", tmp_path / "t", tmp_path / "c.c")
    rc.save(rc.CalibratedOrdinal(model, cv=2).fit(texts, labels), tmp_path / "t")
    assert "TfidfVectorizer" in fail("predict", tmp_path / "t", files[1])
    assert "TfidfVectorizer" in fail("export", tmp_path / "t", tmp_path / "c.c")


def test_export_without_check_is_reported(files, tmp_path):
    from typer.testing import CliRunner

    from rankcore.cli.app import app

    model, data, names = files
    for given, why in [([data], "there is no engine for it here"), ([], "name a file of rows")]:
        command = ["export", model, tmp_path / "m", *given, "-f", "solr", "--names", names]
        done = CliRunner().invoke(app, [*map(str, command)])
        assert done.exit_code == 0
        assert f"not checked: {why}" in done.stderr
