"""Parses the command lines of long-running processes.

Uses argparse, which takes 0.5 MB of memory; Typer with pydantic takes 10 MB.
"""

import argparse
from typing import NoReturn

from rocketmq_broker.message.text.printable import printable

BAD_USAGE = 2
"""The exit status for an invalid command line."""
_HIGHEST_PORT = 65_535


class CommandLine(argparse.ArgumentParser):
    """A parser without abbreviated options. It reports an error in one line and exits with status 2."""

    def __init__(self, program: str, description: str) -> None:
        super().__init__(program, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Prints the error and exits."""
        self.exit(BAD_USAGE, f"{self.prog}: {printable(message)}. See {self.prog} --help\n")


def port_number(text: str) -> int:
    """Parses a port number from 0 to 65535. Raises argparse.ArgumentTypeError if the text is invalid."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_HIGHEST_PORT)) and int(text) <= _HIGHEST_PORT):
        raise argparse.ArgumentTypeError(f"port must be between 0 and {_HIGHEST_PORT}, not {text}")
    return int(text)


def count(text: str) -> int:
    """Parses an integer. Raises argparse.ArgumentTypeError if the text is invalid."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an integer, not {text}") from None
