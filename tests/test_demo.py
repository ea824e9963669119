"""The demo: its figures against independent computations, its table, plot and picture."""

from __future__ import annotations

import io
import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.cli import demo
from rankcore.cli.registry import LEARNERS, Learner

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("plotext", reason="the plot needs the cli extra")

from rich.console import Console
from typer.testing import CliRunner

from rankcore.cli.app import app

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def result():
    return demo.run()


@pytest.fixture(scope="module")
def rows(result):
    return {row.method: row for row in result.rows}


def folds(X):
    return KFold(5, shuffle=True, random_state=demo.SEED).split(X)


# ---------------------------------------------------------------- figures


def test_ranks_are_quintiles_of_the_progression():
    X, ranks = demo.load_ranked_diabetes()
    progression = load_diabetes().target
    assert X.shape == (442, 10)
    for rank in range(1, 5):
        assert progression[ranks == rank].max() < progression[ranks == rank + 1].min()
    counts = np.bincount(ranks, minlength=6)
    assert counts[0] == 0
    assert counts[1:].min() >= 86  # 442 / 5 = 88.4; equal values cannot be parted
    assert counts[1:].max() <= 91


def test_rounding_is_half_up_and_clipped():
    predicted = np.array([-3.0, 1.4, 1.5, 2.5, 3.49, 5.7])
    assert demo.to_ranks(predicted).tolist() == [1, 1, 2, 3, 3, 5]


@pytest.mark.parametrize("name", [learner.name for learner in LEARNERS])
def test_learners_beat_the_constant(name, result, rows):
    assert rows[name].rank_loss < rows["best constant"].rank_loss
    if name in result.curves:
        assert result.curves[name][-1, 1] < result.constant_rank_loss


def test_averaging_reduces_the_loss(rows):
    assert rows["prank"].rank_loss < rows["prank-published"].rank_loss


def test_constant_baseline_predicts_the_median(rows):
    X, ranks = demo.load_ranked_diabetes()
    losses = []
    for train, test in folds(X):
        constant = int(median(ranks[train].tolist()) + 0.5)
        losses.append(sum(abs(rank - constant) for rank in ranks[test].tolist()) / len(test))
    assert rows["best constant"].rank_loss == pytest.approx(sum(losses) / 5)
    mean = sum(losses) / 5
    variance = sum((loss - mean) ** 2 for loss in losses) / 4
    assert rows["best constant"].spread == pytest.approx(variance**0.5)


def test_least_squares_baseline_rounds_a_regression(rows):
    # Standardising does not change what least squares with an intercept predicts.
    X, ranks = demo.load_ranked_diabetes()
    X = np.column_stack([np.ones(len(X)), X])
    off = []
    for train, test in folds(X):
        weights = np.linalg.lstsq(X[train], ranks[train])[0]
        predicted = [min(5, max(1, int(score + 0.5))) for score in X[test] @ weights]
        off.append(np.abs(np.array(predicted) - ranks[test]))
    row = rows["least squares"]
    assert row.rank_loss == pytest.approx(np.mean([d.mean() for d in off]))
    assert row.accuracy == pytest.approx(np.mean([(d == 0).mean() for d in off]))
    assert row.within_1 == pytest.approx(np.mean([(d < 2).mean() for d in off]))


@pytest.mark.parametrize(("name", "average"), [("prank-published", False), ("prank", True)])
def test_rows_of_learners_equal_plain_fits(name, average, rows):
    X, ranks = demo.load_ranked_diabetes()
    losses = []
    for train, test in folds(X):
        scaler = StandardScaler().fit(X[train])
        scale, margin = ("auto", "auto") if average else (1.0, 0.0)
        model = rc.PRank(20, average, threshold_scale=scale, margin=margin, random_state=0)
        model.fit(scaler.transform(X[train]), ranks[train])
        off = np.abs(model.predict(scaler.transform(X[test])) - ranks[test])
        losses.append(off.mean())
    assert rows[name].rank_loss == pytest.approx(np.mean(losses))


