"""The structured perceptron: a task of one's own, streams, failures, errors."""

import importlib.util
import pickle
import re
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankcore as rc
from rankcore.progress import watch
from rankcore.structured import CuSumTask, PRankTask, StructuredPerceptron, Task
from strategies import examples, ordinal_problems
from structured_problems import D0, UPDATES, dense, run_to_the_end

ROOT = Path(__file__).parents[1]

# -------------------------------------------------------------------- sequence labelling


@pytest.fixture(scope="module")
def example():
    path = ROOT / "examples" / "sequence_labelling.py"
    if not path.exists():
        pytest.skip("the examples are not here")
    spec = importlib.util.spec_from_file_location("sequence_labelling", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(12))
def test_viterbi_equals_exhaustive_search(example, seed):
    rng = np.random.default_rng(seed)
    task = example.Tagging(("a", "b", "c"), ("X", "Y", "Z")[: rng.integers(1, 4)])
    n = task.n_parameters([])
    # Integers: sums are exact, and there are ties.
    weights = rng.integers(-2, 3, size=n) * 1.0 if seed % 2 else rng.normal(size=n)
    n_updates = 0
    for length in range(5):
        x = tuple(rng.choice(["a", "b", "c", "unseen"], size=length).tolist())
        y = tuple(rng.choice(task.tags, size=length).tolist())
        for margin in [0.0, 0.5, 1.0, 3.0]:
            scores = {}
            for z in product(task.tags, repeat=length):
                wrong = sum(p != q for p, q in zip(y, z, strict=True))
                scores[z] = weights @ dense(task, x, z, n) + margin * wrong
                assert task.loss(y, z) == wrong
            best = max(scores.values())
            found = task.argmax(weights, x, y, margin)
            np.testing.assert_allclose(scores[found], best, rtol=1e-12, atol=1e-12)
            if seed % 2:
                assert scores[found] == best
                if margin and scores[y] == best:
                    assert found == y
                n_updates += found != y
            assert list(task.candidates(x)) == list(scores)
    assert n_updates or not seed % 2 or len(task.tags) == 1


def test_viterbi_features_are_the_pairs_of_the_sentence(example):
    task = example.Tagging(("a", "b"), ("X", "Y"))
    table = dense(task, ("b", "b", "new"), ("Y", "Y", "X"), task.n_parameters([])).reshape(-1, 2)
    # Rows: a, b, other words, X, Y, start.
    expected = [(0, 0), (0, 2), (1, 0), (0, 0), (1, 1), (0, 1)]
    np.testing.assert_array_equal(table, expected)


def test_viterbi_and_exhaustive_search_learn_the_same_model(example):
    class Slow(example.Tagging):
        argmax = Task.argmax

    rng = np.random.default_rng(0)
    X = [tuple(rng.choice(["a", "b", "c"], size=3).tolist()) for _ in range(30)]
    Y = [tuple(rng.choice(["X", "Y"], size=3).tolist()) for _ in range(30)]
    fast, slow = (
        StructuredPerceptron(kind(("a", "b", "c"), ("X", "Y")), margin=0.7, update="pa1").fit(X, Y)
        for kind in (example.Tagging, Slow)
    )
    np.testing.assert_allclose(fast.coef_, slow.coef_, rtol=1e-9, atol=1e-12)
    assert fast.coef_.any()


@pytest.mark.parametrize("params", [{}, {"update": "pa"}])
def test_bounds_hold_for_sequences(example, params):
    rng = np.random.default_rng(3)
    task = example.Tagging(("a", "b", "c"), ("X", "Y"))
    n = task.n_parameters([])
    planted = rng.normal(size=n)
    planted /= np.linalg.norm(planted)
    X, Y, d, R2 = [], [], np.inf, 0.0
    while len(X) < 15:
        x = tuple(rng.choice(["a", "b", "c"], size=rng.integers(1, 5)).tolist())
        y = task.argmax(planted, x)
        vectors = {z: dense(task, x, y, n) - dense(task, x, z, n) for z in task.candidates(x)}
        del vectors[y]
        wins = [planted @ v / task.loss(y, z) for z, v in vectors.items()]
        if min(wins) > 0.05:
            X.append(x)
            Y.append(y)
            d = min(d, *wins)
            R2 = max(R2, *(v @ v / task.loss(y, z) for z, v in vectors.items()))
    losses, norms, _ = run_to_the_end(task, X, Y, 20, **params)
    assert 0 < losses.sum() <= R2 / d**2
    if params:
        assert (losses**2 / norms).sum() <= 1 / d**2


