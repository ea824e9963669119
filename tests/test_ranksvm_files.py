"""Ranking SVMs in model files, in C, on the command line and in pictures."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from model_files import put_together, taken_apart
from rankcore.bounds import margin_curve

X, Y, QID = rc.datasets.make_letor(20, 15, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize(
    ("params", "form"),
    [
        ({"loss": "hinge"}, np.asarray),
        ({"kernel": "rbf", "gamma": 0.01}, np.asarray),
        ({"kernel": "poly", "degree": 2}, sp.csr_array),
        ({"kernel": "precomputed"}, lambda X: X @ X.T),
    ],
    ids=["hinge", "rbf", "poly", "precomputed"],
)
def test_file_contains_the_whole_model(tmp_path, params, form):
    model = rc.RankSVM(0.1, tol=1e-3, **params)
    model.fit(form(X), Y, qid=QID, eval_set=(form(X), Y), eval_qid=QID)
    path = tmp_path / "model.rankcore"
    rc.save(model, path)
    copy = rc.load(path)
    np.testing.assert_array_equal(copy.predict(form(X)), model.predict(form(X)))
    assert copy.history_ == model.history_
    assert copy.get_params() == model.get_params()
    for name in ["objective_", "gap_", "n_iter_", "n_features_in_"]:
        assert getattr(copy, name) == getattr(model, name)
    with pytest.raises(ValueError, match="fitted on queries"):
        copy.score(form(X), Y)


def test_a_kernel_function_is_rejected(tmp_path):
    model = rc.RankSVM(0.1, kernel=lambda a, b: a @ b.T).fit(X, Y, qid=QID)
    with pytest.raises(TypeError, match="kernel"):
        rc.save(model, tmp_path / "model.rankcore")


def test_save_names_the_best_estimator_of_a_search_for_c(tmp_path):
    model = rc.RankSVMCV(Cs=[0.01, 1.0], cv=3).fit(X, Y, qid=QID)
    path = tmp_path / "model.rankcore"
    with pytest.raises(TypeError, match="or save its best_estimator_"):
        rc.save(model, path)
    rc.save(model.best_estimator_, path)
    np.testing.assert_array_equal(rc.load(path).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 3},
        {"n_iter": -1},
        {"n_iter": 2.5},
        {"log": np.array([[1.0]])},
        {"kernel": None},
        {"kernel": {"kind": "poly", "gamma": 1.0, "degree": 3, "coef0": 0.0}},
        {"kernel": {"kind": "rbf", "gamma": None, "degree": 3, "coef0": 0.0}},
        {"support": np.array([3, -2])},
        {"support": np.array([[1]])},
        {"coefficients": np.array([np.nan])},
        {"vectors": np.zeros((1, 1))},
        {"vectors": np.array([[1]])},
    ],
    ids=str,
)
def test_a_crafted_file_is_rejected(tmp_path, change):
    good, bad = tmp_path / "good.rankcore", tmp_path / "bad.rankcore"
    rc.save(rc.RankSVM(0.1, kernel="rbf").fit(X, Y, qid=QID), good)
    document, arrays = taken_apart(good.read_bytes())
    for name, value in change.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            (document if name == "n_features" else document["facts"])[name] = value
    bad.write_bytes(put_together(document, arrays))
    with pytest.raises(ValueError, match="is damaged"):
        rc.load(bad)


def test_the_command_line_trains_a_ranksvm(tmp_path, monkeypatch, capsys):
    from rankcore.cli.app import main

    data, path = tmp_path / "train.txt", tmp_path / "model.rankcore"
    rc.datasets.dump_letor(X, Y, data, qid=QID)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["rankcore", *map(str, arguments), "--json"])
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code in (0, None)
        return json.loads(capsys.readouterr().out)

    trained = run("train", data, "-o", path, "--model", "ranksvm", "--set", "C=0.5")
    loaded = rc.datasets.load_letor(data)
    rows, y, qid = loaded.X, loaded.y, loaded.qid
    alone = rc.RankSVM(0.5, random_state=0).fit(rows, y, qid=qid)
    assert (trained["steps"], trained["objective"]) == (alone.n_iter_, alone.objective_)
    assert trained["above_minimum_at_most"] == alone.gap_ * alone.objective_
    shown = run("info", path)
    assert (shown["steps"], shown["objective"]) == (alone.n_iter_, alone.objective_)
    np.testing.assert_array_equal(rc.load(path).predict(rows), alone.predict(rows))


C_PROGRAM = """
#include <stdio.h>
#include "rankcore.h"
int main(void)
{
    static const double weights[] = {%s};
    static const float rows[][%d] = {%s};
    const rc_linear model = {weights, 0.0, %d};
    int i;
    for (i = 0; i < %d; i++)
        printf("%%.17g\\n", rc_linear_score(&model, rc_row_f32(rows[i], NULL, model.n_features)));
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
def test_weights_score_in_c_as_in_python(tmp_path):
    model = rc.RankSVM().fit(X, Y, qid=QID)
    some = X[:20].astype(np.float32)
    rows = ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in some.astype(float).tolist())
    weights = ", ".join(map(repr, model.coef_.tolist()))
    n = some.shape[1]
    (tmp_path / "score.c").write_text(C_PROGRAM % (weights, n, rows, n, len(some)))
    flags = ["-std=c99", "-O1", "-ffp-contract=off", f"-I{rc.get_include()}", "-o", "score"]
    subprocess.run(["cc", "score.c", *flags, "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "score"], capture_output=True, text=True, check=True)
    scores = np.array(done.stdout.split(), dtype=np.float64)
    np.testing.assert_array_equal(scores, model.predict(some))


def test_weights_and_paths_are_drawn():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    one, two, three = figure.subplots(1, 3)
    train = QID <= 14
    path = rc.ranksvm_path(
        X[train],
        Y[train],
        qid=QID[train],
        Cs=4,
        eval_set=(X[~train], Y[~train]),
        eval_qid=QID[~train],
    )
    rc.plotting.plot_ranksvm_path(path, ax=one)
    assert one.lines[0].get_xydata().tolist() == np.column_stack([path.Cs, path.values]).tolist()
    assert one.lines[1].get_xdata()[0] == path.Cs[path.best]
    assert one.get_ylabel() == "ndcg@10, held-out queries"
    with pytest.raises(ValueError, match="pass eval_set to ranksvm_path"):
        rc.plotting.plot_ranksvm_path(rc.ranksvm_path(X, Y, qid=QID, Cs=[1.0]))
    model = rc.RankSVMCV(Cs=[0.01, 1.0], cv=3).fit(X, Y, qid=QID)
    rc.plotting.plot_ranksvm_path(model, ax=two)
    np.testing.assert_array_equal(two.lines[0].get_ydata(), model.scores_.mean(axis=0))
    curve = margin_curve(Y, model.predict(X), qid=QID)
    norm = float(np.linalg.norm(model.coef_))
    bounds = curve.certificate(0.01, norm, m=10**9)
    rc.plotting.plot_margin_curve(curve, certificate=bounds, held_out=0.3, norm=norm, ax=three)
    np.testing.assert_array_equal(three.lines[0].get_ydata(), curve.losses)
    np.testing.assert_array_equal(three.lines[0].get_xdata(), curve.rhos / norm)
    np.testing.assert_array_equal(three.lines[1].get_ydata(), bounds)
    assert three.lines[2].get_ydata()[0] == np.nanmin(bounds)
    assert three.lines[3].get_ydata()[0] == 0.3
    figure.canvas.draw()