def test_rankings_equal_plain_fits(result):
    X, ranks = demo.load_ranked_diabetes()
    right = {row.method: row.pairs_right for row in result.rankings}
    names = ["committee", "pairwise", "ranksvm", "rankboost"]
    names += ["rankboost-trees", "bipartite-rankboost"]
    assert list(right) == ["least squares", *names]
    expected = []
    for train, test in folds(X):
        scaler = StandardScaler().fit(X[train])
        model = rc.PairwisePerceptron(max_iter=20, random_state=0)
        model.fit(scaler.transform(X[train]), ranks[train], qid=np.zeros(len(train)))
        scores = model.predict(scaler.transform(X[test]))
        pairs = [(i, j) for i in range(len(test)) for j in range(len(test))]
        pairs = [(i, j) for i, j in pairs if ranks[test[i]] > ranks[test[j]]]
        expected.append(sum(scores[i] > scores[j] for i, j in pairs) / len(pairs))
    assert right["pairwise"] == pytest.approx(np.mean(expected))
    assert min(right.values()) > 0.7  # chance is 0.5
    assert right["pairwise"] > right["least squares"] - 0.02


def test_ties_of_a_ranking_count_half():
    assert demo.pairs_right(np.array([2, 1, 1, 0]), np.array([1.0, 1.0, 0.0, 2.0])) == 1.5 / 5


def test_constant_of_the_stream_is_the_best_in_hindsight(result):
    _, ranks = demo.load_ranked_diabetes()
    assert result.constant_rank_loss == min(
        np.abs(ranks - constant).mean() for constant in range(1, 6)
    )


def test_curve_is_the_loss_before_learning(result):
    X, ranks = demo.load_ranked_diabetes()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.arange(len(X), dtype=np.int32)
    np.random.default_rng(demo.SEED).shuffle(order)
    model = rc.PRank.published()
    total = 5 - ranks[order[0]]  # before learning anything, every score reaches all thresholds
    losses = [total]
    for t, row in enumerate(order[:60]):
        if t > 0:
            total += abs(model.predict(X[[row]])[0] - ranks[row])
            losses.append(total / (t + 1))
        model.partial_fit(X[[row]], ranks[[row]], classes=range(1, 6))
    curve = result.curves["prank-published"]
    assert curve[:60, 0].tolist() == list(range(1, 61))
    np.testing.assert_allclose(curve[:60, 1], losses)
    assert curve[-1, 0] <= demo.EPOCHS * len(X) < 1.02 * curve[-1, 0]


@pytest.mark.slow
def test_results_repeat(result):
    again = demo.run()
    timeless = [[replace(row, fit_seconds=0) for row in each.rows] for each in (result, again)]
    assert timeless[0] == timeless[1]
    for name, curve in result.curves.items():
        np.testing.assert_array_equal(again.curves[name], curve)


def test_a_learner_joins_by_being_listed(result):
    strict = Learner("strict-prank", "PRank", "another tie rule", {"tie": "strict"})
    joined = demo.run([LEARNERS[0], strict])
    *baselines, first, last = joined.rows
    assert [row.method for row in baselines] == [row.method for row in result.rows[:2]]
    assert (first.method, last.method) == (LEARNERS[0].name, "strict-prank")
    assert "strict-prank" in joined.curves


# ---------------------------------------------------------------- showing


@pytest.mark.parametrize("width", [72, 80, 200])
def test_demo_prints_a_table_and_draws_a_plot(result, width):
    out = io.StringIO()
    demo.show(result, Console(file=out, width=width))
    text = out.getvalue()
    assert "\x1b" not in text  # no colours where there is no terminal
    table = {line.split("│")[1].strip(): line for line in text.splitlines() if line.count("│") == 6}
    for row in result.rows:
        assert f"{row.rank_loss:.3f} ± {row.spread:.3f}" in table[row.method]
        assert f"{row.accuracy:.3f}" in table[row.method]
    for label in ["1,000", "examples seen", "best constant", *demo.terminal_curves(result)]:
        assert label in text
    assert max(map(len, text.splitlines())) <= min(width, 100)


