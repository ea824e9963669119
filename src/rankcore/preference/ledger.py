"""Calls of a preference: budgets, retries, progress and cached answers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.params import check_count
from rankcore.preference.forms import Batch, Choice, Degrees, Indexed, Places, as_degrees, shown
from rankcore.preference.journal import OpenJournal


class PreferenceError(RuntimeError):
    """A call of the preference failed at all attempts. Its error is the cause of this one.

    Attributes
    ----------
    pair : tuple
        The two items, in the order in which they were shown; for a batch, the first pair.
    attempts : int
        Number of attempts.
    """

    def __init__(self, pair: tuple[Any, ...], attempts: int, what: str):
        super().__init__(
            f"the preference failed {attempts} time{'s' * (attempts != 1)} on the pair "
            f"{pair!r}: {what}. The answers so far are kept; call rank again to continue"
        )
        self.pair = pair
        self.attempts = attempts


@dataclass(frozen=True)
class Retry:
    """Policy for repeating failed calls.

    Parameters
    ----------
    attempts : int
        Maximum number of attempts per call, at least 1.
    wait : float
        Seconds before the second attempt.
    factor : float
        Factor by which the wait grows after each attempt.
    longest : float
        Maximum wait in seconds, unless the error has a ``retry_after``.
    jitter : float
        Random share of the wait, from 0 to 1, so that calls are not repeated simultaneously.
    timeout : float, optional
        Seconds after which a call fails with a `TimeoutError`. An ``async`` call is cancelled; the
        thread of any other call is abandoned. None: no limit.
    on : tuple of exception types
        Errors after which a call is repeated; others are raised at once.

    Raises
    ------
    ValueError, TypeError
        For numbers out of range, or values that are not numbers.

    Notes
    -----
    If the error has an attribute ``retry_after``, the wait is that number of seconds.

    Examples
    --------
    >>> from rankcore.preference import Retry
    >>> retry = Retry(attempts=5, wait=0.5, jitter=0.0)
    >>> [retry.seconds(attempt, TimeoutError()) for attempt in (1, 2, 3)]
    [0.5, 1.0, 2.0]
    """

    attempts: int = 3
    wait: float = 1.0
    factor: float = 2.0
    longest: float = 60.0
    jitter: float = 0.5
    timeout: float | None = None
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        check_count(self.attempts, "attempts")
        # Written so that NaN fails.
        waits = self.wait >= 0 and self.factor >= 1 and self.longest >= 0
        if not (waits and 0 <= self.jitter <= 1):
            raise ValueError(
                "wait and longest must not be negative, factor at least 1 and jitter in [0, 1]; "
                f"found {self}"
            )

        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be positive, or None; found {self.timeout!r}")

    def seconds(self, attempt: int, error: Exception) -> float:
        """Seconds to wait after an attempt (counted from 1) that failed with this error.

        Parameters
        ----------
        attempt : int
        error : Exception

        Returns
        -------
        float
        """
        named = getattr(error, "retry_after", None)
        if named is not None:
            return max(0.0, float(named))
        wait = min(self.longest, self.wait * self.factor ** (attempt - 1))
        # Not from the random numbers of the ranking, which must not depend on failures.
        return wait * (1 - self.jitter * random.random())


# Positions of items in the order shown, and the index of the repeat.
Call = tuple[int, ...]
# Calls that are sent together: one, or up to the size of a `Batch`.
Request = tuple[Call, ...]
# A call by keys of the items.
AnswerKey = tuple[Hashable, ...]
# A judge of several items is stopped if this many first answers name no position.
_USELESS = 20


@dataclass(frozen=True)
class RankingProgress:
    """Progress of a ranking.

    Attributes
    ----------
    calls : int
        Calls made, including failed calls and those in the journal.
    expected_calls : float
        Estimated total number of calls, by `call_plan` and the budget.
    rounds : int
        The current round, from 1.
    round_done, round_total : int
        Calls answered, and required, in this round.
    seconds : float
        Seconds since the ranking started.
    remaining_seconds : float
        Estimated remaining time in seconds. NaN before the first answer.
    """

    calls: int
    expected_calls: float
    rounds: int
    round_done: int
    round_total: int
    seconds: float
    remaining_seconds: float


@dataclass
class Ledger:
    """Requests, answers and cost of a ranking."""

    preference: Any
    items: Sequence[Any]
    keys: Sequence[Hashable]
    answers: dict[AnswerKey, Any]
    repeats: int
    both_orders: bool
    max_calls: int | None
    retry: Retry
    journal: OpenJournal | None = None
    progress: Callable[[RankingProgress], None] | None = None
    expected_calls: float = 0.0
    n_calls: int = 0  # including earlier calls in the journal
    n_reused: int = 0
    n_rounds: int = 0
    # Answers of this ranking, and earlier answers that were counted as reused.
    _fresh: set[AnswerKey] = field(default_factory=set)
    _round: tuple[int, int] = (0, 0)
    _began: float = field(default_factory=time.monotonic)
    _paid_before: int = 0
    _useless: int = 0  # useless answers of a judge of several items; -1 after the first useful one

    def __post_init__(self) -> None:
        if self.journal is not None:
            self.n_calls = self._paid_before = self.journal.calls()

    def open_round(self, i: Places, j: Places) -> list[Request]:
        """Calls that a round requires and the budget allows; all calls of a pair or none."""
        pairs = zip(i.tolist(), j.tolist(), strict=True)
        return self._new((self._calls_of(*pair) for pair in pairs), not self.both_orders)

    def open_calls(self, calls: list[Call]) -> list[Request]:
        """The calls without an answer yet, within the budget."""
        return self._new(([call] for call in calls), False)

    def _new(self, groups: Iterable[list[Call]], either_order: bool) -> list[Request]:
        left = float("inf") if self.max_calls is None else self.max_calls - self.n_calls
        found: dict[AnswerKey, Call] = {}
        for group in groups:
            new: dict[AnswerKey, Call] = {}
            for call in group:
                key = self._key(call)
                keys = (key, _turned(key)) if either_order else (key,)
                known = next((key for key in keys if key in self.answers), None)
                if known is None and not any(key in found for key in keys):
                    new[key] = call
                elif known is not None and known not in self._fresh:
                    self.n_reused += 1
                    self._fresh.add(known)
            if len(found) + len(new) > left:
                break
            found |= new
        calls = list(found.values())
        self.n_rounds += bool(calls)
        self._round = (0, len(calls))
        size = self.preference.size if isinstance(self.preference, Batch) else 1
        size = size or max(1, len(calls))
        return [tuple(calls[k : k + size]) for k in range(0, len(calls), size)]

    def answer(self, call: Call) -> Any:
        """The answer to a call; None if there is none."""
        return self.answers.get(self._key(call))

    def degrees(self, i: Places, j: Places) -> NDArray[np.float64]:
        """Degrees of pairs: means over repeats and orders, or NaN if an answer is missing."""
        degrees = np.empty(i.size)
        for row, (u, v) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
            total, calls = 0.0, self._calls_of(u, v)
            for call in calls:
                known = self._known(call)
                if known is None:
                    total = np.nan
                    break
                total += known if call[0] == u else 1.0 - known
            degrees[row] = total / len(calls) if calls else 0.5
        return degrees

    def affordable(self, n_pairs: int) -> int:
        """Number of pairs, of n_pairs, that the budget allows with all of their calls."""
        if self.max_calls is None:
            return n_pairs
        return min(n_pairs, (self.max_calls - self.n_calls) // (self.repeats << self.both_orders))

    def computed(self, preference: Indexed, i: Places, j: Places) -> Degrees:
        """Degrees of pairs by a computed preference; they count against the budget, too."""
        self.n_rounds += bool(i.size)
        self.n_calls += i.size * (self.repeats << self.both_orders)
        if self.repeats == 1 and not self.both_orders:
            return preference.degrees(i, j)
        total = np.zeros(i.size)
        for _ in range(self.repeats):
            total += preference.degrees(i, j)
            if self.both_orders:
                total += 1.0 - preference.degrees(j, i)
        return total / (self.repeats << self.both_orders)

    def reserve(self, request: Request) -> bool:
        """Count an attempt; False if the budget does not allow it."""
        if self.max_calls is not None and self.n_calls + len(request) > self.max_calls:
            return False
        self.n_calls += len(request)
        return True

    def settle(self, request: Request, attempt: int, answer: Any) -> float | None:
        """Store the answers of a request, and report progress.

        Returns the seconds until the next attempt, if the answer of a judge of several items is
        incomplete and another attempt is left. Until then the incomplete answer counts.
        """
        answers, whole = self._parsed(request, answer)
        found = dict(zip(map(self._key, request), answers, strict=True))
        # Stored here first: if the journal cannot be written, no answer is lost in this process.
        self.answers.update(found)
        if not whole and attempt < self.retry.attempts:
            self.lose(request)
            return self.retry.seconds(attempt, ValueError("the answer is incomplete"))
        self._fresh.update(found)
        if self.journal is not None:
            self.journal.record(found, len(request))
        self._round = (self._round[0] + len(found), self._round[1])
        if self.progress is not None:
            self.progress(self._now())
        return None

    def _parsed(self, request: Request, answer: Any) -> tuple[list[Any], bool]:
        """Validated answers of a request, and whether they are complete.

        PreferenceError if they are not degrees, or if a judge of several items repeatedly names no
        position; the calls are counted.
        """
        if isinstance(self.preference, Choice):
            places, whole = self.preference._parse(answer, len(request[0]) - 1)
            self._useless = -1 if places or self._useless < 0 else self._useless + 1
            if self._useless == _USELESS:
                self.lose(request)
                what = f"the first {_USELESS} answers name no position in the list, from 0; found "
                raise PreferenceError(self.pair(request), 1, what + shown(answer))
            return [places], whole
        values = answer if isinstance(self.preference, Batch) else [answer]
        try:
            return as_degrees(values, len(request)).astype(float).tolist(), True
        except (TypeError, ValueError) as error:
            self.lose(request)
            raise PreferenceError(self.pair(request), 1, str(error)) from error

    def failed(self, request: Request, attempt: int, error: Exception) -> float:
        """Seconds until the next attempt; PreferenceError if there is none."""
        self.lose(request)
        if isinstance(error, self.retry.on) and attempt < self.retry.attempts:
            return self.retry.seconds(attempt, error)
        detail, seconds = str(error), self.retry.timeout
        if not detail and isinstance(error, TimeoutError) and seconds is not None:
            detail = f"no answer within {seconds:g} seconds"
        what = f"{type(error).__name__}: {detail}"
        raise PreferenceError(self.pair(request), attempt, what) from error

    def lose(self, request: Request) -> None:
        """Record calls without an answer."""
        if self.journal is not None:
            self.journal.record({}, len(request))

    def pair(self, request: Request) -> tuple[Any, ...]:
        """The items of the first call."""
        return tuple(self.items[k] for k in request[0][:-1])

    def pairs(self, request: Request) -> list[tuple[Any, ...]]:
        """The items of all calls."""
        return [tuple(self.items[k] for k in call[:-1]) for call in request]

    def _calls_of(self, u: int, v: int) -> list[Call]:
        if self.keys[u] == self.keys[v]:
            return []  # the same item twice
        calls: list[Call] = [(u, v, repeat) for repeat in range(self.repeats)]
        if self.both_orders:
            calls += [(v, u, repeat) for repeat in range(self.repeats)]
        return calls

    def _key(self, call: Call) -> AnswerKey:
        return (*(self.keys[k] for k in call[:-1]), call[-1])

    def _known(self, call: Call) -> Any:
        """The answer to a call, or its converse in the other order if one order suffices."""
        key = self._key(call)
        if key in self.answers or self.both_orders:
            return self.answers.get(key)
        turned = self.answers.get(_turned(key))
        return None if turned is None else 1.0 - turned

    def _now(self) -> RankingProgress:
        seconds = time.monotonic() - self._began
        done = self.n_calls - self._paid_before
        expected = max(self.expected_calls, float(self.n_calls))
        if self.max_calls is not None:
            expected = min(expected, float(self.max_calls))
        remaining = (expected - self.n_calls) * seconds / done if done else float("nan")
        return RankingProgress(
            self.n_calls, expected, self.n_rounds, *self._round, seconds, remaining
        )


def _turned(key: AnswerKey) -> AnswerKey:
    """Key of the same pair in the other order."""
    first, second, repeat = key
    return second, first, repeat
