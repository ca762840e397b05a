"""Spark's verdict on all orders, besides the verdict by SQL: the reconciliation in its own process, started by a button."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from demo.errors import DemoError
from demo.processes import Process, Processes
from demo.system import System

YOUNG_S: Final = 10
"""Younger orders are not judged by missing rows: orders may be on their way at any time."""
_LAST_LINES: Final = 40

_MEANING_OF: Final = {0: "The books agree.", 1: "The books do not agree."}
_COULD_NOT_TELL: Final = "The reconciliation could not tell."


@dataclass(frozen=True, slots=True)
class Opinion:
    """The state of the reconciliation, and its last output."""

    seconds: float
    """The time since its begin, or its whole time once it has ended."""
    exit_code: int | None
    """None while it runs."""
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The last output."""
        return "\n".join(self.lines)

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """What `reconcile --json` printed; None if it has not ended, or could not tell."""
        if self.exit_code not in _MEANING_OF:
            return None
        told = next((line for line in reversed(self.lines) if line.startswith("{")), "")
        try:
            verdict = json.loads(told)
        except ValueError:
            return None
        return verdict if isinstance(verdict, dict) else None

    @property
    def meaning(self) -> str:
        """The meaning of the exit code, as a sentence; empty while it runs."""
        return "" if self.exit_code is None else _MEANING_OF.get(self.exit_code, _COULD_NOT_TELL)


class SecondOpinion:
    """Runs the reconciliation, once at a time."""

    def __init__(self, process: Process) -> None:
        """`process` is started for each request; the screen shows its log."""
        self._process = process
        self._begun_s: float | None = None
        self._taken_s: float | None = None

    @property
    def is_running(self) -> bool:
        """True while Spark compares."""
        return self._process.is_running

    def ask(self) -> None:
        """Starts the comparison. Raises DemoError if one is running."""
        if self.is_running:
            raise DemoError("Spark compares at the moment: wait until it is done")
        self._begun_s, self._taken_s = time.monotonic(), None
        self._process.spawn()

    def latest(self) -> Opinion | None:
        """Returns the latest opinion; None if nobody has asked yet."""
        if self._begun_s is None:
            return None
        exit_code = self._process.exit_code
        seconds = time.monotonic() - self._begun_s if self._taken_s is None else self._taken_s
        if exit_code is not None:
            self._taken_s = seconds
        return Opinion(seconds, exit_code, tuple(self._process.output().splitlines()[-_LAST_LINES:]))


def reconciliation(processes: Processes, system: System) -> Process:
    """Adds the process that compares the system's databases and its commit log."""
    output = system.home / "reconciliation"
    arguments = [sys.executable, "-m", "pipelines", "reconcile", "--grace-seconds", str(YOUNG_S)]
    for store in system.broker_stores:
        arguments += ["--store", str(store)]
    arguments += ["--output", str(output), "--hide-output", "--json"]
    return processes.add("reconciliation", arguments, environment=system.environment)
