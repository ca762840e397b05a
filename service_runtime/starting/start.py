"""Starts a process. Reads its settings, sets up its log, prints why it cannot start, and handles signals."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError
from pydantic_settings import CliApp

import rocketmq_broker.logs
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.stop_signals import STOP_SIGNALS
from service_runtime.database.engine import DatabaseUnusable
from service_runtime.observing.log_format import set_log_format
from service_runtime.settings.common import NamedSettings

S = TypeVar("S", bound=NamedSettings)

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Command(Generic[S]):
    """A command that does some work and exits instead of serving."""

    settings_class: type[S]
    work: Callable[[S], None]


_STOPPED_COMMAND: Final = 130
"""The exit status of a command that was interrupted by a signal, as in a shell."""


class CannotStart(Exception):
    """The process cannot start. The text is the reason, in one line."""


def run_service(program: str, settings_class: type[S], serve: Callable[[S], None], commands: Mapping[str, Command[Any]]) -> int:
    """Runs `python -m PROGRAM`, which serves, or `python -m PROGRAM NAME` for one of the commands, such as `migrate`.

    Returns the exit status of `run_program`.
    """
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in commands:
        return run_program(program, settings_class, serve, arguments)
    name, *rest = arguments
    command = commands[name]
    return run_program(f"{program} {name}", command.settings_class, command.work, rest, status_if_stopped=_STOPPED_COMMAND)


def run_program(
    program: str, settings_class: type[S], work: Callable[[S], None], arguments: Sequence[str], *, status_if_stopped: int = 0
) -> int:
    """Reads the settings and calls `work` with them. Returns the exit status.

    The status is 0 on success, 1 on failure, 2 for an invalid setting, and `status_if_stopped` for a signal that arrives before
    `work` has set its handlers. The reason is printed as one line on stderr.
    """
    try:
        interrupt_on_signals()
        log_to_stderr()
        exempt_loopback_from_proxies(os.environ)
        try:
            settings = CliApp.run(settings_class, cli_args=list(arguments))
        except ValidationError as error:
            return say(program, first_error(error), 2)
        set_log_format(settings.log_format)
        work(settings)
    except (CannotStart, DatabaseUnusable) as error:
        return say(program, str(error), 1)
    except KeyboardInterrupt:
        return say(program, "stopped by a signal during the start", status_if_stopped)
    return 0


def exempt_loopback_from_proxies(environment: MutableMapping[str, str]) -> None:
    """Adds the loopback addresses to NO_PROXY, because a proxy cannot reach them.

    The libraries for traces (requests) and gRPC use HTTP_PROXY and similar variables. Both spellings are set: gRPC reads only the
    lower-case one, and programs that read both differ in which one they prefer.
    """
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    names = [name.strip() for name in given.split(",") if name.strip()]
    if "*" not in names:
        names += [name for name in _LOOPBACK if name not in names]
    environment["no_proxy"] = environment["NO_PROXY"] = ",".join(names)


def log_to_stderr() -> None:
    """Logs to stderr from level INFO upwards, without the libraries' lines about each step, task and retry."""
    rocketmq_broker.logs.log_to_stderr(logging.INFO)
    for noisy in ("alembic", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # stamina logs each retry without the name of the operation.
    logging.getLogger("stamina").setLevel(logging.ERROR)


def say(program: str, message: str, status: int) -> int:
    """Prints one line to stderr and returns `status`."""
    print(printable(f"{program}: {message}"), file=sys.stderr)
    return status


def first_error(error: ValidationError) -> str:
    """Returns the error text for the first invalid setting. Omits the value, which may be a secret."""
    wrong = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in wrong["loc"])
    message = wrong["msg"].removeprefix("Value error, ")
    return f"{name}: {message}" if name else message


class _Interrupting:
    """The signal handler during start-up. It records the signal, because a library may suppress KeyboardInterrupt."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping.set()
        raise KeyboardInterrupt


def interrupt_on_signals() -> None:
    """Makes SIGTERM and SIGINT raise KeyboardInterrupt. Call this function on the main thread.

    Without a handler the first process of a container ignores SIGTERM.
    """
    interrupting = _Interrupting()
    for number in STOP_SIGNALS:
        signal.signal(number, interrupting)


def stop_on_signals() -> threading.Event:
    """Returns an event that is set by SIGTERM and SIGINT, including signals during the start.

    Call this function on the main thread.
    """
    handler = signal.getsignal(signal.SIGTERM)
    stopping = handler.stopping if isinstance(handler, _Interrupting) else threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    return stopping


def until_next_signal(work: Callable[[], None]) -> None:
    """Calls `work` on the main thread. SIGTERM or SIGINT ends it early. Later signals have no effect."""
    with suppress(KeyboardInterrupt):
        interrupt_on_signals()
        work()
    stop_on_signals()


def wait_for_stop(stopping: threading.Event) -> None:
    """Waits on the main thread until the event of `stop_on_signals` is set.

    Python runs signal handlers on the main thread, and does not wake it for a signal that another thread receives. A byte in a
    socket does. The handler would also block forever if it came while the main thread held the lock of the event.
    """
    waking, written = socket.socketpair()
    written.setblocking(False)
    with waking, written:
        before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
        try:
            while not stopping.is_set():
                waking.recv(1)
        finally:
            signal.set_wakeup_fd(before)
