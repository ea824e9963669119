"""Rules in Python: against compiled learners and plain implementations, and under the one loop."""

import json
import pickle
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from checks_in_turn import EQUIVALENCE, ORDER, checks_in_turn, run_check
from rankcore.cli.registry import EVERY_LEARNER
from rankcore.metrics import rank_loss
from reference.margin_prank import margin_prank
from reference.rivals import multiclass
from strategies import examples, ordinal_problems

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_rule" / "margin_prank.py"


def loaded(path):
    if not path.exists():
        pytest.skip("the examples are not here")
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PRankRule(rc.PythonRule):
    """`rankcore.PRank`, written as a rule."""

    def __init__(self, tie="crammer", **params):
        super().__init__(**params)
        self.tie = tie

    def update(self, x, rank):
        if self.rank_of(x) == rank:
            return
        score, thresholds = x @ self.weights, self.thresholds
        below = np.arange(thresholds.size) < rank
        reached = score > thresholds if self.tie == "crammer" else score >= thresholds
        moves = np.where(below, ~reached, -(score >= thresholds).astype(int)).astype(int)
        self.weights += moves.sum() * x
        self.steps -= moves


class PerceptronRule(rc.PythonScoreRule):
    """The multiclass perceptron of tests/reference, with an intercept by an array of its own."""

    def __init__(self, update_rule="worst", **params):
        super().__init__(**params)
        self.update_rule = update_rule

    def start(self, n_features, n_ranks):
        return {"W": np.zeros((n_ranks, n_features))}

    def scores(self, x):
        return (self.W * x).sum(axis=1)  # equal rows are to tie

    def update(self, x, rank):
        scores, predicted = self.scores(x), self.rank_of(x)
        if predicted == rank:
            return
        errors = np.flatnonzero((scores >= scores[rank]) & (np.arange(scores.size) != rank))
        if self.update_rule == "worst":
            errors = [predicted]
        self.W[rank] += x
        for r in errors:
            self.W[r] -= x / len(errors)


class Decay(rc.PythonRule):
    """Changes all weights with each row, replaces arrays and has one more."""

    def start(self, n_features, n_ranks):
        more = {"seen": np.zeros(n_ranks, dtype=np.int64)}
        return super().start(n_features, n_ranks) | more

    def update(self, x, rank):
        self.seen[rank] += 1
        if self.rank_of(x) != rank:
            self.weights = 0.5 * self.weights + x
            self.steps = self.steps - np.where(np.arange(self.steps.size) < rank, 1, -1)


def check_equal(rule, compiled):
    """All that is learned is equal, to the bit."""
    assert rule.coef_.tobytes() == compiled.coef_.tobytes()
    assert rule.thresholds_.tobytes() == compiled.thresholds_.tobytes()
    assert rule.threshold_scale_ == compiled.threshold_scale_
    assert rule.history_ == compiled.history_
    assert (rule.update_loss_curve_ == compiled.update_loss_curve_).all()
    assert rule.t_ == compiled.t_
    assert getattr(rule, "best_iteration_", None) == getattr(compiled, "best_iteration_", None)


def problem(seed=0, n=60, n_features=5, k=4):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, n_features)) / 4
    y = np.digitize(X.sum(axis=1) + rng.normal(size=n), [-1.5, 0, 1.5][: k - 1])
    return X, y


@given(
    problem=ordinal_problems(),
    average=st.booleans(),
    tie=st.sampled_from(["crammer", "strict"]),
    scale=st.sampled_from(["auto", 1.0, 2.0]),
    shuffle=st.booleans(),
    dense=st.sampled_from([None, np.float64, np.float32]),
)
@settings(max_examples=examples(60), deadline=None)
def test_prank_as_a_python_rule_equals_prank(problem, average, tie, scale, shuffle, dense):
    X, y, k = problem
    X = X if dense is None else X.toarray().astype(dense)
    params = {
        "max_iter": 3,
        "average": average,
        "tie": tie,
        "threshold_scale": scale,
        "shuffle": shuffle,
        "random_state": 7,
    }
    ranks = range(1, k + 1)
    rule, compiled = (
        PRankRule(**params).fit(X, y, ranks),
        rc.PRank(margin=0.0, standardize=False, **params).fit(X, y, ranks),
    )
    check_equal(rule, compiled)
    assert (rule.predict(X) == compiled.predict(X)).all()
    assert (rule.decision_function(X) == compiled.decision_function(X)).all()


