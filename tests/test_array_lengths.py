"""Kernels compare the lengths of the arrays that they are given.

Cython's bounds checks are off in the kernels: an array that is shorter than another one promises
would be read and written beyond its end. Small fits and predictions call the kernels; before the
first call of each kind, a kernel is called with each array shortened along each axis, and must
raise ValueError.
"""

import importlib
import inspect
import pkgutil
import sys
from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from declared import ONLINE, with_defaults
from kernel_structured_problems import Multiclass
from rankcore import _ext, clicks, datasets, interleaving, metrics
from rankcore._core.inputs import as_rows

# Arrays of any length: lists of rows, columns or categories to look at, scratch that may be larger
# than is used, and what a kernel is given in parts.
FREE = {
    ("auc.count_buckets", "scores", 0),
    ("binning.count_entries", "taken", 0),
    ("binning.gather_columns", "taken", 0),
    ("contributions.directions", "out", 0),
    ("contributions.interventional", "others", 0),
    ("ensemble.draws", "cumulative", 0),
    ("ensemble.draws", "out", 0),
    ("ensemble.OAPModel.follow_members", "moved", 0),
    ("ensemble.tally", "votes", 0),
    ("interleave.credit", "room", 0),
    ("interleave.credit", "weights", 0),
    ("interleave.draw", "offsets", 0),
    ("interleave.draw", "room", 0),
    ("interleave.draw", "weights", 0),
    ("interleave.n_room", "offsets", 0),
    ("interleave.pick", "cumulative", 0),
    ("interleave.place_weights", "weights", 0),
    ("kernel_learners.KernelOAPModel.draw_by", "cumulative", 0),
    ("kernel_scores.outputs", "indices", 0),
    ("kernel_scores.outputs", "lengths", 0),
    ("kernel_scores.outputs", "norms", 0),
    ("kernel_scores.outputs", "starts", 0),
    ("histogram_layout.count_row_entries", "features", 0),
    ("histogram_layout.lay_out_panels", "features", 0),
    ("histograms.FeatureBlock.sum_rows", "rows", 0),
    ("histograms.column_histogram", "node_of", 0),
    ("histograms.column_histogram", "rows", 0),
    ("histograms.quantise", "rows", 0),
    ("kernel_scores.outputs", "vectors", 0),
    ("kernel_scores.squared_lengths", "out", 0),
    ("letor.parse", "columns", 0),
    ("letor.parse", "values", 0),
    ("metric_weights.weigh", "discounts", 0),
    ("normalizer_search.evaluate", "counts", 0),
    ("online_loop.learn_few", "marks", 0),
    ("ordinal.projected_ranks", "thresholds", 0),
    ("ordinal.threshold_ranks", "thresholds", 0),
    ("pairs.learn", "sequence", 0),
    ("partition.label_rows", "rows", 0),
    ("partition.partition_rows", "rows", 0),
    ("rows.csr_rows", "indptr", 0),
    ("rows.dense_rows", "X", 0),
    ("rows.dense_rows", "X", 1),
    ("stumps.evaluate", "scratch", 0),
    ("column_stats.sum_squares", "values", 0),
    ("tokens.first_equal", "words", 1),
}
# Functions without arrays, or with those of any length only.
UNCHECKED = {
    "ensemble.OAPModel.merge_counts",
    "ensemble.draws",
    "interleave.n_room",
    "interleave.place_weights",
    "kernel_learners.KernelAtomsState.__init__",
    "kernel_learners.KernelCuSumModel.declare",
    "kernel_learners.KernelModel.wider",
    "kernel_learners.KernelOAPModel.declare",
    "logistic.LogisticModel.merge_counts",
    "logistic.LogisticModel.mixed",
    "logistic.LogisticModel.wider",
    "kernel_learners.KernelOAPModel.draw_by",
    "kernel_learners.KernelPRankModel.declare",
    "kernel_scores.squared_lengths",
    "letor_writing.row_texts",
    "listed_weights.ListedWeights.centre",
    "listed_weights.ListedWeights.listed",
    "pair_model.PairModel.best",
    "pair_model.PairModel.declare",
    "pair_model.PairModel.grow",
    "pair_model.PairModel.keep_features",
    "pair_model.PairModel.merge_counts",
    "pair_model.PairModel.offer",
    "pair_weights.LabelWeights.centre",
    "pairs.judge",
    "rows.dense_rows",
    "splitting.hessian",
    "splitting.leaf_gain",
    "splitting.leaf_value",
    "strings.measure",
    "column_stats.sum_squares",
}


