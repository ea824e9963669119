"""Result of a comparison of systems: differences, intervals and p-values, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore.metrics.evaluation import Evaluation
from rankcore.metrics.names import greater_is_better
from rankcore.metrics.tables import Table, Tabular, p_text

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Contrast:
    """Comparison of two systems by one measure.

    Parameters
    ----------
    measure, a, b : str
        Names of the measure and of the two systems.
    mean_a, mean_b : float
        Means over the queries, or rows, in which both values are defined.
    difference : float
        ``mean_b - mean_a``.
    low, high : float
        Bootstrap confidence interval of the difference (percentiles).
    p_value : float
        Two-sided p-value of the paired randomisation test.
    p_holm : float
        The same with Holm's correction for all contrasts of the comparison.
    wins, ties, losses : int
        Number of queries, or rows, in which ``b`` is better than, equal to, or worse than ``a``.
        For a loss, such as ``"misranking"``, smaller is better.
    n : int
        Number of queries, or rows, in which both values are defined.
    """

    measure: str
    a: str
    b: str
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    p_value: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    n: int


class Comparison(Tabular):
    """Result of `compare`: a sequence of contrasts, ordered by measure, then systems.

    Parameters
    ----------
    contrasts : list of Contrast
    evaluations : dict of str to Evaluation
        Evaluation of each system.
    confidence_level : float
        Confidence level of the intervals.

    Attributes
    ----------
    contrasts, evaluations, confidence_level
        As above.

    See Also
    --------
    compare
    """

    def __init__(
        self, contrasts: list[Contrast], evaluations: dict[str, Evaluation], confidence_level: float
    ) -> None:
        self.contrasts = contrasts
        self.evaluations = evaluations
        self.confidence_level = confidence_level

    def __iter__(self) -> Iterator[Contrast]:
        return iter(self.contrasts)

    def __len__(self) -> int:
        return len(self.contrasts)

    def __getitem__(self, i: int) -> Contrast:
        return self.contrasts[i]

    def differences(self, contrast: int = 0) -> Floats:
        """Return the differences per query of a contrast.

        Parameters
        ----------
        contrast : int, default=0
            Index of the contrast.

        Returns
        -------
        ndarray, shape (n_queries,)
            ``b - a`` for the queries in which both are defined, in the order of ``a``.
        """
        _, a, b = self._defined(contrast)
        return b - a

    def queries(self, contrast: int = 0) -> NDArray[Any]:
        """Return the ids of the queries of a contrast.

        Parameters
        ----------
        contrast : int, default=0
            Index of the contrast.

        Returns
        -------
        ndarray, shape (n_queries,)
            In the order of `differences`.
        """
        return self._defined(contrast)[0]

    def query_frame(self, contrast: int = 0) -> DataFrame:
        """Convert the values of a contrast to a pandas DataFrame, the largest losses first.

        Parameters
        ----------
        contrast : int, default=0
            Index of the contrast.

        Returns
        -------
        pandas.DataFrame
            One row per query, or per row of the data: ``n_rows``, its number of rows (queries
            only); the values of ``a`` and ``b`` under their names; and ``difference``, ``b - a``.
            Sorted by how much worse ``b`` is than ``a``.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        import pandas

        c = self.contrasts[contrast]
        ids, a, b = self._defined(contrast)
        evaluation = self.evaluations[c.a]
        columns: dict[str, Any] = {}
        if evaluation.sizes is not None:
            size = dict(zip(evaluation.qid.tolist(), evaluation.sizes.tolist(), strict=True))
            columns["n_rows"] = [size[query] for query in ids.tolist()]
        columns |= {c.a: a, c.b: b, "difference": b - a}
        frame = pandas.DataFrame(columns, index=pandas.Index(ids, name=evaluation._ids))
        ascending = greater_is_better(c.measure)
        return frame.sort_values("difference", ascending=ascending, kind="stable")

    def _defined(self, contrast: int) -> tuple[NDArray[Any], Floats, Floats]:
        c = self.contrasts[contrast]
        return defined_pairs(self.evaluations[c.a], self.evaluations[c.b], c.measure)

    def _table(self) -> Table:
        headings = ("measure", "a", "b", "mean a", "mean b", "b - a", self._level, "p", "Holm")
        rows = [
            (
                c.measure,
                c.a,
                c.b,
                f"{c.mean_a:.4f}",
                f"{c.mean_b:.4f}",
                f"{c.difference:+.4f}",
                f"[{c.low:+.4f}, {c.high:+.4f}]",
                p_text(c.p_value),
                p_text(c.p_holm),
                f"{c.wins}/{c.ties}/{c.losses}",
            )
            for c in self.contrasts
        ]
        return Table((*headings, "win/tie/loss"), rows, self._caption, n_names=3)

    def _narrow_table(self) -> Table:
        """Return the table with two lines per contrast, which fits a terminal."""
        headings = ("measure", "a\nb", "mean", f"b - a\n{self._level}", "p\nHolm", "win/tie/loss")
        rows = [
            (row[0], *("\n".join(row[i : i + 2]) for i in (1, 3, 5, 7)), row[9])
            for row in self._table().rows
        ]
        return Table(headings, rows, self._caption, n_names=2)

    @property
    def _level(self) -> str:
        return f"{self.confidence_level:.0%} interval"

    @property
    def _caption(self) -> str:
        measured = next(iter(self.evaluations.values()))
        text = f"paired randomisation test, bootstrap intervals; {measured._caption}"
        queries = [{*evaluation.qid.tolist()} for evaluation in self.evaluations.values()]
        in_all, in_any = set.intersection(*queries), set.union(*queries)
        if len(in_all) < len(in_any):
            text += f"\nonly {len(in_all)} of {len(in_any)} {measured.units} are in all systems"
        return text

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.evaluations)}: {len(self)} contrasts>"

    def to_frame(self) -> DataFrame:
        """Convert contrasts to a pandas DataFrame, one row per contrast.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        import pandas

        return pandas.DataFrame([asdict(contrast) for contrast in self.contrasts])


def defined_pairs(
    a: Evaluation, b: Evaluation, measure: str
) -> tuple[NDArray[Any], Floats, Floats]:
    """Return ids and values of the queries where both systems are defined, ordered as ``a``."""
    place = {query: i for i, query in enumerate(b.qid.tolist())}
    both = [(i, place[query]) for i, query in enumerate(a.qid.tolist()) if query in place]
    if not both:
        raise ValueError("the systems have no query in common")
    first, second = np.array(both).T
    values = a.per_query[measure][first], b.per_query[measure][second]
    defined = ~(np.isnan(values[0]) | np.isnan(values[1]))
    return a.qid[first][defined], values[0][defined], values[1][defined]
