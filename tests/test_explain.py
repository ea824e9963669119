"""Explanations say what the model does: sums, moves and shuffles, checked against predictions."""

import io
import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import rankcore as rc
from declared import ORDINAL, adds_up, walk
from rankcore.explain import global_importance, pair, permutation_importance, query, rank
from rankcore.metrics import evaluate

RNG = np.random.default_rng(3)
QID = np.repeat(np.arange(30), 8)
X = RNG.normal(size=(240, 6)).round(2)
X[RNG.random(X.shape) < 0.2] = 0
X[:, 5] = QID % 4  # the same in a whole query
Y = np.digitize(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.3 * RNG.normal(size=240), [-0.7, 0.7])
STUMPS = rc.RankBoost(40).fit(X, Y, qid=QID)
TREES = rc.RankBoost(10, max_leaf_nodes=6).fit(X, Y, qid=QID)
SVM = rc.RankSVM().fit(X, Y, qid=QID)
RANKERS = [STUMPS, TREES, SVM]


@pytest.mark.parametrize("model", RANKERS)
def test_pair_is_explained_by_its_features(model):
    scores = model.predict(X)
    why = pair(model, X[3], sp.csr_array(X[[9]]), names=("third", "ninth"))
    assert why.contributions.sum() == pytest.approx(scores[3] - scores[9])
    assert (why.score_a, why.score_b) == pytest.approx((scores[3], scores[9]))
    assert why.values_a.tolist() == X[3].tolist()
    assert why.values_b.tolist() == X[9].tolist()
    text = str(why)
    assert text.startswith(f"third is {'above' if scores[3] > scores[9] else 'below'} ninth by")
    assert (why.decisive is None) == (model is TREES)
    back = pair(model, X[9], X[3])
    np.testing.assert_allclose(back.contributions, -why.contributions, atol=1e-12)


@pytest.mark.parametrize("model", [STUMPS, SVM])
def test_decisive_features_are_a_smallest_set_that_reverses_a_pair(model):
    scores = model.predict(X)
    for i, j in RNG.integers(0, 240, (40, 2)).tolist():
        why = pair(model, X[i], X[j])
        if scores[i] == scores[j]:
            assert why.decisive == []
            continue
        high, low = (i, j) if scores[i] > scores[j] else (j, i)
        changed = X[high].copy()
        changed[why.decisive] = X[low][why.decisive]
        assert model.predict(changed[None])[0] <= scores[low] + 1e-12
        # No set of one less does it: the largest ones do not.
        parts = np.sort(np.sign(scores[i] - scores[j]) * why.contributions)[::-1]
        assert abs(scores[i] - scores[j]) > parts[: len(why.decisive) - 1].sum() + 1e-12


@pytest.mark.parametrize("model", RANKERS)
def test_the_top_of_a_query_is_explained(model):
    shuffled = RNG.permutation(240)
    scores = model.predict(X)
    found = query(
        model, X[shuffled], QID[shuffled], which=7, y=Y[shuffled], docid=shuffled, top_k=3
    )
    rows = shuffled[found.rows]
    assert set(rows.tolist()) == set(np.flatnonzero(QID == 7).tolist())
    assert found.names == [*map(str, rows.tolist())]
    assert found.scores == pytest.approx(scores[rows])
    assert (np.diff(found.scores) <= 0).all()
    assert found.labels.tolist() == Y[rows].tolist()
    assert found.values.tolist() == X[rows].tolist()
    mean = scores[QID == 7].mean()
    assert found.contributions.sum(axis=1) == pytest.approx(found.scores - mean)
    assert found.contributions.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-12)
    gap = scores[rows[:3]].mean() - scores[rows[3:]].mean()
    assert found.decided.sum() == pytest.approx(gap)
    assert found.decided[5] == 0  # what is the same in all documents cannot order them
    assert "query 7: 8 documents" in str(found)


