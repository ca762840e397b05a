"""Imitates how Apache's broker checks and decides transactions.

This broker gives a transaction one outcome, counts a check-back only once it was sent, and prefers the producer that sent the
half message. Apache's broker differs as follows:

- Apache's broker rewrites the half message at every check. A late decision therefore ends only the first copy. The second copy
  is still checked, and its COMMIT delivers the message again.
- It ignores earlier decisions: a COMMIT delivers the message even if the transaction was committed, rolled back or discarded.
- It counts checks while no producer is online, or while the message is immune to checks.
- It sends check-backs to the members of a group in turn.

Tests use the imitation to verify that producers and consumers handle these differences.
"""

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
from rocketmq_broker.protocol.headers.pull import SearchOffsetRequestHeader, SearchOffsetResponseHeader
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.testing.apache.immunity import Immunity, find_immunity, scans_until_check, with_check_interval
from rocketmq_broker.testing.apache.release import Release
from rocketmq_broker.testing.apache.second_copies import BrokerAccess, SecondCopies
from rocketmq_broker.testing.apache.unknown_producer import UnknownProducer, send_as, unknown_answer
from rocketmq_broker.testing.journal import EventKind, Journal
from rocketmq_broker.testing.transactions import Inspection

_HEARTBEAT_S: Final = 30.0
_BORN_HOST: Final = host_bytes("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A producer's decision, which is lost if the broker crashes before the decision's op message is written."""

    at_s: float
    key: str
    header: EndTransactionRequestHeader


class LikeApache:
    """Makes one broker behave like Apache's. Transactions are identified by the unique id of their message."""

    def __init__(
        self,
        access: BrokerAccess,
        journal: Journal,
        *,
        now_s: Callable[[], float],
        release: Release,
        check_interval_s: float,
        check_max: int,
    ) -> None:
        """Imitates one broker. `now_s` returns the test's time. `check_interval_s` and `check_max` are the broker's settings."""
        self._access = access
        self._journal = journal
        self._now_s = now_s
        self._release = release
        self._check_interval_s = check_interval_s
        self._groups: dict[str, None] = {}
        self._checks: defaultdict[str, int] = defaultdict(int)
        self._immune: dict[str, Immunity] = {}
        self._decisions: deque[_Decision] = deque()
        self._is_shut = False
        self._unknown_producer = UnknownProducer(lambda: self._access.broker)
        self._copies = SecondCopies(
            access,
            self._unknown_producer,
            journal,
            check_interval_s=check_interval_s,
            check_max=check_max,
            is_shut=lambda: self._is_shut,
        )
        self._heartbeat: asyncio.TimerHandle | None = None
        self._beat()

    # start and stop

    def broker_stopped(self, *, is_killed: bool) -> None:
        """Handles the broker's stop.

        A killed broker loses the decisions without op messages. It checks their transactions again after its restart.
        """
        self._is_shut = True
        self._forget_written()
        if is_killed:
            for decision in self._decisions:
                self._copies.check_in(self._check_interval_s, decision.key, decision.header, self._checks[decision.key])
        self._decisions.clear()

    def broker_restarted(self, access: BrokerAccess) -> None:
        """Handles the broker's restart."""
        self._access = self._copies.access = access
        self._is_shut = False
        self.stop_heartbeats()
        self._beat()

    def stop(self) -> None:
        """Cancels all timers."""
        self.stop_heartbeats()
        self._copies.clear()

    def stop_heartbeats(self) -> None:
        """Stops the heartbeats of the simulated producer (UnknownProducer)."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    # requests

    def on_connected(self, connection: Connection) -> None:
        """Handles a new connection. All clients get the same address, so that the broker prefers none of them in checks."""
        connection.born_host = _BORN_HOST

    def on_half_message(self, group: str, key: str | None, encoded_properties: bytes) -> bytes:
        """Returns the properties to store with a half message.

        After this call, checks are counted for the message's group even while no producer is online.
        """
        if group not in self._groups:
            self._groups[group] = None
            self._send_heartbeat()
        immunity = find_immunity(encoded_properties, self._now_s())
        if immunity is None or key is None:
            return encoded_properties
        self._immune[key] = immunity
        if immunity.seconds <= self._check_interval_s:
            return encoded_properties
        return with_check_interval(self._check_interval_s, encoded_properties)

    def accepts_decision(self, header: EndTransactionRequestHeader, key: str) -> bool:
        """Returns whether to pass the decision to the broker. Returns False if this method has handled the decision itself."""
        is_decision = header.commit_or_rollback != sysflag.TRANSACTION_NOT_TYPE
        if header.from_transaction_check:
            if self._copies.is_asked(key):
                self._copies.settle(key, header.commit_or_rollback)
                return False
            if is_decision:
                self._copies.forget(key)
        elif is_decision and self._is_refused(key):
            return False
        if header.commit_or_rollback == sysflag.TRANSACTION_COMMIT_TYPE and self._inspection.is_decided(header.commit_log_offset):
            self._copies.deliver_again(key, header.commit_log_offset)
            return False
        if is_decision:
            self._note_decision(header, key)
        return True

    def search_offset(self, request: RemotingCommand) -> bytes | None:
        """Returns the response to a search by time, or None if the broker should respond as usual. Raises ProtocolError."""
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

    # check-backs

    def on_check(self, peer: str, header: CheckTransactionStateRequestHeader, key: str) -> bool:
        """Counts a check-back to the producer at `peer`. Returns False if it must not be sent, because the message is immune."""
        if self._copies.is_asked(key):
            return True
        self._checks[key] += 1
        immunity = self._immune.get(key)
        if immunity is None or not immunity.covers(self._now_s()):
            return True
        self._journal.note(EventKind.FAULT, "a check is used up while the message is immune, as Apache's broker does", [key])
        connection = self._access.connection(peer)
        if connection is not None:
            asyncio.get_running_loop().call_soon(
                send_as, connection, self._access.broker, RequestCode.END_TRANSACTION, unknown_answer(header)
            )
        return False

    @property
    def _inspection(self) -> Inspection:
        return Inspection(self._access.broker, "")

    def _is_refused(self, key: str) -> bool:
        immunity = self._immune.get(key)
        if not self._release.refuses_after_immunity or immunity is None or self._now_s() <= immunity.end_s:
            return False
        what = f"refused after the immunity has ended, as Apache's broker {self._release.name} does; a check-back will decide"
        self._journal.note(EventKind.REFUSED, what, [key])
        return True

    def _note_decision(self, header: EndTransactionRequestHeader, key: str) -> None:
        """Records a decision about the first copy. Schedules checks of a second copy, which may exist or be written later."""
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
            scans = scans_until_check(self._immune.get(key), self._now_s() + next_check_s, self._check_interval_s)
            wait_s = next_check_s + scans * self._check_interval_s
            self._copies.check_in(wait_s, key, header, self._checks[key] + scans)

    def _forget_written(self) -> None:
        while self._decisions and self._decisions[0].at_s + self._release.op_batch_s <= self._now_s():
            self._decisions.popleft()

    # the heartbeats of the silent producer

    def _beat(self) -> None:
        self._heartbeat = asyncio.get_running_loop().call_later(_HEARTBEAT_S, self._beat)
        self._send_heartbeat()

    def _send_heartbeat(self) -> None:
        if self._groups and not self._is_shut:
            groups = [ProducerData(group_name=group) for group in self._groups]
            heartbeat = HeartbeatData(client_id="unknown_producer", producer_data_set=groups)
            self._unknown_producer.ask(RequestCode.HEART_BEAT, None, heartbeat.encode())
