"""The complete content of a dead letter."""

import msgspec

from rocketmq_broker.admin.dead_letters.dead_letter import DeadLetter, Treated
from rocketmq_broker.admin.dead_letters.finding import FoundLetter
from rocketmq_broker.admin.dead_letters.treatments import treatment_history
from rocketmq_broker.admin.output.bodies import read_body
from rocketmq_broker.message import properties as props


class DeadLetterContent(msgspec.Struct, frozen=True, rename="camel"):
    """A dead letter with its properties, body and treatments."""

    letter: DeadLetter
    properties: dict[str, str]
    body: str | None
    """The decompressed body; None if it is not UTF-8 text."""
    body_base64: str
    history: list[Treated]
    """All treatments, latest first."""
    problem: str | None = None
    """The reason why the body cannot be decompressed; None if it can."""


async def content_of(found: FoundLetter) -> DeadLetterContent:
    """Returns the complete content of a dead letter."""
    body = read_body(found.record)
    return DeadLetterContent(
        letter=found.letter,
        properties=props.decode(found.record.properties),
        body=body.text,
        body_base64=body.in_base64,
        history=await treatment_history(found.requests, found.letter),
        problem=body.problem,
    )
