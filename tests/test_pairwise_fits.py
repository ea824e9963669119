"""Pairwise perceptrons: streams, validation, answers, scikit-learn's contract, memory."""

import itertools
import pickle
from copy import copy, deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import rankcore as rc
from pairwise_problems import (
    FORMS,
    QID,
    SOLVERS,
    X,
    Y,
    as_variant,
    lexicographic,
    perceptron,
    queries_of,
    real_data,
    solved_by,
)
from rankcore.metrics import ndcg_score
from rankcore.progress import watch
from reference import pairwise as plain

pytestmark = pytest.mark.kernel

# ---------------------------------------------------------------------------- online


@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("variant", ["committee", "voted"])
@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_queries_may_come_one_at_a_time(order, variant, solver):
    X, y, qid = real_data()
    y[qid == 3] = 0
    params = {"shuffle": order == "shuffle", "solver": solver, "margin": 0.5, "combine": "rank"}
    whole = perceptron(variant, max_iter=1, random_state=8, **params).partial_fit(X, y, qid=qid)
    parts = perceptron(variant, max_iter=1, random_state=8, **params)
    for k in range(8):
        parts.partial_fit(X[qid == k], y[qid == k], qid=qid[qid == k])
    assert as_variant(parts, "last").coef_.tobytes() == as_variant(whole, "last").coef_.tobytes()
    assert parts.history_ == whole.history_
    assert parts.history_["skipped"] == [1]
    np.testing.assert_array_equal(parts.committee_.weights, whole.committee_.weights)
    if order == "lex":
        fit = perceptron(variant, max_iter=1, **params).fit(X, y, qid=qid)
        np.testing.assert_array_equal(fit.committee_.weights, whole.committee_.weights)
        assert fit.history_ == whole.history_


def test_partial_fit_continues_a_fit():
    X, y, qid = real_data()
    model = perceptron("averaged", max_iter=2).fit(X, y, qid=qid)
    model.partial_fit(X, y, qid=qid)
    three = perceptron("averaged", max_iter=3).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, three.coef_)
    assert model.n_iter_ == 3


def test_built_in_parameters_cannot_change():
    X, y, qid = real_data()
    model = perceptron("committee").fit(X, y, qid=qid)
    for name, value in {
        "committee_size": 3,
        "count": "query",
        "shuffle": True,
        "quality": len,
    }.items():
        with pytest.raises(ValueError, match=f"{name}.*set it back"):
            as_variant(model, "committee").set_params(**{name: value}).partial_fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="variant.*set it back"):
        as_variant(model, "voted", combine="rank").partial_fit(X, y, qid=qid)
    other = as_variant(model, "averaged").set_params(margin=0.5)
    solved_by("plain", other).partial_fit(X, y, qid=qid)


def test_failed_partial_fit_changes_nothing():
    """Within a query weights lag behind the counts."""
    X, y, qid = real_data()
    left = [10**9]  # calls of quality before it fails

    def quality(weights):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("my mistake")
        return float(weights[0])

    model = rc.PairwisePerceptron("committee", quality=quality, shuffle=False, random_state=0)
    model.partial_fit(X, y, qid=qid)
    before = pickle.dumps(vars(model._state) | {"settings": None})
    left[0] = 0
    with pytest.raises(RuntimeError, match="my mistake"):
        model.partial_fit(-X, y, qid=qid)
    after = vars(model._state) | {"settings": None}
    np.testing.assert_equal(after, pickle.loads(before))


