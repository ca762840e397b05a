"""python -m demo.recording: runs the demo and saves its output as a recording and as an animated SVG.

The exit code is the demo's, or 2 if the files cannot be written. A failed run changes neither file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from demo.recording.cast import NoCast, read_cast, record
from demo.recording.picture import picture
from rocketmq_broker.stop_signals import until_interrupted

WIDTH = 110
COULD_NOT_WRITE = 2


def main(
    folder: Annotated[Path, typer.Option(help="Folder for demo.cast and demo.svg.")] = Path("docs"),
    orders: Annotated[int, typer.Option(min=10, help="Number of orders.")] = 200,
    draw_only: Annotated[bool, typer.Option("--draw-only", help="Draw the picture of the existing recording.")] = False,
) -> None:
    """Record `make demo` and draw the recording."""
    console = Console(stderr=True)
    cast_file, picture_file = folder / "demo.cast", folder / "demo.svg"
    try:
        if not draw_only:
            console.print("Running the demo: about a minute …")
            cast, exit_code = record(
                "make demo", [sys.executable, "-m", "demo", "--orders", str(orders)], os.environ, width=WIDTH
            )
            if exit_code != 0:
                console.print(f"The demo ended with exit code {exit_code}: nothing is recorded.")
                sys.exit(exit_code)
            cast.write(cast_file)
        picture_file.write_text(picture(read_cast(cast_file)))
    except (OSError, NoCast) as error:
        console.print(Text(str(error)))
        sys.exit(COULD_NOT_WRITE)
    console.print(f"{cast_file} and {picture_file}")


if __name__ == "__main__":
    with until_interrupted("Stopped: recording and picture are as before."):
        typer.run(main)
