"""One transaction: its timeline as a table and as a picture, the bytes of its half message, and the form to decide it by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from rocketmq_broker.admin import decisions
from rocketmq_broker.admin.console.brokers import the_broker_at
from rocketmq_broker.admin.console.deed import Deed
from rocketmq_broker.admin.console.drawing.sequence import Diagram, sequence_diagram
from rocketmq_broker.admin.console.pages import url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.telling.bodies import ReadBody, read_body
from rocketmq_broker.admin.timeline.event import Event, Timeline
from rocketmq_broker.admin.timeline.evidence import TimelineEvidence, gather
from rocketmq_broker.admin.timeline.folding import FoldedEvent, folded
from rocketmq_broker.admin.timeline.telling import tell
from rocketmq_broker.message import properties as props
from rocketmq_broker.protocol.bodies import TransactionInfo

Witness = Callable[[str, list[str]], Awaitable[list[Event]]]
"""A further source of a transaction's events: gets its id and keys, and returns events with times."""


class TransactionStep(NamedTuple):
    """An event, and the time since the half message and since the event before."""

    event: Event
    since_begin_ms: int | None
    since_last_ms: int | None


class TransactionFacts(NamedTuple):
    """One transaction at one broker."""

    broker: str
    timeline: Timeline
    steps: list[TransactionStep]
    diagram: Diagram
    body: ReadBody
    """Of the half message."""
    info: TransactionInfo | None
    half_offset: int
    """The commit log offset of its half message, as last written."""
    first_half_offset: int

    @property
    def name(self) -> str:
        """The word by which it is decided: the half offset, because several half messages may share a transaction id."""
        return str(self.info.half_offset) if self.info is not None else self.timeline.transaction_id

    @property
    def is_pending(self) -> bool:
        """True if a person may decide it."""
        return self.info is not None and self.info.state == decisions.PENDING


def screen(witnesses: Sequence[Witness]) -> Screen:
    """Returns the screen; `witnesses` add events to each timeline."""

    async def find(visit: Visit) -> list[TransactionFacts]:
        return await find_transactions(visit, visit.word("word"), witnesses)

    return Screen("/transaction", "Transaction", "transaction.html", find, heading=lambda visit: "Transaction")


async def find_transactions(visit: Visit, word: str, witnesses: Sequence[Witness]) -> list[TransactionFacts]:
    """Returns the transactions with that id, key or half offset. Raises Refused if there is none, CannotAsk."""
    session = await visit.session()
    answers = await session.ask_each(lambda broker: gather(broker, word)) if word else []
    found = [(broker.address, evidence) for broker, ones in answers for evidence in ones]
    if not found:
        raise Refused(
            f"there is no transaction {word}" if word else "name a transaction: its id, a key of its message, or its half offset"
        )
    return [await _facts(address, evidence, witnesses) for address, evidence in found]


async def _facts(address: str, evidence: TimelineEvidence, witnesses: Sequence[Witness]) -> TransactionFacts:
    keys = (evidence.halves[0].get_property(props.KEYS) or "").split()
    witnessed = [event for witness in witnesses for event in await witness(evidence.transaction_id, keys)]
    timeline = tell(evidence, witnessed)
    events, body = folded(timeline.events), read_body(evidence.halves[0])
    return TransactionFacts(
        broker=address,
        timeline=timeline,
        steps=_steps(events),
        diagram=sequence_diagram(events),
        body=body,
        info=evidence.info,
        half_offset=evidence.halves[-1].commit_log_offset,
        first_half_offset=evidence.halves[0].commit_log_offset,
    )


def _steps(events: Sequence[Event]) -> list[TransactionStep]:
    begun_ms = next((event.at_ms for event in events if event.at_ms is not None), 0)
    steps, last_ms = [], begun_ms
    for event in events:
        if event.at_ms is None:
            steps.append(TransactionStep(event, None, None))
            continue
        steps.append(TransactionStep(event, event.at_ms - begun_ms, event.at_ms - last_ms))
        last_ms = event.until_ms if isinstance(event, FoldedEvent) and event.until_ms is not None else event.at_ms
    return steps


async def decide(visit: Visit) -> str:
    """Commits or rolls back by hand; the broker keeps the reason with the decision. Raises CannotAsk, Refused."""
    decision, reason = visit.word("decision"), visit.word("reason")
    if decision not in ("COMMIT", "ROLLBACK"):
        raise Refused("choose COMMIT or ROLLBACK")
    if not reason:
        raise Refused("the reason is empty: write down why, it is kept with the decision")
    if visit.word("is_sure") != "yes":
        raise Refused("a decision cannot be taken back: tick that you know it")
    broker = the_broker_at(await visit.session(), visit.word("broker"))
    is_commit = decision == "COMMIT"
    _, info = await decisions.decide(Session([broker]), visit.word("name"), commit=is_commit, reason=reason)
    return f"{info.state}: the transaction at half offset {info.half_offset} of {info.producer_group}; reason: {info.reason}"


DEEDS: Final = (Deed("/transaction/decide", decide, lambda visit: url("/transaction", word=visit.word("back"))),)
