"""Runs the reconciliation in a separate process. Spark compares all orders, in addition to the comparison by SQL.

The first comparison starts the process and Spark. The process then waits for further comparisons.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from demo.errors import DemoError
from demo.processes import PROJECT_ROOT, Process, Processes, ProcessFailed
from demo.system import System

YOUNG_S: Final = 10
"""The grace period in seconds. Younger orders are not reported as incomplete."""
_LAST_LINES: Final = 40

_ANSWERS: Final = ("{", "could not tell: ")
"""The prefixes of the last line that a comparison prints."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """The state and the output of a comparison."""

    seconds: float
    """The seconds since the comparison started, or its total duration after it has ended."""
    is_running: bool
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The last output of the comparison."""
        return "\n".join(self.lines)

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The output of `reconcile --json`. None if the comparison is still running or failed."""
        answer = next((line for line in reversed(self.lines) if line.startswith(_ANSWERS)), "")
        try:
            verdict = json.loads(answer)
        except ValueError:
            return None
        return verdict if isinstance(verdict, dict) and not self.is_running else None

    @property
    def is_consistent(self) -> bool:
        """True if the comparison has ended and has found the databases and the broker consistent."""
        return self.verdict is not None and bool(self.verdict.get("is_consistent"))

    @property
    def meaning(self) -> str:
        """The result as a sentence. Empty while the comparison runs."""
        if self.is_running:
            return ""
        if self.verdict is None:
            return "The reconciliation failed."
        return "The books agree." if self.is_consistent else "The books do not agree."


class SparkInstallation:
    """Installs Spark in the background. Most of the download is for Spark, but the start screen does not need Spark."""

    def __init__(self, process: Process | None = None) -> None:
        """Creates the installation. `process` installs Spark and prints its progress.

        `process` is None if Spark is already installed.
        """
        self._process = process
        self._has_begun = False

    def begin(self) -> None:
        """Starts the installation if it is needed and not running."""
        if self._process is not None and not self._process.is_running and not self.is_complete:
            self._process.spawn()
            self._has_begun = True

    @property
    def is_complete(self) -> bool:
        """True if Spark is installed."""
        return self._process is None or (self._has_begun and self._process.exit_code == 0)

    @property
    def has_failed(self) -> bool:
        """True if the installation failed. Call `begin` to start it again."""
        return self._process is not None and self._has_begun and self._process.exit_code not in (None, 0)

    @property
    def last_line(self) -> str:
        """The last line that the installation printed: its progress, or the reason for its failure."""
        if self._process is None or not self._has_begun:
            return ""
        lines = [line for line in self._process.output().splitlines() if line.strip()]
        return lines[-1].removeprefix("setup: ") if lines else ""


class SecondOpinion:
    """Runs comparisons, one at a time."""

    def __init__(self, process: Process, spark: SparkInstallation | None = None) -> None:
        """Creates an object that runs comparisons in `process`.

        The process runs one comparison when it starts, and another one for each line of its input. `spark` is the installation of
        Spark, which need not be complete.
        """
        self._process = process
        self.spark = spark or SparkInstallation()
        self._begun_s: float | None = None
        self._taken_s: float | None = None
        self._printed_before = 0

    @property
    def is_running(self) -> bool:
        """True while a comparison is running."""
        return self._begun_s is not None and self._taken_s is None and not self._has_ended()

    def ask(self) -> None:
        """Starts a comparison. Raises DemoError if a comparison is already running, or if Spark is not installed."""
        if not self.spark.is_complete:
            raise DemoError("Spark is still being installed; wait until it is complete")
        if self.is_running:
            raise DemoError("a comparison is running; wait until it has finished")
        if not self._is_asked_again():
            self._printed_before = 0
            self._process.spawn()
        self._begun_s, self._taken_s = time.monotonic(), None

    def latest(self) -> Opinion | None:
        """Returns the latest comparison. Returns None before the first comparison."""
        if self._begun_s is None:
            return None
        is_running = self.is_running
        seconds = time.monotonic() - self._begun_s if self._taken_s is None else self._taken_s
        if not is_running:
            self._taken_s = seconds
        return Opinion(seconds, is_running, tuple(self._printed().splitlines()[-_LAST_LINES:]))

    def _is_asked_again(self) -> bool:
        """Starts a comparison in the running process. Returns False if the process is not running."""
        if not self._process.is_running:
            return False
        self._printed_before = len(self._process.output())
        try:
            self._process.ask()
        except ProcessFailed:
            self._process.stop()
            return False
        return True

    def _has_ended(self) -> bool:
        # Check the process before its output, because output before its end belongs to the answer.
        has_exited = not self._process.is_running
        return has_exited or any(line.startswith(_ANSWERS) and line.endswith("\n") for line in self._printed().splitlines(True))

    def _printed(self) -> str:
        return self._process.output()[self._printed_before :]


def spark_installation(processes: Processes) -> SparkInstallation:
    """Adds the process that installs Spark to `processes`, and returns the installation."""
    return SparkInstallation(processes.add("spark", [str(PROJECT_ROOT / "deploy" / "scripts" / "setup"), "demo"]))


def reconciliation(processes: Processes, system: System) -> Process:
    """Adds the process that compares the system's databases and its commit log to `processes`, and returns it."""
    output = system.home / "reconciliation"
    arguments = [sys.executable, "-m", "pipelines", "reconcile", "--grace-seconds", str(YOUNG_S)]
    for store in system.broker_stores:
        arguments += ["--store", str(store)]
    arguments += ["--output", str(output), "--hide-output", "--json", "--again"]
    return processes.add("reconciliation", arguments, environment=system.environment, is_asked=True)