@pytest.mark.parametrize("variant", ["committee", "voted"])
def test_failed_or_interrupted_fit_changes_nothing(variant, monkeypatch):
    X, y, qid = real_data()
    model = perceptron(variant, combine="rank").fit(X, y, qid=qid)
    before = pickle.dumps(model)
    huge = X.copy()
    huge[-20:] *= 1e200
    seen = []

    def interrupt(progress):
        seen.append(progress.done)
        raise KeyboardInterrupt

    with watch(interrupt), pytest.raises(KeyboardInterrupt):
        model.fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="overflowed"):
        model.fit(huge, y, qid=qid)
    assert seen
    again = pickle.loads(before)
    np.testing.assert_array_equal(model.committee_.weights, again.committee_.weights)
    assert model.history_ == again.history_
    np.testing.assert_array_equal(
        model.partial_fit(X, y, qid=qid).committee_.weights,
        again.partial_fit(X, y, qid=qid).committee_.weights,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_scores_that_overflow_are_an_error(solver, order, form):
    X, y, qid = real_data()
    with pytest.raises(ValueError, match="scores overflowed"):
        perceptron(solver=solver, shuffle=order == "shuffle").fit(form(X * 1e160), y, qid=qid)


@pytest.mark.parametrize("order", ["lex", "shuffle"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_checks_for_signals_do_not_change_the_model(order, solver, monkeypatch):
    X, y, qid = real_data()
    model = perceptron(
        "voted", combine="rank", shuffle=order == "shuffle", solver=solver, random_state=0
    )
    whole = solved_by(solver, clone(model)).fit(X, y, qid=qid)
    monkeypatch.setattr("rankcore.ranking.perceptron_training.BUDGET", 1)
    monkeypatch.setattr("rankcore._ext.pair_model.ROOM", 2)
    steps = []
    with watch(steps.append):
        model.fit(X, y, qid=qid)
    assert len(steps) > 16
    assert [p.measure for p in steps[:1]] == ["share of mistakes"]
    assert model.history_ == whole.history_
    np.testing.assert_array_equal(model.committee_.weights, whole.committee_.weights)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_signals_are_checked_more_often_for_wide_rows(solver, form, monkeypatch):
    monkeypatch.setattr("rankcore.ranking.perceptron_training.BUDGET", 3000)
    X, y, qid = real_data()
    pauses = []
    for n_features in [1, 20_000]:
        steps = []
        wide = np.tile(X, (1, n_features // 6 + 1))
        with watch(steps.append):
            model = perceptron(solver=solver, max_iter=1, committee_size=1)
            model.fit(form(wide), y, qid=qid)
        pauses.append(len(steps))
    assert pauses[0] == 1
    assert pauses[1] >= 4


def test_memory_for_hypotheses_grows_with_their_number():
    import tracemalloc

    X = sp.csr_array(([1.0, 1.0, 1.0], [0, 999_999, 5], [0, 1, 2, 3]), shape=(3, 10**6))
    model = perceptron("voted", combine="rank", max_iter=1)
    tracemalloc.start()
    model.fit(X, [0, 1, 1], qid=[0] * 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(model.committee_.successes) == 1 + model.history_["mistakes"][0]
    assert peak < 200e6


def test_voted_hypotheses_respect_the_memory_limit(monkeypatch):
    X, y, qid = real_data()
    monkeypatch.setattr("rankcore._ext.pair_model.ROOM", 4)
    every = perceptron("voted", combine="rank", max_hypotheses=None)
    for limit in [200, 3 * 4 * 64 - 1]:  # 64 bytes a hypothesis; 4 old ones while 8 new are made
        with pytest.raises(ValueError, match="4 hypotheses.*set max_hypotheses"):
            every.set_params(memory_limit=limit).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="8 hypotheses"):
        every.set_params(memory_limit=3 * 4 * 64).fit(X, y, qid=qid)


# ---------------------------------------------------------------------------- validation


def test_early_stopping_keeps_the_best_epoch():
    X, y, qid = real_data(30)
    train, held = qid < 20, qid >= 20
    model = perceptron("averaged", shuffle=True, max_iter=30, random_state=0)
    model.set_params(early_stopping_rounds=4)
    models = []
    model.fit(
        X[train],
        y[train],
        qid=qid[train],
        eval_set=[(X[held], y[held])],
        eval_qid=[qid[held]],
        callbacks=[lambda now: models.append(now.model.coef_)],
    )
    curve = model.history_["valid_ndcg@10"]
    expected = [ndcg_score(y[held], X[held] @ coef, qid=qid[held], k=10) for coef in models]
    np.testing.assert_allclose(curve, expected, rtol=1e-12)
    assert model.best_iteration_ == int(np.argmax(curve)) + 1
    assert len(curve) == model.n_iter_ in (model.best_iteration_ + 4, 30)
    np.testing.assert_array_equal(model.coef_, models[model.best_iteration_ - 1])
    for eval_set in [(X[held], y[held])]:
        last = clone(model).set_params(early_stopping_rounds=None, max_iter=3)
        last.fit(X[train], y[train], qid=qid[train], eval_set=eval_set, eval_qid=qid[held])
        np.testing.assert_array_equal(last.coef_, models[2])
        assert not hasattr(last, "best_iteration_")


def test_measured_values_are_kept_and_saved(tmp_path):
    X, y, qid = real_data()
    held = {"eval_set": (X, y), "eval_qid": qid}
    model = perceptron(eval_metric="map", early_stopping_rounds=1).fit(X, y, qid=qid, **held)
    history = model.history_
    assert model.set_params(eval_metric="mrr").history_ == history
    assert "valid_map" in history
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded.history_ == history
    assert loaded.best_iteration_ == model.best_iteration_

    def pairs(labels, scores, qid):
        return 0.5

    model = perceptron(eval_metric=pairs).fit(X, y, qid=qid, **held)
    assert model.history_["valid_pairs"] == [0.5, 0.5]
    assert model.history_["pairs"] == history["pairs"]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"variant": "best"}, ValueError),
        ({"variant": "committee", "combine": "votes"}, ValueError),
        ({"variant": "committee", "committee_size": 0}, ValueError),
        ({"variant": "committee", "committee_size": -1}, ValueError),
        ({"variant": "committee", "committee_size": 1.5}, TypeError),
    ],
)
def test_bad_parameters_are_rejected_by_later_calls(params, error):
    model = perceptron().fit(X, Y, qid=QID).set_params(**params)
    for ask in [lambda: model.coef_, lambda: model.committee_, lambda: model.predict(X)]:
        with pytest.raises(error, match=list(params)[-1]):
            ask()


def test_user_metrics_are_measured_and_callbacks_stop_fits(capsys):
    X, y, qid = real_data()

    def count_pairs(labels, scores, queries):
        return np.sum(np.sign(labels[:, None] - labels) == np.sign(scores[:, None] - scores))

    model = perceptron(eval_metric=count_pairs, verbose=1, max_iter=9)
    held = {"eval_set": (X, y), "eval_qid": qid}
    model.fit(X, y, qid=qid, **held, callbacks=[lambda now: now.number == 2])
    assert model.n_iter_ == 2
    assert len(model.history_["valid_count_pairs"]) == 2
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("[PairwisePerceptron] epoch 1 of 9: ")
    assert "count_pairs" in out[0]
    with pytest.raises(ValueError, match="returned nan"):
        perceptron(eval_metric=lambda *_: np.nan).fit(X, y, qid=qid, **held)
    with pytest.raises(ValueError, match="requires eval_set"):
        perceptron().fit(X, y, qid=qid, eval_qid=qid)
    with pytest.raises(ValueError, match="3 features"):
        perceptron().fit(X, y, qid=qid, eval_set=(X[:, :3], y), eval_qid=qid)
    with pytest.raises(TypeError, match="eval_set must be a pair"):
        perceptron().fit(X, y, qid=qid, eval_set=X)
    with pytest.raises(ValueError, match="eval_set requires eval_qid"):
        perceptron().fit(X, y, qid=qid, eval_set=(X, y))
    both = perceptron().fit(X, y, qid=qid, eval_set=[(X, y), (X, y)], eval_qid=[qid, qid])
    assert both.history_["valid_0_ndcg@10"] == both.history_["valid_1_ndcg@10"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_committee_can_be_chosen_by_quality(solver):
    X, y, qid = real_data()
    asked = []

    def quality(weights):
        asked.append(weights)
        return -abs(weights[0])

    model = perceptron("committee", committee_size=3, quality=quality, solver=solver)
    model.fit(X, y, qid=qid)
    # Asked of those that would join by successes; of these the best by quality stay.
    run = plain.learn(X, lexicographic(y, qid, epochs=2))
    members, longest, judged = [], [], []
    for born in range(len(run["counts"]) - 1):
        value, count = -abs(run["hypotheses"][born][0]), run["counts"][born]
        if len(longest) == 3 and count <= min(longest):
            continue
        judged.append(born)
        longest = sorted([*longest, count])[-3:]
        members = sorted([*members, (value, -born)])[-3:]
    np.testing.assert_allclose(asked, run["hypotheses"][judged], rtol=1e-9, atol=1e-12)
    best = [-born for _, born in sorted(members, reverse=True)]
    np.testing.assert_allclose(
        model.committee_.weights, run["hypotheses"][best], rtol=1e-9, atol=1e-12
    )
    named = perceptron("committee", committee_size=3, quality="map", solver=solver)
    named.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    with pytest.raises(ValueError, match="requires the eval_set of fit"):
        named.partial_fit(X, y, qid=qid)


@pytest.mark.parametrize("standardize", ["auto", False])
def test_a_committee_chosen_by_quality_learns_a_stream_in_parts(standardize):
    X, y, qid = real_data()
    params = {"quality": lambda weights: -abs(weights[0]), "standardize": standardize}
    models = [rc.PairwisePerceptron("committee", random_state=0, **params) for _ in range(2)]
    models[0].partial_fit(X, y, qid=qid)
    for one in dict.fromkeys(qid.tolist()):
        models[1].partial_fit(X[qid == one], y[qid == one], qid=qid[qid == one])
    found, expected = (model.committee_ for model in models)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.successes, expected.successes)


def test_committee_quality_function_cannot_change_its_arguments():
    def spoil(weights):
        value = -abs(weights[0])
        weights[:] = 7
        return value

    judged = [
        perceptron("committee", quality=quality, committee_size=2).fit(X, Y, qid=QID).committee_
        for quality in [spoil, lambda weights: -abs(weights[0])]
    ]
    np.testing.assert_array_equal(judged[0].weights, judged[1].weights)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_quality_values_must_be_comparable(value):
    with pytest.raises(ValueError, match=f"returned {value}"):
        perceptron("committee", quality=lambda _: value).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=f"returned {value}"):
        perceptron(eval_metric=lambda *_: value).fit(X, Y, qid=QID, eval_set=(X, Y), eval_qid=QID)


