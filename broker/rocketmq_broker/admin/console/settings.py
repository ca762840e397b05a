"""The settings of the console, which are its address and password."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocketmq_broker.known_hosts import is_loopback
from rocketmq_broker.remoting.client import split_address

PASSWORD: Final = "ROCKETMQ_CONSOLE_PASSWORD"
PASSWORD_FILE: Final = "ROCKETMQ_CONSOLE_PASSWORD_FILE"
MIN_PASSWORD_LENGTH: Final = 8


class UnusableSettings(Exception):
    """Raised if the console cannot start with its settings. The message explains why and what to do."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The address to listen on, and the password."""

    host: str = "127.0.0.1"
    port: int = 8088
    """The port to listen on. 0 selects a free port."""
    password: str | None = None
    """The password of the login. None disables the login, which is allowed only on a loopback address."""


def console_settings(listen: str, environment: Mapping[str, str], password_file: str | None = None) -> ConsoleSettings:
    """Returns the settings for `HOST:PORT`, with the password from a file or the environment. Raises UnusableSettings.

    There is no option for the password itself, because other users of the machine can read command lines.
    """
    try:
        host, port = split_address(listen)
    except ValueError as error:
        raise UnusableSettings(f"--listen: {error}") from None
    password = _password(environment, password_file)
    if password is None and not is_loopback(host.strip("[]")):
        raise UnusableSettings(
            f"the console on {listen} can be reached from other machines and needs a password: set --password-file to a file "
            f"with the password, or set {PASSWORD}"
        )
    return ConsoleSettings(host, port, password)


def _password(environment: Mapping[str, str], password_file: str | None) -> str | None:
    given, path = environment.get(PASSWORD, ""), password_file or environment.get(PASSWORD_FILE, "")
    if given and path:
        raise UnusableSettings(f"{PASSWORD} and a password file are both set: set only one of them")
    if path:
        given = _read(Path(path))
    if not given:
        return None
    if len(given) < MIN_PASSWORD_LENGTH:
        raise UnusableSettings(f"the console's password is too short: use at least {MIN_PASSWORD_LENGTH} characters")
    return given


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UnusableSettings(f"cannot read the password file {path}: {reason}") from None
    if not text:
        raise UnusableSettings(f"the password file {path} is empty")
    return text