def test_unexplainable_queries_are_rejected():
    with pytest.raises(ValueError, match="qid has 30 queries, among them 0, 1, 2: pass which="):
        query(STUMPS, X, QID)
    with pytest.raises(ValueError, match="no query 99"):
        query(STUMPS, X, QID, which=99)
    with pytest.raises(ValueError, match="requires qid; got qid=None"):
        query(STUMPS, X, which=1)
    with pytest.raises(ValueError, match="one document has no order"):
        query(STUMPS, X[:1])
    with pytest.raises(ValueError, match="same length; got 8 and 3"):
        query(STUMPS, X[:8], y=[1, 2, 3])
    with pytest.raises(TypeError, match="must be a learner of rankcore that scores rows"):
        query(StandardScaler().fit(X), X)
    with pytest.raises(TypeError, match="kernel='rbf'"):
        query(rc.RankSVM(kernel="rbf").fit(X[:40], Y[:40], qid=QID[:40]), X[:8])
    with pytest.raises(ValueError, match="a must be one row; got 2"):
        pair(STUMPS, X[:2], X[3])
    with pytest.raises(ValueError, match="one name for each of 6 features; got 2"):
        pair(STUMPS, X[1], X[3], feature_names=["a", "b"])


LINEAR = [
    *filter(adds_up, ORDINAL),
    rc.CuSumRank(tie_break="low", average=False, random_state=0),
]


@pytest.mark.parametrize("limited", [False, True])
@walk(LINEAR)
def test_rank_changes_at_the_nearest_value(learner, limited):
    model = learner.fit(X, Y)
    ranks = model.predict(X)
    for i in range(0, 240, 16):
        why = rank(model, X[i], background=X if limited else None)
        assert why.limited == limited
        assert why.label == ranks[i]
        assert why.bases + why.contributions.sum(axis=0) == pytest.approx(why.distances)
        if not isinstance(model, rc.CuSumRank | rc.KernelCuSumRank | rc.WidrowHoff):
            score = model.project(X[[i]])[0]
            assert why.distances == pytest.approx(score - model.thresholds_)
        for moved, sign in ((why.up, 1), (why.down, -1)):
            for j, value in enumerate(moved):
                changed = X[[i]].copy()
                if np.isnan(value):
                    # Nowhere in the range of the background, or far out on both sides.
                    if limited:
                        values = np.linspace(X[:, j].min(), X[:, j].max(), 100)
                    else:
                        far = np.geomspace(0.01, 1e6, 60)
                        values = X[i, j] + np.concatenate([far, -far])
                    changed = np.repeat(changed, values.size, axis=0)
                    changed[:, j] = values
                    assert (sign * (model.predict(changed) - ranks[i]) <= 0).all()
                    continue
                assert not limited or X[:, j].min() <= value <= X[:, j].max()
                changed[0, j] = value
                assert sign * (model.predict(changed)[0] - ranks[i]) > 0
                for share in (0.999999, 0.5, -0.5, -0.999999):
                    changed[0, j] = X[i, j] + share * (value - X[i, j])
                    assert sign * (model.predict(changed)[0] - ranks[i]) <= 0


def test_ranks_in_words_are_explained():
    model = rc.PRank(random_state=0).fit(
        X, np.array(["bad", "fair", "good"])[Y], classes=["bad", "fair", "good"]
    )
    why = rank(model, X[0])
    assert why.threshold_names == ["bad | fair", "fair | good"]
    assert str(why).startswith(f"predicted: {why.label}; nearest threshold: ")
    for model in (rc.VotedPRank().fit(X, Y), STUMPS, rc.MulticlassPerceptron().fit(X, Y)):
        with pytest.raises(TypeError, match="has no sum over features with thresholds"):
            rank(model, X[0])


def test_calibrated_learners_are_explained_if_their_score_is_a_sum():
    reader = rc.PRank(random_state=0).fit(X, Y)
    elsewhere = X - [0.5, 0, 0, 0, 0, 0]  # scores are lower, and so are the best thresholds
    other = rc.CalibratedOrdinal(FrozenEstimator(reader)).fit(elsewhere, Y)
    differ = np.flatnonzero(other.predict(X) != reader.predict(X))
    assert differ.size  # the estimator has its own thresholds
    for i in differ[:5].tolist():
        assert rank(other, X[i]).label == other.predict(X[[i]])[0]
        assert rank(reader, X[i]).label == reader.predict(X[[i]])[0]
    votes = rc.CalibratedOrdinal(rc.VotedPRank()).fit(X, Y)
    with pytest.raises(TypeError, match="VotedPRank votes"):
        rank(votes, X[0])
    for learner in (rc.OrdinalBoost(3), rc.MulticlassPerceptron()):
        margins = rc.CalibratedOrdinal(learner).fit(X, Y)
        for explained in (margins.contributions, lambda x, m=margins: rank(m, x)):
            with pytest.raises(TypeError, match="calibrates margins, which are not sums"):
                explained(X[:1])
        found = permutation_importance(margins, X, Y, n_repeats=1)
        assert found.baseline == rc.metrics.rank_loss(Y, margins.predict(X))


