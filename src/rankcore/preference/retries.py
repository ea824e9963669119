"""Failures of calls, and policies for repeating them."""

from __future__ import annotations

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


class OutOfBudget(BaseException):
    """No call is left, which no policy of retries should catch."""


def make_retry(retry: Any) -> Any:
    """Return a tenacity policy from a number of attempts, a policy, or None for the default.

    None if there is one attempt only, as without tenacity.
    """
    if retry is not None and not isinstance(retry, int):
        if not hasattr(retry, "copy") or not hasattr(retry, "stop"):
            raise TypeError(
                "retry must be None, a number of attempts or a policy of tenacity, such as "
                f"tenacity.Retrying(...); found {retry!r}"
            )
        return retry
    if isinstance(retry, bool) or (retry is not None and retry < 1):
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
        named = getattr(state.outcome.exception(), "retry_after", None)
        return backoff(state) if named is None else max(0.0, float(named))

    return tenacity.Retrying(
        stop=tenacity.stop_after_attempt(attempts),
        wait=pause,
        retry=tenacity.retry_if_exception(is_passing),
        reraise=True,
    )


def is_passing(error: BaseException) -> bool:
    """Return whether another attempt may succeed: not after an error of the judge's own code."""
    return isinstance(error, Exception) and not isinstance(error, (*_BUGS, OutOfBudget))


def as_async(retry: Any) -> Any:
    """Return a policy for calls that are awaited."""
    import tenacity

    if isinstance(retry, tenacity.AsyncRetrying):
        return retry.copy()
    return tenacity.AsyncRetrying(
        stop=retry.stop, wait=retry.wait, retry=retry.retry, reraise=retry.reraise
    )
