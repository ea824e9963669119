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


def make_retry(retry: Any) -> Any:
    """Return a tenacity policy from a number of attempts, a policy, or None for the default.

    None if there is one attempt only, as without tenacity.
    """
    try:
        import tenacity
    except ImportError as error:
        if retry is None or retry == 1:
            return None
        raise ImportError(
            f"retry={retry} requires tenacity: pip install 'rankcore[judges]', or retry=1"
        ) from error
    if isinstance(retry, tenacity.Retrying):
        return retry
    if retry is not None and (isinstance(retry, bool) or not isinstance(retry, int) or retry < 1):
        raise TypeError(
            "retry must be None, a number of attempts >= 1 or a tenacity.Retrying(...), which "
            f"serves async preferences as well; got {retry!r}"
        )
    return tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_ATTEMPTS if retry is None else retry),
        wait=tenacity.wait_random_exponential(multiplier=1.0, max=_LONGEST_WAIT),
        retry=tenacity.retry_if_exception(lambda error: not isinstance(error, _BUGS)),
        reraise=True,
    )
