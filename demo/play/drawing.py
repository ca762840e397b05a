"""The sequence diagram of a transaction, drawn by the console's code from the broker's own records."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from demo.play.wording import pages
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console import Diagram, sequence_diagram
from rocketmq_broker.admin.timeline.building import build_timeline
from rocketmq_broker.admin.timeline.evidence import gather
from rocketmq_broker.admin.timeline.folding import folded
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.testing.transactions import Inspection

T = TypeVar("T")


class InspectedBroker:
    """Sends an operator's requests to the broker under test without a connection. It takes no time, and changes no byte."""

    def __init__(self, inspection: Inspection) -> None:
        """`inspection` asks the broker."""
        self._inspection = inspection

    async def invoke(
        self, address: str, code: int, header: CommandHeader | None, body: bytes = b"", *, timeout_ms: int
    ) -> RemotingCommand:
        """Returns the broker's answer."""
        return self._inspection.ask(code, header)


def requests_to(inspection: Inspection, address: str) -> BrokerRequests:
    """Returns an operator's requests to the broker under test."""
    return BrokerRequests(cast(RemotingClient, InspectedBroker(inspection)), address)


def answered(question: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a coroutine that never waits."""
    try:
        question.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    question.close()
    raise RuntimeError("the broker did not answer immediately")


def diagram_of_latest(inspection: Inspection, address: str) -> Diagram | None:
    """Returns the diagram of the latest transaction; None if there is no half message."""
    halves = list(inspection.queue(topics.HALF_TOPIC, 0))
    return diagram_of(inspection, address, halves[-1].properties.get(props.UNIQUE_KEY, "")) if halves else None


def diagram_of(inspection: Inspection, address: str, word: str) -> Diagram | None:
    """Returns the diagram of the transaction with this id or key; None if there is none."""
    found = answered(gather(requests_to(inspection, address), word))
    return sequence_diagram(folded(build_timeline(found[-1]).events)) if found else None


def svg_of(diagram: Diagram, language: str) -> str:
    """Returns a diagram as SVG within its HTML."""
    return pages().in_language(language, "sequence.svg.html", diagram=diagram)
