"""The synthetic OAP experiment, small, and its data against their definition."""

import sys
from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest

import rankcore as rc
from rankcore.datasets import make_oap_synthetic, quadratic_features

ROOT = Path(__file__).parents[1]
if not (ROOT / "reproduce").is_dir():
    pytest.skip("reproduce/ is not beside the tests", allow_module_level=True)
sys.path.insert(0, str(ROOT))  # not there under a bare `pytest`

from reproduce import oap_synthetic as experiment  # noqa: E402

CUTS = [-1, -0.1, 0.25, 1]
N_TRAIN = 500


@pytest.fixture(scope="module")
def trials():
    return list(experiment.run(4, N_TRAIN))


# ---------------------------------------------------------------------------- data


def test_labels_count_the_cuts_below_the_surface():
    X, y = make_oap_synthetic(2000, noise=0.0, random_state=3)
    for (a, b), rank in zip(X, y, strict=True):
        surface = 10 * (a - 0.5) * (b - 0.5)
        assert rank == 1 + sum(surface > cut for cut in CUTS)
    np.testing.assert_array_equal(experiment.best_ranks(X), y)


def test_labels_have_the_probabilities_of_the_noise():
    X, y = make_oap_synthetic(200_000, random_state=4)
    assert X.min() >= 0
    assert X.max() < 1
    clean_X, clean_y = make_oap_synthetic(200_000, noise=0.0, random_state=4)
    np.testing.assert_array_equal(X, clean_X)
    surface = 10 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5)
    for r, cut in enumerate(CUTS, start=1):
        above = 0.5 * (1 + np.array([erf((s - cut) / 0.125 / sqrt(2)) for s in surface[:20_000]]))
        # Sums of independent Bernoulli variables: five standard deviations are odds of 1 in 10**6.
        limit = 5 * np.sqrt((above * (1 - above)).sum())
        assert abs((y[:20_000] > r).sum() - above.sum()) < limit
    # The loss of the medians, which is the smallest there is.
    losses = np.abs(clean_y - y)
    assert abs(losses.mean() - experiment.best_loss()) < 5 * losses.std() / np.sqrt(losses.size)
    assert experiment.best_loss() == pytest.approx(0.153, abs=5e-4)


