"""Fits to rows on disk: the model of the same rows in memory; interrupted, the same model too."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import rankcore as rc
from declared import (
    ONLINE,
    ONLINE_RANKERS,
    SAVED_RANKERS,
    first_of_each,
    learns_from,
    ranks_queries,
    walk,
)
from rankcore._core import disk_arrays
from rankcore.boosting import _binning, _histograms, _streamed_bins
from rankcore.datasets import (
    dump_letor,
    file_rows,
    load_letor,
    make_letor,
    make_ordinal,
    open_rows,
    row_cache_writer,
    text_rows,
)

IN_PASSES = [one for one in first_of_each(ONLINE) if not hasattr(one, "kernel")]
OF_ALL_ROWS = [
    *first_of_each(
        [
            one
            for one in [*ONLINE, *SAVED_RANKERS]
            if hasattr(one, "kernel") or not hasattr(one, "partial_fit")
        ]
    ),
    rc.RankBoost(3, max_leaf_nodes=6),
]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks and files of few values, so that small data have many."""
    for module in (file_rows, row_cache_writer):
        monkeypatch.setattr(module, "BLOCK_VALUES", 500)
    for module, name in (
        (disk_arrays, "SMALL"),
        (_streamed_bins, "MERGED"),
        (_streamed_bins, "RELEASED"),
        (_histograms, "ARRANGED"),
        (_histograms, "ARRANGED_OF_COLUMN"),
        (_binning, "BLOCK_VALUES"),
    ):
        monkeypatch.setattr(module, name, 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    X, y = make_ordinal(900, 6, mean_nnz=4, random_state=0)
    dump_letor(X, y, folder / "ordinal.txt")
    X, y, qid = make_letor(40, 15, n_features=90, random_state=0)
    dump_letor(X, y, folder / "queries.txt", qid=qid)
    return folder


def opened(path, kind, tmp_path):
    return open_rows(path, window=2, cache=tmp_path / "rows" if kind == "cache" else None)


def saved(model, tmp_path):
    """Return a model as the bytes of its file."""
    rc.save(model, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


def clone(model, **params):
    return type(model)(**{**model.get_params(), **params})


@pytest.mark.parametrize("kind", ["text", "cache"])
@walk([*IN_PASSES, rc.OAPBagging(9, max_iter=2, random_state=3, class_weight="balanced")])
def test_ordinal_fit_in_file_order_equals_that_in_memory(learner, kind, files, tmp_path):
    data = load_letor(files / "ordinal.txt")
    model = clone(learner, shuffle=False)
    expected = clone(model).fit(data.X, data.y.astype(int))
    found = clone(model).fit(opened(files / "ordinal.txt", kind, tmp_path))
    assert saved(found, tmp_path) == saved(expected, tmp_path)


@pytest.mark.parametrize("kind", ["text", "cache"])
@walk(ONLINE_RANKERS)
def test_pairwise_fit_in_file_order_equals_that_in_memory(
    learner, kind, files, tmp_path, monkeypatch
):
    data = load_letor(files / "queries.txt")
    # The way of scores follows from how often a query will be visited, and sums in its own order.
    monkeypatch.setattr(rc.PairwisePerceptron, "_solver", "lazy")
    model = clone(learner, shuffle=False)
    expected = clone(model).fit(data.X, data.y, qid=data.qid)
    found = clone(model).fit(opened(files / "queries.txt", kind, tmp_path))
    assert saved(found, tmp_path) == saved(expected, tmp_path)


@walk(OF_ALL_ROWS)
@pytest.mark.parametrize("kind", ["text", "cache"])
def test_learners_of_all_rows_equal_fits_in_memory(learner, kind, files, tmp_path):
    data = load_letor(files / "queries.txt")
    y = data.y.astype(int)
    if learns_from(learner) == "binary queries":
        learner = clone(learner, rel=1)
    more = {"qid": data.qid} if ranks_queries(learner) else {}
    expected = clone(learner).fit(data.X, y, **more)
    rows = opened(files / "queries.txt", kind, tmp_path)
    for _ in range(2):  # a second fit reads no file
        found = clone(learner).fit(rows)
        assert np.array_equal(found.predict(data.X), expected.predict(data.X))


@pytest.mark.parametrize("kind", ["text", "cache"])
def test_shuffled_fits_learn_and_repeat(kind, files, tmp_path):
    data = load_letor(files / "ordinal.txt")
    rows = opened(files / "ordinal.txt", kind, tmp_path)
    models = [rc.PRank(random_state=seed).fit(rows) for seed in [0, 0, 1]]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert not np.array_equal(models[0].coef_, models[2].coef_)
    in_memory = rc.PRank(random_state=0).fit(data.X, data.y)
    assert models[0].score(data.X, data.y) > in_memory.score(data.X, data.y) - 0.03
    assert models[0].history_["examples"] == in_memory.history_["examples"]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("order", [None, (0, 1)])
def test_windows_of_text_have_all_rows_in_whole_queries(order, named, files, tmp_path):
    lines = (files / "queries.txt").read_text().splitlines(keepends=True)
    if named:
        lines = [line.replace("qid:", "qid:q") for line in lines]
    lines[100:140] = [line.replace(line.split()[1], "qid:long") for line in lines[100:140]]
    for i, name in enumerate(["a.txt", "b.txt"]):  # the long query goes on in the second file
        (tmp_path / name).write_text("".join([lines[:120], lines[120:]][i]))
    data = [load_letor(tmp_path / name, n_features=90) for name in ["a.txt", "b.txt"]]
    X, y = np.vstack([one.X.toarray() for one in data]), np.hstack([one.y for one in data])
    qid = np.hstack([one.qid.astype(str) for one in data])
    rows = open_rows([tmp_path / "a.txt", tmp_path / "b.txt"], n_features=90, window=3)
    begin = n_windows = 0
    for window in rows.windows(90, order):
        here = slice(begin, begin := begin + window.rows.n_rows)
        values, columns, starts = window.rows.arrays
        assert np.array_equal(
            csr_matrix((values, columns, starts), (starts.size - 1, 90)).toarray(), X[here]
        )
        assert np.array_equal(window.labels, y[here])
        changes = qid[here][1:] != qid[here][:-1]
        assert np.array_equal(window.queries, np.cumsum(np.append(0, changes)))
        last = np.searchsorted(window.queries, window.queries[-1])
        full = 500 if order is None else 1500
        assert starts[last] < full
        assert begin == y.size or starts[-1] >= full
        assert begin == y.size or qid[begin] != qid[begin - 1]
        n_windows += 1
    assert begin == y.size
    assert n_windows > 5


def test_held_out_rows_stop_fits_on_files(files):
    data = load_letor(files / "ordinal.txt")
    held_out = data.X[:200], data.y[:200]
    model = rc.PRank(max_iter=30, early_stopping_rounds=2, shuffle=False)
    expected = clone(model).fit(data.X, data.y, eval_set=held_out)
    found = clone(model).fit(open_rows(files / "ordinal.txt"), eval_set=held_out)
    assert found.history_ == expected.history_
    assert found.best_iteration_ == expected.best_iteration_
    assert np.array_equal(found.coef_, expected.coef_)


def test_held_out_queries_are_measured_on_files(files):
    data = load_letor(files / "queries.txt")
    held_out = {"eval_set": (data.X[:150], data.y[:150]), "eval_qid": data.qid[:150]}
    model = rc.PairwisePerceptron("averaged", max_iter=3, shuffle=False)
    expected = clone(model).fit(data.X, data.y, qid=data.qid, **held_out)
    found = clone(model).fit(open_rows(files / "queries.txt"), **held_out)
    assert found.history_ == expected.history_
    with pytest.raises(ValueError, match="features"):
        clone(model).fit(
            open_rows(files / "queries.txt"),
            eval_set=(data.X[:150, :5], data.y[:150]),
            eval_qid=data.qid[:150],
        )


def test_file_is_read_once_per_pass_without_a_scan(files, monkeypatch):
    reads = []
    real = text_rows.text_blocks

    def counted(*args):
        reads.append(args)
        return real(*args)

    monkeypatch.setattr(text_rows, "text_blocks", counted)
    rows = open_rows(files / "ordinal.txt", n_features=6)
    model = rc.PRank(max_iter=2, shuffle=False, standardize=False)
    model.fit(rows, classes=[1, 2, 3, 4, 5])
    assert len(reads) == 2
    model.fit(open_rows(files / "ordinal.txt"))
    assert len(reads) == 5
    model.set_params(standardize="auto").fit(rows, classes=[1, 2, 3, 4, 5])
    assert len(reads) == 8  # means and deviations are those of another scan


def test_chunks_without_a_scan_equal_those_of_partial_fit(files):
    rows = open_rows(files / "ordinal.txt", n_features=6)
    classes = [1, 2, 3, 4, 5]
    expected = rc.PRank(max_iter=1, shuffle=False, standardize=False)
    found = clone(expected).fit(rows, classes=classes)
    data = load_letor(files / "ordinal.txt", n_features=6)
    n = next(rows.windows(6, None)).rows.n_rows  # the scale is that of the first block
    expected.partial_fit(data.X[:n], data.y[:n], classes=classes)
    expected.partial_fit(data.X[n:], data.y[n:])
    assert np.array_equal(found.coef_, expected.coef_)
    assert np.array_equal(found.thresholds_, expected.thresholds_)


def test_arguments_in_files_are_rejected(files):
    rows = open_rows(files / "queries.txt")
    with pytest.raises(TypeError, match="omit y"):
        rc.PRank().fit(rows, [1, 2])
    with pytest.raises(TypeError, match="omit qid"):
        rc.PairwisePerceptron().fit(rows, qid=[1])
    with pytest.raises(TypeError, match="omit group"):
        rc.RankBoost().fit(rows, group=[1])
    with pytest.raises(ValueError, match="got no qid"):
        rc.PairwisePerceptron().fit(open_rows(files / "ordinal.txt"))
    with pytest.raises(ValueError, match=r"label 5.0 .*not among"):
        rc.PRank().fit(open_rows(files / "ordinal.txt"), classes=[1, 2, 3, 4])


def test_failed_fit_does_not_change_the_model(files, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes((files / "ordinal.txt").read_bytes() + b"1 1:nan\n")
    model = rc.PRank().fit([[0], [1]], [0, 1])
    before = saved(model, tmp_path)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(open_rows(path, n_features=6), classes=[1, 2, 3, 4, 5])
    assert saved(model, tmp_path) == before


@pytest.mark.parametrize("kind", ["memory", "text"])
@pytest.mark.parametrize("name", ["PRank", "CuSumRank", "PairwisePerceptron"])
def test_parameters_are_checked_once(name, kind, files, monkeypatch):
    """Before rows are read, which may take long."""
    kind_of, checks = getattr(rc, name), []
    check = kind_of._check_params
    monkeypatch.setattr(kind_of, "_check_params", lambda self: checks.append(check(self)))
    data = load_letor(files / "queries.txt")
    more = {"qid": data.qid} if name == "PairwisePerceptron" else {}
    given = (open_rows(files / "queries.txt"),)
    if kind == "memory":
        given = data.X, data.y
    kind_of(max_iter=1, random_state=0).fit(*given, **(more if kind == "memory" else {}))
    assert len(checks) == 1
    with pytest.raises(ValueError, match="max_iter must be an integer >= 1; got 0"):
        kind_of(max_iter=0).fit("no rows")
