"""One ranking under way: a method on one side, what answers its pairs on the other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore.preference.forms import Degrees, Indexed, Places
from rankcore.preference.ledger import Call, Ledger, Request
from rankcore.preference.quicksort import Round


class Method(Protocol):
    """A method that finds an order: yields pairs in rounds, and has an order at any time."""

    repeats_pairs: bool  # whether a pair may come up in several rounds

    def rounds(self) -> Generator[Round, Degrees, None]:
        """Yield pairs, and receive their degrees; NaN is no answer, and there will be no more."""

    def order(self) -> Places:
        """All items, in the order that is known so far."""

    def together(self) -> Places:
        """For each item, how many there are that it has no order with, itself included."""


class CallMethod(Protocol):
    """A method that yields calls in batches, each with its order of presentation and repeat."""

    def rounds(self) -> Generator[list[Call], Sequence[float | None], None]:
        """Yield calls, and receive their answers; None is no answer, and there will be no more."""

    def order(self) -> Places:
        """All items, in the order that is known so far."""

    def together(self) -> Places:
        """For each item, how many there are that it has no order with, itself included."""

    def pairs(self) -> tuple[Places, NDArray[np.float64]]:
        """All pairs with an answer, shape (m, 2), and their mean degrees."""


def computed_order(method: Method, degrees: Callable[[Places, Places], Degrees]) -> Places:
    """The order of a method, of a function that gives the degrees of all its pairs."""
    rounds = method.rounds()
    try:
        pairs = next(rounds)
        while True:
            pairs = rounds.send(degrees(*pairs))
    except StopIteration:
        return method.order()


class CallRun:
    """A method that yields calls, and the answers; as `Run`."""

    def __init__(self, method: CallMethod, ledger: Ledger):
        self.method = method
        self.ledger = ledger
        self.complete = False
        self._rounds = method.rounds()
        self._open: list[Call] = []

    def requests(self, size: int | None) -> Iterator[list[Request]]:
        """Yield the requests of each batch; as `Run.requests`."""
        going_on = self._advance(None)
        while going_on:
            yield self.ledger.open_calls(self._open, size)
            going_on = self._advance([self.ledger.answer(call) for call in self._open])

    def compute(self, preference: Indexed) -> None:
        """Run the method on a preference that is computed, as far as the budget goes."""
        going_on = self._advance(None)
        while going_on:
            calls = np.array(self._open, dtype=np.intp)
            limit = self.ledger.max_calls
            n = len(calls) if limit is None else min(len(calls), limit - self.ledger.n_calls)
            self.ledger.n_calls += n
            self.ledger.n_rounds += n > 0
            degrees = preference.degrees(calls[:n, 0], calls[:n, 1]) if n else np.empty(0)
            answers: list[float | None] = degrees.astype(np.float64).tolist()
            going_on = self._advance(answers + [None] * (len(calls) - n))

    def close(self) -> None:
        """Hand the method what is known of a batch that was broken off."""
        if self._open and self.ledger.keys:
            self._advance([self.ledger.answer(call) for call in self._open])
        self._rounds.close()

    def answers(self) -> tuple[Places, NDArray[np.float64]]:
        """All pairs with an answer, shape (m, 2), and their mean degrees."""
        return self.method.pairs()

    def _advance(self, answers: list[float | None] | None) -> bool:
        """Hand over the answers of the open batch; whether another one follows."""
        self._open = []
        missing = answers is not None and None in answers
        try:
            calls = next(self._rounds) if answers is None else self._rounds.send(answers)
        except StopIteration:
            self.complete = not missing
            return False
        if missing:
            return False
        self._open = calls
        return True


class Run:
    """A method, the pairs it requested, and the answers; the ledger has their cost."""

    def __init__(self, method: Method, ledger: Ledger):
        self.method = method
        self.ledger = ledger
        self.complete = False
        self._rounds = method.rounds()
        self._open: Round | None = None
        self._called = False  # rather than computed
        self._answered: list[tuple[Places, Places, Degrees]] = []

    def requests(self, size: int | None) -> Iterator[list[Request]]:
        """Yield requests of at most ``size`` calls, round by round, each after its answers."""
        self._called = True
        going_on = self._advance(None)
        while going_on:
            assert self._open is not None
            yield self.ledger.open_round(*self._open, size)
            going_on = self._advance(self.ledger.degrees(*self._open))

    def compute(self, preference: Indexed) -> None:
        """Run the method on a preference that is computed, as far as the budget goes."""
        going_on = self._advance(None)
        while going_on:
            assert self._open is not None
            i, j = self._open
            n = self.ledger.affordable(i.size)
            degrees: Degrees = self.ledger.computed(preference, i[:n], j[:n])
            if n < i.size:
                degrees = np.concatenate([degrees, np.full(i.size - n, np.nan)])
            going_on = self._advance(degrees)

    def close(self) -> None:
        """Hand the method what is known of a round that was broken off."""
        if self._open is not None and self._called:
            self._advance(self.ledger.degrees(*self._open))
        self._rounds.close()

    def answers(self) -> tuple[Places, NDArray[np.float64]]:
        """All pairs with an answer, shape (m, 2), and their degrees."""
        if not self._answered:
            return np.empty((0, 2), dtype=np.intp), np.empty(0)
        i, j, degrees = (np.concatenate(part) for part in zip(*self._answered, strict=True))
        if self.method.repeats_pairs and i.size:
            # A pair that came up before, in this order or the other, is answered as it was then.
            n = int(max(i.max(), j.max())) + 1
            _, kept = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_index=True)
            kept.sort()
            i, j, degrees = i[kept], j[kept], degrees[kept]
        return np.stack([i, j], axis=1), degrees.astype(np.float64)

    def _advance(self, degrees: Degrees | None) -> bool:
        """Hand over the degrees of the open round; whether another one follows."""
        missing = False
        if self._open is not None and degrees is not None:
            (i, j), self._open = self._open, None
            answered = ~np.isnan(degrees) if degrees.dtype.kind == "f" else np.ones(i.size, bool)
            missing = not answered.all()
            if missing:
                self._answered.append((i[answered], j[answered], degrees[answered]))
            else:
                self._answered.append((i, j, degrees))
        try:
            pairs = next(self._rounds) if degrees is None else self._rounds.send(degrees)
        except StopIteration:
            self.complete = not missing
            return False
        if missing:
            return False
        self._open = pairs
        return True