def test_pipelines_show_values_of_the_input():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(100 + 10 * X, columns=list("abcdef"))
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), rc.PRank())
    search = GridSearchCV(pipeline, {"prank__max_iter": [2, 3]}, cv=2).fit(frame, Y)
    why = rank(search, frame.iloc[5], background=frame)
    assert why.feature_names == list("abcdef")
    assert why.values == pytest.approx(frame.iloc[5].to_numpy())
    assert why.label == search.predict(frame.iloc[[5]])[0]
    for moved, sign in ((why.up, 1), (why.down, -1)):
        for j in np.flatnonzero(np.isfinite(moved)).tolist():
            changed = frame.iloc[[5]].copy()
            changed.isetitem(j, [moved[j] + 1e-7 * (moved[j] - why.values[j])])
            assert sign * (search.predict(changed)[0] - why.label) > 0
    plain = make_pipeline(MaxAbsScaler(), rc.RankSVM()).fit(X, Y, ranksvm__qid=QID)
    why = pair(plain, X[0], X[1])
    assert why.values_a.tolist() == X[0].tolist()
    scores = plain.predict(X[:2])
    assert why.difference == pytest.approx(scores[0] - scores[1])
    sparse = pair(plain, sp.csr_array(X[[0]]), sp.csr_array(X[[1]]))
    np.testing.assert_allclose(sparse.contributions, why.contributions, atol=1e-12)


@pytest.mark.parametrize("model", RANKERS)
def test_importance_of_queries_is_the_mean_contribution(model):
    found = global_importance(model, X, qid=QID)
    each = [query(model, X, QID, which=q).contributions for q in range(30)]
    assert found.importances == pytest.approx(np.abs(np.concatenate(each)).mean(axis=0))
    assert found.importances[5] == 0
    assert found.per_query
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X).assign(qid=QID)
    frame.columns = frame.columns.astype(str)
    named = type(model)(**model.get_params()).fit(frame, Y)
    assert global_importance(named, frame).importances == pytest.approx(found.importances)


def test_importance_of_rows_is_the_mean_contribution():
    centred = X - X.mean(axis=0)
    found = global_importance(SVM, X)
    assert found.importances == pytest.approx(np.abs(centred * SVM.coef_).mean(axis=0))
    sparse = global_importance(SVM, sp.csr_array(X))
    np.testing.assert_allclose(sparse.importances, found.importances, atol=1e-12)
    drawn = [global_importance(TREES, X, random_state=seed).importances for seed in (0, 0, 1)]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
    whole = global_importance(TREES, X, background=X).importances
    np.testing.assert_allclose(drawn[0], whole, rtol=0.5, atol=0.02)
    with pytest.raises(ValueError, match="qid and background exclude each other"):
        global_importance(SVM, X, qid=QID, background=X)


def test_permutations_stay_within_queries():
    found = permutation_importance(SVM, X, Y, qid=QID, metric="ndcg@5", n_repeats=3)
    whole = evaluate(Y, SVM.predict(X), qid=QID, metrics=["ndcg@5"]).per_query["ndcg@5"]
    assert found.baseline == pytest.approx(whole.mean())
    assert found.changes[5] == 0  # a shuffle within queries does not change it
    assert found.changes.argmin() == 0
    assert found.order[0] == 0
    assert ((found.low <= found.changes) & (found.changes <= found.high)).all()
    assert found.per_query.mean(axis=1) == pytest.approx(found.changes)
    # Draw by draw, as `random_state` says: the same for dense, sparse and frames, and by itself.
    pd = pytest.importorskip("pandas")
    again = [
        permutation_importance(model, rows, Y, qid=QID, metric="ndcg@5", n_repeats=3, features=[0])
        for model, rows in (
            (SVM, sp.csr_array(X)),
            (
                rc.RankSVM().fit(pd.DataFrame(X, columns=list("abcdef")), Y, qid=QID),
                pd.DataFrame(X, columns=list("abcdef")),
            ),
        )
    ]
    for one in again:
        assert one.changes == pytest.approx(found.changes[:1])
    other = permutation_importance(SVM, X, Y, qid=QID, metric="ndcg@5", random_state=1)
    assert other.changes.tolist() != found.changes.tolist()


