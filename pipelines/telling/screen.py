"""What commands print beside tables."""

from __future__ import annotations

from rich.console import Console

from rocketmq_broker.message.printable import printable


def say(line: str) -> None:
    """Prints one line as it is, however long; control characters from elsewhere are escaped."""
    Console().print(printable(line), markup=False, highlight=False, soft_wrap=True)
