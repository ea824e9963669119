"""Names of the figures in ``history_``, which are the same for all learners."""

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc
from declared import ORDINAL, RANKERS, data_for, first_of_each, learns_from
from rankcore._core.eval_sets import measure_names

X, Y, QID = rc.datasets.make_letor(12, 10, random_state=0)
X = X[:, :6]
RANKS = Y.astype(int)


class Perceptron(rc.PythonScoreRule):
    def start(self, n_features, n_ranks):
        return {"W": np.zeros((n_ranks, n_features))}

    def scores(self, x):
        return self.W @ x

    def update(self, x, rank):
        self.W[rank] += x
        self.W[self.rank_of(x)] -= x


def spread(y_true, y_pred):
    return 0.5


def gap(labels, scores, qid):
    return 0.5


LEARNERS = [one for one in first_of_each([*ORDINAL, *RANKERS]) if hasattr(one, "eval_metric")]
OF_LABELS = ["rank_loss", "accuracy", spread]
MEASURES = {
    "labels": OF_LABELS,
    "queries": ["ndcg@10", "map", gap],
    "binary queries": ["auc", "map", gap],
}
CASES = [
    *((one, MEASURES[learns_from(one)], data_for(one, RANKS, QID)) for one in LEARNERS),
    (Perceptron(max_iter=2), OF_LABELS, {"y": RANKS}),
]


def named(metrics):
    return [one if isinstance(one, str) else one.__name__ for one in metrics]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "metrics", "given"), CASES, ids=lambda one: type(one).__name__)
def test_held_out_measures_begin_with_valid(model, metrics, given):
    y = given["y"]
    model = clone(model).set_params(eval_metric=metrics)
    plain = set(model.fit(X, **given).history_)
    assert not any(name.startswith("valid") for name in plain)
    held = {"eval_qid": QID} if "qid" in given else {}
    seen = []
    model.fit(X, **given, **held, eval_set=(X, y), callbacks=[lambda now: seen.append(now.results)])
    expected = [f"valid_{name}" for name in named(metrics)]
    assert set(model.history_) == plain | set(expected)
    assert [*seen[-1]] == expected
    assert [model.history_[name][-1] for name in expected] == [
        one.value for one in seen[-1].values()
    ]
    held = {"eval_qid": [QID, QID]} if "qid" in given else {}
    model.fit(X, **given, **held, eval_set=[(X, y), (X, y)])
    both = {f"valid_{number}_{name}" for number in (0, 1) for name in named(metrics)}
    assert set(model.history_) == plain | both


def test_measures_of_one_name_are_numbered():
    assert measure_names([gap, "map", gap, gap], 1) == [
        ["valid_gap", "valid_map", "valid_gap 2", "valid_gap 3"]
    ]
    assert measure_names([gap, gap], 2) == [
        ["valid_0_gap", "valid_0_gap 2"],
        ["valid_1_gap", "valid_1_gap 2"],
    ]
