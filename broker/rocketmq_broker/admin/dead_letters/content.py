"""A dead letter in full: its properties, its body, and its treatments."""

from __future__ import annotations

import msgspec

from rocketmq_broker.admin.dead_letters.dead_letter import DeadLetter, Treated
from rocketmq_broker.admin.dead_letters.finding import FoundLetter
from rocketmq_broker.admin.dead_letters.treatments import treatment_history
from rocketmq_broker.admin.telling.bodies import read_body
from rocketmq_broker.message import properties as props


class DeadLetterContent(msgspec.Struct, frozen=True, rename="camel"):
    """A dead letter with its properties, body and history."""

    letter: DeadLetter
    properties: dict[str, str]
    body: str | None
    """As text, where it is text in UTF-8; uncompressed."""
    body_base64: str
    history: list[Treated]
    """All that was done about it, the latest first."""
    problem: str | None = None
    """Why its body cannot be uncompressed."""


async def content_of(found: FoundLetter) -> DeadLetterContent:
    """Returns the dead letter with its properties, its body and its history."""
    body = read_body(found.record)
    return DeadLetterContent(
        letter=found.letter,
        properties=props.decode(found.record.properties),
        body=body.text,
        body_base64=body.in_base64,
        history=await treatment_history(found.requests, found.letter),
        problem=body.problem,
    )
