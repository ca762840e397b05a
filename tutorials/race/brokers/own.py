"""Runs this project's broker in the event loop of the run and in virtual time. A run is deterministic for its seed."""

import asyncio
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Self

from rocketmq_broker.message.record import records_of
from rocketmq_broker.testing import RocketMQ
from tutorials.race.brokers.raced_broker import RacedBroker

QUIET_MINUTES: Final = 5
"""The step in minutes by which virtual time advances at the end of a run.

It is longer than the intervals of redeliveries, relays and check-backs.
"""
MAX_ROUNDS: Final = 20


class OwnBroker(RacedBroker):
    """The broker `rocketmq_broker.testing.RocketMQ` with RocketMQ's defaults: the first check-back after 6 s, then every 60 s."""

    slow_commit_s: ClassVar = (20.0, 140.0)

    def __init__(self, seed: int, folder: Path) -> None:
        """Creates a broker with its store in memory. `folder` has no effect."""
        self._rocketmq = RocketMQ(seed=seed)

    async def __aenter__(self) -> Self:
        """Starts the broker."""
        await self._rocketmq.start()
        self.namesrv_addr = self._rocketmq.namesrv_addr
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops the broker."""
        await self._rocketmq.stop()

    @property
    def is_running(self) -> bool:
        """True while the broker is running."""
        return self._rocketmq.is_running

    @property
    def now_s(self) -> float:
        """The virtual time since the broker's start, in seconds."""
        return self._rocketmq.time.elapsed_s

    async def pause(self, seconds: float) -> None:
        """Waits for `seconds` of virtual time."""
        self._rocketmq.time.wanted()
        await asyncio.sleep(seconds)

    async def kill(self) -> None:
        """Kills the broker and the name server, like kill -9."""
        await self._rocketmq.crash()

    async def restart(self) -> None:
        """Restarts the killed broker on its store."""
        await self._rocketmq.restart()

    def lose_answer_about(self, order_id: str) -> None:
        """Drops the response to the next message of this order."""
        self._rocketmq.lose_next_answer(key=order_id)

    def lose_next_decision(self) -> None:
        """Drops the next COMMIT or ROLLBACK."""
        self._rocketmq.lose_next_decision()

    async def come_to_rest(self) -> None:
        """Advances time until no transaction is pending and the commit log stops growing.

        An outbox relay with unsent rows still appends to the commit log. Gives up after MAX_ROUNDS steps.
        """
        for _ in range(MAX_ROUNDS):
            records = self.count_records()
            await self._rocketmq.advance(minutes=QUIET_MINUTES)
            if not await self._rocketmq.pending() and self.count_records() == records:
                break

    def count_records(self) -> int:
        """Returns the number of records in the commit log."""
        return sum(1 for _ in records_of(self._rocketmq.commit_log()))
