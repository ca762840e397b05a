"""The console's address and password."""

from __future__ import annotations

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
    """The console cannot start with these settings; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """An address to listen on, and the visitors' password."""

    host: str = "127.0.0.1"
    port: int = 8088
    """0 takes any free one."""
    password: str | None = None
    """None lets every visitor in who reaches the port: only on loopback."""

    @property
    def is_loopback(self) -> bool:
        """True if only programs on this machine reach the port."""
        return is_loopback(self.host.strip("[]"))


def console_settings(listen: str, environment: Mapping[str, str], password_file: str | None = None) -> ConsoleSettings:
    """Returns the settings for `HOST:PORT`, with the password from a file or the environment. Raises UnusableSettings.

    There is no option for the password itself: other users of the machine can read command lines.
    """
    try:
        host, port = split_address(listen)
    except ValueError as error:
        raise UnusableSettings(f"--listen: {error}") from None
    password = _password(environment, password_file)
    if password is None and not is_loopback(host.strip("[]")):
        raise UnusableSettings(
            f"the console on {listen} can be reached from other machines, and needs a password: put one into a file and name it "
            f"with --password-file, or set {PASSWORD}"
        )
    return ConsoleSettings(host, port, password)


def _password(environment: Mapping[str, str], password_file: str | None) -> str | None:
    given, path = environment.get(PASSWORD, ""), password_file or environment.get(PASSWORD_FILE, "")
    if given and path:
        raise UnusableSettings(f"{PASSWORD} is set, and a password file is named: one or the other")
    if path:
        given = _read(Path(path))
    if not given:
        return None
    if len(given) < MIN_PASSWORD_LENGTH:
        raise UnusableSettings(f"the console's password has fewer than {MIN_PASSWORD_LENGTH} letters: take a longer one")
    return given


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UnusableSettings(f"the password file {path} cannot be read: {reason}") from None
    if not text:
        raise UnusableSettings(f"the password file {path} is empty")
    return text