def kernels():
    """Functions, methods and constructors of all kernels by name, with their owners."""
    found = {}
    for info in pkgutil.iter_modules(_ext.__path__):
        if info.name == "online_model":  # NumPy reads its arrays; test_online_model.py checks them
            continue
        numpy_reads = {"moments": {"change_units"}}.get(info.name, set())
        module = importlib.import_module(f"rankcore._ext.{info.name}")
        for name, kernel in vars(module).items():
            if (
                name.startswith("_")
                or name in numpy_reads
                or getattr(kernel, "__module__", "") != module.__name__
            ):
                continue
            if "cython" in type(kernel).__name__:
                if not inspect.signature(kernel).parameters:
                    continue  # it takes nothing
                found[f"{info.name}.{name}"] = module, name
            elif isinstance(kernel, type):
                for method, function in vars(kernel).items():
                    public = not method.startswith("_") and "cython" in type(function).__name__
                    if public and len(inspect.signature(function).parameters) == 1:
                        continue  # it takes nothing
                    if public or method == "__init__":
                        found[f"{info.name}.{name}.{method}"] = kernel, method
    return found


KERNELS = kernels()


class ShortCalls:
    """Calls of kernels with one array shortened, and what became of them."""

    def __init__(self):
        self.seen = set()
        self.found = defaultdict(dict)  # by kernel: (argument, axis) -> outcome

    def watched(self, kernel, function):
        """Call the kernel with short arrays first."""

        def call(*args, **named):
            given = dict(enumerate(args)) | named
            kind = kernel, *((k, type(v), getattr(v, "dtype", None)) for k, v in given.items())
            if kind not in self.seen:
                self.seen.add(kind)
                for key, value in given.items():
                    if isinstance(value, np.ndarray):
                        for axis in range(value.ndim if value.size else 0):
                            self.shorten(kernel, function, args, named, key, axis)
            return function(*args, **named)

        return call

    def shorten(self, kernel, function, args, named, key, axis):
        """Call a kernel with one array one entry shorter along an axis."""
        label = key
        if isinstance(key, int) and not kernel.endswith("__init__"):
            label = [*inspect.signature(function).parameters][key]
        if (kernel, label, axis) in FREE:
            return
        given = {
            k: v.copy() if isinstance(v, np.ndarray) else v
            for k, v in (dict(enumerate(args)) | named).items()
        }
        given[key] = np.ascontiguousarray(np.delete(given[key], -1, axis))
        if kernel.endswith("__init__"):
            given[0] = type(args[0]).__new__(type(args[0]))
        try:
            function(*(given[i] for i in range(len(args))), **{k: given[k] for k in named})
            outcome = "accepted"
        except Exception as error:
            outcome = type(error).__name__
        found = self.found[kernel]
        if found.get((label, axis), "ValueError") == "ValueError":
            found[label, axis] = outcome


@pytest.fixture(scope="module")
def short_calls(tmp_path_factory):
    """Return the results of all short calls."""
    calls = ShortCalls()
    for info in pkgutil.walk_packages(rc.__path__, "rankcore."):
        if not info.name.endswith("__main__") and ".dask" not in info.name:
            importlib.import_module(info.name)
    with pytest.MonkeyPatch.context() as patched:
        for kernel, (owner, name) in KERNELS.items():
            function = vars(owner)[name]
            watched = calls.watched(kernel, function)
            if isinstance(owner, type):
                patched.setattr(owner, name, watched)
                continue
            for module in [m for n, m in sys.modules.items() if n.startswith("rankcore")]:
                for attribute in [n for n, v in vars(module).items() if v is function]:
                    patched.setattr(module, attribute, watched)
        for call in CALLS:
            call(tmp_path_factory.mktemp("rows"))
    return calls.found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_kernel_rejects_a_short_array(kernel, short_calls):
    outcomes = short_calls.get(kernel, {})
    assert (kernel in UNCHECKED) == (not outcomes), "call the kernel in CALLS"
    assert outcomes == dict.fromkeys(outcomes, "ValueError")


# ------------------------------------------------------------------------ calls of all kernels

