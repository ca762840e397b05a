"""Finds log lines about a message in the consumers' logs, because a dead letter does not contain the exception."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from rocketmq_broker.admin.timeline.event import Arrow, Event

LOOKED_AT_BYTES: Final = 512 * 1024
"""The number of bytes that are searched at the end of each log."""
MAX_LINES: Final = 5
_LINE: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) (WARNING|ERROR) \S+ (.*)")
_REASON: Final = "dead-letter topic: "
_PART_OF_A_TRACEBACK: Final = "    "


@dataclass(frozen=True, slots=True)
class ServiceLogs:
    """The logs of consuming processes."""

    paths: Mapping[str, Path]
    """The paths of the logs by process name."""

    def events(self, message_id: str) -> list[Event]:
        """Returns the latest warnings and errors about the message, at most MAX_LINES per process.

        A traceback after the line is shortened to the exception.
        """
        return [event for name, path in self.paths.items() for event in list(_events(name, path, message_id))[-MAX_LINES:]]


def _events(name: str, path: Path, message_id: str) -> Iterator[Event]:
    lines = _end_of(path)
    for number, line in enumerate(lines):
        if message_id in line and (found := _LINE.match(line)) is not None:
            at, milliseconds, _, text = found.groups()
            text += _exception(lines[number + 1 :])
            at_ms = int(datetime.strptime(at, "%Y-%m-%d %H:%M:%S").timestamp()) * 1000 + int(milliseconds)
            reason = text.partition(_REASON)[2]
            label = reason.partition(": ")[2] or reason or "an error, see its log"
            yield Event(at_ms, f"{name}: {text}", f"log of {name}", Arrow(name, name, label))


def _exception(following: list[str]) -> str:
    traceback = ""
    for line in following:
        if not line.startswith(_PART_OF_A_TRACEBACK):
            break
        traceback = f": {line.strip()}"
    return traceback


def _end_of(path: Path) -> list[str]:
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - LOOKED_AT_BYTES))
            return log.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
