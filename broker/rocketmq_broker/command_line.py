"""Command lines of processes that run for months: argparse reads them in half a megabyte; Typer, with pydantic, keeps ten."""

from __future__ import annotations

import argparse
from typing import NoReturn

from rocketmq_broker.message.text.printable import printable

BAD_USAGE = 2
"""The exit status for a command line that cannot be read."""
_HIGHEST_PORT = 65_535


class CommandLine(argparse.ArgumentParser):
    """A parser that takes options by their whole names, and refuses a command line in one printable line and exit status 2."""

    def __init__(self, program: str, description: str) -> None:
        super().__init__(program, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Says what is wrong, and ends the program."""
        self.exit(BAD_USAGE, f"{self.prog}: {printable(message)}. See {self.prog} --help\n")


def port_number(text: str) -> int:
    """Returns the port that the text names. Raises argparse.ArgumentTypeError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_HIGHEST_PORT)) and int(text) <= _HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f"{text} is no port: 0 to {_HIGHEST_PORT} is expected")
    return int(text)


def count(text: str) -> int:
    """Returns the whole number that the text names. Raises argparse.ArgumentTypeError."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no whole number") from None
