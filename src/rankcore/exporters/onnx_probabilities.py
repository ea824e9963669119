"""Probabilities of ranks as ONNX operators: the steps of ``rankcore_calibration.h``, in order.

Engines that conform to IEEE 754 give the same bits for the same score.
"""

from __future__ import annotations

import math

import numpy as np

from rankcore._core.numbers import Floats
from rankcore.boosting.ordinal_model import Form
from rankcore.exporters.described import Calibration
from rankcore.exporters.onnx_operators import INT64, Graph, tree_ensemble
from rankcore.exporters.reduced import Forest, balanced

EQUAL = 2.0**-40  # RC_CALIBRATION_EQUAL_
# As rc_kernel_exp in rankcore.h: the exponential is 0 below LEAST.
LEAST = -708.0
LOG2E, MAGIC = 1.4426950408889634, 6755399441055744.0
LN2_HIGH, LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10


def probabilities(graph: Graph, score: str, calibration: Calibration) -> str:
    """Add the probability of each rank, (n, k), of scores (n)."""
    divided = graph.over(graph.minus(score, calibration.center), calibration.scale)
    z = graph.add("Unsqueeze", divided, graph.array([1], np.int64))
    shares = _isotonic if calibration.knots.size else _cumulative
    each = shares(graph, z, calibration)
    sums = graph.add("CumSum", each, graph.array(1, np.int64))
    last = graph.array([calibration.costs.shape[0] - 1], np.int64)
    return graph.add("Div", each, graph.add("Gather", sums, last, axis=1))


def of_tasks(graph: Graph, form: Form, scores: list[str], biases: Floats) -> str:
    """Add probabilities of ranks, (n, k), of the scores of tasks, each (n, 1): as Python.

    Steps are those of ``rankcore_ordinal.h``.
    """
    if form.cumulative:
        each, total = _between_tasks(graph, scores[0], biases)
    else:
        each, total = _adjacent(graph, form.shared, scores, biases)
    return graph.add("Div", each, total)


def _adjacent(graph: Graph, shared: bool, scores: list[str], biases: Floats) -> tuple[str, str]:
    """Add exponentials of sums of scores, (n, k), and their sum, (n, 1)."""
    columns = [graph.add("Sub", scores[0], scores[0])]
    for j, bias in enumerate(biases.tolist()):
        if shared:
            columns.append(graph.add("Add", columns[-1], graph.minus(scores[0], [[bias]])))
        else:
            columns.append(graph.add("Add", graph.minus(columns[-1], [[bias]]), scores[j]))
    sums = graph.add("Concat", *columns, axis=1)
    most = graph.add("ReduceMax", sums, graph.array([1], np.int64), keepdims=1)
    each = _exponential(graph, graph.add("Sub", sums, most))
    totals = graph.add("CumSum", each, graph.array(1, np.int64), reverse=1)
    return each, graph.add("Gather", totals, graph.array([0], np.int64), axis=1)


def _between_tasks(graph: Graph, score: str, biases: Floats) -> tuple[str, str]:
    """Add differences of logistic functions of the tasks, (n, k), and their sum, (n, 1)."""
    s = graph.minus(score, biases[np.newaxis])
    first = graph.add("Sub", score, score)
    zero = graph.array(0.0)
    unit = graph.array(1.0)
    e = _exponential(graph, graph.add("Neg", graph.add("Abs", s)))
    below = graph.add("Less", s, zero)
    whole = graph.add("Add", unit, e)
    small = graph.add("Div", e, whole)
    large = graph.add("Div", unit, whole)
    over = graph.add("Where", below, small, large)
    under = graph.add("Where", below, large, small)
    overs = [graph.add("Add", first, unit)]
    unders = [first]
    columns = []
    for j in range(biases.size):
        at = graph.array([j], np.int64)
        overs.append(graph.add("Min", graph.add("Gather", over, at, axis=1), overs[-1]))
        unders.append(graph.add("Max", graph.add("Gather", under, at, axis=1), unders[-1]))
        positive = graph.add("Greater", graph.add("Gather", s, at, axis=1), zero)
        rise = graph.add("Sub", unders[-1], unders[-2])
        columns.append(graph.add("Where", positive, rise, graph.add("Sub", overs[-2], overs[-1])))
    each = graph.add("Concat", *columns, overs[-1], axis=1)
    totals = graph.add("CumSum", each, graph.array(1, np.int64))
    return each, graph.add("Gather", totals, graph.array([biases.size], np.int64), axis=1)


def cheapest(graph: Graph, table: str, costs_of_ranks: Floats) -> str:
    """Add the rank of minimum expected cost, int64 (n); the lowest among ties up to rounding."""
    total = ""
    for rank, costs in enumerate(costs_of_ranks):  # in C's order, unlike MatMul
        chances = graph.add("Gather", table, graph.array([rank], np.int64), axis=1)
        added = graph.times(chances, costs)
        total = graph.add("Add", total, added) if total else added
    least = graph.add("ReduceMin", total, graph.array([1], np.int64), keepdims=1)
    room = graph.times(graph.add("Abs", least), EQUAL)
    above = graph.add("Greater", total, graph.add("Add", least, room))
    cheap = graph.add("Cast", graph.add("Not", above), to=INT64)
    return graph.add("ArgMax", cheap, axis=1, keepdims=0)