@given(
    problem=ordinal_problems(),
    update=st.sampled_from(["worst", "uniform"]),
    dense=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_perceptron_rule_equals_the_plain_form(problem, update, dense):
    X, y, k = problem
    rows = X.toarray().astype(float)
    W, mean, predictions = multiclass(rows, y, k, update, 2)
    params = {"update_rule": update, "max_iter": 2, "shuffle": False}
    given, ranks = rows if dense else X, range(1, k + 1)
    last = PerceptronRule(average=False, **params).fit(given, y, ranks)
    assert (last.parameters_["W"] == W).all()
    loss = np.abs(predictions - np.tile(y, 2)).reshape(2, -1).mean(axis=1)
    assert last.history_["rank_loss"] == loss.tolist()
    averaged = PerceptronRule(**params).fit(given, y, ranks)
    np.testing.assert_allclose(averaged.parameters_["W"], mean, rtol=1e-12, atol=1e-12)
    if update == "worst":  # equal shares are rounded in another order
        compiled = rc.MulticlassPerceptron.published(max_iter=2).fit(given, y, ranks)
        assert (compiled.coef_ == W).all()
        assert (last.predict(given) == compiled.predict(given)).all()
        assert (last.decision_function(given) == compiled.decision_function(given)).all()


@given(
    problem=ordinal_problems(),
    margin=st.sampled_from([0.0, 0.5, 3.0]),
    scale=st.sampled_from([1.0, 2.0]),
    dense=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_margin_rule_equals_the_plain_form(problem, margin, scale, dense):
    X, y, k = problem
    rows = X.toarray().astype(float)
    expected = margin_prank(rows, y, k, margin, scale, epochs=2)
    kind = loaded(EXAMPLE).MarginPRank
    params = {"margin": margin, "threshold_scale": scale, "max_iter": 2, "shuffle": False}
    given = rows if dense else X
    last = kind(average=False, **params).fit(given, y, range(1, k + 1))
    assert (last.coef_ == expected["w"]).all()
    assert (last.thresholds_ == expected["b"]).all()
    loss = np.abs(expected["predictions"] - np.tile(y, 2)).reshape(2, -1).mean(axis=1)
    assert last.history_["rank_loss"] == loss.tolist()
    averaged = kind(**params).fit(given, y, range(1, k + 1))
    np.testing.assert_allclose(averaged.coef_, expected["w_mean"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(averaged.thresholds_, expected["b_mean"], rtol=1e-12, atol=1e-12)


@checks_in_turn(
    [PRankRule(random_state=0), PerceptronRule(random_state=0)],
    lambda estimator: dict.fromkeys(EQUIVALENCE, ORDER),
)
def test_python_rules_fulfil_the_contract_of_learners(estimator, check):
    if check.func.__name__ == "check_class_weight_classifiers":
        pytest.skip(
            "1000 passes over 24,000 rows in Python; test_weights_count_as_in_prank has weights"
        )
    run_check(estimator, check)


def test_words_are_ranked_by_classes():
    X, y = problem()
    words = np.array(["poor", "fair", "good", "best"])
    for kind in (PRankRule, PerceptronRule):
        of_words = kind(random_state=0, classes=words).fit(X, words[y])
        of_ranks = kind(random_state=0).fit(X, y)
        assert (of_words.predict(X) == words[of_ranks.predict(X)]).all()
        assert of_words.history_ == of_ranks.history_
    with pytest.raises(ValueError, match="classes"):
        PRankRule().fit(X, words[y])


def test_subclass_has_the_parameters_of_its_base_and_its_own():
    rule = PRankRule(tie="strict", max_iter=3)
    assert rule.get_params().keys() == rc.PythonRule().get_params().keys() | {"tie"}
    assert clone(rule).get_params() == rule.get_params()
    assert repr(rule) == "PRankRule(max_iter=3, tie='strict')"
    with pytest.raises(TypeError, match="PRankRule has no parameter 'epochs': use max_iter"):
        PRankRule(epochs=3)

    class Further(PRankRule):
        def __init__(self, more=1, **params):
            super().__init__(**params)
            self.more = more

    assert Further().get_params().keys() == rule.get_params().keys() | {"more"}
    assert Further(tie="strict", more=2).set_params(tie="crammer").get_params()["more"] == 2
    assert PRankRule.published(tie="strict").max_iter == 1


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("kind", [PRankRule, PerceptronRule, Decay])
def test_chunks_learn_as_one_pass(kind, average):
    X, y = problem()
    rule = kind(average=average, max_iter=1, shuffle=False).fit(X, y)
    chunks = kind(average=average)
    for start, stop in [(0, 1), (1, 20), (20, 60)]:
        rows = sp.csr_array(X[start:stop]) if start == 1 else X[start:stop]
        chunks.partial_fit(rows, y[start:stop], classes=rule.classes_)
    if kind is PerceptronRule:  # what "auto" chooses is chosen by the first rows
        for name, array in rule.parameters_.items():
            assert (chunks.parameters_[name] == array).all()
        assert chunks.history_ == rule.history_
        assert (chunks.update_loss_curve_ == rule.update_loss_curve_).all()
    else:
        scaled = [kind(average=average, threshold_scale=1.0, max_iter=1, shuffle=False)] * 2
        rule, chunks = scaled[0].fit(X, y), clone(scaled[1])
        for start, stop in [(0, 1), (1, 20), (20, 60)]:
            chunks.partial_fit(X[start:stop], y[start:stop], classes=rule.classes_)
        check_equal(chunks, rule)


def test_held_out_rows_stop_fits_and_callbacks_are_called():
    X, y = problem(1, n=90)
    params = {"max_iter": 30, "early_stopping_rounds": 3, "random_state": 3}
    more = {"eval_set": (X[60:], y[60:])}
    rule = PRankRule(**params).fit(X[:60], y[:60], **more)
    compiled = rc.PRank(margin=0.0, standardize=False, **params).fit(X[:60], y[:60], **more)
    check_equal(rule, compiled)
    assert rule.n_iter_ < 30
    seen = []
    rule = PRankRule(random_state=0).fit(
        X, y, callbacks=[lambda at: seen.append(at.number) or at.number == 2]
    )
    assert seen == [1, 2]
    assert rule.n_iter_ == 2


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2, 3: 0.5}])
def test_weights_count_as_in_prank(class_weight):
    X, y = problem(2)
    weights = np.random.default_rng(0).integers(0, 3, y.size)
    params = {"class_weight": class_weight, "random_state": 0}
    rule = PRankRule(**params).fit(X, y, sample_weight=weights)
    check_equal(
        rule, rc.PRank(margin=0.0, standardize=False, **params).fit(X, y, sample_weight=weights)
    )


def test_rows_on_disk_are_learned_as_in_memory(tmp_path):
    from rankcore.datasets import open_rows

    X, y = problem(3)
    lines = [
        f"{rank} " + " ".join(f"{i + 1}:{value}" for i, value in enumerate(row) if value)
        for rank, row in zip(y, X, strict=True)
    ]
    path = tmp_path / "rows.svm"
    path.write_text("\n".join(lines) + "\n")
    rule = PRankRule(max_iter=2, random_state=0).fit(open_rows(path, n_features=5))
    compiled = rc.PRank(margin=0.0, standardize=False, max_iter=2, random_state=0).fit(
        open_rows(path, n_features=5)
    )
    check_equal(rule, compiled)


def test_pipelines_searches_and_pickles_accept_rules():
    X, y = problem(4)
    pipe = make_pipeline(StandardScaler(), PRankRule(random_state=0))
    compiled = make_pipeline(
        StandardScaler(), rc.PRank(margin=0.0, standardize=False, random_state=0)
    )
    assert (cross_val_score(pipe, X, y) == cross_val_score(compiled, X, y)).all()
    search = GridSearchCV(PRankRule(random_state=0), {"tie": ["crammer", "strict"]}).fit(X, y)
    assert search.best_estimator_.n_features_in_ == 5
    rule = PRankRule(random_state=0).fit(X, y)
    check_equal(pickle.loads(pickle.dumps(rule)), rule)


def test_calibrated_and_explained_as_prank_is():
    X, y = problem(5)
    ours = rc.CalibratedOrdinal(PRankRule(random_state=0), random_state=0).fit(X, y)
    theirs = rc.CalibratedOrdinal(
        rc.PRank(margin=0.0, standardize=False, random_state=0), random_state=0
    ).fit(X, y)
    assert (ours.predict_proba(X) == theirs.predict_proba(X)).all()
    found, expected = (model.contributions(X[:3], X).values for model in (ours, theirs))
    assert (found == expected).all()
    scores = rc.CalibratedOrdinal(PerceptronRule(random_state=0), random_state=0).fit(X, y)
    np.testing.assert_allclose(scores.predict_proba(X).sum(axis=1), 1)


def test_linear_rules_are_exported(tmp_path):
    X, y = problem(6)
    rule = PRankRule(average=False, random_state=0).fit(X, y)
    names = [f"x{i}" for i in range(5)]
    found = rc.export(rule, tmp_path / "rule.sql", "sql", feature_names=names, check=X)
    assert found.largest_difference == 0


def test_unsupported_uses_of_rules_are_rejected(tmp_path):
    X, y = problem(7)
    rule = PRankRule(random_state=0).fit(X, y)
    path = tmp_path / "rule.rankcore"
    for model in (rule, make_pipeline(StandardScaler(), PRankRule()).fit(X, y)):
        with pytest.raises(TypeError, match="PRankRule cannot be saved: it is a user-defined rule"):
            rc.save(model, path)
    with pytest.raises(TypeError, match="it is a user-defined rule.*compiled or not; use joblib"):
        rc.save(rc.CalibratedOrdinal(rule).fit(X, y), path)
    with pytest.raises(TypeError, match="got PRankRule"):
        rc.merge([rule, rule])
    assert list(tmp_path.iterdir()) == []
    scores = PerceptronRule(random_state=0).fit(X, y)
    reason = "Python code scores the rows of PerceptronRule"
    with pytest.raises(TypeError, match=reason):
        scores.contributions(X)
    with pytest.raises((TypeError, ValueError), match=reason):
        rc.export(scores, tmp_path / "rule.c", "c")


def test_base_class_names_the_missing_methods():
    X, y = problem()
    with pytest.raises(TypeError, match="PythonRule has no method update"):
        rc.PythonRule().fit(X, y)
    with pytest.raises(TypeError, match="PythonScoreRule has no method scores"):
        rc.PythonScoreRule().fit(X, y)


def rule_with(update, **more):
    return type("Mine", (rc.PythonRule,), {"update": update, **more})()


def started(arrays):
    return lambda self, n_features, n_ranks: rc.PythonRule.start(self, n_features, n_ranks) | arrays


def test_mistakes_in_a_rule_are_found():
    X, y = problem()

    def count(self, x, rank):
        self.mistakes = 1

    def params(self, x, rank):
        self.max_iter = 1

    def forget(self, x, rank):
        vars(self).pop("max_iter", None)

    def widen(self, x, rank):
        self.weights = np.zeros(2)

    def halves(self, x, rank):
        self.steps = self.steps - 0.5

    def write(self, x, rank):
        x[0] = 1

    for update, kind, message in [
        (count, AttributeError, "update set mistakes of Mine.*in the arrays of start"),
        (params, AttributeError, "update set max_iter of Mine"),
        (forget, AttributeError, "or deleted attributes"),
        (widen, TypeError, r"leave weights an array of shape \(5,\).*got shape \(2,\)"),
        (halves, TypeError, "steps an array.*int64.*got shape .* float64"),
        (write, ValueError, "read-only"),
    ]:
        with pytest.raises(kind, match=message):
            rule_with(update).fit(X, y)
    nothing = lambda self, x, rank: None  # noqa: E731
    for arrays, kind, message in [
        ({"seen": np.zeros(2, dtype=np.int32)}, TypeError, "got seen, an array of int32$"),
        ({"seen": [1.0]}, TypeError, "float64 or int64; got seen, a list$"),
        ({"max_iter": np.zeros(2)}, ValueError, "not attributes of Mine.*got 'max_iter'"),
        ({"predict": np.zeros(2)}, ValueError, "got 'predict'"),
        ({"t": np.zeros(2)}, ValueError, "got 't'"),
        ({"a_sums": np.zeros(2)}, ValueError, "got 'a_sums'"),
        ({"weights": np.zeros(2)}, ValueError, r"'weights' of shape \(5,\); got \(2,\)"),
    ]:
        with pytest.raises(kind, match=message):
            rule_with(nothing, start=started(arrays)).fit(X, y)
    with pytest.raises(TypeError, match="start must return a dict"):
        rule_with(nothing, start=lambda self, n_features, n_ranks: None).fit(X, y)

    class Short(PerceptronRule):
        def scores(self, x):
            return [1.0]

    with pytest.raises(ValueError, match=r"shape \(4,\); got shape \(1,\)"):
        Short().fit(X, y)
    for found in ([0] * 100, [9]):
        with pytest.raises(ValueError, match="update_rows must return at most 60 ranks from 0 to"):
            rule_with(nothing, update_rows=lambda self, *rows, found=found: found).fit(X, y)


def test_failing_update_does_not_change_the_model():
    X, y = problem()

    def fails(self, x, rank):
        if self.t >= 62:
            raise RuntimeError("my mistake")
        self.weights += x
        self.steps[0] -= 1

    rule = rule_with(fails).set_params(threshold_scale=1.0, max_iter=1, shuffle=False).fit(X, y)
    before = {name: array.tolist() for name, array in rule.parameters_.items()}
    for method in (rule.partial_fit, lambda X, y: rule.fit(np.vstack([X, X]), [*y, *y])):
        with pytest.raises(RuntimeError, match="my mistake"):
            method(X[:40], y[:40])
        assert {name: array.tolist() for name, array in rule.parameters_.items()} == before
        assert rule.t_ == 60


@pytest.mark.parametrize("n", [1, 10])
def test_update_that_overflows_is_an_error(n):
    X, y = problem()

    def overflows(self, x, rank):
        self.weights += x
        if self.t >= 60:
            self.weights[:] = np.inf

    rule = rule_with(overflows).set_params(threshold_scale=1.0, max_iter=1, shuffle=False)
    fitted = rule.fit(X, y)._state
    message = "weights overflowed, fit again" if n == 1 else r"score of row (1|61) overflowed"
    with pytest.raises(ValueError, match=f"{message}: scale X, or check for a division by zero"):
        rule.fit(np.vstack([X, X[:n]]), np.append(y, y[:n]))
    assert rule._state is fitted
    with pytest.raises(ValueError, match=f"{message}: scale X, or check for a division by zero"):
        rule.partial_fit(X[:n], y[:n])


def test_unordered_thresholds_rank_alike_in_predict_and_update():
    def swap(self, x, rank):
        self.weights[0] = 1.0
        self.steps[:] = [2, 0, 1]

    X, y = problem()
    rule = rule_with(swap).set_params(average=False, threshold_scale=1.0, max_iter=1).fit(X, y)
    assert rule.thresholds_.tolist() == [0, 1, 2]
    scores = X[:, 0]
    assert rule.predict(X).tolist() == [int(s >= 0) + int(s >= 1) + int(s >= 2) for s in scores]


def test_the_command_cross_validates_a_rule(tmp_path, monkeypatch):
    for extra in ("typer", "rich"):
        pytest.importorskip(extra, reason="the command line needs the cli extra")
    from typer.testing import CliRunner

    from rankcore.cli.app import app

    if not EXAMPLE.exists():
        pytest.skip("the examples are not here")
    X, y = problem()
    lines = (
        f"{rank} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(row))
        for rank, row in zip(y, X, strict=True)
    )
    (tmp_path / "rows.svm").write_text("\n".join(lines))
    (tmp_path / "rule_of_mine.py").write_text(EXAMPLE.read_text() + "\nbroken = 1\n")
    (tmp_path / "rule_that_fails.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*arguments):
        return CliRunner().invoke(app, [*arguments])

    name = "rule_of_mine:MarginPRank"
    done = run("cv", "rows.svm", "--model", name, "--set", "margin=0.5", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["model"] == name
    kind = sys.modules["rule_of_mine"].MarginPRank
    means = []
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for train, test in folds.split(X, y):
        model = kind(margin=0.5, random_state=0).fit(X[train], y[train])
        means.append(rank_loss(y[test], model.predict(X[test])))
    assert [fold["rank_loss"] for fold in found["folds"]] == means
    for wrong, message in [
        ("rule_of_mine:Nobody", "requires a class 'Nobody' in a module 'rule_of_mine'.*Attribute"),
        ("nowhere_at_all:A", "ModuleNotFoundError"),
        ("rule_that_fails:A", "ZeroDivisionError"),
        (":A", "requires a class 'A' in a module ''"),
        ("rule_of_mine:broken", "must be a subclass of rankcore.PythonRule.*got 1"),
        ("json:JSONDecoder", "must be a subclass"),
    ]:
        done = run("cv", "rows.svm", "--model", wrong)
        assert done.exit_code == 1
        assert re.search(message, done.stderr), done.stderr
        assert done.stderr.count("\n") == 1
    done = run("cv", "rows.svm", "--model", name, "--set", "marginn=1")
    assert "did you mean margin?" in done.stderr
    for command in ("train", "tune"):
        done = run(command, "rows.svm", "-o", "m.rankcore", "--model", name)
        assert done.exit_code == 1
        assert "your own class, which only cv supports" in done.stderr


def test_command_accepts_the_parameters_of_user_learners():
    for learner in EVERY_LEARNER:
        assert learner.accepts() == sorted(getattr(rc, learner.estimator)().get_params())


GUIDE = EXAMPLE.parents[2] / "docs" / "own_rule.md"


def test_the_guide_quotes_the_files():
    if not GUIDE.exists():
        pytest.skip("the guides are not here")
    text = GUIDE.read_text(encoding="utf-8")
    sources = [*EXAMPLE.parent.glob("*.py*"), Path(__file__)]
    files = "".join(path.read_text(encoding="utf-8") for path in sources)
    quotes = re.findall(r"```(?:cython|py)\n(.*?)```", text, re.DOTALL)
    assert len(quotes) == 5
    assert [quote for quote in quotes if quote not in files] == []
    rule = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    assert rule.partition("import numpy")[2] in files


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return the compiled rule of the examples, built as the guide says."""
    if not EXAMPLE.exists():
        pytest.skip("the examples are not here")
    pytest.importorskip("Cython")
    if sys.platform == "win32" or shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("rule") / "own_rule"
    shutil.copytree(EXAMPLE.parent, folder, ignore=shutil.ignore_patterns("*.so", "build"))
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sys.path.insert(0, str(folder))
    try:
        yield import_module("compiled_margin_prank").CompiledMarginPRank
    finally:
        sys.path.remove(str(folder))
        for name in ("compiled_margin_prank", "margin_kernel", "margin_prank"):
            sys.modules.pop(name, None)


@pytest.mark.slow
def test_the_compiled_rule_equals_the_rule_and_the_reference(compiled):
    python = loaded(EXAMPLE).MarginPRank
    for seed in range(5):
        X, y = problem(seed, n=120)
        for average in (False, True):
            for rows in (X, sp.csr_array(X), X.astype(np.float32)):
                params = {"margin": 0.5, "average": average, "max_iter": 3, "random_state": 0}
                check_equal(compiled(**params).fit(rows, y), python(**params).fit(rows, y))
        expected = margin_prank(X, y + 1, 4, 0.5, 1.0)
        params = {"margin": 0.5, "threshold_scale": 1.0, "max_iter": 1, "shuffle": False}
        last = compiled(average=False, **params).fit(X, y)
        assert (last.coef_ == expected["w"]).all()
        assert (last.thresholds_ == expected["b"]).all()
    with pytest.raises(ValueError, match="the score of row .* overflowed"):
        compiled(threshold_scale=1.0).fit(np.full((50, 1), 1e155), np.tile([0, 1], 25))
