"""Drift: a detector watches the rank loss of a learner, which starts again after a change."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Literal, Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone

from rankcore._core.inputs import n_rows_of, take_rows
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count
from rankcore._core.warning import warn
from rankcore.online.wrapper import StreamWrapper, encode_labels, learn_chunk, rank_losses

# Confidence of river's ADWIN by default, and the number of standard errors by which the mean of the
# latest losses must exceed that of all: at most one false alarm in 100,000 rows (tests/test_drift).
ADWIN_DELTA = 1e-5
STANDARD_ERRORS = 2.0
# Maximum number of latest losses whose mean is compared: more would hide a rise that just began.
MAX_LATEST = 100


class Detector(Protocol):
    """A detector of changes of a mean, as those of `river.drift`."""

    @property
    def drift_detected(self) -> bool:
        """Whether a change was found at the latest value."""

    def update(self, x: float) -> object:
        """Add a value."""


class DriftMonitor(StreamWrapper):
    """A learner of ordered labels that starts again when its rank loss rises.

    Each chunk is predicted before it is learned, and the losses of its rows are passed to a
    detector. At an alarm a new copy of the learner learns the latest rows, and replaces the old
    one.

    Parameters
    ----------
    estimator : learner with partial_fit
        Copied, not changed.
    detector : object, optional
        With a method ``update``, which takes the rank loss of a row divided by its maximum, and an
        attribute ``drift_detected``, as the detectors of `river.drift`. Copied, not changed. None:
        ``river.drift.ADWIN(delta=1e-5)``, which requires ``pip install 'rankcore[online]'``.
    action : {"restart", "warn"} or callable, default="restart"
        What an alarm causes: a new learner, a warning, or a call with this estimator, whose
        ``estimator_`` it may change or replace.
    keep : int, default=100
        Number of rows from which a new learner starts: the latest ones.

    Attributes
    ----------
    estimator_ : estimator
        The current learner.
    drifts_ : list of int
        Number of rows learned at each alarm.
    t_ : int
        Number of rows learned, by all learners.
    ranks_, classes_ : ndarray, shape (n_classes,)
        Labels, lowest rank first, and in ascending order.

    Notes
    -----
    A change is an alarm only if the mean loss of the latest rows, ``keep`` but at most 100, is two
    standard errors above that of all rows since the last start: detectors also find that a learner
    improves.
    Memory: the latest rows, and those of the chunk that they begin in.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> class Above:  # a detector
    ...     drift_detected = False
    ...     mean = 0.0
    ...     def update(self, x):
    ...         self.mean += 0.05 * (x - self.mean)
    ...         self.drift_detected = self.mean > 0.3
    >>> rng = np.random.default_rng(0)
    >>> model = rc.online.DriftMonitor(rc.PRank(), Above(), keep=100)
    >>> for step in range(200):
    ...     X = rng.normal(size=(10, 3))
    ...     y = np.digitize(X[:, 0] if step < 100 else -X[:, 0], [-0.5, 0.5])
    ...     model = model.partial_fit(X, y, classes=[0, 1, 2])
    >>> len(model.drifts_), 1000 < model.drifts_[0] < 1100
    (1, True)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        detector: Detector | None = None,
        *,
        action: Literal["restart", "warn"] | Callable[[DriftMonitor], object] = "restart",
        keep: int = 100,
    ) -> None:
        self.estimator = estimator
        self.detector = detector
        self.action = action
        self.keep = keep

    def _check(self) -> None:
        check_count(self.keep, "keep")
        if self.action not in ("restart", "warn") and not callable(self.action):
            raise ValueError(
                'action must be "restart", "warn" or a function of this estimator; got '
                f"{self.action!r}"
            )

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._watched = _Watched(self._new_detector(), min(self.keep, MAX_LATEST))
        self.drifts_: list[int] = []
        self.t_ = n_rows_of(X)
        self._watched.remember(_Kept(X, y, sample_weight), self.keep)

    def _observe(self, X: Any, y: Any) -> Floats:
        ranks = encode_labels(self.estimator_, y, n_rows_of(X))
        return rank_losses(self.estimator_, X, ranks) / (self.ranks_.size - 1)

    def _follow(self, observed: Floats, X: Any, y: Any, sample_weight: Any) -> None:
        self.t_ += observed.size
        self._watched.remember(_Kept(X, y, sample_weight), self.keep)
        if self._watched.found(observed):
            self.drifts_.append(self.t_)
            self._act()

    def _new_detector(self) -> Detector:
        if self.detector is not None:
            if isinstance(self.detector, type) or not (
                hasattr(self.detector, "update") and hasattr(self.detector, "drift_detected")
            ):
                raise TypeError(
                    "detector must be an object with update and drift_detected, such as "
                    f"river.drift.ADWIN(); got {self.detector!r}"
                )
            return deepcopy(self.detector)
        try:
            from river.drift import ADWIN
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "DriftMonitor(detector=None) uses ADWIN of river, which is not installed: "
                "pip install 'rankcore[online]', or pass a detector"
            ) from error
        detector: Detector = ADWIN(delta=ADWIN_DELTA)
        return detector

    def _act(self) -> None:
        if self.action == "warn":
            warn(f"the rank loss has risen, after {self.t_} rows of the stream")
        elif self.action == "restart":
            new = clone(self.estimator)
            chunks = self._watched.latest(self.keep)
            grew = len({np.shape(one.X)[1] for one in chunks}) > 1
            for one in chunks:
                learn_chunk(new, one.X, one.y, self.ranks_, one.sample_weight, grew)
            self.estimator_ = new
        else:
            self.action(self)
        self._watched.restart(self._new_detector())


