"""Discarded transactions, and the form to check one again."""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketmq_broker.admin.asking.discarded import DiscardedMessage, newest_discarded
from rocketmq_broker.admin.console.deed import Deed
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.decisions import resume

_MOST: Final = 50


class DiscardedFacts(NamedTuple):
    """The newest discarded messages, newest first."""

    rows: list[tuple[str, DiscardedMessage]]
    now_ms: int
    most: int = _MOST


async def find(visit: Visit) -> DiscardedFacts:
    """Returns the newest discarded messages of each broker. Raises CannotAsk, Refused."""
    session = await visit.session()
    answers = await session.ask_each(lambda broker: newest_discarded(broker, _MOST, lambda message: True))
    return DiscardedFacts([(broker.address, message) for broker, found in answers for message in found], visit.now_ms())


async def check_again(visit: Visit) -> str:
    """Resumes a discarded message. Raises CannotAsk, Refused."""
    broker, message_id = await resume(await visit.session(), visit.word("message"))
    return f"resumed: {message_id} is pending again at broker {broker.address}, its checks counted from 0"


SCREEN: Final = Screen("/discarded", "Discarded transactions", "discarded.html", find, refresh_s=2.0)
DEEDS: Final = (Deed("/discarded/resume", check_again, lambda visit: "/discarded"),)
