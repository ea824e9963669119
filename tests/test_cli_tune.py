"""``rankcore tune``: the trials, their limits, their journal, and the model that is saved."""

import json
import sys
import warnings

import numpy as np
import pytest

import rankcore as rc

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")
pytest.importorskip("optuna", reason="tune needs the tune extra")

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import rankcore.cli.app
from rankcore.cli.registry import find_learner
from rankcore.cli.search_space import FEW, SPACES, families, suggest
from rankcore.datasets import dump_letor, load_letor
from rankcore.metrics import evaluate, rank_loss
from rankcore.model_selection import QueryKFold, cross_validate_queries
from test_cli import fail, make_examples, run, succeed

MODULE = sys.modules["rankcore.cli.commands.tune"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training and held-out rows: of queries, of labels, and of two labels in queries."""
    folder = tmp_path_factory.mktemp("rows")
    X, y, qid = rc.datasets.make_letor(70, 12, 90, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for name, kept in (("train", qid <= 40), ("valid", qid > 40)):
        dump_letor(X[kept], y[kept], folder / f"queries.{name}", qid=qid[kept])
        dump_letor(X[kept], y[kept] > 1, folder / f"bipartite.{name}", qid=qid[kept])
    for name, seed in (("train", 1), ("valid", 2)):
        dump_letor(*make_examples(200, seed=seed), folder / f"labels.{name}")
    return folder


@pytest.fixture
def clock(monkeypatch):
    """Return the seconds since the start of a search, as a function of its number of trials."""

    def set_clock(seconds):
        monkeypatch.setattr(
            MODULE._Search, "_elapsed", lambda search: seconds(len(search._study.trials))
        )

    return set_clock


def load(path, n_features=None):
    data = load_letor(path, n_features=n_features)
    return data.X, data.y, data.qid


def trials_of(path):
    journal = JournalStorage(JournalFileBackend(str(path)))
    return optuna.load_study(study_name=None, storage=journal).trials


def parameters(trial):
    """Parameters of the learner, without its name before each."""
    model = trial.params["model"]
    return {
        name.removeprefix(f"{model}."): value
        for name, value in trial.params.items()
        if name != "model"
    }


def tune_labels(folder, tmp_path, *more):
    return json.loads(
        succeed(
            *("tune", folder / "labels.train", "-o", tmp_path / "best", "--json"),
            *("--trials", tmp_path / "t.log", *more),
        )
    )


def test_tune_saves_the_best_trial_on_held_out_queries(folder, tmp_path):
    out = json.loads(
        succeed(
            *("tune", folder / "queries.train", "-o", tmp_path / "best", "--max-trials", 8),
            *("--model", "ranksvm", "--model", "pairwise", "--trials", tmp_path / "t.log"),
            *("--valid", folder / "queries.valid", "-m", "map", "--json"),
        )
    )
    trials = trials_of(tmp_path / "t.log")
    assert len(trials) == out["trials"] == 8
    best = max(trials, key=lambda trial: trial.value)
    model = rc.load(tmp_path / "best")
    assert type(model).__name__ == find_learner(best.params["model"]).estimator
    assert out["model"] == best.params["model"]
    assert {name: getattr(model, name) for name in parameters(best)} == parameters(best)
    X, y, qid = load(folder / "queries.valid", model.n_features_in_)
    value = evaluate(y, model.predict(X), qid=qid, metrics="map")["map"]
    assert out["valid_map"] == best.value == pytest.approx(value, rel=1e-12)


def test_tune_saves_the_best_trial_of_cross_validation(folder, tmp_path):
    out = json.loads(
        succeed(
            *("tune", folder / "queries.train", "-o", tmp_path / "best", "--max-trials", 5),
            *("--model", "ranksvm", "--trials", tmp_path / "t.log"),
            *("--folds", 3, "-m", "map", "--json"),
        )
    )
    X, y, qid = load(folder / "queries.train")
    cv = QueryKFold(3, shuffle=True, random_state=0)
    values = [
        cross_validate_queries(
            rc.RankSVM(random_state=0, **parameters(trial)), X, y, qid, metrics="map", cv=cv
        ).mean()["map"]
        for trial in trials_of(tmp_path / "t.log")
    ]
    assert [trial.value for trial in trials_of(tmp_path / "t.log")] == pytest.approx(values)
    assert out["cross_validated_map"] == pytest.approx(max(values))


@pytest.mark.parametrize("model", ["prank", "ordinal-boost"])
def test_tune_saves_the_best_trial_on_held_out_labels(model, folder, tmp_path):
    out = tune_labels(
        folder, tmp_path, "--valid", folder / "labels.valid", "--model", model, "--max-trials", 3
    )
    learned = rc.load(tmp_path / "best")
    X, y, _ = load(folder / "labels.valid", learned.n_features_in_)
    assert out["valid_rank_loss"] == pytest.approx(rank_loss(y, learned.predict(X)))
    assert out["valid_rank_loss"] == min(trial.value for trial in trials_of(tmp_path / "t.log"))


def test_tune_tries_the_defaults_of_each_family_first(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    dump_letor(X, np.digitize(np.hypot(*X.T), [0.7, 1.2, 1.7]), tmp_path / "labels.train")
    out = tune_labels(tmp_path, tmp_path, "--folds", 2, "--max-trials", 12)
    trials = trials_of(tmp_path / "t.log")
    names = ["prank", "cusum", "pa-cusum", "oap-bpm", "widrow-hoff", "kernel-prank", "kernel-cusum"]
    assert [trial.params for trial in trials[:7]] == [{"model": name} for name in names]
    assert all(parameters(trial) for trial in trials[7:])
    assert out["model"].startswith("kernel")  # no line separates rings


def test_tune_searches_no_parameter_that_is_set(folder, tmp_path):
    tune_labels(
        *(folder, tmp_path, "--folds", 2, "--max-trials", 3),
        *("--model", "prank", "--set", "max_iter=3"),
    )
    assert rc.load(tmp_path / "best").max_iter == 3
    found = [set(parameters(trial)) for trial in trials_of(tmp_path / "t.log")]
    assert found == [set(), {"threshold_scale", "margin"}, {"threshold_scale", "margin"}]


def test_one_seed_gives_one_search(folder, tmp_path):
    found = {}
    for name, seed in [("a", 3), ("b", 3), ("c", 4)]:
        (tmp_path / name).mkdir()
        tune_labels(folder, tmp_path / name, "--folds", 2, "--max-trials", 20, "--seed", seed)
        trials = trials_of(tmp_path / name / "t.log")
        found[name] = [(trial.params, trial.value, trial.state) for trial in trials]
    assert found["a"] == found["b"] != found["c"]
    first, second = (rc.load(tmp_path / name / "best") for name in "ab")
    assert repr(first) == repr(second)
    X = load(folder / "labels.valid", first.n_features_in_)[0]
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize("name", SPACES)
def test_every_space_suggests_what_its_learner_accepts(name):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(20):
        find_learner(name).make(**suggest(study.ask(), name))._check_params()


def test_families_of_learners_have_search_spaces():
    assert {*families(False, FEW), *families(True, FEW)} <= set(SPACES)
    assert set(families(False, FEW)) - set(families(False, FEW + 1)) == {
        "kernel-prank",
        "kernel-cusum",
    }


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("name", SPACES)
def test_a_trial_of_any_learner_stops_at_the_time_limit(name, folder, tmp_path, clock):
    data = "queries" if find_learner(name).ranks_queries else "labels"
    data = "bipartite" if name == "bipartite-rankboost" else data
    clock(lambda n_trials: 0 if n_trials == 1 else 1e9)
    out = json.loads(
        succeed(
            *("tune", folder / f"{data}.train", "-o", tmp_path / "best", "--model", name),
            *("--valid", folder / f"{data}.valid", "--trials", tmp_path / "t.log", "--json"),
        )
    )
    states = [trial.state.name for trial in trials_of(tmp_path / "t.log")]
    assert (states, out["trials"]) == (["COMPLETE", "FAIL"], 1)


def test_first_trial_finishes_despite_the_time_limit(folder, tmp_path, clock):
    clock(lambda n_trials: 1e9)
    assert tune_labels(folder, tmp_path, "--folds", 2)["trials"] == 1
    assert rc.load(tmp_path / "best").n_features_in_ > 0


def test_trials_worse_than_the_median_are_pruned(folder, tmp_path, monkeypatch):
    losses = iter([0.1] * 15 + [0.5] + [0.1] * 3)  # three folds of five trials, one of the sixth
    monkeypatch.setattr("rankcore.cli.measuring.measure", lambda *_: {"rank_loss": next(losses)})
    out = tune_labels(folder, tmp_path, "--folds", 3, "--max-trials", 7)
    states = [trial.state.name for trial in trials_of(tmp_path / "t.log")]
    assert states == ["COMPLETE"] * 5 + ["PRUNED", "COMPLETE"]
    assert out["trials"] == 7


def test_ctrl_c_saves_the_best_trial_so_far(folder, tmp_path, monkeypatch):
    plain, calls = MODULE._Task.value, iter(range(10))

    def value(task, trial):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return plain(task, trial)

    monkeypatch.setattr(MODULE._Task, "value", value)
    arguments = ("tune", folder / "labels.train", "-o", tmp_path / "best", "--folds", 2)
    done = run(*arguments, "--trials", tmp_path / "t.log", "--json")
    assert done.stderr == "rankcore: interrupted: saving the best of 2 trials\n"
    assert json.loads(done.stdout)["cross_validated_rank_loss"] == min(
        trial.value for trial in trials_of(tmp_path / "t.log")[:2]
    )
    assert isinstance(rc.load(tmp_path / "best"), rc.PRank | rc.CuSumRank)


def test_ctrl_c_in_the_first_trial_saves_nothing(folder, tmp_path, monkeypatch):
    def value(task, trial):
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE._Task, "value", value)
    done = run("tune", folder / "labels.train", "-o", tmp_path / "best")
    assert (done.exit_code, done.stderr) == (130, "rankcore: interrupted\n")
    assert not (tmp_path / "best").exists()


# ---------------------------------------------------------------- journals


def test_search_resumes_from_its_journal(folder, tmp_path):
    options = ("--folds", 2, "--model", "widrow-hoff", "--max-trials")
    tune_labels(folder, tmp_path, *options, 6)
    before = trials_of(tmp_path / "t.log")
    out = tune_labels(folder, tmp_path, *options, 4)
    trials = trials_of(tmp_path / "t.log")
    assert out["trials"] == len(trials) == 10
    assert trials[:6] == before
    drawn = [trial.params["widrow-hoff.eta0"] for trial in trials[1:]]
    assert len(set(drawn)) == 9  # not the same draws again
    values = [trial.value for trial in trials if trial.state.name == "COMPLETE"]
    assert out["cross_validated_rank_loss"] == min(values)


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (["--folds", 3], "folds=2, this command has folds=3"),
        (["-m", "map"], "metric='ndcg@10', this command has metric='map'"),
        (["--model", "ranksvm"], "this command has model=['ranksvm']"),
        (["--scale", "standard"], "scale='none', this command has scale='standard'"),
        (["--seed", 1], "seed=0, this command has seed=1"),
        (["--set", "max_iter=3"], "set=[], this command has set=['max_iter=3']"),
    ],
)
def test_search_resumes_only_with_the_same_options(other, found, folder, tmp_path):
    arguments = ["tune", folder / "queries.train", "-o", tmp_path / "m"]
    arguments += ["--folds", 2, "--max-trials", 1, "--trials", tmp_path / "t.log"]
    succeed(*arguments)
    before = trials_of(tmp_path / "t.log")
    message = fail(*arguments, *other)
    assert found in message
    assert "choose another file for --trials" in message
    assert trials_of(tmp_path / "t.log") == before


@pytest.mark.parametrize("content", [b"older", b"trial,value\n1,2\n", b"[3]\n", b"\xff\n", b'{"op'])
def test_a_file_of_another_kind_is_rejected_and_kept(content, folder, tmp_path):
    (tmp_path / "t.log").write_bytes(content)
    message = fail("tune", folder / "labels.train", "-o", "m", "--trials", tmp_path / "t.log")
    assert "t.log is not a journal of Optuna; choose another file for --trials" in message
    assert (tmp_path / "t.log").read_bytes() == content


# ---------------------------------------------------------------- errors and warnings


@pytest.mark.parametrize("valid", [True, False])
def test_only_the_model_that_is_saved_gives_warnings(valid, folder, tmp_path, monkeypatch):
    plain = MODULE.fit

    def fit(estimator, learner, rows):
        warnings.warn(f"of {learner.name} with {estimator.max_iter} passes", stacklevel=1)
        plain(estimator, learner, rows)

    monkeypatch.setattr(MODULE, "fit", fit)
    monkeypatch.setattr("rankcore.cli.measuring.fit", fit)
    done = run(
        *("tune", folder / "labels.train", "-o", tmp_path / "best", "--max-trials", 6, "--json"),
        *("--model", "prank", "--model", "cusum"),
        *(["--valid", folder / "labels.valid"] if valid else ["--folds", 2]),
    )
    name, max_iter = json.loads(done.stdout)["model"], rc.load(tmp_path / "best").max_iter
    said = f"rankcore: warning: of {name} with {max_iter} passes\n"
    assert (done.exit_code, done.stderr) == (0, said)


def test_tune_rejects_learners_that_it_cannot_search(folder, tmp_path):
    arguments = ["tune", folder / "labels.train", "-o", tmp_path / "best"]
    message = fail(*arguments, "--model", "ranksvm", "--model", "prank")
    assert "got both kinds" in message
    assert "no parameters to draw for voted-prank" in fail(*arguments, "--model", "voted-prank")


def test_tune_searches_by_one_measure(folder, tmp_path):
    arguments = ["tune", folder / "queries.train", "-o", tmp_path / "m", "--folds", 2]
    arguments += ["--max-trials", 1]
    assert "P is 9 measures: choose one, such as P_5" in fail(*arguments, "-m", "P")
    assert "did you mean 'ndcg@10'" in fail(*arguments, "-m", "ndgc@10")
    assert "choose a ranking measure" in fail(*arguments, "-m", "rank_loss")
    out = json.loads(succeed(*arguments, "-m", "P.5", "--model", "ranksvm", "--json"))
    assert 0 < out["cross_validated_P_5"] <= 1
    out = tune_labels(folder, tmp_path, "-m", "rank_loss", "--folds", 2, "--max-trials", 1)
    assert out["cross_validated_rank_loss"] < 1


def test_a_measure_without_a_number_is_an_error(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(MODULE._Task, "value", lambda task, trial: float("nan"))
    message = fail("tune", folder / "labels.train", "-o", tmp_path / "m", "--max-trials", 2)
    assert message == "rank_loss was not a number in any trial: choose another --metric"


def test_missing_optuna_names_the_package_to_install(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    message = fail("tune", folder / "labels.train", "-o", tmp_path / "best")
    assert message == "tune requires Optuna: pip install 'rankcore[tune]'"
