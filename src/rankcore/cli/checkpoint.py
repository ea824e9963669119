"""Checkpoints of ``rankcore train``, from which an interrupted fit goes on."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankcore._core.sources import Position
    from rankcore._core.training import Pauses
    from rankcore.cli.registry import Learner
    from rankcore.cli.streaming import OnDisk

# Seconds from one checkpoint to the next at the end of a pass.
CHECKPOINT_SECONDS = 30.0
# Parameters that a fit may be resumed with other values of: the model does not depend on them.
FREE = ("n_jobs", "verbose", "memory_limit")


class Checkpoint:
    """A directory that a fit can be resumed from: a model, and where it stands.

    Parameters
    ----------
    folder : Path
    disk : OnDisk
    resume : bool
        Whether the fit goes on from it.
    """

    def __init__(self, folder: Path, disk: OnDisk, resume: bool) -> None:
        self.folder, self._disk, self._resume = folder, disk, resume
        self.saved = False
        self._last = monotonic()
        if resume and not self._position.exists():
            raise ValueError(f"--resume requires {folder}, which an interrupted train leaves")

    @property
    def _position(self) -> Path:
        return self.folder / "position.json"

    def refuse(self, learner: Learner) -> None:
        """Raise if a learner that cannot is to be resumed."""
        if self._resume:
            raise ValueError(f"--resume is not for {learner.name}, which learns from all rows")

    def pauses(self, estimator: Any) -> Pauses:
        """What the fit of an estimator calls, and where it begins."""
        from rankcore._core.training import Pauses

        return Pauses(self._save, self._load(estimator) if self._resume else None)

    def remove(self) -> None:
        """Delete it: the fit has ended."""
        if self._position.exists():
            shutil.rmtree(self.folder)

    def _save(self, model: Any, position: Position, interrupted: bool, best: Any) -> None:
        if "-" in self._disk.files and self._disk.cache is None:
            return
        if not interrupted and monotonic() - self._last < CHECKPOINT_SECONDS:
            return
        import rankcore

        self.folder.mkdir(exist_ok=True)
        place = f"{position.epoch}-{position.window}.rankcore"
        names = [f"model-{place}"] + ([] if best is None else [f"best-{place}"])
        for name, one in zip(names, [model, best], strict=False):
            rankcore.save(one, self.folder / name)
        written = {
            "models": names,
            "epoch": position.epoch,
            "window": position.window,
            "seed": position.seed,
            **self._disk.stamp(),
        }
        temporary = self.folder / "position.json.new"
        temporary.write_text(json.dumps(written, indent=1), encoding="utf-8")
        os.replace(temporary, self._position)
        for old in self.folder.glob("*.rankcore"):
            if old.name not in names:
                old.unlink()
        self._last, self.saved = monotonic(), True

    def _load(self, estimator: Any) -> tuple[Any, Position, Any]:
        import rankcore
        from rankcore._core.sources import Position

        now = self._disk.stamp()
        try:
            written = json.loads(self._position.read_text(encoding="utf-8"))
            place = [written[name] for name in ("epoch", "window", "seed")]
            if not all(type(one) is int and one >= 0 for one in place) or place[0] < 1:
                raise ValueError(f"its position is {place}")
            models = [rankcore.load(self.folder / name) for name in written["models"]]
            model, best = models[0], models[1] if len(models) > 1 else None
            stamp = {name: written[name] for name in now}
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"{self.folder} is damaged: {error}") from error
        if stamp != now:
            raise ValueError(
                f"{self.folder} is of other files, or they have changed since: give the same "
                "files and options, or delete it and train without --resume"
            )
        mine, then = _fixed(estimator), _fixed(model)
        if type(model) is not type(estimator) or mine != then:
            changed = [name for name in mine if mine[name] != then.get(name)]
            raise ValueError(
                f"{self.folder} is of {model!r}, which has other parameters: "
                f"{', '.join(changed) or 'another learner'}; give the same options"
            )
        return model, Position(*place), best


def _fixed(estimator: Any) -> dict[str, Any]:
    params = estimator.get_params()
    return {name: value for name, value in params.items() if name not in FREE}
