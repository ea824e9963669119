"""Weights of examples, and the order in which a fit visits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from rankcore._core.numbers import as_weights, exact_sum
from rankcore._core.params import Constraint, Options
from rankcore._core.sources import rows_of_weight
from rankcore._core.warning import warn_of_small_weights
from rankcore._ext.online_loop import learn
from rankcore._ext.rows import Rows

# What the weight of a row is, see `row_weights`.
Meaning = Literal["visits", "factors", "shares"]
# Maximum of a sum of weights.
LARGEST = Fraction(np.finfo(np.float64).max)
# Maximum mean number of visits per row.
MOST_VISITS = 1000
# Larger rows are read from memory in each pass; reading consecutive rows takes half the time of as
# many scattered ones.
CACHED_BYTES = 2**25
TOGETHER = 32
# Rows whose labels are compared with those of their neighbours.
NEIGHBOURS = 10_000


class WeightByLabel(Constraint):
    """A dict from label to weight; a fit checks its entries with the labels."""

    def accepts(self, value: Any) -> bool:
        """Return whether the value is a dict."""
        return isinstance(value, dict)

    accepts_type = accepts

    def __str__(self) -> str:
        return "a dict of label to weight"


# What ``class_weight`` accepts.
CLASS_WEIGHT = Options("balanced") | WeightByLabel() | None


def row_weights(
    sample_weight: Any,
    class_weight: Any,
    ranks: np.ndarray,
    classes: np.ndarray,
    *,
    all_rows: bool,
    meaning: Meaning,
) -> np.ndarray | None:
    """Return sample weight times class weight of each row; None if all are 1.

    Numbers of ``"visits"`` are relative if none exceeds 1 and some lie strictly between 0 and 1, as
    in boosting: they are divided by their mean. ``"factors"`` of steps or of the loss are taken as
    they are; a small mean is warned of. ``"shares"`` of the loss are factors of steps whose scale
    has no meaning: they are divided by the mean of the positive ones. Neither applies to a part of
    a stream, without ``all_rows``.
    """
    if sample_weight is None and class_weight is None:
        return None
    if not all_rows and np.shape(sample_weight) == ranks.shape and not np.any(sample_weight):
        return np.zeros(ranks.size)  # a part of a stream may have no weight
    weights = as_weights(sample_weight, "sample_weight", {"row": ranks.size})
    if class_weight is not None:
        counts = np.bincount(ranks, minlength=classes.size)
        weight_of_row = weights_of_classes(class_weight, counts, classes)[ranks]
        with np.errstate(over="ignore"):
            weights = weight_of_row if weights is None else weights * weight_of_row
        if not np.isfinite(weights).all():
            raise ValueError("sample_weight times class_weight must be finite; scale them")
    if weights is None:
        return None
    facts = WeightFacts.of(weights)
    divisor = facts.divisor(meaning, all_rows)
    return None if facts.all_weigh(divisor) else weights / divisor


@dataclass(frozen=True)
class WeightFacts:
    """Summary of row weights: extremes, sum, and whether some are fractions."""

    n_rows: int
    n_weighted: int  # rows of positive weight
    least: float
    largest: float
    fractions: bool  # whether any weight lies strictly between 0 and 1
    total: Fraction  # exact, so that the mean of equal weights is exact

    @classmethod
    def of(cls, weights: np.ndarray, counts: np.ndarray | None = None) -> WeightFacts:
        """Summarise weights of rows; with ``counts``, of classes with these numbers of rows."""
        if counts is None:
            n_rows, there, total = weights.size, weights, exact_sum(weights)
            n_weighted = int(np.count_nonzero(weights))
        else:
            n_rows, there = int(counts.sum()), weights[counts > 0]
            n_weighted = int(counts[weights > 0].sum())
            weights_and_counts = zip(weights.tolist(), counts.tolist(), strict=True)
            total = sum((Fraction(weight) * n for weight, n in weights_and_counts), Fraction())
        least, largest = float(there.min(initial=np.inf)), float(there.max(initial=0.0))
        fractions = bool(((there > 0) & (there < 1)).any())
        return cls(n_rows, n_weighted, least, largest, fractions, total)

    @classmethod
    def together(cls, parts: Sequence[WeightFacts]) -> WeightFacts:
        """Combine the summaries of disjoint parts of the rows."""
        return cls(
            sum(part.n_rows for part in parts),
            sum(part.n_weighted for part in parts),
            min(part.least for part in parts),
            max(part.largest for part in parts),
            any(part.fractions for part in parts),
            sum((part.total for part in parts), Fraction()),
        )

    def all_weigh(self, value: float) -> bool:
        """Return whether all weights equal a value; True if there are no rows."""
        return self.least >= value >= self.largest

    def divisor(self, meaning: Meaning, all_rows: bool = True) -> float:
        """Return the divisor of the weights; raise if all are 0 or the sum overflows."""
        if not self.largest:
            raise ValueError("class_weight leaves every row without weight")
        if meaning == "visits":
            relative = all_rows and self.largest <= 1 and self.fractions
            return float(self.total / self.n_rows) if relative else 1.0
        if self.total > LARGEST:
            raise ValueError(
                "the sum of the weights must be finite; it overflows: divide them by their mean"
            )
        if not all_rows:
            return 1.0
        mean = float(self.total / self.n_weighted)
        if meaning == "shares":
            return mean
        warn_of_small_weights(mean)
        return 1.0


def class_weights(
    class_weight: Any, counts: np.ndarray, classes: np.ndarray, meaning: Meaning
) -> np.ndarray | None:
    """Return the weight of the rows of each class, as `row_weights` would; None if all are 1."""
    weights = weights_of_classes(class_weight, counts, classes)
    facts = WeightFacts.of(weights, counts)
    divisor = facts.divisor(meaning)
    return None if facts.all_weigh(divisor) else weights / divisor


def weights_of_classes(class_weight: Any, counts: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the weight of each class as ``class_weight`` gives it, before normalisation."""
    if isinstance(class_weight, str):
        return counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))
    weights = np.ones(classes.size)
    if not class_weight:
        return weights
    values = as_weights(list(class_weight.values()), "class_weight", {"class": len(class_weight)})
    assert values is not None
    ranks_of = {label: rank for rank, label in enumerate(classes.tolist())}
    if ranks_of.keys().isdisjoint(class_weight):
        raise ValueError(
            f"class_weight must name classes, {classes.tolist()}; got {list(class_weight)}"
        )
    for label, value in zip(class_weight, values, strict=True):
        if label in ranks_of:  # a fold of a cross-validation may lack a label
            weights[ranks_of[label]] = value
    return weights


