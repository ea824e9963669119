"""PRank with a margin as a rule in Python: a threshold moves unless it is beaten by the margin.

``rankcore cv ratings.svm --model margin_prank:MarginPRank --set margin=0.5`` compares it with
others, from this folder.
"""

import numpy as np

import rankcore as rc


class MarginPRank(rc.PythonRule):
    """PRank that learns until each threshold is on its side of the projection by ``margin``."""

    def __init__(self, margin=1.0, **params):
        super().__init__(**params)
        self.margin = margin

    def update(self, x, rank):
        score = x @ self.weights
        sides = np.where(np.arange(self.steps.size) < rank, 1, -1)
        moves = sides * (sides * (score - self.thresholds) <= self.margin)
        self.weights += moves.sum() * x
        self.steps -= moves