# ---------------------------------------------------------------------------- answers


def test_ranks_follow_scores():
    X, y, qid = real_data()
    rng = np.random.default_rng(0)
    where = rng.permutation(len(y))
    X, y, qid = X[where].round(1), y[where], qid[where]
    model = perceptron("averaged").fit(X, y, qid=qid)
    scores = model.predict(X)
    np.testing.assert_allclose(scores, X @ model.coef_, rtol=1e-12)
    places = model.predict_rank(X, qid=qid)
    for rows in queries_of(qid):
        expected = sorted(rows, key=lambda row: (-scores[row], row))
        assert places[expected].tolist() == list(range(1, len(rows) + 1))
    with pytest.warns(UserWarning, match="no qid and treats all .* rows as one query"):
        assert sorted(model.predict_rank(X)) == list(range(1, len(y) + 1))
    assert model.score(X, y, qid=qid) == ndcg_score(y, scores, qid=qid, k=10)
    with pytest.raises(ValueError, match="score requires qid"):
        model.score(X, y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(X[:, :3])


def test_votes_are_counted_within_queries():
    X, y, qid = real_data()
    model = perceptron("voted", combine="rank").fit(X, y, qid=qid)
    run = plain.learn(X, lexicographic(y, qid, epochs=2))
    where = np.random.default_rng(0).permutation(len(y))
    got = model.predict(X[where], qid=qid[where])
    for k in range(8):
        rows = np.flatnonzero(qid == k)
        expected = dict(zip(rows, plain.borda(X[rows], run, None), strict=True))
        mine = qid[where] == k
        np.testing.assert_allclose(got[mine], [expected[row] for row in where[mine]], rtol=1e-9)
    with pytest.raises(AttributeError, match="has no coef_"):
        _ = model.coef_
    assert not hasattr(model, "coef_")


# ---------------------------------------------------------------------------- scikit-learn


def test_searches_slice_the_queries():
    import sklearn

    X, y, qid = real_data(24)
    qid = np.random.default_rng(0).permutation(24)[qid]
    with sklearn.config_context(enable_metadata_routing=True):
        model = perceptron("averaged").set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(model, {"margin": [0.0, 0.1]}, cv=GroupKFold(4))
        search.fit(X, y, qid=qid, groups=qid)
        scores = cross_val_score(
            search.best_estimator_, X, y, params={"qid": qid, "groups": qid}, cv=GroupKFold(4)
        )
    expected = []
    for train, test in GroupKFold(4).split(X, y, groups=qid):
        fitted = clone(search.best_estimator_).fit(X[train], y[train], qid=qid[train])
        expected.append(fitted.score(X[test], y[test], qid=qid[test]))
    np.testing.assert_array_equal(scores, expected)


def test_queries_of_too_many_pairs_are_warned_of_before_they_are_visited():
    n = 10**6
    X, y, qid = np.zeros((n, 1)), np.arange(n) % 2, np.zeros(n)
    for learn in (rc.PairwisePerceptron().fit, rc.PairwisePerceptron().partial_fit):
        # An error here, so that no pair is visited.
        with pytest.raises(UserWarning, match=r"2.5e\+11 pairs.* a random sample .* as pairs="):
            learn(X, y, qid=qid)
    # Neither many rows in small queries nor pairs that are given take long.
    rc.PairwisePerceptron(max_iter=1).fit(X, y, qid=np.arange(n) // 2)
    rc.PairwisePerceptron(max_iter=1).fit(X, qid=qid, pairs=[[1, 0], [3, 2]])


def test_the_warning_of_many_pairs_names_the_line_that_fits(monkeypatch):
    monkeypatch.setattr("rankcore.ranking.pairs.MANY_PAIRS", 3)
    model = rc.PairwisePerceptron(max_iter=1)
    for learn in (model.fit, model.partial_fit):
        with pytest.warns(UserWarning, match="a query has 4 pairs") as caught:
            learn(np.eye(4), [0, 0, 1, 1], qid=[1, 1, 1, 1])
        assert [one.filename for one in caught] == [__file__]


def test_data_frames_are_learned():
    pd = pytest.importorskip("pandas")
    X, y, qid = real_data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ids = pd.Series(qid)
    model = perceptron().fit(frame, pd.Series(y), qid=ids, eval_set=(frame, y), eval_qid=ids)
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(model.coef_, perceptron().fit(X, y, qid=qid).coef_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abcdfe")])
    with pytest.raises(ValueError, match="feature names"):
        perceptron().fit(frame, y, qid=qid, eval_set=(frame[list("abcdfe")], y), eval_qid=qid)
    assert not hasattr(model.fit(X, y, qid=qid), "feature_names_in_")


def test_callbacks_from_an_iterator_see_every_epoch():
    X, y, qid = real_data()
    epochs = []
    callbacks = iter([lambda now: epochs.append(now.model.n_iter_)])
    perceptron(max_iter=3).fit(X, y, qid=qid, callbacks=callbacks)
    assert epochs == [1, 2, 3]


def test_pickles_and_copies_continue_learning():
    X, y, qid = real_data()
    for variant in ["committee", "voted"]:
        model = perceptron(variant, combine="rank").fit(X, y, qid=qid)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(X, qid=qid), model.predict(X, qid=qid))
        for one in (model, copy):
            one.partial_fit(X[::-1], y[::-1], qid=qid[::-1])
        np.testing.assert_array_equal(copy.committee_.weights, model.committee_.weights)


def test_inputs_are_not_changed():
    X, y, qid = real_data()
    pairs = np.array([[0, 1], [2, 3]])
    arrays = [X, y, qid, pairs]
    for array in arrays:
        array.flags.writeable = False
    before = [array.copy() for array in arrays]
    for order, solver in itertools.product(["lex", "shuffle"], SOLVERS):
        perceptron(shuffle=order == "shuffle", solver=solver).fit(X, y, qid=qid)
        perceptron(shuffle=order == "shuffle", solver=solver).fit(X, pairs=pairs)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_the_guide_runs():
    from pathlib import Path

    page = Path(__file__).parents[1] / "docs" / "pairwise.md"
    if not page.is_file():
        pytest.skip("docs/ is not beside the tests")
    blocks = page.read_text(encoding="utf-8").split("```python\n")[1:]
    names = {}
    for block in blocks:
        exec(block.split("```")[0], names)
    assert len(blocks) > 5
    assert names["model"].n_iter_ >= 1


# ---------------------------------------------------------------------------- data and memory


def test_letor_like_data_are_learned():
    from rankcore.datasets import make_letor

    X, y, qid = make_letor(50, 30, random_state=1)
    again = make_letor(50, 30, random_state=1)
    for one, other in zip((X, y, qid), again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (X.shape, X.dtype, y.dtype) == ((1500, 136), np.float32, np.int32)
    shares = np.bincount(y) / 1500
    np.testing.assert_allclose(shares, [0.52, 0.23, 0.15, 0.07, 0.03], atol=1 / 1500)
    np.testing.assert_array_equal(qid, np.repeat(np.arange(1, 51), 30))
    whole = (np.round(X) == X).all(axis=0)
    assert whole.sum() == 30
    assert ((X > 0) & (X < 1)).all(axis=0).sum() >= 20
    for wrong in [(0, 1, 136), (1, 0, 136), (1, 1, 89)]:
        with pytest.raises(ValueError, match="make_letor requires"):
            make_letor(*wrong)


def test_working_memory_is_small_without_cached_matrices():
    import tracemalloc

    from rankcore.datasets import make_letor

    X, y, qid = make_letor(200, 40, random_state=1)
    model = perceptron("committee", shuffle=True, solver="gram", memory_limit=0)
    model.fit(X[:400], y[:400], qid=qid[:400])  # imports
    tracemalloc.start()
    model.fit(X, y, qid=qid)
    without = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    model.set_params(memory_limit=10**6).fit(X, y, qid=qid)
    within = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert without < 1.2 * X.nbytes
    assert without < within < without + 1.1 * 10**6


@pytest.mark.parametrize("params", [{"max_hypotheses": None}, {"max_hypotheses": 4}, {}], ids=str)
def test_copies_that_share_a_state_continue_separately(params):
    X, y, qid = real_data()
    model = perceptron("voted" if params else "committee", **params)
    model.partial_fit(X[:40], y[:40], qid=qid[:40])
    other, kept = copy(model), deepcopy(model)
    other.partial_fit(X[40:], y[40:], qid=qid[40:])
    np.testing.assert_array_equal(model.committee_.weights, kept.committee_.weights)
    model.partial_fit(-X[:40], y[:40], qid=qid[:40])
    kept.partial_fit(X[40:], y[40:], qid=qid[40:])
    np.testing.assert_array_equal(other.committee_.weights, kept.committee_.weights)
    assert other._state.model == kept._state.model
    assert other._state.model != model._state.model
