"""The screen of a transaction. It shows the timeline as a table and a sequence diagram, and the form for a manual decision."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from rocketmq_broker.admin import decisions
from rocketmq_broker.admin.console.brokers import broker_at
from rocketmq_broker.admin.console.drawing.sequence import Diagram, sequence_diagram
from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.pages import url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.output.bodies import ReadBody, read_body
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.timeline.building import build_timeline
from rocketmq_broker.admin.timeline.event import Event, Timeline
from rocketmq_broker.admin.timeline.evidence import TimelineEvidence, gather
from rocketmq_broker.admin.timeline.folding import FoldedEvent, folded
from rocketmq_broker.message import properties as props
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo
from rocketmq_broker.protocol.headers.transaction_admin import ListDecidedTransactionsRequestHeader

_MAX_DECIDED: Final = 64

Witness = Callable[[str, list[str]], Awaitable[list[Event]]]
"""An additional source of transaction events. It is called with a transaction's id and keys, and returns events with times."""


class TransactionStep(NamedTuple):
    """An event, with the time since the half message and since the previous event."""

    event: Event
    since_begin_ms: int | None
    since_last_ms: int | None


class TransactionFacts(NamedTuple):
    """The facts about a transaction that the screen shows."""

    broker: str
    timeline: Timeline
    steps: list[TransactionStep]
    diagram: Diagram
    body: ReadBody
    """The body of the half message."""
    info: TransactionInfo | None
    half_offset: int
    """The commit log offset of the latest copy of the half message."""
    first_half_offset: int

    @property
    def name(self) -> str:
        """The offset of the half message, with which an operator selects the transaction.

        The transaction id is not unique: several half messages may share it.
        """
        return str(self.info.half_offset) if self.info is not None else self.timeline.transaction_id

    @property
    def is_pending(self) -> bool:
        """True if an operator may decide the transaction."""
        return self.info is not None and self.info.state == decisions.PENDING


def screen(witnesses: Sequence[Witness]) -> Screen:
    """Returns the transaction screen. `witnesses` add events to each timeline."""

    async def find(visit: Visit) -> list[TransactionFacts]:
        return await find_transactions(visit, visit.word("word"), witnesses)

    return Screen("/transaction", "Transaction", "transaction.html", find, heading=lambda visit: "Transaction")


async def find_transactions(visit: Visit, word: str, witnesses: Sequence[Witness]) -> list[TransactionFacts]:
    """Returns the transactions with this id, key or half offset. Raises CannotAsk, or Refused if there is none."""
    session = await visit.session()
    found = await session.rows(lambda broker: gather(broker, word)) if word else []
    if not found:
        raise Refused(
            f"transaction not found: {word}" if word else "enter the id, a message key or the half offset of a transaction"
        )
    return [await _facts(address, evidence, witnesses) for address, evidence in found]


async def _facts(address: str, evidence: TimelineEvidence, witnesses: Sequence[Witness]) -> TransactionFacts:
    keys = (evidence.halves[0].get_property(props.KEYS) or "").split()
    witnessed = [event for witness in witnesses for event in await witness(evidence.transaction_id, keys)]
    timeline = build_timeline(evidence, witnessed)
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


async def find_decided(visit: Visit) -> list[tuple[str, TransactionInfo]]:
    """Returns the latest manual decisions of each broker, latest first. Raises CannotAsk or Refused."""
    session = await visit.session()
    answers = await session.ask_each(
        lambda broker: broker.list_decided(ListDecidedTransactionsRequestHeader(FOREVER_MS, _MAX_DECIDED))
    )
    rows = [(broker.address, info) for broker, found in answers for info in found.transactions]
    return sorted(rows, key=lambda row: row[1].decided_ms or 0, reverse=True)


async def decide(visit: Visit) -> str:
    """Commits or rolls back a transaction manually. The broker stores the reason. Raises CannotAsk or Refused."""
    decision, reason = visit.word("decision"), visit.word("reason")
    if decision not in ("COMMIT", "ROLLBACK"):
        raise Refused("no decision selected: choose COMMIT or ROLLBACK")
    if not reason:
        raise Refused("the reason is empty: enter a reason, which is stored with the decision")
    if visit.word("is_sure") != "yes":
        raise Refused("confirm the decision: it cannot be undone")
    broker = broker_at(await visit.session(), visit.word("broker"))
    is_commit = decision == "COMMIT"
    _, info = await decisions.decide(Session([broker]), visit.word("name"), commit=is_commit, reason=reason)
    return f"{info.state}: the transaction at half offset {info.half_offset} of {info.producer_group}; reason: {info.reason}"


DECIDED_SCREEN: Final = Screen("/decided", "Decided by hand", "decided.html", find_decided, refresh_s=3.0)
ACTIONS: Final = (FormAction("/transaction/decide", decide, lambda visit: url("/transaction", word=visit.word("back"))),)