@dataclass(frozen=True)
class Examples:
    """Rows of a pass."""

    rows: Rows
    ranks: np.ndarray  # (n_rows,)
    # Rows in the order of their visits; None for all rows in order.
    order: np.ndarray | None
    # (n_rows, ...): factors of the steps of rows, or numbers of times that members take them.
    steps: np.ndarray | None
    weights: np.ndarray | None = None  # (n_rows,), of which only 0 has a meaning

    @property
    def weighted(self) -> Rows:
        """Rows of positive weight, from which automatic scales are computed."""
        return rows_of_weight(self.rows, self.weights)

    @property
    def n_visits(self) -> int:
        """Number of visits."""
        return self.rows.n_rows if self.order is None else self.order.size


@dataclass
class Block:
    """Visits start .. stop - 1 of a pass; losses are recorded at ``marks``."""

    examples: Examples
    start: int
    stop: int
    marks: np.ndarray
    losses: np.ndarray

    def learn(self, model: Any, learner: Any, steps: np.ndarray | None, follow: bool = True) -> int:
        """Learn by a learner's parameters; return the first position not learned.

        ``follow`` is whether its moments follow the rows, if it learns a stream.
        """
        examples = self.examples
        return learn(
            model,
            learner,
            examples.rows,
            examples.ranks,
            examples.order,
            steps,
            self.start,
            self.stop,
            self.marks,
            self.losses,
            follow,
        )