def test_quadratic_features_equal_the_kernel():
    x1, x2 = 0.3, -2.0
    expected = [1, sqrt(2) * x1, sqrt(2) * x2, x1**2, sqrt(2) * x1 * x2, x2**2]
    np.testing.assert_allclose(quadratic_features([[x1, x2]]), [expected], rtol=1e-14)
    for d in [1, 2, 5]:
        X = np.random.default_rng(d).normal(size=(20, d))
        features = quadratic_features(X)
        assert features.shape == (20, (d + 1) * (d + 2) // 2)
        # Small ones are differences of large products.
        np.testing.assert_allclose(features @ features.T, (X @ X.T + 1) ** 2, atol=1e-12)


@pytest.mark.parametrize("bad", [{"n_samples": 0}, {"noise": -1.0}, {"noise": np.nan}])
def test_impossible_data_are_rejected(bad):
    with pytest.raises(ValueError, match="n_samples >= 1 and a finite noise >= 0"):
        make_oap_synthetic(**bad)
    with pytest.raises(ValueError, match="two dimensions"):
        quadratic_features([1.0, 2.0])


# ---------------------------------------------------------------------------- trials


def test_every_row_and_curve_is_measured(trials):
    rows = {row.name for row in experiment.ROWS}
    assert len(rows) == len(experiment.ROWS)
    for trial in trials:
        assert set(trial.losses) == rows
        assert set(trial.curves) == set(experiment.ONLINE)
        assert all(0 < loss < 4 for loss in trial.losses.values())
        for curve in trial.curves.values():
            assert curve.shape == trial.seen.shape
        assert trial.seen[-1] == N_TRAIN
        # Nothing learned beats the medians by more than luck: five standard errors of 1000 tests.
        best = trial.losses["best (surface known)"]
        assert min(trial.losses.values()) > best - 0.07


def test_a_trial_equals_one_by_hand(trials):
    # Seed 2, each class fitted by itself: what shares a training must not show.
    rng = np.random.default_rng(2)
    points, y = make_oap_synthetic(N_TRAIN, random_state=rng)
    test_points, y_test = make_oap_synthetic(1000, random_state=rng)
    X, X_test = quadratic_features(points), quadratic_features(test_points)
    found = trials[1]

    def loss(model):
        return np.abs(model.fit(X, y, classes=range(1, 6)).predict(X_test) - y_test).mean()

    assert found.losses["PRank"] == loss(rc.PRank.published())
    assert found.losses["PRank-VP, round"] == loss(rc.VotedPRank.published(output="round"))
    assert found.losses["averaged CuSum"] == loss(
        rc.CuSumRank.published(average=True, fit_intercept=False)
    )
    state = rng.bit_generator.state
    for name, learner, params in [
        ("OAP-BPM, τ = {}", rc.OAPBPM.published, {}),
        ("OAP-Bagg, τ = {}", rc.OAPBagging.published, {"output": "mean"}),
        ("OAP-Bagg, τ = {}, round", rc.OAPBagging.published, {"output": "round"}),
        ("OAP-VP, τ = {}", rc.OAPVoting.published, {"output": "mean"}),
    ]:
        rng.bit_generator.state = state
        for tau in [0.1, 0.3, 0.6, 0.9]:
            mine = loss(learner(tau=tau, random_state=rng, **params))
            if name.format(tau) in found.losses:
                assert found.losses[name.format(tau)] == pytest.approx(mine, rel=1e-12)
    seed = int(rng.integers(2**32))
    for name, learner in [("OAP-Bagg", rc.OAPBagging), ("OAP-VP", rc.OAPVoting)]:
        curve = experiment.vote_curve(learner.published(tau=0.3, random_state=seed), X, y)
        np.testing.assert_array_equal(found.curves[f"{name}, τ = 0.3"], curve[found.seen - 1])
    best = np.abs(experiment.best_ranks(test_points) - y_test).mean()
    assert found.losses["best (surface known)"] == best


def test_progressive_losses_of_votes_match_separate_fits():
    X, y = make_oap_synthetic(40, random_state=5)
    X = quadratic_features(X)
    curve = experiment.vote_curve(rc.OAPBagging.published(tau=0.3, random_state=6), X, y)
    losses = [5 - y[0]]
    for t in range(1, 40):
        model = rc.OAPBagging.published(tau=0.3, random_state=6).fit(
            X[:t], y[:t], classes=range(1, 6)
        )
        ranks = [member.predict(X[[t]])[0] for member in model.estimators_]
        losses.append(abs(np.mean(ranks) - y[t]))
    np.testing.assert_allclose(curve, np.cumsum(losses) / np.arange(1, 41), rtol=1e-12)


@pytest.mark.slow
def test_processes_change_nothing(trials):
    others = experiment.run(2, N_TRAIN, first_seed=2, jobs=2)
    for alone, shared in zip(trials[1:3], others, strict=True):
        assert alone.losses == shared.losses
        assert alone.updates == shared.updates
        np.testing.assert_equal(alone.curves, shared.curves)


# ---------------------------------------------------------------------------- gates


@pytest.mark.parametrize(
    ("name", "limit"),
    # As the protocol states them for 100 trials, from standard deviations with more digits.
    [
        ("PRank", 0.044),
        ("PRank-VP, votes from 1", 0.003),
        ("Widrow-Hoff, η = 0.1", 0.010),
        ("OAP-Bagg, τ = 0.3", 0.011),
        ("OAP-VP, τ = 0.6", 0.017),
        ("OAP-Bagg, τ = 0.9", 0.026),
        ("OAP-BPM, τ = 0.3", 0.016),
        ("OAP-BPM, τ = 0.6", 0.025),
        ("OAP-BPM, τ = 0.9", 0.033),
        ("averaged PRank", 0.0044),
    ],
)
def test_limits_of_a_hundred_trials_are_the_published_ones(name, limit):
    (row,) = [row for row in experiment.ROWS if row.name == name]
    _, found, own = experiment.judge(row, np.zeros(100), 5000)
    assert found == pytest.approx(limit, abs=6e-4)
    assert not own


def test_limits_depend_on_the_deviation_of_the_run():
    row = experiment.Row("made up", "", (1.0, 2.0))
    losses = np.array([1.0, 3.0, 1.0, 3.0])  # sd 2 / sqrt(3)
    mean, limit, own = experiment.judge(row, losses, 5000)
    assert (mean, own) == (1.0, True)
    assert limit == pytest.approx(3 * 2 / sqrt(3) * sqrt(1 / 4 + 1 / 400))
    known = row._replace(sd=0.5)
    assert experiment.judge(known, losses, 5000)[1] == pytest.approx(1.5 * sqrt(1 / 4 + 1 / 400))
    # The known deviation is that of 5000 examples.
    mean, limit, own = experiment.judge(known, losses, 50_000)
    assert (mean, own) == (2.0, True)
    assert limit == pytest.approx(3 * 2 / sqrt(3) * sqrt(1 / 4 + 1 / 200))
    assert experiment.judge(known, losses, 7000) is None
    assert experiment.judge(row._replace(means=(1.0, None)), losses, 50_000) is None


def test_row_outside_its_limits_fails(monkeypatch):
    rows = [
        experiment.Row("near", "0.9", (1.004, None), 0.01),
        experiment.Row("far", "0.9", (1.04, None), 0.01),
        experiment.Row("unknown", "", (None, None)),
    ]
    monkeypatch.setattr(experiment, "ROWS", rows)
    losses = [dict.fromkeys(["near", "far", "unknown"], loss) for loss in [0.9, 1.1]]
    trials = [experiment.Trial(loss, {}, np.arange(3), 0) for loss in losses]
    _, near, far, unknown = experiment.loss_table(trials, 5000)
    assert near == ["near", "0.9", "1.004", "1.0000 ± 1.2706", "0.0213", "pass"]  # t = 12.706
    assert far[-1] == "MISS"
    assert unknown == ["unknown", "", "", "1.0000 ± 1.2706", "", ""]


def test_curve_outside_its_limits_fails(monkeypatch):
    # Trials that agree at T = 500 allow nothing but rounding: half a unit, 0.0005 of 0.996.
    seen = np.array([100, 500, 700])
    values = np.array([[0.9, 1.0, 0.0], [1.1, 1.0, 0.0]])
    names = {"near": "1.2 1.00", "far": "1.2 0.996", "unknown": ""}
    monkeypatch.setattr(experiment, "ONLINE", names)
    header, near, far, unknown = experiment.online_table(dict.fromkeys(names, values), seen)
    assert header == ["", "trials", "T = 100", "T = 500", ""]
    # 3 (0.2 / sqrt(2)) sqrt(1 / 2 + 1 / 400) + 0.05
    assert near[1:] == ["2", "1.000 ± 1.271 (1.2 ± 0.351)", "1.000 ± 0.000 (1.00 ± 0.005)", "pass"]
    assert far[-1] == "MISS"
    assert unknown[1:] == ["2", "1.000 ± 1.271", "1.000 ± 0.000", ""]


def test_curves_of_few_trials_are_not_limited(trials):
    names = experiment.ONLINE
    curves = {name: np.array([trial.curves[name] for trial in trials]) for name in names}
    header, *lines = experiment.online_table(curves, trials[0].seen)
    assert header[2:4] == ["T = 100", "T = 500"]
    assert {line[0]: line[-1] for line in lines} == {
        name: "pass" if reference else "" for name, reference in names.items()
    }


# ---------------------------------------------------------------------------- showing


@pytest.fixture
def run_main(trials, monkeypatch, capsys):
    pytest.importorskip("rich", reason="the progress bar and the table need rich")

    def run(*arguments, full=4):
        monkeypatch.setattr(sys, "argv", ["oap_synthetic", "--trials", "4", *arguments])
        monkeypatch.setattr(experiment, "run", lambda *_: iter(trials))
        monkeypatch.setattr(experiment, "TRIALS", full)
        experiment.main()
        return capsys.readouterr().out

    return run


def test_markdown_equals_the_printed_table(run_main, tmp_path):
    # No reference for losses after this number of examples; the curves have one.
    copy = tmp_path / "copy.md"
    out = run_main("--n-train", str(N_TRAIN), "--markdown", str(copy))
    text = copy.read_text(encoding="utf-8")
    assert f"python -m reproduce.oap_synthetic --trials 4 --n-train {N_TRAIN}" in text
    assert f"4 trials of {N_TRAIN} training" in text
    assert "8 of 8 gates passed" in text
    for table in text.split("## ")[1:]:
        for line in table.splitlines()[4:]:
            if line.startswith("|"):
                for cell in line.strip("|").split(" | "):
                    assert cell.strip() in out


def test_failed_limits_end_with_an_error(run_main):
    # 500 examples are held to what 5000 reach.
    with pytest.raises(SystemExit, match="misses its gate"):
        run_main("--n-train", "5000")


def test_fewer_trials_than_published_are_not_limited(run_main, tmp_path):
    copy = tmp_path / "copy.md"
    out = run_main("--n-train", "5000", "--markdown", str(copy), full=100)
    for text in (out, copy.read_text(encoding="utf-8")):
        assert "Not gated: 4 trials of 100." in text
        assert "MISS" not in text
        assert "passed" not in text


def test_figure_is_written_as_png(run_main, tmp_path):
    pytest.importorskip("matplotlib", reason="the figure needs matplotlib")
    path = tmp_path / "curves.png"
    run_main("--n-train", str(N_TRAIN), "--png", str(path))
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
