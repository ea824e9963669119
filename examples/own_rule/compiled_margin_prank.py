"""The rule of margin_prank.py with its compiled update."""

import numpy as np
from margin_kernel import learn
from margin_prank import MarginPRank


class CompiledMarginPRank(MarginPRank):
    """`MarginPRank`, whose rows are learned by margin_kernel.pyx."""

    def update_rows(self, rows, ranks, order):
        predicted = np.empty(order.size, dtype=np.int32)
        sums = (self.weights_sums, self.steps_sums) if self.average else (None, None)
        arrays = (self.weights, self.steps, *sums)
        n = learn(rows.capsule, ranks, order, *arrays, self.t, self.margin, self.scale, predicted)
        return predicted[:n]
