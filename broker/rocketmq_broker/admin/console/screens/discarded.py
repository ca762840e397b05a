"""The screen that lists discarded transactions, with a form to resume one."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.discarded import DiscardedMessage, newest_discarded
from rocketmq_broker.admin.console.form_action import FormAction
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.decisions import resume

_MAX_ROWS: Final = 50


class DiscardedFacts(NamedTuple):
    """The newest discarded messages, newest first."""

    rows: list[tuple[str, DiscardedMessage]]
    now_ms: int
    max_rows: int = _MAX_ROWS


async def find(visit: Visit) -> DiscardedFacts:
    """Returns the newest discarded messages of each broker. Raises CannotAsk or Refused."""
    session = await visit.session()
    rows = await session.rows(lambda broker: newest_discarded(broker, _MAX_ROWS, lambda message: True))
    return DiscardedFacts(rows, visit.now_ms())


async def check_again(visit: Visit) -> str:
    """Resumes a discarded message. Raises CannotAsk or Refused."""
    broker, resumed = await resume(await visit.session(), visit.word("message"))
    return f"resumed: {resumed.message_id} is pending again at broker {broker.address}, its count of check-backs is 0"


SCREEN: Final = Screen("/discarded", "Discarded transactions", "discarded.html", find, refresh_s=2.0)
ACTIONS: Final = (FormAction("/discarded/resume", check_again, lambda visit: "/discarded"),)
