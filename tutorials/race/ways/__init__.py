"""The approaches of the comparison, in the order of the table."""

from typing import Final

from tutorials.race.way import Way
from tutorials.race.ways.asking_back import AskBeforeCredit
from tutorials.race.ways.call_in_line import CallInLine
from tutorials.race.ways.celery_delay import CeleryDelayAfterCommit
from tutorials.race.ways.outbox import OutboxNotified, OutboxPolled
from tutorials.race.ways.plain_sends import CommitThenSend, SendInsideTheTransaction, SendThenCommit
from tutorials.race.ways.transactional import (
    StateInMemory,
    WithBarrier,
    WithBarrierOnApache,
    WithBarrierOnApacheFive,
    WithoutBarrier,
)

WAYS: Final[tuple[type[Way], ...]] = (
    SendThenCommit,
    CommitThenSend,
    SendInsideTheTransaction,
    CallInLine,
    CeleryDelayAfterCommit,
    StateInMemory,
    WithoutBarrier,
    AskBeforeCredit,
    OutboxPolled,
    OutboxNotified,
    WithBarrier,
)

WAYS_ON_APACHE: Final[tuple[type[Way], ...]] = (WithBarrierOnApache, WithBarrierOnApacheFive)
"""The approaches on Apache's broker. They run only on request, because they run in real time and need Java."""
