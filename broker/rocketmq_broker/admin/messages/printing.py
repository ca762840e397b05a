"""Prints the messages that the commands `message` and `tail` show."""

from collections.abc import Sequence
from typing import Final

from rocketmq_broker.admin.messages.content import MessageContent
from rocketmq_broker.admin.messages.finding import FoundMessage, GroupConsumption
from rocketmq_broker.admin.output.printing import echo, print_facts, print_json_line
from rocketmq_broker.admin.output.times import exact_time_text, time_text
from rocketmq_broker.message.text.printable import printable

MAX_BODY_LENGTH: Final = 200
"""The maximum number of characters of a body in a line of `tail`."""


def print_messages(rows: Sequence[tuple[str, FoundMessage]]) -> None:
    """Prints the complete content of each message."""
    for address, found in rows:
        message = found.message
        print_facts(
            [
                ("topic", f"{message.topic}, queue {message.queue_id} at {message.queue_offset}"),
                ("message id", message.message_id or ""),
                ("offset message id", message.offset_message_id),
                ("keys", " ".join(message.keys)),
                ("tag", message.tags or ""),
                ("sent at", f"{time_text(message.born_ms)} by {message.born_host}"),
                ("stored at", time_text(message.stored_ms)),
                ("redeliveries", str(message.redeliveries) if message.redeliveries else ""),
                *((f"property {name}", value) for name, value in message.properties.items()),
                ("body", message.body if message.body is not None else f"base64: {message.body_base64}"),
                ("problem", message.problem or ""),
                ("consumed by", _groups(found.consumed_by, is_consumed=True)),
                ("not yet by", _groups(found.consumed_by, is_consumed=False)),
                ("broker", address),
            ]
        )


def print_line(address: str, message: MessageContent, *, as_json: bool) -> None:
    """Prints a message on one line and flushes the output."""
    if as_json:
        print_json_line(address, message)
        return
    words = [
        exact_time_text(message.stored_ms),
        f"{message.queue_id}@{message.queue_offset}",
        f"[{' '.join(message.keys)}]" if message.keys else "",
        f"({message.tags})" if message.tags else "",
        printable(message.body if message.body is not None else f"base64: {message.body_base64}", MAX_BODY_LENGTH),
    ]
    echo("  ".join(word for word in words if word))


def _groups(consumptions: Sequence[GroupConsumption], *, is_consumed: bool) -> str:
    return " ".join(one.group for one in consumptions if one.is_consumed is is_consumed)