def test_equal_curves_are_drawn_once(result):
    curve = np.array([[1.0, 2.0], [2.0, 1.5]])
    drawn = demo._distinct({"a": curve, "b": curve + 1, "c": curve.copy(), "d": curve.copy()})
    assert sorted(drawn) == ["a, c, d", "b"]
    np.testing.assert_array_equal(drawn["a, c, d"], curve)


@pytest.fixture
def known(result, monkeypatch):
    """Check the command without arguments, which shows these figures."""
    monkeypatch.setattr(demo, "run", lambda: result)


def test_demo_needs_no_arguments(known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["demo"])
    assert (done.exit_code, done.stderr) == (0, "")
    for learner in LEARNERS:
        assert f"│ {learner.name} " in done.stdout
    if "pip install" in done.stdout:
        pytest.skip("no picture without matplotlib")
    assert done.stdout.splitlines()[-1].endswith("rankcore-demo.png")
    assert Path("rankcore-demo.png").read_bytes().startswith(PNG)


def test_demo_writes_json(known, tmp_path, result):
    pytest.importorskip("matplotlib", reason="the picture needs the plot extra")
    path = tmp_path / "curve.picture"
    done = CliRunner().invoke(app, ["demo", "--json", "--png", str(path)])
    facts = json.loads(done.stdout)
    assert path.read_bytes().startswith(PNG)
    assert facts["png"] == str(path)
    assert [row["rank_loss"] for row in facts["rows"]] == [row.rank_loss for row in result.rows]
    assert facts["curves"]["prank"] == result.curves["prank"].tolist()


def test_picture_shows_every_curve(result, tmp_path, monkeypatch):
    figures = pytest.importorskip("matplotlib.figure", reason="the picture needs the plot extra")
    drawn = []
    save = figures.Figure.savefig
    monkeypatch.setattr(
        figures.Figure, "savefig", lambda self, *a, **k: (drawn.append(self), save(self, *a, **k))
    )
    demo.write_png(result, tmp_path / "curve.png")
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == "log"
    *curves, constant = axes.get_lines()
    assert set(constant.get_ydata()) == {result.constant_rank_loss}
    names = [name for curve in curves for name in curve.get_label().split(", ")]
    assert sorted(names) == sorted(result.curves)
    for curve in curves:
        for name in curve.get_label().split(", "):
            np.testing.assert_array_equal(curve.get_xydata(), result.curves[name])


def test_interrupted_picture_keeps_the_older_file(result, tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure

    def broken(self, target, **options):
        with nullcontext(target) if hasattr(target, "write") else open(target, "wb") as stream:
            stream.write(PNG)
        raise OSError("no more")

    monkeypatch.setattr(figure, "savefig", broken)
    path = tmp_path / "curve.png"
    path.write_text("older")
    with pytest.raises(OSError, match="no more"):
        demo.write_png(result, path)
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


def test_demo_runs_without_plotting_packages(known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "plotext", None)
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0
    assert "pip install 'rankcore[plot]'" in done.stdout
    assert "pip install 'rankcore[cli]'" in done.stdout
    assert list(tmp_path.iterdir()) == []
    done = CliRunner().invoke(app, ["demo", "--json"])
    assert json.loads(done.stdout)["png"] is None


def test_unwritable_picture_is_an_error(known, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the picture needs the plot extra")
    monkeypatch.chdir(tmp_path)
    Path("rankcore-demo.png").mkdir()
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0
    assert "cannot write rankcore-demo.png" in done.stdout
    for path in ["missing/curve.png", "rankcore-demo.png"]:
        done = CliRunner().invoke(app, ["demo", "--png", path])
        assert done.exit_code == 1
        assert done.stdout == ""
        assert done.stderr.startswith("rankcore: error: ")
        assert done.stderr.count("\n") == 1
