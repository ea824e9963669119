"""Failures of calls, and policies for repeating them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import isfinite
from numbers import Real
from typing import Any

# Errors of the code of a judge, which another attempt would meet again.
_BUGS = (TypeError, AttributeError, NameError, ImportError, NotImplementedError)
_ATTEMPTS, _LONGEST_WAIT = 3, 60.0


class PreferenceError(RuntimeError):
    """A call of the preference failed at all attempts. Its error is the cause of this one.

    Attributes
    ----------
    pair : tuple
        The items, in the order in which they were shown; for a batch, the first pair.
    attempts : int
        Number of attempts.
    """

    def __init__(self, pair: tuple[Any, ...], attempts: int, what: str):
        super().__init__(
            f"the preference failed {attempts} time{'s' * (attempts != 1)} on the pair "
            f"{pair!r}: {what}. The answers so far are kept; call rank again to continue, or "
            "return None for a pair that cannot be compared"
        )
        self.pair, self.attempts, self._what = pair, attempts, what

    def __reduce__(self) -> Any:
        return type(self), (self.pair, self.attempts, self._what)


class AnswerError(ValueError):
    """An answer is not of the expected form; the call is repeated."""


def make_retry(retry: Any) -> Any:
    """Return a tenacity policy from a number of attempts, a policy, or None for the default.

    None if there is one attempt only, as without tenacity.
    """
    if isinstance(retry, bool) or not isinstance(retry, int | None):
        _check_policy(retry)
        return retry
    if retry is not None and retry < 1:
        raise ValueError(f"retry must be at least one attempt; found {retry!r}")
    attempts = _ATTEMPTS if retry is None else retry
    if attempts == 1:
        return None
    try:
        import tenacity
    except ImportError as error:
        if retry is None:
            return None
        raise ImportError(
            f"retry={retry} requires tenacity: pip install 'rankcore[judges]', or retry=1"
        ) from error
    backoff = tenacity.wait_random_exponential(multiplier=1.0, max=_LONGEST_WAIT)

    def pause(state: Any) -> float:
        named = named_wait(state.outcome.exception())
        return backoff(state) if named is None else named

    return tenacity.Retrying(
        stop=tenacity.stop_after_attempt(attempts),
        wait=pause,
        retry=tenacity.retry_if_exception(lambda error: not isinstance(error, _BUGS)),
        reraise=True,
    )


def _check_policy(retry: Any) -> None:
    try:
        from tenacity import Retrying
    except ImportError:
        usable = False
    else:
        usable = isinstance(retry, Retrying)
    if not usable:
        raise TypeError(
            "retry must be None, a number of attempts or a tenacity.Retrying(...), which serves "
            f"async preferences as well; found {retry!r}"
        )


def named_wait(error: BaseException) -> float | None:
    """Return the seconds to wait that an error names; None if it names none.

    It is its ``retry_after`` or the header Retry-After of its ``response``: seconds, a duration, a
    time, or a date of HTTP.
    """
    named = getattr(error, "retry_after", None)
    if named is None:
        headers = getattr(getattr(error, "response", None), "headers", None)
        get = getattr(headers, "get", None)
        named = get("Retry-After") if callable(get) else None
    if isinstance(named, timedelta):
        named = named.total_seconds()
    elif isinstance(named, str | datetime):
        named = _seconds(named)
    if not isinstance(named, Real) or not isfinite(named):
        return None
    return max(0.0, float(named))


def _seconds(named: str | datetime) -> float | None:
    """Return the seconds of a number in a string, or until a time."""
    if isinstance(named, str):
        try:
            return float(named)
        except ValueError:
            pass
        try:
            named = parsedate_to_datetime(named)
        except ValueError:
            return None
    zone = named.tzinfo or UTC
    return (named.replace(tzinfo=zone) - datetime.now(zone)).total_seconds()