def test_permutations_stay_within_the_scope():
    """The rows that a ranker is given: seen through one that hands them on."""
    seen = []

    class Watching(rc.RankSVM):
        def predict(self, X, *, qid=None, group=None):
            seen.append(np.array(X))
            return super().predict(X, qid=qid, group=group)

    model = Watching().fit(X, Y, qid=QID)
    for scope in ("within", "among"):
        seen.clear()
        permutation_importance(model, X, Y, qid=QID, features=[2], n_repeats=1, scope=scope)
        before, after = seen
        assert sorted(before[:, 2]) == sorted(after[:, 2])
        assert (before[:, [0, 1, 3, 4, 5]] == after[:, [0, 1, 3, 4, 5]]).all()
        kept = [sorted(before[q == QID, 2]) == sorted(after[q == QID, 2]) for q in range(30)]
        assert all(kept) == (scope == "within")
        assert (before[:, 2] != after[:, 2]).any()


@pytest.mark.parametrize(
    "model",
    [
        rc.VotedPRank(random_state=0),
        rc.KernelPRank(max_iter=1, random_state=0),
        rc.RankSVM(kernel="rbf"),
        rc.PairwisePerceptron("committee", combine="rank", max_iter=2, random_state=0),
    ],
    ids=repr,
)
def test_permutations_serve_learners_without_contributions(model):
    more = {"qid": QID} if hasattr(model, "predict_rank") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, Y, **more)
    found = permutation_importance(model, X, Y, qid=QID, metric="auc", n_repeats=2)
    assert found.changes.argmin() == 0
    assert found.high[0] < 0


def test_permutations_take_labels_of_text_as_ranks():
    rng = np.random.default_rng(0)
    X, words = rng.normal(size=(200, 3)), np.array(["low", "fair", "good"])
    y = np.digitize(X[:, 0] + 0.1 * rng.normal(size=200), [-0.4, 0.4])
    numbers = rc.OrdinalBoost(5).fit(X, y)
    text = rc.OrdinalBoost(5, classes=words).fit(X, words[y])
    one, other = (permutation_importance(m, X, of) for m, of in ((numbers, y), (text, words[y])))
    np.testing.assert_array_equal(one.changes, other.changes)
    assert one.measure == "rank_loss"
    assert one.changes[0] > 0
    with pytest.raises(ValueError, match="'best' .* not among"):
        permutation_importance(text, X, ["best"] * 200)


def test_invalid_permutations_are_rejected():
    with pytest.raises(ValueError, match="scope"):
        permutation_importance(SVM, X, Y, qid=QID, scope="all")
    with pytest.raises(ValueError, match="from 0 to 5; got"):
        permutation_importance(SVM, X, Y, qid=QID, features=[6])
    with pytest.raises(ValueError, match="n_repeats"):
        permutation_importance(SVM, X, Y, qid=QID, n_repeats=0)
    with pytest.raises(ValueError, match=r"requires an ordinal learner.*RankSVM: use a ranking"):
        permutation_importance(SVM, X, Y, qid=QID, metric="rank_loss")


def test_permutations_of_an_ordinal_learner_with_queries_measure_their_order():
    model = rc.PRank(random_state=0).fit(X, Y)
    found = permutation_importance(model, X, Y, qid=QID, n_repeats=1)
    assert (found.measure, found.scope, found.n_units) == ("ndcg@10", "within", 30)
    found = permutation_importance(model, X, Y, qid=QID, n_repeats=1, metric="rank_loss")
    assert (found.measure, found.scope, found.n_units) == ("rank_loss", "within", 240)
    assert found.order[0] == found.changes.argmax()
    assert "intervals over 240 rows" in str(found)


def results():
    model = rc.PRank(random_state=0).fit(X, Y)
    return [
        pair(STUMPS, X[0], X[1], names=("<a>", "b")),
        query(TREES, X, QID, which=1, y=Y),
        rank(model, X[0]),
        global_importance(STUMPS, X, qid=QID),
        permutation_importance(SVM, X, Y, qid=QID, n_repeats=1),
    ]