def test_the_example_runs_and_beats_the_majority(example, capsys):
    example.main()
    before, alone, learned = (
        float(line.split("%")[0].split()[-1]) for line in capsys.readouterr().out.splitlines()[:3]
    )
    assert before < alone
    # Half of the words mean their tag only beside others.
    assert learned > alone + 10
    example.main()
    assert f"{learned:5.1f} %" in capsys.readouterr().out


def test_the_page_quotes_the_example_and_its_code_runs(example, capsys):
    page = (ROOT / "docs" / "structured.md").read_text(encoding="utf-8")
    source = Path(example.__file__).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    quotes = [block for block in blocks if block in source]
    assert len(quotes) == 3
    example.main()
    for line in capsys.readouterr().out.splitlines()[:3]:
        assert f"    {line}\n" in page
    namespace = {}
    for block in blocks:
        if block not in quotes:
            exec(block, namespace)
    assert "model" in namespace


# -------------------------------------------------------------------- streams, failures, pickles


def same(a, b):
    """Whether two models are the same to the bit, also in what they have yet to learn."""
    names = ["t_", "n_iter_", "history_", "coef_", "update_loss_curve_"]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names) and (
        np.array_equal(a._state.arrays, b._state.arrays)
    )


@given(
    problem=ordinal_problems(integers=False),
    cuts=st.lists(st.integers(1, 29), max_size=4),
    update=st.sampled_from(UPDATES),
    margin=st.sampled_from([0.0, 0.7]),
)
@settings(max_examples=examples(40), deadline=None)
def test_chunks_equal_one_fit(problem, cuts, update, margin):
    X, y, k = problem
    params = {"update": update, "margin": margin, "average": True}
    whole = StructuredPerceptron(CuSumTask(k), **params).fit(X, y)
    model = StructuredPerceptron(CuSumTask(k), **params)
    edges = sorted({0, len(y), *(c for c in cuts if c < len(y))})
    for start, stop in pairwise(edges):
        model.partial_fit(X[start:stop], y[start:stop])
        model = pickle.loads(pickle.dumps(model))
    assert same(model, whole)


def test_a_stream_after_a_fit_is_a_pass_of_its_own():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3), max_iter=2).fit(X, y)
    model.partial_fit(X[:1], y[:1]).partial_fit(X[1:3], y[1:3])
    assert model.history_["examples"] == [4, 4, 3]
    assert (model.t_, model.n_iter_) == (11, 3)
    assert same(model.fit(X, y), StructuredPerceptron(CuSumTask(3), max_iter=2).fit(X, y))


class Failing(CuSumTask):
    """Raises an error at the nth search."""

    left = 0
    error = KeyboardInterrupt

    def argmax(self, weights, x, y=None, margin=0.0):
        Failing.left -= 1
        if Failing.left == 0:
            raise Failing.error
        return super().argmax(weights, x, y, margin)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_changes_nothing(method, error):
    X, y = D0
    task = Failing(3)
    Failing.error = error
    model = StructuredPerceptron(task, average=True)
    for n in [1, 3]:
        Failing.left = n
        with pytest.raises(error):
            getattr(model, method)(X, y)
        with pytest.raises(NotFittedError):
            model.predict(X)
        assert vars(model) == model.get_params()
    Failing.left = 0
    model.fit(X, y)
    twin = StructuredPerceptron(CuSumTask(3), average=True).fit(X, y)
    for n in [1, 2, 4]:
        Failing.left = n
        with pytest.raises(error):
            getattr(model, method)(X, y)
        assert same(model, twin)
    assert same(model.partial_fit(X, y), twin.partial_fit(X, y))


def test_failing_progress_callback_stops_the_fit():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3)).fit(X, y)
    twin = StructuredPerceptron(CuSumTask(3)).fit(X, y)

    def stop(progress):
        raise TimeoutError

    with watch(stop), pytest.raises(TimeoutError):
        model.partial_fit(X, y)
    assert same(model, twin)


