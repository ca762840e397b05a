"""Imitates Apache's broker: outcomes that come twice, checks that count although nobody was asked, and its choice of producers.

This broker gives a transaction one outcome, counts a check once it was sent, and first asks the producer that sent the half
message. Apache's rewrites the half message at every check. So a decision that comes late settles the first copy, and the second
one is checked all the same; its COMMIT delivers again. It heeds no earlier decision: a COMMIT delivers although the transaction
was committed, rolled back or discarded before. Its checks are used up while no producer is online, or while the message is
immune to checks, and it asks the members of a group in turn. A test can ask for all of it, to see that its producers and
consumers bear it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import sysflag
from rocketmq_broker.message.record import host_bytes
from rocketmq_broker.protocol.bodies.heartbeat import HeartbeatData, ProducerData
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_response
from rocketmq_broker.protocol.headers import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
)
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.testing.apache.immunity import Immunity, find_immunity, looked_at_every, looks_until_asked
from rocketmq_broker.testing.apache.nobody import Nobody, send_as, unknown_answer
from rocketmq_broker.testing.apache.release import Release
from rocketmq_broker.testing.apache.second_copies import Entrance, SecondCopies
from rocketmq_broker.testing.journal import EventKind, Journal
from rocketmq_broker.testing.transactions import Inspection

_HEARTBEAT_S: Final = 30.0
_BORN_HOST: Final = host_bytes("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A decision whose op message may not be written yet."""

    at_s: float
    key: str
    header: EndTransactionRequestHeader