RANDOM = np.random.default_rng(0)
DENSE = RANDOM.normal(size=(60, 6)) / 9
SPARSE = sp.csr_matrix(np.where(np.abs(DENSE) > 0.07, DENSE, 0.0))
CATEGORIES = np.c_[RANDOM.integers(0, 5, 60), DENSE]
STARS = np.clip(np.round(9 * DENSE[:, 0]).astype(int), -1, 1) + 2
QUERIES = np.repeat(np.arange(6), 10)
PAIRS = np.array([[i, i + 1] for i in range(0, 58, 2)])
TREES = {"max_leaf_nodes": 4, "min_samples_leaf": 2}


def online_learners(folder):
    for learner in [*with_defaults(ONLINE), rc.KernelPRank(budget=9)]:
        if hasattr(learner, "n_estimators"):
            learner.set_params(n_estimators=5)
        if hasattr(learner, "max_hypotheses"):
            learner.set_params(max_hypotheses=3)
        for X in (DENSE, SPARSE, DENSE.astype(np.float32)):
            learner.fit(X, STARS).predict(X)
            learner.partial_fit(X[:1], STARS[:1])
    rc.PRank(classes=[1, 2, 3]).partial_fit(DENSE, STARS).partial_fit(DENSE[:2], STARS[:2])
    for method in ("cumulative", "isotonic"):
        model = rc.CalibratedOrdinal(rc.PRank(random_state=0), method=method).fit(DENSE, STARS)
        rc.save(model, folder / "model")
        rc.Predictor(folder / "model").predict_proba(DENSE)
        rc.Predictor(folder / "model").predict(DENSE)
        rc.Predictor(folder / "model").project(DENSE)


def kernel_learners(folder):
    task = Multiclass(((0, 1), (1, 0)))
    model = rc.KernelStructuredPerceptron(task, kernel="rbf", max_iter=1)
    model.fit(DENSE, (STARS > 2).astype(int).tolist()).predict(DENSE)
    span = rc.KernelPRank(budget=9, budget_policy="projectron")
    span.partial_fit(DENSE, STARS, [1, 2, 3])
    rc.KernelPRank()._new_model(2, 3).set_units(np.zeros(2), np.ones(2))


def boosting(folder):
    for X in (DENSE, SPARSE):
        for settings in (
            {},
            {"select": "normalizer"},
            TREES,
            TREES | {"subsample": 0.5, "max_features": 0.5},
            TREES | {"pair_weight": "ndcg@5"},
            TREES | {"pair_weight": "map", "leaf_step": "newton"},
        ):
            for relevance in (STARS, STARS > 2):
                model = rc.RankBoost(3, **settings).fit(X, relevance, qid=QUERIES)
                model.predict(X)
            model.contributions(X[:3], background=X[3:5])
            if "pair_weight" not in settings:
                rc.RankBoost(3, **settings).fit(X, pairs=PAIRS)
        rc.BipartiteRankBoost(3).fit(X, STARS > 2)
        for settings in (
            {},
            {"tasks": "shared"},
            {"tasks": "shared", "link": "cumulative"},
        ):
            rc.OrdinalBoost(3, **settings).fit(X, STARS).predict(X)
    model = rc.RankBoost(3, **TREES, categorical_features=[0])
    model.fit(CATEGORIES, CATEGORIES[:, 0] % 2, qid=QUERIES).predict(CATEGORIES)
    many = sp.random(400, 300, 0.05, random_state=0, format="csr")
    many.data[:] = np.ceil(3 * many.data)
    relevance = np.random.default_rng(1).integers(0, 2, 400)
    rc.BipartiteRankBoost(60).fit(many, relevance)
    rc.RankBoost(300).fit(many, relevance, qid=np.zeros(400))
    tall = np.tile(DENSE, (50, 1))
    rc.RankBoost(3, max_leaf_nodes=4, n_jobs=2).fit(
        tall, np.tile(relevance[:300], 10), qid=np.repeat(np.arange(30), 100)
    )


def pairwise_learners(folder):
    for X in (DENSE, SPARSE):
        for variant in ("averaged", "voted", "committee", "pocket"):
            rc.PairwisePerceptron(variant, max_iter=2).fit(X, STARS, qid=QUERIES).predict(X)
        rc.PairwisePerceptron(max_iter=1).fit(X, pairs=PAIRS)
        for kernel in (None, "rbf"):
            rc.RankSVM(kernel=kernel).fit(X, STARS, qid=QUERIES).predict(X)
        rc.RankSVM().fit(X, pairs=PAIRS)