def test_progress_and_verbose_report_passes(capsys):
    X, y = D0
    seen = []
    with watch(seen.append):
        model = StructuredPerceptron(CuSumTask(3), max_iter=2, verbose=1).fit(X, y)
    ends = [p for p in seen if p.done == p.total]
    assert [(p.epoch, p.n_epochs, p.done) for p in ends] == [(1, 2, 4), (2, 2, 4)]
    assert [p.value for p in ends] == model.history_["loss"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"[StructuredPerceptron] epoch {epoch} of 2" for epoch in [1, 2]
    ]


def test_tolerance_stops_the_fit():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3), max_iter=50, tol=0.0).fit(X, y)
    assert model.n_iter_ == 4  # the last mistake is at example 9, so the fourth pass has none
    assert model.history_["mistakes"][-1] == 0
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes ended"):
        StructuredPerceptron(CuSumTask(3), max_iter=2, tol=0.0).fit(X, y)
    stuck = StructuredPerceptron(CuSumTask(3), max_iter=50, tol=10.0).fit(X, [1, 3, 1, 3])
    assert stuck.n_iter_ <= 6  # the first pass, and five that are not better by 10


def test_pickles_and_clones_predict_alike():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3, tie_break="low"), update="pa", average=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.task == model.task
    assert same(again, model)
    assert same(again.partial_fit(X, y), model.partial_fit(X, y))
    blank = clone(model)
    assert blank.get_params() == model.get_params()
    assert blank.task is not model.task
    assert not hasattr(blank, "coef_")
    assert not is_classifier(model)
    with pytest.raises(TypeError, match="save takes a rankcore learner; got Structured"):
        rc.save(model, "unused")


def test_read_only_state_continues():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3)).fit(X, y)
    model._state.arrays.flags.writeable = False  # as joblib's memory maps
    assert model.partial_fit(X, y).t_ == 8


def test_model_selection_accepts_structured_inputs(example):
    X, Y = example.make_sentences(40, seed=0)
    task = example.Tagging(tuple(sorted({word for x in X for word in x})), example.TAGS)
    assert (cross_val_score(StructuredPerceptron(task), X, Y, cv=3) < 0).all()
    rows, y = sp.csr_array(np.random.default_rng(0).normal(size=(40, 3))), np.arange(40) % 4 + 1
    search = GridSearchCV(
        StructuredPerceptron(CuSumTask(4)), {"task": [CuSumTask(4), PRankTask(4)]}, cv=2
    ).fit(rows, y)
    expected = [
        cross_val_score(StructuredPerceptron(task), rows, y, cv=2).mean()
        for task in [CuSumTask(4), PRankTask(4)]
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)


# -------------------------------------------------------------------- errors


class Bare:
    """A task that is no subclass of `Task`."""

    def n_parameters(self, X):
        return 2

    def candidates(self, x):
        return [0, 1]

    def features(self, x, y):
        return [y], [x]

    argmax = Task.argmax
    loss = Task.loss


def test_any_object_with_the_methods_of_a_task_is_accepted():
    assert isinstance(Bare(), Task)
    model = StructuredPerceptron(Bare()).fit([1.0, -1.0], [0, 1])
    assert model.predict([2.0, -2.0]) == [0, 1]


@pytest.mark.parametrize("name", ["n_parameters", "candidates", "features", "argmax", "loss"])
def test_a_task_without_a_method_is_rejected(name):
    kind = type("Partial", (Bare,), {name: None})
    with pytest.raises(TypeError, match=f"methods of rankcore.structured.Task.*lacks {name}"):
        StructuredPerceptron(kind()).fit([1.0], [0])
    if name not in {"argmax", "loss"}:
        rest = {
            n: getattr(Bare, n) for n in ["n_parameters", "candidates", "features"] if n != name
        }
        with pytest.raises(TypeError, match=f"abstract method.*{name}"):
            type("Partial", (Task,), rest)()


def test_a_class_in_place_of_a_task_is_rejected():
    with pytest.raises(TypeError, match="must be an object with the methods"):
        StructuredPerceptron(CuSumTask).fit([[1.0]], [1])


