"""Restarts the order service whenever it exits, and records the times at which it exited."""

import threading
import time
from types import TracebackType
from typing import Self

from demo.processes import Process

_POLL_SECONDS = 0.05


class Supervisor:
    """Watches a process in a thread during the `with` block, and restarts the process whenever it exits."""

    def __init__(self, process: Process) -> None:
        """Creates a supervisor for this process, which must be running."""
        self._process = process
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"supervisor of {process.name}")
        self._failure: Exception | None = None
        self.deaths_ms: list[int] = []
        """The times at which the process died, in milliseconds since the epoch."""

    def __enter__(self) -> Self:
        """Starts to watch the process in a thread."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops watching. The process keeps running. Raises ProcessFailed if it could not be restarted."""
        self._leave.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _watch(self) -> None:
        try:
            while not self._leave.wait(_POLL_SECONDS):
                if not self._process.is_running:
                    self.deaths_ms.append(time.time_ns() // 1_000_000)
                    self._process.start()
        except Exception as error:
            self._failure = error
