"""Models as ONNX operators, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rankcore._core.numbers import Floats
from rankcore.boosting.ordinal_model import Form
from rankcore.exporters.described import Described
from rankcore.exporters.onnx_operators import INT64, Graph, tree_ensemble
from rankcore.exporters.onnx_probabilities import cheapest, of_tasks, probabilities
from rankcore.exporters.operations import Step, width_after
from rankcore.exporters.reduced import Forest, as_forest, dense_coefs, support_matrix


def build(described: Described, rows: str, prefix: str = "") -> tuple[Graph, dict[str, str]]:
    """Build operators of a model, from an input ``rows``, (n, n_features), and its outputs.

    Outputs are, as far as the model has them, "score", double (n), "scores" of classes, double
    (n, n_ranks), "rank", int64 (n), "label" (n) and "probabilities", double (n, n_ranks).
    """
    graph = Graph(prefix=prefix)
    x = graph.double(rows)
    for step in described.steps:
        x = _front(graph, x, step)
    outputs = _FORMS[described.scoring.form](graph, x, described)
    if described.calibration is not None:
        table = probabilities(graph, outputs["score"], described.calibration)
        outputs["rank"] = cheapest(graph, table, described.calibration.costs)
        outputs["probabilities"] = table
    classes = described.classes
    if classes is not None:
        numbers = classes.dtype.kind in "biuf"
        kind = np.float64 if classes.dtype.kind == "f" else np.int64 if numbers else np.str_
        outputs["label"] = graph.add("Gather", graph.array(classes, kind), outputs["rank"])
    if "probabilities" in outputs:
        outputs["probabilities"] = outputs.pop("probabilities")  # the last
    # Not the rank of a learner inside, and no constants that nothing reads.
    graph.keep(outputs.values())
    return graph, outputs


def _front(graph: Graph, x: str, step: Step) -> str:
    if step.kind == "select":
        return graph.add("Gather", x, graph.array(step.values, np.int64), axis=1)
    if step.kind == "impute":
        return graph.add("Where", graph.add("IsNaN", x), graph.array(step.values), x)
    if step.kind == "clip":
        low, high = step.values
        return graph.add("Clip", x, graph.array(low), graph.array(high))
    if step.kind != "normalize":
        names = {"subtract": "minus", "add": "plus", "multiply": "times", "divide": "over"}
        operation: Callable[[str, Any], str] = getattr(graph, names[step.kind])
        return operation(x, step.values)
    axis = graph.array([1], np.int64)
    sizes = graph.add("Mul", x, x) if step.norm == "l2" else graph.add("Abs", x)
    reduce = "ReduceMax" if step.norm == "max" else "ReduceSum"
    norm = graph.add(reduce, sizes, axis, keepdims=1)
    norm = graph.add("Sqrt", norm) if step.norm == "l2" else norm
    # Rows with a norm close to zero are not changed, as in scikit-learn.
    small = graph.add("Less", norm, graph.array(10 * np.finfo(np.float64).eps))
    return graph.add("Div", x, graph.add("Where", small, graph.array(1.0), norm))


# ------------------------------------------------------------------------ forms


def _flat(graph: Graph, column: str) -> str:
    return graph.add("Squeeze", column, graph.array([1], np.int64))


def _dot(graph: Graph, x: str, weights: Floats) -> str:
    """Multiply rows by columns of weights; the result has a column per score."""
    product = graph.add("MatMul", x, graph.array(weights.reshape(weights.shape[0], -1)))
    return product if weights.ndim == 2 else _flat(graph, product)


def _column(graph: Graph, score: str) -> str:
    return graph.add("Unsqueeze", score, graph.array([1], np.int64))


def _reached(graph: Graph, scores: str, thresholds: Floats) -> str:
    """Count the thresholds that scores reach; scores have one column, or one per threshold."""
    reached = graph.add("GreaterOrEqual", scores, graph.array(thresholds))
    counts = graph.add("Cast", reached, to=INT64)
    return graph.add("ReduceSum", counts, graph.array([1], np.int64), keepdims=0)


def _linear(graph: Graph, x: str, described: Described) -> dict[str, str]:
    return {"score": _dot(graph, x, described.scoring.arrays["weights"])}


def _thresholds(graph: Graph, x: str, described: Described) -> dict[str, str]:
    arrays = described.scoring.arrays
    score = _dot(graph, x, arrays["weights"])
    return {"score": score, "rank": _reached(graph, _column(graph, score), arrays["thresholds"])}


def _rounded(graph: Graph, x: str, described: Described) -> dict[str, str]:
    arrays = described.scoring.arrays
    score = graph.plus(_dot(graph, x, arrays["weights"]), arrays["intercept"][0])
    nearest = graph.add("Floor", graph.add("Add", score, graph.array(0.5)))
    first = graph.array(1.0)
    last = graph.array(float(described.n_ranks))
    place = graph.add("Sub", graph.add("Clip", nearest, first, last), graph.array(1.0))
    return {"score": score, "rank": graph.add("Cast", place, to=INT64)}


def _tasks(graph: Graph, x: str, described: Described) -> dict[str, str]:
    return _by_tasks(graph, _dot(graph, x, described.scoring.arrays["weights"]), described)


def _by_tasks(graph: Graph, tasks: str, described: Described) -> dict[str, str]:
    arrays, facts = described.scoring.arrays, described.scoring.facts
    margins = graph.minus(tasks, arrays["thresholds"])
    # (0, margins) cumulated: the scores of the ranks.
    padded = graph.add("Pad", margins, graph.array([0, 1, 0, 0], np.int64), graph.array(0.0))
    scores = graph.add("CumSum", padded, graph.array(1, np.int64))
    score = graph.add("Gather", scores, graph.array(described.n_ranks - 1, np.int64), axis=1)
    if facts["decision"] == "count":
        rank = _reached(graph, margins, np.zeros(described.n_ranks - 1))
    else:
        last = int(facts["tie"] != "low")
        rank = graph.add("ArgMax", scores, axis=1, keepdims=0, select_last_index=last)
    return {"score": score, "rank": rank}


def _classes(graph: Graph, x: str, described: Described) -> dict[str, str]:
    arrays = described.scoring.arrays
    products = _dot(graph, x, arrays["weights"])
    scores = graph.add("Add", products, graph.array(arrays["intercepts"]))
    rank = graph.add("ArgMax", scores, axis=1, keepdims=0)
    return {"scores": scores, "rank": rank}


def _votes(graph: Graph, x: str, described: Described) -> dict[str, str]:
    arrays = described.scoring.arrays
    k = described.n_ranks
    n = arrays["votes"].size
    tiles, d, width = arrays["weights"].shape
    weights = arrays["weights"].transpose(1, 0, 2).reshape(d, tiles * width)[:, :n]
    cuts = arrays["thresholds"].transpose(0, 2, 1).reshape(tiles * width, k - 1)[:n]
    votes = arrays["votes"] if arrays["votes"].any() else np.ones(n, dtype=np.int64)
    scores = graph.add("Unsqueeze", _dot(graph, x, weights), graph.array([2], np.int64))
    reached = graph.add("GreaterOrEqual", scores, graph.array(cuts))
    ranks = graph.add(
        "ReduceSum", graph.add("Cast", reached, to=INT64), graph.array([2], np.int64), keepdims=0
    )
    every = graph.array(np.arange(k), np.int64)
    hits = graph.add("Equal", graph.add("Unsqueeze", ranks, graph.array([2], np.int64)), every)
    # (n, members, k) of 0 and 1, times votes: integers, whose sums are exact.
    weighed = graph.add("Mul", graph.double(hits), graph.array(votes.reshape(-1, 1)))
    tally = graph.add("ReduceSum", weighed, graph.array([1], np.int64), keepdims=0)
    total = float(votes.sum())
    ranked = graph.add("MatMul", tally, graph.array(np.arange(1.0, k + 1).reshape(-1, 1)))
    whole = _flat(graph, ranked)
    score = graph.add("Div", whole, graph.array(total))
    output = described.scoring.facts["output"]
    if output == "plurality":
        return {"score": score, "rank": graph.add("ArgMax", tally, axis=1, keepdims=0)}
    if output == "median":
        sums = graph.add("CumSum", tally, graph.array(1, np.int64))
        half = graph.add("GreaterOrEqual", graph.add("Add", sums, sums), graph.array(total))
        first = graph.add("ArgMax", graph.add("Cast", half, to=INT64), axis=1, keepdims=0)
        return {"score": score, "rank": first}
    zero_based = graph.add("Sub", whole, graph.array(total))
    twice = graph.add("Add", graph.add("Add", zero_based, zero_based), graph.array(total))
    nearest = graph.add("Floor", graph.add("Div", twice, graph.array(2 * total)))
    return {"score": score, "rank": graph.add("Cast", nearest, to=INT64)}


def _kernel(graph: Graph, x: str, described: Described) -> dict[str, str]:
    scoring = described.scoring
    arrays, facts = scoring.arrays, scoring.facts
    gamma, coef0 = (float(value) for value in arrays["constants"])
    vectors = support_matrix(scoring)
    vectors = vectors if isinstance(vectors, np.ndarray) else vectors.toarray()
    vectors = np.pad(vectors, [(0, 0), (0, _width(described) - vectors.shape[1])])
    dots = graph.add("MatMul", x, graph.array(vectors.T))
    if facts["kernel"] == "rbf":
        axis = graph.array([1], np.int64)
        norms = graph.add("ReduceSum", graph.add("Mul", x, x), axis, keepdims=1)
        sums = graph.add("Add", norms, graph.array(arrays["norms"]))
        distances = graph.add("Sub", sums, graph.add("Add", dots, dots))
        positive = graph.add("Max", distances, graph.array(0.0))
        values = graph.add("Exp", graph.times(positive, -gamma))
    elif facts["kernel"] == "poly":
        base = graph.plus(graph.times(dots, gamma), coef0)
        values = graph.add("Pow", base, graph.array(float(facts["degree"])))
    else:
        values = dots
    outputs = graph.add("MatMul", values, graph.array(dense_coefs(scoring).T))
    if facts["rule"] == "tasks":
        return _by_tasks(graph, outputs, described)
    score = _flat(graph, outputs)
    if facts["rule"] == "score":
        return {"score": score}
    return {"score": score, "rank": _reached(graph, outputs, arrays["thresholds"])}


def _forest(graph: Graph, x: str, described: Described) -> dict[str, str]:
    forest, x = _own_forest(graph, x, described)
    return {"score": _flat(graph, tree_ensemble(graph, x, forest))}


def _ordinal_forest(graph: Graph, x: str, described: Described) -> dict[str, str]:
    scoring, k = described.scoring, described.n_ranks
    forest, x = _own_forest(graph, x, described)
    form = Form(k, str(scoring.facts["tasks"]), str(scoring.facts["link"]))
    n = len(forest.trees) // form.n_scores
    parts = (Forest(forest.trees[i * n : (i + 1) * n], False) for i in range(form.n_scores))
    scores = [tree_ensemble(graph, x, part) for part in parts]
    table = of_tasks(graph, form, scores, scoring.arrays["biases"])
    rank = cheapest(graph, table, scoring.arrays["costs"])
    score = {"score": _flat(graph, scores[0])} if scoring.has_one_score else {}
    return {**score, "rank": rank, "probabilities": table}


def _own_forest(graph: Graph, x: str, described: Described) -> tuple[Forest, str]:
    """Return the trees of a learner that follows other operators, and their input."""
    forest = as_forest(replace(described, steps=[], n_features=_width(described)), "onnx")
    if forest.zero_missing:
        zero = graph.add("Equal", x, graph.array(0.0))
        x = graph.add("Where", zero, graph.array(np.nan), x)
    return forest, x


def _width(described: Described) -> int:
    """Return the number of features of the learner."""
    return width_after(described.steps, described.n_features)


_FORMS = {
    "linear": _linear,
    "thresholds": _thresholds,
    "rounded": _rounded,
    "tasks": _tasks,
    "classes": _classes,
    "votes": _votes,
    "kernel": _kernel,
    "stumps": _forest,
    "trees": _forest,
    "ordinal_trees": _ordinal_forest,
}