class LikeApache:
    """Makes one broker behave like Apache's. A transaction's key is its message's unique id."""

    def __init__(
        self,
        entrance: Entrance,
        journal: Journal,
        *,
        now_s: Callable[[], float],
        release: Release,
        check_interval_s: float,
        check_max: int,
    ) -> None:
        """`now_s` is the test's time; the settings are those of the broker's checks."""
        self._entrance = entrance
        self._journal = journal
        self._now_s = now_s
        self._release = release
        self._check_interval_s = check_interval_s
        self._groups: dict[str, None] = {}
        self._checks: defaultdict[str, int] = defaultdict(int)
        self._immune: dict[str, Immunity] = {}
        self._decisions: deque[_Decision] = deque()
        self._is_shut = False
        self._nobody = Nobody(lambda: self._entrance.broker)
        self._copies = SecondCopies(
            entrance,
            self._nobody,
            journal,
            check_interval_s=check_interval_s,
            check_max=check_max,
            is_shut=lambda: self._is_shut,
        )
        self._beating: asyncio.TimerHandle | None = None
        self._beat()

    # from start to stop

    def ends(self, *, is_killed: bool) -> None:
        """Handles the broker's stop. A killed one forgets the decisions without op messages, and checks them after its start."""
        self._is_shut = True
        self._forget_written()
        if is_killed:
            for decision in self._decisions:
                self._copies.check_in(self._check_interval_s, decision.key, decision.header, self._checks[decision.key])
        self._decisions.clear()

    def served_by(self, entrance: Entrance) -> None:
        """Handles the broker's restart."""
        self._entrance = self._copies.entrance = entrance
        self._is_shut = False
        self.stop_beating()
        self._beat()

    def stop(self) -> None:
        """Cancels all timers."""
        self.stop_beating()
        self._copies.clear()

    def stop_beating(self) -> None:
        """Stops the heartbeats of `Nobody`."""
        if self._beating is not None:
            self._beating.cancel()

    # requests

    def meets(self, connection: Connection) -> None:
        """Handles a new connection. All clients get one address, so the broker prefers none in checks."""
        connection.born_host = _BORN_HOST

    def half_message_comes(self, group: str, key: str | None, encoded_properties: bytes) -> bytes:
        """Lets the group's checks count from now on, even without producers. Returns the half message's new properties."""
        if group not in self._groups:
            self._groups[group] = None
            self._say_hello()
        immunity = find_immunity(encoded_properties, self._now_s())
        if immunity is None or key is None:
            return encoded_properties
        self._immune[key] = immunity
        if immunity.seconds <= self._check_interval_s:
            return encoded_properties
        return looked_at_every(self._check_interval_s, encoded_properties)

    def takes_decision(self, header: EndTransactionRequestHeader, key: str) -> bool:
        """Returns whether the broker is to get the decision. Settles a second copy itself."""
        is_decision = header.commit_or_rollback != sysflag.TRANSACTION_NOT
        if header.from_transaction_check:
            if self._copies.is_asked(key):
                self._copies.settle(key, header.commit_or_rollback)
                return False
            if is_decision:
                self._copies.forget(key)
        elif is_decision and self._is_refused(key):
            return False
        if header.commit_or_rollback == sysflag.TRANSACTION_COMMIT and self._inspection.is_decided(header.commit_log_offset):
            self._copies.deliver_again(key, header.commit_log_offset)
            return False
        if is_decision:
            self._note_decision(header, key)
        return True

    def found_offset(self, request: RemotingCommand) -> bytes | None:
        """Returns the answer to a search by time; None if the broker's own is right. Raises ProtocolError."""
        if not self._release.finds_next_offset:
            return None
        header = request.decode_header(SearchOffsetRequestHeader)
        offset = 0
        for message in self._inspection.queue(header.topic, header.queue_id):
            offset = message.queue_offset
            if message.store_timestamp >= header.timestamp:
                break
            offset += 1
        return encode_response(request, ResponseCode.SUCCESS, SearchOffsetResponseHeader(offset=offset))

    # answers and checks

    def check_leaves(self, peer: str, header: CheckTransactionStateRequestHeader, key: str) -> bool:
        """Counts a check to the producer at that address. Returns False for an immune message, of which it must not hear."""
        if self._copies.is_asked(key):
            return True
        self._checks[key] += 1
        immunity = self._immune.get(key)
        if immunity is None or not immunity.covers(self._now_s()):
            return True
        self._journal.note(EventKind.FAULT, "a check is used up while the message is immune, as Apache's broker does", [key])
        connection = self._entrance.connection(peer)
        if connection is not None:
            asyncio.get_running_loop().call_soon(
                send_as, connection, self._entrance.broker, RequestCode.END_TRANSACTION, unknown_answer(header)
            )
        return False

    @property
    def _inspection(self) -> Inspection:
        return Inspection(self._entrance.broker, "")

    def _is_refused(self, key: str) -> bool:
        immunity = self._immune.get(key)
        if not self._release.refuses_after_immunity or immunity is None or self._now_s() <= immunity.end_s:
            return False
        what = f"refused, because the immunity is over, as Apache's broker {self._release.name} does: a check-back will decide"
        self._journal.note(EventKind.REFUSED, what, [key])
        return True

    def _note_decision(self, header: EndTransactionRequestHeader, key: str) -> None:
        """Notes a decision for the first copy. A second copy may exist, or the op message may come too late for a check."""
        next_check_s = self._inspection.next_check_in_s(header.commit_log_offset)
        if next_check_s is None:
            return
        self._forget_written()
        if self._release.op_batch_s:
            self._decisions.append(_Decision(self._now_s(), key, header))
        if header.from_transaction_check:
            return
        has_second_copy = self._checks[key] > 0
        if has_second_copy or next_check_s < self._release.op_batch_s:
            looks = looks_until_asked(self._immune.get(key), self._now_s() + next_check_s, self._check_interval_s)
            wait_s = next_check_s + looks * self._check_interval_s
            self._copies.check_in(wait_s, key, header, self._checks[key] + looks)

    def _forget_written(self) -> None:
        while self._decisions and self._decisions[0].at_s + self._release.op_batch_s <= self._now_s():
            self._decisions.popleft()

    # the heartbeats of `Nobody`

    def _beat(self) -> None:
        self._beating = asyncio.get_running_loop().call_later(_HEARTBEAT_S, self._beat)
        self._say_hello()

    def _say_hello(self) -> None:
        if self._groups and not self._is_shut:
            groups = [ProducerData(group_name=group) for group in self._groups]
            self._nobody.ask(RequestCode.HEART_BEAT, None, HeartbeatData(client_id="nobody", producer_data_set=groups).encode())
