"""Models of `rankcore.OrdinalBoost`: sums of trees for each threshold between ranks, and biases.

Ranks are r = 0 .. k-1; task j = 1 .. k-1 has the score ``s_j(x) = f(x) - b_j`` (``tasks="shared"``)
or ``s_j(x) = g_j(x) - b_j`` ("vector"):

* ``sums``: a `TreeSum` for each score, f or g_1 .. g_{k-1}, each with one tree per round. With two
  ranks there is one score in both cases. A tree without nodes is one leaf of value 0.
* The trees of a round differ in the values of their leaves only.
* A score is the sum of the values of its trees, added in order from 0; values include the learning
  rate. The biases are the only constants.
* ``biases``: ``b_1 .. b_{k-1}`` after 0, 1, .. rounds, shape (k - 1,) each; the model has the last.
  They change only with "shared" tasks of three ranks or more.
* ``link="adjacent"``: ``log(p_r / p_{r-1}) = s_r``: with ``S_r = s_1 + .. + s_r`` and S_0 = 0,
  ``p_r = exp(S_r) / (exp(S_0) + .. + exp(S_{k-1}))``. "cumulative", for shared tasks only:
  ``P(rank >= j) = 1 / (1 + exp(-s_j))``, with ascending biases.
  ``src/_ext/ordinal_loss.pyx`` computes both.

Model files have the trees of the first score by round, then those of the second, and so on;
``biases`` has n_rounds + 1 rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.model_spec import Field, read_fields
from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore._ext import ordinal_loss
from rankcore._ext.rows import Rows
from rankcore._ext.trees import Trees, add_sums
from rankcore.boosting._tree_model import Tree, TreeSum

MAX_RANKS: int = ordinal_loss.MAX_RANKS


@dataclass(frozen=True)
class Form:
    """Scores of a model, and their probabilities."""

    n_ranks: int
    tasks: str  # "shared" or "vector"
    link: str  # "adjacent" or "cumulative"

    @property
    def n_tasks(self) -> int:
        """Number of thresholds between ranks."""
        return self.n_ranks - 1

    @property
    def shared(self) -> bool:
        """Whether all tasks share one score."""
        return self.tasks == "shared"

    @property
    def cumulative(self) -> bool:
        """Whether the link is that of cumulative logits."""
        return self.link == "cumulative"

    @property
    def n_scores(self) -> int:
        """Number of scores, and of trees per round."""
        return 1 if self.shared else self.n_tasks

    def probabilities(self, scores: Floats, biases: Floats) -> Floats:
        """Return the probability of each rank, shape (n, k), for scores of shape (n_scores, n)."""
        n = scores.shape[1]
        table = np.empty((n, self.n_ranks))
        ordinal_loss.probabilities(scores, biases, self.shared, self.cumulative, 0, n, table)
        return table


@dataclass
class OrdinalSum:
    """Trees of each score and round, with the biases after each round."""

    form: Form
    sums: list[TreeSum]
    biases: list[Floats]
    _trees: tuple[int, Trees] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def empty(cls, form: Form, n_features: int, zero_missing: bool, biases: Floats) -> Self:
        """Return a model without rounds."""
        sums = [TreeSum(n_features, zero_missing) for _ in range(form.n_scores)]
        return cls(form, sums, [biases])

    def __len__(self) -> int:
        return len(self.biases) - 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_trees": None}

    def add(self, trees: list[Tree], biases: Floats) -> None:
        """Add a round."""
        for tree_sum, tree in zip(self.sums, trees, strict=True):
            tree_sum.add(tree)
        self.biases.append(biases)

    def first(self, n: int) -> OrdinalSum:
        """Return a copy of the first n rounds."""
        return OrdinalSum(
            self.form, [tree_sum.first(n) for tree_sum in self.sums], self.biases[: n + 1]
        )

    def together(self) -> TreeSum:
        """Return the trees of all scores, in the order of model files."""
        first = self.sums[0]
        trees = [tree for tree_sum in self.sums for tree in tree_sum.trees]
        return TreeSum(first.n_features, first.zero_missing, trees)

    def importances(self) -> Floats:
        """Return the fraction of each feature in the sum of the gains of all splits."""
        return self.together().importances()

    def zeros(self, n_rows: int) -> Floats:
        """Return the scores of rows before the first round."""
        return np.zeros((len(self.sums), n_rows))

    def score(self, rows: Rows) -> Floats:
        """Score rows; shape (n_scores, n_rows)."""
        n = len(self)
        if self._trees is None or self._trees[0] != n:
            self._trees = n, self._as_trees(self.together())
        scores = np.zeros((len(self.sums), rows.n_rows))
        add_sums(rows, self._trees[1], scores)
        return scores

    def add_member(self, i: int, rows: Rows, scores: Floats) -> None:
        """Add the trees of round i to the scores of rows."""
        first = self.sums[0]
        trees = [tree_sum.trees[i] for tree_sum in self.sums]
        add_sums(rows, self._as_trees(TreeSum(first.n_features, first.zero_missing, trees)), scores)

    def _as_trees(self, whole: TreeSum) -> Trees:
        return whole.packed().trees(whole.n_features, whole.zero_missing, len(self.sums))

    def probabilities(self, scores: Floats, n_rounds: int | None = None) -> Floats:
        """Return the probability of each rank for scores after ``n_rounds``, by default all."""
        biases = self.biases[-1 if n_rounds is None else n_rounds]
        return self.form.probabilities(scores, biases)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        return {**self.together().to_arrays(), "biases": np.array(self.biases)}

    def scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        """Return the scoring form of the arrays of `to_arrays` and costs."""
        trees, form = self.together().scoring(arrays), self.form
        own = {"biases": self.biases[-1], "costs": arrays["costs"]}
        # With two ranks the only score is that of all tasks.
        facts = {
            **trees.facts,
            "tasks": "shared" if form.n_scores == 1 else "vector",
            "link": form.link,
        }
        return Scoring("ordinal_trees", {**trees.arrays, **own}, facts)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], form: Form, n_features: int, zero_missing: bool
    ) -> Self:
        """Restore from the arrays of a model file; raise ValueError if they are invalid."""
        whole = TreeSum.from_arrays(arrays, n_features, zero_missing)
        fields = {"biases": Field(("states", form.n_tasks))}
        biases = read_fields(arrays, fields)["biases"]
        n = len(biases) - 1
        if n < 0 or len(whole) != n * form.n_scores:
            raise ValueError(
                f"the number of trees must be {form.n_scores} times that of rounds; got "
                f"{len(whole)} trees and {len(biases)} rows of biases (rounds + 1)"
            )
        whole.packed().trees(n_features, zero_missing, form.n_scores)  # checks their structure
        if form.cumulative and (np.diff(biases, axis=1) < 0).any():
            raise ValueError("the array biases must ascend")
        parts = [whole.trees[i * n : (i + 1) * n] for i in range(form.n_scores)]
        return cls(form, [TreeSum(n_features, zero_missing, part) for part in parts], list(biases))
