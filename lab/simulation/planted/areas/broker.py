"""Bugs planted in the broker's server: transactions and pulls."""

from __future__ import annotations

from typing import Any, Final

from lab.simulation.judges.violation import Promise
from lab.simulation.planted.bug import Planted, PlantedArea
from lab.simulation.planted.patches import Patches
from rocketmq_broker.message import sysflag
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers import PullMessageRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.store.queues.unit_files import UNIT_SIZE
from rocketmq_broker.transaction import transitions
from rocketmq_broker.transaction.decision import EndAction, EndDecision, EndRequest, Refusal
from rocketmq_broker.transaction.pending import _Kind
from rocketmq_broker.transaction.pending_transaction import PendingTransaction
from rocketmq_broker.transaction.states import State

_MESSAGES: Final = "rocketmq_broker.server.transactions.transactional_messages:TransactionalMessages"
_DECIDED: Final = (Refusal.ALREADY_COMMITTED, Refusal.ALREADY_ROLLED_BACK, Refusal.ALREADY_DECIDED)


def _accept_a_second_commit(patches: Patches) -> None:
    decide = patches.original(f"{_MESSAGES}.decide")

    def every_commit_wins(self: Any, request: EndRequest) -> EndDecision:
        decision: EndDecision = decide(self, request)
        if decision.refusal not in _DECIDED or request.commit_or_rollback != sysflag.TRANSACTION_COMMIT_TYPE:
            return decision
        half = self._bridge.message_at(request.commit_log_offset)
        if half is None:
            return decision
        topic, queue_id = half.destination()
        offset, queue_offset, now_ms = half.commit_log_offset, half.queue_offset, half.store_timestamp
        again = PendingTransaction(
            offset, queue_offset, offset, queue_offset, half.producer_group, topic, queue_id, half.tags_code(), now_ms, now_ms
        )
        self.table._pending[offset] = again
        return EndDecision(EndAction.COMMIT, again)

    patches.replace(f"{_MESSAGES}.decide", every_commit_wins)


def _append_the_op_message_first(patches: Patches) -> None:
    def commit(self: Any, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        half = self._recent.take(transaction.stored_at, transaction.stored_queue_offset) or self._bridge.read(transaction)
        self._end(transaction, State.COMMITTED, now_ms, reason)
        appended = self._bridge.append(transitions.committed(half, transaction), now_ms)
        self.outcomes[transaction.topic].committed(now_ms - transaction.begun_ms)
        return int(appended.end_position)

    patches.replace(f"{_MESSAGES}.commit", commit)


def _forget_what_is_taken_back(patches: Patches) -> None:
    target = "rocketmq_broker.transaction.pending:PendingTransactions._undo"
    undo = patches.original(target)

    def _undo(self: Any, change: Any) -> None:
        undo(self, change)
        if change.kind is _Kind.ENDED:
            del self._pending[change.transaction.commit_log_offset]

    patches.replace(target, _undo)


def _close_before_the_store_takes_it(patches: Patches) -> None:
    def commit(self: Any, transaction: PendingTransaction, now_ms: int, reason: str | None = None) -> int:
        half = self._recent.take(transaction.stored_at, transaction.stored_queue_offset) or self._bridge.read(transaction)
        offset = transaction.commit_log_offset
        del self.table._pending[offset]
        self._bridge.append(transitions.committed(half, transaction), now_ms)
        self.table._pending[offset] = transaction
        end_position = self._end(transaction, State.COMMITTED, now_ms, reason)
        self.outcomes[transaction.topic].committed(now_ms - transaction.begun_ms)
        return int(end_position)

    patches.replace(f"{_MESSAGES}.commit", commit)


def _commit_the_offset_of_the_pull(patches: Patches) -> None:
    target = "rocketmq_broker.server.pulling.pull_processor:PullProcessor.pull"
    answer = patches.original(target)

    def pull(self: Any, connection: Connection, command: RemotingCommand) -> bytes | None:
        header = command.decode_header(PullMessageRequestHeader)
        if header.sys_flag & pull_sysflag.COMMIT_OFFSET:
            self._commits.advance(header.consumer_group, header.topic, header.queue_id, header.queue_offset)
        frame: bytes | None = answer(self, connection, command)
        return frame

    patches.replace(target, pull)


def _pass_over_the_rest(patches: Patches) -> None:
    target = "rocketmq_broker.store.queues.pull:_choose"
    choose = patches.original(target)

    def _choose(units: Any, max_messages: int, max_bytes: int, tags_codes: frozenset[int] | None) -> Any:
        wanted, _ = choose(units, max_messages, max_bytes, tags_codes)
        return wanted, len(units) // UNIT_SIZE

    patches.replace(target, _choose)


PLANTED: Final = (
    Planted(
        "second-commit-accepted",
        PlantedArea.BROKER,
        "A COMMIT about a transaction that is decided already delivers its message again.",
        "an answer to a check-back that comes after the COMMIT, or a broker that restarts between the two",
        Promise.ONE_OUTCOME,
        _accept_a_second_commit,
    ),
    Planted(
        "op-message-first",
        PlantedArea.BROKER,
        "The op message that closes a half message is appended before the committed message, not after it.",
        "power failure that tears the write of the two",
        Promise.ORDER_HAS_CREDIT,
        _append_the_op_message_first,
    ),
    Planted(
        "taken-back-and-forgotten",
        PlantedArea.BROKER,
        "When the records of a decision do not reach the disk, the transaction is not pending again.",
        "a sync or write that fails while a COMMIT is on its way to the disk",
        Promise.ORDER_HAS_CREDIT,
        _forget_what_is_taken_back,
    ),
    Planted(
        "closed-before-stored",
        PlantedArea.BROKER,
        "A COMMIT leaves the table of pending transactions before the store has taken its message.",
        "a store that refuses everything when a COMMIT comes",
        Promise.ORDER_HAS_CREDIT,
        _close_before_the_store_takes_it,
    ),
    Planted(
        "pull-offset-committed",
        PlantedArea.BROKER,
        "A pull commits the offset from which it reads, not the one up to which the consumer has handled messages.",
        "a consumer that dies with pulled messages in its hands",
        Promise.OFFSET_BEHIND_WORK,
        _commit_the_offset_of_the_pull,
    ),
    Planted(
        "rest-passed-over",
        PlantedArea.BROKER,
        "A pull by tag that reaches its limit of messages goes on after all units that it read, not after the delivered ones.",
        "a backlog of more messages than one pull takes",
        Promise.ORDER_HAS_CREDIT,
        _pass_over_the_rest,
    ),
)