def _cumulative(graph: Graph, z: str, calibration: Calibration) -> str:
    """Add probabilities of the logistic distribution between the thresholds, (n, k)."""
    bounds = graph.add("Sub", graph.array(calibration.curves[0]), graph.times(z, calibration.slope))
    upper = _beside(graph, bounds, 0, 1, math.inf)
    lower = _beside(graph, bounds, 1, 0, -math.inf)
    # Mirrored in the upper tail, to subtract small numbers.
    mirrored = graph.add("Greater", lower, graph.array(0.0))
    first = graph.add("Where", mirrored, graph.add("Neg", lower), upper)
    second = graph.add("Where", mirrored, graph.add("Neg", upper), lower)
    return graph.add("Sub", _logistic(graph, first), _logistic(graph, second))


def _logistic(graph: Graph, x: str) -> str:
    unit = graph.array(1.0)
    e = _exponential(graph, graph.add("Neg", graph.add("Abs", x)))
    negative = graph.add("Less", x, graph.array(0.0))
    return graph.add("Div", graph.add("Where", negative, e, unit), graph.add("Add", unit, e))


def _exponential(graph: Graph, x: str) -> str:
    """Add exp(x) for x <= 0, as rc_kernel_exp; NaN stays NaN."""
    inside = graph.add("GreaterOrEqual", x, graph.array(LEAST))
    held = graph.add("Where", inside, x, graph.array(LEAST))
    magic = graph.array(MAGIC)
    shifted = graph.add("Add", graph.add("Mul", held, graph.array(LOG2E)), magic)
    n = graph.add("Sub", shifted, magic)
    high = graph.add("Sub", held, graph.add("Mul", n, graph.array(LN2_HIGH)))
    r = graph.add("Sub", high, graph.add("Mul", n, graph.array(LN2_LOW)))
    p = graph.add("Mul", r, graph.array(1.0 / math.factorial(13)))
    for degree in range(12, 2, -1):
        p = graph.add("Mul", r, graph.add("Add", p, graph.array(1.0 / math.factorial(degree))))
    half = graph.add("Add", p, graph.array(0.5))
    rest = graph.add("Mul", graph.add("Mul", r, r), half)
    unit = graph.array(1.0)
    sum_ = graph.add("Add", unit, graph.add("Add", r, rest))
    # 2^n from a table: powers are not exact in all engines.
    powers = graph.array(np.ldexp(1.0, -np.arange(1023)))
    at = graph.add("Cast", graph.add("Neg", n), to=INT64)
    exponential = graph.add("Mul", sum_, graph.add("Gather", powers, at))
    beyond = graph.add("Where", graph.add("IsNaN", x), x, graph.array(0.0))
    return graph.add("Where", inside, exponential, beyond)


def _isotonic(graph: Graph, z: str, calibration: Calibration) -> str:
    """Add differences of piecewise linear curves, (n, k)."""
    knots = calibration.knots
    above = calibration.curves
    if knots.size > 1:
        # The last knot at or below z, except for the very last one, found by a tree whose values
        # go right if they are not below a knot.
        bounds = np.nextafter(knots[1:-1], -np.inf)
        places = np.arange(knots.size - 1, dtype=np.float64)
        tree = balanced(0, bounds, places, 0.0)
        curve = tree_ensemble(graph, z, Forest([tree], False)) if bounds.size else ""
        axis = graph.array([1], np.int64)
        first = graph.array([0], np.int64)
        at = graph.add("Squeeze", graph.add("Cast", curve, to=INT64), axis) if curve else first
        knot = graph.add("Gather", graph.array(knots[:-1, None]), at)
        width = graph.add("Gather", graph.array(np.diff(knots)[:, None]), at)
        low = graph.add("Gather", graph.array(above[:-1]), at)
        rise = graph.add("Gather", graph.array(np.diff(above, axis=0)), at)
        share = graph.add("Div", graph.add("Sub", z, knot), width)
        inner = graph.add("Add", low, graph.add("Mul", rise, share))
    else:
        inner = graph.add("Where", graph.add("IsNaN", z), z, graph.array(above[0]))
    after = graph.add("GreaterOrEqual", z, graph.array(knots[-1]))
    before = graph.add("LessOrEqual", z, graph.array(knots[0]))
    inner = graph.add("Where", after, graph.array(above[-1]), inner)
    inner = graph.add("Where", before, graph.array(above[0]), inner)
    more = _beside(graph, inner, 1, 0, 1.0)
    fewer = _beside(graph, inner, 0, 1, 0.0)
    descends = graph.add("Greater", more, fewer)  # equal curves may cross by rounding
    return graph.add("Where", descends, graph.add("Sub", more, fewer), graph.array(0.0))


def _beside(graph: Graph, table: str, before: int, after: int, value: float) -> str:
    """Append constant columns to a table."""
    pads = graph.array([0, before, 0, after], np.int64)
    return graph.add("Pad", table, pads, graph.array(value))