class _Kept:
    """Rows of a chunk."""

    def __init__(self, X: Any, y: Any, sample_weight: Any) -> None:
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.n_rows = n_rows_of(X)

    def last(self, n: int) -> _Kept:
        """Return the last rows."""
        rows = np.arange(max(0, self.n_rows - n), self.n_rows)
        weights = None if self.sample_weight is None else np.asarray(self.sample_weight)[rows]
        return _Kept(take_rows(self.X, rows), np.asarray(self.y)[rows], weights)


class _Watched:
    """The latest chunks, the losses since the last start, and their detector."""

    def __init__(self, detector: Detector, n_latest: int) -> None:
        self.n_latest = n_latest
        self.chunks: deque[_Kept] = deque()
        self.n_rows = 0
        self.restart(detector)

    def restart(self, detector: Detector) -> None:
        """Forget the losses, not the rows."""
        self.detector = detector
        self.sums = np.zeros(3)  # the number of losses, their sum, and that of their squares
        self.losses = np.zeros(0)  # the latest ones

    def remember(self, chunk: _Kept, n: int) -> None:
        """Add a chunk; drop those before the latest n rows."""
        self.chunks.append(chunk)
        self.n_rows += chunk.n_rows
        while self.n_rows - self.chunks[0].n_rows >= n:
            self.n_rows -= self.chunks.popleft().n_rows

    def latest(self, n: int) -> list[_Kept]:
        """Return the latest n rows, in the order of the stream."""
        found: list[_Kept] = []
        for chunk in reversed(self.chunks):
            if n <= 0:
                break
            found.append(chunk.last(n) if chunk.n_rows > n else chunk)
            n -= chunk.n_rows
        return found[::-1]

    def found(self, losses: Floats) -> bool:
        """Pass losses to the detector; return whether one was a change for the worse."""
        changed = False
        for loss in losses.tolist():
            self.detector.update(loss)
            changed = changed or bool(self.detector.drift_detected)
        self.sums += losses.size, losses.sum(), (losses**2).sum()
        self.losses = np.append(self.losses, losses)[-self.n_latest :]
        if not changed:
            return False
        n, total, squares = self.sums
        error = np.sqrt(max(squares / n - (total / n) ** 2, 0.0) / self.losses.size)
        return bool(self.losses.mean() > total / n + STANDARD_ERRORS * error)
