"""The screen that lists transactions decided by hand, with their reasons."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.protocol.bodies import TransactionInfo
from rocketmq_broker.protocol.headers import ListDecidedTransactionsRequestHeader

_MAX_ROWS: Final = 64


async def find(visit: Visit) -> list[tuple[str, TransactionInfo]]:
    """Returns the latest decisions of each broker, latest first. Raises CannotAsk or Refused."""
    session = await visit.session()
    answers = await session.ask_each(
        lambda broker: broker.list_decided(ListDecidedTransactionsRequestHeader(FOREVER_MS, _MAX_ROWS))
    )
    rows = [(broker.address, info) for broker, found in answers for info in found.transactions]
    return sorted(rows, key=lambda row: row[1].decided_ms or 0, reverse=True)


SCREEN: Final = Screen("/decided", "Decided by hand", "decided.html", find, refresh_s=3.0)
