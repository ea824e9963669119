"""Checkpoints of ``rankcore train``: the model after each pass, from which a fit resumes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rankcore.cli.paths import Writes

# Parameters that may change on resuming, because the model does not depend on them.
FREE = ("n_jobs", "verbose", "memory_limit", "warm_start", "max_iter", "n_estimators")


@dataclass(frozen=True)
class Checkpoint:
    """Options of checkpoints."""

    checkpoint: Annotated[
        Path | None,
        Writes(),
        typer.Option(metavar="FILE", help="Save the model here after each pass or round."),
    ] = None
    checkpoint_every: Annotated[
        int, typer.Option(min=1, metavar="K", help="Passes or rounds between two checkpoints.")
    ] = 1
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the model in --checkpoint, if it exists.")
    ] = False

    def check(self) -> None:
        """Raise if there is nothing to resume from."""
        if self.resume and self.checkpoint is None:
            message = "requires the file to go on from: --checkpoint FILE"
            raise typer.BadParameter(message, param_hint="--resume")

    def saving(self, add_steps: Callable[[Any], Any]) -> list[Callable[[Any], None]]:
        """Return the callback that saves the model of each pass, with its preprocessing steps."""
        import rankcore

        path = self.checkpoint
        if path is None:
            return []

        def save(iteration: Any) -> None:
            if iteration.number % self.checkpoint_every == 0:
                rankcore.save(add_steps(iteration.model), path)

        return [save]

    def load(self, estimator: Any) -> Any:
        """Return the model that an earlier run saved, or None."""
        import rankcore
        from rankcore.io.scaled import split_front

        path = self.checkpoint
        if not self.resume or path is None or not path.exists():
            return None
        _, model = split_front(rankcore.load(path))
        wanted, saved = _fixed(estimator), _fixed(model)
        if type(model) is not type(estimator) or wanted != saved:
            changed = [name for name in wanted if wanted[name] != saved.get(name)]
            raise ValueError(
                f"{path} is a {type(model).__name__} with other parameters "
                f"({', '.join(changed) or 'another learner'}): pass the options that it was "
                "trained with, or train without --resume"
            )
        return model


def _fixed(estimator: Any) -> dict[str, Any]:
    params = estimator.get_params(deep=False)
    return {name: value for name, value in params.items() if name not in FREE}