def rows_together(rows: Rows, labels: np.ndarray) -> int:
    """Return the number of consecutive rows that a shuffled pass visits together.

    1 if all rows fit into the caches of a processor, or if neighbours tend to have the same label,
    as the model would then forget the other labels.
    """
    n = labels.size
    if sum(array.nbytes for array in rows.arrays) < CACHED_BYTES or n < 2:
        return 1
    sample = np.arange(0, n - 1, -(-n // NEIGHBOURS))
    counts = np.unique(labels[sample], return_counts=True)[1]
    chance_of_equal = float((counts / sample.size) @ (counts / sample.size))
    alike = float(np.mean(labels[sample] == labels[sample + 1]))
    return TOGETHER if alike < (1 + chance_of_equal) / 2 else 1


class Visits:
    """Rows visited in each pass, in order.

    ``weights`` are the numbers of visits of each row, with fractions drawn in each pass; None: one
    each. A pass over a part of a stream, ``in_part``, may visit no row. A shuffled pass over rows
    without weights visits ``n_together`` neighbours together, in a random order.
    """

    def __init__(
        self,
        n_rows: int,
        weights: np.ndarray | None,
        shuffle: bool,
        generator: np.random.Generator,
        in_part: bool = False,
        n_together: int = 1,
    ) -> None:
        self._in_part, self._n_together = in_part, n_together
        self._n, self._weights, self._shuffle = n_rows, weights, shuffle
        self._generator = generator
        if weights is not None:
            with np.errstate(over="ignore"):
                total = weights.sum()
            if total > MOST_VISITS * n_rows:
                raise ValueError(
                    "for this learner a weight is a number of visits; weights must be at "
                    f"most {MOST_VISITS} on average; got {(weights / n_rows).sum():.3g}: scale "
                    "them"
                )
        self._order: np.ndarray | None = None
        if weights is not None or (shuffle and n_together == 1):
            self._order = self._drawn()

    def _drawn(self) -> np.ndarray:
        rows = np.arange(self._n, dtype=np.int32)
        if self._weights is None:
            return rows
        whole = np.floor(self._weights)
        part = self._weights - whole
        times = whole.astype(np.int64)
        if part.any():
            times += self._generator.random(self._n) < part
        if not times.any() and not self._in_part:
            raise ValueError(
                "for this learner a weight is a number of visits; a pass must visit some row, but "
                f"visits none with weights of {self._weights.mean():.3g} on average: scale them"
            )
        return np.repeat(rows, times)

    def next(self) -> np.ndarray | None:
        """Return the rows of the next pass; None for all rows in order."""
        if self._weights is not None and (self._weights % 1).any():
            self._order = self._drawn()
        if self._shuffle and self._weights is None and self._n_together > 1:
            return self._in_blocks()
        if self._shuffle:
            assert self._order is not None
            self._generator.shuffle(self._order)
        return self._order

    def _in_blocks(self) -> np.ndarray:
        """Return all rows: blocks from a random offset, in random order, each shuffled."""
        size, n = self._n_together, self._n
        phase = int(self._generator.integers(size))
        starts = np.arange(phase - size, n, size, dtype=np.int64)
        self._generator.shuffle(starts)
        rows = starts[:, None] + self._generator.permutation(size)
        return rows[(rows >= 0) & (rows < n)].astype(np.int32)


def as_steps(weights: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return visits and step factors for a learner whose steps are multiplied by weights.

    Rows of weight 0 are not visited.
    """
    if weights is None or weights.all():
        return None, weights
    return (weights > 0).astype(np.float64), weights