@pytest.mark.parametrize(
    ("features", "found"),
    [
        (None, "got None"),
        (np.zeros(2), "got array"),  # a dense vector, and as long as a pair
        (([0, 1], [1.0]), "got"),
        (([[0]], [[1.0]]), "got"),
        ((0, 1.0), "got"),
        (([0], [1.0], [2.0]), "got"),
        (([0.0], [1.0]), "dtypes float64"),
        (([0], ["one"]), "dtypes int64 and <U3"),
        (([2], [1.0]), "indices from 2 to 2"),
        (([-1, 0], [1.0, 1.0]), "indices from -1 to 0"),
        (([0], [np.nan]), "NaN or infinity"),
        (([0], [np.inf]), "NaN or infinity"),
    ],
)
@pytest.mark.parametrize("searches", [True, False])
def test_malformed_features_are_rejected(features, found, searches):
    class Bad(Bare):
        def features(self, x, y):
            return features

        if not searches:

            def argmax(self, weights, x, y=None, margin=0.0):
                return 1

    with pytest.raises(ValueError, match=rf"Bad.features must return a pair.*0 to 1.*{found}"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


@pytest.mark.parametrize("loss", [-1, np.nan, np.inf, "much", None, np.ones(2)])
def test_malformed_losses_are_rejected(loss):
    class Bad(Bare):
        def loss(self, y, z):
            return loss

    with pytest.raises(ValueError, match="Bad.loss must return a finite number, at least 0; got"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


@pytest.mark.parametrize("count", [0, -3, 2.0, None])
def test_malformed_counts_of_parameters_are_rejected(count):
    class Bad(Bare):
        def n_parameters(self, X):
            return count

    with pytest.raises(ValueError, match="Bad.n_parameters must return a positive integer; got"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


def test_a_task_without_candidates_is_rejected():
    class Bad(Bare):
        def candidates(self, x):
            return []

    with pytest.raises(ValueError, match=r"Bad\.candidates must .*; got none for 1\.0"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


def test_tasks_cannot_write_the_weights():
    class Bad(Bare):
        def argmax(self, weights, x, y=None, margin=0.0):
            weights[0] = 7

    with pytest.raises(ValueError, match="read-only"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


@pytest.mark.parametrize(
    ("X", "Y", "error", "message"),
    [
        ([1.0, 2.0], [0], ValueError, "inconsistent numbers of samples: 2 inputs and 1 outputs"),
        ([], [], ValueError, "Found 0 sample"),
        ([1.0], None, ValueError, "Y must hold a true output for each input; got None"),
        (None, [0], TypeError, "X must be a sequence.*got NoneType"),
        (iter([1.0]), [0], TypeError, "X must be a sequence.*list_iterator"),
        ([1.0], 3, TypeError, "Y must be a sequence.*got int"),
        (sp.csr_array([[1.0]]), [0], TypeError, "X must be a sequence.*got csr_array"),
    ],
)
def test_malformed_data_are_rejected(X, Y, error, message):
    with pytest.raises(error, match=message):
        StructuredPerceptron(Bare()).fit(X, Y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], [1, 4], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [0, 1], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [1, 1.5], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [1, np.nan], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], ["1", "2"], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [[1], [2]], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [1], "inconsistent numbers of samples: 2 inputs and 1 outputs"),
        ([[1.0], [np.nan]], [1, 2], "NaN"),
        ([1.0, 2.0], [1, 2], "two dimensions"),
        (np.empty((0, 2)), [], "Found 0 sample"),
    ],
)
@pytest.mark.parametrize("task", [CuSumTask(3), PRankTask(3)])
def test_malformed_rows_and_ranks_are_rejected(task, X, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredPerceptron(task).fit(X, y)


def test_unsorted_ordinal_rows_are_accepted_and_not_changed():
    parts = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])
    X = sp.csr_array(parts, shape=(1, 3))
    model = StructuredPerceptron(CuSumTask(2, fit_intercept=False)).fit(X, [1])
    np.testing.assert_array_equal(model.coef_, [-2, 0, -4])
    assert X.indices.tolist() == [2, 0, 2]
    assert model.predict(np.array([[1, 0, 0]])) == [1]


