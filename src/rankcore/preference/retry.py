"""Calls that fail: when they are made again, and the error when they are not."""

from __future__ import annotations

import random
from dataclasses import dataclass
from numbers import Integral
from typing import Any


class PreferenceError(RuntimeError):
    """A call of the preference failed for good. The error it raised is the cause of this one.

    Attributes
    ----------
    pair : tuple
        The two items, the one that was shown first before the other; of a batch, the first pair.
    attempts : int
        How often it was tried.
    """

    def __init__(self, pair: tuple[Any, ...], attempts: int, what: str):
        super().__init__(
            f"the preference failed {attempts} time{'s' * (attempts != 1)} on the pair "
            f"{pair!r}: {what}. The answers so far are kept: rank again to go on"
        )
        self.pair = pair
        self.attempts = attempts


@dataclass(frozen=True)
class Retry:
    """When and how often a call that failed is made again.

    Parameters
    ----------
    attempts : int
        How often a call is made at most, at least 1.
    wait : float
        Seconds before the second attempt.
    factor : float
        By how much the wait grows from attempt to attempt.
    longest : float
        Seconds that no wait exceeds, unless the error has a ``retry_after``.
    jitter : float
        Share of the wait that is random, from 0 to 1, so that calls do not come back together.
    timeout : float, optional
        Seconds after which a call counts as failed, by a `TimeoutError`. It is broken off if it is
        ``async``; else each call has a thread, which is left to itself. None: never.
    on : tuple of exception types
        Errors after which a call is made again; others are raised at once.

    Raises
    ------
    ValueError
        For numbers out of these ranges.

    Notes
    -----
    An error with an attribute ``retry_after``, in seconds, waits that long instead.

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
        if not isinstance(self.attempts, Integral) or self.attempts < 1:
            raise ValueError(f"attempts must be an integer from 1 on; found {self.attempts!r}")
        # In a form that NaN fails.
        waits = self.wait >= 0 and self.factor >= 1 and self.longest >= 0
        if not (waits and 0 <= self.jitter <= 1):
            raise ValueError(
                "wait and longest must not be negative, factor at least 1 and jitter in [0, 1]; "
                f"found {self}"
            )

        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be positive, or None; found {self.timeout!r}")

    def seconds(self, attempt: int, error: Exception) -> float:
        """How long to wait after an attempt, counted from 1, that ended in this error.

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
        # Not from the random numbers of the ranking, which must not depend on what failed.
        return wait * (1 - self.jitter * random.random())
