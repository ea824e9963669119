"""Held-out rows, early stopping and callbacks of ordinal fits."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, walk
from rankcore.callbacks import Checkpoint, EarlyStopping, Iteration, LogEvaluation, TimeLimit
from rankcore.metrics import accuracy_within, quadratic_weighted_kappa, rank_loss


def data(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.normal(size=(n, 3))) / 8
    return X, np.digitize(X @ [1, 2, -1] + 1.5 * rng.normal(size=n), [-2, 0, 2])


X, Y = data()
X_HELD, Y_HELD = data(90, seed=1)


@walk(ONLINE)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_held_out_measures_equal_those_of_shorter_fits(learner, form):
    model = clone(learner).set_params(max_iter=6)
    model.fit(form(X), Y, eval_set=(form(X_HELD), Y_HELD))
    assert len(model.history_["valid_rank_loss"]) == 6
    for passes in [1, 3, 6]:
        shorter = clone(learner).set_params(max_iter=passes).fit(form(X), Y)
        expected = rank_loss(Y_HELD, shorter.predict(form(X_HELD)))
        assert model.history_["valid_rank_loss"][passes - 1] == expected
    plain = clone(learner).set_params(max_iter=6).fit(form(X), Y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


@walk(ONLINE)
def test_early_stopping_keeps_the_model_of_the_best_pass(learner, tmp_path):
    model = clone(learner).set_params(max_iter=60, early_stopping_rounds=3)
    model.fit(X, Y, eval_set=(X_HELD, Y_HELD))
    losses = model.history_["valid_rank_loss"]
    best = int(np.argmin(losses)) + 1
    assert model.best_iteration_ == best
    assert model.n_iter_ == len(losses) == min(best + 3, 60)
    shorter = clone(learner).set_params(max_iter=best).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), shorter.decision_function(X))
    assert model.t_ == shorter.t_
    np.testing.assert_array_equal(model.update_loss_curve_, shorter.update_loss_curve_)
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert (loaded.best_iteration_, loaded.history_) == (best, model.history_)
    # Going on begins at the best pass, and forgets the others.
    for one in (model, loaded, shorter):
        one.set_params(max_iter=1, early_stopping_rounds=None).partial_fit(X_HELD, Y_HELD)
    np.testing.assert_array_equal(model.decision_function(X), shorter.decision_function(X))
    np.testing.assert_array_equal(loaded.decision_function(X), shorter.decision_function(X))
    assert model.history_["rank_loss"] == shorter.history_["rank_loss"]
    assert not hasattr(model, "best_iteration_")


def test_several_sets_and_measures_are_recorded():
    def near(y_true, y_pred):
        return -float(np.mean((y_true - y_pred) ** 2))

    metrics = ["quadratic_weighted_kappa", "rank_loss", "accuracy", near]
    model = rc.PRank(max_iter=4, random_state=0, eval_metric=metrics)
    model.fit(X, Y, eval_set=[(X_HELD, Y_HELD), (X, Y)])
    expected = {
        "valid_0_quadratic_weighted_kappa": quadratic_weighted_kappa(Y_HELD, model.predict(X_HELD)),
        "valid_1_quadratic_weighted_kappa": quadratic_weighted_kappa(Y, model.predict(X)),
        "valid_0_rank_loss": rank_loss(Y_HELD, model.predict(X_HELD)),
        "valid_1_accuracy": accuracy_within(Y, model.predict(X), 0),
        "valid_0_near": near(Y_HELD, model.predict(X_HELD)),
    }
    for name, value in expected.items():
        assert model.history_[name][-1] == pytest.approx(value, rel=1e-12), name
    assert len(model.history_) == 4 + 8
    separate = rc.PRank(max_iter=4, random_state=0, eval_metric=metrics)
    separate.fit(X, Y, eval_X=[X_HELD, X], eval_y=[Y_HELD, Y])
    assert separate.history_ == model.history_
    alone = rc.PRank(max_iter=4, random_state=0).fit(X, Y, eval_X=X_HELD, eval_y=Y_HELD)
    assert alone.history_["valid_rank_loss"] == model.history_["valid_0_rank_loss"]


def test_early_stopping_maximises_measures_that_are_better_when_higher():
    model = rc.CuSumRank(
        max_iter=80, early_stopping_rounds=4, eval_metric="quadratic_weighted_kappa", random_state=0
    ).fit(X, Y, eval_set=(X_HELD, Y_HELD))
    values = model.history_["valid_quadratic_weighted_kappa"]
    assert model.best_iteration_ == int(np.argmax(values)) + 1 == model.n_iter_ - 4


def test_unseen_held_out_labels_are_placed_by_their_order():
    model = rc.PRank(random_state=0).fit(X, 2 * Y, eval_set=(X_HELD, 2 * Y_HELD))
    odd = np.where(Y_HELD == 1, 3, 2 * Y_HELD)  # between the second class and the third
    union = [0, 2, 3, 4, 6]
    predicted = model.predict(X_HELD)
    pairs = zip(odd, predicted, strict=True)
    expected = np.mean([abs(union.index(a) - union.index(b)) for a, b in pairs])
    assert model.score(X_HELD, odd) == pytest.approx(-expected, rel=1e-15)
    held = clone(model).fit(X, 2 * Y, eval_set=(X_HELD, odd))
    assert held.history_["valid_rank_loss"][-1] == pytest.approx(expected, rel=1e-15)
    named = rc.PRank(random_state=0).fit(np.eye(3), ["a", "b", "c"], classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="the label 'd'"):  # its place is not known
        named.score(np.eye(3), ["a", "b", "d"])


def test_callbacks_compose(tmp_path):
    seen, stream = [], io.StringIO()

    def look(now: Iteration):
        seen.append((now.number, now.model.predict(X_HELD), dict(now.results)))
        return now.number == 7

    model = rc.PRank(max_iter=30, random_state=0, eval_metric=["rank_loss", "accuracy"])
    model.fit(
        X,
        Y,
        eval_set=(X_HELD, Y_HELD),
        callbacks=[LogEvaluation(3, stream), Checkpoint(tmp_path / "now", 5), look],
    )
    assert [number for number, _, _ in seen] == list(range(1, 8))
    for number, predicted, results in seen:
        shorter = rc.PRank(max_iter=number, random_state=0).fit(X, Y)
        np.testing.assert_array_equal(predicted, shorter.predict(X_HELD))
        loss = results["valid_rank_loss"]
        assert (loss.value, loss.greater_is_better) == (rank_loss(Y_HELD, predicted), False)
        assert results["valid_accuracy"].greater_is_better
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["[3]", "[6]"]
    assert lines[0] == (
        f"[3] valid_rank_loss {model.history_['valid_rank_loss'][2]:.6g}  "
        f"valid_accuracy {model.history_['valid_accuracy'][2]:.6g}"
    )
    saved = rc.load(tmp_path / "now")
    assert saved.n_iter_ == 5
    shorter = rc.PRank(max_iter=5, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(saved.coef_, shorter.coef_)


def test_early_stopping_as_a_callback_is_the_parameter():
    by_callback = rc.PRank(max_iter=60, random_state=0)
    by_callback.fit(X, Y, eval_set=(X_HELD, Y_HELD), callbacks=[EarlyStopping(3)])
    by_parameter = rc.PRank(max_iter=60, random_state=0, early_stopping_rounds=3)
    by_parameter.fit(X, Y, eval_set=(X_HELD, Y_HELD))
    assert by_callback.history_ == by_parameter.history_
    assert by_callback.best_iteration_ == by_parameter.best_iteration_
    np.testing.assert_array_equal(by_callback.coef_, by_parameter.coef_)


def test_rankers_call_callbacks_after_each_pass():
    data, labels, qid = rc.datasets.make_letor(30, 15, random_state=0)
    data = (data - data.mean(axis=0)) / data.std(axis=0)
    for learner in [rc.PairwisePerceptron(max_iter=30, random_state=0), rc.RankBoost(30)]:
        seen = []

        def look(now, seen=seen):
            seen.append(
                (
                    now.number,
                    now.results["valid_map"].value,
                    now.results["valid_map"].greater_is_better,
                )
            )

        learner.set_params(eval_metric=["ndcg@5", "map"])
        sets = [(data[qid > 20], labels[qid > 20])]
        qids = [qid[qid > 20]]
        learner.fit(
            data, labels, qid=qid, eval_set=sets, eval_qid=qids, callbacks=[look, EarlyStopping(4)]
        )
        assert [number for number, _, _ in seen] == list(range(1, len(seen) + 1))
        assert [value for _, value, _ in seen] == learner.history_["valid_map"]
        assert all(grows for _, _, grows in seen)
        values = learner.history_["valid_ndcg@5"]
        assert learner.best_iteration_ == int(np.argmax(values)) + 1
        assert len(values) == min(30, learner.best_iteration_ + 4)


def test_callbacks_return_a_bool_or_none():
    alone = rc.PRank(max_iter=5, random_state=0).fit(X, Y, callbacks=lambda now: now.number == 2)
    assert alone.n_iter_ == 2
    for answer in (1, "yes", np.ones(2), rc.PRank()):
        with pytest.raises(TypeError, match="a callback must return True, to end the fit"):
            rc.PRank().fit(X, Y, callbacks=[lambda now, answer=answer: answer])


def test_time_limits_end_fits():
    model = rc.PRank(max_iter=10**6, random_state=0).fit(X, Y, callbacks=[TimeLimit(1e-6)])
    assert model.n_iter_ == 1


def test_failing_callback_does_not_change_the_model():
    model = rc.PRank(random_state=0).fit(X, Y)
    before = model.coef_

    def fail(now):
        if now.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(X_HELD, Y_HELD, callbacks=[fail])
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize(
    ("params", "given", "error", "message"),
    [
        ({"early_stopping_rounds": 3}, {}, ValueError, "requires eval_set; got no held-out rows"),
        ({}, {"callbacks": [EarlyStopping(2)]}, ValueError, "got no held-out rows"),
        ({"early_stopping_rounds": 0}, {"eval_set": (X, Y)}, ValueError, "early_stopping_rounds"),
        ({"eval_metric": "rankloss"}, {}, ValueError, "eval_metric must be one or a list of"),
        ({"eval_metric": []}, {"eval_set": (X, Y)}, ValueError, "at least one measure"),
        ({}, {"eval_set": (X,)}, TypeError, r"must be a pair \(X, y\)"),
        ({}, {"eval_set": []}, TypeError, r"must be a pair \(X, y\)"),
        ({}, {"eval_set": (X[:, :2], Y)}, ValueError, "X has 2 features"),
        ({}, {"eval_X": X}, ValueError, "must be passed together"),
        ({}, {"eval_set": (X, Y), "eval_X": X, "eval_y": Y}, ValueError, "same meaning"),
        (
            {},
            {"eval_X": [X, X], "eval_y": [Y]},
            ValueError,
            "must have the same length; got 2 and 1",
        ),
        ({}, {"callbacks": [3]}, TypeError, "callbacks must be functions"),
    ],
)
def test_bad_arguments_are_rejected(params, given, error, message):
    with pytest.raises(error, match=message):
        rc.PRank(**params).fit(X, Y, **given)


@pytest.mark.parametrize(
    "make", [lambda: EarlyStopping(0), lambda: LogEvaluation(0), lambda: TimeLimit(0.0)]
)
def test_bad_callbacks_are_rejected(make):
    with pytest.raises(ValueError, match="got 0"):
        make()


def test_parameter_names_of_other_tools_get_a_hint():
    X, y = np.eye(4), [1, 2, 3, 2]

    def theirs(environment):
        raise AssertionError

    for tool in ("lightgbm.callback", "xgboost.callback"):
        callback = type("EarlyStopping", (), {"__module__": tool, "__call__": theirs})()
        with pytest.raises(TypeError, match="for its own boosters: set early_stopping_rounds"):
            rc.PRank().fit(X, y, callbacks=[callback])
    pandas = pytest.importorskip("pandas")
    towns = pandas.Categorical(["x", "y", "x", "z"])
    frame = pandas.DataFrame({"a": [1.0, 2, 3, 4], "town": towns})
    with pytest.raises(ValueError, match=r"column 'town' has .* OneHotEncoder .*max_leaf_nodes"):
        rc.PRank().fit(frame, y)
