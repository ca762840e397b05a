"""Spark's verdict over all orders, beside the verdict by SQL: the reconciliation as a process of its own, begun by a button."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Final

from demo.errors import DemoError
from demo.processes import Process, Processes
from demo.system import System

YOUNG_S: Final = 10
"""What is younger is not judged by what it lacks: orders may be on their way at any time."""
_COLUMNS: Final = "110"
_LAST_LINES: Final = 40

_MEANING_OF: Final = {0: "The books agree.", 1: "The books do not agree."}
_COULD_NOT_TELL: Final = "The reconciliation could not tell."


@dataclass(frozen=True, slots=True)
class Opinion:
    """How far the reconciliation is, and what it has printed last."""

    seconds: float
    """Since it began; how long it took once it has ended."""
    exit_code: int | None
    """None while it runs."""
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """What it has printed last."""
        return "\n".join(self.lines)

    @property
    def meaning(self) -> str:
        """The exit code in a sentence; empty while it runs."""
        return "" if self.exit_code is None else _MEANING_OF.get(self.exit_code, _COULD_NOT_TELL)


class SecondOpinion:
    """Runs the reconciliation, once at a time."""

    def __init__(self, process: Process) -> None:
        """`process` is started each time that somebody asks; its log is what the screen shows."""
        self._process = process
        self._begun_s: float | None = None
        self._taken_s: float | None = None

    @property
    def is_running(self) -> bool:
        """Whether Spark compares at this moment."""
        return self._process.is_running

    def ask(self) -> None:
        """Begins to compare. Raises DemoError if that is under way."""
        if self.is_running:
            raise DemoError("Spark compares at the moment: wait until it is done")
        self._begun_s, self._taken_s = time.monotonic(), None
        self._process.spawn()

    def latest(self) -> Opinion | None:
        """What was asked for last; None if nobody has asked yet."""
        if self._begun_s is None:
            return None
        exit_code = self._process.exit_code
        seconds = time.monotonic() - self._begun_s if self._taken_s is None else self._taken_s
        if exit_code is not None:
            self._taken_s = seconds
        return Opinion(seconds, exit_code, tuple(self._process.output().splitlines()[-_LAST_LINES:]))


def reconciliation(processes: Processes, system: System) -> Process:
    """The process that compares the system's databases and its commit log."""
    output = system.home / "reconciliation"
    arguments = [sys.executable, "-m", "pipelines", "reconcile", "--grace-seconds", str(YOUNG_S)]
    arguments += ["--store", str(system.broker_store), "--output", str(output), "--hide-output"]
    return processes.add("reconciliation", arguments, environment={**system.environment, "COLUMNS": _COLUMNS})