@pytest.mark.parametrize("found", results(), ids=lambda one: type(one).__name__)
def test_every_result_is_text_html_and_a_picture(found):
    matplotlib = pytest.importorskip("matplotlib")
    text, html = str(found), found._repr_html_()
    assert text.startswith(found.headline())
    assert "<table>" in html
    assert "<a>" not in html
    for table in found.tables():
        assert table.caption in text
    assert repr(found).startswith(f"<{type(found).__name__}")
    ax = found.plot()
    ax.figure.canvas.draw()
    matplotlib.pyplot.close(ax.figure)
    rich = pytest.importorskip("rich.console")
    console = rich.Console(width=150, record=True, file=io.StringIO())
    console.print(found)
    assert found.tables()[0].headings[0] in console.export_text()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pytest.importorskip("typer")
    folder = tmp_path_factory.mktemp("explain")
    ids = [f"d{i}" for i in range(240)]
    rc.datasets.dump_letor(X, Y, str(folder / "data.txt"), qid=QID + 1, docid=ids)
    rc.datasets.dump_letor(X, Y, str(folder / "bare.txt"), qid=QID + 1)
    rc.save(STUMPS, folder / "stumps")
    rc.save(rc.VotedPRank().fit(X, Y), folder / "votes")
    scaled = make_pipeline(StandardScaler(), rc.PRank(random_state=0)).fit(X, Y)
    rc.save(scaled, folder / "ranks")
    return folder


class TestCommand:
    def run(self, files, model, *arguments, data="data.txt"):
        from typer.testing import CliRunner

        from rankcore.cli.app import app

        return CliRunner().invoke(
            app, ["explain", str(files / model), str(files / data), *map(str, arguments)]
        )

    def test_the_command_explains_a_query(self, files):
        found = self.run(files, "stumps", "--query", 8, "--top", 3)
        assert found.exit_code == 0, found.stderr
        expected = query(
            STUMPS,
            X[QID == 7],
            QID[QID == 7] + 1,
            y=Y[QID == 7],
            top_k=3,
            docid=[f"d{i}" for i in np.flatnonzero(QID == 7)],
            feature_names=[f"feature {j}" for j in range(1, 7)],
        )
        assert found.stdout == f"{expected}\n"

    def test_the_command_finds_pairs_by_ids_and_by_lines(self, files):
        by_id = self.run(files, "stumps", "--pair", "d57", "d60", "--json")
        by_line = self.run(files, "stumps", "--query", 8, "--pair", 2, 5, "--json", data="bare.txt")
        one, other = json.loads(by_id.stdout), json.loads(by_line.stdout)
        assert one["contributions"] == other["contributions"]
        assert one["contributions"] == pair(STUMPS, X[57], X[60]).contributions.tolist()
        missing = self.run(files, "stumps", "--pair", "d57", "d999")
        assert missing.exit_code == 1
        assert "no example called d999" in missing.stderr

    def test_the_command_explains_a_rank_of_a_scaled_model(self, files):
        found = json.loads(self.run(files, "ranks", "--row", 3, "--json").stdout)
        expected = rank(rc.load(files / "ranks"), X[2], background=X)
        assert found["rank"] == expected.rank
        assert found["distances"] == pytest.approx(expected.distances.tolist())
        assert found["values"] == pytest.approx(X[2].tolist())

    def test_the_command_prints_importances(self, files):
        found = json.loads(self.run(files, "stumps", "--json").stdout)
        expected = global_importance(STUMPS, X, qid=QID).importances
        assert found["importances"] == pytest.approx(expected.tolist())
        votes = self.run(files, "votes", "-m", "auc")
        assert "when a feature is shuffled" in votes.stdout

    def test_the_command_writes_files(self, files):
        pytest.importorskip("matplotlib")
        html, png = files / "why.html", files / "why.png"
        found = self.run(files, "stumps", "--query", 8, "--html", html, "--plot", png)
        assert found.exit_code == 0, found.stderr
        page = html.read_text()
        assert "<table>" in page
        assert page.count("<svg") == page.count("</svg>") == 1
        assert png.read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("model", "arguments", "message"),
        [
            ("votes", [], "VotedPRank votes"),
            ("stumps", ["--row", 3], "has no sum over features with thresholds"),
            ("stumps", ["--row", 3], "--query, --pair and --metric explain other models"),
            ("stumps", ["--query", 99], "has no query 99; it has "),
            ("ranks", ["--row", 999], "--row must be from 1 to "),
            ("ranks", ["--row", 1, "--metric", "auc"], "request different explanations"),
            ("stumps", ["--plot", "why"], "a file that ends in .png, .svg or .pdf; got why"),
            ("stumps", ["--plot", "why.bmp"], "a file that ends in .png, .svg or .pdf"),
            ("stumps", ["--query", 8, "--metric", "auc"], "request different explanations"),
        ],
    )
    def test_errors_take_one_line(self, files, model, arguments, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        found = self.run(files, model, *arguments)
        assert found.exit_code == 1
        assert message in found.stderr
        assert found.stderr.count("\n") == 1
        assert not list(tmp_path.iterdir())
