"""Checkpoints of ``rankcore train``, to resume interrupted fits."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rankcore._core.replacing import Workshop, remove_abandoned
from rankcore.cli.terminal import complain

if TYPE_CHECKING:
    from rankcore._core.sources import Position
    from rankcore.cli.registry import Learner
    from rankcore.cli.source import Source

# Minimum seconds between two checkpoints, written at the end of a pass.
CHECKPOINT_SECONDS = 30.0
# Parameters that may change on resuming, because the model does not depend on them.
FREE = ("n_jobs", "verbose", "memory_limit")


FORMAT = "rankcore checkpoint"
POSITION = "position.json"
# Two folders for models, used in turn: one is complete while the other is written.
PLACES = [(f"model-{i}.rankcore", f"best-{i}.rankcore") for i in range(2)]


def checkpoint_of(model: Path) -> Path:
    """The checkpoint directory of a model file."""
    return Path(f"{model}.checkpoint")


class Checkpoint:
    """A directory from which a fit can be resumed: a model and its position.

    Nothing is saved if the source cannot be read again.
    """

    def __init__(self, folder: Path, source: Source, resume: bool) -> None:
        self.folder, self._source, self._resume = folder, source, resume
        self.saved = False
        self._last = monotonic()
        self._position = folder / POSITION
        self._place = 0
        if os.path.lexists(self._position):
            self._read()
            return
        if resume:
            raise ValueError(f"--resume requires {folder}, which an interrupted train leaves")
        if os.path.lexists(folder) and not _is_folder(folder):
            raise ValueError(f"{folder} is not a directory; train keeps its checkpoint there")
        taken = [name for names in PLACES for name in names if os.path.lexists(folder / name)]
        if taken:
            raise ValueError(
                f"{folder} has {taken[0]} and no {POSITION}, so it is not a checkpoint: move it, "
                "or choose another MODEL"
            )

    @contextmanager
    def pausing(self, estimator: Any, learner: Learner) -> Iterator[list[Any]]:
        """Callbacks for a fit in the body, which saves its result; then remove the checkpoint.

        Ctrl-C is handled when the state is consistent; after the last pass, when all is saved.
        """
        from rankcore._core.monitor import Pauses
        from rankcore._ext.held_signals import signals_held

        if not getattr(estimator, "_in_windows", False):
            if self._resume:
                raise ValueError(
                    f"--resume does not apply to {learner.name}, which learns from all rows"
                )
            yield []
            return
        try:
            with signals_held():
                yield [Pauses(self._save, self._load(estimator) if self._resume else None)]
                self.remove()
        except KeyboardInterrupt:
            if self.saved:
                complain(f"saved {self.folder}: run the same command with --resume to continue")
            raise

    def remove(self) -> None:
        """Delete the files of a completed fit, and the directory if it is then empty."""
        if not os.path.lexists(self._position):
            return
        self._read()
        for name in [POSITION, *PLACES[0], *PLACES[1]]:
            (self.folder / name).unlink(missing_ok=True)
        remove_abandoned(self.folder)
        with suppress(OSError):  # other files are in it
            self.folder.rmdir()

    def _save(self, model: Any, position: Position, interrupted: bool, best: Any) -> None:
        soon = not interrupted and monotonic() - self._last < CHECKPOINT_SECONDS
        if soon or not self._source.reopens:
            return
        import rankcore

        self.folder.mkdir(exist_ok=True)
        names = PLACES[self._place][: 1 if best is None else 2]
        # Renamed into place, so that links there are not followed.
        with Workshop(self._position) as made:
            for name, one in zip(names, [model, best], strict=False):
                rankcore.save(one, made / name)
            written = {
                "format": FORMAT,
                "place": self._place,
                "models": len(names),
                "epoch": position.epoch,
                "window": position.window,
                "seed": position.seed,
                **self._source.stamp(),
            }
            (made / POSITION).write_text(json.dumps(written, indent=1), encoding="utf-8")
            for name in [*names, POSITION]:
                os.replace(made / name, self.folder / name)
        self._place = 1 - self._place
        for name in PLACES[self._place]:
            (self.folder / name).unlink(missing_ok=True)
        self._last, self.saved = monotonic(), True

    def _read(self) -> dict[str, Any]:
        """The position of an earlier run; raise ValueError if it is invalid."""
        try:
            if not _is_folder(self.folder) or not stat.S_ISREG(self._position.lstat().st_mode):
                raise ValueError("it must be a directory with files, and neither pipes nor links")
            written = json.loads(self._position.read_text(encoding="utf-8"))
            if type(written) is not dict or written.get("format") != FORMAT:
                raise ValueError(f"its {POSITION} lacks {FORMAT!r}")
            if written["place"] not in (0, 1) or written["models"] not in (1, 2):
                raise ValueError(f"its models are {written['place']}, {written['models']}")
        except (OSError, ValueError, LookupError, RecursionError) as error:
            raise ValueError(
                f"{self.folder} is not a checkpoint of train, or it is damaged: {error}; move or "
                "delete it"
            ) from error
        self._place = 1 - int(written["place"])
        return written

    def _load(self, estimator: Any) -> tuple[Any, Position, Any]:
        import rankcore
        from rankcore._core.sources import Position

        now, written = self._source.stamp(), self._read()
        try:
            place = [written[name] for name in ("epoch", "window", "seed")]
            epoch = place[0]
            if not all(type(one) is int and 0 <= one < 2**63 for one in place) or epoch < 1:
                raise ValueError(f"its position is {place}")
            models = []
            for name in PLACES[int(written["place"])][: int(written["models"])]:
                if not stat.S_ISREG((self.folder / name).lstat().st_mode):
                    raise ValueError(f"{name} is not a file")
                models.append(rankcore.load(self.folder / name))
            stamp = {name: written[name] for name in now}
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise self._damaged(error) from error
        if stamp != now:
            raise ValueError(
                f"{self.folder} is of other files, or they have changed since; pass the same "
                "files and options, or delete it and train without --resume"
            )
        model, mine, then = models[0], _fixed(estimator), _fixed(models[0])
        if type(model) is not type(estimator) or mine != then:
            changed = [name for name in mine if mine[name] != then.get(name)]
            raise ValueError(
                f"{self.folder} is of {model!r}, which has other parameters: "
                f"{', '.join(changed) or 'another learner'}; pass the same options"
            )
        if any(type(one) is not type(model) or _fixed(one) != then for one in models):
            raise self._damaged("its two models are of different learners")
        seen = len(model._state.log)
        if seen not in (epoch - 1, epoch):
            raise self._damaged(f"it is at pass {epoch}, but its model has seen {seen}")
        if epoch > estimator.max_iter:
            raise self._damaged(f"it is at pass {epoch} of {estimator.max_iter}")
        return model, Position(*place), models[1] if len(models) > 1 else None

    def _damaged(self, reason: object) -> ValueError:
        return ValueError(f"{self.folder} is damaged: {reason}")


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _fixed(estimator: Any) -> dict[str, Any]:
    params = estimator.get_params()
    return {name: value for name, value in params.items() if name not in FREE}
