"""A ranking in progress: its method, required pairs, and answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore.preference.forms import Degrees, Indexed, Places, as_indexed
from rankcore.preference.ledger import Ledger, Request
from rankcore.preference.quicksort import Round


class Method(Protocol):
    """A ranking method, which yields pairs in rounds and has an order at any time."""

    repeats_pairs: bool  # whether a pair may be requested in several rounds

    def order(self) -> Places:
        """All items, in the order known so far."""

    def together(self) -> Places:
        """For each item, the number of items that it is not ordered against, with itself."""

    def rounds(self) -> Generator[Round, Degrees, None]:
        """Yield pairs, and receive their degrees; after a NaN no more answers will follow."""


def computed_order(method: Method, degrees: Callable[[Places, Places], Degrees]) -> Places:
    """The order of a method if a function computes the degrees of all pairs."""
    rounds = method.rounds()
    try:
        pairs = next(rounds)
        while True:
            pairs = rounds.send(degrees(*pairs))
    except StopIteration:
        return method.order()


class Run:
    """A method with the pairs of its current round and their answers; the ledger has their cost."""

    def __init__(self, method: Any, ledger: Ledger):
        self.method = method
        self.ledger = ledger
        self.complete = False
        self._computed = as_indexed(ledger.preference, len(ledger.items))
        self._rounds = method.rounds()
        self._open: Any = None
        self._answered: list[tuple[Places, Places, Degrees]] = []

    def requests(self) -> Iterator[list[Request]]:
        """Yield the requests of each round, after the answers to the previous one.

        Yields none for a computed preference: this runs the method, within the budget.
        """
        going_on = self._advance(None)
        while going_on:
            if self._computed is None:
                yield self._requests()
                going_on = self._advance(self._answers())
            else:
                going_on = self._advance(self._degrees(self._computed))

    def close(self) -> None:
        """Pass the answers of an aborted round to the method."""
        if self._open is not None and self._computed is None:
            self._advance(self._answers())
        self._rounds.close()

    def answers(self) -> tuple[Places, NDArray[np.float64]]:
        """All answered pairs, shape (m, 2), and their degrees."""
        if not self._answered:
            return np.empty((0, 2), dtype=np.intp), np.empty(0)
        i, j, degrees = (np.concatenate(part) for part in zip(*self._answered, strict=True))
        if self.method.repeats_pairs and i.size:
            # A pair requested before, in either order, has the same answer again.
            n = int(max(i.max(), j.max())) + 1
            _, kept = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_index=True)
            kept.sort()
            i, j, degrees = i[kept], j[kept], degrees[kept]
        return np.stack([i, j], axis=1), degrees.astype(np.float64)

    def _requests(self) -> list[Request]:
        return self.ledger.open_round(*self._open)

    def _answers(self) -> Any:
        return self.ledger.degrees(*self._open)

    def _degrees(self, preference: Indexed) -> Any:
        i, j = self._open
        n = self.ledger.affordable(i.size)
        degrees: Degrees = self.ledger.computed(preference, i[:n], j[:n])
        if n < i.size:
            degrees = np.concatenate([degrees, np.full(i.size - n, np.nan)])
        return degrees

    def _some_missing(self, degrees: Any) -> bool:
        """Store the degrees of the current round; True if some are missing."""
        i, j = self._open
        answered = ~np.isnan(degrees) if degrees.dtype.kind == "f" else np.ones(i.size, bool)
        missing = not bool(answered.all())
        found = (i[answered], j[answered], degrees[answered]) if missing else (i, j, degrees)
        self._answered.append(found)
        return missing

    def _advance(self, answers: Any) -> bool:
        """Pass the answers of the current round to the method; True if another one follows."""
        missing = answers is not None and self._some_missing(answers)
        self._open = None
        try:
            following = next(self._rounds) if answers is None else self._rounds.send(answers)
        except StopIteration:
            self.complete = not missing
            return False
        self._open = None if missing else following
        return not missing


class CallRun(Run):
    """A run of a method that yields calls and keeps its own answers."""

    def answers(self) -> tuple[Places, NDArray[np.float64]]:
        """All answered pairs, shape (m, 2), and their mean degrees."""
        found: tuple[Places, NDArray[np.float64]] = self.method.pairs()
        return found

    def _requests(self) -> list[Request]:
        return self.ledger.open_calls(self._open)

    def _answers(self) -> Any:
        return [self.ledger.answer(call) for call in self._open]

    def _degrees(self, preference: Indexed) -> Any:
        calls = np.array(self._open, dtype=np.intp)
        limit = self.ledger.max_calls
        n = len(calls) if limit is None else min(len(calls), limit - self.ledger.n_calls)
        self.ledger.n_calls += n
        self.ledger.n_rounds += n > 0
        degrees = preference.degrees(calls[:n, 0], calls[:n, 1]) if n else np.empty(0)
        answers: list[float | None] = degrees.astype(np.float64).tolist()
        return answers + [None] * (len(calls) - n)

    def _some_missing(self, degrees: Any) -> bool:
        return None in degrees


def results_of(run: Run, items: Any) -> dict[str, Any]:
    """Attributes of a ranker after a complete or incomplete ranking."""
    order, together = run.method.order(), run.method.together()
    pairs, degrees = run.answers()
    n = order.size
    place = np.argsort(order)
    upper = place[pairs[:, 0]] < place[pairs[:, 1]]
    agreement = np.tile(np.where(upper, degrees, 1.0 - degrees), 2)
    both = pairs.T.ravel()
    counts = np.bincount(both, minlength=n)
    mean = (np.bincount(both, agreement, n) + 0.5) / (counts + 1)
    unordered = (together - 1) / max(n - 1, 1)
    return {
        "order_": order,
        "complete_": run.complete,
        "n_calls_": run.ledger.n_calls,
        "n_reused_": run.ledger.n_reused,
        "n_rounds_": run.ledger.n_rounds,
        "certainty_": (1 - unordered) * mean + unordered * 0.5,
        "n_answers_": counts,
        "pairs_": pairs,
        "degrees_": degrees,
        "items_": items,
    }
