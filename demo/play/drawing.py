"""Draws the sequence diagram of a transaction, and Apache's check() beside this broker's, with the console's code."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, cast

from credit_service.adapters.ledger import CONSUMER
from demo.play.wording import pages
from demo.play.words import CannotPress
from order_service.adapters.order_broker import PRODUCER_GROUP
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console import Diagram, check_replayed, sequence_diagram
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.timeline.building import build_timeline
from rocketmq_broker.admin.timeline.event import BROKER, Event, in_order
from rocketmq_broker.admin.timeline.evidence import gather
from rocketmq_broker.admin.timeline.folding import folded
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.testing.transactions import Inspection

T = TypeVar("T")

LANES: Final = (PRODUCER_GROUP, BROKER, CONSUMER)
"""The participants of a diagram from left to right. The databases would make it too wide for a phone: their steps are loops."""
LANE_WIDTH: Final = 120
"""The distance of two life lines in pixels. On a screen of 390 pixels the diagram is legible."""
REPLAYED_LANE_WIDTH: Final = 140
"""The distance of two life lines in pixels, where labels end with an order's name."""


class InspectedBroker:
    """Sends an operator's requests directly to the broker under test, without a connection.

    The requests take no simulated time and do not change the broker's store.
    """

    def __init__(self, inspection: Inspection) -> None:
        """`inspection` gives access to the broker under test."""
        self._inspection = inspection

    async def invoke(
        self, address: str, code: int, header: CommandHeader | None, body: bytes = b"", *, timeout_ms: int
    ) -> RemotingCommand:
        """Returns the broker's response to a request. Ignores `address`, `body` and `timeout_ms`."""
        return self._inspection.ask(code, header)


def requests_to(inspection: Inspection, address: str) -> BrokerRequests:
    """Returns an object that sends an operator's requests to the broker under test."""
    return BrokerRequests(cast(RemotingClient, InspectedBroker(inspection)), address)


def answered(question: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never waits, and returns its result. Raises RuntimeError if the coroutine waits."""
    try:
        question.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    question.close()
    raise RuntimeError("the coroutine waited for a response, but the broker must respond immediately")


def diagram_of(
    inspection: Inspection, address: str, word: str, witness: Callable[[str, str | None], list[Event]]
) -> Diagram | None:
    """Returns the diagram of a transaction, or of all transactions of an order; None if there is none.

    `word` is the id of the transaction or of the order. `witness` returns the events of a transaction that no broker records, and
    with an order's id those of the order.
    """
    events: list[Event] = []
    for transaction_id in dict.fromkeys(one.transaction_id for one in inspection.transactions() if one.is_named(word)):
        for evidence in answered(gather(requests_to(inspection, address), transaction_id)):
            witnessed = witness(transaction_id, None if events else word)
            events += folded(build_timeline(evidence, witnessed).events)
    if not events:
        return None
    arrows = [event.arrow for event in events if event.arrow is not None]
    others = [name for arrow in arrows for name in (arrow.sender, arrow.receiver)]
    return sequence_diagram(in_order(events), list(dict.fromkeys((*LANES, *others))), lane_width=LANE_WIDTH)


def svg_of(diagram: Diagram, language: str) -> str:
    """Returns a diagram as SVG within its HTML."""
    return pages().in_language(language, "sequence.svg.html", diagram=diagram)


def replayed(history: str, language: str) -> dict[str, str]:
    """Returns the console's screen of check() replayed: the name of the history, and HTML. Raises CannotPress.

    An empty `history` is the first one. Links to histories are addresses of the page, such as `#replay=immunity`.
    """
    try:
        facts = check_replayed(history, lane_width=REPLAYED_LANE_WIDTH)
    except Refused as error:
        raise CannotPress(str(error)) from None
    html = pages().in_language(language, "check_replayed.html", facts=facts, url=lambda path, history: f"#replay={history}")
    return {"history": facts.name, "html": html}
