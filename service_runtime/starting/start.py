"""Starts a process. Reads its settings, sets up its log, prints why it cannot start, and handles signals."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from types import FrameType, MappingProxyType
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
M = TypeVar("M", bound=NamedSettings)

_MIGRATE: Final = "migrate"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Command(Generic[S]):
    """A command that does some work and exits instead of serving."""

    settings_class: type[S]
    work: Callable[[S], None]
    status_if_stopped: int = 0
    """The exit status for a signal before the work has set its handlers."""

    def run(self, program: str, arguments: Sequence[str]) -> int:
        """Runs the command. Returns the exit status of `run_program`."""
        return run_program(program, self.settings_class, self.work, arguments, status_if_stopped=self.status_if_stopped)


_NO_MORE: Final[Mapping[str, Command[Any]]] = MappingProxyType({})


class CannotStart(Exception):
    """The process cannot start. The text is the reason, in one line."""


def run_service(
    program: str,
    settings_class: type[S],
    serve: Callable[[S], None],
    migration_settings_class: type[M],
    migrate: Callable[[M], None],
    more: Mapping[str, Command[Any]] = _NO_MORE,
) -> int:
    """Runs `python -m PROGRAM`, which serves, `python -m PROGRAM migrate`, or one of the commands in `more`, by name.

    Returns the exit status of `run_program`.
    """
    arguments = sys.argv[1:]
    commands: Mapping[str, Command[Any]] = {_MIGRATE: Command(migration_settings_class, migrate, status_if_stopped=130), **more}
    if arguments and arguments[0] in commands:
        return commands[arguments[0]].run(f"{program} {arguments[0]}", arguments[1:])
    return run_program(program, settings_class, serve, arguments)


def run_program(
    program: str, settings_class: type[S], work: Callable[[S], None], arguments: Sequence[str], *, status_if_stopped: int = 0
) -> int:
    """Reads the settings and calls `work` with them. Returns the exit status.

    The status is 0 on success, 1 on failure, 2 for an invalid setting, and `status_if_stopped` for a signal before `work` has set
    its handlers. The reason is printed as one line on stderr.
    """
    try:
        interrupt_on_signals()
        return _run(program, settings_class, work, arguments)
    except KeyboardInterrupt:
        return say(program, "stopped by a signal during the start", status_if_stopped)


def _run(program: str, settings_class: type[S], work: Callable[[S], None], arguments: Sequence[str]) -> int:
    log_to_stderr()
    exempt_loopback_from_proxies(os.environ)
    try:
        settings = CliApp.run(settings_class, cli_args=list(arguments))
    except ValidationError as error:
        return say(program, first_error(error), 2)
    set_log_format(settings.log_format)
    try:
        work(settings)
    except (CannotStart, DatabaseUnusable) as error:
        return say(program, str(error), 1)
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
    """Logs from level INFO to stderr, without the libraries' lines about each step, task and retry."""
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
    """Returns the text about the first invalid setting, without its value, which may be a secret."""
    wrong = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in wrong["loc"])
    message = wrong["msg"].removeprefix("Value error, ")
    return f"{name}: {message}" if name else message


class _Interrupting:
    """The signal handler during the start. It records the signal, because a library may suppress KeyboardInterrupt."""

    def __init__(self) -> None:
        self.stopping = threading.Event()

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping.set()
        raise KeyboardInterrupt


def interrupt_on_signals() -> None:
    """Makes SIGTERM and SIGINT raise KeyboardInterrupt. Call it on the main thread.

    Without a handler the first process of a container ignores SIGTERM.
    """
    interrupting = _Interrupting()
    for number in STOP_SIGNALS:
        signal.signal(number, interrupting)


def stop_on_signals() -> threading.Event:
    """Returns an event that SIGTERM and SIGINT set, even if the signal arrived during the start. Call it on the main thread."""
    handler = signal.getsignal(signal.SIGTERM)
    stopping = handler.stopping if isinstance(handler, _Interrupting) else threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    return stopping