def measures(folder):
    scores = DENSE[:, 0].copy()
    for k in (3, 10):
        metrics.evaluate(STARS, scores, qid=QUERIES, metrics=[f"ndcg@{k}", "map", "auc"])

    metrics.auc_score(STARS > 2, scores, sample_weight=np.abs(scores) + 1.0)
    metrics.kendall_tau(STARS, scores)
    metrics.weighted_ranking_loss(STARS, scores, qid=QUERIES)
    metrics.margin_loss(STARS, scores)
    metrics.rank_loss(STARS, scores)
    kernel = _ext.auc
    values, starts = np.full(2 * kernel.N_SPLITTERS, np.inf), np.zeros(kernel.N_CELLS, np.uint16)
    values[0] = 0.0
    where = values, starts, -1.0, kernel.N_CELLS / 2
    half = kernel.place_splitters(*where)
    counts = np.zeros(kernel.N_SPLITTERS + 1, np.int64)
    kernel.count_buckets(scores, *where, half, counts)
    marks, tied = np.ones(60), np.zeros((kernel.N_SPLITTERS, 2))
    kernel.deal(
        scores, marks, *where, half, np.cumsum(counts) - counts, scores.copy(), marks.copy(), tied
    )


def kernels_of_clusters(folder):
    levels, factors = np.array([0, 30, 60]), np.ones(60)
    weights = _ext.pair_weights.LabelWeights(
        factors, None, levels, np.array([0, 2]), np.ones(1), np.empty((2, 2))
    )
    weights.measure(np.zeros(60, np.uint8))
    rows_of_pairs = np.ascontiguousarray(PAIRS.T, dtype=np.int32)
    listed = _ext.listed_weights.ListedWeights(np.ones(len(PAIRS)), *rows_of_pairs, 60)
    listed.measure(np.zeros(60, np.uint8))
    _ext.stumps.fire(as_rows(SPARSE), 1, 0.0, False, False, np.empty(60, np.uint8))
    _ext.ensemble.draws(0, 0, np.arange(3, dtype=np.uint64), np.empty(4, np.int32))


def click_models(folder):
    log = clicks.ClickLog(
        [f"query {i % 4}" for i in range(20) for _ in range(10)],
        [int(d) for _ in range(20) for d in RANDOM.permutation(10)],
        [*range(1, 11)] * 20,
        RANDOM.integers(0, 2, 200),
        session=[i for i in range(20) for _ in range(10)],
    )
    clicks.PositionBasedModel().fit(log)
    clicks.DynamicBayesianModel().fit(log).click_probabilities(log)
    clicks.simulate_clicks(log, np.full(200, 0.5), user=clicks.User("cascade"))


def interleaved_lists(folder):
    rankings = [["a", "b", "c"], ["b", "d", "a"]]
    for method in (interleaving.TeamDraft(), interleaving.Balanced(), interleaving.Probabilistic()):
        shown = method.interleave(rankings, seed=1)
        method.credit(shown, [1] * len(shown.documents))
    shown = interleaving.Optimized().plan(rankings).draw(seed=0)
    interleaving.Optimized().credit(shown, [1] * len(shown.documents))


def files(folder):
    datasets.dump_letor(
        DENSE, STARS, folder / "rows", qid=QUERIES, docid=[f"d{i}" for i in range(60)]
    )
    for dense in (True, False):
        datasets.load_letor(folder / "rows", dense=dense)
    rows = datasets.open_rows(folder / "rows")
    for learner in (
        rc.RankBoost(3),
        rc.RankBoost(3, **TREES),
        rc.RankSVM(),
        rc.PRank(),
        rc.PairwisePerceptron(),
    ):
        learner.fit(rows)
    cached = datasets.open_rows(folder / "rows", cache=folder / "cache")
    for learner in (rc.RankBoost(3), rc.RankBoost(3, **TREES), rc.OrdinalBoost(3)):
        learner.fit(cached)
    (folder / "run").write_text("q1 Q0 d1 1 .5 x\nq1 Q0 d2 2 .3 x\n")
    datasets.read_run(folder / "run")


def judges(folder):
    for prior in (None, np.arange(6.0)):
        ranker = rc.PreferenceRanker(lambda u, v: u < v, max_calls=8, prior=prior, random_state=0)
        ranker.rank(list(range(6)))


CALLS = (
    kernels_of_clusters,
    online_learners,
    kernel_learners,
    boosting,
    pairwise_learners,
    measures,
    click_models,
    interleaved_lists,
    judges,
    files,
)