@pytest.mark.parametrize("task", [CuSumTask(3), PRankTask(3)])
def test_another_number_of_features_is_rejected(task):
    X, y = D0
    model = StructuredPerceptron(task).fit(X, y)
    twin = StructuredPerceptron(task).fit(X, y)
    for call in [model.predict, lambda X: model.score(X, y), lambda X: model.partial_fit(X, y)]:
        with pytest.raises(ValueError, match=r"n_parameters is \d+ for this X, but the model has"):
            call(np.ones((4, 3)))
    assert same(model, twin)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"update": "newton"}, ValueError, "update must be one of 'perceptron', 'pa'"),
        ({"C": 0}, ValueError, "C must be a number in "),
        ({"C": "1"}, TypeError, "C must be a number in "),
        ({"margin": -1}, ValueError, "margin must be a number in "),
        ({"margin": np.nan}, ValueError, "margin must be a number"),
        ({"average": 1}, TypeError, "average must be True or False"),
        ({"shuffle": None}, TypeError, "shuffle must be True or False"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer >= 1"),
        ({"tol": -1.0}, ValueError, "tol must be a number >= 0"),
        ({"verbose": -1}, ValueError, "verbose must be an integer >= 0"),
        ({"task": None}, TypeError, "task must be an object with the methods.*got None"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_rejected(params, error, message, method):
    model = StructuredPerceptron(**{"task": CuSumTask(3), **params})
    with pytest.raises(error, match=message):
        getattr(model, method)(*D0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CuSumTask(1), ValueError, "n_ranks must be an integer >= 2"),
        (lambda: PRankTask("many"), TypeError, "n_ranks must be an integer >= 2"),
        (lambda: CuSumTask(3, "middle"), ValueError, "tie_break must be one of 'high', 'low'"),
        (lambda: CuSumTask(3, "low", 1), TypeError, "fit_intercept must be True or False"),
    ],
)
def test_bad_tasks_are_rejected(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("change", [{"task": CuSumTask(3, "low")}, {"average": True}])
def test_built_in_parameters_cannot_change(change):
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3)).fit(X, y).set_params(**change)
    (name,) = change
    with pytest.raises(ValueError, match=f"^{name}=.*set it back, or call fit"):
        model.partial_fit(X, y)
    model.set_params(task=CuSumTask(3), average=False).partial_fit(X, y)  # equal will do
    model.set_params(**change).fit(X, y)


class Huge(Bare):
    def features(self, x, y):
        return [y], [1e308]


class HugeUnseen(Huge):
    def argmax(self, weights, x, y=None, margin=0.0):
        return 1


@pytest.mark.parametrize(
    ("task", "X", "y", "message"),
    [
        (CuSumTask(2), [[1.5e308], [-1.5e308]], [1, 2], "a score overflowed.*; scale the features"),
        (PRankTask(2), [[1.5e308], [-1.5e308]], [1, 2], "a score overflowed.*; scale the features"),
        (PRankTask(3), [[1.5e308]], [1], "PRankTask.features must return.*got NaN or infinity"),
        (Huge(), [1.0] * 3, [1, 0, 1], "a score overflowed.*; scale the features"),
        (HugeUnseen(), [1.0] * 2, [0, 0], "the parameters overflowed.*; scale the features"),
    ],
)
def test_overflow_suggests_scaling(task, X, y, message):
    model = StructuredPerceptron(task, max_iter=10)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_features_that_outputs_share_cancel_exactly():
    class Shared(Bare):
        def n_parameters(self, X):
            return 3

        def features(self, x, y):
            return [2, 2, y], [0.1, 0.2, x]  # 0.1 + 0.2 - 0.1 - 0.2 is not 0

    model = StructuredPerceptron(Shared()).fit([1.0, -1.0, 2.0], [1, 0, 0])
    assert model.coef_[2] == 0
    assert model.coef_[0] == -model.coef_[1] != 0


def test_outputs_of_equal_features_change_nothing():
    X = np.zeros((3, 2))
    for update in UPDATES:
        model = StructuredPerceptron(CuSumTask(3, fit_intercept=False), update=update)
        model.fit(X, [1, 2, 3])
        assert not model.coef_.any()
        assert model.history_["mistakes"] == [2]


@pytest.mark.parametrize("update", ["pa", "pa1", "pa2"])
def test_a_step_whose_length_overflows_is_an_error_as_in_the_compiled_learner(update):
    X, y = [[1e200], [1e200]], [1, 2]
    with pytest.raises(ValueError, match="overflowed"):
        rc.CuSumRank.published(update=update).fit(X, y)
    with pytest.raises(ValueError, match="the parameters overflowed.*; scale the features"):
        StructuredPerceptron(CuSumTask(2), update=update).fit(X, y)


def test_averages_that_overflow_are_an_error():
    X, y = np.diag([1e308] * 3), [1, 1, 1]
    assert np.isfinite(StructuredPerceptron(CuSumTask(2, "high", False)).fit(X, y).coef_).all()
    with pytest.raises(ValueError, match="the parameters overflowed.*; scale the features"):
        StructuredPerceptron(CuSumTask(2, "high", False), average=True).fit(X, y)
