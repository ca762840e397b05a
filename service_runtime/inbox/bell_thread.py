"""A thread that calls a function on request, and once a second."""

import logging
import threading
from collections.abc import Callable
from typing import Final

LOOKS_EVERY_S: Final = 1.0
"""The interval in seconds between calls without a ring. A ring may be lost, for example if the process is killed."""

logger = logging.getLogger(__name__)


class BellThread:
    """Calls a function after `ring`, and once a second. Rings during a call cause one more call."""

    def __init__(self, name: str, answer: Callable[[], bool | None]) -> None:
        """Creates the thread without starting it. `answer` is the function to call.

        If `answer` returns True, it has more to do and is called again at once.
        """
        self._answer = answer
        self._rung = threading.Event()
        self._stopping = threading.Event()
        self._last_error = ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def ring(self) -> None:
        """Requests a call, and returns at once."""
        self._rung.set()

    def stop(self) -> None:
        """Stops the thread. Waits up to 10 s for a running call to finish."""
        self._stopping.set()
        self._rung.set()
        self._thread.join(10.0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._rung.clear()
            if not self._call():
                self._rung.wait(LOOKS_EVERY_S)

    def _call(self) -> bool | None:
        """Calls the function. Consecutive identical errors are logged only once."""
        try:
            has_more = self._answer()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            if text != self._last_error:
                logger.warning("%s: retrying every second: %s", self._thread.name, text)
            self._last_error = text
            return False
        if self._last_error:
            logger.warning("%s: works again", self._thread.name)
        self._last_error = ""
        return has_more
