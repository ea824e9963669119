"""``rankcore demo``: compare the learners on built-in data."""

from __future__ import annotations

import io
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rankcore.cli.options import JsonOption
from rankcore.cli.paths import Writes
from rankcore.cli.terminal import print_facts


def demo(
    png: Annotated[
        Path | None,
        Writes(),
        typer.Option(help="PNG file for the loss curve.", show_default="rankcore-demo.png"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the demo and show its results."""
    path = png or Path("rankcore-demo.png")

    from rankcore.cli import demo as demonstration

    result = demonstration.run()
    written = None
    try:
        demonstration.write_png(result, path)
        written = str(path)
        note = f"The loss curve as a picture: {path}"
    except ImportError:
        note = "For the loss curve as a picture: pip install 'rankcore[plot]'"
    except (OSError, ValueError) as error:
        if png is not None:
            raise
        why = getattr(error, "strerror", None) or error
        note = f"The loss curve as a picture: cannot write {path} ({why}); try --png"
    if as_json:
        curves = {name: curve.tolist() for name, curve in result.curves.items()}
        print_facts({**asdict(result), "curves": curves, "png": written}, as_json)
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # dots of the plot in an ASCII locale
    demonstration.show(result, Console())
    print(note)
