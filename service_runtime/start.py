"""How a service's process starts: where it logs, how it says why it cannot start, and what ends it."""

import logging
import signal
import sys
import threading
from types import FrameType

from pydantic import ValidationError


class CannotStart(Exception):
    """Why a process does not start, in one line."""


def log_to_stderr() -> None:
    """Logs from INFO up, without what Alembic says of each step and Celery of each task."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("alembic", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def say(program: str, message: str, status: int) -> int:
    """Prints one line and passes the exit status on."""
    print(f"{program}: {message}", file=sys.stderr)
    return status


def first_error(error: ValidationError) -> str:
    """What is wrong with the settings, without the value: it may be a secret."""
    wrong = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in wrong["loc"])
    message = wrong["msg"].removeprefix("Value error, ")
    return f"{name}: {message}" if name else message


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set; main thread only."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return stopping
