"""One pass of a pairwise perceptron over its queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import pairs as kernels
from rankcore._ext.held_signals import raise_signals
from rankcore.progress import Progress, report
from rankcore.ranking._pairs import Pairing
from rankcore.ranking._perceptron_state import PairwiseState

# Pairs to look at, or as much other work, between two looks at pending signals: some milliseconds.
BUDGET = 500_000


def run_pass(
    model: Any,
    data: kernels.PairData,
    pairing: Pairing,
    sequence: NDArray[np.int64],
    quality: Callable[[Any], float] | None,
    passes: tuple[int, int] = (1, 1),
) -> None:
    """Visit queries of a pairing in the order of ``sequence``, and log the figures in the model.

    ``quality`` is the criterion for members of the committee, if any. Raises ValueError if weights,
    scores or its values are not finite, or if the hypotheses need more than ``memory_limit``.
    """
    state: PairwiseState = model._state
    n_queries = pairing.n_pairs.size
    steps = pairing.finite_steps(model.balance == "query")
    units = np.ones(n_queries) if model.count == "pair" else 1.0 / pairing.n_pairs
    record = state.log[-1]
    before, base = state.tally(), list(record)
    position, bound = 0, state.bind(model.margin)
    while True:
        raise_signals()
        position, outcome = kernels.learn(
            bound, data, sequence, position, steps, units, state.bar(), BUDGET
        )
        if outcome == kernels.OUTCOMES["candidate"]:
            weights = np.empty(state.weights.size)
            count = kernels.candidate(bound, data, weights)
            state.offer(weights, count, quality)
            continue
        if outcome == kernels.OUTCOMES["full"]:
            state.grow(int(model.memory_limit))
            bound = state.bind(model.margin)
            continue
        if outcome == kernels.OUTCOMES["overflowed"]:
            raise ValueError(
                "the scores overflowed: X or its sample weights are too large; scale X, for "
                "example with sklearn.preprocessing.StandardScaler"
            )
        now = state.tally()
        record[:3] = [base[k] + now[k] - before[k] for k in range(2)] + [now[1] + 1]
        record[3] = base[3] + position
        share = record[1] / max(record[0], 1)
        what, total = "share of mistakes", sequence.size
        report(Progress(*passes, position, total, share, what, "queries"))
        if outcome == kernels.OUTCOMES["reached"]:
            break
    if not (np.isfinite(state.weights).all() and np.isfinite(state.sums).all()):
        raise ValueError(
            "the weights overflowed: X or its sample weights are too large; scale X, for "
            "example with sklearn.preprocessing.StandardScaler"
        )
