"""Records the timed output of a program in asciinema's file format (asciicast v2)."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_VERSION: Final = 2


class NoCast(Exception):
    """Raised if the file is not a recording. The error message contains the reason."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its newline, and its time in seconds after the start."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A recording of a program that prints lines and does not move the cursor."""

    command: str
    """The command line, as shown in the picture."""
    width: int
    lines: tuple[Line, ...]

    def write(self, file: Path) -> None:
        """Writes the recording as asciicast v2."""
        header = {"version": _VERSION, "width": self.width, "height": len(self.lines), "command": self.command}
        events = [[round(line.at_s, 3), "o", f"{line.text}\r\n"] for line in self.lines]
        file.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in (header, *events)))


def read_cast(file: Path) -> Cast:
    """Reads a recording that `Cast.write` wrote. Raises NoCast or OSError."""
    try:
        header, *events = map(json.loads, file.read_text().splitlines())
        if header["version"] != _VERSION:
            raise NoCast(f"{file} is asciicast version {header['version']}, not {_VERSION}")
        lines = tuple(Line(float(at_s), str(text).rstrip("\r\n")) for at_s, _, text in events)
        return Cast(header["command"], header["width"], lines)
    except (ValueError, KeyError, TypeError) as error:
        raise NoCast(f"{file} is not a recording: {error}") from None


def record(command: str, arguments: Sequence[str], environment: Mapping[str, str], *, width: int) -> tuple[Cast, int]:
    """Runs the program and returns its output and exit code. stderr is inherited.

    `command` is the command line shown in the picture.
    """
    started_s = time.monotonic()
    lines: list[Line] = []
    running = {**environment, "COLUMNS": str(width), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    with subprocess.Popen(arguments, env=running, stdout=subprocess.PIPE, text=True, encoding="utf-8") as program:
        assert program.stdout is not None
        for text in program.stdout:
            lines.append(Line(time.monotonic() - started_s, text.rstrip("\n")))
    return Cast(command, width, tuple(lines)), program.returncode
